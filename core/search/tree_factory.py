"""Parts that a search is built from: encoder, rules, tree and batches, and roots with restricted moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.game_tree import Tree
from variant_ai.core.search.tree.leaf_batch import LeafBatch, new_batch
from variant_ai.core.spec.plane_layout import last_moves_shown
from variant_ai.core.spec.schema import VariantSpec


def encoder_and_rules(
    evaluator: Evaluator, spec: VariantSpec, rules: Rules | None = None
) -> tuple[Encoder, Rules]:
    """Return the encoder for a net, and rules whose positions contain everything that it encodes: a
    net may have other planes than the spec (`ModelInfo.own_spec`). rules: used if they are such."""
    own = evaluator.info.own_spec(spec)
    encoder = Encoder(own, evaluator.info.head)
    fits = rules is not None and (own is spec or rules.spec == own)
    return encoder, rules if rules is not None and fits else make_rules(own)


def with_last_moves(game: Game, rules: Rules) -> Game:
    """Return the game, or if needed a copy whose positions contain as many of the last moves as the
    planes of the rules' spec."""
    if last_moves_shown(game.rules.spec) >= last_moves_shown(rules.spec):
        return game
    return game.copy(rules)


def new_tree(encoder: Encoder, rules: Rules, params: SearchParams) -> Tree:
    """Create a tree for a rules engine: `Tree` if it is compiled, otherwise `SlowTree`."""
    if is_compiled(rules):
        return Tree(encoder, rules, params)
    from variant_ai.core.search.tree.slow_tree import SlowTree

    return SlowTree(encoder, rules, params)


def batch_for(encoder: Encoder, evaluator: Evaluator, size: int, depth: int) -> LeafBatch:
    """Create a batch for `size` leaves on paths of at most `depth` edges, with the planes that compiled
    code writes for the evaluator."""
    compiled = encoder.compiled and not evaluator.is_uniform
    return new_batch(size, int(np.prod(encoder.shape)) if compiled else 0, depth)


def leaf_planes(encoder: Encoder, batch: LeafBatch, rows: int) -> NDArray[np.float32]:
    """Planes of the first rows of a batch, [rows, C, H, W]."""
    if encoder.compiled:
        return batch.planes[:rows].reshape(rows, *encoder.shape)
    return encoder.planes(batch.positions[:rows])


class RestrictedRoots:
    """Roots of one tree that were searched with some of their moves only.

    Such a root must not be searched further with other moves: moves that were excluded have no visits,
    and the others have too many, so the best of these would always be chosen.
    """

    def __init__(self) -> None:
        self._moves: dict[int, frozenset[int]] = {}
        """Moves with which a root was searched, by the root's key."""

    def must_forget(self, tree: Tree, moves: Sequence[int] | None) -> bool:
        """Return True if the tree must be cleared before its root is searched with these moves (None:
        all), and remember the moves."""
        key = int(tree.arrays.nodes[tree.root]["key"])
        before = self._moves.pop(key, None)
        now = None if moves is None else frozenset(moves)
        # a proof for all moves together is none for some of them
        differs = tree.solved if before is None and now is not None else before != now
        if differs:
            self._moves.clear()
        if now is not None:
            self._moves[key] = now
        return differs
