"""Turning a request into a resolved configuration: open the stores, split the games, fill in defaults, and
turn a budget of minutes into steps by measuring this machine.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel

from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError, SpecError, VariantAIError
from variant_ai.core.factories import TRAINERS
from variant_ai.core.nets.interface import (
    NetConfig,
    choose_head,
    configure_for,
    find_builder,
    spec_metadata,
)
from variant_ai.core.nets.network import auxiliary_outputs, first_layers
from variant_ai.core.rules.interface import Rules
from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.loop.devices import ALONE, Workers, choose_device, choose_precision
from variant_ai.core.train.loop.optimisers import FINE_TUNE_RATE, find_optimiser
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai.core.train.run.initial_weights import Start, find_start
from variant_ai.core.train.run.training_data import (
    NO_SPLIT,
    OpenData,
    Prepared,
    Sampling,
    TrainSource,
    open_data,
    parse_split,
)
from variant_ai.core.train.run.training_settings import (
    DataChoice,
    DataConfig,
    Recipe,
    TrainConfig,
    TrainRequest,
)

DEFAULT_SPLIT = "group:0.05"
GPU_NET = "risev2-mobile"
CPU_NET, CPU_SIZE = "risev2-mobile-small", {"blocks": 5, "channels": 64}
CPU_BATCH = 256
PROBE_SECONDS = 3.0
CLOSING_SECONDS = 15.0
"""Part of a budget that is reserved for export, report and the like."""
VALIDATIONS = 10
"""Number of validations during training, evenly spread."""
FORGOTTEN_NUMBERS = 0.1
"""Share of the samples whose move number restarts, for encodings that contain it."""


def prepare(
    request: TrainRequest,
    *,
    rules: Rules | None = None,
    workers: Workers = ALONE,
    report: Callable[[str], None] = lambda text: None,
) -> Prepared:
    """Open the stores and resolve the request; with a budget of minutes, measure the machine (and
    pass a sentence about it to `report`).

    Everything that can be checked without the data is checked before the stores are opened. `rules`
    are needed if the spec's engine is `fairy`.

    Raises UnknownNameError, DataError, VariantAIError if something in the request does not fit.
    """
    spec, recipe = request.spec, request.spec.training
    device = choose_device(request.device)
    precision = choose_precision(request.precision, device)
    optimiser = find_optimiser(request.optimiser)
    start = None if request.start_from is None else find_start(request.start_from)
    net = configure(request, device) if start is None else _net_of(start, request)
    encoder = Encoder(spec, net.head)
    on_cpu = device.type == "cpu"
    batch = request.batch or (min(CPU_BATCH, recipe.batch) if on_cpu else recipe.batch)
    micro_batches = request.accumulate * workers.world
    _check(request, net, encoder, batch, micro_batches, workers)
    fine_tuning = FINE_TUNE_RATE if start is not None else 1.0
    lr_max = request.lr_max or optimiser.default_rate(recipe, batch, fine_tuning)
    lr_min = min(recipe.lr_min, lr_max) if request.lr_min is None else request.lr_min
    if lr_min > lr_max:
        raise VariantAIError(
            f"the least learning rate, {lr_min:g}, is above the greatest, {lr_max:g}"
        )
    data = _data_of(request, encoder)
    sampling = Sampling(batch, request.seed, rules, workers, micro_batches)
    opened = open_data(spec, encoder, data, sampling)
    _report_shared_games(opened, report)
    train = opened.train
    steps = _steps_of(request, float(recipe.epochs), train.samples_per_epoch / batch)
    draft = TrainConfig(
        **spec_metadata(spec),
        net=net,
        data=opened.data,
        steps=steps or 1_000_000,
        batch=batch,
        lr_max=lr_max,
        lr_min=lr_min,
        device=str(device),
        precision=precision,
        threads=request.threads or (torch.get_num_threads() if on_cpu else 0),
        micro_batches=micro_batches,
        start_from="" if start is None else str(start.path.resolve()),
        validation_limit=4096 if on_cpu else 16_384,
        **{**recipe.model_dump(include=set(Recipe.model_fields)), **given_of(request, Recipe)},
    )
    if request.minutes is not None:
        report(f"Measuring this machine, to plan a training of {request.minutes:g} min ...")
        threads = (1,) if on_cpu and request.threads is None else ()
        begun = time.perf_counter() if request.started is None else request.started
        draft = _within_minutes(
            draft, request.minutes, begun, steps, train, opened.validation, threads
        )
    return Prepared(**vars(opened), config=_with_intervals(draft), encoder=encoder)


def _data_of(request: TrainRequest, encoder: Encoder) -> DataConfig:
    """Return which games to train and to validate on, with all that the request left open."""
    if request.validation_stores and (request.split or NO_SPLIT) != NO_SPLIT:
        raise VariantAIError(
            f"the split {request.split} holds games back to validate on, and validation stores are given "
            "as well; use one of them"
        )
    split = _split_of(request)
    shows_number = encoder.compiled and any(
        plane.item == "move_number" for plane in encoder.input_planes
    )
    chosen = {"forget_move_number": FORGOTTEN_NUMBERS if shows_number else 0.0}
    return DataConfig(
        stores=_paths(request.stores),
        validation_stores=_paths(request.validation_stores),
        seed=request.split_seed,
        **{**chosen, **given_of(request, DataChoice), "split": split},
    )


def _split_of(request: TrainRequest) -> str:
    return request.split or (NO_SPLIT if request.validation_stores else DEFAULT_SPLIT)


def _report_shared_games(opened: OpenData, report: Callable[[str], None]) -> None:
    """Warn of validation games that are also trained on. Raises DataError if all of them are."""
    if not opened.shared:
        return
    if opened.shared == opened.data.validation_games:
        raise DataError(
            f"all games of {', '.join(opened.data.validation_stores)} are also trained on; validate "
            "on other games, or hold some back with a split"
        )
    of = counted(opened.data.validation_games, "validation game")
    report(f"Warning: {opened.shared:,} of the {of} are also trained on.")


def _steps_of(request: TrainRequest, usual_epochs: float, per_epoch: float) -> int | None:
    """Return the steps that the request sets; None if it sets only minutes. per_epoch: steps of an epoch."""
    epochs, steps = request.epochs, request.steps
    if epochs is None and steps is None and request.minutes is None:
        epochs = usual_epochs
    if epochs is None:
        return steps
    by_epochs = max(1, round(epochs * per_epoch))
    return by_epochs if steps is None else min(steps, by_epochs)


def given_of(request: TrainRequest, model: type[BaseModel]) -> dict[str, Any]:
    """Settings of `model` that the request gives."""
    return request.model_dump(include=set(model.model_fields), exclude_unset=True)


def configure(request: TrainRequest, device: torch.device) -> NetConfig:
    """The configuration of the requested net, or of the default of the device: the paper's net on a
    GPU, a small one on a CPU (where the paper's would train on about fifty positions a second)."""
    name, size = request.net, dict(request.size)
    if name is None:
        name = GPU_NET if device.type == "cuda" else CPU_NET
        if device.type == "cpu":
            size = {**CPU_SIZE, **size}
    builder = find_builder(name)
    encoder = Encoder(request.spec, choose_head(builder, request.head))
    net = configure_for(name, encoder, **size)
    if request.normalise:
        return net
    scale = tuple(float(value) for value in encoder.input.scale)
    return net.model_copy(update={"input_scale": scale})


def _size_option(name: str) -> str:
    """The option that gives a size of a net."""
    own = name in ("blocks", "channels", "wdl", "plies_left")
    return f"--{name.replace('_', '-')}" if own else f"--size {name}"


def _net_of(start: Start, request: TrainRequest) -> NetConfig:
    """The net to continue with. Raises DataError if it is of another encoding, VariantAIError if the
    request names a net as well."""
    given = [
        *(["--net"] if request.net else []),
        *(["--head"] if request.head else []),
        *(["--no-normalise"] if not request.normalise else []),
        *(_size_option(name) for name in request.size),
    ]
    if given:
        raise VariantAIError(
            f"a training that starts from a net keeps it; remove {', '.join(given)}"
        )
    return start.net(request.spec)


def _check(
    request: TrainRequest,
    net: NetConfig,
    encoder: Encoder,
    batch: int,
    micro_batches: int,
    workers: Workers,
) -> None:
    """Check everything that does not depend on the data. Raises VariantAIError."""
    TRAINERS.load(request.trainer)
    if batch % micro_batches or batch < 2 * micro_batches:
        what = f"{request.accumulate} parts"
        if workers.world > 1:
            what += f" in each of {workers.world} processes"
        raise VariantAIError(
            f"a batch of {counted(batch, 'position')} cannot be computed in {what} of equal size with two "
            "positions or more; choose another --batch"
        )
    if workers.world > 1 and request.minutes is not None:
        raise VariantAIError(
            "minutes can be planned for one process only; with several, use --steps or --epochs"
        )
    cycle = [
        f"--{name.replace('_', '-')}"
        for name in ("lr_min", "momentum", "warmup")
        if name in request.model_fields_set
    ]
    optimiser = find_optimiser(request.optimiser)
    if optimiser.constant_momentum is not None and cycle:
        raise VariantAIError(
            f"{optimiser.title} has a constant learning rate and its own momentum; remove "
            f"{', '.join(cycle)}, or choose an optimiser with a cycle of the rate"
        )
    least, greatest = request.momentum
    if least > greatest:
        raise VariantAIError(f"the least momentum, {least:g}, is above the greatest, {greatest:g}")
    if request.freeze and request.start_from is None:
        raise VariantAIError("layers can be frozen only in a net to start from (--from)")
    if request.weights and len(request.weights) != len(request.stores):
        raise DataError(
            f"{counted(len(request.weights), 'weight')} for {counted(len(request.stores), 'store')}"
        )
    if request.mirror and not encoder.symmetric:
        raise SpecError(
            f"{request.spec.variant} has no left-right symmetry, so positions cannot be mirrored"
        )
    if request.compile:
        require_compiler(choose_device(request.device))
    for path in (*request.stores, *request.validation_stores):
        if not path.is_file():
            raise DataError(f"there is no game store {path}")
    plan = parse_split(_split_of(request), request.split_seed)
    if "split_seed" in request.model_fields_set and (plan is None or plan.named):
        place = "without a split" if plan is None else f"in the split {plan}"
        raise VariantAIError(f"--split-seed has no effect {place}; it is for splits by shares")
    with torch.random.fork_rng(devices=[]):
        built = net.build()
    first_layers(built, request.freeze)
    if "plies_weight" in request.model_fields_set and "plies_left" not in auxiliary_outputs(built):
        raise VariantAIError(
            "the net does not predict the plies left, so their loss has no weight; remove --plies-weight, or "
            "add --plies-left"
        )


def require_compiler(device: torch.device) -> None:
    """Raise VariantAIError if there is no compiler for torch.compile: C++ for CPUs, C for GPUs, where
    the launchers of kernels are compiled as C."""
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
) -> TrainConfig:
    """Plan as many steps as the minutes allow, from the speed of a short trial on this machine.

    `threads` are numbers of threads to try besides the draft's: if other programs use the cores too,
    one thread can be ten times as fast as two that wait for each other.
    """
    budget = 60 * minutes
    trials = {}
    for number in sorted({draft.threads, *threads}):
        trial = draft.model_copy(update={"threads": number})
        probe = Trainer(trial, train, validation, Path(), tensorboard=False)
        trials[number] = probe.time_steps(min(PROBE_SECONDS, 0.05 * budget))
    chosen = min(trials, key=lambda number: trials[number][0])
    step, predict = trials[chosen]
    limits: dict[str, int | None] = {}
    validating = 0.0
    if validation is not None:
        during = _affordable(validation.positions, draft.validation_limit, predict, 0.005 * budget)
        last = _affordable(validation.positions, draft.final_limit, predict, 0.1 * budget)
        validating = (during * VALIDATIONS + last) * predict
        limits["validation_limit"] = during
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


def _affordable(positions: int, limit: int | None, each: float, seconds: float) -> int:
    """Number of positions that can be validated in `seconds`, at most `limit` (None: all); at
    least a few hundred, because fewer mean nothing."""
    most = min(positions, limit or positions)
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
