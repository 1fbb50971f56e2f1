"""Many positions searched at once: the same as ordinary searches of each of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.inference import Evaluation, RandomEvaluator, UniformEvaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.forest import position_searches
from variant_ai.core.search.forest.position_searches import PositionSearches, analyse_many
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.pipeline import Pipeline
from variant_ai.core.search.report import Report
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams

MakeRules = Callable[[str], Rules]
OVER = "7k/6Q1/6K1/8/8/8/8/8[] b - - 0 1"


def positions(rules: Rules, count: int) -> list[Game]:
    """Games of 0, 3, 6, ... random moves."""
    rng = np.random.default_rng(5)
    games = []
    for number in range(count):
        game = Game(rules)
        while game.ply < 3 * number and game.outcome() is None:
            moves = game.legal_moves()
            game.push(int(moves[rng.integers(len(moves))]))
        games.append(game)
    return games


def facts_of(report: Report) -> dict[str, Any]:
    """Everything of a report but the time and the memory."""
    facts = {name: getattr(report, name) for name in Report.__dataclass_fields__}
    return {name: facts[name] for name in facts if name not in ("seconds", "hashfull")}


@pytest.mark.parametrize("net", [UniformEvaluator, RandomEvaluator])
@pytest.mark.parametrize("variant", ["crazyhouse", "xiangqi", "minixiangqi", "dobutsu"])
def test_reports_are_those_of_ordinary_searches(
    variant: str,
    net: type[UniformEvaluator],
    rules_of: MakeRules,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that has one waiting leaf at a time, too."""
    monkeypatch.setattr(Pipeline, "depth", 1)
    monkeypatch.setattr(Search, "_shorten", lambda *_: None)
    monkeypatch.setattr(position_searches, "MOST_AT_ONCE", 4)
    rules = rules_of(variant)
    encoder = Encoder(rules.spec)
    evaluator = net(encoder.shape, encoder.actions)
    params = SearchParams.of(rules.spec, memory_mb=64, batch_size=1)
    games = positions(rules, 9)
    reports = analyse_many(rules.spec, evaluator, games, params, nodes=250, rules=rules)
    for game, report in zip(games, reports, strict=True):
        with Search(rules.spec, evaluator, params, rules=rules) as search:
            search.set_game(game)
            assert facts_of(report) == facts_of(search.run(Limits(nodes=250)))


def test_noise_and_sampled_moves_depend_on_the_seed(rules_of: MakeRules) -> None:
    rules = rules_of("crazyhouse")
    encoder = Encoder(rules.spec)
    evaluator = RandomEvaluator(encoder.shape, encoder.actions)
    found = []
    for seed in (0, 0, 1):
        params = SearchParams.of(
            rules.spec, memory_mb=32, seed=seed, noise_epsilon=0.25, temperature_moves=5
        )
        games = [Game(rules)] * 8
        reports = analyse_many(rules.spec, evaluator, games, params, nodes=40, rules=rules)
        found.append([(report.best, report.lines[0].visits) for report in reports])
    assert found[0] == found[1] != found[2]
    assert len(set(found[0])) > 1


def test_games_that_are_over_have_no_move(rules_of: MakeRules) -> None:
    rules = rules_of("crazyhouse")
    encoder = Encoder(rules.spec)
    evaluator = RandomEvaluator(encoder.shape, encoder.actions)
    games = [Game(rules, OVER), Game(rules)]
    over, other = analyse_many(rules.spec, evaluator, games, nodes=20, rules=rules)
    assert (over.best, over.stopped_by, over.visits) == (None, "game over", 0)
    assert (other.visits, other.stopped_by) == (20, "simulations")
    assert analyse_many(rules.spec, evaluator, [], nodes=20) == []


def test_memory_ends_a_search(rules_of: MakeRules) -> None:
    rules = rules_of("crazyhouse")
    encoder = Encoder(rules.spec)
    evaluator = UniformEvaluator(encoder.shape, encoder.actions)
    params = SearchParams.of(rules.spec, memory_mb=1)
    (report,) = analyse_many(rules.spec, evaluator, [Game(rules)], params, nodes=20_000)
    assert report.stopped_by == "memory"
    assert 500 < report.visits < 20_000 and report.hashfull > 900


class Slow(RandomEvaluator):
    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        time.sleep(0.01)
        return super().evaluate(planes)


def test_the_time_is_for_all_together(rules_of: MakeRules) -> None:
    rules = rules_of("crazyhouse")
    encoder = Encoder(rules.spec)
    evaluator = Slow(encoder.shape, encoder.actions)
    games = positions(rules, 3)
    reports = analyse_many(rules.spec, evaluator, games, movetime=0.1, rules=rules)
    assert [report.stopped_by for report in reports] == ["movetime"] * 3
    for game, report in zip(games, reports, strict=True):
        assert report.best in game.legal_moves() and report.visits <= 11


def test_rules_that_are_not_compiled(rules_of: MakeRules) -> None:
    rules = rules_of("dobutsu")

    class Own(type(rules)):  # type: ignore[misc]
        """Rules of a plugin."""

    own = Own(rules.spec)
    encoder = Encoder(rules.spec)
    evaluator = UniformEvaluator(encoder.shape, encoder.actions)
    reports = analyse_many(rules.spec, evaluator, [Game(own), Game(own)], nodes=30, rules=own)
    assert [report.visits for report in reports] == [30, 30]
    timed = analyse_many(rules.spec, evaluator, [Game(own)] * 2, movetime=0.1, rules=own)
    assert all(report.best is not None for report in timed)
    with pytest.raises(DataError, match="dobutsu has rules that are not compiled"):
        PositionSearches(rules.spec, evaluator, SearchParams(), 1, positions=1, rules=own)


def test_an_evaluation_that_is_not_a_number_names_the_position(rules_of: MakeRules) -> None:
    class Damaged(RandomEvaluator):
        def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
            answer = super().evaluate(planes)
            answer.value[-1] = np.nan
            return answer

    rules = rules_of("dobutsu")
    encoder = Encoder(rules.spec)
    evaluator = Damaged(encoder.shape, encoder.actions)
    games = positions(rules, 2)
    with pytest.raises(DataError, match="not a number for the position") as error:
        analyse_many(rules.spec, evaluator, games, nodes=9, rules=rules)
    assert games[1].fen() in str(error.value)
