"""Walls in the middle of the board: nothing stands there, walks over them, or is dropped there."""

from __future__ import annotations

import pytest

from variant_ai.core.rules import make_rules
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.spec import VariantSpec, parse_spec
from variant_ai.testing import check_encoder, check_rules

START = "h1eka1h/pp1dppp/1*3*1/2**3/1*3*1/PP1DPPP/H1EKA1H[SSss] w - - 0 1"
INI = f"""\
[walled]
maxFile = 7
maxRank = 7
pawn = p
customPiece1 = h:nN
customPiece2 = a:nA
customPiece3 = d:nD
customPiece4 = e:nZ
customPiece5 = s:W
king = k
castling = false
doubleStep = true
doubleStepRegionWhite = *2
doubleStepRegionBlack = *6
promotionRegionWhite = *7
promotionRegionBlack = *1
promotionPieceTypes = s
pieceDrops = true
capturesToHand = false
whiteDropRegion = *3 *4
blackDropRegion = *5 *4
startFen = {START}
"""
SPEC = f"""\
spec: 1
variant: walled
title: Walled
board: {{files: 7, ranks: 7}}
pieces:
  P: {{name: pawn, moves: fmWfcF, from: {{rank 2: fmnD}}, passant: true,
      promotes: {{at: rank 7, to: [S], must: true}}}}
  H: {{name: horse, moves: nN}}
  A: {{name: elephant, moves: nA}}
  D: {{name: tower, moves: nD}}
  E: {{name: jumper, moves: nZ}}
  S: {{name: soldier, moves: W, drop: rank 3-4}}
  K: {{name: king, moves: K, royal: true}}
hands: {{order: [S], promoted: keeps, captured: leaves the game}}
rules:
  start: {START}
  no_progress: {{plies: 100, reset: [captures, P, drops]}}
input: [{{pieces: me}}, {{pieces: them}}, {{hand: {{of: me, order: [S], max: 2}}}}, colour]
"""


def walled(*changes: tuple[str, str]) -> VariantSpec:
    """The spec after some changes, with its rules in the words of Fairy-Stockfish."""
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return parse_spec(text, "my.yaml").model_copy(update={"fairy": "walled", "fairy_ini": INI})


def test_lame_leapers_drops_and_double_steps_agree_with_fairy_stockfish() -> None:
    report = check_rules(walled(), 600, seed=3, isolated=False)
    assert report.agrees, report.first_difference
    assert report.engine == "kernel"
    assert report.counts["drops"] > 0 and report.counts["captures"] > 0


@pytest.mark.parametrize(
    "fen",
    [
        "6k/7/1*3*1/1H**3/1*3*1/7/6K[] w - - 0 1",
        "6k/7/1*1A1*1/2**3/1*3*1/7/6K[] w - - 0 1",
        "6k/7/1*D2*1/2**3/1*3*1/7/6K[] w - - 0 1",
        "6k/7/1*3*1/2**3/1*2E*1/7/6K[] w - - 0 1",
        # a horse on b4, which would give check on a2 and forbid c2
        "7/7/1*3*1/1h**3/1*3*1/K6/6k[] w - - 0 1",
    ],
)
def test_a_wall_blocks_a_leg(fen: str) -> None:
    spec = walled()
    rules, judge = make_rules(spec), FairyVariant.of_spec(spec, {})
    position = rules.position(fen)
    found = {uci(rules.types, 7, int(move)) for move in rules.legal_moves(position)}
    assert found == set(judge.legal_moves(fen))
    assert not rules.in_check(position)


def test_walls_that_the_players_see_on_other_squares_are_no_fault_of_the_encoder() -> None:
    start = START.replace("1*3*1/2**3", "7/2**3")
    report = check_encoder(walled((START, start)), 60, seed=3)
    assert report.agrees, report.first_difference
    assert "walls on other squares" in report.left_out
    assert (
        check_encoder(walled((START, start.replace("2**3/1*3*1", "7/7"))), 10, seed=3).left_out
        == ""
    )
