"""Games as text: PGN, JSON lines and lists of moves; and text files that are complete or missing.

PGN, of any variant and in any notation, is the export format of the PGN specification (section 3.2),
with the commands of lichess for scores and clocks: `[%eval 0.35]` from the view of the first player,
`[%clk 0:02:59.8]`. `read/pgn.py` reads it, `read/line_formats.py` the other formats.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, TextIO

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.resolve import opening_group
from variant_ai.core.data.store.store_format import TEXT_FIELDS
from variant_ai.core.errors import DataError, os_reason
from variant_ai.core.rules.interface import Rules, positions_before
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import Notation
from variant_ai.core.search.report import moves_to_mate
from variant_ai.core.system.files import whole

_JSON_FIELDS = (
    "white",
    "black",
    "white_elo",
    "black_elo",
    *TEXT_FIELDS,
    "start_fen",
    "scores",
    "clocks",
    "trains",
    "generation",
    "comments",
    "tags",
)
WIDTH = 80
_NAME = re.compile(r"\w[\w+#=:.-]*")
_NOT_FIRST = re.compile(r" (?=%|\[\w)")
"""Space before a word that must not begin a line."""


def positions_of(rules: Rules, record: GameRecord) -> Iterator[Position]:
    """Positions before the moves of a game. Raises FenError if its start is no position."""
    return positions_before(rules, rules.position(record.start_fen), record.moves)


def move_texts(rules: Rules, notation: Notation, record: GameRecord) -> list[str]:
    """Moves of a game in a notation. Raises FenError if the start is not a position."""
    return notation.write_line(rules, rules.position(record.start_fen), record.moves)


def visit_texts(rules: Rules, notation: Notation, record: GameRecord) -> list[dict[str, int]]:
    """Visits of searches per ply, by move in a notation; empty for a game without visits."""
    return [
        {notation.write(rules, position, move): n for move, n in visited}
        for position, visited in zip(positions_of(rules, record), record.visits or (), strict=False)
    ]


def json_line(rules: Rules, notation: Notation, record: GameRecord) -> str:
    """Return the game as a JSON object without empty fields."""
    values: dict[str, Any] = {"variant": record.variant, "result": record.result}
    for name in _JSON_FIELDS:
        value = getattr(record, name)
        if value is not None and value != "" and value != {}:
            values["fen" if name == "start_fen" else name] = value
    values["notation"] = notation.name
    values["plies"] = record.plies
    values["moves"] = " ".join(move_texts(rules, notation, record))
    if record.visits is not None:
        values["visits"] = visit_texts(rules, notation, record)
    if record.root_values is not None:
        values["root_values"] = [
            None if value is None else round(value, 4) for value in record.root_values
        ]
    return json.dumps(values, ensure_ascii=False) + "\n"


def move_line(rules: Rules, notation: Notation, record: GameRecord) -> str:
    """Return `startpos moves e2e4 e7e5 1-0`, or `fen FEN moves …`: UCI with a result."""
    start = "startpos" if record.start_fen is None else f"fen {record.start_fen}"
    words = [start, "moves", *move_texts(rules, notation, record), record.result]
    return " ".join(words) + "\n"


@contextlib.contextmanager
def text_file(path: Path | None) -> Iterator[TextIO]:
    """Open a UTF-8 file for writing, which gets its name when it is complete; None is stdout.

    Names ending in .gz, .bz2, .xz or .zst are compressed. On an error no file remains, and an older file
    of the name is unchanged; Ctrl-C keeps the text written so far. Raises DataError for errors such
    as a full disk.
    """
    if path is None:
        yield sys.stdout
        return
    interrupted = None
    try:
        with (
            whole(path) as part,
            part.open("wb") as raw,
            _packed(raw, path.suffix) as packed,
            io.TextIOWrapper(packed, "utf-8", "replace", "\n") as text,
        ):
            try:
                yield text
            except KeyboardInterrupt as error:
                interrupted = error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {os_reason(error, path)}; nothing was written"
        ) from error
    if interrupted is not None:
        raise interrupted


def _packed(raw: IO[bytes], suffix: str) -> Any:
    if suffix == ".gz":
        import gzip

        return gzip.GzipFile("", "wb", fileobj=raw, mtime=0)
    if suffix == ".bz2":
        import bz2

        return bz2.BZ2File(raw, "wb")
    if suffix == ".xz":
        import lzma

        return lzma.LZMAFile(raw, "wb")
    if suffix == ".zst":
        import zstandard

        return zstandard.ZstdCompressor(level=12).stream_writer(raw, closefd=False)
    return contextlib.nullcontext(raw)


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
