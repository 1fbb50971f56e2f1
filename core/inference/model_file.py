"""Model files by path: what an ONNX file says of itself, and which file a precision means.

The metadata is read by walking the outermost fields of the file: no onnx, no net in memory, and a
file that was cut off is told from one that is something else.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import ModelInfo
from variant_ai.core.nets.checksums import CHECKSUM, METADATA_PREFIX, digest_without

ONNX_SUFFIX = ".onnx"
RUN_MODEL = "model.onnx"
"""The exported net of a run directory."""
PRECISIONS = ("fp32", "bf16", "fp16", "int8")
FILE_PRECISIONS = ("fp32", "fp16", "int8")
"""Those that are a property of the file; bf16 is a way to compute with an fp32 file."""

# Field numbers of onnx.ModelProto and its StringStringEntryProto, and protobuf's wire types.
_GRAPH, _METADATA, _KEY, _VALUE = 7, 14, 1, 2
_ENTRY_BYTES = 128
"""More than the entry of the checksum takes, which is written last: where its name stands and no
entry is found, a length before it was damaged."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class ModelFile:
    """An ONNX file on disk and what it says of itself."""

    path: Path
    metadata: dict[str, str]
    """The project's own, prefix removed."""

    @property
    def info(self) -> ModelInfo:
        return ModelInfo.of(self.metadata, os.fspath(self.path))

    def digest(self) -> str:
        """sha256 of the file, 64 hex digits."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def read_model_file(path: str | os.PathLike[str]) -> ModelFile:
    """The metadata of an ONNX file, which is compared with its checksum, if it carries one.

    Raises DataError: no such file, not an ONNX model, cut off, damaged.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a model file")
    if not path.is_file():
        raise DataError(f"{path}: no such model file")
    metadata: dict[str, str] = {}
    has_graph = False
    with path.open("rb") as file:
        size = path.stat().st_size
        begin = 0
        sealed: tuple[int, int] | None = None
        try:
            for number, kind, length in _fields(file, size):
                has_graph |= number == _GRAPH
                end = file.tell() + length
                if number == _METADATA and kind == _BYTES:
                    key, value = _entry(file, length)
                    if key.startswith(METADATA_PREFIX):
                        metadata[key.removeprefix(METADATA_PREFIX)] = value
                    if key == METADATA_PREFIX + CHECKSUM:
                        sealed = begin, end
                begin = end
        except EOFError:
            if has_graph or size == 0:
                raise DataError(
                    f"{path}: is not a usable ONNX model: it is cut off after {size:,} bytes"
                ) from None
            raise DataError(f"{path}: is not a usable ONNX model") from None
        except (ValueError, UnicodeDecodeError):
            raise DataError(f"{path}: is not a usable ONNX model") from None
        expected = metadata.pop(CHECKSUM, None)
        file.seek(max(0, size - _ENTRY_BYTES))
        hidden = sealed is None and (METADATA_PREFIX + CHECKSUM).encode() in file.read()
        if hidden or (sealed is not None and digest_without(file, *sealed) != expected):
            raise DataError(
                f"{path}: is damaged: its bytes do not match the checksum in its metadata; copy or "
                "download it again, or write it again with `variant-ai export` (or, if you changed "
                f"the file yourself, remove its metadata entry {METADATA_PREFIX}{CHECKSUM})"
            )
    if not has_graph:
        raise DataError(
            f"{path}: is not a usable ONNX model: it holds no graph (cut off after {size:,} bytes?)"
        )
    return ModelFile(path, metadata)


def find_model_file(path: Path, precision: str | None = None) -> ModelFile:
    """The ONNX file that a path means: itself or a run directory's, in the precision asked for.

    `int8` of `net.onnx` is looked for beside it as `net-int8.onnx`, and likewise the other way
    round. bf16 computes with the fp32 file. Raises DataError with what to do where it is missing.
    """
    if path.is_dir():
        if not (path / RUN_MODEL).is_file():
            raise DataError(
                f"{path} has no {RUN_MODEL}; write one with `variant-ai export {path} -o "
                f"{path / RUN_MODEL}`"
            )
        path = path / RUN_MODEL
    file = read_model_file(path)
    wanted = "fp32" if precision in ("fp32", "bf16") else precision
    if wanted is None or wanted == file.info.precision:
        return file
    beside = _beside(path, file.info.precision, wanted)
    if beside.is_file():
        other = read_model_file(beside)
        if other.info.precision == wanted:
            return other
    if wanted == "fp32":
        raise DataError(
            f"{path} is an {file.info.precision} file and there is no fp32 one at {beside}; "
            f"leave the precision out, or export it again"
        )
    raise DataError(
        f"{path} is an {file.info.precision} file and there is no {wanted} one beside it; write it "
        f"with `variant-ai export {path} --precision {wanted} -o {beside}`"
    )


def beside_name(path: Path, precision: str) -> Path:
    """`net.onnx`, int8 -> `net-int8.onnx`, where a file of that precision is looked for."""
    return path.with_name(f"{path.stem}-{precision}{path.suffix}")


def _beside(path: Path, own: str, wanted: str) -> Path:
    plain = path.with_name(path.stem.removesuffix(f"-{own}") + path.suffix)
    return plain if wanted == "fp32" else beside_name(plain, wanted)


def _fields(file: BinaryIO, end: int) -> Iterator[tuple[int, int, int]]:
    """(field number, wire type, length) of each field, the file standing at its content.

    The reader may consume the content; it is skipped otherwise. Raises EOFError where the file
    ends inside a field, ValueError where it is no protobuf at all.
    """
    while file.tell() < end:
        tag = _varint(file)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            _varint(file)
            yield number, kind, 0
            continue
        if kind == _BYTES:
            length = _varint(file)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(kind)
        if number == 0:
            raise ValueError(number)
        after = file.tell() + length
        yield number, kind, length
        if after > end:
            raise EOFError
        file.seek(after)


def _entry(file: BinaryIO, length: int) -> tuple[str, str]:
    """Key and value of a metadata entry of that many bytes."""
    texts = {_KEY: "", _VALUE: ""}
    for number, kind, size in _fields(file, file.tell() + length):
        if number in texts and kind == _BYTES:
            content = file.read(size)
            if len(content) < size:
                raise EOFError
            texts[number] = content.decode("utf-8")
    return texts[_KEY], texts[_VALUE]


def _varint(file: BinaryIO) -> int:
    value = shift = 0
    while True:
        byte = file.read(1)
        if not byte:
            raise EOFError
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
        if shift > 63:
            raise ValueError("varint")
