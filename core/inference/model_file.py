"""Files of nets: ONNX files, which file belongs to a precision, and checkpoints.

The metadata of an ONNX file is read from its outermost protobuf fields: importing `onnx` would take a
hundred times as long, and opening a session longer still, while a client waits for the engine. It
also distinguishes a file that was cut off from one that is something else.

Checkpoints are written by `core/train/run/checkpoint.py`; here the net of one is found and read. torch is
imported by `read_tensors` alone. The folder of a checkpoint has `checksums.json`, the sha256 of each of its
other files. ONNX files have their own (`core/nets/onnx_files.py`). Files without a checksum (older ones, or
files of other programs) are accepted.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import ModelInfo
from variant_ai.core.nets.interface import NetConfig
from variant_ai.core.nets.onnx_files import (
    CHECKSUM,
    METADATA_PREFIX,
    has_checksum,
    matches_checksum,
)
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from torch import Tensor

ONNX_SUFFIX = ".onnx"
RUN_MODEL = "model.onnx"
"""Exported net of a run directory."""
MADE_FROM = "made_from"
"""Metadata of a file in reduced precision: digest of the graph of its fp32 file."""
PRECISIONS = ("fp32", "bf16", "fp16", "int8")
"""bf16 is a way to compute with an fp32 file; the others are properties of the file."""

# Field numbers of onnx.ModelProto and its StringStringEntryProto, and protobuf's wire types.
_GRAPH, _METADATA, _KEY, _VALUE = 7, 14, 1, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Those of GraphProto (nodes, input, output; weights) and of TensorProto.
_LAYERS, _WEIGHT = (1, 11, 12), 5
_DIMENSIONS, _TYPE, _NAME = 1, 2, 8
_INT64 = 7
"""Type of tensors that are no weights but settings of layers, such as shapes."""


@dataclass(frozen=True)
class ModelFile:
    """An ONNX file on disk and its metadata."""

    path: Path
    metadata: dict[str, str]
    """Entries written by this project, without their prefix."""

    @property
    def info(self) -> ModelInfo:
        return ModelInfo.of(self.metadata, os.fspath(self.path))

    def digest(self) -> str:
        """Return the sha256 of the file, 64 hex digits."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def graph_digest(self) -> str:
        """Return the sha256 of the graph, 64 hex digits: of layers and weights, not of metadata."""
        found = hashlib.sha256()
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            for number, _, start, end in _fields(data, 0, len(data)):
                if number == _GRAPH:
                    found.update(data[start:end])
        return found.hexdigest()

    def layers_digest(self) -> str:
        """Return the sha256 of the layers without their weights, 64 hex digits: equal for nets that
        differ only in their weights. These are equally fast."""
        found = hashlib.sha256()
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            for number, _, start, end in _fields(data, 0, len(data)):
                for part, _, first, last in _fields(data, start, end) if number == _GRAPH else ():
                    if part == _WEIGHT:
                        found.update(_shape_of_weight(data, first, last))
                    elif part in _LAYERS:
                        found.update(data[first:last])
        return found.hexdigest()


