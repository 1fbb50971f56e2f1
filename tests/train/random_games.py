"""Stores of random games."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.game_store import StoreWriter
from variant_ai.core.rules import make_rules
from variant_ai.core.spec import VariantSpec


def random_store(path: Path, spec: VariantSpec, games: int, plies: int, seed: int) -> Path:
    """Games of random legal moves with random results; every year from 2001 to 2004."""
    rules = make_rules(spec)
    rng = np.random.default_rng(seed)
    results = ("1-0", "0-1", "1/2-1/2")
    with StoreWriter(path, spec, sources=["random"]) as writer:
        for game in range(games):
            position = rules.position()
            moves: list[int] = []
            for _ in range(plies):
                legal = rules.legal_moves(position)
                if not len(legal):
                    break
                moves.append(int(legal[rng.integers(len(legal))]))
                position = rules.play(position, moves[-1])
            writer.add(
                GameRecord(
                    variant=spec.variant,
                    moves=moves,
                    result=results[rng.integers(3)],
                    date=str(2001 + game % 4),
                    source="random",
                )
            )
    return path
