"""Move text both ways; crazyhouse SAN is compared with python-chess."""

from __future__ import annotations

import random

import chess.variant
import pytest

from variant_ai.core.errors import MoveError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import (
    IccsNotation,
    SanNotation,
    UciNotation,
    core_notations,
    uci,
)

SAN, UCI, ICCS = SanNotation(), UciNotation(), IccsNotation()


def test_names() -> None:
    assert [notation.name for notation in core_notations()] == ["uci", "san", "iccs"]


@pytest.mark.parametrize(
    ("engine", "seed"),
    [("fairy", 0), *(("kernel", seed) for seed in range(12))],
    indirect=["engine"],
)
def test_san_agrees_with_python_chess(crazyhouse: Rules, seed: int) -> None:
    rng = random.Random(seed)
    board = chess.variant.CrazyhouseBoard()
    position = crazyhouse.position()
    for _ in range(90):
        moves = list(board.legal_moves)
        if not moves:
            break
        # what SAN finds hard: captures, promotions, castling, several pieces to one square
        hard = [m for m in moves if m.promotion or board.is_castling(m) or board.is_capture(m)]
        their_move = rng.choice(hard if hard and rng.random() < 0.6 else moves)
        their_text = board.san(their_move)
        expected = f"P{their_text}" if their_text.startswith("@") else their_text
        move = UCI.read(crazyhouse, position, their_move.uci())
        assert SAN.write(crazyhouse, position, move) == expected
        bare = their_text.rstrip("+#")
        for text in (their_text, expected, bare, f"{their_text}!?", bare.replace("O", "0")):
            assert SAN.read(crazyhouse, position, text) == move, text
        if not their_move.drop and not board.is_castling(their_move):
            # over-disambiguated, under-marked, and as engines write it
            assert SAN.read(crazyhouse, position, bare.replace("x", "")) == move
            assert SAN.read(crazyhouse, position, bare.replace("=", "")) == move
            assert SAN.read(crazyhouse, position, their_move.uci()) == move
            letter = "" if their_text[0].islower() else their_text[0]
            long = letter + their_move.uci()[:2] + "-" + their_move.uci()[2:]
            assert SAN.read(crazyhouse, position, long) == move
        board.push(their_move)
        position = crazyhouse.play(position, move)


def test_san_of_written_examples(crazyhouse: Rules) -> None:
    both_rooks = "4k3/8/8/R6R/8/8/8/4K3[NPp] w - - 0 1"
    for fen, text, expected in (
        (both_rooks, "Rad5", "a5d5"),
        (both_rooks, "R5d5", None),
        (both_rooks, "Rd5", None),
        (both_rooks, "Ra5d5", "a5d5"),
        (both_rooks, "N@g5", "N@g5"),
        (both_rooks, "n@g5", "N@g5"),
        (both_rooks, "P@h6", "P@h6"),
        (both_rooks, "@h6", "P@h6"),
        (both_rooks, "P@h8", None),
        (both_rooks, "Q@h6", None),
        ("4k3/P7/8/8/8/8/8/4K3[] w - - 0 1", "a8=Q+", "a7a8q"),
        ("4k3/P7/8/8/8/8/8/4K3[] w - - 0 1", "a8n", "a7a8n"),
        ("4k3/P7/8/8/8/8/8/4K3[] w - - 0 1", "a8", None),
        ("4k3/8/8/8/8/8/8/R3K2R[] w KQ - 0 1", "0-0", "e1g1"),
        ("4k3/8/8/8/8/8/8/R3K2R[] w KQ - 0 1", "O-O-O!", "e1c1"),
        ("4k3/8/8/8/8/8/8/R3K2R[] w K - 0 1", "O-O-O", None),
        ("4k3/8/8/3pP3/8/8/8/4K3[] w - d6 0 1", "exd6e.p.", "e5d6"),
    ):
        position = crazyhouse.position(fen)
        if expected is None:
            with pytest.raises(MoveError, match="FEN"):
                SAN.read(crazyhouse, position, text)
        else:
            assert uci(crazyhouse.types, 8, SAN.read(crazyhouse, position, text)) == expected


def test_errors_tell_the_kinds_apart(crazyhouse: Rules) -> None:
    position = crazyhouse.position("4k3/8/8/R6R/8/8/8/4K3[] w - - 0 1")
    with pytest.raises(MoveError, match=r"ambiguous san move 'Rd5': it could be .*a5d5.*FEN 4k3"):
        SAN.read(crazyhouse, position, "Rd5")
    with pytest.raises(MoveError, match=r"illegal san move 'Qd5'.*FEN 4k3"):
        SAN.read(crazyhouse, position, "Qd5")
    with pytest.raises(MoveError, match=r"unreadable san move '炮二平五'.*FEN 4k3"):
        SAN.read(crazyhouse, position, "炮二平五")
    with pytest.raises(MoveError, match=r"unreadable uci move 'x{40}\.\.\.'"):
        UCI.read(crazyhouse, position, "x" * 10**6)


@pytest.mark.parametrize("notation", core_notations(), ids=lambda n: n.name)
def test_every_legal_move_comes_back(rules: Rules, notation: SanNotation) -> None:
    rng = random.Random(5)
    game = Game(rules)
    every = 6 if rules.name == "kernel" else 30
    for ply in range(60):
        legal = game.legal_moves()
        if not len(legal):
            break
        if ply % every == every - 1:
            texts = [notation.write(rules, game.position, int(m)) for m in legal]
            assert len(set(texts)) == len(texts)
            for text, move in zip(texts, legal.tolist(), strict=True):
                assert notation.read(rules, game.position, text) == move
        game.push(int(rng.choice(legal)))


def test_iccs_counts_ranks_from_zero(xiangqi: Rules) -> None:
    start = xiangqi.position()
    for text in ("H2-E2", "h2e2", "H2E2", "h2-e2"):
        assert ICCS.write(xiangqi, start, ICCS.read(xiangqi, start, text)) == "H2-E2"
    assert UCI.write(xiangqi, start, ICCS.read(xiangqi, start, "H2-E2")) == "h3e3"
    with pytest.raises(MoveError, match="illegal iccs"):
        ICCS.read(xiangqi, start, "H2-E3")
    with pytest.raises(MoveError, match="unreadable iccs"):
        ICCS.read(xiangqi, start, "H2-E10")


def test_uci_reads_ten_ranks(xiangqi: Rules) -> None:
    position = xiangqi.position("4k4/9/9/9/9/9/9/9/R8/3K5 w - - 0 1")
    assert UCI.write(xiangqi, position, UCI.read(xiangqi, position, "a2a10")) == "a2a10"
    with pytest.raises(MoveError):
        UCI.read(xiangqi, position, "a2a11")


def test_castling_as_king_takes_rook(crazyhouse: Rules) -> None:
    position = crazyhouse.position("4k3/8/8/8/8/8/8/R3K2R[] w KQ - 0 1")
    assert UCI.read(crazyhouse, position, "e1h1") == UCI.read(crazyhouse, position, "e1g1")
    with pytest.raises(MoveError):
        UCI.read(crazyhouse, position, "e1b1")
