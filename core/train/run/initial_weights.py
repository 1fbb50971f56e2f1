"""The weights that a training starts from: a checkpoint, or the ONNX file of a net."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from variant_ai.core.inference.model_file import read_model_file
from variant_ai.core.nets.interface import NetConfig, NetworkBuilder
from variant_ai.core.nets.restore import net_config, restore, settle_norms
from variant_ai.core.spec import VariantSpec
from variant_ai.core.train.loop.position_source import Source
from variant_ai.core.train.run.checkpoint import Checkpoint, find_checkpoint
from variant_ai.core.train.run.training_settings import TrainConfig, model_info

NORM_POSITIONS = 4096
"""Positions on which the statistics of the norms of a net from a file are computed."""


class CheckpointStart:
    """The weights of a checkpoint, with the running statistics of its norms."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Raises DataError if its configuration is missing or damaged."""
        self.checkpoint = checkpoint
        self.path = checkpoint.path
        self.config = checkpoint.config()
        self.info = model_info(self.config, self.path)

    def net(self, spec: VariantSpec, builders: Mapping[str, NetworkBuilder] | None) -> NetConfig:
        """The configuration of the net. Raises DataError if it is of another variant or encoding."""
        self.info.require(spec)
        return self.config.net

    def weights(
        self, train: Source, builders: Mapping[str, NetworkBuilder] | None
    ) -> dict[str, Tensor]:
        """Parameters and buffers by name. Raises DataError if they are damaged."""
        return self.checkpoint.best()


class FileStart:
    """The weights of an ONNX file; statistics of the norms come from the first batches."""

    def __init__(self, path: Path) -> None:
        """Raises DataError if the file is damaged or not an ONNX model."""
        self.path = path
        self.file = read_model_file(path)
        self.info = self.file.info

    def net(self, spec: VariantSpec, builders: Mapping[str, NetworkBuilder] | None) -> NetConfig:
        """The configuration of the net. Raises DataError if it is of another variant or encoding, or
        if it cannot be restored."""
        self.info.require(spec)
        restore(self.path, builders)  # raises before anything is written
        return net_config(self.file.metadata, self.path)

    def weights(
        self, train: Source, builders: Mapping[str, NetworkBuilder] | None
    ) -> dict[str, Tensor]:
        """Parameters and buffers by name. `train` is the source of the training's batches."""
        net = restore(self.path, builders)
        settle_norms(net, _first_planes(train))
        return net.state_dict()


Start = CheckpointStart | FileStart


def random_net(
    config: TrainConfig, builders: Mapping[str, NetworkBuilder] | None = None
) -> nn.Module:
    """The net of a training with random weights, which depend on its seed alone."""
    torch.manual_seed(config.seed)
    return config.net.build(builders)


def find_start(path: Path) -> Start:
    """The net at a path: an ONNX file, a checkpoint, or the newest one of a run directory.

    Raises DataError if there is none.
    """
    if path.is_file():
        return FileStart(path)
    return CheckpointStart(find_checkpoint(path))


def _first_planes(train: Source) -> Iterator[Tensor]:
    seen = 0
    for batch in train.whole().batches(0):
        planes = torch.from_numpy(batch.planes)
        yield planes
        seen += len(planes)
        if seen >= NORM_POSITIONS:
            return
