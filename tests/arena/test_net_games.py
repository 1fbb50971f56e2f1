"""A net that plays itself: many games at once, which repeat, keep the rules, and keep what its searches
looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from toy_engine import changed

from variant_ai.core.arena.games.game_generators import NetGames
from variant_ai.core.arena.games.generated_games import BlunderRule, Ended, GeneratedGames, filtered
from variant_ai.core.arena.games.generation import RANDOM_MOVE, GenerationSettings, game_seed
from variant_ai.core.arena.games.openings import Opening
from variant_ai.core.arena.match.referee import RESIGN_RULE
from variant_ai.core.data.game_record import MOVE_LIMIT, GameRecord
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.inference import Evaluation, RandomEvaluator
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.settings import SearchParams
from variant_ai.plugins import registry

SETTINGS = GenerationSettings(games=6, nodes=24, max_plies=30, random_plies=(2, 3), workers=4)


@pytest.fixture(scope="module", params=["crazyhouse", "xiangqi", "minixiangqi"])
def rules(request: pytest.FixtureRequest) -> Rules:
    return make_rules(registry().variant(request.param))


@pytest.fixture(scope="module")
def dobutsu() -> Rules:
    return make_rules(registry().variant("dobutsu"))


def generator(
    rules: Rules,
    settings: GenerationSettings,
    *,
    openings: tuple[Opening, ...] = (Opening(),),
    net: type[RandomEvaluator] = RandomEvaluator,
    kept_visits: int = 32,
    **words: Any,
) -> NetGames:
    encoder = Encoder(rules.spec)
    search = {"noise_epsilon": 0.25, "temperature": 0.8, "temperature_moves": 8, **words}
    params = SearchParams.of(rules.spec, memory_mb=32, **search)
    return NetGames(
        settings,
        rules,
        lambda batch: net(encoder.shape, encoder.actions),
        params,
        "random net",
        openings,
        kept_visits=kept_visits,
    )


def games_of(rules: Rules, settings: GenerationSettings, **words: Any) -> list[Ended]:
    return list(generator(rules, settings, **words).games())


def records_of(rules: Rules, settings: GenerationSettings, **words: Any) -> list[GameRecord]:
    games = games_of(rules, settings, **words)
    assert all(isinstance(game, GameRecord) for game in games)
    return [game for game in games if isinstance(game, GameRecord)]


def test_games_keep_the_rules_and_what_their_searches_saw(rules: Rules) -> None:
    for number, record in enumerate(records_of(rules, SETTINGS), start=1):
        assert record.number == number and record.white == "random net"
        assert record.visits is not None and record.root_values is not None
        assert record.scores is not None
        assert len(record.visits) == len(record.root_values) == len(record.scores) == record.plies
        opening = record.opening_plies
        assert 2 <= opening <= 3
        assert record.visits[:opening] == [()] * opening
        assert record.root_values[:opening] == [None] * opening
        game = Game(rules)
        for ply, move in enumerate(record.moves):
            assert game.outcome() is None
            legal = game.legal_moves().tolist()
            assert move in legal
            if ply >= opening:
                visits = [n for _, n in record.visits[ply]]
                assert {m for m, _ in record.visits[ply]} <= set(legal)
                assert visits == sorted(visits, reverse=True) and 0 < sum(visits) < 24
                value = record.root_values[ply]
                assert value is not None and -1 <= value <= 1
            game.push(move)
        outcome = game.outcome()
        if outcome is None:
            assert record.plies == 30
            assert (record.result, record.termination) == ("1/2-1/2", MOVE_LIMIT)
        else:
            assert (record.result, record.termination) == (outcome.result, outcome.reason)


def test_games_do_not_depend_on_those_beside_them(rules: Rules) -> None:
    settings = changed(SETTINGS, node_jitter=0.3, random_share=0.2)
    alone = records_of(rules, changed(settings, workers=1, games=3))
    assert records_of(rules, settings)[:3] == alone
    assert records_of(rules, changed(settings, workers=1, games=3, seed=1)) != alone


def test_random_moves_and_openings(rules: Rules) -> None:
    moves = Game(rules).legal_moves().tolist()
    openings = tuple(Opening(None, (move,)) for move in moves[:3])
    settings = changed(SETTINGS, random_share=0.5, random_plies=(0, 0), games=3)
    records = records_of(rules, settings, openings=openings)
    assert {record.moves[0] for record in records} == set(moves[:3])
    for record in records:
        assert record.opening_plies == 1
        assert record.visits is not None and record.comments
        for ply in range(1, record.plies):
            is_random = record.comments.get(ply) == RANDOM_MOVE
            assert bool(record.visits[ply]) != is_random


def test_only_the_most_visited_moves_are_kept(rules: Rules) -> None:
    whole = records_of(rules, SETTINGS)
    few = records_of(rules, SETTINGS, kept_visits=3)
    none = records_of(rules, SETTINGS, kept_visits=0)
    for a, b, c in zip(whole, few, none, strict=True):
        assert a.visits is not None
        assert b == replace(a, visits=[visited[:3] for visited in a.visits])
        assert c == replace(a, visits=None)


def test_a_journal_keeps_whole_games(rules: Rules, tmp_path: Path) -> None:
    games = games_of(rules, SETTINGS)
    with GeneratedGames(tmp_path / "g.store", rules.spec.variant, {}) as journal:
        for game in games:
            journal.add(game)
        assert list(journal.games()) == games


def test_a_cut_game_keeps_the_searches_of_what_is_left(rules: Rules) -> None:
    (record, *_) = records_of(rules, changed(SETTINGS, games=1, max_plies=40))
    assert record.visits is not None and record.root_values is not None
    scores = [0] * record.plies
    for ply in range(4, 8):
        scores[ply] = 600 if ply % 2 == 0 else -600
    kept = filtered(rules, replace(record, scores=list(scores)), BlunderRule(400, "cut"))
    assert kept is not None and kept.plies < record.plies
    assert kept.visits == record.visits[-kept.plies :]
    assert kept.root_values == record.root_values[-kept.plies :]


def test_games_that_are_done_are_not_played_again(dobutsu: Rules) -> None:
    whole = games_of(dobutsu, SETTINGS)
    done = {2: whole[2], 4: whole[4]}
    played: list[Ended] = []
    again = generator(dobutsu, SETTINGS)
    assert list(again.games(done, played.append)) == whole
    assert sorted(game.number for game in played) == [1, 2, 4, 6]
    assert list(generator(dobutsu, SETTINGS).games(dict(enumerate(whole)), played.append)) == whole
    assert len(played) == 4


def test_resignation_by_scores(dobutsu: Rules) -> None:
    settings = changed(SETTINGS, resign="1:1", games=4)
    ends = [record.termination for record in records_of(dobutsu, settings)]
    assert RESIGN_RULE in ends


def test_stop_drops_the_games_in_progress(dobutsu: Rules) -> None:
    made = generator(dobutsu, changed(SETTINGS, games=100))
    games = made.games()
    first = next(games)
    made.stop()
    assert isinstance(first, GameRecord)
    assert len(list(games)) < 99


def test_a_damaged_net_is_an_error(dobutsu: Rules) -> None:
    class Damaged(RandomEvaluator):
        def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
            answer = super().evaluate(planes)
            answer.policy[:] = np.nan
            return answer

    with pytest.raises(DataError, match="not a number"):
        games_of(dobutsu, SETTINGS, net=Damaged)


def test_seeds_of_games_differ() -> None:
    seeds = {game_seed(seed, number) for seed in range(5) for number in range(50)}
    assert len(seeds) == 250 and all(0 <= seed < 1 << 63 for seed in seeds)
