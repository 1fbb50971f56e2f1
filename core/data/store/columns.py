"""Columns of games as bytes: numpy arrays and texts, compressed with zstd.

    bytes of a body (before compression)
      u32   length of the directory
      ...   directory, JSON: [[name, dtype, count], ...] in the order of the data
      ...   the data of each column, one after the other

An integer column is written in the narrowest type that fits, with its bytes regrouped (all lowest
bytes first, and so on), which zstd compresses better. Optional numbers are shifted by one, 0 is
None. A text column is a JSON list of its distinct texts in order of first use, and a number for each
row: 0 for the next new text, else 1 + its index in the list, so that a column of distinct texts
costs only the texts.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from variant_ai.core.system.text_tables import counted

LEVEL = 12
"""zstd level: 19 makes move columns 0.1 % smaller in five times the time."""
MAX_BYTES = 1 << 31
"""Limit of an uncompressed body, so that a damaged length cannot use up memory."""

Longs = NDArray[np.int64]
Floats = NDArray[np.float32]
"""Arrays, most of them with one dimension."""
Texts = tuple[list[str], NDArray[np.int32]]
"""Distinct texts, and the index of the text of each row, int32 [rows]."""
_INTEGERS = ("u1", "i1", "u2", "i2", "u4", "i4", "i8")


class Columns:
    """Writer of named columns; `to_bytes` packs them in the order in which they were added."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, str, int, bytes]] = []

    def add_integers(self, name: str, values: Iterable[int] | NDArray[Any]) -> None:
        """Add a column of signed integers, up to 64 bits."""
        array = np.asarray(values if isinstance(values, np.ndarray) else list(values), np.int64)
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        dtype = next(t for t in _INTEGERS if np.iinfo(t).min <= low and high <= np.iinfo(t).max)
        narrow = array.astype(f"<{dtype}")
        grouped = narrow.view(np.uint8).reshape(array.size, narrow.itemsize).T
        self._parts.append((name, dtype, array.size, grouped.tobytes()))

    def add_optional(self, name: str, values: Iterable[int | None]) -> None:
        """Add a column of integers and Nones; read it with `optional`."""
        self.add_integers(name, (0 if v is None else v + 1 if v >= 0 else v for v in values))

    def add_bytes(self, name: str, data: bytes) -> None:
        """Add a column of bytes."""
        self._parts.append((name, "raw", len(data), data))

    def add_texts(self, name: str, values: Sequence[str]) -> None:
        """Add a text column. Lone surrogates, which undecodable names may have, are kept."""
        index: dict[str, int] = {}
        numbers = []
        for value in values:
            known = index.get(value)
            if known is None:
                index[value] = len(index)
                numbers.append(0)
            else:
                numbers.append(known + 1)
        table = json.dumps(list(index), ensure_ascii=False).encode("utf-8", "surrogatepass")
        self.add_bytes(f"{name}:texts", table)
        self.add_integers(f"{name}:rows", numbers)

    def to_bytes(self) -> bytes:
        """Return the compressed columns."""
        directory = json.dumps([[name, dtype, count] for name, dtype, count, _ in self._parts])
        head = directory.encode()
        raw = b"".join([struct.pack("<I", len(head)), head, *(part[3] for part in self._parts)])
        return zstandard.ZstdCompressor(level=LEVEL, write_content_size=True).compress(raw)


def unshifted(stored: Longs) -> Longs:
    """Return the numbers of a column of `Columns.add_optional`, in which 0 stands for None."""
    return np.where(stored > 0, stored - 1, stored)


def optional_numbers(stored: Longs) -> list[int | None]:
    """Return the same with None for 0."""
    numbers = zip(stored.tolist(), unshifted(stored).tolist(), strict=True)
    return [number if given else None for given, number in numbers]


class ColumnError(ValueError):
    """A body that is not columns. Callers add the place in the file and raise DataError."""


class ColumnReader:
    """Reader of columns by name."""

    def __init__(self, body: bytes) -> None:
        """Raises ColumnError."""
        try:
            size = zstandard.get_frame_parameters(body).content_size
            if not 4 <= size <= MAX_BYTES:
                raise ColumnError(f"its columns would need {counted(size, 'byte')}")
            raw = zstandard.ZstdDecompressor().decompress(body)
            (length,) = struct.unpack_from("<I", raw)
            directory = json.loads(raw[4 : 4 + length])
            at = 4 + length
            self._parts: dict[str, tuple[str, int, memoryview]] = {}
            view = memoryview(raw)
            for name, dtype, count in directory:
                width = 1 if dtype == "raw" else np.dtype(dtype).itemsize
                end = at + width * count
                if end > len(raw) or count < 0:
                    raise ColumnError(f"column {name!r} runs past the end")
                self._parts[name] = (dtype, count, view[at:end])
                at = end
        except (zstandard.ZstdError, struct.error, ValueError, TypeError) as error:
            if isinstance(error, ColumnError):
                raise
            raise ColumnError(f"its columns cannot be read ({error})") from error

    def __contains__(self, name: str) -> bool:
        return name in self._parts or f"{name}:texts" in self._parts

    def _part(self, name: str) -> tuple[str, int, memoryview]:
        if name not in self._parts:
            raise ColumnError(f"column {name!r} is missing")
        return self._parts[name]

    def bytes(self, name: str) -> memoryview:
        return self._part(name)[2]

    def integers(self, name: str) -> Longs:
        """Integers of a column, int64 [rows]."""
        dtype, count, data = self._part(name)
        width = np.dtype(dtype).itemsize
        grouped = np.frombuffer(data, np.uint8).reshape(width, count)
        return np.ascontiguousarray(grouped.T).view(f"<{dtype}").reshape(count).astype(np.int64)

    def optional(self, name: str) -> list[int | None]:
        return optional_numbers(self.integers(name))

    def texts(self, name: str) -> Texts:
        """Texts of a column. Raises ColumnError if a row refers to a missing text."""
        try:
            table = json.loads(bytes(self.bytes(f"{name}:texts")).decode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise ColumnError(f"texts of {name!r} cannot be read ({error})") from error
        rows = self.integers(f"{name}:rows")
        new = rows == 0
        index = np.where(new, np.cumsum(new) - 1, rows - 1).astype(np.int32)
        if index.size and (int(index.max()) >= len(table) or int(index.min()) < 0):
            raise ColumnError(f"rows of {name!r} refer to missing texts")
        return table, index


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Encode a JSON object; the same object gives the same bytes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def decode_json(body: bytes) -> dict[str, Any]:
    """Decode a JSON object. Raises ColumnError."""
    try:
        value = json.loads(body.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise ColumnError(f"its JSON cannot be read ({error})") from error
    if not isinstance(value, dict):
        raise ColumnError(f"its JSON is a {type(value).__name__}, not an object")
    return value
