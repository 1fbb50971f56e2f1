"""A UCCI 3.0 engine (xiangqi programs of China), and one that speaks UCI as xiangqi clients do.

UCCI's words differ from UCI's: `ucci`/`ucciok`, options without the words `name` and `value`,
scores without `cp`, the time of the side to move only.
"""

from __future__ import annotations

from collections.abc import Sequence

from variant_ai.core.arena.programs.uci_client import UciClient, UciOption
from variant_ai.core.errors import EngineError

_KINDS = {"check", "spin", "combo", "button", "string", "label"}


class UcciClient(UciClient):
    """One engine process that speaks UCCI."""

    hello = "ucci"
    millisec = False
    """Whether the engine takes times in milliseconds; else in seconds."""

    def read_option(self, line: str) -> UciOption | None:
        return parse_ucci_option(line)

    def greeted(self) -> None:
        self.millisec = "usemillisec" in self.options
        if self.millisec:
            self._send("setoption usemillisec true")

    def set_option(self, name: str, value: str) -> None:
        """As UCI's, but an engine may take options that it does not list."""
        option = self.options.get(name.lower())
        if option is not None and option.choices and value not in option.choices:
            raise EngineError(
                f"engine {self.name}: option {name} takes {', '.join(option.choices)}, not {value!r}"
            )
        self._send(f"setoption {name} {value}".rstrip())

    def set_variant(self, name: str) -> None:
        """UCCI engines play one game."""

    def new_game(self) -> None:
        if "newgame" in self.options:
            self._send("setoption newgame")
        self.ready()

    def times(self, milliseconds: int) -> int:
        """A time in the unit the engine takes, at least 1."""
        return max(1, milliseconds if self.millisec else milliseconds // 1000)


class CycloneClient(UciClient):
    """UCI as xiangqi clients speak it: ranks from 0, the position without the word `position`, and
    `r` for the first player."""

    def position_line(self, fen: str | None, moves: Sequence[str]) -> str:
        played = f" moves {' '.join(moves)}" if moves else ""
        if fen is None:
            return f"startpos{played}"
        board, _, rest = fen.partition(" ")
        if rest[:1] == "w":
            rest = "r" + rest[1:]
        return f"fen {board} {rest}{played}"


def parse_ucci_option(line: str) -> UciOption | None:
    """`option NAME type T [min N] [max N] [var V]… [default D]`; names and values are words."""
    words = line.split()
    if len(words) < 4 or words[2] != "type" or words[3] not in _KINDS:
        return None
    choices = tuple(words[i + 1] for i in range(4, len(words) - 1) if words[i] == "var")
    default = ""
    if "default" in words[4:]:
        at = words.index("default", 4)
        default = words[at + 1] if at + 1 < len(words) else ""
    return UciOption(words[1], words[3], default, choices)
