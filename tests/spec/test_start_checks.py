"""Castling and the start array have to fit each other, and what does not is named with its line."""

from __future__ import annotations

import pytest
from messages import error_message

from variant_ai.core.spec import builtin_specs, parse_spec

CASTLING = "castling: {K: {king: e1-g1, rook: h1-f1}, Q: {king: e1-c1, rook: a1-d1}}"


@pytest.mark.parametrize(
    ("castling", "path", "expected"),
    [
        (
            "K: {king: d1-g1, rook: h1-f1}",
            "K.king",
            "the first player's queen (Q) stands on d1; the royal piece of the first player "
            "stands on e1",
        ),
        ("K: {king: e4-g4, rook: h4-f4}", "K.king", "nothing stands on e4 in rules.start; the"),
        ("K: {king: e8-g8, rook: h8-f8}", "K.king", "the second player's king (K) stands on e8"),
        ("K: {king: e1-f1, rook: g4-f4}", "K.rook", "'g4-f4' is not on the rank of the king's"),
        ("K: {king: e1-g1, rook: f4-h4}", "K.rook", "is not on the rank"),
        ("Q: {king: e1-b1, rook: e1-d1}", "Q.rook", "king and rook both start on e1"),
        ("K: {king: e1-g1, rook: h1-g1}", "K.rook", "king and rook both end on g1"),
        ("K: {king: e1-e1, rook: h1-f1}", "K.king", "the king does not move by 'e1-e1'"),
        ("K: {king: e1-e3, rook: h1-f1}", "K.king", "'e1-e3' is not along one rank"),
        ("K: {king: e1-g1, rook: h1-h2}", "K.rook", "'h1-h2' is not along one rank"),
        ("short: {king: e1-g1, rook: h1-f1}", "short", "'short' is not a castling right of a FEN"),
        ("k: {king: e1-g1, rook: h1-f1}", "k", "accepted: one capital letter, such as K"),
        (
            "K: {king: e1-g1, rook: h1-f1}, A: {king: e1-g1, rook: a1-f1}",
            "A.king",
            "'e1-g1' is the king's walk in castling K already",
        ),
        (
            "K: {king: e1-f1, rook: h1-e1}",
            "K.king",
            "castling K moves the king (K) from e1 to f1, and so does its move 'K'",
        ),
    ],
)
def test_walks_that_cannot_be_castled(castling: str, path: str, expected: str) -> None:
    message = error_message("chess", (CASTLING, f"castling: {{{castling}}}"))
    assert message.startswith("my.yaml:15:") and f" castling.{path}: " in message
    assert expected in message


def test_the_second_player_too_has_to_stand_at_home() -> None:
    message = error_message("chess", ("rnbqkbnr/pp", "rnbkqbnr/pp"))
    assert "castling.K.king: the second player's queen (Q) stands on e8; the royal" in message
    message = error_message("chess", ("RNBQKBNR", "RNBQKBN1"))
    assert "castling.K.rook: nothing stands on h1" in message
    # whom the FEN gives no right need not be able to castle
    text = builtin_specs()["chess"].read_text(encoding="utf-8")
    parse_spec(text.replace("rnbqkbnr/pp", "rnbkqbnr/pp").replace("w KQkq", "w KQ"))
    text = builtin_specs()["horde"].read_text(encoding="utf-8")
    assert parse_spec(text).castling
    message = error_message("horde", ("w kq", "w KQkq"))
    assert "pawn (P) stands on e1; the first player has no royal piece there" in message


