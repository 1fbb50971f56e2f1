"""Compiled replay of whole games for the store: move integers to codes and back.

n plies per game. `T` are the kernel's tables, `C` the record of the codes' policy, `work` two
positions to play in, the first of which is the start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.kernels import action_of, move_of
from variant_ai.core.rules.cache import Number, Record, njit
from variant_ai.core.rules.play import replay_into


@njit
def encode_into(
    T: Record, C: Record, work: Record, moves: NDArray[np.int32], codes: NDArray[np.uint16]
) -> Number:
    """Write `codes` [n] of the legal `moves` [n]. Returns the ply of a move that has no code, n if
    all have one."""
    here = np.int64(0)  # a literal would be another signature
    for ply in range(moves.shape[0]):
        code = action_of(C, work, here, np.int64(moves[ply]))
        if code < 0:
            return ply
        codes[ply] = code
        replay_into(T, work, here, work, np.int64(1) - here, np.int64(moves[ply]))
        here = np.int64(1) - here
    return moves.shape[0]


@njit
def decode_into(
    T: Record, C: Record, work: Record, codes: NDArray[np.uint16], moves: NDArray[np.int32]
) -> Number:
    """Write `moves` [n] of the `codes` [n]. Returns the ply of a code that is no move, else n."""
    here = np.int64(0)  # a literal would be another signature
    for ply in range(codes.shape[0]):
        move = move_of(C, work, here, np.int64(codes[ply]))
        if move < 0:
            return ply
        moves[ply] = move
        replay_into(T, work, here, work, np.int64(1) - here, move)
        here = np.int64(1) - here
    return codes.shape[0]
