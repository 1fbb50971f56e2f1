"""Settings of a training: what a user asks for, and the configuration made of it.

A setting that means the same in both is declared once, as a field of `Recipe` or `DataChoice`. From it
follow the option of `variant-ai train` (the field names it), its range and help, the field of
`TrainRequest`, the key of `config.json`, and its place in the model card. A setting that is chosen
for the user if left out is two fields: the wish in `TrainRequest`, the result in `TrainConfig`.

The `config.json` of a run directory is resolved: it has no defaults to fill in, no `auto` and no
budget of minutes, so that the same configuration on the same data gives the same net again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from variant_ai.core.data.game_record import Labels
from variant_ai.core.inference.interface import ModelInfo
from variant_ai.core.nets.interface import NetConfig
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.train.loop.optimisers import OPTIMISERS

Share = Annotated[float, Field(ge=0, le=1)]


def _option(
    flag: str,
    default: Any,
    meaning: str,
    *,
    usual: str = "",
    synonyms: Mapping[str, str] | None = None,
    **bounds: Any,
) -> Any:
    """Return a field that is an option of `variant-ai train`.

    flag: option and placeholder, `--size NAME=VALUE`. usual: what is taken without the option, if
    that is not `default`. synonyms: other words of the option for some values. bounds: least and
    greatest value, as in `pydantic.Field`.
    """
    extra: dict[str, Any] = {"option": flag}
    if usual:
        extra["usual"] = usual
    if synonyms:
        extra["synonyms"] = dict(synonyms)
    return Field(default, description=meaning, json_schema_extra=extra, **bounds)


class _Settings(BaseModel):
    """Base of all models here: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DataChoice(_Settings):
    """Settings of the data."""

    split: str = _option(
        "--split BY[:SHARE[:TEST]]",
        "",
        "what to validate on: group:0.05 (5 % of the games, a group of games on one side), game:0.1, "
        "year:2008, source:club*, none. A third part is left out altogether: year:2008:2009-",
        usual="group:0.05",
    )
    mirror: bool = _option("--mirror", False, "also train on every position mirrored left-right")
    labels: Labels = _option(
        "--labels",
        "move",
        "what the policy learns: the move played, or how often a search visited each move, in "
        "positions that have visits. A store keeps the policy targets of self-play as visits, so "
        "targets is another word for visits",
        synonyms={"targets": "visits"},
    )
    value_labels: str = _option(
        "--value-labels LABELS",
        "result",
        "what the value learns: result of the game, root (value of the search), mixed:0.25 (a quarter "
        "root value, the rest result), score (of the engine, through a logistic curve fitted to the "
        "results; score:180 names its scale in centipawns), or score:180:0.7 (seven tenths score, the "
        "rest result). Where one is unknown the other is learnt",
    )
    forget_move_number: float = _option(
        "--forget SHARE",
        0.0,
        "share of the samples whose move number restarts at 1, as in positions that graphical "
        "interfaces send",
        usual="0.1 if the encoding shows it",
        ge=0,
        le=1,
    )
    weights: tuple[float, ...] = ()
    """Relative shares of the stores in each batch; empty: all positions have the same weight."""


class DataConfig(DataChoice):
    """The data of a training."""

    stores: tuple[str, ...]
    """Paths of the stores trained on."""
    validation_stores: tuple[str, ...] = ()
    """Paths of stores validated on as a whole, instead of a split of the others."""
    hashes: tuple[str, ...] = ()
    """Content hash of each store, then of each validation store."""
    seed: int = 0
    """Seed of the split; the order of samples depends on the run's seed."""
    sides: str = ""
    """Digest of the games on each side of the split; empty before the stores are opened."""
    scores: str = ""
    """Digest of the scores trained on; empty if none are, or not known."""
    train_games: int = Field(default=0, ge=0)
    validation_games: int = Field(default=0, ge=0)
    train_positions: int = Field(default=0, ge=0)
    validation_positions: int = Field(default=0, ge=0)
    searched_positions: int = Field(default=0, ge=0)
    """Number of training positions with visits; 0 with the labels `move`."""
    valued_positions: int = Field(default=0, ge=0)
    """Number of training positions whose value label has a root value or score."""


class Recipe(_Settings):
    """Settings of the steps."""

    optimiser: str = _option(
        "--optimiser NAME",
        "nesterov",
        "rule of the steps; "
        + "; ".join(f"{name}: {known.about}" for name, known in OPTIMISERS.items()),
    )
    momentum: tuple[Share, Share] = _option(
        "--momentum LEAST GREATEST",
        (0.8, 0.95),
        "momentum at the greatest and at the least learning rate",
        usual="the variant's",
    )
    warmup: float = _option(
        "--warmup SHARE",
        0.15,
        "share of the steps in which the learning rate rises",
        gt=0,
        lt=1,
    )
    weight_decay: float = _option(
        "--weight-decay", 1e-4, "weight decay", usual="the variant's", ge=0
    )
    value_weight: float = _option(
        "--value-weight", 0.01, "weight α of the value loss", usual="the variant's", ge=0
    )
    plies_weight: float = _option(
        "--plies-weight", 0.01, "weight γ of the loss of the plies left", ge=0
    )
    clip: float = _option("--clip", 5.0, "greatest norm of a gradient", gt=0)
    spike: float = _option(
        "--spike",
        2.0,
        "return to the last checkpoint, as after a NaN, if the loss is above this multiple of the "
        "usual one (plus 1); 0: never",
        ge=0,
    )
    ema: float = _option(
        "--ema DECAY",
        0.0,
        "validate and keep a moving average of the weights, e.g. 0.999; 0: the last weights",
        ge=0,
        lt=1,
    )
    freeze: int = _option(
        "--freeze N",
        0,
        "with --from: the first N layers stay as they are (the stem, then block after block)",
        ge=0,
    )
    trainer: str = _option("--trainer NAME", "standard", "trainer: standard, or one of a plugin")
    compile: bool = _option(
        "--compile",
        False,
        "let torch compile the net first: a minute at the start, for faster steps",
    )
    seed: int = _option("--seed", 0, "seed of all random numbers", ge=0, le=2**63 - 1)
    final_limit: int | None = Field(default=None, ge=1)
    """Positions of the last validation; None: all."""


