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
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING

from variant_ai.core.errors import DataError

if TYPE_CHECKING:
    import onnx

METADATA_PREFIX = "variant_ai."
"""Prefix of the project's own metadata in an ONNX file."""
CHECKSUMS = "checksums.json"
CHECKSUM = "checksum"
"""Name of the metadata entry, without the project's prefix."""
_ENTRY = b"\x72\x57\x0a\x13variant_ai.checksum\x12\x40"
"""Beginning of the entry in protobuf: 87 bytes of metadata, a key of 19 and a value of 64, which follows."""
_ENTRY_BYTES = len(_ENTRY) + 64


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
    return content + _ENTRY + hashlib.sha256(content).hexdigest().encode()


def has_checksum(data: bytes | mmap) -> bool:
    """Return True if a serialised model ends with a checksum, right or wrong."""
    return (METADATA_PREFIX + CHECKSUM).encode() in data[-_ENTRY_BYTES:]


def matches_checksum(data: bytes | mmap) -> bool:
    """Return True if the last bytes of a serialised model are the checksum of those before."""
    with memoryview(data) as whole, whole[:-_ENTRY_BYTES] as content:
        digest = hashlib.sha256(content).hexdigest()
    return data[-_ENTRY_BYTES:] == _ENTRY + digest.encode()
