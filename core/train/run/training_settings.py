"""The configuration of a training: every number that affects the result.

The `config.json` of a run directory is resolved: it has no defaults to fill in, no `auto` and no
budget of minutes, so that the same configuration on the same data gives the same net again.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from variant_ai.core.data.game_record import Labels
from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import ModelInfo
from variant_ai.core.nets.interface import NetConfig
from variant_ai.core.spec.hashing import encoding_hash
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.train.loop.optimisers import OPTIMISERS


class DataConfig(BaseModel):
    """The data of a training."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stores: tuple[str, ...]
    """Paths of the stores trained on."""
    validation_stores: tuple[str, ...] = ()
    """Paths of stores validated on as a whole, instead of a split of the others."""
    hashes: tuple[str, ...] = ()
    """Content hash of each store, then of each validation store."""
    split: str = ""
    """The split of the games, as given to `--split`."""
    seed: int = 0
    """Seed of the split; the order of samples depends on the run's seed."""
    sides: str = ""
    """Digest of the games on each side of the split; empty before the stores are opened."""
    train_games: int = Field(default=0, ge=0)
    validation_games: int = Field(default=0, ge=0)
    train_positions: int = Field(default=0, ge=0)
    validation_positions: int = Field(default=0, ge=0)
    mirror: bool = False
    labels: Labels = "move"
    """Labels of the policy: the move played, or the visits of a search if there are any."""
    searched_positions: int = Field(default=0, ge=0)
    """Number of training positions with visits; 0 with the labels `move`."""
    value_labels: str = "result"
    """Labels of the value, as `ValueLabels.parse` reads them; scores with their scale."""
    valued_positions: int = Field(default=0, ge=0)
    """Number of training positions whose value label has a root value or score."""
    weights: tuple[float, ...] = ()
    """Relative shares of the stores in each batch; empty: all positions have the same weight."""
    forget_move_number: float = Field(default=0.0, ge=0, le=1)
    """Share of the training samples whose move number restarts at 1, as in a single position that a
    graphical interface sends."""


class TrainConfig(BaseModel):
    """A resolved training. Steps are optimiser steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    variant: str
    spec_hash: str = ""
    encoding_hash: str = ""
    spec: dict[str, Any] = Field(default_factory=dict)
    """The spec itself, so that a run can be read without the file it came from."""
    net: NetConfig
    data: DataConfig

    steps: int = Field(ge=1)
    batch: int = Field(ge=1)
    optimiser: str = "nesterov"
    """Name in `OPTIMISERS`."""
    lr_max: float = Field(gt=0)
    lr_min: float = Field(ge=0)
    momentum: tuple[float, float] = (0.8, 0.95)
    """(least, greatest); it is least when the learning rate is greatest."""
    warmup: float = Field(default=0.15, gt=0, lt=1)
    """Share of the steps in which the learning rate rises."""
    weight_decay: float = Field(default=1e-4, ge=0)
    value_weight: float = Field(default=0.01, ge=0)
    """α of the loss."""
    plies_weight: float = Field(default=0.01, ge=0)
    """Weight γ of the loss of `plies left`, for a net that predicts them."""
    clip: float = Field(default=5.0, gt=0)
    """Greatest norm of a step's gradient."""
    spike: float = Field(default=2.0, ge=0)
    """A loss above this multiple of the usual one, plus one, makes the training return to its last
    checkpoint, as a NaN does; 0 accepts every number."""
    micro_batches: int = Field(default=1, ge=1)
    """Number of parts of a step, computed one after the other or by several processes; each has its
    own batch norm statistics. Divides `batch`."""
    ema: float = Field(default=0.0, ge=0, lt=1)
    """Decay of the moving average of the weights that is validated and kept; 0 keeps the last."""
    trainer: str = "standard"
    """Name of the trainer, built in or of a plugin."""
    seed: int = 0

    start_from: str = ""
    """Checkpoint or ONNX file whose weights the training starts with; empty: random weights."""
    freeze: int = Field(default=0, ge=0)
    """Number of first layers that keep those weights: the stem, then block after block."""

    device: str = "cpu"
    precision: Literal["fp32", "bf16"] = "fp32"
    threads: int = Field(default=0, ge=0)
    """Threads of torch on the CPU; 0: torch's default. Another number may change the last bits."""
    compile: bool = False
    """Compile the net with torch: a minute at the start, for faster steps."""

    log_every: int = Field(default=50, ge=1)
    validate_every: int = Field(default=500, ge=1)
    validation_limit: int | None = Field(default=10_000, ge=1)
    """Positions of the validations during training; the last one uses `final_limit`."""
    final_limit: int | None = Field(default=None, ge=1)
    checkpoint_every: int = Field(default=500, ge=1)
    keep: int = Field(default=2, ge=1)
    """Number of newest checkpoints to keep."""

    minutes: float | None = None
    """The budget that the steps were planned for; informational only."""
    planned_rate: float | None = None
    """Positions a second measured for that plan."""

    @field_validator("optimiser")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in OPTIMISERS:
            raise ValueError(f"accepted are {', '.join(OPTIMISERS)}")
        return name


def own_spec(config: TrainConfig, spec: VariantSpec) -> VariantSpec:
    """The spec that the net of a training uses if the user named `spec` (`ModelInfo.own_spec`)."""
    own = json.dumps(config.spec)
    return ModelInfo("", config.variant, config.encoding_hash, spec=own).own_spec(spec)


def run_spec(config: TrainConfig) -> VariantSpec:
    """The spec in a configuration."""
    return VariantSpec.model_validate_json(json.dumps(config.spec))


def require_spec(config: TrainConfig, spec: VariantSpec, where: str) -> None:
    """Raise DataError if a run or checkpoint is of another variant or encoding."""
    if config.variant != spec.variant:
        raise DataError(f"{where} was trained for {config.variant}, not for {spec.variant}")
    if config.encoding_hash != encoding_hash(spec):
        raise DataError(
            f"{where} was trained for another version of the {spec.variant} spec (encoding "
            f"{config.encoding_hash}, the spec now has {encoding_hash(spec)}); its planes or moves "
            "differ, so it must be trained again"
        )
