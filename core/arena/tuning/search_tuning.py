"""Search settings tuned by matches: trials, finals, and a test of the winner.

A trial is a short match of a candidate against the present settings, every opening with both
colours; its result is a score in [0, 1] with the noise of a few games. Optuna's Gaussian process
sampler, which expects noisy results, proposes the candidates. The best trial is mostly a lucky one, so
no decision depends on a single trial: a surrogate fitted to all of them (`surrogate.py`) chooses
finalists by their expected score, finalists play more games, and the best of them plays a sequential
test against the present settings, which may end undecided.

    folder/tune.json       ranges and everything else that decides the results
           trials.db       Optuna's storage
           trials/0007/    the match of a trial, which can be resumed like every match
           finals/0007/    the match of that trial's settings in the finals
           sprt/0007/      the test of the winner
           trials.png      expected score over each setting
           result.yaml     settings for a spec
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.arena.tables.elo import Estimate, Tally, cautious_variance, estimate
from variant_ai.core.arena.tables.sprt import SprtStatus
from variant_ai.core.arena.tuning.surrogate import Surrogate
from variant_ai.core.errors import SettingError
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec.declared_setting import Setting
from variant_ai.core.spec.search_settings import setting
from variant_ai.core.system.files import first_settings
from variant_ai.core.system.missing_packages import missing_packages_explained
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study

SETTINGS, STORAGE, RESULT, PICTURE = "tune.json", "trials.db", "result.yaml", "trials.png"
FINALISTS = 3
STARTUP = 10
"""Number of random trials before the sampler uses its model."""
FEWEST = 8
"""Number of trials that a surrogate needs."""

Value = float | int | bool | str
Settings = dict[str, Value]


@dataclass(frozen=True)
class Range:
    """Values of one search setting to try: numbers from `low` to `high`, or choices."""

    name: str
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Value, ...] = ()
    whole: bool = False

    @classmethod
    def parse(cls, text: str) -> Range:
        """Read `q_weight=0:1` or `virtual_style=loss,visit`. Raises SettingError, UnknownNameError."""
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not values:
            raise SettingError(f"range {text!r}: expected NAME=LOW:HIGH or NAME=VALUE,VALUE")
        row = setting(name)
        if ":" in values:
            return cls._numbers(row, text, values)
        choices = tuple(dict.fromkeys(row.parse(word) for word in values.split(",")))
        if len(choices) < 2:
            raise SettingError(f"range {text!r}: expected at least two values")
        return cls(name, choices=choices)

    @classmethod
    def _numbers(cls, row: Setting, text: str, values: str) -> Range:
        words = values.split(":")
        if len(words) != 2 or row.kind in ("bool", "choice"):
            raise SettingError(f"range {text!r}: {row.name} accepts {row.accepted}")
        low, high = (row.parse(word) for word in words)
        if isinstance(low, str) or isinstance(high, str) or not low < high:
            raise SettingError(f"range {text!r}: a lower and a higher number are expected")
        return cls(row.name, float(low), float(high), whole=row.kind == "int")

    @property
    def text(self) -> str:
        if self.choices:
            return f"{self.name}={','.join(map(_word, self.choices))}"
        return f"{self.name}={_word(self.low)}:{_word(self.high)}"

    @property
    def width(self) -> int:
        """Number of dimensions in the unit cube: 1, or one for each choice."""
        return len(self.choices) or 1

    def rounded(self, value: Value) -> Value:
        """Return the value as it is played and printed: with three decimal places, more in a narrow
        range."""
        if self.choices or not isinstance(value, float):
            return value
        places = max(3, 2 - math.floor(math.log10(self.high - self.low)))
        return min(max(round(value, places), self.low), self.high)

    def holds(self, value: Value) -> bool:
        if self.choices:
            return value in self.choices
        return not isinstance(value, str) and self.low <= value <= self.high

    def coordinates(self, value: Value) -> list[float]:
        """Return the value's coordinates in the unit cube, `width` numbers."""
        if self.choices:
            return [float(value == choice) for choice in self.choices]
        return [(float(value) - self.low) / (self.high - self.low)]

    def distribution(self) -> BaseDistribution:
        from optuna.distributions import (
            CategoricalDistribution,
            FloatDistribution,
            IntDistribution,
        )

        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.whole:
            return IntDistribution(int(self.low), int(self.high))
        return FloatDistribution(self.low, self.high)


DEFAULT_RANGES = (
    "node_temperature=1:2.5",
    "cpuct_init=1.5:4",
    "q_weight=0:1",
    "u_divisor=0.4:1",
    "virtual_style=loss,visit",
    "q_unvisited=loss,parent",
    "enhance_checks=false,true",
)
"""Ranges if the user gives none."""


