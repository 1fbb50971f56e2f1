"""The configuration of a training: every number that decides what comes out.

A run directory holds it resolved (`config.json`): no default, no `auto`, no budget of minutes is
left to be decided, so the same configuration on the same data gives the same net again.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from variant_ai.core.data.game_record import Labels
from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import ModelInfo
from variant_ai.core.nets.interface import NetConfig
from variant_ai.core.spec.hashing import encoding_hash
from variant_ai.core.spec.schema import VariantSpec

CONFIG_VERSION = 1

Optimiser = Literal["nesterov", "adam", "muon"]
"""SGD with Nesterov momentum on one cycle; Adam at a constant rate with its published constants; or
Muon on one cycle (`muon.py`)."""


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
    sides: str = ""
    """Digest of which game is on which side of the split; empty before the stores were opened."""
    train_games: int = Field(default=0, ge=0)
    validation_games: int = Field(default=0, ge=0)
    train_positions: int = Field(default=0, ge=0)
    validation_positions: int = Field(default=0, ge=0)
    mirror: bool = False
    labels: Labels = "move"
    """What the policy learns: the move played, or the visits of a search where there are some."""
    searched_positions: int = Field(default=0, ge=0)
    """Training positions with visits; 0 with the labels `move`."""
    weights: tuple[float, ...] = ()
    """Relative shares of the stores in each batch; empty: every position counts alike."""
    forget_move_number: float = Field(default=0.0, ge=0, le=1)
    """Share of the training samples whose move number restarts at 1, as a position's does that a
    graphical interface sends by itself."""


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
    optimiser: Optimiser = "nesterov"
    lr_max: float = Field(gt=0)
    lr_min: float = Field(ge=0)
    momentum: tuple[float, float] = (0.8, 0.95)
    """(least, greatest); the least where the learning rate is greatest."""
    warmup: float = Field(default=0.15, gt=0, lt=1)
    """Share of the steps in which the learning rate climbs."""
    weight_decay: float = Field(default=1e-4, ge=0)
    value_weight: float = Field(default=0.01, ge=0)
    """α of the loss."""
    plies_weight: float = Field(default=0.01, ge=0)
    """Weight of the loss of `plies left`, of a net that tells them."""
    clip: float = Field(default=5.0, gt=0)
    """Greatest norm of a step's gradient."""
    spike: float = Field(default=2.0, ge=0)
    """A loss above this multiple of what is usual, plus one, sends the training back to its last
    checkpoint as a NaN does; 0 lets every number pass."""
    micro_batches: int = Field(default=1, ge=1)
    """Parts that the positions of a step are computed in, one after the other or by several
    processes; each has batch norm statistics of its own. Divides `batch`."""
    ema: float = Field(default=0.0, ge=0, lt=1)
    """Decay of the running mean of the weights that is validated and kept; 0 keeps the last."""
    trainer: str = "standard"
    """Name of the trainer, built in or of a plugin."""
    seed: int = 0

    start_from: str = ""
    """Checkpoint or ONNX file whose weights the training begins with; drawn at random where empty."""
    freeze: int = Field(default=0, ge=0)
    """How many first layers keep those weights: the stem, then block after block."""

    device: str = "cpu"
    precision: Literal["fp32", "bf16"] = "fp32"
    threads: int = Field(default=0, ge=0)
    """Of torch on the CPU; 0 leaves it to torch. Another number may change the last bits."""
    compile: bool = False
    """Whether torch compiles the net: a minute at the start, for faster steps."""

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


def own_spec(config: TrainConfig, spec: VariantSpec) -> VariantSpec:
    """The spec that the net of a training sees by where `spec` is meant (`ModelInfo.own_spec`)."""
    said = json.dumps(config.spec)
    return ModelInfo("", config.variant, config.encoding_hash, spec=said).own_spec(spec)


def require_spec(config: TrainConfig, spec: VariantSpec, where: str) -> None:
    """Raises DataError where a run or checkpoint is of another variant or encoding."""
    if config.variant != spec.variant:
        raise DataError(f"{where} was trained for {config.variant}, not for {spec.variant}")
    if config.encoding_hash != encoding_hash(spec):
        raise DataError(
            f"{where} was trained for another version of the {spec.variant} spec (encoding "
            f"{config.encoding_hash}, the spec now has {encoding_hash(spec)}); its planes or moves "
            "differ, so it must be trained again"
        )
