"""Every move is proven; what cannot be read says where and why."""

from __future__ import annotations

import pytest
from importing import HOUSE, RED, RED_UCCI, RED_UCI, moves, one, one_skip, resolved, resolver

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.game_reader import RawGame, Skip


@pytest.mark.parametrize(
    ("variant", "text", "reason", "ply", "word"),
    [
        ("crazyhouse", "1. e4 e5 2. Ke3 *", "illegal move", 3, "Ke3"),
        ("crazyhouse", "1. e4 e5 2. P@e6 *", "illegal move", 3, "P@e6"),
        ("crazyhouse", "1. e4 Bogus *", "unreadable move", 2, "Bogus"),
        ("crazyhouse", "1. Nf3 d5 2. d4 d4 3. Nd2 *", "illegal move", 4, "d4"),
        ("crazyhouse", "1. Nf3 d6 2. d3 d5 3. Nd2 *", "ambiguous move", 5, "Nd2"),
        ("crazyhouse", "1. e4 e5 2. Nf", "cut off", 3, "Nf"),
        ("crazyhouse", "1. 炮二平五 馬８進７ *", "unreadable move", 1, "炮二平五"),
        ("xiangqi", "1. 炮二平五 馬８進６ *", "illegal move", 2, "馬８進６"),
        ("xiangqi", "1. 炮二平五 馬８進7\ufffd *", "wrong encoding", 2, "馬８進7\ufffd"),
        ("xiangqi", "1. e4 e5 *", "illegal move", 1, "e4"),
        ("xiangqi", "1. C2=5 H8+6 *", "illegal move", 2, "H8+6"),
    ],
)
def test_the_first_move_that_cannot_be_read_is_named(
    variant: str, text: str, reason: str, ply: int, word: str
) -> None:
    skip = one_skip(variant, "pgn", f'[Event "?"]\n\n{text}\n')
    assert (skip.reason, skip.ply, skip.text) == (reason, ply, word)
    assert (skip.source, skip.number, skip.line) == ("test", 1, 3)
    assert skip.detail


def test_other_reasons() -> None:
    assert one_skip("crazyhouse", "pgn", '[Event "?"]\n\n*\n').reason == "no moves"
    skip = one_skip("crazyhouse", "pgn", '[FEN "4k3/8/8 w - - 0 1"]\n\n1. e4 *\n')
    assert (skip.reason, skip.text) == ("bad FEN", "4k3/8/8 w - - 0 1")
    assert one_skip("crazyhouse", "pgn", "1. e4 {no end").reason == "cut off"


def test_a_bad_game_does_not_spoil_its_neighbours() -> None:
    games = resolved("crazyhouse", "pgn", f"{HOUSE}\n{HOUSE.replace('Qxd5', 'Qxd4')}\n{HOUSE}")
    assert [isinstance(game, GameRecord) for game in games] == [True, False, True]


def test_a_wrong_encoding_differs_from_wrong_moves() -> None:
    broken = ("1. " + " ".join(RED) + " *").encode("utf-8").replace("進".encode(), b"\xff\xfe")
    assert one_skip("xiangqi", "xiangqi-pgn", broken).reason in (
        "wrong encoding",
        "unreadable move",
    )


def test_the_notation_is_the_one_that_reads_to_the_end() -> None:
    made = resolver("xiangqi")
    for text in (RED_UCI, RED_UCCI, " ".join(RED), RED_UCI):
        game = made.resolve(RawGame("a", 1, 1, moves=text.split(), lines=[1] * 8))
        assert isinstance(game, GameRecord)
        assert moves(game) == RED_UCI


def test_games_before_do_not_change_the_notation() -> None:
    """`a1b1` is a move of one rook in UCI, of the other in UCCI."""
    fen = "3k5/9/9/9/9/9/9/9/R8/R3K4 w - - 0 1"
    asked = RawGame("a", 1, 1, headers={"FEN": fen}, moves=["a1b1"], lines=[1])
    fresh = resolver("xiangqi").resolve(asked)
    for earlier in (RED_UCI, RED_UCCI):
        made = resolver("xiangqi")
        made.resolve(RawGame("a", 1, 1, moves=earlier.split(), lines=[1] * 8))
        assert made.resolve(asked) == fresh


def test_the_error_is_that_of_the_notation_that_read_most() -> None:
    words = [*RED[:5], "馬２進９"]
    skip = resolver("xiangqi").resolve(RawGame("a", 1, 1, moves=words, lines=[1] * 6))
    assert not isinstance(skip, GameRecord)
    assert skip.ply == 6
    assert "chinese" in skip.detail


def test_a_start_position_of_ones_own() -> None:
    fen = "4k3/8/8/8/8/8/4P3/4K3[N] b - - 3 20"
    game = one("crazyhouse", "pgn", f'[SetUp "1"]\n[FEN "{fen}"]\n\n20... Kd7 21. N@c5+ *\n')
    assert moves(game) == "e8d7 N@c5"
    assert game.start_fen == fen
    start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
    assert one("crazyhouse", "pgn", f'[FEN "{start}"]\n\n1. e4 *\n').start_fen is None


def test_scores_are_from_the_view_of_the_mover() -> None:
    text = "1. e4 {[%eval 0.2]} e5 {[%eval 0.1]} 2. Nf3 *"
    assert one("crazyhouse", "pgn", text).scores == [20, -10, None]
    fen = "4k3/8/8/8/8/8/4P3/4K3[] b - - 0 1"
    text = f'[FEN "{fen}"]\n\n1... Kd7 {{[%eval 1.0]}} 2. e4 {{[%eval 2.0]}} *'
    assert one("crazyhouse", "pgn", text).scores == [-100, 200]


def test_games_that_share_their_opening_share_their_group() -> None:
    one_game = one("xiangqi", "moves", RED_UCI)
    same = one("xiangqi", "moves", RED_UCCI)
    other = one("xiangqi", "moves", RED_UCI.removesuffix(" g7g6"))
    assert one_game.group == same.group != other.group
    assert len(one_game.group) == 12


@pytest.mark.parametrize("name", ["Standard", "From Position", "chess"])
def test_sites_call_a_variant_by_other_names(name: str) -> None:
    (game,) = resolved("chess", "pgn", f'[Variant "{name}"]\n\n1. e4 e5 *\n')
    assert isinstance(game, GameRecord) and game.plies == 2


def test_other_variants_are_not_taken_for_it() -> None:
    (skip,) = resolved("chess", "pgn", '[Variant "King of the Hill"]\n\n1. e4 e5 *\n')
    assert isinstance(skip, Skip) and skip.reason == "another variant"
