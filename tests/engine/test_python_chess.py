"""The engine through python-chess, which sites' bridges and match programs drive engines with."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("chess.engine", reason="python-chess is not installed")
import chess
import chess.engine
import chess.variant

ENGINE = [sys.executable, "-m", "variant_ai.cli.play.engine"]
pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def engine() -> Iterator[chess.engine.SimpleEngine]:
    with chess.engine.SimpleEngine.popen_uci(ENGINE, timeout=120) as opened:
        opened.configure({"Evaluator": "uniform", "Threads": 1, "Hash": 16, "Move Overhead": 20})
        yield opened


def test_a_game_with_drops(engine: chess.engine.SimpleEngine) -> None:
    board = chess.variant.CrazyhouseBoard()
    while board.ply() < 24 and not board.is_game_over():
        limit = chess.engine.Limit(nodes=40) if board.ply() % 2 else chess.engine.Limit(time=0.02)
        played = engine.play(board, limit, ponder=board.ply() % 3 == 0)
        assert played.move in board.legal_moves
        board.push(played.move)
    assert board.ply() >= 4


def test_a_clock(engine: chess.engine.SimpleEngine) -> None:
    limit = chess.engine.Limit(white_clock=1, black_clock=1, white_inc=0.01, black_inc=0.01)
    board = chess.variant.CrazyhouseBoard()
    assert engine.play(board, limit).move in board.legal_moves


def test_analysis_with_several_lines(engine: chess.engine.SimpleEngine) -> None:
    board = chess.variant.CrazyhouseBoard("6k1/5ppp/8/8/8/8/5PPP/3R2K1[] w - - 0 1")
    engine.configure({"Search_Settings": "paper"})
    lines = engine.analyse(board, chess.engine.Limit(nodes=3000), multipv=2)
    engine.configure({"Search_Settings": "default"})
    assert lines[0]["score"].white() == chess.engine.Mate(1)
    assert lines[0]["pv"] == [chess.Move.from_uci("d1d8")]
    assert len(lines) == 1  # no other move was looked at
    start = chess.variant.CrazyhouseBoard()
    assert len(engine.analyse(start, chess.engine.Limit(nodes=100), multipv=2)) == 2


def test_an_endless_analysis_is_stopped(engine: chess.engine.SimpleEngine) -> None:
    board = chess.variant.CrazyhouseBoard()
    with engine.analysis(board) as analysis:
        time.sleep(0.3)
        analysis.stop()
        best = analysis.wait()
    assert best.move in board.legal_moves


def test_a_position_without_moves(engine: chess.engine.SimpleEngine) -> None:
    mated = chess.variant.CrazyhouseBoard(
        "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR[] w KQkq - 1 3"
    )
    assert mated.is_checkmate()
    assert engine.play(mated, chess.engine.Limit(nodes=5)).move is None
