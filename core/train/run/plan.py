"""From what was asked to a resolved configuration: stores and splits opened, defaults filled in,
a budget of minutes turned into steps by measuring this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from variant_ai.core.data.game_record import Labels
from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError, SpecError, VariantAIError
from variant_ai.core.nets.interface import (
    NetConfig,
    NetworkBuilder,
    configure_net,
    find_builder,
)
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.hashing import encoding_hash, spec_hash
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.train.loop.device import choose_device, choose_precision
from variant_ai.core.train.loop.distributed import ALONE, Workers
from variant_ai.core.train.loop.optimisers import frozen_layers
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai.core.train.run.initial_weights import Start, find_start
from variant_ai.core.train.run.training_data import (
    NO_SPLIT,
    OpenData,
    Prepared,
    TrainSource,
    open_data,
    parse_split,
    seen_positions,
)
from variant_ai.core.train.run.training_settings import DataConfig, Optimiser, TrainConfig

__all__ = [
    "OpenData",
    "Prepared",
    "TrainRequest",
    "configure",
    "open_data",
    "parse_split",
    "prepare",
    "seen_positions",
]

DEFAULT_SPLIT = "group:0.05"
GPU_NET = "risev2-mobile"
CPU_NET, CPU_SIZE = "risev2-mobile-small", {"blocks": 5, "channels": 64}
CPU_BATCH = 256
ADAM_RATE = 1e-3
"""Of Adam by default, whatever the batch (paper 000, section 4.1)."""
MUON_RATE = 0.05
"""Of Muon by default, whatever the batch: the length of its steps does not depend on it."""
PROBE_SECONDS = 3.0
CLOSING_SECONDS = 15.0
"""Kept of a budget for export, the report and the like."""
VALIDATIONS = 10
"""Validations under way, evenly spread."""
FINE_TUNE_RATE = 0.01 / 0.35
"""Greatest learning rate of fine-tuning, as a share of the spec's (paper 000, section 8)."""
FORGOTTEN_NUMBERS = 0.1
"""Share of the samples whose move number restarts, of encodings that show it."""


@dataclass(frozen=True)
class TrainRequest:
    """What a user asks for; None leaves it to the spec, the machine or the budget."""

    spec: VariantSpec
    stores: tuple[Path, ...]
    weights: tuple[float, ...] = ()
    """Relative shares of the stores in each batch; empty: every position counts alike."""
    validation_stores: tuple[Path, ...] = ()
    """Validated on as a whole, instead of a split of `stores`."""
    split: str | None = None
    split_seed: int = 0
    """Of the shares of a split; another than the training's, so that runs of several seeds are
    measured on the same games."""
    net: str | None = None
    head: str | None = None
    size: Mapping[str, Any] = field(default_factory=dict)
    normalise: bool = True
    """Whether the net sees counts divided by the spec's maxima, or as they are."""
    start_from: Path | None = None
    """Run directory, checkpoint or ONNX file whose net the training goes on with, in place of a new
    one."""
    freeze: int = 0
    """How many of its first layers stay as they are."""
    epochs: float | None = None
    steps: int | None = None
    minutes: float | None = None
    started: float | None = None
    """`time.perf_counter()` at which the minutes began; None: when the plan is made."""
    batch: int | None = None
    accumulate: int = 1
    """Parts of a step that each process computes one after the other."""
    optimiser: Optimiser = "nesterov"
    lr_max: float | None = None
    lr_min: float | None = None
    momentum: tuple[float, float] | None = None
    warmup: float | None = None
    weight_decay: float | None = None
    value_weight: float | None = None
    plies_weight: float | None = None
    clip: float | None = None
    spike: float | None = None
    ema: float = 0.0
    mirror: bool = False
    labels: Labels = "move"
    """What the policy learns: the move played, or the visits of a search where there are some."""
    forget_move_number: float | None = None
    seed: int = 0
    device: str = "auto"
    precision: str = "auto"
    threads: int | None = None
    compile: bool = False
    final_limit: int | None = None