class TrainRequest(Recipe, DataChoice):
    """Wishes of a user. What is not given is chosen: by the spec, the machine or the budget."""

    spec: VariantSpec
    stores: tuple[Path, ...]
    validation_stores: tuple[Path, ...] = ()
    """Stores to validate on as a whole, instead of a split of `stores`."""
    split_seed: int = _option(
        "--split-seed",
        0,
        "which games or groups a share of a split is; --seed does not change it, so that runs with "
        "several seeds are measured on the same games",
        ge=0,
    )

    epochs: float | None = _option(
        "--epochs",
        None,
        "passes over the data",
        usual="the variant's, without --steps and --minutes",
        gt=0,
    )
    steps: int | None = _option("--steps", None, "steps of the optimiser", ge=1)
    minutes: float | None = _option(
        "--minutes",
        None,
        "plan as many steps as this time allows for the whole command, by measuring this machine. "
        "With --epochs or --steps, the smallest number of steps is used",
        gt=0,
    )
    started: float | None = None
    """`time.perf_counter()` at the start of the minutes; None: when the plan is made."""
    batch: int | None = _option(
        "--batch", None, "positions a step", usual="the variant's; on a CPU at most 256", ge=2
    )
    accumulate: int = _option(
        "--accumulate K",
        1,
        "compute the positions of a step in K parts one after the other, which takes a K-th of the "
        "memory",
        ge=1,
    )
    lr_max: float | None = _option(
        "--lr",
        None,
        "greatest learning rate",
        usual="the optimiser's; for SGD the variant's, scaled with the batch",
        gt=0,
    )
    lr_min: float | None = _option(
        "--lr-min", None, "least learning rate", usual="the variant's", ge=0
    )

    device: str = _option(
        "--device auto|cpu|cuda", "auto", "device for computing; auto uses a GPU if there is one"
    )
    precision: str = _option(
        "--precision auto|fp32|bf16",
        "auto",
        "number format of the tower; auto takes bf16 where the hardware multiplies it",
    )
    threads: int | None = _option(
        "--threads",
        None,
        "threads on the CPU",
        usual="one for each core; with --minutes only one, if that is faster",
        ge=1,
    )

    start_from: Path | None = _option(
        "--from RUN|CHECKPOINT|ONNX|packaged",
        None,
        "train the net of this run or file, or the one that comes with the variant, instead of a new "
        "one (fine-tuning); the learning rate is then 0.01/0.35 of the usual one by default",
    )
    normalise: bool = _option(
        "--no-normalise",
        True,
        "the net sees counts as they are, not divided by the spec's maxima",
    )
    net: str | None = _option(
        "--net NAME",
        None,
        "network (`variant-ai nets`)",
        usual="with --data risev2-mobile, on a CPU a smaller one",
    )
    head: str | None = _option("--head map|flat", None, "policy head", usual="the net's first")
    size: Mapping[str, Any] = {}
    """Options of the net: blocks, channels and others of its builder."""


class TrainConfig(Recipe):
    """A resolved training. Steps are optimiser steps."""

    version: Literal[1] = 1
    variant: str
    spec_hash: str = ""
    encoding_hash: str = ""
    spec: dict[str, Any] = Field(default_factory=dict)
    """The spec itself, so that a run can be read without the file it came from."""
    net: NetConfig
    data: DataConfig

    steps: int = Field(ge=1)
    begins_at: int = -1
    """Step at which a new course begins: recoveries before it no longer reduce the learning rate."""
    batch: int = Field(ge=1)
    lr_max: float = Field(gt=0)
    lr_min: float = Field(ge=0)
    micro_batches: int = Field(default=1, ge=1)
    """Number of parts of a step, computed one after the other or by several processes; each has its
    own batch norm statistics. Divides `batch`."""
    start_from: str = ""
    """Checkpoint or ONNX file whose weights the training starts with; empty: random weights."""

    device: str = "cpu"
    precision: Literal["fp32", "bf16"] = "fp32"
    threads: int = Field(default=0, ge=0)
    """Threads of torch on the CPU; 0: torch's default. Another number may change the last bits."""

    log_every: int = Field(default=50, ge=1)
    validate_every: int = Field(default=500, ge=1)
    validation_limit: int | None = Field(default=10_000, ge=1)
    """Positions of the validations during training; the last one uses `final_limit`."""
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


def model_info(config: TrainConfig, where: Path) -> ModelInfo:
    """Metadata of the net of a training; `where` it is, for messages."""
    spec = json.dumps(config.spec)
    return ModelInfo(str(where), config.variant, config.encoding_hash, spec=spec)


def run_spec(config: TrainConfig) -> VariantSpec:
    """The spec in a configuration."""
    return VariantSpec.model_validate_json(json.dumps(config.spec))
