"""Batches of leaves for the evaluator:

    fill        descends until there are enough leaves; stores planes and paths by row
    complete    expands the leaves with the evaluations and backs these up, row by row
    abandon     removes pending leaves, if their evaluations are not needed any more

Rows below the batch size hold leaves, rows from there on the collisions of the present `fill`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoding_kernels import InputTables, PolicyTables, encode_into
from variant_ai.core.jit import Number, borrowing
from variant_ai.core.jit.signatures import Floats2D, Ints3D
from variant_ai.core.rules.kernel.table_layout import MAX_MOVES, Tables
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.tree.backup import apply_virtual_loss, back_up
from variant_ai.core.search.tree.descent import COLLISION, DONE, LEAF, descend
from variant_ai.core.search.tree.look_ahead.material import material_gains, with_gain
from variant_ai.core.search.tree.nodes import FRESH, UNPROVEN, Arrays
from variant_ai.core.search.tree.priors import expand_node, expand_uniform
from variant_ai.core.search.tree.working_memory import Descent, Scratch

if TYPE_CHECKING:
    from variant_ai.core.encoding.encoder import Encoder
    from variant_ai.core.inference.interface import Evaluator

ENOUGH = 6
"""Outcome of a normal `fill`; the other outcomes are those of a descent."""
DONE_AT_ONCE = 256
"""Visits without a leaf after which `fill` returns: if every move ends the game or repeats, there may
never be a leaf again."""


class LeafBatch(NamedTuple):
    """Arrays for B leaves and B collisions."""

    planes: Floats2D
    """[B, C * H * W]; no rows if the evaluator needs no planes."""
    positions: Position
    """POSITION [B]."""
    gains: NDArray[np.float64]
    """Material that the best move of each row gains (`material_gains`), [B]."""
    leaves: NDArray[np.int32]
    """Node of each row, [B]."""
    move_gains: Floats2D
    """The same by move, [B, MAX_MOVES]."""
    lengths: NDArray[np.int64]
    """Edges of each row's path, [2 * B]."""
    paths: Ints3D
    """Nodes and selected edges of each row, [2 * B, 2, depth]."""


def new_batch(size: int, planes: int, depth: int) -> LeafBatch:
    """Create a batch for `size` leaves with `planes` numbers each (0: none) and paths of `depth`
    edges."""
    return LeafBatch(
        planes=np.zeros((size if planes else 0, planes), np.float32),
        positions=np.zeros(size, POSITION),
        gains=np.zeros(size),
        leaves=np.zeros(size, np.int32),
        move_gains=np.zeros((size, MAX_MOVES), np.float32),
        lengths=np.zeros(2 * size, np.int64),
        paths=np.zeros((2 * size, 2, depth + 1), np.int32),
    )


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


@borrowing
def fill(
    t: Tables,
    e: InputTables,
    s: Settings,
    g: Arrays,
    w: Descent,
    b: LeafBatch,
    scratch: Scratch,
    first: Number,
    end: Number,
    enough: Number,
    most: Number,
    uniform: Number,
) -> Number:
    """Descend until rows `first` to `end` hold leaves, `most` visits were started or made, as many
    collisions happened as the batch has rows, or DONE_AT_ONCE visits ended without a leaf.

    With `uniform` 1 the evaluator returns the same for every position: leaves are expanded at once,
    and batches follow one another until `enough` visits were made. Returns
    outcome + 8 * (row after the last leaf). t: TABLES, e: INPUT.
    """
    size = b.leaves.shape[0]
    root = np.int64(g.state[0]["root"])
    row = first
    made = np.int64(0)
    outcome = np.int64(ENOUGH)
    while True:
        collided = size
        done = np.int64(0)
        while row < end and made < most and collided < 2 * size and done < DONE_AT_ONCE:
            found = descend(t, s, g, w, scratch, b.paths, row)
            length = np.int64(w.path_info[0]["length"])
            if found == LEAF:
                store_leaf(t, e, s, g, w, b, scratch, row)
                row += 1
                made += 1
            elif found == COLLISION:
                for d in range(length):
                    b.paths[collided, 0, d] = b.paths[row, 0, d]
                    b.paths[collided, 1, d] = b.paths[row, 1, d]
                b.lengths[collided] = length
                collided += 1
            elif found == DONE:
                made += 1
                done += 1
                if g.nodes[root]["proof"] != UNPROVEN:
                    break
            else:
                outcome = found
                break
        for c in range(size, collided):
            apply_virtual_loss(g, b.paths, np.int64(c), np.int64(b.lengths[c]), np.int64(-1))
        if not uniform:
            break
        for k in range(row):
            node = np.int64(b.leaves[k])
            expand_uniform(t, s, g, node, b.positions, k, scratch)
            finish_row(s, g, b, np.int64(k))
        row = np.int64(0)
        solved = g.nodes[root]["proof"] != UNPROVEN
        if outcome != ENOUGH or solved or made >= enough or made >= most:
            break
    return outcome + 8 * row