def read_model_file(path: str | os.PathLike[str]) -> ModelFile:
    """Read the metadata of an ONNX file, and verify its checksum if it has one.

    Raises DataError: no such file, not an ONNX model, cut off, damaged.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a model file")
    if not path.is_file():
        raise DataError(f"{path}: no such model file")
    size = path.stat().st_size
    cut_off = DataError(
        f"{path}: is not a usable ONNX model: it is cut off after {counted(size, 'byte')}"
    )
    if size == 0:
        raise cut_off
    metadata: dict[str, str] = {}
    has_graph = False
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        try:
            for number, kind, start, end in _fields(data, 0, size):
                has_graph |= number == _GRAPH
                if number == _METADATA and kind == _BYTES:
                    key, value = _key_and_value(data, start, end)
                    if key.startswith(METADATA_PREFIX):
                        metadata[key.removeprefix(METADATA_PREFIX)] = value
        except EOFError:
            if has_graph:
                raise cut_off from None
            raise DataError(f"{path}: is not a usable ONNX model") from None
        except ValueError:  # UnicodeDecodeError included
            raise DataError(f"{path}: is not a usable ONNX model") from None
        # Looked for at the end as well: a damaged length may hide the entry among other bytes.
        checked = metadata.pop(CHECKSUM, None) is not None or has_checksum(data)
        if checked and not matches_checksum(data):
            raise DataError(
                f"{path}: is damaged: its bytes do not match the checksum in its metadata; copy or "
                "download it again, or write it again with `variant-ai export` (or, if you changed "
                f"the file yourself, remove its metadata entry {METADATA_PREFIX}{CHECKSUM})"
            )
    if not has_graph:
        raise DataError(
            f"{path}: is not a usable ONNX model: it holds no graph (cut off after {counted(size, 'byte')}?)"
        )
    return ModelFile(path, metadata)


def find_model_file(path: Path, precision: str | None = None) -> ModelFile:
    """Return the ONNX file of a path (or of a run directory) in the requested precision.

    `int8` of `net.onnx` is expected beside it as `net-int8.onnx`, and the other way round. bf16
    computes with the fp32 file. Raises DataError if it is missing, with the command that writes it.
    """
    if path.is_dir():
        if not (path / RUN_MODEL).is_file():
            if not step_folders(path / "checkpoints"):
                raise DataError(f"{path} holds no net: neither {RUN_MODEL} nor a checkpoint")
            raise DataError(
                f"{path} has no {RUN_MODEL}; write one with `variant-ai export {path} -o "
                f"{path / RUN_MODEL}`"
            )
        path = path / RUN_MODEL
    file = read_model_file(path)
    needed = "fp32" if precision in ("fp32", "bf16") else precision
    if needed is None or needed == file.info.precision:
        return file
    beside = _beside(path, file.info.precision, needed)
    if beside.is_file():
        other = read_model_file(beside)
        if other.info.precision == needed:
            _require_same_net(file, other, needed)
            return other
    if needed == "fp32":
        raise DataError(
            f"{path} is an {file.info.precision} file and there is no fp32 one at {beside}; "
            f"leave the precision out, or export it again"
        )
    raise DataError(
        f"{path} is an {file.info.precision} file and there is no {needed} one beside it; write it "
        f"with `variant-ai export {path} --precision {needed} -o {beside}`"
    )


def _require_same_net(file: ModelFile, other: ModelFile, needed: str) -> None:
    """Raise DataError if two files of one net in two precisions are of two nets."""
    reduced, source = (other, file) if needed != "fp32" else (file, other)
    for key in ("net_config", "spec_hash", "data_hashes", "steps"):
        first, second = file.metadata.get(key), other.metadata.get(key)
        if first != second and first is not None and second is not None:
            raise _other_net(reduced, source, f"{key} of their metadata differ")
    made_from = reduced.metadata.get(MADE_FROM)
    if source.info.precision == "fp32" and made_from not in (None, source.graph_digest()):
        raise _other_net(reduced, source, "its weights are those of another net")


def _other_net(reduced: ModelFile, source: ModelFile, reason: str) -> DataError:
    return DataError(
        f"{reduced.path} was not made from {source.path}: {reason}; write it again with `variant-ai "
        f"export {source.path} --precision {reduced.info.precision} -o {reduced.path} --replace`"
    )


def beside_name(path: Path, precision: str) -> Path:
    """Return the file of another precision: `net.onnx`, int8 -> `net-int8.onnx`."""
    return path.with_name(f"{path.stem}-{precision}{path.suffix}")


def _beside(path: Path, own: str, precision: str) -> Path:
    plain = path.with_name(path.stem.removesuffix(f"-{own}") + path.suffix)
    return plain if precision == "fp32" else beside_name(plain, precision)


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (field number, wire type, start, end) of the content of each protobuf field.

    Raises EOFError if the data end inside a field, ValueError if they are no protobuf at all.
    """
    at = start
    while at < end:
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            length = _varint(data, at)[1] - at
        elif kind == _BYTES:
            length, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if number == 0:
            raise ValueError("field number 0")
        yield number, kind, at, at + length
        at += length
        if at > end:
            raise EOFError


