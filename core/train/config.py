"""The configuration of a training: every number that decides what comes out.

A run directory holds it resolved (`config.json`): no default, no `auto`, no budget of minutes is
left to be decided, so the same configuration on the same data gives the same net again.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from variant_ai.core.nets.interface import NetConfig

CONFIG_VERSION = 1


class DataConfig(BaseModel):
    """Where the positions come from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stores: tuple[str, ...]
    """Paths of the stores trained on."""
    validation_stores: tuple[str, ...] = ()
    """Paths of stores validated on as a whole, instead of a split of the others."""
    hashes: tuple[str, ...] = ()
    """Content hash of each store, then of each validation store."""
    split: str = ""
    """How the games were divided, as given to `--split`."""
    seed: int = 0
    """Of the split; the order of samples has the run's."""
    train_games: int = Field(default=0, ge=0)
    validation_games: int = Field(default=0, ge=0)
    train_positions: int = Field(default=0, ge=0)
    validation_positions: int = Field(default=0, ge=0)
    mirror: bool = False


class TrainConfig(BaseModel):
    """A resolved training. Steps are optimiser steps; positions are counted singly."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    variant: str
    spec_hash: str = ""
    encoding_hash: str = ""
    spec: dict[str, Any] = Field(default_factory=dict)
    """The spec itself, so that a run is read without the file it came from."""
    net: NetConfig
    data: DataConfig

    steps: int = Field(ge=1)
    batch: int = Field(ge=1)
    lr_max: float = Field(gt=0)
    lr_min: float = Field(ge=0)
    momentum: tuple[float, float] = (0.8, 0.95)
    """(least, greatest); the least where the learning rate is greatest."""
    warmup: float = Field(default=0.15, gt=0, lt=1)
    """Share of the steps in which the learning rate climbs."""
    weight_decay: float = Field(default=1e-4, ge=0)
    value_weight: float = Field(default=0.01, ge=0)
    """α of the loss."""
    clip: float = Field(default=5.0, gt=0)
    """Greatest norm of a step's gradient."""
    seed: int = 0

    device: str = "cpu"
    precision: Literal["fp32", "bf16"] = "fp32"
    threads: int = Field(default=0, ge=0)
    """Of torch on the CPU; 0 leaves it to torch. Another number may change the last bits."""

    log_every: int = Field(default=50, ge=1)
    validate_every: int = Field(default=500, ge=1)
    validation_limit: int | None = Field(default=10_000, ge=1)
    """Positions of the validations under way; the last one takes `final_limit`."""
    final_limit: int | None = Field(default=None, ge=1)
    checkpoint_every: int = Field(default=500, ge=1)
    keep: int = Field(default=2, ge=1)
    """Checkpoints kept, the newest ones."""

    minutes: float | None = None
    """The budget the steps were planned for; nothing follows from it any more."""
    planned_rate: float | None = None
    """Positions a second measured for that plan."""
