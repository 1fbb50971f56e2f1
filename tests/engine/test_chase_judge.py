"""Loading the judge of chases: not while a client waits, nor with seconds left."""

from __future__ import annotations

import pytest
from protocol_client import FakeBuilder, hello
from small_board import small_xiangqi

from variant_ai.core.engine.commands import SetPosition
from variant_ai.core.engine.current_game import CurrentGame, LazyChaseJudge
from variant_ai.core.errors import SpecError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.plugins import registry

CHASE = "2bakabnr/9/r1n1c4/2p1p1p1p/PP7/9/4P1P1P/2C3NC1/9/1NBAKAB1R w - - 0 1"
CHASING = ("c3a3", "a8b8", "a3b3", "b8a8", "b3a3", "a8b8", "a3b3", "b8a8", "b3a3")
"""A direct chase by a cannon: Fairy-Stockfish's test position."""


@pytest.mark.parametrize(
    ("go", "loaded"),
    [
        ("go wtime 60000 btime 60000", True),
        ("go nodes 20", True),
        ("go wtime 1000 btime 60000 winc 10 binc 10", False),
        ("go movetime 20", False),
        ("go depth 0", False),  # the value of the position: a clock may start at once
    ],
)
def test_the_judge_is_loaded_after_the_first_move_if_there_is_time(go: str, loaded: bool) -> None:
    builder = FakeBuilder("xiangqi")
    with hello("uci", builder) as client:
        client.ask("setoption name UCI_Variant value xiangqi")
        assert not builder.searches[-1].judges_chases
        client.ask("position startpos", go, until="bestmove")
        client.ask("isready")
        assert builder.searches[-1].judges_chases == loaded


def test_no_judge_is_loaded_at_a_repetition_with_seconds_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first player chases, the position occurs for the third time, and a tenth is left."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("loaded while the clock runs")

    monkeypatch.setattr("variant_ai.core.rules.chase_judge.ChaseJudge.load", refuse)
    with hello("uci", FakeBuilder("xiangqi")) as client:
        client.ask("setoption name UCI_Variant value xiangqi")
        played = f"position fen {CHASE} moves {' '.join(CHASING)}"
        answer = client.ask(played, "go wtime 100 btime 100", until="bestmove")
        assert not any("error" in line for line in answer)


def test_a_lazy_judge_detects_no_chase_until_it_is_loaded() -> None:
    rules = make_rules(registry().variant("xiangqi"))
    judge = LazyChaseJudge(rules)
    table = CurrentGame(rules, judge)
    reasons = []
    for _ in range(2):
        table.new_game()
        table.set(SetPosition(CHASE, CHASING))
        outcome = table.game.outcome()
        assert outcome is not None
        reasons.append((outcome.reason, outcome.winner))
        table.game.pop()
        assert (CHASING[-1] in chasing_moves(table)) == judge.is_loaded
        judge.load(pytest.fail)
    assert reasons == [("repetition", None), ("perpetual chase", 1)]


class OwnRules(FakeBuilder):
    """Rules that no other test has: their judge is not loaded yet."""

    def rules(self, spec: VariantSpec) -> Rules:
        return make_rules(spec)


@pytest.mark.parametrize("error", [SpecError("no such board"), RuntimeError("no such board")])
def test_a_judge_that_cannot_be_loaded_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The engine plays on, and a chase is a repetition as any other."""

    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("variant_ai.core.rules.fairy.fairy_rules.FairyRules.__init__", fail)
    builder = OwnRules("xiangqi")
    with hello("uci", builder) as client:
        client.ask("setoption name UCI_Variant value xiangqi")
        heard = []
        played = f"position fen {CHASE} moves {' '.join(CHASING)}"
        for position in ("position startpos", "position startpos moves h3e3", played):
            heard += client.ask(position, "go wtime 60000 btime 60000", until="bestmove")
        heard += client.ask("d", "go nodes 5", until="bestmove")
        assert sum("no such board" in line for line in heard) == 1
        assert any("result 1/2-1/2 (repetition)" in line for line in heard)
        assert not builder.searches[-1].judges_chases


def test_a_lazy_judge_of_another_board_is_never_loaded() -> None:
    problems: list[str] = []
    judge = LazyChaseJudge(make_rules(small_xiangqi()))
    assert not judge.load(problems.append) and not judge.is_loaded
    assert "9 x 9" in problems[0]


def chasing_moves(table: CurrentGame) -> list[str]:
    """Moves that lose at once."""
    types, files = table.rules.types, table.rules.spec.board.files
    return [uci(types, files, move) for move in table.game.lost_at_once()]