@dataclass(frozen=True)
class Plan:
    """Settings to tune and numbers of games. Raises SettingError for numbers that do not fit."""

    variant: str
    ranges: tuple[Range, ...]
    present: Settings
    """Present values of the tuned settings."""
    description: dict[str, Any]
    """Everything else that decides the results: net, limit, games of a trial, seed."""
    trials: int = 60
    games: int = 20
    """Games of a trial."""
    final_games: int = 60
    """Games of each finalist."""
    sprt_games: int = 400
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trials < FEWEST:
            raise SettingError(
                f"{counted(self.trials, 'trial')}: the model needs at least {FEWEST}"
            )
        for what, games in (("a trial", self.games), ("a finalist", self.final_games)):
            if games % 2:
                raise SettingError(
                    f"{counted(games, 'game')} of {what}: give an even number, so that each side has both colours"
                )

    @property
    def present_is_inside(self) -> bool:
        return all(one.holds(self.present[one.name]) for one in self.ranges)

    def points(self, trials: Iterable[Trial]) -> NDArray[np.float64]:
        """Points of trials in the unit cube, one in each row."""
        return np.array([self.point(trial.settings) for trial in trials])

    def point(self, settings: Mapping[str, Value]) -> list[float]:
        return [c for one in self.ranges for c in one.coordinates(settings[one.name])]


@dataclass(frozen=True)
class Match:
    """One match for the tuner."""

    folder: Path
    settings: Settings
    """Settings of the candidate, which override the present ones."""
    games: int
    number: int
    """Seed of the order of the openings."""
    sprt: bool = False


@dataclass(frozen=True)
class MatchResult:
    tally: Tally
    """Results of the candidate."""
    complete: bool
    sprt: SprtStatus | None = None


PlayMatch = Callable[[Match], MatchResult]


@dataclass(frozen=True)
class Trial:
    """A finished trial."""

    number: int
    settings: Settings
    tally: Tally


@dataclass
class TuningResult:
    """Results of a tuning so far."""

    trials: list[Trial] = field(default_factory=list)
    surrogate: Surrogate | None = None
    finals: list[tuple[Settings, Tally]] = field(default_factory=list)
    winner: Settings | None = None
    """None: no finalist beat the present settings."""
    test: MatchResult | None = None

    @property
    def strength(self) -> Estimate | None:
        """Elo of the winner over the present settings, from the games of the test alone."""
        return None if self.test is None else estimate(self.test.tally)


