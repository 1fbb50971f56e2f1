"""Games as text: JSON lines and move lists, and files that appear whole or not at all.

PGN has a writer of its own (`pgn_writer.py`). What is written here is read back by `jsonl.py` and
`move_lists.py`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TextIO

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.store_format import partial_path
from variant_ai.core.errors import DataError, os_reason
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import Notation

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
"""Endings of file names that are written compressed."""

_JSON_FIELDS = (
    ("white", "white"),
    ("black", "black"),
    ("white_elo", "white_elo"),
    ("black_elo", "black_elo"),
    ("date", "date"),
    ("event", "event"),
    ("site", "site"),
    ("round", "round"),
    ("eco", "eco"),
    ("time_control", "time_control"),
    ("termination", "termination"),
    ("group", "group"),
    ("source", "source"),
    ("start_fen", "fen"),
    ("scores", "scores"),
    ("clocks", "clocks"),
    ("comments", "comments"),
    ("tags", "tags"),
)


def move_texts(rules: Rules, notation: Notation, record: GameRecord) -> list[str]:
    """The moves of a game in a notation. Raises FenError where the start is no position."""
    position = rules.position(record.start_fen)
    texts = []
    for move in record.moves:
        texts.append(notation.write(rules, position, move))
        position = rules.play(position, move)
    return texts


def visit_texts(rules: Rules, notation: Notation, record: GameRecord) -> list[dict[str, int]]:
    """Visits of searches, per ply, by the moves' texts in a notation; empty for a game without."""
    position = rules.position(record.start_fen)
    texts = []
    for move, visited in zip(record.moves, record.visits or (), strict=False):
        texts.append({notation.write(rules, position, other): n for other, n in visited})
        position = rules.play(position, move)
    return texts


def json_line(rules: Rules, notation: Notation, record: GameRecord) -> str:
    """One JSON object, without what the game does not say."""
    said: dict[str, Any] = {"variant": record.variant, "result": record.result}
    for name, key in _JSON_FIELDS:
        value = getattr(record, name)
        if value is not None and value != "" and value != {}:
            said[key] = value
    said["notation"] = notation.name
    said["plies"] = record.plies
    said["moves"] = " ".join(move_texts(rules, notation, record))
    if record.visits is not None:
        said["visits"] = visit_texts(rules, notation, record)
    return json.dumps(said, ensure_ascii=False) + "\n"


def move_line(rules: Rules, notation: Notation, record: GameRecord) -> str:
    """`startpos moves e2e4 e7e5 1-0`, or `fen FEN moves …`: UCI's words with a result behind."""
    start = "startpos" if record.start_fen is None else f"fen {record.start_fen}"
    words = [start, "moves", *move_texts(rules, notation, record), record.result]
    return " ".join(words) + "\n"


@contextlib.contextmanager
def text_file(path: Path | None) -> Iterator[TextIO]:
    """A UTF-8 file to write that gets its name when it is whole; None is stdout.

    Names ending in one of `COMPRESSED` are compressed. On any error nothing is left, and an older
    file of the name stays as it was; Ctrl-C keeps what was written. Raises DataError on a full
    disk and the like.
    """
    if path is None:
        yield sys.stdout
        return
    partial = partial_path(path)
    try:
        with contextlib.ExitStack() as stack:
            raw: IO[bytes] = stack.enter_context(partial.open("wb"))
            packed = stack.enter_context(_packed(raw, path.suffix))
            text = stack.enter_context(io.TextIOWrapper(packed, "utf-8", "replace", "\n"))
            try:
                yield text
            except KeyboardInterrupt:
                stack.close()
                os.replace(partial, path)
                raise
        os.replace(partial, path)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise DataError(
            f"cannot write {path}: {os_reason(error, path)}; nothing was written"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


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
