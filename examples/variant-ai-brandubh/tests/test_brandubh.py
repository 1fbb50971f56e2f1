"""Tests of the rules, by hand where they are the game's own and by the conformance kit for all else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from variant_ai_brandubh.tafl import TaflRules

import variant_ai
from variant_ai.core.errors import FenError, MoveError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.position import Position, piece_colour
from variant_ai.testing import check_rules_engine, check_spec, strategies

SPEC = variant_ai.load_variant("brandubh")
RULES = TaflRules(SPEC)


def test_the_kit() -> None:
    check_rules_engine(TaflRules, SPEC)
    reports = [report.require() for report in check_spec(SPEC, positions=2000, seed=1)]
    assert [report.verdict for report in reports] == ["skipped", "skipped", "agrees", "agrees"]


def test_the_start() -> None:
    game = Game(RULES)
    assert len(game.legal_moves()) == 40  # ten for each arm of the cross
    with pytest.raises(MoveError, match="illegal"):
        game.push_uci("d1a1")  # a corner
    game.push_uci("d2f2")
    assert len(game.legal_moves()) == 4 * 6 + 1  # six for each defender, and d3d2


@pytest.mark.parametrize(
    ("fen", "move", "board"),
    [
        ("7/7/2tT3/7/3k3/7/1T5 w - - 0 1", "b1b5", "7/7/1T1T3/7/3k3/7/7"),
        ("7/2T4/2t4/T6/3k3/7/7 w - - 0 1", "a4c4", "7/2T4/7/2T4/3k3/7/7"),
        ("7/7/7/7/3k3/7/1t1T3 w - - 0 1", "d1c1", "7/7/7/7/3k3/7/2T4"),
        ("7/7/7/2t4/7/3k3/1T5 w - - 0 1", "b1b4", "7/7/7/1T5/7/3k3/7"),
        ("7/7/7/2tk3/7/7/1T5 w - - 0 1", "b1b4", "7/7/7/1Ttk3/7/7/7"),
        ("7/7/1t1t3/2T4/3k3/7/7 w - - 0 1", "c4c5", "7/7/1tTt3/7/3k3/7/7"),
        ("7/T6/7/3k3/7/1tT4/7 b - - 0 1", "d4d2", "7/T6/7/7/7/1t1k3/7"),
        ("7/7/7/2T4/7/3k3/7 w - - 0 1", "c4e4", "7/7/7/4T2/7/3k3/7"),
    ],
    ids=[
        "between two on a rank",
        "between two on a file",
        "against a corner",
        "against the empty throne",
        "not against the own king on his throne",
        "not by moving between two",
        "by the king",
        "passing the empty throne",
    ],
)
def test_moves(fen: str, move: str, board: str) -> None:
    game = Game(RULES, fen)
    game.push_uci(move)
    assert game.fen().split()[0] == board
    assert game.outcome() is None


@pytest.mark.parametrize(
    ("fen", "move", "end"),
    [
        ("7/7/7/7/T6/1kT4/7 w - - 0 1", "a3a2", (0, "the king is captured")),
        ("7/7/3T3/2TkT2/T6/7/7 w - - 0 1", "a3d3", (0, "the king is captured")),
        ("7/7/7/2TkT2/T6/7/7 w - - 0 1", "a3d3", None),
        ("7/7/7/7/2TkT2/7/3T3 w - - 0 1", "d1d2", (0, "the king is captured")),
        ("7/7/7/7/2Tkt2/7/3T3 w - - 0 1", "d1d2", None),
        ("7/3T3/7/7/7/k6/7 b - - 0 1", "a2a1", (1, "the king has escaped")),
        ("7/3t3/7/7/7/K6/7 w - - 0 1", "a2a1", (0, "the king has escaped")),
        ("7/7/7/3k3/7/1tT4/7 b - - 0 1", "d4d2", (1, "stalemate is a loss for the side without a move")),
    ],
    ids=[
        "captured by two",
        "captured on the throne by four",
        "safe on the throne between two and one",
        "captured beside the throne by three",
        "safe beside the throne and his man",
        "escaped",
        "escaped with colours exchanged",
        "nobody left to move",
    ],
)  # fmt: skip
def test_ends(fen: str, move: str, end: tuple[int, str] | None) -> None:
    game = Game(RULES, fen)
    game.push_uci(move)
    outcome = game.outcome()
    assert (outcome and (outcome.winner, outcome.detail)) == end


@pytest.mark.parametrize(
    ("fen", "message"),
    [
        ("7/7/7/k6/7/1k5/7 w - - 0 1", "there is one king at most"),
        ("7/7/7/3T3/7/1k5/7 w - - 0 1", "only the king may stand on the throne and on corners"),
    ],
)
def test_positions_that_cannot_be(fen: str, message: str) -> None:
    with pytest.raises(FenError, match=message):
        RULES.position(fen)


@given(strategies.games(RULES))
@settings(max_examples=50, deadline=None)
def test_only_the_king_stands_on_throne_and_corners(game: Game) -> None:
    board = game.position["board"][0].tolist()
    for square in (RULES.throne, *RULES.corners):
        assert board[square] in (0, *RULES.kings)


@given(strategies.moves(RULES))
@settings(max_examples=50, deadline=None)
def test_a_move_never_removes_the_movers_pieces(found: tuple[Position, int]) -> None:
    position, move = found
    side = int(position["side"][0])
    before, after = (
        sum(code and piece_colour(code) == side for code in at["board"][0].tolist())
        for at in (position, RULES.play(position, move))
    )
    assert after == before
