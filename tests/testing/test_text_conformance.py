"""Notations and readers that break a promise are found."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest

from variant_ai.core.data.read.decoding import TextLines
from variant_ai.core.data.read.game_reader import GameReader, RawGame, set_moves
from variant_ai.core.data.read.line_formats import JsonlReader, MoveListReader, TableReader
from variant_ai.core.data.read.pgn import PgnReader
from variant_ai.core.errors import MoveError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import Notation, UciNotation
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.testing import check_notation, check_reader

RULES = make_rules(load_spec(builtin_specs()["dobutsu"]))
MOVES = "b2b3 c4c3 b1b2".split()


# --- notations -----------------------------------------------------------------------------------


class Targets(UciNotation):
    """Writes only where a move ends, which is not enough."""

    def write(self, rules: Rules, position: Position, move: int) -> str:
        return super().write(rules, position, move)[-2:]


class Spaced(UciNotation):
    def write(self, rules: Rules, position: Position, move: int) -> str:
        return " to ".join(super().write(rules, position, move).partition("@")[::2])


class Trusting(UciNotation):
    """Fails at words that are not its own."""

    def read(self, rules: Rules, position: Position, text: str) -> int:
        return {"": 0}[text] if text == "?" else super().read(rules, position, text)


class Silent(UciNotation):
    def read(self, rules: Rules, position: Position, text: str) -> int:
        try:
            return super().read(rules, position, text)
        except MoveError:
            raise MoveError("no") from None


class Guessing(UciNotation):
    """Takes any word for some move."""

    def read(self, rules: Rules, position: Position, text: str) -> int:
        try:
            return super().read(rules, position, text)
        except MoveError:
            return 12345


@pytest.mark.parametrize(
    ("notation", "wrong"),
    [
        (Targets, "is not read|writes '.*' for .* and for"),
        (Spaced, "is not one word"),
        (Trusting, r"'\?' raises KeyError, not MoveError"),
        (Silent, "does not show it: no"),
        (Guessing, "is read as an illegal move"),
    ],
)
def test_a_wrong_notation_is_found(notation: type[Notation], wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        check_notation(notation, RULES)


# --- readers -------------------------------------------------------------------------------------

PGN = b"""[Event "one"]
[Result "*"]

1. Cb3 Cc3 *

[Event "two"]

1. Cb3 *
"""
JSON_LINES = "\n".join(json.dumps({"moves": MOVES[:n], "result": "*"}) for n in (3, 2)).encode()
TABLE = b"white;result;moves\nA;1-0;b2b3 c4c3\nB;0-1;b2b3\n"
LISTS = b"# moves\nb2b3 b3b4\nposition startpos moves b2b3\n"


@pytest.mark.parametrize(
    ("reader", "data"),
    [(PgnReader, PGN), (JsonlReader, JSON_LINES), (TableReader, TABLE), (MoveListReader, LISTS)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_readers_of_the_core(reader: type[GameReader], data: bytes) -> None:
    check_reader(reader, data, games=2)


class Lines(GameReader):
    """A line of moves for each game, after a first line."""

    name = "lines"
    extensions = (".lines",)

    def sniff(self, head: bytes) -> bool:
        return head.startswith(b"LINES")

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        for number, line in TextLines(stream):
            if number > 1 and line.strip():
                game = RawGame(source, number - 1, number)
                set_moves(game, line.split())
                yield game


DATA = f"LINES\n{' '.join(MOVES)}\n{MOVES[0]}\n".encode()


class Strict(Lines):
    """Fails at bytes that are not UTF-8."""

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        for number, line in enumerate(stream.read().decode().splitlines(), 1):
            if number > 1:
                game = RawGame(source, number - 1, number)
                set_moves(game, line.split())
                yield game


class Shared(Lines):
    """Counts the games of all files."""

    count = 0

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        for game in super().read(stream, source):
            self.count += 1
            game.number = self.count
            yield game


class Greedy(Lines):
    def sniff(self, head: bytes) -> bool:
        return True


class Capital(Lines):
    extensions = ("LINES",)


def test_games_are_returned_and_must_be_legal() -> None:
    with pytest.raises(AssertionError, match="2 games were read, the file has 3"):
        check_reader(Lines, DATA, games=3, rules=RULES)
    illegal = f"LINES\n{MOVES[0]} {MOVES[0]}\n".encode()
    check_reader(Lines, illegal, games=1)
    with pytest.raises(AssertionError, match=r"game 1: illegal uci move 'b2b3'"):
        check_reader(Lines, illegal, games=1, rules=RULES)


@pytest.mark.parametrize(
    ("reader", "wrong"),
    [
        (Strict, "raises UnicodeDecodeError"),
        (Shared, "two files read at once give other games"),
        (Greedy, "sniff gives True for"),
        (Capital, "extension 'LINES'; accepted: lower case with its dot"),
    ],
)
def test_a_wrong_reader_is_found(reader: type[GameReader], wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        check_reader(reader, DATA, games=2)
