"""A net that plays itself: its games repeat, and keep what its searches looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from toy_engine import changed

from variant_ai.core.arena.games.generated_games import Dropped, Ended, GeneratedGames
from variant_ai.core.arena.games.generation import (
    BlunderRule,
    GameGenerator,
    GenerationSettings,
    filtered,
    game_seed,
)
from variant_ai.core.arena.players.net_player import NetPlayer
from variant_ai.core.arena.players.player import Reply, Turn
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import RandomEvaluator
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams
from variant_ai.plugins import registry

SETTINGS = GenerationSettings(games=2, nodes=24, max_plies=14, random_plies=(2, 3))


@pytest.fixture(scope="module", params=["crazyhouse", "xiangqi"])
def rules(request: pytest.FixtureRequest) -> Rules:
    return make_rules(registry().variant(request.param))


def player(rules: Rules, kept_moves: int = 32) -> NetPlayer:
    spec = rules.spec
    encoder = Encoder(spec)

    def search() -> Search:
        params = SearchParams.of(
            spec, memory_mb=32, noise_epsilon=0.25, temperature=0.8, deterministic=True
        )
        return Search(spec, RandomEvaluator(encoder.shape, encoder.actions), params, rules=rules)

    return NetPlayer(search, "random net", kept_visits=kept_moves)


def played(rules: Rules, settings: GenerationSettings, kept_moves: int = 32) -> list[Ended]:
    return list(GameGenerator(settings, rules, lambda: player(rules, kept_moves)).games())


def test_visits_of_every_search_are_kept(rules: Rules) -> None:
    for record in played(rules, SETTINGS):
        assert isinstance(record, GameRecord)
        assert record.visits is not None and len(record.visits) == record.plies
        assert record.white == "random net" and record.scores is not None
        opening = int(record.tags["RandomPlies"])
        assert record.visits[:opening] == [()] * opening
        position = rules.position()
        for ply, (move, visited) in enumerate(zip(record.moves, record.visits, strict=True)):
            if ply >= opening:
                legal = rules.legal_moves(position).tolist()
                assert {m for m, _ in visited} <= set(legal)
                assert sum(n for _, n in visited) > 0
                assert [n for _, n in visited] == sorted((n for _, n in visited), reverse=True)
            position = rules.play(position, move)


def test_the_same_settings_give_the_same_games_with_any_workers(rules: Rules) -> None:
    one = played(rules, changed(SETTINGS, games=3))
    assert played(rules, changed(SETTINGS, games=3, workers=2)) == one


def test_only_the_most_visited_moves_are_kept(rules: Rules) -> None:
    whole = played(rules, SETTINGS)
    few = played(rules, SETTINGS, kept_moves=3)
    none = played(rules, SETTINGS, kept_moves=0)
    for a, b, c in zip(whole, few, none, strict=True):
        assert isinstance(a, GameRecord) and isinstance(b, GameRecord) and a.visits is not None
        assert b == replace(a, visits=[visited[:3] for visited in a.visits])
        assert c == replace(a, visits=None)


def test_a_journal_keeps_visits(rules: Rules, tmp_path: Path) -> None:
    games = played(rules, SETTINGS)
    with GeneratedGames(tmp_path / "g.store", rules.spec.variant, {}) as journal:
        for game in games:
            journal.add(game)
        assert list(journal.games()) == games


def test_a_cut_game_keeps_the_visits_of_what_is_left(rules: Rules) -> None:
    (record, *_) = played(rules, changed(SETTINGS, games=1, max_plies=30))
    assert isinstance(record, GameRecord) and record.visits is not None
    scores = [0] * record.plies
    for ply in range(4, record.plies):
        scores[ply] = 600 if ply % 2 == 0 else -600
    told = replace(record, scores=list(scores))
    kept = filtered(rules, told, BlunderRule(400, "cut"))
    assert kept is not None and kept.plies < record.plies
    assert kept.visits == record.visits[record.plies - kept.plies :]


def test_a_stopped_search_leaves_no_game(rules: Rules) -> None:
    """A search that was cut short knows less than the others: its game is dropped."""

    class Halting(NetPlayer):
        def __init__(self) -> None:
            inner = player(rules)
            super().__init__(inner._make_search, "halting")

        def play(self, game: Game, turn: Turn) -> Reply:
            found = super().play(game, turn)
            made._pool._stopped.set()
            return found

    made = GameGenerator(changed(SETTINGS, games=1), rules, Halting)
    assert all(game == Dropped(0, "stopped") for game in made.games())


def test_seeds_of_games_differ() -> None:
    seeds = {game_seed(seed, number) for seed in range(5) for number in range(50)}
    assert len(seeds) == 250 and all(0 <= seed < 1 << 63 for seed in seeds)
