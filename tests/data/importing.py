"""Small games of our own for the tests of importing, and what they are read with."""

from __future__ import annotations

import io
from functools import cache

from variant_ai.cli.common.options import make_resolver
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.game_reader import GameReader, RawGame, Skip
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import Notation, uci
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.plugins import registry

HOUSE = """\
[Event "Club evening"]
[White "Ada"]
[Black "Bob"]
[Result "0-1"]
[WhiteElo "2100"]
[BlackElo "2050"]
[Date "2016.05.01"]

1. e4 d5 2. exd5 Qxd5 3. Nc3 Qa5 4. P@d5 { [%eval 0.50] [%clk 0:02:59] } P@e4 5. Nxe4 f6
6. @d6 exd6 7. Nxd6+ Bxd6 8. Nf3 N@d3+ 9. cxd3 P@h6 {White resigns} 0-1
"""
HOUSE_UCI = (
    "e2e4 d7d5 e4d5 d8d5 b1c3 d5a5 P@d5 P@e4 c3e4 f7f6 P@d6 e7d6 e4d6 f8d6 g1f3 N@d3 c2d3 P@h6"
)
RED = "炮二平五 馬８進７ 馬二進三 車９平８ 車一平二 馬２進３ 兵七進一 卒７進１".split()
RED_UCI = "h3e3 h10g8 h1g3 i10h10 i1h1 b10c8 c4c5 g7g6"
RED_UCCI = "h2e2 h9g7 h0g2 i9h9 i0h0 b9c7 c3c4 g6g5"
RED_WXF = "C2=5 H8+7 H2+3 R9=8 R1=2 H2+3 P7+1 P7+1"
RED_ICCS = "H2-E2 H9-G7 H0-G2 I9-H9 I0-H0 B9-C7 C3-C4 G6-G5"


@cache
def spec(variant: str) -> VariantSpec:
    return load_spec(builtin_specs()[variant])


@cache
def rules(variant: str) -> Rules:
    return make_rules(spec(variant))


@cache
def _notations(variant: str) -> dict[str, Notation]:
    return registry().notations(spec(variant))


def notation(variant: str, name: str) -> Notation:
    return _notations(variant)[name]


def resolver(variant: str) -> Resolver:
    return Resolver(rules(variant), tuple(_notations(variant).values()))


def fresh_resolver() -> Resolver:
    """Picklable by name, for worker processes."""
    return make_resolver(spec("crazyhouse"))


def reader(variant: str, name: str) -> GameReader:
    return registry().readers(spec(variant))[name]


def raw_games(reader: GameReader, text: str | bytes) -> list[RawGame]:
    data = text if isinstance(text, bytes) else text.encode()
    return list(reader.read(io.BufferedReader(io.BytesIO(data)), "test"))


def resolved(variant: str, name: str, text: str | bytes) -> list[GameRecord | Skip]:
    made = resolver(variant)
    return [made.resolve(raw) for raw in raw_games(reader(variant, name), text)]


def one(variant: str, name: str, text: str | bytes) -> GameRecord:
    """The only game of a text, which must be readable."""
    (game,) = resolved(variant, name, text)
    assert isinstance(game, GameRecord), game
    return game


def one_skip(variant: str, name: str, text: str | bytes) -> Skip:
    (skip,) = resolved(variant, name, text)
    assert isinstance(skip, Skip), skip
    return skip


def moves(game: GameRecord) -> str:
    """In UCI."""
    made = rules(game.variant)
    return " ".join(uci(made.types, made.spec.board.files, move) for move in game.moves)
