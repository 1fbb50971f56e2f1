"""ONNX files read, written and run as they are, for those who change or compare them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnx

from variant_ai.core.errors import DataError
from variant_ai.core.nets.checksums import serialised
from variant_ai.core.system.files import write_whole


def read_onnx(path: str | os.PathLike[str]) -> onnx.ModelProto:
    """Read a model. Raises DataError if the file is not an ONNX model."""
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
