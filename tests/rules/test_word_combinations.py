"""Words of the vocabulary in combinations that no shipped spec has."""

from __future__ import annotations

import re

import pytest

from variant_ai.core.errors import FenError, SpecError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import SanNotation, uci
from variant_ai.core.spec import builtin_specs, parse_spec


def rules_of(name: str, *changes: tuple[str, str]) -> Rules:
    """A built-in spec after some changes, without a name at Fairy-Stockfish and a policy of its own."""
    text = builtin_specs()[name].read_text(encoding="utf-8")
    text = re.sub(r"(?m)^fairy:.*\n", "", text)
    text = re.sub(r"(?ms)^policy:.*?(?=^\w|\Z)", "", text)
    for old, new in changes:
        assert old in text, f"the spec no longer has {old!r}"
        text = text.replace(old, new, 1)
    return make_rules(parse_spec(text, "my.yaml"))


def moves(rules: Rules, fen: str, start: str = "") -> list[str]:
    files = rules.spec.board.files
    found = [uci(rules.types, files, int(m)) for m in rules.legal_moves(rules.position(fen))]
    return sorted(text for text in found if text.startswith(start))


@pytest.mark.parametrize(
    ("word", "count"),
    [("RD", 14), ("B3A", 11), ("RH", 14), ("DnD", 4), ("NNnN", 12), ("gRD", 4), ("R3R", 14)],
)
def test_a_square_is_gone_to_once(word: str, count: int) -> None:
    """Pieces that leap and slide to the same square, from d4 on an otherwise empty board."""
    rules = rules_of("chess", ("name: knight, moves: N", f"name: knight, moves: {word}"))
    found = moves(rules, "7k/8/8/8/3N4/8/8/K7 w - - 0 1", "d4")
    assert len(found) == len(set(found)) == count


def test_a_torpedo_pawn_double_steps_once() -> None:
    rules = rules_of("chess", ("moves: fmWfcF, from: {rank 2:", "moves: fmW2fcF, from: {rank 2:"))
    assert moves(rules, rules.spec.rules.start, "a2") == ["a2a3", "a2a4"]
    # the double step that can be taken in passing is the one that stays
    game = Game.from_uci(rules, "4k3/8/8/8/1p6/8/P7/4K3 w - - 0 1", ["a2a4"])
    assert game.fen().split()[3] == "a3"


def test_a_double_step_back_is_not_taken_in_passing() -> None:
    rules = rules_of("chess", ("from: {rank 2: fmnD}", "from: {rank 2: fmnD, rank 5: bmnD}"))
    game = Game.from_uci(rules, "4k3/8/8/P7/1p6/8/8/4K3 w - - 0 1", ["a5a3"])
    assert game.fen().split()[3] == "-"
    game = Game.from_uci(rules, "4k3/8/8/8/p7/4K3/1P6/8 w - - 0 1", ["b2b4"])
    assert game.fen().split()[3] == "b3"


def test_a_king_may_not_castle_out_of_its_rooks_cover() -> None:
    rules = rules_of(
        "chess",
        ("rnbqkbnr/pppppppp", "nrbqkbnr/pppppppp"),
        ("RNBQKBNR", "NRBQKBNR"),
        ("rook: a1-d1", "rook: b1-d1"),
    )
    assert moves(rules, "4k3/8/8/8/8/8/8/1R2K3 w Q - 0 1", "e1c1") == ["e1c1"]
    assert moves(rules, "4k3/8/8/8/8/8/8/rR2K3 w Q - 0 1", "e1c1") == []


WINS = "rules:\n  wins: [{%s}]\n"


@pytest.mark.parametrize(
    ("goal", "fen", "winner"),
    [
        ("extinct: Q", "8/4k3/8/8/8/8/3K4/7q[Q] w - - 0 1", None),
        ("extinct: Q", "Q~7/4k3/8/8/8/8/3K4/7q[] w - - 0 1", None),
        ("extinct: Q", "8/4k3/8/8/8/8/3K4/7q[] w - - 0 1", 1),
        ("piece: Q, reaches: a8-h8", "Q~7/4k3/8/8/8/8/3K4/8[] b - - 0 1", 0),
        ("piece: Q, reaches: a8-h8", "8/Q~3k3/8/8/8/8/3K4/8[] b - - 0 1", None),
    ],
)
def test_pieces_in_hand_and_promoted_ones_are_of_their_kind(
    goal: str, fen: str, winner: int | None
) -> None:
    outcome = Game(rules_of("crazyhouse", ("rules:\n", WINS % goal)), fen).outcome()
    assert (None if outcome is None else outcome.winner) == winner
    if winner is not None:
        assert outcome is not None and outcome.reason == "variant win"


def test_a_slider_that_stays_in_a_zone() -> None:
    rules = rules_of("chess", ("moves: B}", "moves: R, within: rank 1-4}"))
    found = moves(rules, "4k3/8/8/8/8/2B5/8/4K3 w - - 0 1", "c3")
    assert {m[2:] for m in found if m[2] == "c"} == {"c1", "c2", "c4"}
    assert len(found) == 10


def test_a_piece_is_not_dropped_where_it_cannot_be() -> None:
    rules = rules_of("crazyhouse", ("moves: N}", "moves: N, within: rank 1-4}"))
    drops = moves(rules, "4k3/8/8/8/8/8/8/4K3[N] w - - 0 1", "N@")
    assert len(drops) == 31 and max(drop[3] for drop in drops) == "4"


