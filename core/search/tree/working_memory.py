"""Arrays that the compiled functions of this folder work on; one set per tree.

`Descent` has the line of positions from the game's start to the leaf, and the arrays that go with it.
`Scratch` has memory that is free again after each call, also for the searches for a mate and for material.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import array
from variant_ai.core.jit.signatures import Ints2D
from variant_ai.core.rules.kernel.attacks import MoveWork
from variant_ai.core.rules.kernel.giving_check import CheckWork, new_checks
from variant_ai.core.rules.kernel.table_layout import MAX_MOVES, MoveLists, new_moves
from variant_ai.core.rules.position import Position, new_position
from variant_ai.core.search.tree.repetition import Past, Verdicts

PATH_INFO = np.dtype(
    [
        ("root_at", "i8"),  # index of the root in the line
        ("root_end", "i8"),  # edges of the root before this one may be selected
        ("root_edge", "i8"),  # 1 + edge of the root to follow; 0: select it
        ("leaf", "i8"),  # node of a LEAF
        ("length", "i8"),  # edges of the path
        ("row", "i8"),  # NEEDS_JUDGE: row of the path
        ("cycle", "i8"),  # NEEDS_JUDGE: index in the line where the cycle begins
        ("cycle_end", "i8"),  # NEEDS_JUDGE: index in the line where it ends
    ]
)
"""Root and result of a descent."""


class Descent(NamedTuple):
    """Arrays that descents read and write; one set per tree."""

    line: Position
    """POSITION: the game's positions up to the root, then those of the path."""
    past: Past
    """PAST of the game."""
    verdicts: Verdicts
    """VERDICT: chases judged so far."""
    root_priors: NDArray[np.float32]
    """See `select_edge`; empty if the root's own priors are used."""
    no_priors: NDArray[np.float32]
    """Empty array, for inner nodes."""
    path_info: Annotated[NDArray[np.void], array(PATH_INFO)]
    """PATH_INFO, shape (1,)."""
    out: MoveLists
    """Move lists of the generator."""
    work: MoveWork
    """Scratch memory of the generator."""


LONGEST_MATE = 15
"""Plies of the longest mate by checks that can be looked for."""
MATE_NODE = np.dtype(
    [
        ("parent", "i4"),
        ("first", "i4"),  # first child; the others follow it
        ("count", "i4"),  # number of children; 0: not expanded
        ("move", "i4"),  # move that leads here
        ("proof", "i4"),  # proof number
        ("disproof", "i4"),  # disproof number
        ("node", "i4"),  # node of the graph, once it is written; negative if it was there before
    ]
)
MATE_NODES = 4096
"""Room for the nodes of one search for a mate."""


class MateSearch(NamedTuple):
    """A proof number search for a mate by checks, `look_ahead/by_checks.py`."""

    nodes: Annotated[NDArray[np.void], array(MATE_NODE)]
    """MATE_NODE; the first one is the position to solve."""
    moves: NDArray[np.int32]
    """Legal moves of a node, [MAX_MOVES]."""
    stack: Ints2D
    """By ply, while the mate is written into the graph: the node and how many of its children are
    done, [LONGEST_MATE + 1, 2]."""


def new_mate_search() -> MateSearch:
    return MateSearch(
        nodes=np.zeros(MATE_NODES, MATE_NODE),
        moves=np.zeros(MAX_MOVES, np.int32),
        stack=np.zeros((LONGEST_MATE + 1, 2), np.int32),
    )


MATERIAL_PLIES = 16
"""Plies of the longest line of a search for material."""


class MaterialSearch(NamedTuple):
    """A search for material, `look_ahead/material.py`. By ply: captures to try, and their gains."""

    moves: MoveLists
    """[MATERIAL_PLIES]."""
    gains: Annotated[NDArray[np.float64], array(np.float64, 2)]
    """[MATERIAL_PLIES, MAX_MOVES]."""
    used: NDArray[np.int64]
    """Positions searched so far, [1]."""


def new_material_search() -> MaterialSearch:
    return MaterialSearch(
        moves=new_moves(MATERIAL_PLIES),
        gains=np.zeros((MATERIAL_PLIES, MAX_MOVES)),
        used=np.zeros(1, np.int64),
    )


EXPANDER = np.dtype(
    [
        ("p", "f8", (MAX_MOVES,)),  # probabilities of the legal moves
        ("gives", "u1", (MAX_MOVES,)),  # 1 if the move gives check
    ],
    align=True,
)


class Scratch(NamedTuple):
    """Scratch memory of expansion; one set per tree."""

    expander: Annotated[NDArray[np.void], array(EXPANDER)]
    """EXPANDER, shape (1,)."""
    checks: CheckWork
    """CHECKS."""
    trial: Position
    """POSITION, shape (1,)."""
    mates: MateSearch
    """A search for a mate by checks."""
    material: MaterialSearch
    """A search for material."""


def new_scratch() -> Scratch:
    return Scratch(
        np.zeros(1, EXPANDER),
        new_checks(),
        new_position(),
        new_mate_search(),
        new_material_search(),
    )
