"""Memory of many trees: each tree is a slab of one arena, all slabs are equally large.

A game keeps its slab, its line of positions and its generator from its first to its last move.
Compiled code makes the `Arrays` and `Descent` of one tree as views of the slabs, so that everything
that works on a tree works here unchanged.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, array, borrowing
from variant_ai.core.jit.random_numbers import States
from variant_ai.core.jit.signatures import Ints2D
from variant_ai.core.rules.kernel.attacks import MoveWork
from variant_ai.core.rules.kernel.movegen import new_work
from variant_ai.core.rules.kernel.table_layout import MAX_MOVES, MoveLists, new_moves
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.search.tree.nodes import CELL, NODE, REPEAT, SLOT, STATE, Arrays
from variant_ai.core.search.tree.repetition import PAST, Verdicts, new_verdicts
from variant_ai.core.search.tree.working_memory import MATERIAL_PLIES, PATH_INFO, Descent

CELLS_A_VISIT = 64
"""Cells of a slab for each visit of a search: 4 KB, enough for nodes of 600 moves. Where more nodes than a
few have more moves, a search may end early with full memory."""
HEADS = 64
"""Least number of hash chains of a tree."""
IDLE, SEARCHING, ENDED, RESIGNED = range(4)
"""State of a tree: no game, a search is going on, the rules or the limit may have ended the game, a side
has resigned."""

TREE = np.dtype(
    [
        ("game", "i8"),  # number of the game
        ("state", "i8"),  # IDLE, SEARCHING, ENDED, RESIGNED
        ("nodes", "i8"),  # visits of the present search
        ("considered", "i8"),  # root moves compared (Gumbel)
        ("full", "i8"),  # 1: all nodes; 0: a fast move that is not recorded
        ("prepared", "i8"),  # 1: the root's edges are in order
        ("stuck", "i8"),  # 1: the search cannot go on
        ("first", "i8"),  # index in the line of the first position that the players chose in
        ("limit", "i8"),  # index in the line at which the game is ended
        ("priors", "i8"),  # entries in `root_scores`; 0: the root's own priors count
        ("past", "i8"),  # entries of its table of past positions: a power of two
        ("resigns", "i8"),  # 1: a side may resign
        ("lost", "i8", (2,)),  # plies in a row in which the side's value was below the limit
    ],
    align=True,
)
"""A game and its search."""
Trees: TypeAlias = Annotated[NDArray[np.void], array(TREE)]

CHOICE = np.dtype(
    [
        ("gumbel", "i1"),  # 1: Gumbel, 0: PUCT
        ("noise", "i1"),
        ("nodes", "i8"),
        ("fast_nodes", "i8"),
        ("full_share", "f8"),
        ("considered", "i8"),
        ("forced_playouts", "f8"),
        ("noise_epsilon", "f8"),
        ("noise_alpha", "f8"),  # 0: 10 / legal moves
        ("sampled_plies", "i8"),  # plies in which moves are sampled
        ("temperature", "f8"),  # temperature of the first sampled ply
        ("temperature_end", "f8"),  # of the last one
        ("resign_below", "f8"),
        ("resign_plies", "i8"),
        ("fold", "i8"),  # occurrences that end a game
    ],
    align=True,
)
"""Settings of the choice of moves by the names of `ForestSettings`; one record."""
Choice: TypeAlias = Annotated[NDArray[np.void], array(CHOICE)]

ENTRY = np.dtype(
    [
        ("game", "i8"),
        ("ply", "i8"),  # index of the position in the line
        ("move", "i8"),  # move played
        ("first", "i8"),  # first weight of its policy target
        ("count", "i8"),  # number of its weights
        ("full", "i8"),
        ("root_value", "f8"),  # for the player to move, in [-1, 1]
    ],
    align=True,
)
"""Log entry of a finished search."""
Entries: TypeAlias = Annotated[NDArray[np.void], array(ENTRY)]
COUNTERS = np.dtype([("entries", "i8"), ("weights", "i8"), ("visits", "i8")], align=True)
"""Entries and weights in the log; visits of finished searches."""
Counters: TypeAlias = Annotated[NDArray[np.void], array(COUNTERS)]
PastSlabs: TypeAlias = Annotated[NDArray[np.void], array(PAST)]
PathInfos: TypeAlias = Annotated[NDArray[np.void], array(PATH_INFO)]


class Forest(NamedTuple):
    """Arrays of G trees, and the log of their finished searches."""

    nodes: Annotated[NDArray[np.void], array(NODE)]
    slots: Annotated[NDArray[np.void], array(SLOT)]
    moves: NDArray[np.int32]
    priors: NDArray[np.uint16]
    blocks: NDArray[np.uint16]
    edge_values: NDArray[np.float32]
    heads: NDArray[np.int32]
    repeats: Annotated[NDArray[np.void], array(REPEAT)]
    stack: NDArray[np.int32]
    states: Annotated[NDArray[np.void], array(STATE)]
    line: Position
    past: PastSlabs
    verdicts: Verdicts
    root_scores: NDArray[np.float32]
    """[G * MAX_MOVES] of each root edge: logit with Gumbel noise, or prior with Dirichlet noise."""
    none: NDArray[np.float32]
    path_infos: PathInfos
    out: MoveLists
    work: MoveWork
    trees: Trees
    randoms: States
    entries: Entries
    weight_moves: NDArray[np.int32]
    """Move of each weight of the log."""
    weights: NDArray[np.float32]
    """Weights of policy targets; those of an entry add up to 1."""
    counters: Counters
    schedules: Ints2D
    """[2 * (considered + 1), nodes]: visits that a root move must have to get visit k, for each number
    of moves compared; the second half for fast moves."""
    sizes: NDArray[np.int64]
    """[5]: cells, repeats, positions of the line, entries of the past, hash chains of one tree."""


def cells_for_visits(nodes: int) -> int:
    """Return the cells of a slab for `nodes` visits; see CELLS_A_VISIT."""
    return CELLS_A_VISIT * (nodes + 2) + 64


def new_forest(
    games: int, cells: int, depth: int, positions: int, schedules: NDArray[np.int32]
) -> Forest:
    """Create the memory of `games` trees of `cells` cells and paths of at most `depth` plies, in games
    of at most `positions` positions. Pages are allocated when they are first written."""
    nodes = cells // CELLS_A_VISIT
    repeats = max(64, nodes + 8)
    line = positions + depth + 4 + MATERIAL_PLIES
    past = 1 << (2 * positions).bit_length()
    heads = max(HEADS, 1 << nodes.bit_length())
    total = games * cells
    arena = np.zeros(total * CELL + CELL, np.uint8)
    skip = -arena.ctypes.data % CELL
    arena = arena[skip : skip + total * CELL]
    log = 4 * games + 64
    states = np.zeros(games, STATE)
    states["cell_limit"] = cells - 1
    return Forest(
        nodes=arena.view(NODE),
        slots=arena.view(SLOT),
        moves=arena.view(np.int32),
        priors=arena.view(np.uint16),
        blocks=np.zeros(total, np.uint16),
        edge_values=np.zeros(1, np.float32),
        heads=np.zeros(games * heads, np.int32),
        repeats=np.zeros(games * repeats, REPEAT),
        stack=np.zeros(1, np.int32),
        states=states,
        line=np.zeros(games * line, POSITION),
        past=np.zeros(games * past, PAST),
        verdicts=new_verdicts(),
        root_scores=np.zeros(games * MAX_MOVES, np.float32),
        none=np.zeros(0, np.float32),
        path_infos=np.zeros(games, PATH_INFO),
        out=new_moves(2),
        work=new_work(),
        trees=np.zeros(games, TREE),
        randoms=np.zeros(games, np.uint64),
        entries=np.zeros(log, ENTRY),
        weight_moves=np.zeros(log * 64 + MAX_MOVES, np.int32),
        weights=np.zeros(log * 64 + MAX_MOVES, np.float32),
        counters=np.zeros(1, COUNTERS),
        schedules=schedules,
        sizes=np.array([cells, repeats, line, past, heads], np.int64),
    )


@borrowing
def tree_at(f: Forest, i: Number) -> Arrays:
    """Return the graph of tree i; for compiled code only, since nobody counts references to the views."""
    cells = f.sizes[0]
    repeats = f.sizes[1]
    heads = f.sizes[4]
    a = i * cells
    b = a + cells
    return Arrays(
        f.nodes[a:b],
        f.slots[4 * a : 4 * b],
        f.moves[16 * a : 16 * b],
        f.priors[32 * a : 32 * b],
        f.blocks[a:b],
        f.edge_values,
        f.heads[i * heads : (i + 1) * heads],
        f.repeats[i * repeats : (i + 1) * repeats],
        f.stack,
        f.states[i : i + 1],
    )


def graph_of(f: Forest, i: int) -> Arrays:
    """Return the graph of tree i, for Python code: its views keep the memory of the forest."""
    views: Arrays = getattr(tree_at, "py_func", tree_at)(f, i)
    return views


@borrowing
def descent_at(f: Forest, i: Number) -> Descent:
    """Return the line and scratch memory of tree i, with the scores that its root was given."""
    line = f.sizes[2]
    past = i * f.sizes[3]
    return Descent(
        f.line[i * line : (i + 1) * line],
        f.past[past : past + f.trees[i]["past"]],
        f.verdicts,
        f.root_scores[i * MAX_MOVES : i * MAX_MOVES + f.trees[i]["priors"]],
        f.none,
        f.path_infos[i : i + 1],
        f.out,
        f.work,
    )


def descent_of(f: Forest, i: int) -> Descent:
    """Return line and scratch memory of tree i, for Python code."""
    views: Descent = getattr(descent_at, "py_func", descent_at)(f, i)
    return views
