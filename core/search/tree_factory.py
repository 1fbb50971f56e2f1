"""What a search is put together from: how the net sees, which tree serves which rules, and with which
moves the root of a tree was searched."""

from __future__ import annotations

from collections.abc import Sequence

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.game_tree import Tree
from variant_ai.core.spec.plane_layout import last_moves_shown
from variant_ai.core.spec.schema import VariantSpec


def rules_for(spec: VariantSpec) -> Rules:
    from variant_ai.core.rules import make_rules

    return make_rules(spec)


def sight_of(
    evaluator: Evaluator, spec: VariantSpec, rules: Rules | None = None
) -> tuple[Encoder, Rules]:
    """How positions of a spec are shown to a net, and the rules under which they remember what it is
    shown: a net may have planes of its own (`ModelInfo.own_spec`)."""
    own = evaluator.info.own_spec(spec)
    encoder = Encoder(own, "flat" if evaluator.info.head == "flat" else "map")
    return encoder, rules if rules is not None and own is spec else rules_for(own)


def remembered(game: Game, rules: Rules) -> Game:
    """The game, or a copy whose positions know as many of the last moves as the rules' spec shows."""
    if last_moves_shown(game.rules.spec) >= last_moves_shown(rules.spec):
        return game
    return game.copy(rules)


def new_tree(encoder: Encoder, rules: Rules, params: SearchParams) -> Tree:
    """A tree for the rules engine."""
    if is_compiled(rules):
        return Tree(encoder, rules, params)
    from variant_ai.core.search.tree.slow_tree import SlowTree

    return SlowTree(encoder, rules, params)


class Narrowed:
    """Roots of one tree that were searched with some of their moves only.

    Such a root cannot be searched further with others: moves that were left out have no visits, and
    those that were not have too many, so the best of them would be chosen for ever.
    """

    def __init__(self) -> None:
        self._moves: dict[int, frozenset[int]] = {}
        """Moves that a root was searched with, by the root's key."""

    def is_at_odds(self, tree: Tree, moves: Sequence[int] | None) -> bool:
        """Whether the tree must be forgotten before its root is searched with these moves (None:
        all). Takes down that it is searched with them."""
        key = int(tree.arrays.nodes[tree.root]["key"])
        before = self._moves.pop(key, None)
        now = None if moves is None else frozenset(moves)
        # what is proven of all moves together says nothing of some of them
        at_odds = tree.solved if before is None and now is not None else before != now
        if at_odds:
            self._moves.clear()
        if now is not None:
            self._moves[key] = now
        return at_odds
