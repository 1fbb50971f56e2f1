"""ONNX files read, written and run as they are, and their checksums.

A file written by variant-ai contains its own checksum, from which a single flipped bit is detected before
the net is used: the last metadata entry `variant_ai.checksum` is the sha256 of all bytes of the file
except those of this entry. Files without a checksum (older ones, or files of other programs) are accepted.

onnx and onnxruntime are imported when they are used: the engine reads checksums without them.
"""

from __future__ import annotations

import hashlib
import os
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variant_ai.core.errors import DataError
from variant_ai.core.system.files import write_whole

if TYPE_CHECKING:
    import onnx

METADATA_PREFIX = "variant_ai."
"""Prefix of the project's own metadata in an ONNX file."""
CHECKSUM = "checksum"
"""Name of the metadata entry, without the project's prefix."""
_ENTRY = b"\x72\x57\x0a\x13variant_ai.checksum\x12\x40"
"""Beginning of the entry in protobuf: 87 bytes of metadata, a key of 19 and a value of 64, which follows."""
_ENTRY_BYTES = len(_ENTRY) + 64


def read_onnx(path: str | os.PathLike[str]) -> onnx.ModelProto:
    """Read a model. Raises DataError if the file is not an ONNX model."""
    import onnx

    try:
        return onnx.load(os.fspath(path))  # weights may be in a file beside it
    except FileNotFoundError:
        raise DataError(f"{path}: no such model file") from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # protobuf's DecodeError is not public
        raise DataError(f"{path}: is not a usable ONNX model: {error}") from None


def write_onnx(model: onnx.ModelProto | bytes, path: Path) -> None:
    """Write a model, or the bytes of a file, completely or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, model if isinstance(model, bytes) else serialised(model))


def cpu_session(model: bytes | str, *, optimise: bool = True, threads: int = 0) -> Any:
    """Open a model, or the file at a path, in onnxruntime on the CPU. threads: 0: every core.

    Raises an exception of onnxruntime's own.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    if not optimise:
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


# --- checksums ------------------------------------------------------------------------------------


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
