"""Games of self-play: legal, ended by the rules, the same whatever is played beside them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from variant_ai.core.arena.games.openings import Opening, played_out, random_lines
from variant_ai.core.data.game_record import (
    FULL_WEIGHT,
    TRAINS_POLICY,
    TRAINS_VALUE,
    GameRecord,
)
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.inference import RandomEvaluator
from variant_ai.core.reinforce.games.self_play import (
    CAPPED,
    RESIGNATION,
    BaseSelfPlay,
    SelfPlay,
    SlowSelfPlay,
    make_self_play,
    recorded_positions,
)
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings, SearchChoice, Variety
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.search.forest.forest_search import ForestSettings
from variant_ai.plugins import registry


def settings_of(variant: str, **words: Any) -> ReinforceSettings:
    search = {"nodes": 8, "considered": 8, **words.pop("search", {})}
    variety = {"max_plies": 40, **words.pop("variety", {})}
    return ReinforceSettings(
        variant=variant, search=search, variety=variety, **{"games_at_once": 4, **words}
    )


def player(
    variant: str,
    seed: int = 0,
    first_game: int = 1,
    openings: Sequence[Opening] = (),
    **words: Any,
) -> BaseSelfPlay:
    spec = registry().variant(variant)
    encoder = Encoder(spec)
    net = RandomEvaluator(encoder.shape, encoder.actions, seed)
    settings = settings_of(variant, **words)
    return make_self_play(
        spec, net, settings, generation=7, first_game=first_game, openings=openings
    )


def games_of(playing: BaseSelfPlay, count: int) -> dict[int, GameRecord]:
    return {record.number: record for record in itertools.islice(playing.finished(), count)}


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
@pytest.mark.parametrize(
    "variant", ["dobutsu", "minixiangqi", "crazyhouse", "xiangqi", "crazyhouse960"]
)
def test_games_keep_the_rules(variant: str, kind: str) -> None:
    playing = player(variant, search={"kind": kind, "full_share": 0.6})
    rules = make_rules(playing.spec)
    for record in games_of(playing, 12).values():
        assert record.visits is not None and record.root_values is not None
        assert record.trains is not None and record.generation == 7
        assert len(record.visits) == len(record.root_values) == len(record.trains) == record.plies
        game = Game(rules, record.start_fen)
        for ply, move in enumerate(record.moves):
            assert game.outcome() is None
            legal = game.legal_moves().tolist()
            assert move in legal
            weights = dict(record.visits[ply])
            assert set(weights) <= set(legal)
            if ply < record.opening_plies:
                assert record.trains[ply] == 0 and not weights
            elif record.trains[ply] & TRAINS_POLICY:
                assert sum(weights.values()) == FULL_WEIGHT
                assert min(weights.values()) > 0
            else:
                assert not weights
            game.push(move)
        outcome = game.outcome()
        if outcome is None:
            assert record.termination == CAPPED and record.plies == 40
            assert not any(bits & TRAINS_VALUE for bits in record.trains)
        else:
            assert (record.result, record.termination) == (outcome.result, outcome.reason)
            assert all(bits & TRAINS_VALUE for bits in record.trains[record.opening_plies :])


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_a_game_does_not_depend_on_those_beside_it(kind: str) -> None:
    search = {"kind": kind, "full_share": 0.5}
    many = games_of(player("minixiangqi", games_at_once=8, search=search), 16)
    one = games_of(player("minixiangqi", games_at_once=1, search=search), 4)
    assert set(one) == {1, 2, 3, 4}
    for number in set(one) & set(many):
        assert one[number] == many[number]


def test_numbers_go_on() -> None:
    alone = games_of(player("dobutsu", games_at_once=1, first_game=3), 1)
    together = games_of(player("dobutsu", games_at_once=1), 3)
    assert alone[3].moves == together[3].moves
    assert alone[3].moves != together[2].moves


def test_games_that_are_done_are_left_out() -> None:
    spec = registry().variant("dobutsu")
    encoder = Encoder(spec)
    net = RandomEvaluator(encoder.shape, encoder.actions)
    playing = SelfPlay(
        spec, net, settings_of("dobutsu"), generation=0, first_game=2, done=frozenset({3, 4})
    )
    numbers = {record.number for record in itertools.islice(playing.finished(), 12)}
    assert not numbers & {1, 3, 4}
    assert playing.next_number > 13


def test_another_net_in_the_middle_of_games() -> None:
    playing = player("minixiangqi")
    encoder = Encoder(playing.spec)
    finished = playing.finished()
    next(finished)
    playing.set_net(RandomEvaluator(encoder.shape, encoder.actions, seed=9), 8)
    generations = [next(finished).generation for _ in range(12)]
    assert generations[-1] == 8
    with pytest.raises(DataError):
        playing.set_net(RandomEvaluator((1, 2, 3), encoder.actions), 9)


def test_counters() -> None:
    playing = player("dobutsu", variety={"random_plies": (2, 2)})
    records = games_of(playing, 10).values()
    positions = sum(map(recorded_positions, records))
    assert positions == sum(record.plies - record.opening_plies for record in records)
    assert all(record.opening_plies == 2 for record in records)
    assert playing.evaluations >= positions


def test_a_proven_win_is_the_whole_target() -> None:
    """In dobutsu games end by a capture that the search sees: the last position is a proven win."""
    for record in games_of(player("dobutsu"), 20).values():
        if record.termination != CAPPED and record.result != "1/2-1/2":
            assert record.visits is not None and record.root_values is not None
            if record.root_values[-1] == 1.0:
                assert record.visits[-1] == ((record.moves[-1], FULL_WEIGHT),)
                break
    else:
        pytest.fail("no game ended by a proven win")


def test_resignation() -> None:
    variety = {"resign_below": -0.3, "resign_plies": 1, "played_out": 0.0}
    ends = [r.termination for r in games_of(player("crazyhouse", variety=variety), 12).values()]
    assert ends.count(RESIGNATION) > 3


def test_games_played_out_regardless_are_counted() -> None:
    variety = {"resign_below": -0.2, "resign_plies": 1, "played_out": 1.0, "max_plies": 200}
    playing = player("minixiangqi", variety=variety)
    records = games_of(playing, 10).values()
    assert not any(record.termination == RESIGNATION for record in records)
    decided = sum(record.termination != CAPPED for record in records)
    assert playing.resignations["played_out"] == decided
    assert 0 < playing.resignations["would_resign"] <= decided
    assert playing.resignations["wrong"] <= playing.resignations["would_resign"]


def test_branches_start_from_earlier_games() -> None:
    variety = {"branch_share": 1.0, "random_plies": (0, 0), "max_plies": 30}
    playing = player("minixiangqi", games_at_once=1, variety=variety)
    records = list(games_of(playing, 8).values())
    assert records[0].opening_plies == 0
    assert any(record.opening_plies > 0 for record in records[1:])


def test_random_plies_follow_an_opening() -> None:
    rules = make_rules(registry().variant("minixiangqi"))
    lines = random_lines(rules, 5, (3, 3), 0)
    game = played_out(rules, lines[0])
    openings = [*lines[1:], Opening(game.fen())]
    variety = {"random_plies": (1, 1), "max_plies": 20}
    records = list(games_of(player("minixiangqi", openings=openings, variety=variety), 40).values())
    starts = {Opening(record.start_fen, tuple(record.moves[:3])) for record in records}
    assert starts >= set(lines[1:])
    for record in records:
        if record.start_fen is None:
            assert record.opening_plies == 4
        else:
            assert record.start_fen == game.fen() and record.opening_plies == 1


def test_games_start_with_scattered_pieces() -> None:
    variety = {"scattered_share": 0.5, "max_plies": 30}
    records = list(games_of(player("minixiangqi", variety=variety), 16).values())
    scattered = [record for record in records if record.start_fen is not None]
    assert 0 < len(scattered) < 16
    assert all(record.opening_plies == 0 for record in scattered)
    assert len({record.start_fen for record in scattered}) == len(scattered)


def test_temperature_makes_games_differ() -> None:
    fixed = {"random_plies": (0, 0), "sampled_plies": 0, "max_plies": 12}
    varied = fixed | {"sampled_plies": 12, "temperature": 5.0, "temperature_end": 5.0}
    search = {"noise": False}
    same = games_of(player("minixiangqi", variety=fixed, search=search), 6)
    other = games_of(player("minixiangqi", variety=varied, search=search), 6)
    assert len({tuple(record.moves) for record in same.values()}) == 1
    assert len({tuple(record.moves) for record in other.values()}) == 6


def test_an_evaluation_that_is_not_a_number_is_an_error() -> None:
    class Damaged(RandomEvaluator):
        def evaluate(self, planes: np.ndarray) -> Any:
            answer = super().evaluate(planes)
            answer.policy[:] = np.nan
            return answer

    spec = registry().variant("dobutsu")
    encoder = Encoder(spec)
    net = Damaged(encoder.shape, encoder.actions)
    playing = SelfPlay(spec, net, settings_of("dobutsu"), generation=0)
    with pytest.raises(DataError, match="not a number"):
        next(playing.finished())


def test_rules_that_are_not_compiled() -> None:
    pytest.importorskip("pyffish")
    spec = registry().variant("dobutsu")
    encoder = Encoder(spec)
    net = RandomEvaluator(encoder.shape, encoder.actions)
    playing = SlowSelfPlay(spec, net, settings_of("dobutsu", search={"nodes": 4}), generation=2)
    for record in games_of(playing, 3).values():
        assert record.visits is not None and record.generation == 2
        searched = record.visits[record.opening_plies :]
        assert all(sum(n for _, n in ply) == FULL_WEIGHT for ply in searched)
        # four visits of moves: every weight is a quarter, a half, three quarters or all of it
        quarters = {round(4 * n / FULL_WEIGHT, 2) for ply in searched for _, n in ply}
        assert quarters <= {1.0, 2.0, 3.0, 4.0}
    playing.close()


def test_shuffled_games_begin_at_different_starts() -> None:
    starts = [game.start_fen for game in games_of(player("chess960"), 8).values()]
    assert None not in starts and len(set(starts)) >= 7
    assert {game.start_fen for game in games_of(player("chess"), 4).values()} == {None}


def test_every_setting_of_the_search_reaches_it() -> None:
    """Settings are copied by name: a new one that the trees do not have would have no effect."""
    of_trees = {field.name for field in fields(ForestSettings)}
    renamed = {"kind", "rescale"}
    of_games = {
        "openings",
        "opening_plies",
        "random_plies",
        "branch_share",
        "scattered_share",
        "draw_penalty",
        "played_out",
    }
    assert set(SearchChoice.model_fields) - of_trees == renamed
    assert set(Variety.model_fields) - of_trees == of_games
