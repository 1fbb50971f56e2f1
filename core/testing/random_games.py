"""Random games that checks are made on, and the report that every check returns.

Uniformly random play hardly ever meets the rare rules, so games are steered by a style.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import (
    CASTLING,
    DROP,
    NORMAL,
    NOT_IN_FEN,
    PASS,
    Position,
    move_extra,
    move_kind,
    move_target,
)

STYLES = ("captures", "special", "quiet", "checks", "any")
CHECKS_TRIED = 40
"""Moves that are played to look for a check."""


@dataclass
class Report:
    """Result of a check."""

    check: str
    """`rules`, `game ends`, `encoding`, ..."""
    variant: str
    engine: str = ""
    """Rules engine."""
    games: int = 0
    positions: int = 0
    moves: int = 0
    """Legal moves compared."""
    counts: Counter[str] = field(default_factory=Counter)
    """Number of comparisons, or of moves and ends of each kind that occurred."""
    first_difference: str = ""
    """Description with FEN and moves; empty if there is no difference."""
    left_out: str = ""
    """Part that does not apply to the variant, and why; empty if all does."""
    not_met: str = ""
    """Ends that the variant has and the games never met, so that they were not compared; empty if all
    were met."""
    skipped: str = ""
    """Reason why nothing was checked; empty if something was."""
    seconds: float = 0.0

    @property
    def agrees(self) -> bool:
        """True if no difference was found."""
        return not self.first_difference

    def differ(self, message: str) -> None:
        """Keep the first difference."""
        self.first_difference = self.first_difference or message

    @property
    def verdict(self) -> str:
        """`skipped`, `differs` or `agrees`."""
        return "skipped" if self.skipped else "agrees" if self.agrees else "differs"

    def require(self) -> Report:
        """Return the report, for the tests of a variant. Raises AssertionError with the first
        difference if there is one."""
        assert self.agrees, f"{self.variant}, {self.check}: {self.first_difference}"
        return self


def read_again(rules: Rules, position: Position, fen: str) -> Position:
    """Read the FEN of a position; what no FEN holds is taken from the position. Raises FenError."""
    again = rules.position(fen)
    for name in NOT_IN_FEN:
        again[0][name] = position[0][name]
    return again


def is_capture(position: Position, move: int) -> bool:
    """Return True if the move captures on its target square (en passant does not)."""
    kind = move_kind(move)
    return kind not in (DROP, CASTLING, PASS) and bool(position["board"][0, move_target(move)])


def moves_only(ours: set[str], theirs: set[str], their_name: str) -> str:
    """Describe the difference between two sets of legal moves (UCI)."""
    extra, missing = sorted(ours - theirs), sorted(theirs - ours)
    return (
        f"moves only ours: {' '.join(extra) or 'none'}; "
        f"only {their_name}'s: {' '.join(missing) or 'none'}"
    )


def preferred_moves(
    rules: Rules, position: Position, legal: list[int], style: str, rng: random.Random
) -> list[int]:
    """Legal moves in a style of `STYLES`; may be empty."""
    if style == "captures":
        return [m for m in legal if is_capture(position, m)]
    if style == "special":
        kinds = {(move_kind(m), move_extra(m) > 0) for m in legal} - {(NORMAL, False)}
        kind = rng.choice(sorted(kinds)) if kinds else None
        return [m for m in legal if (move_kind(m), move_extra(m) > 0) == kind]
    if style == "quiet":
        return [m for m in legal if not is_capture(position, m) and move_kind(m) != DROP]
    if style == "checks":
        tried = rng.sample(legal, min(len(legal), CHECKS_TRIED))
        return [m for m in tried if rules.in_check(rules.play(position, m))]
    return legal


def random_move(
    rules: Rules, position: Position, legal: list[int], style: str, rng: random.Random
) -> int:
    """A random move in a style, or any legal move if there is none in it."""
    return rng.choice(preferred_moves(rules, position, legal, style, rng) or legal)
