"""Players that lose game after game without a single move: a program that was set up wrong.

One that dies, hangs or answers nonsense before its first move loses that game as everybody would.
After the second game the match stops, before it fills a table with losses that say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from variant_ai.core.arena.journal import GameEntry
from variant_ai.core.arena.match_record import first_ply
from variant_ai.core.arena.player import Reason
from variant_ai.specs.errors import EngineError

MOST = 2
"""Games lost without a move, in one run of a match, after which it stops."""
_FAULTS = set(get_args(Reason)) - {"resignation"}


class NoShows:
    """Counts, over the games of one run, who has not made a move yet."""

    def __init__(self, labels: dict[str, str]) -> None:
        """labels: by the name of a player, how it was given (its command)."""
        self._labels = labels
        self._lost: dict[str, list[GameEntry]] = {name: [] for name in labels}

    def add(self, entry: GameEntry, last_lines: Sequence[str] = ()) -> None:
        """Take a game that has ended. `last_lines`: what the loser wrote last.

        Raises EngineError where its loser has lost `MOST` games without having made a move in any.
        """
        for side, name in enumerate((entry.first, entry.second)):
            own = entry.times[first_ply(entry, side) :: 2]
            if any(time is not None for time in own):
                self._lost.pop(name, None)  # it has shown that it can play
            elif entry.reason in _FAULTS and entry.points == side and name in self._lost:
                self._lost[name].append(entry)
                if len(self._lost[name]) == MOST:
                    raise EngineError(self._complaint(name, last_lines))

    def _complaint(self, name: str, last_lines: Sequence[str]) -> str:
        entry = self._lost[name][-1]
        wrote = "".join(f"\n    {line}" for line in last_lines)
        return (
            f"{name} lost its first {MOST} games without a move ({entry.reason}: {entry.detail}). "
            "The match is stopped: it may speak another protocol (uci:, ucci:, xboard:) or need an "
            f"argument to speak it, such as -uci. Its command: {self._labels[name]}\n"
            + (f"The last lines that it wrote:{wrote}" if wrote else "It wrote nothing.")
        )
