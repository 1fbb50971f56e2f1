"""The learner's part of a generation: some steps on the replay window, by the trainer of `train`.

The replay window is the newest positions of all generations, from which the learner samples.

The trainer resumes from the last checkpoint with optimiser and moving average, and stops at the step
where the generation ends; so training over many generations is one training whose data and learning
rate change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.sample.mixture import MixedSampler, part_seed, sample_counts
from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError, SettingError, VariantAIError
from variant_ai.core.factories import TRAINERS
from variant_ai.core.nets.interface import (
    NetConfig,
    choose_head,
    configure_for,
    find_builder,
    spec_metadata,
)
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder
from variant_ai.core.reinforce.reinforce_settings import Learning, ReinforceSettings, Window
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.interface import TrainResult
from variant_ai.core.train.loop.devices import choose_device, choose_precision
from variant_ai.core.train.loop.optimisers import find_optimiser
from variant_ai.core.train.measure.metrics import Metrics
from variant_ai.core.train.measure.reduced_precision import write_int8_unmeasured
from variant_ai.core.train.run.checkpoint import Checkpoint
from variant_ai.core.train.run.initial_weights import Start, random_net
from variant_ai.core.train.run.run_folder import CONFIG, read_metrics
from variant_ai.core.train.run.training_data import shared_games
from variant_ai.core.train.run.training_run import export_net
from variant_ai.core.train.run.training_settings import DataConfig, TrainConfig

MOMENTUM = 0.95
"""Of optimisers with a momentum: the same at every rate, since the rate is constant in a generation."""
CALIBRATION = 512
"""Positions on which the ranges of an int8 net are measured."""
SETTLING = 50.0
"""A loss above this multiple of the usual one returns to the last checkpoint: self-play changes its
data all the time, so only a loss that destroys the net counts."""


def window_size(total: int, settings: Window) -> int:
    """Positions of the window when `total` positions were recorded so far, at most `total`.

    It grows more slowly than the run: c (1 + β ((T / c)^α - 1) / α) ([KataGo]).
    """
    if total <= settings.size:
        return total
    c, alpha, beta = settings.size, settings.alpha, settings.beta
    return min(total, int(c * (1 + beta * ((total / c) ** alpha - 1) / alpha)))


@dataclass(frozen=True)
class ReplayWindow:
    """Games of a window."""

    stores: tuple[Store, ...]
    """Oldest first."""
    games: tuple[NDArray[np.int64], ...]
    """Indices of the games in each store."""
    positions: int
    """Positions of these games that something is learnt from."""


def newest_games(
    generations: Sequence[int], open_store: Callable[[int], Store], wanted: int
) -> ReplayWindow:
    """Return the last games of the last generations that have at least `wanted` positions together.

    Games of a store are in the order in which they began; those of a cluster are sorted by player, so that
    of the oldest generation the games of some players are left out. generations: with a store, in order.
    """
    stores: list[Store] = []
    games: list[NDArray[np.int64]] = []
    positions = 0
    for generation in reversed(generations):
        if positions >= wanted:
            break
        store = open_store(generation)
        recorded = _recorded(store)
        from_end = np.cumsum(recorded[::-1])
        count = min(len(recorded), int(np.searchsorted(from_end, wanted - positions)) + 1)
        if count == 0:
            continue
        stores.append(store)
        games.append(np.arange(len(recorded) - count, len(recorded), dtype=np.int64))
        positions += int(from_end[count - 1])
    return ReplayWindow(tuple(stores[::-1]), tuple(games[::-1]), positions)


def count_learnt(
    run: ReinforceFolder,
    generation: int | None,
    stores: Sequence[Store],
    games: Sequence[NDArray[np.int64]],
) -> int:
    """Number of games of these stores, one array of indices each, that a run of self-play learnt from: its
    own up to a generation (None: all) and those of its mixture, as far as they are still there."""
    paths = [Path(part.store) for part in run.settings().mixture]
    for path in sorted((run.path / "games").glob("*.store")):
        if generation is None or (path.stem.isdecimal() and int(path.stem) <= generation):
            paths.append(path)
    own: list[Store] = []
    for path in paths:
        with suppress(DataError, OSError):
            own.append(Store(path))
    if not own or generation == 0:
        return 0
    return shared_games(own, [np.arange(len(store)) for store in own], stores, games)


def _recorded(store: Store) -> NDArray[np.int64]:
    """[G] positions of each game that something is learnt from: not those of fast moves in a game that
    was ended at its greatest length, for example."""
    if store.trains is None:
        return store.lengths - store.opening_plies
    before = np.concatenate([[0], np.cumsum(store.trains > 0)])
    taught: NDArray[np.int64] = (
        before[store.offsets[1:]] - before[store.offsets[:-1] + store.opening_plies]
    )
    return taught


@dataclass(frozen=True)
class Course:
    """Values that change from one generation to the next."""

    generation: int
    """Of the net that is being trained."""
    steps: int
    """Steps of the learner when the generation ends, over all generations."""
    progress: float
    """Share of the run's budget that is used up, in [0, 1]; 0 without a budget."""
    lr: float
    """Learning rate."""