def prepare(
    request: TrainRequest,
    *,
    rules: Rules | None = None,
    builders: Mapping[str, NetworkBuilder] | None = None,
    workers: Workers = ALONE,
    say: Callable[[str], None] = lambda text: None,
) -> Prepared:
    """Opens the stores and resolves the request; with a budget of minutes, measures the machine,
    and tells so by `say`.

    Everything that can be refused without the data is refused before they are opened. `rules` are
    needed where the spec's engine is `fairy`.

    Raises UnknownNameError, DataError, VariantAIError where something asked for does not fit.
    """
    spec, recipe = request.spec, request.spec.training
    device = choose_device(request.device)
    precision = choose_precision(request.precision, device)
    start = None if request.start_from is None else find_start(request.start_from)
    net = (
        configure(request, device, builders) if start is None else _net_of(start, request, builders)
    )
    encoder = Encoder(spec, net.head)
    on_cpu = device.type == "cpu"
    batch = request.batch or (min(CPU_BATCH, recipe.batch) if on_cpu else recipe.batch)
    micro_batches = request.accumulate * workers.world
    _check(request, net, encoder, batch, micro_batches, workers, builders)
    # The published rate belongs to the published batch; the step is the sum over a batch.
    gentler = FINE_TUNE_RATE if start is not None else 1.0
    rates = {
        "nesterov": gentler * recipe.lr_max * batch / recipe.batch,
        "adam": ADAM_RATE,
        "muon": gentler * MUON_RATE,
    }
    lr_max = request.lr_max or rates[request.optimiser]
    lr_min = min(recipe.lr_min, lr_max) if request.lr_min is None else request.lr_min
    if lr_min > lr_max:
        raise VariantAIError(
            f"the least learning rate, {lr_min:g}, is above the greatest, {lr_max:g}"
        )
    split = request.split or (NO_SPLIT if request.validation_stores else DEFAULT_SPLIT)
    shows_number = encoder.compiled and any(
        plane.item == "move_number" for plane in encoder.input_planes
    )
    data = DataConfig(
        stores=_paths(request.stores),
        weights=request.weights,
        validation_stores=_paths(request.validation_stores),
        split=split,
        seed=request.split_seed,
        mirror=request.mirror,
        labels=request.labels,
        forget_move_number=_or(
            request.forget_move_number, FORGOTTEN_NUMBERS if shows_number else 0.0
        ),
    )
    opened = open_data(
        spec,
        encoder,
        data,
        batch=batch // micro_batches,
        seed=request.seed,
        rules=rules,
        workers=workers,
        micro_batches=micro_batches,
    )
    train, validation = opened.train, opened.validation
    per_epoch = train.samples_per_epoch / batch
    epochs = request.epochs
    if epochs is None and request.steps is None and request.minutes is None:
        epochs = float(recipe.epochs)
    steps = request.steps
    if epochs is not None:
        by_epochs = max(1, round(epochs * per_epoch))
        steps = by_epochs if steps is None else min(steps, by_epochs)
    draft = TrainConfig(
        variant=spec.variant,
        spec_hash=spec_hash(spec),
        encoding_hash=encoding_hash(spec),
        spec=json.loads(spec.model_dump_json(by_alias=True, exclude_defaults=True)),
        net=net,
        data=opened.config,
        steps=steps or 1_000_000,
        batch=batch,
        optimiser=request.optimiser,
        lr_max=lr_max,
        lr_min=lr_min,
        momentum=request.momentum or recipe.momentum,
        weight_decay=_or(request.weight_decay, recipe.weight_decay),
        value_weight=_or(request.value_weight, recipe.value_weight),
        seed=request.seed,
        device=str(device),
        precision=precision,
        threads=request.threads or (torch.get_num_threads() if on_cpu else 0),
        compile=request.compile,
        micro_batches=micro_batches,
        ema=request.ema,
        start_from="" if start is None else str(start.path.resolve()),
        freeze=request.freeze,
        validation_limit=4096 if on_cpu else 16_384,
        final_limit=request.final_limit,
        **{
            name: value
            for name in ("warmup", "clip", "spike", "plies_weight")
            if (value := getattr(request, name)) is not None
        },
    )
    if request.minutes is not None:
        say(f"Measuring this machine, to plan {request.minutes:g} minutes ...")
        threads = (1,) if on_cpu and request.threads is None else ()
        begun = time.perf_counter() if request.started is None else request.started
        draft = _within_minutes(
            draft, request.minutes, begun, steps, train, validation, threads, builders
        )
    return opened.prepared(_with_intervals(draft), encoder)


