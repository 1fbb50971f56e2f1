"""Which tree serves which rules, and with which moves the root of a tree was searched."""

from __future__ import annotations

from collections.abc import Sequence

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel import is_compiled
from variant_ai.core.search.params import SearchParams
from variant_ai.core.search.tree import Tree
from variant_ai.specs.schema import VariantSpec


def rules_for(spec: VariantSpec) -> Rules:
    from variant_ai.core.rules import make_rules

    return make_rules(spec)


def new_tree(encoder: Encoder, rules: Rules, params: SearchParams) -> Tree:
    """A tree for the rules engine."""
    if is_compiled(rules):
        return Tree(encoder, rules, params)
    from variant_ai.core.search.slow_tree import SlowTree

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
