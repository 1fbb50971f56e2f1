"""What an import leaves out: one object per game, member or file, with where and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Skip:
    """Something that was not imported."""

    reason: str
    """A few words that skips are counted by: `illegal move`, `damaged file`, `cut off`."""
    source: str
    """File, or `archive.zip!member`."""
    number: int = 0
    """Game number in the source, from 1; 0: the source as a whole."""
    line: int = 0
    """Line in the source, from 1; 0: unknown."""
    ply: int | None = None
    """Ply at which reading stopped, the first move is 1; None: not about a move."""
    text: str = ""
    """What stood there: the move, the FEN, the value of a header."""
    detail: str = ""
    """The whole story in one sentence."""

    def as_json(self) -> dict[str, Any]:
        """Fields that say something, for the list of skipped games."""
        return {name: value for name, value in asdict(self).items() if value not in ("", 0, None)}


OnSkip = Callable[[Skip], None]
