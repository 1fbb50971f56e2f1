"""Checksums of nets, from which a single flipped bit is detected before the net is used.

The folder of a checkpoint has `checksums.json`, the sha256 of each of its other files. An ONNX file
written by variant-ai contains its own checksum: the last metadata entry `variant_ai.checksum` is the
sha256 of all bytes of the file except those of this entry. Files without a checksum (older ones, or
files of other programs) are accepted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from variant_ai.core.errors import DataError

if TYPE_CHECKING:
    import onnx

METADATA_PREFIX = "variant_ai."
"""Prefix of the project's own metadata in an ONNX file."""
CHECKSUMS = "checksums.json"
CHECKSUM = "checksum"
"""Name of the metadata entry, without the project's prefix."""
_PIECE = 1 << 20


def checksums_json(contents: Mapping[str, bytes]) -> bytes:
    """Contents of `checksums.json` for files by name."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    return json.dumps(digests, indent=2).encode()


def read_checksums(folder: Path) -> dict[str, str]:
    """Read the sha256 (hex) of each file of a checkpoint; empty if there are none. Raises DataError."""
    path = folder / CHECKSUMS
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise DataError(f"{path} is damaged: expected file names with their sha256")
    return found


def check_file(path: Path) -> None:
    """Compare a file of a checkpoint with its checksum, if it has one; missing files are ignored here.
    Raises DataError."""
    expected = read_checksums(path.parent).get(path.name)
    if expected is None or not path.is_file():
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise DataError(
            f"{path} is damaged: its sha256 differs from the one in {CHECKSUMS}; use an older "
            f"checkpoint of the run (or, if you changed the file yourself, delete {CHECKSUMS})"
        )


def serialised(model: onnx.ModelProto) -> bytes:
    """Serialise a model, with a checksum."""
    kept = [p for p in model.metadata_props if p.key != METADATA_PREFIX + CHECKSUM]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    content: bytes = model.SerializeToString()
    digest = hashlib.sha256(content).hexdigest()
    key = _entry_field(1, (METADATA_PREFIX + CHECKSUM).encode())
    return content + _entry_field(14, key + _entry_field(2, digest.encode()))


def digest_without(file: BinaryIO, start: int, end: int) -> str:
    """Return the sha256 (hex) of all bytes of a file except those from `start` to `end - 1`."""
    found = hashlib.sha256()
    file.seek(0)
    while start > 0 and (piece := file.read(min(_PIECE, start))):
        found.update(piece)
        start -= len(piece)
    file.seek(end)
    while piece := file.read(_PIECE):
        found.update(piece)
    return found.hexdigest()


def _entry_field(number: int, content: bytes) -> bytes:
    """Encode a protobuf field of bytes: its number, the length (below 16,384), the bytes."""
    size = len(content)
    length = bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])
    return bytes([number << 3 | 2]) + length + content
