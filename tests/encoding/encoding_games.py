"""Positions for the encoders' tests: random games, and games from odd positions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

from variant_ai.core.encoding import Encoder, Head, MoveCodec
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import (
    CASTLING,
    DROP,
    EN_PASSANT,
    PROMOTION,
    Position,
    move_kind,
)
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec

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
