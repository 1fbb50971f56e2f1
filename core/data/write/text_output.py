"""Games as JSON lines and lists of moves, and text files that are complete or missing.

These formats are read by `line_formats.py`. PGN has a writer of its own (`pgn_writer.py`).
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TextIO

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.store_format import TEXT_FIELDS
from variant_ai.core.errors import DataError, os_reason
from variant_ai.core.rules.interface import Rules, positions_before
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import Notation
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
