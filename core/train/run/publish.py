"""A trained net as an ONNX file that says what it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from torch import nn

from variant_ai import __version__
from variant_ai.core.encoding import ENCODER_VERSION
from variant_ai.core.nets.description import parameters
from variant_ai.core.nets.onnx_export import export_onnx
from variant_ai.core.train.run.training_settings import TrainConfig


def model_metadata(
    config: TrainConfig, net: nn.Module, metrics: Mapping[str, Any], step: int
) -> dict[str, Any]:
    """What an exported file carries: what it is for, what it is, what it was made from."""
    return {
        "variant": config.variant,
        "spec_hash": config.spec_hash,
        "encoding_hash": config.encoding_hash,
        "encoder_version": str(ENCODER_VERSION),
        "net": config.net.title,
        "net_config": config.net.model_dump(mode="json"),
        "parameters": str(parameters(net)),
        "head": config.net.head,
        "data_hashes": list(config.data.hashes),
        "data_split": config.data.split,
        "mirror": config.data.mirror,
        "steps": str(step),
        "batch": str(config.batch),
        "metrics": dict(metrics),
        "program": f"variant-ai {__version__}",
        "spec": config.spec,
    }


def publish(
    config: TrainConfig,
    net: nn.Module,
    path: str | os.PathLike[str],
    metrics: Mapping[str, Any],
    step: int,
) -> float:
    """Writes the net to `path`; returns the largest difference of onnxruntime from torch.

    Raises DataError where they differ by more than 1e-4, OSError where it cannot be written.
    """
    return export_onnx(
        net, path, model_metadata(config, net, metrics, step), shape=config.net.shape
    )
