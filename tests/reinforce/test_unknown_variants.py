"""Runs of variants that nobody has written code for."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_runs import check_run, small_settings

from variant_ai.core.reinforce.reinforcement import Reinforcement
from variant_ai.plugins import registry

FIVE = """
spec: 1
variant: five
title: Five by five, a knight that also steps, drops of pawns only
fairy: null
board: {files: 5, ranks: 5}
pieces:
  P: {name: pawn,  moves: fmWfcF, promotes: {at: rank 5, to: [N], must: true}}
  N: {name: horse, moves: NW}
  R: {name: rook,  moves: R}
  K: {name: king,  moves: K, royal: true}
rules:
  start: rnknr/ppppp/5/PPPPP/RNKNR w - - 0 1
  repetition: {fold: 3}
  no_progress: {plies: 60, reset: [captures, P]}
input:
  - pieces: me
  - pieces: them
  - repetitions: 2
  - colour
"""
JUDGED = """
extends: minixiangqi
variant: judged
title: minixiangqi whose rules are asked of Fairy-Stockfish, position by position
rules: {engine: fairy}
"""


def test_a_variant_of_a_yaml_file_learns(tmp_path: Path) -> None:
    path = tmp_path / "five.yaml"
    path.write_text(FIVE)
    settings = small_settings(str(path), generations=2)
    assert Reinforcement(settings, registry().variant(str(path)), tmp_path / "run").run()
    check_run(tmp_path / "run", 2, in_hand=settings.games_at_once, variant=str(path))


@pytest.mark.slow
def test_a_variant_whose_rules_are_not_compiled_learns(tmp_path: Path) -> None:
    pytest.importorskip("pyffish")
    path = tmp_path / "judged.yaml"
    path.write_text(JUDGED)
    settings = small_settings(
        str(path),
        generations=1,
        positions=12,
        games_at_once=1,
        variety={"max_plies": 10, "random_plies": (0, 1)},
    )
    spec = registry().variant(str(path))
    run = Reinforcement(settings, spec, tmp_path / "run", rules=registry().rules(spec))
    assert run.run()
    check_run(tmp_path / "run", 1, in_hand=1, variant=str(path))
