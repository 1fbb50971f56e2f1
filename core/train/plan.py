"""From what was asked to a resolved configuration: stores and splits opened, defaults filled in,
a budget of minutes turned into steps by measuring this machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from variant_ai.core.data.sampler import Sampler
from variant_ai.core.data.split import By, SplitPlan, shared_prefix, split_games
from variant_ai.core.data.store import Store
from variant_ai.core.encoding import Encoder
from variant_ai.core.nets.interface import NetConfig, NetworkBuilder, configure_net
from variant_ai.core.rules.interface import Rules
from variant_ai.core.train.config import DataConfig, TrainConfig
from variant_ai.core.train.device import choose_device, choose_precision
from variant_ai.core.train.trainer import Trainer
from variant_ai.specs.errors import DataError, UnknownNameError
from variant_ai.specs.hashing import encoding_hash, spec_hash
from variant_ai.specs.schema import VariantSpec

DEFAULT_SPLIT = "group:0.05"
NO_SPLIT = "none"
GPU_NET = "risev2-mobile"
CPU_NET, CPU_SIZE = "risev2-mobile-small", {"blocks": 5, "channels": 64}
CPU_BATCH = 256
PROBE_SECONDS = 3.0
CLOSING_SECONDS = 6.0
"""Kept of a budget for export, figures and the like."""
VALIDATIONS = 10
"""Validations under way, evenly spread."""


@dataclass(frozen=True)
class TrainRequest:
    """What a user asks for; None leaves it to the spec, the machine or the budget."""

    spec: VariantSpec
    stores: tuple[Path, ...]
    validation_stores: tuple[Path, ...] = ()
    """Validated on as a whole, instead of a split of `stores`."""
    split: str | None = None
    net: str | None = None
    head: str | None = None
    size: Mapping[str, Any] = field(default_factory=dict)
    epochs: float | None = None
    steps: int | None = None
    minutes: float | None = None
    started: float | None = None
    """`time.perf_counter()` at which the minutes began; None: when the plan is made."""
    batch: int | None = None
    lr_max: float | None = None
    lr_min: float | None = None
    momentum: tuple[float, float] | None = None
    warmup: float | None = None
    weight_decay: float | None = None
    value_weight: float | None = None
    clip: float | None = None
    mirror: bool = False
    seed: int = 0
    device: str = "auto"
    precision: str = "auto"
    threads: int | None = None
    final_limit: int | None = None


@dataclass(frozen=True)
class Prepared:
    """A training ready to run."""

    config: TrainConfig
    encoder: Encoder
    train: Sampler
    validation: Sampler | None
    validation_games: tuple[NDArray[np.int64], ...] = ()
    """Indices of the games validated on, one array per store that holds them."""
    seen: NDArray[np.bool_] | None = None
    """[N] of the validation's positions in stored order: met in training with the same move."""


@dataclass(frozen=True)
class OpenData:
    """Stores opened and split."""

    config: DataConfig
    """With hashes and sizes filled in."""
    train: Sampler
    validation: Sampler | None
    validation_games: tuple[NDArray[np.int64], ...]
    seen: NDArray[np.bool_] | None

    def prepared(self, config: TrainConfig, encoder: Encoder) -> Prepared:
        return Prepared(
            config, encoder, self.train, self.validation, self.validation_games, self.seen
        )


