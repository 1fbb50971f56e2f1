"""PGN of game records, of any variant and in any notation; read by `pgn.py`.

Export format of the PGN specification (section 3.2), with the commands of lichess for scores and
clocks: `[%eval 0.35]` from the view of the first player, `[%clk 0:02:59.8]`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.resolve import opening_group
from variant_ai.core.data.write.text_output import positions_of
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import Notation
from variant_ai.core.search.report import moves_to_mate

WIDTH = 80

_NAME = re.compile(r"\w[\w+#=:.-]*")
_NOT_FIRST = re.compile(r" (?=%|\[\w)")
"""Space before a word that must not begin a line."""


class Remark(NamedTuple):
    """Annotation of a move."""

    nag: int
    """Numeric annotation glyph (PGN specification, section 10)."""
    line: tuple[int, ...]
    """Alternative moves, written as a variation."""


_NO_REMARKS: Mapping[int, Remark] = {}


def pgn_text(
    rules: Rules,
    notation: Notation,
    record: GameRecord,
    remarks: Mapping[int, Remark] = _NO_REMARKS,
) -> str:
    """Return a game with its headers, ending in an empty line. `remarks` are by ply from 0. Raises
    FenError if the start is not a position of the variant."""
    headers = "".join(
        f'[{name} "{_escaped(value)}"]\n'
        for name, value in _headers(rules.spec.players, notation, record)
    )
    return f"{headers}\n{_wrapped(_words(rules, notation, record, remarks))}\n\n"


def _headers(
    players: tuple[str, str], notation: Notation, record: GameRecord
) -> Iterator[tuple[str, str]]:
    yield "Event", record.event or "?"
    yield "Site", record.site or "?"
    yield "Date", record.date or "????.??.??"
    yield "Round", record.round or "?"
    first, second = players
    yield first, record.white or "?"
    yield second, record.black or "?"
    yield "Result", record.result
    optional = (
        (f"{first}Elo", record.white_elo),
        (f"{second}Elo", record.black_elo),
        ("ECO", record.eco),
        ("TimeControl", record.time_control),
        ("Termination", record.termination),
        ("Group", record.group if record.group != opening_group(record) else ""),
        ("Variant", record.variant),
        ("Format", "" if notation.name == "san" else notation.name),
    )
    for name, value in optional:
        if value:
            yield name, str(value)
    for name, value in record.tags.items():
        if _NAME.fullmatch(name):
            yield name, value
    if record.start_fen is not None:
        yield "SetUp", "1"
        yield "FEN", record.start_fen


def _escaped(value: str) -> str:
    return " ".join(value.split()).replace("\\", "\\\\").replace('"', '\\"')


def _words(
    rules: Rules, notation: Notation, record: GameRecord, remarks: Mapping[int, Remark]
) -> Iterator[str]:
    """Yield move numbers, moves, comments, variations and the result, to be joined by spaces."""
    numbered = True
    """True if the move of the second player needs a number too."""
    yield from _comment(record.comments.get(-1, ""))
    moves = zip(positions_of(rules, record), record.moves, strict=True)
    for index, (position, move) in enumerate(moves):
        ply = int(position[0]["ply"])
        yield from _number(ply, numbered)
        yield notation.write(rules, position, move)
        remark = remarks.get(index)
        if remark is not None:
            yield f"${remark.nag}"
        comment = _comment(_remarks(record, index, ply % 2 == 1))
        yield from comment
        numbered = bool(comment) or remark is not None
        if remark is not None:
            yield from _variation(rules, notation, position, remark.line)
    yield record.result


def _number(ply: int, always: bool) -> list[str]:
    """The move's number, which one of the second player has only if `always`."""
    number, second = divmod(ply, 2)
    if not second:
        return [f"{number + 1}."]
    return [f"{number + 1}..."] if always else []


def _variation(
    rules: Rules, notation: Notation, position: Position, line: tuple[int, ...]
) -> Iterator[str]:
    """Words of `(12... Nf6 13. e5)`, from the position before the move of the game."""
    first = int(position[0]["ply"])
    words: list[str] = []
    for ply, text in enumerate(notation.write_line(rules, position, line), first):
        words += [*_number(ply, ply == first), text]
    words[0] = f"({words[0]}"
    words[-1] += ")"
    yield from words


def _remarks(record: GameRecord, index: int, second: bool) -> str:
    """Commands and comment of a move."""
    parts = []
    score = record.scores[index] if record.scores else None
    if score is not None:
        parts.append(f"[%eval {_eval(-score if second else score)}]")
    clock = record.clocks[index] if record.clocks else None
    if clock is not None:
        parts.append(f"[%clk {_clock(clock)}]")
    parts.append(record.comments.get(index, ""))
    return " ".join(filter(None, parts))


def _eval(score: int) -> str:
    mate = moves_to_mate(score)
    return f"{score / 100:.2f}" if mate is None else f"#{mate}"


def _clock(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    fraction = f".{rest:03}".rstrip("0").rstrip(".")
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def _comment(text: str) -> list[str]:
    """Words of a comment with its braces; braces inside are replaced."""
    words = text.replace("{", "(").replace("}", ")").split()
    if not words:
        return []
    words[0] = "{" + words[0]
    words[-1] += "}"
    return words


def _wrapped(words: Iterator[str]) -> str:
    """Lines of words, none of which begins with % or like a header."""
    text = _NOT_FIRST.sub("\0", " ".join(words))
    lines = textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")