def learning_rate(learning: Learning, progress: float, last: float | None = None) -> float:
    """Learning rate: from `lr` to `lr_end`, exponentially in the progress of the run.

    last: that of the generation before. A larger budget sets the progress back; the rate stays then
    until it is due again.
    """
    end = learning.lr if learning.lr_end is None else learning.lr_end
    rate = float(learning.lr * (end / learning.lr) ** progress)
    return rate if last is None or end > learning.lr else min(rate, last)


def root_value_share(learning: Learning, progress: float) -> float:
    """Share of the root value in the value target: to its last value linearly in the progress."""
    begin, end = learning.root_value_share, learning.root_value_share_end
    return begin if end is None else begin + (end - begin) * progress


def configure_start(
    settings: ReinforceSettings,
    spec: VariantSpec,
    start: Start | None,
) -> NetConfig:
    """Return the net of a run: that of its start, or else that of the settings.

    Raises DataError if the start is of another encoding, UnknownNameError for the net, SettingError for
    its size."""
    if start is not None:
        return start.net(spec)
    learning = settings.learning
    builder = find_builder(learning.net)
    encoder = Encoder(spec, choose_head(builder, None))
    try:
        return configure_for(learning.net, encoder, **learning.size)
    except VariantAIError as error:
        raise SettingError(f"learning.size: {error}") from None


