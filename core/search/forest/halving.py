"""The schedule of sequential halving ([Gumbel] section 3.2 and appendix B)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def visit_schedule(nodes: int, considered: int) -> list[int]:
    """Return the schedule: entry k is the number of visits that a root move must have to be a candidate
    for visit k.

    Of `considered` moves, each gets max(1, nodes // (ceil(log2 considered) * moves left)) visits a
    round; then the better half stays, at least two. The last round is cut at `nodes`.
    """
    if considered <= 1:
        return list(range(nodes))
    rounds = math.ceil(math.log2(considered))
    held = [0] * considered
    left = considered
    schedule: list[int] = []
    while len(schedule) < nodes:
        for _ in range(max(1, nodes // (rounds * left))):
            schedule += held[:left]
            held = [n + 1 for n in held[:left]]
        left = max(2, left // 2)
    return schedule[:nodes]


def schedule_table(nodes: int, considered: int, length: int) -> NDArray[np.int32]:
    """Return the schedules of 0 to `considered` moves, int32 [considered + 1, length]; visits beyond
    `nodes` are not made."""
    table = np.zeros((considered + 1, max(length, nodes)), np.int32)
    for moves in range(considered + 1):
        table[moves, :nodes] = visit_schedule(nodes, moves)
    return table