def _shape_of_weight(data: mmap.mmap, start: int, end: int) -> bytes:
    """Name, type and dimensions of a weight; everything if it is of integers that set up a layer."""
    found = [
        (number, data[first:last])
        for number, _, first, last in _fields(data, start, end)
        if number in (_DIMENSIONS, _TYPE, _NAME)
    ]
    if (_TYPE, bytes([_INT64])) in found:
        return data[start:end]
    return b"".join(content for _, content in found)


def _key_and_value(data: mmap.mmap, start: int, end: int) -> tuple[str, str]:
    """Key and value of a metadata entry. Raises EOFError, ValueError."""
    texts = {_KEY: "", _VALUE: ""}
    if end > len(data):
        raise EOFError
    for number, kind, first, last in _fields(data, start, end):
        if number in texts and kind == _BYTES:
            texts[number] = data[first:last].decode("utf-8")
    return texts[_KEY], texts[_VALUE]


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    """A protobuf integer at a place, and the place after it."""
    value = shift = 0
    while True:
        if at >= len(data):
            raise EOFError
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("varint")


# --- checkpoints ----------------------------------------------------------------------------------

MODEL, AVERAGE, CONFIG = "model.safetensors", "average.safetensors", "config.json"
"""Weights, averaged weights (preferred if there are any), and the net with its metadata."""
CHECKSUMS = "checksums.json"
_STEP = re.compile(r"step-(\d{8,})\Z")


def find_checkpoint_folder(path: Path) -> Path:
    """Return the folder of a checkpoint: the path itself, or the newest of a run directory.

    Raises DataError if there is none.
    """
    if (path / MODEL).is_file():
        return path
    found = {**step_folders(path / "checkpoints"), **step_folders(path)}
    if not found:
        if path.suffix == ".onnx" and not path.exists():
            raise DataError(f"there is no file {path}")
        problem = "has no checkpoint" if path.exists() else "does not exist"
        if path.is_file():
            problem = "is neither an ONNX file (.onnx) nor a checkpoint"
        raise DataError(
            f"{path} {problem}: give a run directory with a checkpoint in it, or a checkpoint, "
            f"which is a folder with {MODEL}"
        )
    return found[max(found)]


def step_folders(folder: Path) -> dict[int, Path]:
    """Step -> folder of each complete checkpoint in a folder, oldest first."""
    if not folder.is_dir():
        return {}
    found = {int(m[1]): path for path in folder.iterdir() if (m := _STEP.match(path.name))}
    return dict(sorted(found.items()))


def read_checkpoint_info(folder: Path) -> tuple[ModelInfo, NetConfig]:
    """Read the metadata of a checkpoint and the configuration of its net. Raises DataError."""
    path = folder / CONFIG
    check_file(path)
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        config = NetConfig.model_validate(fields["net"])
        texts = {name: str(fields[name]) for name in ("variant", "encoding_hash")}
        texts["spec"] = json.dumps(fields["spec"]) if "spec" in fields else ""
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise DataError(f"{path} is damaged: {error}") from None
    info = ModelInfo.of({**texts, "net": config.title, "head": config.head}, str(folder))
    return info, config


def checkpoint_step(folder: Path) -> int | None:
    """Return the training step in the name of a checkpoint's folder; None if it has none."""
    match = _STEP.match(folder.name)
    return int(match[1]) if match else None


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors by name. Raises DataError if the file is missing or damaged."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        check_file(path)
        tensors: dict[str, Tensor] = load_file(path)
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except SafetensorError as error:
        raise DataError(f"{path} is damaged: {error}") from None
    return tensors


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