def test_captures_in_passing_that_a_zone_gives_survive_a_fen() -> None:
    rules = rules_of(
        "chess",
        (
            "moves: fmWfcF, from: {rank 2: fmnD}",
            "moves: fmW, from: {rank 2: fmnD, rank 1-8: fcF}",
        ),
    )
    game = Game.from_uci(rules, "4k3/3p4/8/4P3/8/8/8/4K3 b - - 0 1", ["d7d5"])
    assert game.fen().split()[3] == "d6"
    assert "e5d6" in moves(rules, game.fen())


def test_a_third_castling_is_written_and_read() -> None:
    rules = rules_of(
        "chess",
        ("rook: a1-d1}}", "rook: a1-d1}, L: {king: e1-b1, rook: a1-c1}}"),
        ("w KQkq", "w KQLkql"),
    )
    san, position = SanNotation(), rules.position("4k3/8/8/8/8/8/8/R3K2R w KQL - 0 1")
    for move in rules.legal_moves(position).tolist():
        assert san.read(rules, position, san.write(rules, position, move)) == move


def test_promoted_pieces_in_hand_are_read() -> None:
    rules = rules_of(
        "minishogi",
        ("promoted: reverts", "promoted: keeps"),
        ("order: [P, S, G, B, R]", "order: [P, S, G, B, R, +P, +S, +B, +R]"),
    )
    board = rules.spec.rules.start.split()[0].split("[")[0]
    fen = f"{board.replace('B', '1', 1).replace('b', '1', 1)}[+b] w - - 0 1"
    game = Game(rules, fen)
    assert game.position["hands"][0, 1].tolist()[:9] == [0, 0, 0, 0, 0, 0, 0, 1, 0]
    assert Game(rules, game.fen()).fen() == game.fen()


@pytest.mark.parametrize(
    ("must", "leaving", "within"),
    [
        ("true", "a4+ a3+ a2+ a1+", "b5+ c5+ d5+ e5+"),
        ("rank 5", "a4 a4+ a3 a3+ a2 a2+ a1 a1+", "b5+ c5+ d5+ e5+"),
        ("false", "a4 a4+ a3 a3+ a2 a2+ a1 a1+", "b5 b5+ c5 c5+ d5 d5+ e5 e5+"),
    ],
)
def test_who_must_promote_must_also_when_leaving(must: str, leaving: str, within: str) -> None:
    """A rook that was dropped in its zone; a zone after `must` is where the move ends."""
    rules = rules_of("minishogi", ("to: [+R]}", f"to: [+R], must: {must}}}"))
    found = moves(rules, "R4/4k/5/5/4K[] w - - 0 1", "a5")
    assert {m[2:] for m in found} == set(f"{leaving} {within}".split())


def test_who_promotes_to_a_piece_that_must_promote_there_stands_there() -> None:
    """Bishops that reach the last rank become queens, pawns that reach it may become bishops."""
    rules = rules_of(
        "chess", ("moves: B}", "moves: B, promotes: {at: rank 8, to: [Q], must: true}}")
    )
    game = Game.from_uci(rules, "7k/P7/1B6/8/8/8/8/K7 w - - 0 1", ["a7a8b", "h8g8"])
    assert game.fen().startswith("B5k1/")
    assert Game(rules, game.fen()).fen() == game.fen()
    assert moves(rules, game.fen(), "b6d8") == ["b6d8q"]
    with pytest.raises(FenError, match="'N' cannot stand on a8: it had to promote"):
        rules_of(
            "chess",
            ("moves: N}", "moves: N, promotes: {at: rank 8, to: [Q], must: true}}"),
            ("to: [N, B, R, Q]", "to: [B, R, Q]"),
        ).position("N6k/8/8/8/8/8/8/K7 w - - 0 1")


def test_squares_of_forced_promotion_outside_the_zone_are_rejected() -> None:
    with pytest.raises(SpecError, match="'P' must promote on a8, which is not in its `at`"):
        rules_of("chess", ("at: rank 8", "at: d8-e8"), ("must: true", "must: where stuck"))


def test_a_board_of_another_size_than_fairy_stockfish_has_is_rejected() -> None:
    pytest.importorskip("pyffish")
    text = builtin_specs()["minixiangqi"].read_text(encoding="utf-8")
    assert "fairy: minixiangqi" in text
    spec = parse_spec(text.replace("fairy: minixiangqi", "fairy: xiangqi"), "my.yaml")
    with pytest.raises(SpecError, match="a board of 7 x 7, and Fairy-Stockfish plays 'xiangqi' on"):
        make_rules(spec, "fairy")


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR x KQkq - 0 1", "side to move 'x'"),
        ("rnbqkbnr/pppp1ppp/8/8/8/8/PPPPRPPP/RNBQKBN1 w Qkq - 0 1", "is in check"),
    ],
)
def test_a_start_that_cannot_be_played_is_rejected_with_the_rules(start: str, message: str) -> None:
    before = "start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
    with pytest.raises(SpecError, match=f"variant 'chess': rules.start: .*{message}"):
        rules_of("chess", (before, f"start: {start}"))