def configure(
    request: TrainRequest, device: torch.device, builders: Mapping[str, NetworkBuilder] | None
) -> NetConfig:
    """The net asked for, or the default of the device: the paper's on a GPU, a small one on a CPU
    (the paper's would see some fifty positions a second there)."""
    name, size = request.net, dict(request.size)
    if name is None:
        name = GPU_NET if device.type == "cuda" else CPU_NET
        if device.type == "cpu":
            size = {**CPU_SIZE, **size}
    head = request.head
    encoder = Encoder(request.spec, "flat" if head == "flat" else "map")
    planes, height, width = encoder.shape
    policy_planes = encoder.policy_shape[0]

    def configured(actions: int | None) -> NetConfig:
        return configure_net(
            name,
            planes=planes,
            board=(height, width),
            policy_planes=policy_planes,
            actions=actions,
            head=head,
            builders=builders,
            **size,
        )

    flat = head == "flat" or (head is None and find_builder(name, builders).heads[0] == "flat")
    net = configured(Encoder(request.spec, "flat").actions if flat else None)
    if request.normalise:
        return net
    scale = tuple(float(value) for value in encoder.input.scale)
    return net.model_copy(update={"input_scale": scale})


def _net_of(
    start: Start, request: TrainRequest, builders: Mapping[str, NetworkBuilder] | None
) -> NetConfig:
    """The net to go on with. Raises DataError where it is of another encoding, VariantAIError where
    the request names a net too."""
    if request.net or request.head or request.size or not request.normalise:
        raise VariantAIError(
            "a training that starts from a net keeps it: name no net, head or size beside it"
        )
    return start.net(request.spec, builders)


def _check(
    request: TrainRequest,
    net: NetConfig,
    encoder: Encoder,
    batch: int,
    micro_batches: int,
    workers: Workers,
    builders: Mapping[str, NetworkBuilder] | None,
) -> None:
    """Raises VariantAIError for what cannot be done, whatever the data."""
    if batch % micro_batches or batch < 2 * micro_batches:
        what = f"{request.accumulate} parts"
        if workers.world > 1:
            what += f" in each of {workers.world} processes"
        raise VariantAIError(
            f"a batch of {batch} positions cannot be computed in {what} of two positions or more, "
            "all equal; another --batch can"
        )
    if workers.world > 1 and request.minutes is not None:
        raise VariantAIError(
            "minutes are planned by measuring one process; give several of them --steps or --epochs"
        )
    cycle = [
        f"--{name.replace('_', '-')}"
        for name in ("lr_min", "momentum", "warmup")
        if getattr(request, name) is not None
    ]
    if request.optimiser == "adam" and cycle:
        raise VariantAIError(
            f"Adam has a constant rate and momenta of its own; {', '.join(cycle)} belongs to the "
            "cycle of the other optimisers"
        )
    if request.momentum and request.momentum[0] > request.momentum[1]:
        least, greatest = request.momentum
        raise VariantAIError(f"the least momentum, {least:g}, is above the greatest, {greatest:g}")
    if request.freeze and request.start_from is None:
        raise VariantAIError("layers can be frozen only with the weights of a net to start from")
    if request.weights and len(request.weights) != len(request.stores):
        raise DataError(f"{len(request.weights)} weights for {len(request.stores)} stores")
    if request.mirror and not encoder.symmetric:
        raise SpecError(
            f"{request.spec.variant} has no left-right symmetry, so positions cannot be mirrored"
        )
    if request.compile:
        require_compiler(choose_device(request.device))
    for path in (*request.stores, *request.validation_stores):
        if not path.is_file():
            raise DataError(f"there is no game store {path}")
    parse_split(request.split or DEFAULT_SPLIT, request.split_seed)
    with torch.device("meta"):  # shapes only: no weights are drawn
        frozen_layers(net.build(builders), request.freeze)


