"""Lists of moves that compiled code fills, and the bits of a move integer."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import array, element

MAX_MOVES = 2048

MOVES = np.dtype([("move", "i4", (MAX_MOVES,))])
MoveLists: TypeAlias = Annotated[NDArray[np.void], array(MOVES)]
MoveListRow: TypeAlias = Annotated[Any, element(MOVES)]

# Shifts of a move's parts (`position.py`).
ORIGIN = 7
KIND = 14
ARGUMENT = 17

OFF_BOARD = -1


def new_moves(n: int = 1) -> NDArray[np.void]:
    """n move lists, shape (n,), dtype MOVES; a list is `lists["move"][i, :count]`."""
    return np.zeros(n, MOVES)
