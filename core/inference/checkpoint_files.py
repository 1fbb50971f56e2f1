"""Files of a checkpoint, which `core/train/run/checkpoint.py` writes: finding and reading its net.

torch is imported by `read_tensors` alone.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import ModelInfo
from variant_ai.core.nets.checksums import check_file
from variant_ai.core.nets.interface import NetConfig

if TYPE_CHECKING:
    from torch import Tensor

MODEL, AVERAGE, CONFIG = "model.safetensors", "average.safetensors", "config.json"
"""Weights, averaged weights (preferred if there are any), and the net with its metadata."""
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