class WindowTraining:
    """Training of one run over its generations."""

    def __init__(
        self,
        settings: ReinforceSettings,
        spec: VariantSpec,
        net: NetConfig,
        folder: Path,
        *,
        start: Start | None = None,
        rules: Rules | None = None,
    ) -> None:
        """folder: of the run; checkpoints and metrics are written there.

        Raises DataError for a store of the mixture that is missing, of another variant or
        without a sample in a batch, UnknownNameError for an optimiser or device that does not exist, VariantAIError."""
        find_optimiser(settings.learning.optimiser)
        self.settings = settings
        self.spec = spec
        self.net = net
        self.folder = folder
        self.start = start
        self.rules = rules
        self.encoder = Encoder(spec, net.head)
        self.device = choose_device(settings.device)
        self._mixed = tuple(Store(Path(part.store), spec) for part in settings.mixture)
        weights = [part.weight for part in settings.mixture]
        self._weights = [1 - sum(weights), *weights]
        """Of the window and of the stores of the mixture."""
        sample_counts(settings.learning.batch, self._weights)  # raises before there is a run

    def export_start(self, path: Path) -> None:
        """Write the net that the run starts from."""
        start = self.start
        path.parent.mkdir(parents=True, exist_ok=True)
        if start is not None and start.is_file:
            write_whole(path, start.path.read_bytes())
            return
        config = self.config(Course(0, 1, 0.0, self.settings.learning.lr), ())
        net = random_net(config).eval() if start is None else Checkpoint(start.path).build()
        export_net(config, net, path, {}, 0)

    def config(self, course: Course, stores: tuple[str, ...]) -> TrainConfig:
        """Return the configuration of the training up to the end of a generation."""
        settings, learning = self.settings, self.settings.learning
        start = "" if self.start is None else str(self.start.path.resolve())
        return TrainConfig(
            **spec_metadata(self.spec),
            net=self.net,
            data=DataConfig(
                stores=stores,
                split="none",
                mirror=learning.mirror and self.encoder.symmetric,
                labels="visits",
            ),
            steps=course.steps,
            batch=learning.batch,
            optimiser=learning.optimiser,
            lr_max=course.lr,
            lr_min=course.lr,
            momentum=(MOMENTUM, MOMENTUM),
            weight_decay=learning.weight_decay,
            value_weight=learning.value_weight,
            spike=SETTLING,
            ema=1 - 1 / learning.ema_steps if learning.ema_steps > 1 else 0.0,
            seed=settings.seed,
            start_from=start,
            device=str(self.device),
            precision=choose_precision(learning.precision, self.device),
            threads=settings.threads,
            checkpoint_every=learning.checkpoint_every,
        )

    def train(
        self,
        window: ReplayWindow,
        course: Course,
        first_step: int,
        report: Callable[[str], None],
    ) -> TrainResult:
        """Train from the newest checkpoint to `course.steps`, or until Ctrl-C.

        first_step: of the generation. Raises DataError (no position to learn from, damaged
        checkpoints), DivergedError, OSError.
        """
        config = self.config(course, tuple(str(store.path) for store in window.stores))
        steps = max(1, course.steps - first_step)
        often = {"log_every": steps, "validate_every": steps, "begins_at": first_step}
        config = config.model_copy(update=often)
        write_whole(self.folder / CONFIG, config.model_dump_json(indent=2))
        source = self._source(window, course, config)
        trainer = TRAINERS.load(config.trainer)(
            config, source, None, self.folder, tensorboard=False
        )
        return trainer.run(resume=True, report=report)

    def measured(self, step: int) -> dict[str, Any] | None:
        """Metrics of the training that ended with a step; None if there are none."""
        for event in reversed(read_metrics(self.folder)):
            if event["kind"] == "train" and event["step"] == step:
                return Metrics.of(event).as_dict()
        return None

    def _source(
        self, window: ReplayWindow, course: Course, config: TrainConfig
    ) -> Sampler | MixedSampler:
        learning, seed = self.settings.learning, self.settings.seed + course.generation
        make = partial(
            Sampler,
            encoder=self.encoder,
            batch=config.batch,
            mirror=config.data.mirror,
            rules=self.rules,
            labels="visits",
        )
        share = root_value_share(learning, course.progress)
        own = make(
            window.stores,
            seed=seed,
            games=window.games,
            value_labels=f"mixed:{share:.4f}",
            draw_value=-self.settings.variety.draw_penalty,
        )
        if not self._mixed:
            return own
        others = (
            make([store], seed=part_seed(seed, number))
            for number, store in enumerate(self._mixed, start=1)
        )
        return MixedSampler([own, *others], self._weights, batch=config.batch)

    def export_int8(self, net: Path, store: Store, path: Path) -> None:
        """Write a net in int8, calibrated on games of a store. Raises DataError, OSError."""
        batch = Sampler([store], self.encoder, batch=CALIBRATION, rules=self.rules).batch(0)
        write_int8_unmeasured(net, path, self.spec, batch.planes)

    def export(self, trained: TrainResult, course: Course, path: Path) -> None:
        """Write the trained net."""
        metrics = {} if trained.train is None else {"train": trained.train.as_dict()}
        export_net(self.config(course, ()), trained.net, path, metrics, course.steps)
