"""The baseline any net must beat: among the legal moves, the one most frequent in training.

It knows how often each action was played in the training games, and which moves are legal; nothing
else of the position. A actions, B positions.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.loop.position_source import Source

FILE = "baseline.npy"

Counts = NDArray[np.int64]


def action_counts(source: Source, actions: int) -> Counts:
    """How often each action was played in the positions of a source, int64 [A]."""
    counts = np.zeros(actions, np.int64)
    for samples in source.sweep():
        counts += np.bincount(samples.action, minlength=actions)
    return counts


def legal_actions(rules: Rules, encoder: Encoder, positions: Position) -> list[NDArray[np.int64]]:
    """Actions of the legal moves of each of B positions, in ascending order."""
    return [
        np.sort(encoder.action_indices(position, rules.legal_moves(position).tolist()))
        for position in (positions[i : i + 1] for i in range(len(positions)))
    ]


def most_frequent(counts: Counts, legal: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The baseline's choice, int64 [B]: the lowest action among equals, -1 where nothing is legal."""
    return np.array(
        [actions[np.argmax(counts[actions])] if len(actions) else -1 for actions in legal],
        np.int64,
    )


def best_legal(logits: NDArray[np.float32], legal: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The net's choice when it is told the legal moves, int64 [B], from logits [B, A]."""
    return np.array(
        [
            actions[np.argmax(row[actions])] if len(actions) else -1
            for row, actions in zip(logits, legal, strict=True)
        ],
        np.int64,
    )


def save_counts(folder: Path, counts: Counts) -> None:
    buffer = io.BytesIO()
    np.save(buffer, counts)
    write_whole(folder / FILE, buffer.getvalue())


def load_counts(folder: str | os.PathLike[str], actions: int) -> Counts | None:
    """Counts kept in a run directory, None where it has none.

    Raises DataError where they are damaged or of another number of actions.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    try:
        counts: Counts = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(f"{path} is damaged: {error}") from None
    if counts.shape != (actions,):
        raise DataError(f"{path} counts {len(counts)} actions; the net has {actions}")
    return counts
