"""Container of a game store: a file of checksummed blocks that only grows at its end.

Every byte of the file is in the head or body of a block, and each of these has a digest, so that
every flipped byte is noticed and its place can be reported. An incomplete block at the end was left
by a killed writer; it is recognised by its length and is not an error.

    block   64 bytes of head, then the body
     0   4  mark, 89 56 41 47 ("\\x89VAG": no text file begins so)
     4   4  kind, four letters of ASCII
     8   4  number: index of the block in the file, from 0
    12   4  shard the block belongs to, from 0; NO_SHARD for others
    16   4  games in the shard
    20   4  plies in the shard
    24   8  bytes of the body
    32  16  BLAKE2b of the body
    48  16  BLAKE2b of bytes 0 to 47 of the head

Numbers are little-endian. The kinds of blocks and their contents are defined in `store_format.py`;
`docs/store-format.md` shows a whole file.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from variant_ai.core.errors import DataError

MARK = b"\x89VAG"
NO_SHARD = 0xFFFFFFFF
HEAD_BYTES = 64
DIGEST_BYTES = 16
_HEAD = struct.Struct("<4s4sIIIIQ")
MAX_BODY_BYTES = 1 << 31
"""Limit of the length of a body; a head with a larger length is damaged."""


def digest(data: bytes) -> bytes:
    """BLAKE2b digest of 16 bytes."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


class Block(NamedTuple):
    """Position of a block, and the fields of its head."""

    kind: str
    number: int
    shard: int
    games: int
    plies: int
    offset: int
    """Position of the head, in bytes from the beginning of the file."""
    length: int
    """Length of the body in bytes."""
    digest: bytes

    @property
    def body_offset(self) -> int:
        return self.offset + HEAD_BYTES

    @property
    def end(self) -> int:
        return self.body_offset + self.length

    @property
    def location(self) -> str:
        """Text for messages: `shard 3 (block 12, FACT) at offset 4711`."""
        block = f"block {self.number}, {self.kind}"
        where = block if self.shard == NO_SHARD else f"shard {self.shard} ({block})"
        return f"{where} at offset {self.offset}"


def pack(
    kind: str, number: int, body: bytes, shard: int = NO_SHARD, games: int = 0, plies: int = 0
) -> bytes:
    """Return head and body of a block."""
    head = _HEAD.pack(MARK, kind.encode("ascii"), number, shard, games, plies, len(body))
    head += digest(body)
    return head + digest(head) + body


class Scan(NamedTuple):
    """Blocks of a file, and the end of the last complete one."""

    blocks: tuple[Block, ...]
    end: int
    size: int


def scan(file: BinaryIO | io.FileIO, name: str) -> Scan:
    """Read all heads, but not the bodies.

    Raises DataError if a head is damaged or the file is not a store. A block that runs past the end
    of the file, or zeros up to its end (left by a power failure), end the scan without error.
    """
    size = file.seek(0, os.SEEK_END)
    blocks: list[Block] = []
    offset = 0
    while offset < size:
        file.seek(offset)
        head = file.read(HEAD_BYTES)
        if offset == 0 and head[: len(MARK)] != MARK[: len(head)]:
            raise DataError(
                f"{name} is not a game store, or its first bytes (shard 0, offset 0) are damaged: "
                f"it begins with {head[:4]!r}, a store with {MARK!r}"
            )
        if len(head) < HEAD_BYTES:
            break
        block = _parse(head, offset, len(blocks), name) if any(head) else None
        if block is None:
            if _zeros_from(file, offset):
                break
            raise _damaged_head(name, offset, blocks)
        if block.end > size:
            break
        blocks.append(block)
        offset = block.end
    return Scan(tuple(blocks), offset, size)


def _parse(head: bytes, offset: int, number: int, name: str) -> Block | None:
    """Parse a head; None if it is damaged."""
    if head[48:] != digest(head[:48]):
        return None
    mark, kind, own_number, shard, games, plies, length = _HEAD.unpack(head[: _HEAD.size])
    if mark != MARK or length > MAX_BODY_BYTES:
        return None
    if own_number != number:
        raise DataError(
            f"{name}: the block at offset {offset} has number {own_number} instead of {number}: part "
            "of the file is missing or repeated"
        )
    return Block(
        kind.decode("ascii", "replace"), number, shard, games, plies, offset, length, head[32:48]
    )


def _damaged_head(name: str, offset: int, blocks: list[Block]) -> DataError:
    shards = len({block.shard for block in blocks} - {NO_SHARD})
    after = f"after {shards} good shards" if shards else "before the first shard"
    last = blocks[-1].shard if blocks and blocks[-1].shard != NO_SHARD else 0
    return DataError(
        f"{name} is damaged at offset {offset}: the head of block {len(blocks)} (shard {last} or the "
        f"next one, {after}) does not match its checksum"
    )


def _zeros_from(file: BinaryIO | io.FileIO, offset: int) -> bool:
    file.seek(offset)
    while chunk := file.read(1 << 20):
        if any(chunk):
            return False
    return True


def read_body(file: BinaryIO | io.FileIO, block: Block, name: str) -> bytes:
    """Read the body of a block. Raises DataError if it does not match its digest."""
    file.seek(block.body_offset)
    body = file.read(block.length)
    if len(body) != block.length or digest(body) != block.digest:
        raise DataError(
            f"{name} is damaged in {block.location}: its body does not match its checksum"
        )
    return body


@contextlib.contextmanager
def write_lock(file: BinaryIO | io.FileIO, path: Path) -> Iterator[None]:
    """Lock the file for writing. Raises DataError if another process holds the lock.

    Does nothing if the system (Windows) or the file system has no locks.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(f"{path} is being written by another process") from None
    except OSError:
        yield
        return
    try:
        yield
    finally:
        if not file.closed:
            fcntl.flock(file, fcntl.LOCK_UN)


def is_store(path: Path) -> bool:
    """Return True if a file begins as a game store does, False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(MARK)) == MARK
    except OSError:
        return False
