"""Passes, facing kings, points and avoided pieces: janggi, and the same words in other variants."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from variant_ai.core.rules.game import Game
from variant_ai.core.rules.kernel.attacks import kings_face
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.spec import builtin_specs, load_spec, parse_spec

START_PASSES = ["e2e2", "e9e9"]


@cache
def janggi(*changes: str) -> KernelRules:
    """Rules of janggi with other words under `rules:`."""
    if not changes:
        return KernelRules(load_spec(builtin_specs()["janggi"]))
    words = ", ".join(changes)
    return KernelRules(
        parse_spec(f"{{spec: 1, extends: janggi, variant: mine, rules: {{{words}}}}}")
    )


def moves(rules: KernelRules, fen: str, *line: str) -> set[str]:
    game = Game.from_uci(rules, fen, line)
    return {uci(rules.types, rules.spec.board.files, int(m)) for m in game.legal_moves()}


def test_two_passes_end_the_game_by_points() -> None:
    game = Game.from_uci(janggi(), None, START_PASSES[:1])
    assert game.outcome() is None
    game.push_uci(START_PASSES[1])
    outcome = game.outcome()
    assert outcome is not None and (outcome.winner, outcome.reason) == (1, "variant win")
    assert outcome.detail == "both players passed: 72 points to 73.5"
    assert len(game.legal_moves()) == 0


def test_two_passes_without_points_draw() -> None:
    outcome = Game.from_uci(janggi("points: null"), None, START_PASSES).outcome()
    assert outcome is not None and outcome.winner is None
    assert outcome.detail == "both players passed: draw"


def test_a_move_between_two_passes_begins_the_count_again() -> None:
    game = Game.from_uci(janggi(), None, ["e2e2", "a10a9", "e2e2"])
    assert game.outcome() is None
    game.push_uci("e9e9")
    assert game.outcome() is not None


@pytest.mark.parametrize(
    ("white", "black", "winner"),
    [
        ("P", "", 0),
        ("NB", "c", 1),
        ("PPP", "n", 1),
        ("CN", "r", 1),
        ("R", "cn", 1),
        ("RP", "cn", 0),
    ],
)
def test_the_extra_points_of_the_second_player_decide(white: str, black: str, winner: int) -> None:
    fen = f"{black}{3 - len(black) or ''}k5/9/9/9/9/9/9/9/9/{white}{5 - len(white)}K3 w - - 0 1"
    outcome = Game.from_uci(janggi(), fen, ["f1f1", "d10d10"]).outcome()
    assert outcome is not None and outcome.winner == winner


def test_nobody_passes_in_check() -> None:
    fen = "3k5/9/9/9/9/9/9/9/R8/4K4 w - - 0 1"
    assert "d10d10" in moves(janggi(), fen, "a2a3")
    assert "d10d10" not in moves(janggi(), fen, "a2d2")


FACING = "4k4/9/9/9/9/9/9/9/4K4/R8 w - - 0 1"


def test_facing_kings_are_parted_or_the_game_ends() -> None:
    assert moves(janggi(), FACING) == {
        "e2e2", "e2d2", "e2f2", "e2d1", "e2f1", "e2d3", "e2f3"
    }  # fmt: skip
    outcome = Game.from_uci(janggi(), FACING, ["e2e2"]).outcome()
    assert outcome is not None and outcome.winner == 0
    assert outcome.detail == "passed between facing kings: 13 points to 1.5"
    function: Any = kings_face
    assert not function.signatures, "compiled for seconds in every process"


def test_facing_kings_may_stay_without_the_word() -> None:
    rules = janggi("facing_kings: null")
    assert "a1a5" in moves(rules, FACING)
    assert Game.from_uci(rules, FACING, ["e2e2"]).outcome() is None


def test_a_pass_between_facing_kings_is_legal_in_check() -> None:
    assert "e10e10" in moves(janggi(), "4k4/9/9/9/9/9/9/9/3K5/R8 w - - 0 1", "d2e2")
    checked = "r3k4/9/9/9/9/9/9/9/4K4/R8 w - - 0 1"
    assert "e2e2" in moves(janggi(), checked)
    checked = "4k4/9/9/9/9/9/9/9/r3K4/9 w - - 0 1"
    assert "e2e2" in moves(janggi(), checked)
    assert "e2e2" not in moves(janggi("facing_kings: null"), checked)


def test_cannons_neither_jump_over_cannons_nor_capture_them() -> None:
    fen = "4k4/9/9/9/9/9/9/9/C2cP2n1/4K4 w - - 0 1"
    assert not {m for m in moves(janggi(), fen) if m.startswith("a2") and m[2:] != "a2"}
    fen = "4k4/9/9/9/9/9/9/9/C2pP2c1/4K4 w - - 0 1"
    assert not {m for m in moves(janggi(), fen) if m.startswith("a2")} - {"a2a2"}


def test_a_cannon_that_is_no_hurdle_becomes_one_when_it_is_captured() -> None:
    """The king on e1 is checked along its file once a piece that is no cannon stands on e5."""
    fen = "3k5/9/9/4c4/9/4c4/2N6/9/9/4K4 w - - 0 1"
    rules = janggi()
    assert not rules.in_check(rules.position(fen))
    assert "c4e5" not in moves(rules, fen)
    assert "c4e5" in moves(rules, fen.replace("4c4/9/4c4", "9/9/4c4"))


def test_repetitions_are_decided_by_points() -> None:
    fen = "r2k5/9/9/9/9/9/9/9/9/R4K3 w - - 0 1"
    outcome = Game.from_uci(janggi(), fen, ["a1b1", "a10b10", "b1a1", "b10a10"] * 2).outcome()
    assert outcome is not None and (outcome.winner, outcome.reason) == (1, "repetition")
    assert outcome.detail.endswith("13 points to 14.5")


def test_the_move_count_is_decided_by_points() -> None:
    outcome = Game(janggi(), "3k5/9/9/9/9/9/9/9/9/R4K3 w - - 100 60").outcome()
    assert outcome is not None and (outcome.winner, outcome.reason) == (0, "move count")
    assert outcome.detail == "100 plies without captures: 13 points to 1.5"


def test_a_hopper_that_lands_behind_avoids_pieces_too() -> None:
    piece = "pieces: {C: {moves: gQ, avoids: P, from: null}}"
    words = f"{{spec: 1, extends: janggi, variant: mine, fairy: null, {piece}}}"
    rules = KernelRules(parse_spec(words))
    assert rules.in_check(rules.position("3k5/3n5/3C5/9/9/9/9/9/9/5K3 b - - 0 1"))
    assert not rules.in_check(rules.position("3k5/3p5/3C5/9/9/9/9/9/9/5K3 b - - 0 1"))


def test_kings_face_each_other_along_a_rank_too() -> None:
    words = "{spec: 1, extends: janggi, variant: mine, fairy: null, pieces: {K: {within: null}}}"
    rules = KernelRules(parse_spec(words))
    fen = "9/9/9/9/2K3k2/9/9/9/9/R8 w - - 0 1"
    assert {m for m in moves(rules, fen) if m.startswith("a1")} == set()
    assert "c6c6" in moves(rules, fen)
    assert "a1a2" in moves(rules, fen.replace("2K3k2", "2K1p1k2"))
