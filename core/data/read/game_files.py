"""Game files, plain, compressed or in archives, read as streams, member by member.

The kind of a file is recognised by its first bytes, not by its name. Archives are never unpacked to
disk or held in memory; a damaged archive gives everything before the damage, and a `Skip`.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import zstandard

from variant_ai.core.data.read.decoding import decode_name
from variant_ai.core.data.read.game_reader import OnSkip, Skip
from variant_ai.core.errors import DataError

BUFFER = 1 << 16
HEAD = 1 << 13
"""Bytes by which the kind of a file, and its format, are recognised."""
MAX_DEPTH = 4
"""Depth to which archives inside archives are opened."""
XZ_MEMORY = 256 << 20
"""Memory that an .xz file may use, in bytes (`xz -9` needs 65 MiB)."""
ZSTD_WINDOW = 128 << 20
"""Window that a .zst file may use, in bytes (`zstd --long=27`)."""
_SPOOL = 32 << 20
_STEP = 1 << 12
"""Bytes of .xz and .zst decompressed at once: 4 KiB can grow to 128 MiB."""

_MAGIC = (
    (b"\x1f\x8b", "gz"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
    (b"\x04\x22\x4d\x18", "lz4"),
)
UNSUPPORTED = ("7z", "rar", "lz4")
PACKED = (".gz", ".bz2", ".xz", ".zst")
"""Suffixes of files that hold one compressed file."""
READABLE = "plain, .gz, .bz2, .xz, .zst, .zip and .tar"


class _Stream(io.RawIOBase):
    """Stream to read from."""

    def readable(self) -> bool:
        return True


class _Guard(_Stream):
    """Stream that ends at the first error of reading, which is kept in `problem`."""

    def __init__(self, inner: IO[bytes]) -> None:
        # read1 returns the available bytes; read would fail at the damage and lose those before it
        self._read: Callable[[int], bytes] = getattr(inner, "read1", inner.read)
        self.problem = ""

    def readinto(self, buffer: Any) -> int:
        filled = 0
        # The kind of a file shows in its first bytes, and one read may return few of them.
        while not self.problem and filled < min(len(buffer), HEAD):
            try:
                data = self._read(len(buffer) - filled)
            except READ_ERRORS as error:
                self.problem = _message(error)
                break
            if not data:
                break
            buffer[filled : filled + len(data)] = data
            filled += len(data)
        return filled


class Source(NamedTuple):
    """Stream of bytes that may hold games."""

    name: str
    """`games.pgn.gz`, or `archive.tar.xz!folder/game.pgn`."""
    stream: io.BufferedReader
    """Ends early if the file is damaged."""
    guard: _Guard

    @property
    def damaged(self) -> bool:
        """True if reading has reached damaged data."""
        return bool(self.guard.problem)


class NamedStream(NamedTuple):
    """Stream that is not a file, with a name."""

    name: str
    stream: IO[bytes] | io.RawIOBase


class _Counted(io.FileIO):
    """File that reports the number of bytes read, for the progress bar."""

    def __init__(self, path: str, on_bytes: Callable[[int], None]) -> None:
        super().__init__(path)
        self.on_bytes = on_bytes

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size) or b""
        self.on_bytes(len(data))
        return data


class _Unpacked(_Stream):
    """Decompressed .xz or .zst, which fails if the file ends inside a stream. `lzma.open` has no limit
    on memory, and zstandard's reader notices no missing end."""

    def __init__(self, inner: IO[bytes], make_decoder: Callable[[], Any], padding: bytes) -> None:
        """padding: what may stand between and after the streams of a file."""
        self.inner, self.make_decoder, self.padding = inner, make_decoder, padding
        self.decoder = make_decoder()
        self.pending = memoryview(b"")

    def readinto(self, buffer: Any) -> int:
        while not self.pending:
            if self.decoder.eof:
                packed = self.decoder.unused_data.lstrip(self.padding)
                while not packed:
                    if not (part := self.inner.read(_STEP)):
                        return 0
                    packed = part.lstrip(self.padding)
                self.decoder = self.make_decoder()
            elif not (packed := self.inner.read(_STEP)):
                raise EOFError("compressed file ended before its end marker")
            self.pending = memoryview(self.decoder.decompress(packed))
        size = min(len(buffer), len(self.pending))
        buffer[:size] = self.pending[:size]
        self.pending = self.pending[size:]
        return size


READ_ERRORS = (
    EOFError,
    OSError,
    RuntimeError,  # an encrypted member
    NotImplementedError,  # a compression method that zipfile does not support
    lzma.LZMAError,
    zlib.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zstandard.ZstdError,
)


