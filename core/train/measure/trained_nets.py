"""Trained nets by path: an ONNX file, a checkpoint, or a run directory (its newest checkpoint)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from variant_ai.core.encoding import Head
from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
from variant_ai.core.inference.backends.onnx_backend import devices as onnx_devices
from variant_ai.core.inference.model_file import ONNX_SUFFIX, read_model_file
from variant_ai.core.nets.interface import NetworkBuilder
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.train.loop.device import choose_precision
from variant_ai.core.train.measure.evaluation import Predictor, TorchPredictor
from variant_ai.core.train.run.checkpoint import find_checkpoint
from variant_ai.core.train.run.training_settings import own_spec, require_spec


@dataclass(frozen=True)
class Model:
    """A net ready to predict, and what it says of itself."""

    path: Path
    title: str
    head: Head
    spec: VariantSpec
    """By which it sees positions: the one asked for, or its own with other planes."""
    predictor: Predictor
    run: Path | None
    """The run directory it lies in, where it does."""


def open_model(
    path: Path,
    spec: VariantSpec,
    device: torch.device,
    *,
    precision: str = "auto",
    builders: Mapping[str, NetworkBuilder] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Model:
    """Loads a net for a variant. `precision` is that of torch nets; ONNX files have their own. `say`
    is told where it could not be on the device.

    Raises DataError: not there, damaged, or of another variant or spec; UnknownNameError: a
    checkpoint of a net that no plugin here builds.
    """
    if path.suffix == ONNX_SUFFIX:
        where = str(device)
        if device.type not in onnx_devices():  # torch may have a GPU that onnxruntime has not
            where = "cpu"
            say(f"{path} runs on the CPU: the installed onnxruntime has no {device.type}")
        own = read_model_file(path).info.own_spec(spec)
        evaluator = OnnxEvaluator(path, own, device=where)
        head: Head = "flat" if evaluator.info.head == "flat" else "map"
        title = evaluator.info.net or path.stem
        return Model(path, title, head, own, evaluator.evaluate, _run_of(path.parent))
    checkpoint = find_checkpoint(path)
    config = checkpoint.config()
    own = own_spec(config, spec)
    require_spec(config, own, str(path))
    net = checkpoint.build(config, builders)
    predictor = TorchPredictor(net, device, choose_precision(precision, device))
    title = f"{config.net.title}, step {checkpoint.state().step}"
    folder = checkpoint.path.parent
    run = _run_of(folder.parent) or _run_of(folder)
    return Model(path, title, config.net.head, own, predictor, run)


def _run_of(folder: Path) -> Path | None:
    return folder if (folder / "config.json").is_file() else None