def test_nobody_castles_through_a_wall() -> None:
    message = error_message("chess", ("RNBQKBNR", "RNBQK*NR"))
    assert "castling.K: king or rook of the first player would walk over f1, a wall" in message
    message = error_message("chess", ("rnbqkbnr/pp", "r*bqkbnr/pp"))
    assert "castling.Q: king or rook of the second player would walk over b8, a wall" in message
    start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RN*QKBNR w KQkq - 0 1"
    message = error_message(
        "chess960", ("{shuffle: chess960}", f"{{shuffle: as in the FEN, start: '{start}'}}")
    )
    assert "would walk over c1, a wall" in message
    # on other ranks, and beside the squares of a walk, it is in nobody's way
    text = builtin_specs()["chess"].read_text(encoding="utf-8")
    parse_spec(text.replace("8/8/8/8", "8/**6/8/8"))
    parse_spec(
        text.replace("RNBQKBNR", "*RBQKBNR")
        .replace("rook: a1-d1", "rook: b1-d1")
        .replace("KQkq", "KQk")
    )


def test_any_piece_may_be_the_rook() -> None:
    text = builtin_specs()["chess"].read_text(encoding="utf-8")
    parse_spec(text.replace("RNBQKBNR", "QNBQKBNN").replace("rnbqkbnr", "qnbqkbnn"))


def test_a_walk_that_the_king_has_anyway() -> None:
    king = "moves: K, royal: true"
    for word, expected in (
        ("KD", "castling K moves the king (K) from e1 to g1, and so does its move 'KD'"),
        ("Q", "from e1 to c1, and so does its move 'Q'"),
        ("KlD", "castling Q moves the king (K) from e1 to c1"),
        ("KrD", "castling q moves the king (K) from e8 to c8"),
        ("K, from: {rank 1: D}", "and so does its move 'D'"),
    ):
        assert expected in error_message("chess", (king, king.replace("K,", f"{word},", 1)))
    text = builtin_specs()["chess"].read_text(encoding="utf-8")
    for word in ("KcD", "KA", "K, from: {rank 2: D}"):
        parse_spec(text.replace(king, king.replace("K,", f"{word},", 1)))


@pytest.mark.parametrize("fields", ["w", "w 0 1", "w KQkq"])
def test_castling_needs_its_field_in_the_start_position(fields: str) -> None:
    message = error_message("chess", ("w KQkq - 0 1", fields))
    assert "rules.start: the field of castling rights is missing; write `KQkq -` after" in message


def test_castling_needs_its_king() -> None:
    # in atomic chess no piece is royal; the king is the one whose explosion loses
    castling = "castling: {K: {king: e2-g2, rook: h3-f2}}"
    message = error_message("atomic", ("fairy: atomic", f"fairy: atomic\n{castling}"))
    assert "castling.K.rook: 'h3-f2' is not along one rank" in message
    castling = "castling: {K: {king: e3-g3, rook: h3-f3}}"
    message = error_message("atomic", ("fairy: atomic", f"fairy: atomic\n{castling}"))
    assert (
        "nothing stands on e3 in rules.start; the royal piece of the first player stands on e1"
        in message
    )


def test_one_royal_piece_a_side() -> None:
    message = error_message("chess", ("RNBQKBNR", "RNBKKBNR"))
    assert "rules.start: the first player has 2 royal pieces, on d1, e1" in message


def test_a_king_that_may_explode_is_one_of_a_kind() -> None:
    pieces = "pieces: {K: {royal: null}, P: {promotes: {to: [K, Q]}}}"
    message = error_message("atomic", ("pieces: {K: {royal: null}}", pieces))
    assert "pieces.P.promotes: a player loses if the king explodes, so each has one" in message


def test_checks_to_a_king_that_may_explode_count() -> None:
    text = builtin_specs()["atomic"].read_text(encoding="utf-8")
    text = text.replace("[{extinct: K}]", "[{extinct: K}, {checks: 3}]")
    text = text.replace(
        "  explodes",
        "  start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 3+3 0 1\n  explodes",
    )
    assert parse_spec(text, "my.yaml").rules.wins[1].checks == 3


def test_a_bare_king_and_dead_positions_exclude_each_other() -> None:
    message = error_message("chess", ("  insufficient", "  bare_king: loss\n  insufficient"))
    assert "with `bare_king: loss` any material may win; accepted: false" in message
