"""Loading the judge of chases: not while a client waits, nor with seconds left."""

from __future__ import annotations

import pytest
from protocol_client import FakeBuilder, hello

from variant_ai.core.engine.commands import SetPosition
from variant_ai.core.engine.current_game import CurrentGame, LazyChaseJudge
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.text.notation import uci
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

    monkeypatch.setattr("variant_ai.core.rules.fairy.fairy_rules.FairyRules.__init__", refuse)
    with hello("uci", FakeBuilder("xiangqi")) as client:
        client.ask("setoption name UCI_Variant value xiangqi")
        played = f"position fen {CHASE} moves {' '.join(CHASING)}"
        answer = client.ask(played, "go wtime 100 btime 100", until="bestmove")
        assert not any("error" in line for line in answer)


def test_a_lazy_judge_detects_no_chase_until_it_is_loaded() -> None:
    spec = registry().variant("xiangqi")
    judge = LazyChaseJudge(spec)
    table = CurrentGame(make_rules(spec), judge)
    reasons = []
    for _ in range(2):
        table.new_game()
        table.set(SetPosition(CHASE, CHASING))
        outcome = table.game.outcome()
        assert outcome is not None
        reasons.append((outcome.reason, outcome.winner))
        table.game.pop()
        assert (CHASING[-1] in chasing_moves(table)) == judge.is_loaded
        judge.load()
    assert reasons == [("repetition", None), ("perpetual chase", 1)]


def chasing_moves(table: CurrentGame) -> list[str]:
    """Moves that lose at once."""
    types, files = table.rules.types, table.rules.spec.board.files
    return [uci(types, files, move) for move in table.game.lost_at_once()]