def require_compiler(device: torch.device) -> None:
    """Raises VariantAIError where torch.compile has nothing to compile with: C++ for processors,
    and what launches the code of a GPU is compiled as C."""
    variable, usual = ("CC", "gcc") if device.type == "cuda" else ("CXX", "g++")
    others = ("gcc", "clang", "cc") if device.type == "cuda" else ("g++", "clang++", "cl")
    if not any(map(shutil.which, (os.environ.get(variable, usual), *others))):
        language = "C" if device.type == "cuda" else "C++"
        raise VariantAIError(
            f"--compile needs a {language} compiler on {device.type} ({usual}, or the one that "
            f"{variable} names)"
        )


def _within_minutes(
    draft: TrainConfig,
    minutes: float,
    begun: float,
    at_most: int | None,
    train: TrainSource,
    validation: Sampler | None,
    threads: Sequence[int],
    builders: Mapping[str, NetworkBuilder] | None,
) -> TrainConfig:
    """As many steps as the minutes allow, by the rates of a short trial on this machine.

    `threads` are numbers of threads to try beside the draft's own: where other programs use the
    cores too, one thread can be ten times as fast as two that wait for each other.
    """
    budget = 60 * minutes
    trials = {}
    for number in sorted({draft.threads, *threads}):
        trial = draft.model_copy(update={"threads": number})
        probe = Trainer(trial, train, validation, Path(), builders=builders, tensorboard=False)
        trials[number] = probe.time_steps(min(PROBE_SECONDS, 0.05 * budget))
    chosen = min(trials, key=lambda number: trials[number][0])
    step, predict = trials[chosen]
    limits: dict[str, int | None] = {}
    validating = 0.0
    if validation is not None:
        under_way = _affordable(
            validation.positions, draft.validation_limit, predict, 0.005 * budget
        )
        last = _affordable(validation.positions, draft.final_limit, predict, 0.1 * budget)
        validating = (under_way * VALIDATIONS + last) * predict
        limits["validation_limit"] = under_way
        limits["final_limit"] = None if last == validation.positions else last
    spent = time.perf_counter() - begun
    left = max(0.25 * budget, budget - CLOSING_SECONDS - spent - validating)
    steps = max(1, int(left / step))
    return draft.model_copy(
        update={
            **limits,
            "threads": chosen,
            "steps": steps if at_most is None else min(steps, at_most),
            "minutes": minutes,
            "planned_rate": round(draft.batch / step, 1),
        }
    )


def _affordable(positions: int, wanted: int | None, each: float, seconds: float) -> int:
    """How many of the wanted positions (None: all) can be validated in so many seconds; a few
    hundred in any case, as fewer say nothing."""
    most = min(positions, wanted or positions)
    return min(most, max(256, int(seconds / each)))


def _with_intervals(config: TrainConfig) -> TrainConfig:
    steps = config.steps
    return config.model_copy(
        update={
            "log_every": max(1, min(steps // 60, 500)),
            "validate_every": max(1, -(-steps // VALIDATIONS)),
            "checkpoint_every": max(1, min(-(-steps // 20), 2000)),
        }
    )


def _paths(paths: Sequence[Path]) -> tuple[str, ...]:
    return tuple(str(path.resolve()) for path in paths)


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
