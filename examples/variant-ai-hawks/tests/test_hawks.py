"""The conformance kit of variant-ai, applied to the variant and to its reader; and its picture."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from variant_ai_hawks.score_sheets import ScoreSheetReader

import variant_ai
from variant_ai.core.draw.svg import board_svg
from variant_ai.testing import check_reader, check_rules_engine, check_spec

SPEC = variant_ai.load_variant("hawks")
RULES = variant_ai.make_rules(SPEC)


def test_the_variant() -> None:
    check_rules_engine(variant_ai.make_rules, SPEC, games=3)
    for report in check_spec(SPEC, positions=500, seed=1):
        report.require()


def test_hawks_jump_and_stags_step() -> None:
    moves = variant_ai.Position(SPEC).legal_moves()
    assert {"b1b3", "b1d3", "d1c3", "d1e3"} <= set(moves)


def test_the_reader() -> None:
    data = Path(__file__).with_name("example.sheet").read_bytes()
    first, second = check_reader(ScoreSheetReader, data, games=2, rules=RULES)
    assert (first.white, first.result, first.plies) == ("Anna", "1-0", 4)
    assert (second.black, second.result, second.plies) == ("Anna", "1/2-1/2", 2)


@pytest.mark.parametrize("heading", ["==", "== Anna", "== Anna - Bert, 3-1"])
def test_a_bad_heading_is_a_game_with_a_problem(heading: str) -> None:
    stream = io.BufferedReader(io.BytesIO(f"{heading}\na2-a3\n".encode()))
    (game,) = ScoreSheetReader().read(stream, "file")
    assert game.problem == "not a game" and "line 1: expected" in game.detail


def test_the_picture() -> None:
    svg = board_svg(SPEC, RULES.position())
    assert svg.count('fill="#a9bf86"') == 8  # the wood, seen from both sides
    assert SPEC.drawing.figures["H"] in svg and SPEC.drawing.figures["S"] in svg
