"""Words that contradict each other are rejected, with their location."""

from __future__ import annotations

import pytest
from messages import error_message

from variant_ai.core.spec import builtin_specs, parse_spec

AT = "at: rank 8"
TO = "to: [N, B, R, Q]"
PAWN = "moves: fmWfcF, from: {rank 2: fmnD}, passant: true"
LAST = "  insufficient_material: true"


@pytest.mark.parametrize(
    ("name", "old", "new", "path", "expected"),
    [
        ("chess", "moves: N}", "moves: N, faces: B}", "pieces.N.faces", "on a royal piece"),
        ("chess", "moves: N}", "moves: N, faces: N}", "pieces.N.faces", "on a royal piece"),
        ("xiangqi", "faces: K", "faces: R", "pieces.K.faces", "accepted: K"),
        (
            "xiangqi",
            "fairy: xiangqi",
            "fairy: null",
            "rules.repetition.perpetual_chase",
            "judged by Fairy-Stockfish",
        ),
        ("janggi", "avoids: C", "avoids: K", "pieces.C.avoids", "not royal"),
        ("janggi", "  pass: may\n", "", "rules.facing_kings", "without `pass: may`"),
        ("janggi", "  - derived\n  - pass", "  - derived", "policy", "accepted: such as"),
        ("janggi", "{R: 13", "{Q: 9, R: 13", "rules.points.pieces.Q", "unknown piece"),
        (
            "janggi",
            "  stalemate: loss",
            "  stalemate: loss\n  insufficient_material: true",
            "rules.insufficient_material",
            "with `points`",
        ),
        (
            "janggi",
            "  stalemate: loss",
            "  stalemate: loss\n  counting: asean",
            "rules.counting",
            "`points` does not decide",
        ),
        (
            "chess",
            "royal: true",
            "royal: true, promotes: {at: rank 8, to: [Q], must: true}",
            "pieces.K.promotes",
            "K is royal",
        ),
        (
            "chess",
            "must: true",
            "must: rank 7-8",
            "pieces.P.promotes.must",
            "has squares that are not in `at`",
        ),
        ("chess", AT, "at: rank 6-8", "pieces.P.promotes.at", "where it captures en passant"),
        (
            "chess",
            PAWN,
            "moves: fmFfcW, from: {rank 2: fmnA}, passant: true",
            "pieces.P.passant",
            "no piece with `passant` has a lame double step straight ahead",
        ),
        (
            "chess",
            PAWN,
            "moves: fmWfcF, from: {rank 6: bmnD}, passant: true",
            "pieces.P.passant",
            "no piece with `passant` has a lame double step straight ahead",
        ),
        (
            "chess",
            PAWN,
            "moves: fmWfF, from: {rank 2: fmnD}, passant: true",
            "pieces.P.passant",
            "P has the same move with and without capture",
        ),
        (
            "chess",
            PAWN,
            "moves: fmWfcF, from: {rank 2: fmnDfmnA}, passant: true",
            "pieces.P.passant",
            "a lame step of P is not straight",
        ),
        (
            "chess",
            "reset: [captures, P]",
            "reset: [captures, P, captures]",
            "rules.no_progress.reset.2",
            "captures is listed already",
        ),
        (
            "crazyhouse",
            "  stalemate: draw",
            f"  stalemate: draw\n{LAST}",
            "rules.insufficient_material",
            "with hands any material may win; accepted: false",
        ),
        (
            "kingofthehill",
            "insufficient_material: null",
            "insufficient_material: true",
            "rules.insufficient_material",
            "with `wins` any material may win",
        ),
        (
            "crazyhouse",
            "promoted: returns as P",
            "promoted: reverts",
            "hands.promoted",
            "P promotes to N, which is in `order` itself; accepted: `returns as P`, `keeps`",
        ),
        (
            "dobutsu",
            "order: [C, E, G]",
            "order: [C, E, G, C]",
            "hands.order.3",
            "C is listed already; accepted: each piece once",
        ),
        (
            "crazyhouse",
            "  - promoted: them",
            "  - promoted: them\n  - pieces: me",
            "input.7",
            "'my pawns' is one of input.0 already; accepted: each block once",
        ),
        (
            "crazyhouse",
            "  - promoted: them",
            "  - last_moves: 2\n  - promoted: them\n  - last_moves: 1",
            "input.8",
            "'origin of their last move' is one of input.6 already; accepted: each block once",
        ),
        (
            "crazyhouse",
            "  - hand: {of: me,   order: [P, N, ",
            "  - hand: {of: me,   order: [P, N, P, ",
            "input.3.hand.order.2",
            "P is listed already; accepted: each piece once",
        ),
        (
            "crazyhouse",
            "drops: [P, N, B, R, Q]",
            "drops: [P, N, B, R, Q, K]",
            "policy.3.drops.5",
            "unknown piece in hand 'K'; accepted: P, N, B, R, Q",
        ),
        (
            "chess",
            "stalemate: draw",
            "stalemate: loss",
            "rules.insufficient_material",
            "with `stalemate: loss` any material may win; accepted: false",
        ),
        (
            "minixiangqi",
            "p1ppp1p/7/7/7",
            "p1ppp1p/*6/7/*6",
            "rules.start",
            "the walls are not symmetric, as `symmetry: [files]` needs",
        ),
        (
            "dobutsu",
            "promoted: reverts",
            "promoted: returns as X",
            "hands.promoted",
            "unknown piece 'X'",
        ),
    ],
)
def test_contradictions_are_named(name: str, old: str, new: str, path: str, expected: str) -> None:
    message = error_message(name, (old, new))
    assert f": {path}: " in message, message
    assert expected in message


def test_a_promoted_piece_that_reverts_comes_of_one_piece() -> None:
    chick = "promotes: {at: rank 4, to: [+C], must: true}"
    text = builtin_specs()["dobutsu"].read_text(encoding="utf-8")
    assert "to: [+C]" in text
    elephant = next(line for line in text.splitlines() if line.strip().startswith("E: {"))
    message = error_message("dobutsu", (elephant, f"{elephant.rstrip('}')}, {chick}}}"))
    assert "hands.promoted" in message and "a +C may have been C or E" in message


def test_two_choices_with_a_plus_are_written_alike() -> None:
    text = builtin_specs()["shogi"].read_text(encoding="utf-8")
    assert "to: [+P]" in text
    message = error_message("shogi", ("to: [+P]", "to: [+P, +N]"))
    assert "pieces.P.promotes.to.1" in message and "is a second choice with `+`" in message


def test_a_goal_must_be_as_symmetric_as_the_game() -> None:
    message = error_message(
        "minixiangqi",
        ("rules:\n", "rules:\n  wins: [{piece: K, reaches: a2-b3}]\n"),
    )
    assert "goal 'a2-b3' of `wins` is not symmetric" in message


def test_walls_that_differ_for_the_players_need_their_colour() -> None:
    wall = ("p1ppp1p/7/7/7", "p1ppp1p/*5*/7/7")
    message = error_message("minixiangqi", wall, ("  - colour\n", ""))
    assert ": input: the players see the walls on other squares" in message
    text = builtin_specs()["minixiangqi"].read_text(encoding="utf-8")
    assert parse_spec(text.replace(*wall)).rules.start
    even = text.replace("p1ppp1p/7/7/7", "p1ppp1p/*5*/7/*5*").replace("  - colour\n", "")
    assert parse_spec(even).rules.start
