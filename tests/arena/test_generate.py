"""Generated games: legal, repeatable, and never spoilt by an engine that misbehaves."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from toy_engine import SHORT, ToyEngine, changed, clients, generator, played, toy_player

from variant_ai.core.arena.games.game_generators import PlayerGames
from variant_ai.core.arena.games.generated_games import (
    Dropped,
    Ended,
    GeneratedGames,
    game_number,
    journal_path,
)
from variant_ai.core.arena.games.generation import MAX_FAILURES, MAX_UNWANTED, GenerationSettings
from variant_ai.core.arena.players.player import Player
from variant_ai.core.arena.players.player_spec import PlayerSpec
from variant_ai.core.arena.programs.engine_process import GAMES_FOLDERS
from variant_ai.core.arena.programs.program_player import UciPlayer, program_player
from variant_ai.core.data.game_record import MATE, GameRecord
from variant_ai.core.errors import DataError, EngineError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.plugins import registry

VARIANTS = sorted(name for name, e in registry().variants.items() if e.plugin == name)


@pytest.fixture(scope="module", params=VARIANTS)
def rules(request: pytest.FixtureRequest) -> Rules:
    return make_rules(registry().variant(request.param))


def test_games_are_legal_and_end_as_their_record_says(rules: Rules) -> None:
    games, dropped = played(generator(rules, changed(SHORT, max_plies=40)))
    assert (len(games), dropped) == (3, [])
    for record in games:
        game = Game(rules)
        for move in record.moves:
            assert game.outcome() is None
            assert move in game.legal_moves()
            game.push(move)
        outcome = game.outcome()
        if outcome is None:
            assert (record.plies, record.result) == (40, "1/2-1/2")
            assert record.termination == "adjudicated: move limit"
        else:
            assert (outcome.result, outcome.reason) == (record.result, record.termination)


def test_scores_are_kept_ply_for_ply(one_rules: Rules) -> None:
    games, _ = played(generator(one_rules, SHORT))
    for record in games:
        opening = int(record.tags["RandomPlies"])
        assert record.opening_plies == opening
        assert record.scores is not None and len(record.scores) == record.plies
        assert record.scores[:opening] == [None] * opening
        # the toy engine's score is the ply
        assert record.scores[opening:] == list(range(opening, record.plies))


def test_the_same_seed_gives_the_same_games_with_any_number_of_workers(one_rules: Rules) -> None:
    settings = changed(SHORT, games=5, random_share=0.2)
    one, _ = played(generator(one_rules, settings))
    two, _ = played(generator(one_rules, changed(settings, workers=3)))
    other, _ = played(generator(one_rules, changed(settings, seed=1)))
    assert one == two
    assert [g.moves for g in one] != [g.moves for g in other]


def test_openings_differ_and_are_as_long_as_asked(one_rules: Rules) -> None:
    settings = changed(SHORT, games=12, random_plies=(2, 3), max_plies=3)
    games, _ = played(generator(one_rules, settings))
    lengths = {int(g.tags["RandomPlies"]) for g in games}
    assert lengths == {2, 3}
    positions = {Game(one_rules).rules.fen(after(one_rules, g)) for g in games}
    assert len(positions) == len(games)


def after(rules: Rules, record: GameRecord) -> Position:
    game = Game(rules)
    for move in record.moves[: int(record.tags["RandomPlies"])]:
        game.push(move)
    return game.position


def test_when_short_openings_run_out_longer_ones_are_drawn(one_rules: Rules) -> None:
    settings = changed(SHORT, games=3, random_plies=(0, 0), max_plies=4)
    games, _ = played(generator(one_rules, settings))
    assert len({tuple(g.moves) for g in games}) == 3


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("fails", "engine Toy died"),
        ("illegal", "a1a1"),
        ("garbage", "?!"),
        ("no move", "Toy 1.0 reports no move"),
    ],
)
def test_a_misbehaving_engine_loses_its_game_and_is_restarted(
    one_rules: Rules, wrong: str, reason: str
) -> None:
    made = generator(one_rules, SHORT, wrong, at=(2,))
    games, dropped = played(made)
    assert [d.number for d in dropped] == [1]
    assert reason in dropped[0].reason
    assert [g.number for g in games] == [1, 3, 4]
    assert [client.starts for client in clients(made)] == [2]
    good, _ = played(generator(one_rules, changed(SHORT, games=4)))
    assert [g.moves for g in games] == [good[i].moves for i in (0, 2, 3)]


def test_an_engine_that_never_works_is_given_up(one_rules: Rules) -> None:
    made = generator(one_rules, changed(SHORT, games=100), "fails")
    seen: list[object] = []
    with pytest.raises(EngineError, match=f"{MAX_FAILURES} games in a row.*engine Toy died"):
        seen.extend(made.games())
    assert len(seen) == MAX_FAILURES


def test_failures_between_good_games_are_forgiven(one_rules: Rules) -> None:
    bad = tuple(range(2, 4 * MAX_FAILURES, 2))
    games, dropped = played(generator(one_rules, changed(SHORT, games=15), "fails", at=bad))
    assert len(games) == 15
    assert len(dropped) > MAX_FAILURES


@pytest.mark.parametrize(
    ("reason", "times"), [("engine Toy died", MAX_FAILURES), ("blunder", MAX_UNWANTED)]
)
def test_what_an_earlier_run_dropped_does_not_count(
    one_rules: Rules, reason: str, times: int
) -> None:
    """The engine that plays now may be a repaired one."""
    made = generator(one_rules, SHORT)
    results = list(made.games({number: Dropped(number, reason) for number in range(times)}))
    assert [game.number for game in results if isinstance(game, GameRecord)] == [
        times + 1 + k for k in range(SHORT.games)
    ]


def test_games_of_an_earlier_run_do_not_hide_a_failing_engine(one_rules: Rules) -> None:
    good, _ = played(generator(one_rules, changed(SHORT, games=2 * MAX_FAILURES)))
    done = {game_number(game): game for game in good[::2]}
    seen: list[Ended] = []
    with pytest.raises(EngineError, match=f"{MAX_FAILURES} games in a row"):
        seen.extend(generator(one_rules, changed(SHORT, games=100), "fails").games(done))
    assert len(seen) == 2 * MAX_FAILURES


def test_stop_ends_the_games_under_way(one_rules: Rules) -> None:
    made = generator(one_rules, SHORT)
    made.stop()
    assert list(made.games()) == []


def test_no_engine_is_left_behind(one_rules: Rules) -> None:
    made = generator(one_rules, changed(SHORT, games=10, workers=2))
    games = made.games()
    next(games)
    assert any(client.running for client in clients(made))
    games.close()
    assert not any(client.running for client in clients(made))


def test_the_check_names_the_engine_and_ends_it(one_rules: Rules) -> None:
    made = generator(one_rules, SHORT)
    assert made.check_player() == "Toy 1.0"
    assert not any(client.running for client in clients(made))


def test_nodes_vary_as_asked(one_rules: Rules) -> None:
    nodes: list[int] = []

    class Counting(ToyEngine):
        def asked(self, limits: Mapping[str, int]) -> None:
            nodes.append(limits["nodes"])

    settings = changed(SHORT, nodes=1000, node_jitter=0.1, games=6)
    made = PlayerGames(settings, one_rules, lambda: toy_player(Counting(one_rules)))
    played(made)
    assert all(900 <= n <= 1100 for n in nodes)
    assert min(nodes) < 930 and max(nodes) > 1070


def test_moves_by_lot_are_marked(one_rules: Rules) -> None:
    games, _ = played(generator(one_rules, changed(SHORT, random_share=0.5, games=4)))
    marks = 0
    for record in games:
        assert record.scores is not None
        opening = int(record.tags["RandomPlies"])
        unscored = {ply for ply in range(opening, record.plies) if record.scores[ply] is None}
        assert set(record.comments) == unscored
        marks += len(unscored)
    assert marks > 5


def test_a_game_played_before_is_dropped(one_rules: Rules) -> None:
    # one opening, nothing random behind it: longer openings lead into the same game
    made = generator(one_rules, changed(SHORT, random_plies=(0, 0), games=3))
    first = next(g for g in made.games() if isinstance(g, GameRecord))
    again = generator(one_rules, changed(SHORT, random_plies=(0, 0), games=3))
    results = list(again.games({0: first, 1: replace(first, number=2)}))
    assert results[:2] == [first, Dropped(1, "duplicate")]
    kept = [game for game in results if isinstance(game, GameRecord)]
    assert len(kept) == 3 and len({tuple(game.moves) for game in kept}) == 3


def test_games_are_told_when_they_end_whoever_is_slow(one_rules: Rules) -> None:
    """One of the first two games waits for the third: a kill meanwhile must not cost the others."""
    third, to_wait = threading.Event(), threading.Semaphore(1)

    class Slow(ToyEngine):
        def asked(self, limits: Mapping[str, int]) -> None:
            if to_wait.acquire(blocking=False):
                assert third.wait(30)

    settings = changed(SHORT, games=3, workers=2)
    made = PlayerGames(settings, one_rules, lambda: toy_player(Slow(one_rules)))
    told: list[int] = []

    def tell(game: Ended) -> None:
        told.append(game_number(game))
        if len(told) == 2:
            third.set()

    games = list(made.games(on_end=tell))
    assert sorted(told) == [0, 1, 2] and told[-1] != 2
    assert games == played(generator(one_rules, settings))[0]


def test_an_interrupted_run_goes_on_with_the_same_games(one_rules: Rules, tmp_path: Path) -> None:
    settings = changed(SHORT, games=5)
    whole, _ = played(generator(one_rules, settings))
    store, said = tmp_path / "g.store", {"seed": 0}
    with GeneratedGames(store, one_rules.spec.variant, said) as journal:
        for record in (whole[2], whole[0]):
            journal.add(record)
        journal.add(Dropped(7, "blunder"))
    with journal_path(store).open("ab") as torn:
        torn.write(b'{"number": 3, "mov')
    with pytest.raises(DataError, match="another command"):
        GeneratedGames(store, one_rules.spec.variant, {"seed": 1})
    with GeneratedGames(store, one_rules.spec.variant, said) as journal:
        assert (journal.resumed, set(journal.done)) == (3, {0, 2, 7})
        done = journal.done
        assert [done[0], done[2]] == [whole[0], whole[2]]
        assert list(generator(one_rules, settings).games(done, journal.add)) == whole
        after = list(journal.kept(6))
        assert [game for game in after if isinstance(game, GameRecord)] == whole
        assert Dropped(7, "blunder") in after
        journal.remove()
    assert not journal_path(store).exists()


def test_a_game_that_the_engine_failed_in_is_played_again(one_rules: Rules, tmp_path: Path) -> None:
    whole, _ = played(generator(one_rules, SHORT))
    store, settings = tmp_path / "g.store", dict[str, Any]()
    for wrong, numbers in (("fails", {0, 3, 4}), ("", {0, 1, 2, 3, 4})):
        with GeneratedGames(store, one_rules.spec.variant, settings) as journal:
            list(generator(one_rules, SHORT, wrong, at=(2, 3)).games(journal.done, journal.add))
            assert set(journal.done) == numbers
    with GeneratedGames(store, one_rules.spec.variant, settings) as journal:
        assert list(journal.games())[: SHORT.games] == whole


# --- a real engine -------------------------------------------------------------------------------

HAVE_PEER = shutil.which("fairy-stockfish") or any(
    Path(folder, "fairy-stockfish").exists() for folder in GAMES_FOLDERS
)


def peer(rules: Rules) -> Player:
    spec = PlayerSpec(command="fairy-stockfish")
    player = program_player(spec, rules, soft_options={"Hash": "1"})
    assert isinstance(player, UciPlayer)
    player.resets_threads = True
    return player


@pytest.mark.peer
@pytest.mark.skipif(not HAVE_PEER, reason="fairy-stockfish is not installed")
def test_a_real_engine(rules: Rules) -> None:
    made = PlayerGames(GenerationSettings(games=2, nodes=60), rules, lambda: peer(rules))
    games, dropped = played(made)
    assert dropped == []
    assert all(g.white.startswith("Fairy-Stockfish") for g in games)
    for record in games:
        assert record.scores is not None
        if record.termination == "checkmate":
            assert record.scores[-1] == MATE - 1


@pytest.mark.peer
@pytest.mark.skipif(not HAVE_PEER, reason="fairy-stockfish is not installed")
def test_a_real_engine_begins_every_game_anew(rules: Rules) -> None:
    """What it learnt in one game is no part of the next: with more workers, and for a run that goes
    on, other games come before."""

    def games(workers: int, done: Mapping[int, Ended] | None = None) -> list[GameRecord]:
        settings = GenerationSettings(games=6, nodes=400, max_plies=60, workers=workers)
        made = PlayerGames(settings, rules, lambda: peer(rules))
        return [game for game in made.games(done) if isinstance(game, GameRecord)]

    alone = games(1)
    assert games(3) == alone
    assert games(1, {game_number(game): game for game in alone[:4]}) == alone
