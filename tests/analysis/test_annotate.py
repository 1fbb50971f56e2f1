"""Games judged move by move, with a search that says what the test wants."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence

import pytest

from variant_ai.core.analysis.annotated_game import (
    GameAnalysis,
    analyse_game,
    annotated,
    mark,
    move_accuracy,
    player_accuracy,
)
from variant_ai.core.data.game_record import MATE, GameRecord
from variant_ai.core.data.game_text import pgn_text
from variant_ai.core.data.read.pgn import PgnReader
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import SanNotation, UciNotation
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Line, Report, centipawns
from variant_ai.plugins import registry

LIMITS = Limits(simulations=10)


class Oracle:
    """Answers with a value (and a mate) for each ply, and with the best move it is given."""

    def __init__(
        self,
        values: Sequence[float],
        best: Mapping[int, Sequence[str]],
        mates: Mapping[int, int] | None = None,
    ) -> None:
        self.values = values
        self.best = best
        self.mates = mates or {}
        self.looked: list[int] = []
        self.game: Game | None = None

    def set_game(self, game: Game) -> None:
        self.game = game

    def run(
        self,
        limits: Limits,
        *,
        moves: Sequence[int] | None = None,
        multipv: int = 1,
        on_report: Callable[[Report], None] | None = None,
        interval: float = 1.0,
    ) -> Report:
        assert self.game is not None
        ply = self.game.ply
        self.looked.append(ply)
        copy = Game(self.game.rules, self.game.fen())
        texts = self.best.get(ply) or [""]
        pv = tuple(copy.push_uci(text) if text else int(copy.legal_moves()[0]) for text in texts)
        q = self.values[ply]
        line = Line(pv[0], pv, 10, 0.5, q, cp=centipawns(q), mate=self.mates.get(ply))
        return Report(best=pv[0], lines=(line,), visits=10, evaluations=8, seconds=0.5)


@pytest.fixture(scope="module")
def rules() -> Rules:
    return make_rules(registry().variant("chess"))


def record(rules: Rules, *moves: str, result: str = "*") -> GameRecord:
    game = Game.from_uci(rules, None, moves)
    return GameRecord("chess", game.moves, white="A", black="B", result=result)  # type: ignore[arg-type]


def analysed(rules: Rules) -> tuple[GameAnalysis, Oracle]:
    """White blunders with g2g4 (it was level and is now -0.5), Black answers with the best move,
    White throws away another 0.15."""
    oracle = Oracle(
        [0.0, 0.1, 0.0, 0.5, -0.5, 0.65],
        {2: ["d2d4", "d7d5", "b1c3"], 3: ["d7d5"], 4: ["f1g2"]},
    )
    game = record(rules, "e2e4", "e7e5", "g2g4", "d7d5", "h2h3")
    return analyse_game(oracle, rules, game, LIMITS), oracle


def test_moves_are_judged_by_what_they_give_away(rules: Rules) -> None:
    analysis, oracle = analysed(rules)
    assert oracle.looked == [0, 1, 2, 3, 4, 5]
    assert [judged.mark for judged in analysis.moves] == ["?!", "?!", "??", "", "?!"]
    blunder = analysis.moves[2]
    assert (blunder.value, blunder.value_played) == (0.0, -0.5)
    assert blunder.lost == pytest.approx(0.5)
    assert blunder.score == -centipawns(0.5)
    assert analysis.marks(0) == {"?!": 2, "?": 0, "??": 1}
    assert analysis.marks(1) == {"?!": 1, "?": 0, "??": 0}
    assert analysis.is_whole
    assert (analysis.visits, analysis.evaluations, analysis.seconds) == (60, 48, 3.0)


def test_the_move_of_the_search_costs_nothing(rules: Rules) -> None:
    oracle = Oracle([0.9, 0.9], {0: ["e2e4"]})
    analysis = analyse_game(oracle, rules, record(rules, "e2e4"), LIMITS)
    assert analysis.moves[0].lost == 0.0
    assert analysis.accuracy(0) == pytest.approx(100.0, abs=0.01)
    assert analysis.accuracy(1) is None


def test_mates_become_scores_of_the_player_who_moved(rules: Rules) -> None:
    game = record(rules, "f2f3", "e7e5", "g2g4", "d8h4", result="0-1")
    oracle = Oracle([0.0, 0.2, 0.0, 1.0], {3: ["d8h4"]}, mates={3: 1})
    analysis = analyse_game(oracle, rules, game, LIMITS)
    assert oracle.looked == [0, 1, 2, 3]  # nothing to look at once it is mate
    assert [judged.score for judged in analysis.moves][2:] == [1 - MATE, None]
    assert analysis.moves[3].value_played == 1.0
    assert analysis.moves[2].mark == "??"


def test_a_draw_that_nobody_claimed_is_no_end(rules: Rules) -> None:
    there, back = ["g1f3", "g8f6"], ["f3g1", "f6g8"]
    shuffled = [*there, *back, *there, *back]
    oracle = Oracle([0.3] * 10, {})
    ended = analyse_game(oracle, rules, record(rules, *shuffled), LIMITS)
    assert (ended.moves[-1].value_played, ended.moves[-1].score) == (0.0, None)
    went_on = analyse_game(oracle, rules, record(rules, *shuffled, "e2e4"), LIMITS)
    assert went_on.moves[7].score == -centipawns(0.3)
    assert went_on.moves[8].best is not None


def test_interrupted_games_keep_what_is_judged(rules: Rules) -> None:
    done: list[int] = []
    oracle = Oracle([0.0] * 5, {})
    analysis = analyse_game(
        oracle,
        rules,
        record(rules, "e2e4", "e7e5", "g1f3", "b8c6"),
        LIMITS,
        on_ply=lambda count, _: done.append(count),
        stopped=lambda: len(oracle.looked) >= 3,
    )
    assert len(analysis.moves) == 1
    assert not analysis.is_whole
    assert done == [1, 2]


def test_the_annotated_pgn_reads_back_with_scores(rules: Rules) -> None:
    analysis, _ = analysed(rules)
    said, remarks = annotated(
        analysis,
        annotator="test",
        players=("Red", "Black"),
        move_text=lambda position, move: f"move {position['ply'][0]}",
    )
    text = pgn_text(rules, SanNotation(), said, remarks)
    body = " ".join(text.split())
    assert '[Annotator "test"]' in body
    assert '[RedAccuracy "' in body
    assert '[BlackAccuracy "' in body
    assert "2. g4 $4 {[%eval -3.80] Blunder." in body
    assert "Blunder. move 2 was best.} (2. d4 d5 3. Nc3) 2... d5" in body
    (raw,) = PgnReader().read(io.BufferedReader(io.BytesIO(text.encode())), "x.pgn")  # type: ignore[arg-type]
    again = Resolver(rules, [SanNotation(), UciNotation()]).resolve(raw)
    assert isinstance(again, GameRecord)
    assert again.moves == analysis.record.moves
    assert again.scores == [judged.score for judged in analysis.moves]


def test_unannotated_games_are_written_as_before(rules: Rules) -> None:
    text = pgn_text(rules, SanNotation(), record(rules, "e2e4", "e7e5", result="1-0"))
    assert text.endswith("\n\n1. e4 e5 1-0\n\n")


@pytest.mark.parametrize(
    ("lost", "sign"), [(0.0, ""), (0.099, ""), (0.1, "?!"), (0.2, "?"), (0.3, "??"), (2.0, "??")]
)
def test_marks(lost: float, sign: str) -> None:
    assert mark(lost) == sign


def test_accuracy_falls_with_the_loss() -> None:
    """Points of the published curve: 10 per cent of winning chances cost a third."""
    assert move_accuracy(0.0) == pytest.approx(100.0, abs=0.01)
    assert move_accuracy(0.2) == pytest.approx(63.6, abs=0.1)
    assert move_accuracy(2.0) == 0.0
    assert player_accuracy([]) is None
    assert player_accuracy([0.0, 0.2]) == pytest.approx(81.8, abs=0.1)
