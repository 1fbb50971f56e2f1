"""Where a command left a store that was killed or interrupted, so that the same command goes on.

A command is known by a digest of what decides its games, kept in its RUN block. Each of its shards
carries a mark (column `mark` of NOTE): what the command wants to know when it goes on. The mark is
written with the shard in one piece, so the two are never at odds. An END of an interrupted run
carries one as well. A run without END, or with such an END, can be taken up again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from variant_ai.core.data.store import store_format as form
from variant_ai.core.data.store.blocks import read_body, scan
from variant_ai.core.data.store.columns import ColumnError, ColumnReader, decode_json
from variant_ai.core.errors import DataError


@dataclass(frozen=True, slots=True)
class Halt:
    """Where a command was when it ended early."""

    mark: dict[str, Any]
    end: int
    """Byte behind its last shard. Where the command's run is the last one it goes on there, else at
    the end of the store."""
    blocks: int
    """Blocks before that byte."""
    is_last: bool
    """True if the command's run is the last one of the store."""
    is_alone: bool
    """True if the store has no other command's games."""


def find_halt(path: Path, command: str) -> Halt | None:
    """Where the command left the store; None where it did not begin it, came to its end, or has not
    finished a shard. A store that cannot be read has none: whoever opens it says why."""
    try:
        with path.open("rb") as file:
            blocks = scan(file, str(path)).blocks
            mark: dict[str, Any] | None = None
            last = None
            """The last block of the command that is to stay."""
            current, is_alone = "", True
            for block in blocks[1:]:
                if block.kind == form.RUN:
                    said = decode_json(read_body(file, block, str(path)))
                    current = said.get("command", "")
                    is_alone &= current == command
                    if current == command:
                        mark, last = said.get("mark"), block
                elif current == command and block.kind == form.NOTE:
                    last, mark = block, None
                elif current == command and block.kind == form.END:
                    said = decode_json(read_body(file, block, str(path)))
                    mark = said.get("mark") if said.get("interrupted") else None
                    if mark is None:
                        last = None
            if last is None:
                return None
            if mark is None and last.kind == form.NOTE:
                columns = ColumnReader(read_body(file, last, str(path)))
                mark = decode_json(bytes(columns.bytes("mark")))
    except (OSError, DataError, ColumnError):
        return None
    if mark is None:
        return None
    return Halt(mark, last.end, last.number + 1, current == command, is_alone)
