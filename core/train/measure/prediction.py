"""Nets that predict: torch nets and ONNX files, by path, and their scores over a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from variant_ai.core.encoding import Head
from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
from variant_ai.core.inference.backends.onnx_backend import devices as onnx_devices
from variant_ai.core.inference.interface import Evaluation as Prediction
from variant_ai.core.inference.model_file import ONNX_SUFFIX, read_model_file
from variant_ai.core.nets.network import auxiliary_outputs, outputs_of
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.train.loop.devices import (
    ALONE,
    Precision,
    Workers,
    autocast,
    choose_precision,
    place_net,
)
from variant_ai.core.train.loop.position_source import Source, place_batch
from variant_ai.core.train.measure.metrics import Scores, score
from variant_ai.core.train.run.checkpoint import find_checkpoint
from variant_ai.core.train.run.run_folder import first_run_folder
from variant_ai.core.train.run.training_settings import model_info

Predictor = Callable[[NDArray[np.float32]], Prediction]
"""planes float32 [B, C, H, W] -> value [B], policy logits [B, A], and, if the net has them,
probabilities of win, draw and loss [B, 3] and plies left [B]."""


class TorchPredictor:
    """A torch net as a predictor."""

    def __init__(self, net: nn.Module, device: torch.device, precision: Precision = "fp32") -> None:
        place_net(net, device)
        self.net, self.device, self.precision = net.eval(), device, precision

    def __call__(self, planes: NDArray[np.float32]) -> Prediction:
        with torch.inference_mode(), autocast(self.device, self.precision):
            batch = torch.from_numpy(planes).to(self.device)
            outputs = outputs_of(self.net, batch.contiguous(memory_format=torch.channels_last))
            arrays = {name: output.cpu().numpy() for name, output in outputs.by_name().items()}
        return Prediction(**arrays)


def predict(
    net: nn.Module,
    source: Source,
    device: torch.device,
    precision: Precision = "fp32",
    *,
    limit: int | None = None,
    workers: Workers = ALONE,
) -> Scores:
    """Scores of a net on the positions of a source, in the order of its sweep.

    Several processes take turns at the batches; each of them returns all scores.
    """
    net.eval()
    n = source.positions if limit is None else min(limit, source.positions)
    scores = Scores.empty(n, wdl="wdl" in auxiliary_outputs(net))
    at = 0
    with torch.inference_mode(), autocast(device, precision):
        for number, samples in enumerate(source.sweep(limit=limit)):
            if number % workers.world != workers.rank:
                at += len(samples.action)
                continue
            batch = place_batch(samples, device)
            outputs = outputs_of(net, batch.planes).by_name()
            of_batch = score(
                outputs["value"],
                outputs["policy"],
                batch.action,
                batch.outcome,
                outputs.get("wdl"),
                batch.soft,
                batch.weights,
            )
            at = scores.put(at, of_batch)
    if workers.world > 1:
        workers.all_reduce([torch.from_numpy(array) for array in scores.arrays().values()])
    return scores


@dataclass(frozen=True)
class Model:
    """A net ready to predict, and its description."""

    path: Path
    title: str
    head: Head
    spec: VariantSpec
    """The spec of its planes: the one the user named, or the net's own with other planes."""
    predictor: Predictor
    run: Path | None
    """The run directory that it lies in, if any."""


def open_model(
    path: Path,
    spec: VariantSpec,
    device: torch.device,
    *,
    precision: str = "auto",
    report: Callable[[str], None] = lambda text: None,
) -> Model:
    """Load a net for a variant from an ONNX file, a checkpoint, or a run directory (its newest
    checkpoint). `precision` is for torch nets; ONNX files have their own. A sentence is passed to
    `report` if the net cannot run on the device.

    Raises DataError (missing, damaged, or of another variant or spec), UnknownNameError (a
    checkpoint of a net that no installed plugin builds).
    """
    if path.suffix == ONNX_SUFFIX:
        where = str(device)
        if device.type not in onnx_devices():  # torch may support a GPU that onnxruntime does not
            where = "cpu"
            report(f"{path} runs on the CPU: the installed onnxruntime has no {device.type}")
        file = read_model_file(path)
        own = file.info.own_spec(spec)
        evaluator = OnnxEvaluator(file, own, device=where)
        for text in evaluator.notes:
            report(text)
        title = file.info.net or path.stem
        run = first_run_folder(path.parent)
        return Model(path, title, file.info.head, own, evaluator.evaluate, run)
    checkpoint = find_checkpoint(path)
    config = checkpoint.config()
    info = model_info(config, path)
    own = info.own_spec(spec)
    info.require(own)
    net = checkpoint.build(config)
    predictor = TorchPredictor(net, device, choose_precision(precision, device))
    title = f"{config.net.title}, step {checkpoint.state().step}"
    folder = checkpoint.path.parent
    run = first_run_folder(folder.parent, folder)
    return Model(path, title, config.net.head, own, predictor, run)
