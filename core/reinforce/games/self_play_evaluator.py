"""Evaluators of the nets of a run, chosen without a measurement because every generation has a new net."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

from variant_ai.core.inference.backends import onnx_backend
from variant_ai.core.inference.choosing.evaluator_factory import AUTO, Plugins, make_evaluator
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.nets.interface import NetworkBuilder
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.train.loop.device import choose_device, choose_precision


def open_net(
    spec: VariantSpec,
    path: Path,
    settings: ReinforceSettings,
    *,
    plugins: Plugins | None = None,
    builders: Mapping[str, NetworkBuilder] | None = None,
) -> Evaluator:
    """Open a net for self-play or matches.

    The evaluator `auto` is OpenVINO on a CPU, if it is installed, in bf16 if the processor multiplies
    bf16 matrices; otherwise onnxruntime. On a GPU it is onnxruntime if that supports it, otherwise
    torch.

    Raises DataError for a net of another variant or encoding, UnknownNameError, VariantAIError.
    """
    name, precision = settings.evaluator, settings.precision
    if name == AUTO and settings.device == "cpu":
        name = "openvino" if importlib.util.find_spec("openvino") else "onnx"
    elif name == AUTO:
        name = "onnx" if settings.device.partition(":")[0] in onnx_backend.devices() else "torch"
    chosen: str | None = precision
    if precision == AUTO:
        chosen = choose_precision(AUTO, choose_device("cpu")) if name == "openvino" else None
    return make_evaluator(
        spec,
        path,
        evaluator=name,
        batch=settings.games_at_once,
        threads=settings.threads or None,
        device=settings.device,
        precision=chosen,
        plugins=plugins,
        builders=builders,
    )
