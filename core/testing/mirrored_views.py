"""Positions and moves with colours exchanged, or with left and right exchanged.

The encoding must not depend on the mover's colour, and in a variant with `symmetry: [files]` a mirrored
game must be equivalent. The conformance kit and the tests check encoders and rules for that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from variant_ai.core.rules.position import (
    CASTLING,
    COLOUR_STRIDE,
    DROP,
    MAX_SQUARES,
    Position,
    make_move,
    move_argument,
    move_kind,
    move_origin,
    move_target,
)
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import mirrored_square, seen_by


def swapped_position(spec: VariantSpec, position: Position) -> Position:
    """Position with the colours and sides of the board exchanged; its key is 0."""
    turn, squares = _turn(spec)
    other = _placed(position, turn, squares)
    codes = other[0]["board"].astype(np.int64)
    swapped = np.where(codes > COLOUR_STRIDE, codes - COLOUR_STRIDE, codes + COLOUR_STRIDE)
    record = other[0]
    record["board"] = np.where(codes == 0, 0, swapped)
    for name in ("hands", "checks", "wins_left", "kings"):
        record[name] = other[0][name][::-1].copy()
    sides = len(spec.castling)
    rights = int(position[0]["castling"])
    record["castling"] = rights >> sides | (rights & (1 << sides) - 1) << sides
    homes = position[0]["homes"]
    record["homes"][: 2 * sides] = [*homes[sides : 2 * sides], *homes[:sides]]
    record["side"] = 1 - int(position[0]["side"])
    record["ply"] = int(position[0]["ply"]) // 2 * 2 + int(record["side"])
    return other


def swapped_move(spec: VariantSpec, move: int) -> int:
    """Move in the swapped position that corresponds to `move`."""
    turn, _ = _turn(spec)
    argument = move_argument(move)
    if move_kind(move) == CASTLING:
        argument = (argument + len(spec.castling)) % (2 * len(spec.castling))
    return _moved(move, turn, argument)


def mirrored_position(spec: VariantSpec, position: Position) -> Position:
    """Position with left and right exchanged, for variants without castling; its key is 0."""
    files = spec.board.files
    return _placed(position, lambda s: mirrored_square(s, files), spec.board.squares)


def mirrored_move(spec: VariantSpec, move: int) -> int:
    """Move in the mirrored position that corresponds to `move`."""
    files = spec.board.files
    return _moved(move, lambda s: mirrored_square(s, files), move_argument(move))


def _turn(spec: VariantSpec) -> tuple[Callable[[int], int], int]:
    board = spec.board

    def turn(square: int) -> int:
        return seen_by(square, 1, board)

    return turn, board.squares


def _placed(position: Position, to: Callable[[int], int], squares: int) -> Position:
    """Copy of a position with all squares mapped by `to`."""
    other = position.copy()
    record = other[0]
    record["key"] = 0
    record["board"][[to(square) for square in range(squares)]] = position[0]["board"][:squares]
    record["kings"] = [to(int(k)) if k >= 0 else -1 for k in position[0]["kings"]]
    for k, last in enumerate(record["last_moves"].tolist()):
        if last:
            origin, target = divmod(last - 1, MAX_SQUARES)
            origin = origin if origin == MAX_SQUARES else to(origin)
            record["last_moves"][k] = 1 + to(target) + origin * MAX_SQUARES
    record["ep"] = to(int(position[0]["ep"])) if position[0]["ep"] >= 0 else -1
    return other


def _moved(move: int, to: Callable[[int], int], argument: int) -> int:
    origin = 0 if move_kind(move) == DROP else to(move_origin(move))
    return make_move(origin, to(move_target(move)), move_kind(move), argument)
