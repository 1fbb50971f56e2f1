"""How good a move was, from the value before and after it.

Values are in [-1, 1] and seen from the player who moves. Winning chances in per cent are
50·(1 + value). Accuracy follows the curve that lichess publishes, fitted so that people agree with
it; marks follow the same site's thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

INACCURACY, MISTAKE, BLUNDER = 0.1, 0.2, 0.3
"""Loss of value from which a move is marked."""
MARKS = {"": "", "?!": "inaccuracy", "?": "mistake", "??": "blunder"}


def loss(best: float, played: float) -> float:
    """Value given away, 0 to 2: a search may find a move better than it thought, which is none."""
    return max(0.0, best - played)


def mark(lost: float) -> str:
    """`??`, `?`, `?!` or nothing for a loss of value."""
    if lost >= BLUNDER:
        return "??"
    if lost >= MISTAKE:
        return "?"
    return "?!" if lost >= INACCURACY else ""


def move_accuracy(lost: float) -> float:
    """0 to 100 for a loss of value: 103.1668·exp(-0.04354·Δ) - 3.1669, Δ in per cent of winning
    chances (lichess.org/page/accuracy)."""
    points = 103.1668 * math.exp(-0.04354 * 50.0 * lost) - 3.1669
    return min(max(points, 0.0), 100.0)


def player_accuracy(losses: Iterable[float]) -> float | None:
    """Mean accuracy of a player's moves, None without any."""
    points = [move_accuracy(lost) for lost in losses]
    return sum(points) / len(points) if points else None
