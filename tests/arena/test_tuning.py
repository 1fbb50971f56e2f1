"""Tuning of search settings, with games whose true scores are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from variant_ai.core.arena.tables.elo import Tally
from variant_ai.core.arena.tables.sprt import SprtStatus
from variant_ai.core.arena.tuning.search_tuning import (
    PICTURE,
    SETTINGS,
    Match,
    MatchResult,
    Plan,
    Range,
    Settings,
    Trial,
    Tuner,
    TuningResult,
    spec_text,
)
from variant_ai.core.arena.tuning.surrogate import Surrogate
from variant_ai.core.arena.tuning.tuning_picture import draw, importances, profile
from variant_ai.core.errors import DataError, SettingError, UnknownNameError

RANGES = (Range.parse("q_weight=0:1"), Range.parse("virtual_style=loss,visit"))
PRESENT: Settings = {"q_weight": 0.2, "virtual_style": "loss"}


def plan(**changed: object) -> Plan:
    made = Plan("some", RANGES, PRESENT, {"nodes": 1}, trials=12, games=20, final_games=40)
    return replace(made, **changed)  # type: ignore[arg-type]


def true_score(settings: Settings) -> float:
    """Greatest, 0.8, at q_weight 0.7 with `visit`; one half for those in force."""
    weight = float(settings["q_weight"])
    found = 0.5 + 0.2 * (0.25 - (weight - 0.7) ** 2) / 0.25
    return found + (0.1 if settings["virtual_style"] == "visit" else 0.0)


class Games:
    """Plays matches by chance, with the true scores."""

    def __init__(self, score: Callable[[Settings], float] = true_score) -> None:
        self.score = score
        self.played: list[Match] = []
        self.until = 10**6
        """Matches that are played to their end."""

    def __call__(self, match: Match) -> MatchResult:
        self.played.append(match)
        if len(self.played) > self.until:
            return MatchResult(Tally(1, 0, 0), complete=False)
        chance = np.random.default_rng([match.number, match.games])
        wins = int(chance.binomial(match.games, self.score(match.settings)))
        tally = Tally(wins, 0, match.games - wins)
        sprt = SprtStatus(3.0, -2.9, 2.9, "H1") if match.sprt else None
        return MatchResult(tally, complete=True, sprt=sprt)

    @property
    def trials(self) -> list[Match]:
        return [match for match in self.played if match.folder.parent.name == "trials"]


def tune(
    folder: Path, games: Games, said: list[str] | None = None, **changed: object
) -> TuningResult:
    lines: list[str] = [] if said is None else said
    return Tuner(plan(**changed), folder, games, lines.append).run(lambda: False)


# --- ranges --------------------------------------------------------------------------------------


def test_ranges_are_read_and_written() -> None:
    numbers, whole = Range.parse(" q_weight = 0:1 "), Range.parse("batch_size=8:64")
    assert (numbers.name, numbers.low, numbers.high, numbers.whole) == ("q_weight", 0.0, 1.0, False)
    assert whole.whole and whole.width == 1 and whole.coordinates(36) == [0.5]
    truth = Range.parse("enhance_checks=false,true,false")
    assert truth.choices == (False, True) and truth.coordinates(True) == [0.0, 1.0]
    mixed = Range.parse("u_divisor=adaptive,1")
    assert mixed.choices == ("adaptive", 1.0)
    assert numbers.holds(1.0) and not numbers.holds(1.1) and not numbers.holds("adaptive")
    assert truth.holds(False) and not mixed.holds(0.5)
    for text in ("q_weight=0:1", "cpuct_base=1000:19652.125", "memory_mb=8:1000001", mixed.text):
        assert Range.parse(text).text == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("q_weight", "NAME=LOW:HIGH"),
        ("q_weight=", "NAME=LOW:HIGH"),
        ("q_weight=1:0", "a lower and a higher"),
        ("q_weight=0.5:0.5", "a lower and a higher"),
        ("q_weight=0:7", "from 0 to 1"),
        ("q_weight=0:nan", "from 0 to 1"),
        ("q_weight=0:0.5:1", "from 0 to 1"),
        ("q_weight=0,few", "from 0 to 1"),
        ("batch_size=8:16.5", "whole number"),
        ("u_divisor=0.5:adaptive", "a lower and a higher"),
        ("virtual_style=0:1", "loss or visit"),
        ("virtual_style=loss", "at least two values"),
        ("virtual_style=loss,loss", "at least two values"),
        ("enhance_checks=0:1", "true or false"),
    ],
)
def test_wrong_ranges_say_what_is_accepted(text: str, reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        Range.parse(text)


def test_unknown_settings_are_named() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'q_weight'"):
        Range.parse("q_weigth=0:1")


def test_values_are_played_as_they_are_pasted() -> None:
    assert Range.parse("q_weight=0:1").rounded(0.123456) == 0.123
    narrow = Range.parse("q_epsilon=0.0001:0.0009")
    assert narrow.rounded(0.000234567) == 0.000235
    assert Range.parse("cpuct_init=1.0004:4").rounded(1.00041) == 1.0004
    assert Range.parse("batch_size=8:64").rounded(17) == 17
    from ruamel.yaml import YAML

    settings: Settings = {
        "cpuct_base": 19652.123,
        "batch_size": 1_234_567,
        "enhance_checks": False,
        "pv_values": "off",
        "virtual_style": "visit",
        "q_epsilon": 0.000235,
    }
    assert YAML(typ="safe", pure=True).load(spec_text(settings)) == settings


@pytest.mark.parametrize(
    ("changed", "reason"),
    [({"trials": 3}, "at least 8"), ({"games": 5}, "even"), ({"final_games": 41}, "even")],
)
def test_numbers_that_make_no_tuning(changed: dict[str, int], reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        plan(**changed)


# --- the surrogate -------------------------------------------------------------------------------


def test_the_surrogate_finds_better_settings_than_the_luckiest_trial() -> None:
    """60 trials of 20 games each: their scores are off by 0.09, the surrogate by a third of that."""
    errors, lost = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=(60, 3))
        true = 0.65 - 0.6 * (x[:, 0] - 0.6) ** 2 - 0.4 * (x[:, 1] - 0.3) ** 2
        y = rng.binomial(20, true) / 20
        mean, _ = Surrogate.fit(x, y, np.full(60, 0.25 / 20)).predict(x)
        errors.append((np.abs(mean - true).mean(), np.abs(y - true).mean()))
        lost.append((true.max() - true[np.argmax(mean)], true.max() - true[np.argmax(y)]))
    error, noise = np.mean(errors, axis=0)
    assert error < noise / 2
    expected, luckiest = np.mean(lost, axis=0)
    assert expected < 0.015 and expected < luckiest / 2


def test_the_surrogate_is_the_same_every_time_and_sure_of_nothing_far_away() -> None:
    x = np.array([[0.1], [0.2], [0.9]])
    y, variance = np.array([0.4, 0.45, 0.7]), np.full(3, 1e-4)
    one, other = Surrogate.fit(x, y, variance), Surrogate.fit(x, y, variance)
    assert one.log_likelihood == other.log_likelihood
    mean, deviation = one.predict(np.array([[0.1], [0.5], [50.0]]))
    assert mean[0] == pytest.approx(0.4, abs=0.02)
    assert deviation[0] < deviation[1] <= deviation[2] == pytest.approx(one.amplitude)
    assert mean[2] == pytest.approx(one.mean)


def test_what_does_nothing_matters_little(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    trials = []
    for number in range(40):
        settings: Settings = {
            "q_weight": round(float(rng.uniform()), 3),
            "virtual_style": ("loss", "visit")[int(rng.integers(2))],
        }
        score = 0.3 + 0.4 * float(settings["q_weight"])
        wins = int(rng.binomial(40, score))
        trials.append(Trial(number, settings, Tally(wins, 0, 40 - wins)))
    outcome = TuningResult(trials)
    outcome.surrogate = Tuner(plan(), tmp_path, Games(), print).surrogate(trials)
    shares = importances(plan(), outcome)
    assert shares["q_weight"] > 0.8 and shares["virtual_style"] < 0.1
    values, mean, _ = profile(plan(), outcome, RANGES[0])
    assert values[0] == 0 and values[-1] == 1 and mean[-1] - mean[0] > 0.2


def test_a_choice_that_was_hardly_tried_explains_no_more_than_all(tmp_path: Path) -> None:
    """The sampler leaves a bad choice alone; the variance of the trials is then a small one."""
    trials = [
        Trial(
            number,
            {"q_weight": number / 20, "virtual_style": "loss" if number % 10 else "visit"},
            Tally(32, 0, 8) if number % 10 else Tally(8, 0, 32),
        )
        for number in range(20)
    ]
    outcome = TuningResult(trials)
    outcome.surrogate = Tuner(plan(), tmp_path, Games(), print).surrogate(trials)
    shares = importances(plan(), outcome)
    assert shares["virtual_style"] > 0.3 and sum(shares.values()) <= 1


# --- the tuner -----------------------------------------------------------------------------------


def test_better_settings_are_found_and_tested(tmp_path: Path) -> None:
    games, said = Games(), list[str]()
    outcome = tune(tmp_path, games, said, trials=14)
    assert len(outcome.trials) == len(games.trials) == 14
    assert outcome.winner is not None and true_score(outcome.winner) > 0.7
    assert len(outcome.finals) == 3 and len(games.played) == 14 + 3 + 1
    last = games.played[-1]
    assert last.sprt and last.settings == outcome.winner and last.games == 400
    assert outcome.test is not None and outcome.test.sprt is not None
    assert outcome.strength is not None and outcome.strength.elo > 50
    assert len({match.folder for match in games.played}) == len(games.played)
    assert said[0].startswith("trial 1/14: ") and sum("final" in line for line in said) == 3
    assert draw(plan(), outcome).png.startswith(b"\x89PNG")


def test_settings_in_force_stay_where_nothing_is_better(tmp_path: Path) -> None:
    games, said = Games(lambda settings: 0.3), list[str]()
    outcome = tune(tmp_path, games, said)
    assert outcome.winner is None and outcome.test is None
    assert len(outcome.finals) == 3 and not any(match.sprt for match in games.played)
    assert "No finalist beat" in said[-1]


def test_a_tuning_that_was_stopped_goes_on(tmp_path: Path) -> None:
    first = Games()
    first.until = 4
    stopped = tune(tmp_path, first)
    assert len(stopped.trials) == 4 and stopped.surrogate is None and not stopped.finals
    second = Games()
    outcome = tune(tmp_path, second)
    # the match under way is gone on with: the same settings in the same folder
    assert second.played[0] == first.played[-1]
    assert len(second.trials) == 12 - 4 and len(outcome.trials) == 12
    assert outcome.trials[:4] == stopped.trials
    # later trials are not the first ones once more
    tried = [tuple(trial.settings.values()) for trial in outcome.trials]
    assert len(set(tried)) == len(tried)
    # and what is done is done
    third = Games()
    again = tune(tmp_path, third)
    assert not third.trials and again.winner == outcome.winner


def test_more_trials_may_be_asked_for_later(tmp_path: Path) -> None:
    tune(tmp_path, Games())
    before = {path.name for path in (tmp_path / "trials").glob("*")}
    games = Games()
    outcome = tune(tmp_path, games, trials=16)
    assert len(games.trials) == 4 and len(outcome.trials) == 16
    assert not before & {match.folder.name for match in games.trials}
    for match in games.played:  # a folder belongs to one trial, and so to its settings
        if match.folder.parent.name != "trials":
            number = int(match.folder.name)
            assert match.settings in [t.settings for t in outcome.trials if t.number == number]


def test_a_kill_between_result_and_storage_loses_nothing(tmp_path: Path) -> None:
    games = Games()
    tuner = Tuner(plan(), tmp_path, games, lambda line: None)
    asked = tuner.study.ask({one.name: one.distribution() for one in RANGES})
    asked.set_user_attr("tally", "20-0-0")  # killed before the trial was told to be over
    half = tuner.study.ask({RANGES[0].name: RANGES[0].distribution()})  # between two parameters
    outcome = tune(tmp_path, games)
    assert games.trials[0].folder.name == f"{asked.number:04}"
    assert half.number not in [trial.number for trial in outcome.trials]
    assert len(outcome.trials) == len(games.trials) == 12
    assert outcome.trials[0].tally.text != "20-0-0"


def test_a_stop_ends_finals_and_keeps_the_trials(tmp_path: Path) -> None:
    games = Games()
    games.until = 13
    outcome = tune(tmp_path, games)
    assert len(outcome.trials) == 12 and len(outcome.finals) == 1
    assert outcome.winner is None and outcome.surrogate is not None


def test_finalists_are_expected_to_be_good_not_lucky(tmp_path: Path) -> None:
    tuner = Tuner(plan(trials=14), tmp_path, Games(), lambda line: None)
    outcome = tuner.run(lambda: False)
    assert outcome.surrogate is not None
    points = np.array([plan().point(trial.settings) for trial in outcome.trials])
    expected, _ = outcome.surrogate.predict(points)
    finalists = [settings for settings, _ in outcome.finals]
    chosen = [expected[[t.settings for t in outcome.trials].index(one)] for one in finalists]
    assert chosen == sorted(chosen, reverse=True) and chosen[0] == expected.max()
    assert PRESENT not in finalists
    assert all(true_score(settings) > 0.65 for settings in finalists)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"variant": "other"}, "variant: 'some' there, 'other' now"),
        ({"ranges": RANGES[:1]}, "ranges"),
        ({"present": {**PRESENT, "q_weight": 0.3}}, "present"),
        ({"description": {"nodes": 2}}, "nodes: 1 there, 2 now"),
        ({"description": {"clock": "1+0"}}, "nodes: 1 there, None now"),
    ],
)
def test_a_folder_of_something_else_is_refused(
    tmp_path: Path, changed: dict[str, object], reason: str
) -> None:
    games = Games()
    games.until = 2
    tune(tmp_path, games)
    with pytest.raises(SettingError, match=reason):
        tune(tmp_path, Games(), **changed)
    assert len(tune(tmp_path, Games(), seed=5).trials) == 12


@pytest.mark.parametrize("content", ["{", "[1]", '"text"'])
def test_a_damaged_folder_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / SETTINGS).write_text(content)
    with pytest.raises(DataError, match=SETTINGS):
        tune(tmp_path, Games())
    assert (tmp_path / SETTINGS).read_text() == content


def test_settings_in_force_may_lie_outside_the_ranges(tmp_path: Path) -> None:
    ranges = (Range.parse("u_divisor=0.4:1"), Range.parse("virtual_style=loss,visit"))
    present: Settings = {"u_divisor": "adaptive", "virtual_style": "loss"}
    made = plan(ranges=ranges, present=present)
    games = Games(lambda settings: 0.3)
    outcome = Tuner(made, tmp_path, games, lambda line: None).run(lambda: False)
    assert len(outcome.trials) == 12
    assert json.loads((tmp_path / SETTINGS).read_text())["present"] == present
    values, mean, deviation = profile(made, outcome, ranges[0])
    assert len(values) == len(mean) == len(deviation) and np.isfinite(mean).all()
    picture = draw(made, outcome)
    (tmp_path / PICTURE).write_bytes(picture.png)
    assert "12 trials" in picture.title