class Tuner:
    """A tuning in one folder, which is resumed if the folder holds one."""

    def __init__(self, plan: Plan, folder: Path, play: PlayMatch, report: Callable[[str], None]):
        """play: plays or resumes a match of the candidate against the present settings; report:
        prints a line of progress.

        Raises SettingError if the folder holds a tuning with other settings.
        """
        self.plan = plan
        self.folder = folder
        self._play = play
        self._print = report
        folder.mkdir(parents=True, exist_ok=True)
        self._check_folder()
        self.study = self._open()

    def run(self, stopped: Callable[[], bool]) -> TuningResult:
        """Play trials, finals and the test, until done or stopped."""
        outcome = TuningResult(self.trials())
        while len(outcome.trials) < self.plan.trials and not stopped():
            trial = self._next()
            if trial is None:
                break
            outcome.trials.append(trial)
            self._report(outcome)
        outcome.surrogate = self.surrogate(outcome.trials)
        if outcome.surrogate is None or stopped() or len(outcome.trials) < self.plan.trials:
            return outcome
        self._finish(outcome, stopped)
        return outcome

    def trials(self) -> list[Trial]:
        """Finished trials in order."""
        from optuna.trial import TrialState

        done = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return [
            Trial(one.number, self._rounded(one.params), Tally.parse(one.user_attrs["tally"]))
            for one in done
            if "tally" in one.user_attrs
        ]

    def surrogate(self, trials: Sequence[Trial]) -> Surrogate | None:
        """Return a surrogate of the trials, and of the present settings' score of 1/2 against
        themselves; None if there are too few trials."""
        if len(trials) < FEWEST:
            return None
        tallies = [trial.tally for trial in trials]
        points = [self.plan.point(trial.settings) for trial in trials]
        scores = [tally.score for tally in tallies]
        variances = [cautious_variance(tally) for tally in tallies]
        if self.plan.present_is_inside:
            points.append(self.plan.point(self.plan.present))
            scores.append(0.5)
            variances.append(1e-6)
        return Surrogate.fit(np.array(points), np.array(scores), np.array(variances))

    # --- trials --------------------------------------------------------------------------------

    def _next(self) -> Trial | None:
        """Play the next trial, or resume one that was interrupted; None if stopped."""
        import optuna
        from optuna.trial import TrialState

        open_ = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        whole = [one for one in open_ if len(one.params) == len(self.plan.ranges)]
        for one in open_:
            if one not in whole:  # killed between two of its parameters
                self.study.tell(one.number, state=TrialState.FAIL)
        if whole:
            number, settings = whole[0].number, self._rounded(whole[0].params)
        else:
            asked = self.study.ask({r.name: r.distribution() for r in self.plan.ranges})
            number, settings = asked.number, self._rounded(asked.params)
        folder = self.folder / "trials" / f"{number:04}"
        result = self._play(Match(folder, settings, self.plan.games, number))
        if not result.complete:
            return None
        # the tally first: after a kill between the two, the match is resumed from its journal
        stored = self.study.get_trials(deepcopy=False)[number]
        optuna.trial.Trial(self.study, stored._trial_id).set_user_attr("tally", result.tally.text)
        self.study.tell(number, result.tally.score)
        return Trial(number, settings, result.tally)

    def _rounded(self, params: Mapping[str, Any]) -> Settings:
        return {one.name: one.rounded(params[one.name]) for one in self.plan.ranges}

    def _report(self, outcome: TuningResult) -> None:
        trial = outcome.trials[-1]
        best = max(outcome.trials, key=lambda one: one.tally.score)
        self._print(
            f"trial {len(outcome.trials)}/{self.plan.trials}: {trial.tally.text} "
            f"({100 * trial.tally.score:.1f} %) with {spec_text(trial.settings)}; "
            f"best so far {100 * best.tally.score:.1f} %"
        )

    # --- after the trials ----------------------------------------------------------------------

    def _finish(self, outcome: TuningResult, stopped: Callable[[], bool]) -> None:
        assert outcome.surrogate is not None
        best: tuple[float, Trial] | None = None
        for trial in self._finalists(outcome):
            settings = trial.settings
            match = Match(
                self.folder / "finals" / f"{trial.number:04}",
                settings,
                self.plan.final_games,
                10_000 + trial.number,
            )
            result = self._play(match)
            if not result.complete or stopped():
                return
            outcome.finals.append((settings, result.tally))
            score = result.tally.score
            self._print(
                f"final {len(outcome.finals)}: {result.tally.text} ({100 * score:.1f} %) with "
                f"{spec_text(settings)}"
            )
            if best is None or score > best[0]:
                best = score, trial
        if best is None or best[0] <= 0.5:
            self._print("No finalist beat the present settings.")
            return
        winner = best[1]
        outcome.winner = winner.settings
        if self.plan.sprt_games:
            folder = self.folder / "sprt" / f"{winner.number:04}"
            outcome.test = self._play(
                Match(folder, winner.settings, self.plan.sprt_games, 20_000, sprt=True)
            )

    def _finalists(self, outcome: TuningResult) -> Iterator[Trial]:
        """Trials with the greatest expected score; only the first of equal settings."""
        assert outcome.surrogate is not None
        expected, _ = outcome.surrogate.predict(self.plan.points(outcome.trials))
        found: list[Settings] = []
        for index in np.argsort(-expected, kind="stable"):
            trial = outcome.trials[int(index)]
            if trial.settings not in found and trial.settings != self.plan.present:
                found.append(trial.settings)
                yield trial
            if len(found) == FINALISTS:
                return

    # --- the folder ----------------------------------------------------------------------------

    def _check_folder(self) -> None:
        decisive = {
            "variant": self.plan.variant,
            "ranges": [one.text for one in self.plan.ranges],
            "present": self.plan.present,
            **self.plan.description,
        }
        before = first_settings(self.folder / SETTINGS, decisive)
        differs = [key for key in before if before[key] != decisive.get(key)]
        if differs:
            key = differs[0]
            raise SettingError(
                f"{self.folder} holds trials with other settings ({key}: {before.get(key)!r} there, "
                f"{decisive.get(key)!r} now); give another folder, or the same settings"
            )

    def _open(self) -> Study:
        with missing_packages_explained():
            import optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(
            storage=f"sqlite:///{(self.folder / STORAGE).resolve()}",
            direction="maximize",
            study_name="tune",
            load_if_exists=True,
        )
        count = len(study.get_trials(deepcopy=False))
        # with the seed of the first run, the sampler would repeat its first proposals
        study.sampler = optuna.samplers.GPSampler(
            seed=self.plan.seed + count, n_startup_trials=STARTUP, deterministic_objective=False
        )
        if not count and self.plan.present_is_inside:
            known = optuna.trial.create_trial(
                params=self.plan.present,
                distributions={one.name: one.distribution() for one in self.plan.ranges},
                value=0.5,
            )
            study.add_trial(known)
        return study


def spec_text(settings: Mapping[str, Value]) -> str:
    """Return `{q_weight: 0.7, virtual_style: visit}`: text for a spec's `search:`."""
    return "{" + ", ".join(f"{name}: {_word(value)}" for name, value in settings.items()) + "}"


def _word(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    # quoted, because YAML may read the bare words as booleans
    return f"'{value}'" if value in ("on", "off") else f"{value}"


def present_settings(params: SearchParams, ranges: Sequence[Range]) -> Settings:
    """Return the present values of the tuned settings. `u_divisor: adaptive` is outside of every
    range of numbers, and is then not among the trials."""
    return {one.name: getattr(params, one.name) for one in ranges}