@borrowing
def store_leaf(
    t: Tables,
    e: InputTables,
    s: Settings,
    g: Arrays,
    w: Descent,
    b: LeafBatch,
    scratch: Scratch,
    row: Number,
) -> None:
    """Write the leaf of the last descent to a row of the batch: its planes, and what its moves gain."""
    info = w.path_info[0]
    length = np.int64(info["length"])
    leaf = np.int64(info["leaf"])
    at = np.int64(info["root_at"]) + length
    b.positions[row] = w.line[at]
    b.leaves[row] = leaf
    b.lengths[row] = length
    b.gains[row] = material_gains(t, s, g, w, scratch, leaf, at, b.move_gains, row)
    if b.planes.shape[0] > 0:
        encode_into(t, e, w.line, at, b.planes, row, np.int64(0), np.int64(0))


@borrowing
def complete(
    t: Tables,
    a: PolicyTables,
    action_table: NDArray[np.int32],
    s: Settings,
    g: Arrays,
    b: LeafBatch,
    scratch: Scratch,
    first: Number,
    end: Number,
    values: NDArray[np.float32],
    logits: Floats2D,
    draws: NDArray[np.float32],
) -> Number:
    """Expand and back up rows `first` to `end`. Returns the row after the last one done, which is
    `end` unless an evaluation is not a number.

    values [B], logits [B, A], draws [B] or empty if the evaluator has none.
    """
    for row in range(first, end):
        node = np.int64(b.leaves[row])
        value = with_gain(np.float64(values[row]), b.gains[row])
        draw = np.float64(draws[row]) if draws.shape[0] > 0 else 0.0
        if b.gains[row] != 0 and draw > 1.0 - abs(value):
            draw = 1.0 - abs(value)
        if not expand_node(
            t,
            a,
            action_table,
            s,
            g,
            node,
            b.positions,
            row,
            logits,
            value,
            draw,
            b.move_gains,
            scratch,
        ):
            return np.int64(row)
        finish_row(s, g, b, row)
    return end


@borrowing
def finish_row(s: Settings, g: Arrays, b: LeafBatch, row: Number) -> None:
    """Back up an expanded leaf."""
    record = g.nodes[np.int64(b.leaves[row])]
    g.state[0]["evaluations"] += 1
    back_up(
        g,
        s,
        b.paths,
        row,
        b.lengths[row],
        np.float64(record["value"]),
        np.float64(record["draw"]),
        np.int64(1),
    )


@borrowing
def abandon(g: Arrays, b: LeafBatch, first: Number, end: Number) -> None:
    """Remove the virtual loss of rows `first` to `end` and make their leaves FRESH again."""
    for row in range(first, end):
        apply_virtual_loss(g, b.paths, row, b.lengths[row], np.int64(-1))
        g.nodes[np.int64(b.leaves[row])]["state"] = FRESH
