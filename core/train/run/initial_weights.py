"""The weights that a training starts from: a checkpoint, or the ONNX file of a net."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import ModelInfo
from variant_ai.core.inference.model_file import read_model_file
from variant_ai.core.nets.interface import NetConfig
from variant_ai.core.nets.restore import net_config, restore, settle_norms
from variant_ai.core.spec import VariantSpec
from variant_ai.core.train.loop.position_source import Source
from variant_ai.core.train.run.checkpoint import Checkpoint, find_checkpoint
from variant_ai.core.train.run.training_settings import TrainConfig, model_info

NORM_POSITIONS = 4096
"""Positions on which the statistics of the norms of a net from a file are computed."""


@dataclass(frozen=True)
class Start:
    """A net whose weights a training starts from."""

    path: Path
    """An ONNX file, or the folder of a checkpoint."""
    info: ModelInfo
    config: NetConfig

    @property
    def is_file(self) -> bool:
        """True for an ONNX file."""
        return self.path.is_file()

    def net(self, spec: VariantSpec) -> NetConfig:
        """The configuration of the net. Raises DataError if it is of another variant or encoding, or
        if it cannot be restored."""
        try:
            self.info.require(spec)
        except DataError as error:
            board = (spec.board.ranks, spec.board.files)
            if self.info.variant == spec.variant or tuple(self.config.board) != board:
                raise
            raise DataError(
                f"{error}; `variant-ai nets widen --other-rules` makes a net for {spec.variant} from its ONNX file"
            ) from None
        if self.is_file:
            restore(self.path)  # raises before anything is written
        return self.config

    def weights(self, train: Source) -> dict[str, Tensor]:
        """Parameters and buffers by name. The statistics of the norms are those of a checkpoint; a file
        has none, so they are computed on the first batches of `train`, the source of the training's
        batches. Raises DataError if they are damaged."""
        if not self.is_file:
            return Checkpoint(self.path).best()
        net = restore(self.path)
        settle_norms(net, _first_planes(train))
        return net.state_dict()


def random_net(config: TrainConfig) -> nn.Module:
    """The net of a training with random weights, which depend on its seed alone."""
    torch.manual_seed(config.seed)
    return config.net.build()


def find_start(path: Path) -> Start:
    """The net at a path: an ONNX file, a checkpoint, or the newest one of a run directory.

    Raises DataError if there is none, or if it is damaged.
    """
    if path.is_file():
        file = read_model_file(path)
        return Start(path, file.info, net_config(file.metadata, path))
    checkpoint = find_checkpoint(path)
    config = checkpoint.config()
    return Start(checkpoint.path, model_info(config, checkpoint.path), config.net)


def _first_planes(train: Source) -> Iterator[Tensor]:
    seen = 0
    for batch in train.whole().batches(0):
        planes = torch.from_numpy(batch.planes)
        yield planes
        seen += len(planes)
        if seen >= NORM_POSITIONS:
            return
