"""A source of learnable batches: action and result are visible in the planes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from variant_ai.core.nets import NetConfig, choose_head, find_builder
from variant_ai.core.rules.position import Position, new_position
from variant_ai.core.train.run.training_settings import DataConfig, TrainConfig

PLANES, HEIGHT, WIDTH, POLICY_PLANES = 4, 4, 3, 2


@dataclass
class SyntheticBatch:
    planes: NDArray[np.float32]
    action: NDArray[np.int64]
    value: NDArray[np.float32]
    plies_left: NDArray[np.float32]
    positions: Position
    choices: NDArray[np.int64]
    shares: NDArray[np.float32]

    @property
    def policy_weight(self) -> NDArray[np.float32]:
        return np.ones(len(self.action), np.float32)

    value_weight = policy_weight


class SyntheticSource:
    """Batch k is a function of seed and k. `poisoned` batches contain a NaN. `soft`: shares of the
    action and the following ones, as labels; empty for the action alone."""

    def __init__(
        self,
        batch: int = 16,
        positions: int = 160,
        seed: int = 0,
        poisoned: tuple[int, ...] = (),
        soft: tuple[float, ...] = (),
    ) -> None:
        self.soft = soft
        self.size, self.positions, self.seed, self.poisoned = batch, positions, seed, poisoned
        self.served: list[int] = []

    @property
    def steps_per_epoch(self) -> int:
        return -(-self.positions // self.size)

    def batch(self, step: int) -> SyntheticBatch:
        rng = np.random.default_rng((self.seed, step))
        action = rng.integers(0, POLICY_PLANES * HEIGHT * WIDTH, self.size)
        value = rng.integers(-1, 2, self.size).astype(np.float32)
        planes = rng.random((self.size, PLANES, HEIGHT, WIDTH)).astype(np.float32)
        plane, square = np.divmod(action, HEIGHT * WIDTH)
        planes[:, 0] = 0
        planes.reshape(self.size, PLANES, -1)[np.arange(self.size), 0, square] = 1 + plane
        planes[:, 1] = value[:, None, None]
        if step in self.poisoned:
            planes[0, 2, 0, 0] = np.nan
        plies = 20 + 10 * value
        width = len(self.soft)
        choices = (action[:, None] + np.arange(width)) % (POLICY_PLANES * HEIGHT * WIDTH)
        shares = np.tile(np.array(self.soft, np.float32), (self.size, 1))
        return SyntheticBatch(
            planes, action, value, plies, new_position(self.size), choices, shares
        )

    def batches(self, first: int = 0, last: int | None = None) -> Iterator[SyntheticBatch]:
        step = first
        while last is None or step < last:
            self.served.append(step)
            yield self.batch(step)
            step += 1

    def whole(self) -> SyntheticSource:
        return self

    def sweep(self, *, limit: int | None = None) -> Iterator[SyntheticBatch]:
        total = self.positions if limit is None else min(limit, self.positions)
        for step in range(-(-total // self.size)):
            batch = self.batch(step)
            n = min(self.size, total - step * self.size)
            yield SyntheticBatch(
                batch.planes[:n],
                batch.action[:n],
                batch.value[:n],
                batch.plies_left[:n],
                batch.positions[:n],
                batch.choices[:n],
                batch.shares[:n],
            )


def net_config(
    name: str,
    *,
    planes: int,
    board: tuple[int, int],
    policy_planes: int,
    actions: int | None = None,
    head: str | None = None,
    **size: object,
) -> NetConfig:
    """A named net for any sizes; `actions`: those of a flat head."""
    builder = find_builder(name)
    return NetConfig(
        name=name,
        planes=planes,
        board=board,
        actions=policy_planes * board[0] * board[1] if actions is None else actions,
        head=choose_head(builder, head),
        policy_planes=policy_planes,
        size=builder.size(**size).model_dump(),
    )


def tiny_net(**size: int) -> NetConfig:
    options = {"blocks": 1, "channels": 8, "value_hidden": 8, **size}
    return net_config(
        "risev2-mobile",
        planes=PLANES,
        board=(HEIGHT, WIDTH),
        policy_planes=POLICY_PLANES,
        **options,
    )


def tiny_config(**changes: object) -> TrainConfig:
    values: dict[str, object] = {
        "variant": "synthetic",
        "net": tiny_net(),
        "data": DataConfig(stores=("nowhere",)),
        "steps": 40,
        "batch": 16,
        "lr_max": 0.2,
        "lr_min": 1e-4,
        "log_every": 5,
        "validate_every": 20,
        "checkpoint_every": 10,
        "threads": 1,
    }
    return TrainConfig.model_validate({**values, **changes})


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    return load_file(checkpoint / "model.safetensors") | {
        f"momentum.{name}": value
        for name, value in load_file(checkpoint / "optimiser.safetensors").items()
    }


def assert_same_bits(a: Path, b: Path) -> None:
    left, right = weights(a), weights(b)
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert torch.equal(value, right[name]), name
