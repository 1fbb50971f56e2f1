"""Positions for the encoders' tests: random games, and the same position with colours swapped."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import numpy as np

from variant_ai.core.encoding import Encoder, Head, MoveCodec
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import (
    CASTLING,
    COLOUR_STRIDE,
    DROP,
    EN_PASSANT,
    PROMOTION,
    Position,
    make_move,
    move_argument,
    move_kind,
    move_origin,
    move_target,
    view,
)
from variant_ai.specs import VariantSpec, builtin_specs, load_spec

VARIANTS = ("crazyhouse", "xiangqi")

ODD_FENS = {
    "crazyhouse": (
        # castling on both sides, en passant, promotions by capture and forward, pockets full
        "r3k2r/1P4P1/8/3pP3/3Pp3/8/1p4p1/R3K2R[QRBNPqrbnp] w KQkq d6 3 30",
        "r3k2r/1P4P1/8/3pP3/3Pp3/8/1p4p1/R3K2R[QRBNPqrbnp] b KQkq d3 3 30",
        # promoted pieces of every kind, double steps of dropped pawns
        "4k3/P7/1N~2B~3/R~7/8/7q~/1p1r~4/4K2R[PPpp] w K - 12 77",
        "4k2r/P7/1N~2B~3/R~7/8/7q~/1p1r~4/4K3[] b k - 12 77",
    ),
    "xiangqi": (
        # elephants and advisors on squares they cannot reach from the start, soldiers at home
        "3k5/9/9/p1p1p1p1p/9/2P3P2/P3P3P/B1BAB4/3A5/3AK3B w - - 7 40",
        "1b1ak4/4P4/b3b4/9/P1r3C1P/2n3N2/9/9/9/4K4 b - - 55 140",
    ),
}


@cache
def spec_of(name: str) -> VariantSpec:
    return load_spec(builtin_specs()[name])


@cache
def rules_of(name: str) -> Rules:
    return make_rules(spec_of(name))


@cache
def encoder_of(name: str, head: Head = "map") -> Encoder:
    return Encoder(spec_of(name), head)


@cache
def codec_of(name: str) -> MoveCodec:
    return MoveCodec(spec_of(name))


def random_games(
    name: str, games: int = 10, plies: int = 100
) -> Iterator[tuple[Position, list[int]]]:
    """(position, legal moves) of random games, special moves preferred, and of odd positions."""
    rules, rng = rules_of(name), random.Random(20240229)
    for number in range(games):
        odd = ODD_FENS[name]
        position = rules.position(None if number % 2 else odd[number // 2 % len(odd)])
        for _ in range(plies):
            moves = rules.legal_moves(position).tolist()
            if not moves:
                break
            yield position, moves
            special = [m for m in moves if move_kind(m) in (PROMOTION, CASTLING, EN_PASSANT)]
            quiet = [m for m in moves if move_kind(m) != DROP]
            choice = special if special and rng.random() < 0.5 else quiet or moves
            position = rules.play(position, rng.choice(choice if rng.random() < 0.7 else moves))


def colour_swapped(name: str, position: Position) -> Position:
    """The same position with the players exchanged: the board as the other one sees it."""
    board = spec_of(name).board
    squares = board.files * board.ranks
    turned = [view(s, 1, board.files, board.ranks, board.sides) for s in range(squares)]
    codes = position[0]["board"][:squares].astype(int)
    swapped = np.where(
        codes == 0, 0, np.where(codes > COLOUR_STRIDE, codes - COLOUR_STRIDE, codes + COLOUR_STRIDE)
    )
    other = position.copy()
    record = other[0]
    record["board"][turned] = swapped
    for field in ("hands", "checks", "wins_left"):
        record[field] = position[0][field][::-1]
    record["kings"] = [turned[k] if k >= 0 else -1 for k in position[0]["kings"][::-1]]
    record["ep"] = turned[position[0]["ep"]] if position[0]["ep"] >= 0 else -1
    sides = len(spec_of(name).castling)
    rights = int(position[0]["castling"])
    record["castling"] = rights >> sides | (rights & (1 << sides) - 1) << sides
    record["side"] = 1 - position[0]["side"]
    record["ply"] = position[0]["ply"] // 2 * 2 + record["side"]
    return other


def swapped_move(name: str, move: int) -> int:
    """The move that answers to `move` in the colour-swapped position."""
    board = spec_of(name).board

    def turn(square: int) -> int:
        return view(square, 1, board.files, board.ranks, board.sides)

    argument = move_argument(move)
    sides = len(spec_of(name).castling)
    if move_kind(move) == CASTLING:
        argument = (argument + sides) % (2 * sides)
    origin = 0 if move_kind(move) == DROP else turn(move_origin(move))
    return make_move(origin, turn(move_target(move)), move_kind(move), argument)


def mirrored_position(name: str, position: Position) -> Position:
    """Left and right exchanged (variants without castling)."""
    files = spec_of(name).board.files
    squares = files * spec_of(name).board.ranks
    turned = [s - s % files + files - 1 - s % files for s in range(squares)]
    other = position.copy()
    other[0]["board"][turned] = position[0]["board"][:squares]
    other[0]["kings"] = [turned[k] if k >= 0 else -1 for k in position[0]["kings"]]
    return other


def mirrored_move(name: str, move: int) -> int:
    files = spec_of(name).board.files

    def turn(square: int) -> int:
        return square - square % files + files - 1 - square % files

    return make_move(
        turn(move_origin(move)), turn(move_target(move)), move_kind(move), move_argument(move)
    )