def _message(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def open_sources(
    paths: Iterable[str | Path | NamedStream],
    on_skip: OnSkip,
    on_bytes: Callable[[int], None] = lambda size: None,
) -> Iterator[Source]:
    """Yield every stream in files, folders (in order of names), archives and streams.

    `-` is standard input. Each stream must be read before the next one is requested. `on_skip` is
    called for everything that cannot be read, `on_bytes` with the number of bytes read.
    """
    for path in paths:
        if isinstance(path, NamedStream):
            yield from _open(path.name, path.stream, on_skip, 0)
            continue
        if str(path) == "-":
            yield from _open("-", sys.stdin.buffer, on_skip, 0)
            continue
        for file in _walk(str(path)):
            try:
                raw = _Counted(file, on_bytes)
            except OSError as error:
                on_skip(Skip("cannot be opened", file, detail=error.strerror or str(error)))
                continue
            with raw:
                yield from _open(file, raw, on_skip, 0)


def unpacked_suffix(path: Path) -> str:
    """Suffix of a file in lower case, without that of compression: `.epd` of `lines.epd.xz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in PACKED:
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


def read_bytes(path: Path) -> bytes:
    """Return the content of one file, decompressed.

    Raises DataError if it is damaged, OSError if it cannot be opened.
    """
    if not path.is_file():
        return path.read_bytes()
    problems: list[Skip] = []
    parts = []
    for source in open_sources([path], problems.append):
        parts.append(source.stream.read())
        if source.damaged:
            raise DataError(f"{path}: {source.guard.problem}")
    if problems:
        raise DataError(f"{path}: {problems[0].detail or problems[0].reason}")
    return b"".join(parts)


def total_bytes(paths: Iterable[str | Path]) -> int | None:
    """Size of the files of `open_sources`, None if standard input is among them."""
    total = 0
    for path in map(str, paths):
        if path == "-":
            return None
        for file in _walk(path):
            if os.path.isfile(file):
                total += os.path.getsize(file)
    return total


def _walk(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in sorted(files):
            yield os.path.join(folder, name)


def _kind(head: bytes) -> str:
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    # Skippable frame, which pzstd writes before each frame (RFC 8878, section 3.1.2).
    if head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
        return "zst"
    if head[257:262] == b"ustar":
        return "tar"
    return ""


def _open(
    name: str, raw: IO[bytes] | io.RawIOBase, on_skip: OnSkip, depth: int
) -> Iterator[Source]:
    """Yield the stream itself, or the members if it is an archive."""
    guard = _Guard(cast("IO[bytes]", raw))
    stream: io.BufferedReader = io.BufferedReader(guard, BUFFER)
    kind = _kind(stream.peek(512))
    if kind and depth == MAX_DEPTH:
        on_skip(
            Skip(
                "archives too deep", name, detail=f"archives are nested more than {MAX_DEPTH} deep"
            )
        )
        return
    if kind in UNSUPPORTED:
        on_skip(
            Skip(
                "archive not read",
                name,
                detail=f".{kind} files are not supported; supported: {READABLE}",
            )
        )
        return
    try:
        if kind == "zip":
            yield from _zip(name, raw, stream, on_skip, depth)
        elif kind == "tar":
            yield from _tar(name, stream, on_skip, depth)
        elif kind:
            yield from _open(name, _decompressed(kind, stream), on_skip, depth + 1)
        else:
            yield Source(name, stream, guard)
    except READ_ERRORS as error:
        on_skip(Skip("damaged file", name, detail=_message(error)))
    if guard.problem:
        on_skip(Skip("damaged file", name, detail=guard.problem))


def _decompressed(kind: str, stream: io.BufferedReader) -> IO[bytes]:
    if kind == "gz":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
    if kind == "bz2":
        return bz2.BZ2File(stream)
    make: Callable[[], Any]
    if kind == "xz":
        make, padding = partial(lzma.LZMADecompressor, memlimit=XZ_MEMORY), b"\x00"
    else:
        make, padding = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj, b""
    return cast("IO[bytes]", _Unpacked(stream, make, padding))


def _tar(name: str, stream: io.BufferedReader, on_skip: OnSkip, depth: int) -> Iterator[Source]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        while (member := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]  # or memory grows with their number
            if not member.isfile():
                continue
            content = archive.extractfile(member)
            if content is not None:
                inner = f"{name}!{_member_name(member.name)}"
                yield from _open(inner, content, on_skip, depth + 1)


def _zip(
    name: str,
    raw: IO[bytes] | io.RawIOBase,
    stream: io.BufferedReader,
    on_skip: OnSkip,
    depth: int,
) -> Iterator[Source]:
    """Yield the members of a .zip. Its list of members is at its end, so a stream without `seek` is
    copied to a temporary file."""
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL) as spool:
        if depth == 0 and raw.seekable():
            raw.seek(0)
            whole = cast("IO[bytes]", raw)
        else:
            shutil.copyfileobj(stream, spool)
            whole = cast("IO[bytes]", spool)
        with zipfile.ZipFile(whole) as archive:
            for info in archive.infolist():
                if info.is_dir():
                    continue
                known = info.flag_bits & 0x800
                inner = f"{name}!{info.filename if known else _zip_name(info.filename)}"
                try:
                    content = archive.open(info)
                except READ_ERRORS as error:
                    on_skip(Skip("damaged file", inner, detail=_message(error)))
                    continue
                with content:
                    yield from _open(inner, content, on_skip, depth + 1)


def _member_name(name: str) -> str:
    """Name of a tar member; if it is not UTF-8, tarfile returns its bytes as surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return decode_name(name.encode("utf-8", "surrogateescape"))
    return name


def _zip_name(name: str) -> str:
    """Name of a zip member without the UTF-8 flag, which zipfile decodes as code page 437."""
    return name if name.isascii() else decode_name(name.encode("cp437", "replace"))