def parse_split(text: str, seed: int) -> SplitPlan | None:
    """`BY[:VALIDATION[:TEST]]`: `group:0.05`, `game:0.1:0.1`, `year:2008:2009-`; None of `none`.

    Several years or sources are parted by commas. Raises UnknownNameError, DataError.
    """
    if text == NO_SPLIT:
        return None
    by, *parts = text.split(":")
    if by not in get_args(By):
        raise UnknownNameError("way to split", by, (*get_args(By), NO_SPLIT))
    if len(parts) > 2:
        raise DataError(f"split {text!r}: accepted is BY, BY:VALIDATION or BY:VALIDATION:TEST")
    known = cast(By, by)
    if by == "year" or (by == "source" and parts and not _is_number(parts[0])):
        keys = [tuple(part.split(",")) for part in parts] + [(), ()]
        return SplitPlan(known, validation_keys=keys[0], test_keys=keys[1], seed=seed)
    try:
        shares = [float(part) for part in parts]
    except ValueError:
        raise DataError(f"split {text!r}: shares are numbers, e.g. {by}:0.05") from None
    validation, test = [*shares, *[0.05, 0.0][len(shares) :]]
    return SplitPlan(known, validation, test, seed=seed)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def prepare(
    request: TrainRequest,
    *,
    rules: Rules | None = None,
    builders: Mapping[str, NetworkBuilder] | None = None,
) -> Prepared:
    """Opens the stores and resolves the request; with a budget of minutes, measures the machine.

    `rules` are needed where the spec's engine is `fairy`.

    Raises UnknownNameError, DataError, VariantAIError where something asked for does not fit.
    """
    spec, recipe = request.spec, request.spec.training
    device = choose_device(request.device)
    precision = choose_precision(request.precision, device)
    net = configure(request, device, builders)
    encoder = Encoder(spec, net.head)
    on_cpu = device.type == "cpu"
    batch = request.batch or (min(CPU_BATCH, recipe.batch) if on_cpu else recipe.batch)
    split = request.split or (NO_SPLIT if request.validation_stores else DEFAULT_SPLIT)
    data = DataConfig(
        stores=_paths(request.stores),
        validation_stores=_paths(request.validation_stores),
        split=split,
        seed=request.seed,
        mirror=request.mirror,
    )
    opened = open_data(spec, encoder, data, batch=batch, seed=request.seed, rules=rules)
    train, validation = opened.train, opened.validation
    # The published rate belongs to the published batch; the step is the sum over a batch.
    lr_max = request.lr_max or recipe.lr_max * batch / recipe.batch
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
        lr_max=lr_max,
        lr_min=recipe.lr_min if request.lr_min is None else request.lr_min,
        momentum=request.momentum or recipe.momentum,
        weight_decay=_or(request.weight_decay, recipe.weight_decay),
        value_weight=_or(request.value_weight, recipe.value_weight),
        seed=request.seed,
        device=str(device),
        precision=precision,
        threads=request.threads or (torch.get_num_threads() if on_cpu else 0),
        validation_limit=4096 if on_cpu else 16_384,
        final_limit=request.final_limit,
        **{
            name: value
            for name in ("warmup", "clip")
            if (value := getattr(request, name)) is not None
        },
    )
    if request.minutes is not None:
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

    from variant_ai.core.nets.interface import find_builder

    flat = head == "flat" or (head is None and find_builder(name, builders).heads[0] == "flat")
    return configured(Encoder(request.spec, "flat").actions if flat else None)


def open_data(
    spec: VariantSpec,
    encoder: Encoder,
    data: DataConfig,
    *,
    batch: int,
    seed: int,
    rules: Rules | None = None,
) -> OpenData:
    """Opens the stores of a configuration, splits them and makes the samplers.

    Raises DataError where the configuration gives hashes and a store has another.
    """
    stores = [Store(path, spec) for path in data.stores]
    others = [Store(path, spec) for path in data.validation_stores]
    hashes = tuple(store.content_hash for store in [*stores, *others])
    if data.hashes and data.hashes != hashes:
        changed = next(
            path
            for path, was, now in zip(
                data.stores + data.validation_stores, data.hashes, hashes, strict=True
            )
            if was != now
        )
        raise DataError(f"{changed} is no longer the store that this training began with")
    plan = parse_split(data.split, data.seed)
    games: list[NDArray[np.int64]] = []
    held: list[NDArray[np.int64]] = []
    for store in stores:
        if plan is None:
            games.append(np.arange(len(store)))
            held.append(np.zeros(0, np.int64))
        else:
            split = split_games(store, plan)
            games.append(split.train)
            held.append(split.validation)
    train = Sampler(
        stores, encoder, batch=batch, seed=seed, mirror=data.mirror, games=games, rules=rules
    )
    if others:
        validating, chosen = others, [np.arange(len(store)) for store in others]
    else:
        validating, chosen = stores, held
    validation = None
    seen = None
    if any(map(len, chosen)):
        validation = Sampler(
            validating, encoder, batch=max(batch, 256), seed=seed, games=chosen, rules=rules
        )
        if not others and len(stores) == 1:
            seen = seen_positions(stores[0], games[0], chosen[0])
    filled = data.model_copy(
        update={
            "hashes": hashes,
            "train_games": int(sum(map(len, games))),
            "validation_games": int(sum(map(len, chosen))),
            "train_positions": train.positions,
            "validation_positions": validation.positions if validation else 0,
        }
    )
    return OpenData(filled, train, validation, tuple(chosen), seen)


def seen_positions(
    store: Store, train: NDArray[np.int64], games: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Of the positions a sampler sweeps (games with a result, in order): whether the same moves up
    to and including the next one occur in a game of `train`. bool [N]."""
    shared = shared_prefix(store, train, games)
    parts = [
        np.arange(length) < known
        for known, length, result in zip(
            shared, store.lengths[games], store.results[games], strict=True
        )
        if abs(int(result)) <= 1
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def _within_minutes(
    draft: TrainConfig,
    minutes: float,
    begun: float,
    at_most: int | None,
    train: Sampler,
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
