"""Generated games ended, dropped or cut by their scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from toy_engine import SHORT, ToyEngine, changed, played, toy_player

from variant_ai.core.arena.games.game_generators import PlayerGames
from variant_ai.core.arena.games.generated_games import (
    SHORTEST_CUT,
    BlunderRule,
    Dropped,
    Ended,
    filtered,
    last_blunder,
)
from variant_ai.core.data.game_record import MATE, MOVE_LIMIT, GameRecord
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules


class Scripted(ToyEngine):
    """Scores by game ply, 0 where nothing is said."""

    def __init__(self, rules: Rules, scores: Mapping[int, int]) -> None:
        super().__init__(rules)
        self.scores = scores

    def score(self, ply: int) -> int:
        return self.scores.get(ply, 0)


def scripted(
    rules: Rules, scores: Mapping[int, int], **said: Any
) -> tuple[list[GameRecord], list[Dropped]]:
    settings = changed(SHORT, games=1, random_plies=(2, 2), max_plies=30, **said)
    return played(PlayerGames(settings, rules, lambda: toy_player(Scripted(rules, scores))))


@pytest.mark.parametrize(
    ("scores", "both", "plies", "result"),
    [
        # the side of the even plies is lost three times in a row, and the game ends there
        ({4: -900, 6: -950, 8: -900}, False, 9, "0-1"),
        ({5: -900, 7: -900, 9: -2000}, False, 10, "1-0"),
        # once too few, or with a better score between
        ({4: -900, 6: -950, 8: -899}, False, 30, "1/2-1/2"),
        # the other side must say so too
        ({4: -900, 6: -950, 8: -900}, True, 30, "1/2-1/2"),
        ({4: -900, 6: -950, 8: -900, 3: 900, 5: 900, 7: 900}, True, 9, "0-1"),
    ],
)
def test_lost_games_are_ended(
    one_rules: Rules, scores: dict[int, int], both: bool, plies: int, result: str
) -> None:
    ((record,), dropped) = scripted(one_rules, scores, resign="3:900:both" if both else "3:900")
    assert (record.plies, record.result, dropped) == (plies, result, [])
    resigned = result != "1/2-1/2"
    assert record.termination == ("adjudicated: resign rule" if resigned else MOVE_LIMIT)


def test_the_last_blunder_is_found() -> None:
    # ply 2 is called equal by its mover, and +5 by who answers
    assert last_blunder([0, 0, 0, 500, -500, 500], 400) == 2
    assert last_blunder([0, 0, 0, 500, -500, 500], 500) is None
    # a mate that is lost again costs no more than a won game
    assert last_blunder([MATE - 3, 200], 1100) == 0
    assert last_blunder([MATE - 3, 200], 1200) is None
    assert last_blunder([MATE - 3, -900, 950], 100) is None
    # what was drawn by lot is nobody's blunder, and the last move has no answer
    assert last_blunder([0, None, 800, -800], 400) is None
    assert last_blunder([0, 0, 900], 900) is None
    assert last_blunder([], 1) is None


def test_games_with_blunders_are_dropped(one_rules: Rules) -> None:
    made = PlayerGames(
        changed(SHORT, drop_blunders=400),
        one_rules,
        lambda: toy_player(Scripted(one_rules, {10: 500})),
    )
    seen: list[Ended] = []
    with pytest.raises(EngineError, match="the last 100 games were all dropped"):
        seen.extend(made.games())
    assert {game.reason for game in seen if isinstance(game, Dropped)} == {"blunder"}
    kept, dropped = scripted(one_rules, {7: 500}, drop_blunders=500)
    assert len(kept) == 1 and dropped == []


def test_games_are_cut_behind_their_last_blunder(one_rules: Rules) -> None:
    # the mover of ply 8 believes in 0, the other side in +7 from then on
    scores = {ply: 700 if ply % 2 else -700 for ply in range(9, 30)}
    ((whole,), _) = scripted(one_rules, scores)
    ((record,), dropped) = scripted(one_rules, scores, cut_blunders=400)
    assert dropped == [] and record.tags["CutPlies"] == "9"
    assert record.moves == whole.moves[9:]
    assert record.scores is not None and whole.scores is not None
    assert record.scores == whole.scores[9:] and record.scores[0] == 700
    game = Game(one_rules)
    for move in whole.moves[:9]:
        game.push(move)
    assert record.start_fen == game.fen()
    assert (record.result, record.termination) == (whole.result, whole.termination)


def test_what_is_too_short_or_ends_otherwise_is_not_cut(one_rules: Rules) -> None:
    ((whole,), _) = scripted(one_rules, {})
    late = BlunderRule(400, "cut")
    scores = [0] * (whole.plies - SHORTEST_CUT)
    short = replace(whole, scores=[*scores, 900, *[0] * (SHORTEST_CUT - 1)])
    assert filtered(one_rules, short, late) is None
    # a repetition of which a part is cut away is none
    there_and_back = ["g1f3", "g8f6", "f3g1", "f6g8"] * 4
    game = Game(one_rules)
    for text in there_and_back:
        if game.outcome() is None:
            game.push_uci(text)
    assert game.outcome() is not None
    repeated = replace(whole, moves=list(game.moves), scores=[0, 900, *[0] * (game.ply - 2)])
    assert filtered(one_rules, repeated, replace(late, drop=950)) == repeated
    assert filtered(one_rules, repeated, late) is None
