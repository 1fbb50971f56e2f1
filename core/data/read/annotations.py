"""Scores and clocks inside the comments of games.

`[%eval 0.35]`, `[%eval #-3]` (first player's view) and `[%clk 0:02:59.8]` are lichess's commands;
`+0.35/12 1.2s` and `-M4/20 0.5s` (mover's view) are what cutechess writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from variant_ai.core.data.game_record import MATE

_COMMAND = re.compile(r"\[%(\w+)\s+([^\]]*)\]")
_EVAL = re.compile(r"(#?)([+-]?\d+(?:\.\d+)?)(?:,\d+)?\Z")
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)\Z")
_ENGINE = re.compile(r"\A\s*([+-]?)(M?)(\d+(?:\.\d+)?)/\d+\s+[\d.]+s\b,?")

LONGEST_CLOCK = 10**12
"""Milliseconds; more is no clock."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What a comment after a move says."""

    score: int | None
    """Centipawns from the view of the player who made the move, see `record.MATE`."""
    clock: int | None
    """Milliseconds left to that player."""
    text: str
    """The rest in words."""


def annotation(comment: str, first_player: bool) -> Annotation:
    """Read the comment after a move of the first player, or of the second."""
    score: int | None = None
    clock: int | None = None
    match = _ENGINE.match(comment)
    if match is not None:
        score = _centipawns(bool(match[2]), float(match[3]) * (-1 if match[1] == "-" else 1))
        comment = comment[match.end() :]
    for command in _COMMAND.finditer(comment):
        value = command[2].strip()
        if command[1] == "eval" and (said := _EVAL.match(value)):
            points = _centipawns(bool(said[1]), float(said[2]))
            score = points if first_player else -points
        elif command[1] == "clk" and (said := _CLOCK.match(value)):
            hours, minutes, seconds = (float(part or 0) for part in said.groups()[:3])
            shown = ((hours * 60 + minutes) * 60 + seconds) * 1000
            clock = round(shown) if shown <= LONGEST_CLOCK else None
    return Annotation(score, clock, " ".join(_COMMAND.sub(" ", comment).split()))


def _centipawns(mate: bool, value: float) -> int:
    value = max(-MATE, min(MATE, value))
    if not mate:
        return max(-MATE + 1000, min(MATE - 1000, round(value * 100)))
    return -(MATE + int(value)) if value < 0 else MATE - int(value)
