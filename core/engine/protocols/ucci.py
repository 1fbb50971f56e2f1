"""UCCI 3.0, the protocol of xiangqi GUIs: lines to commands, and answers to lines.

Differences from UCI: options are single lower-case words without `name` and `value`; `go` has the
time of the player to move and of the opponent, in seconds unless `usemillisec` is set; draw offers
and resignation come with the move; scores have no `cp`; `bye` confirms the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from variant_ai.core.engine.commands import Command, Go, SetOption
from variant_ai.core.engine.protocols.engine_options import (
    Option,
    canonical,
    declare_ucci,
    is_true,
)
from variant_ai.core.engine.protocols.uci import (
    Dialect,
    Info,
    go_of,
    read_go,
)

if TYPE_CHECKING:
    from variant_ai.core.engine.protocols.chosen_options import OptionSet

MATE_SCORE = 30_000
"""Score of a mate in n plies is MATE_SCORE - n; UCCI has no other form."""


class Ucci(Dialect):
    """UCCI 3.0. Its state is two options by which it reads the next `go`."""

    name = "ucci"
    first_word = "ucci"
    notation = "iccs"
    declare = staticmethod(declare_ucci)
    has_variants = False
    has_verdicts = True
    has_static_search = True
    ignores_unknown_options = True

    def __init__(self) -> None:
        self.milliseconds = False
        self.queues_searches = False

    def declared(self, options: OptionSet) -> Sequence[Option]:
        return options.for_ucci()

    def apply(self, options: OptionSet) -> None:
        self.milliseconds = options.is_on("usemillisec")
        self.queues_searches = options.is_on("batch")

    def parse(self, text: str) -> Command | None:
        words = text.split()
        if words and words[0].lower() == "go":
            return parse_ucci_go(words[1:], 1e-3 if self.milliseconds else 1.0)
        command = super().parse(text)
        if isinstance(command, SetOption):
            if canonical(command.name) == "usemillisec":
                self.milliseconds = is_true(command.value or "")
            elif canonical(command.name) == "batch":
                self.queues_searches = is_true(command.value or "")
        return command

    def message(self, text: str) -> str:
        return f"info message {text}"

    def info(self, info: Info) -> list[str]:
        if info.rank > 1:  # UCCI has a single line of play
            return []
        score = info.cp
        if info.mate is not None:
            plies = 2 * info.mate - 1 if info.mate > 0 else -2 * info.mate
            score = MATE_SCORE - plies if info.mate > 0 else plies - MATE_SCORE
        line = f"info depth {info.depth} score {score}"
        if info.pv:
            line += " pv " + " ".join(self.squares(move) for move in info.pv)
        return [f"info time {info.milliseconds} nodes {info.nodes}", line]

    def best(self, move: str, ponder: str | None, verdict: str = "") -> list[str]:
        line = super().best(move, ponder)[0]
        return [f"{line} {verdict}" if verdict else line]

    def no_move(self, result: int) -> list[str]:
        return [f"info depth 0 score {result * MATE_SCORE}", "nobestmove"]

    def farewell(self) -> list[str]:
        return ["bye"]

    def idle_stop(self) -> list[str]:
        return ["nobestmove"]


def parse_ucci_go(given: Sequence[str], unit: float) -> Go:
    """Parse `go [ponder|draw] depth N|infinite|nodes N|time T [movestogo N|increment I] [opptime …]`.

    unit: seconds of one unit of time. Some UCI words are accepted too.
    """
    times_of = dict.fromkeys(("time", "opptime", "increment", "oppincrement"), unit)
    times_of["movetime"] = 1e-3  # a UCI word, in UCI's unit
    counts_of = ("movestogo", "oppmovestogo", "nodes", "depth")
    given = re.sub(r"(?i)\bdepth infinite\b", "infinite", " ".join(given)).split()
    found = read_go(given, times_of, counts_of, ("infinite", "ponder", "draw"))
    return go_of(found, ("time", "opptime"), ("increment", "oppincrement"), relative=True)
