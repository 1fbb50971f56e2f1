"""USI, the protocol of shogi GUIs: lines to commands, and answers to lines.

Differences from UCI: options of the protocol begin with USI_ and names have no blanks; positions are SFENs
and moves `7g7f` (`core/rules/text/usi_notation.py`); `go` has byoyomi, and its `mate` asks for a mate
within a time, which this engine declines; a mate is counted in plies; a player without a move resigns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from variant_ai.core.engine.commands import (
    Command,
    Go,
    NewGame,
    Respond,
    SetOption,
    SetPosition,
    Stop,
    Unreadable,
)
from variant_ai.core.engine.protocols.engine_options import VARIANT, Option, canonical
from variant_ai.core.engine.protocols.uci import (
    Dialect,
    Info,
    go_of,
    parse_position,
    read_go,
    shown,
)
from variant_ai.core.errors import FenError

if TYPE_CHECKING:
    from variant_ai.core.engine.protocols.chosen_options import OptionSet

NAMES = {"Hash": "USI_Hash", "Ponder": "USI_Ponder"}
"""Options with another name in USI."""
_OWN_NAMES = {canonical(usi): uci for uci, usi in NAMES.items()}
_TIMES = dict.fromkeys(("btime", "wtime", "binc", "winc", "byoyomi", "movetime"), 1e-3)
_COUNTS = ("movestogo", "nodes", "depth")
_FLAGS = ("infinite", "ponder", "searchmoves")


class Usi(Dialect):
    """USI."""

    name = "usi"
    first_word = "usi"
    notation = "usi"
    has_variants = False

    def declared(self, options: OptionSet) -> Sequence[Option]:
        """The variant is among them, because there are several shogi variants."""
        return [
            replace(
                option,
                name=NAMES.get(option.name, option.name).replace(" ", "_"),
                default=options.text(VARIANT) if option.name == VARIANT else option.default,
            )
            for option in options.uci
        ]

    def parse(self, text: str) -> Command | None:
        words = text.split()
        word, rest = (words[0].lower(), words[1:]) if words else ("", [])
        if word == "position":
            return parse_usi_position(rest)
        if word == "go":
            if rest[:1] == ["mate"]:
                return Respond("checkmate notimplemented")
            return parse_usi_go(rest)
        if word == "usinewgame":
            return NewGame()
        if word == "gameover":
            return Stop()  # of pondering: its move would be taken for one of the next game
        command = super().parse(text)
        if isinstance(command, SetOption):
            return command._replace(name=_OWN_NAMES.get(canonical(command.name), command.name))
        return command

    def info(self, info: Info) -> list[str]:
        return super().info(replace(info, wdl=None))  # USI has no word for chances

    def score(self, info: Info) -> str:
        if info.mate is None:
            return super().score(info)
        return f"mate {2 * info.mate - 1 if info.mate > 0 else 2 * info.mate}"

    def no_move(self, result: int) -> list[str]:
        return ["bestmove win" if result > 0 else "bestmove resign"]

    def squares(self, move: str) -> str:
        from variant_ai.core.rules.text.usi_notation import usi

        return usi(move, *self.board)


def parse_usi_position(words: Sequence[str]) -> Command:
    """Parse `startpos` or `sfen S`, optionally followed by `moves` and any number of moves."""
    from variant_ai.core.rules.text.usi_notation import fen_of_sfen

    if words[:1] == ["startpos"]:
        return parse_position(words)
    if words[:1] != ["sfen"]:
        given = shown(words[0]) if words else "nothing"
        return Unreadable(f"position: {given} where `startpos` or `sfen` is expected")
    sfen, _, moves = " ".join(words[1:]).partition(" moves")
    try:
        fen = fen_of_sfen(sfen)
    except FenError as error:
        return Unreadable(f"position: {error}")
    return SetPosition(fen, tuple(moves.split()))


def parse_usi_go(given: Sequence[str]) -> Go:
    """Parse `go [ponder] btime T wtime T [byoyomi T | binc T winc T]`, `go infinite`, `go nodes N`, …"""
    found = read_go(given, _TIMES, _COUNTS, _FLAGS)
    if "byoyomi" in found.times:  # the main time may be left out once it is used up
        found.times.setdefault("btime", 0.0)
        found.times.setdefault("wtime", 0.0)
    return go_of(found, ("btime", "wtime"), ("binc", "winc"))
