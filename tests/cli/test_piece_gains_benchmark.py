"""`benchmarks/piece_gains.py`: the fit finds the gains that made its targets."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from variant_ai import Engine, Position

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from piece_gains import Gains, fitted, leaves_of


def test_gains_that_made_the_targets_are_found() -> None:
    rng = np.random.default_rng(1)
    with Engine("xiangqi", evaluator="random", look_for_material=False) as engine:
        engine.analyse(Position("xiangqi", None, "h3e3 h10g8 e3e7 a10a9"), nodes=200)
        fens = [fen for _ in range(60) for fen in leaves_of(engine.search, rng)]
        gains = Gains(engine, fens)
        truth = np.array([{"R": 0.6, "C": 0.3, "N": 0.2}.get(piece, 0.1) for piece in gains.pieces])
        found = gains.of(truth)
        assert (found > 0).mean() > 0.2
        logits = rng.normal(0, 0.5, len(fens))
        table = fitted(gains, logits, np.tanh(logits + found))
    counted = np.abs(gains.captures(table)).sum(0) > 20  # pieces that these leaves can capture
    assert counted.any()
    assert table[counted] == pytest.approx(truth[counted], abs=0.03)
