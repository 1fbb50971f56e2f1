"""Client of engines that speak XBoard's protocol (CECP), version 2 or 1.

The engine keeps the game itself: moves are played on its board in `force` mode, then `go` starts a
search. Engines declare in a `feature` line what they support: `usermove`, `setboard`, `ping`. One
that sends no features within `SILENCE` seconds is assumed to speak version 1.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from variant_ai.core.arena.players.player import Turn
from variant_ai.core.arena.programs.engine_process import EngineProcess, ProgramAnswer
from variant_ai.core.errors import EngineError

SILENCE = 3.0
"""Seconds to wait for features; the protocol suggests 2, which is too short on a busy machine."""
MATE_SCORE = 100_000
"""Mate in n has the score `MATE_SCORE + n`."""

_FEATURE = re.compile(r'(\w+)=(?:"([^"]*)"|(\S+))')
_THINKING = re.compile(r"(\d+)[^\s\d]?\s+([+-]?\d+)\s+(\d+)\s+(\d+)(?:\s+(.*))?")
_OLD_MOVE = re.compile(r"\d+\.\s*\.\.\.\s+(\S+)")
_RESULT = re.compile(r"(1-0|0-1|1/2-1/2)\b")


class XboardClient(EngineProcess):
    """One engine process that speaks XBoard's protocol."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        options: Mapping[str, str] | None = None,
        lines: Sequence[str] = (),
        ponder: bool = False,
        timeout: float = 20.0,
    ) -> None:
        """options: sent as `option NAME=VALUE`, except that `memory` and `cores` are commands.
        lines: sent unchanged at every start. ponder: send `hard`, so that the engine thinks during
        the other side's turn; else `easy`."""
        super().__init__(command, timeout=timeout)
        self.given_options = dict(options or {})
        self.lines = tuple(lines)
        self.ponders = ponder
        self.features: dict[str, str] = {}
        self._pings = 0
        self._fed = 0
        """Moves of the game that the engine has."""
        self._limits: list[str] = []
        """Commands that set its limits, as sent last."""

    # --- handshake -----------------------------------------------------------------------------

    def start(self) -> None:
        self._launch()
        self.features = {}
        self.send("xboard")
        self.send("protover 2")
        deadline = time.monotonic() + min(SILENCE, self.timeout)
        while (line := self._next(deadline)) is not None and line.at <= deadline:
            if "feature " not in line.text:
                continue
            features = dict(_features(line.text))
            self.features.update(features)
            for name in features:
                self.send(f"{'rejected' if name == 'san' else 'accepted'} {name}")
            if features.get("done") == "0":
                deadline = time.monotonic() + self.timeout
            elif features.get("done") == "1":
                break
        self.name = self.features.get("myname") or self.name
        for name, value in self.given_options.items():
            is_command = name.lower() in ("memory", "cores")
            self.send(f"{name.lower()} {value}" if is_command else f"option {name}={value}")
        for text in ("post", "hard" if self.ponders else "easy", *self.lines):
            self.send(text)
        self._sync()

    @property
    def variants(self) -> tuple[str, ...]:
        """Variants that the engine lists; empty if it lists none."""
        listed = self.features.get("variants", "")
        return tuple(word.strip() for word in listed.split(",") if word.strip())

    def _sync(self) -> str:
        """Wait until the engine has processed all commands, if it supports `ping`. Return what it
        claimed about the game meanwhile, else an empty text."""
        if self.features.get("ping") != "1":
            return ""
        self._pings += 1
        self.send(f"ping {self._pings}")
        deadline = time.monotonic() + self.timeout
        claim = ""
        while (line := self._line("pong", deadline)) != f"pong {self._pings}":
            claim = claim or _claim(line)
        return claim

    # --- a game --------------------------------------------------------------------------------

    def new_game(self, variant: str, fen: str | None, turn: Turn) -> None:
        """Begin a game in `force` mode. fen: None for the variant's start position. turn: has the
        limits of the game. Raises EngineError if the engine cannot play it."""
        if self.variants and variant not in self.variants:
            raise EngineError(
                f"engine {self.name} has no variant {variant!r}; it has {', '.join(self.variants)}"
            )
        if fen is not None and self.features.get("setboard") != "1":
            raise EngineError(
                f"engine {self.name} cannot start from a position (no setboard); give openings as "
                "lines of moves"
            )
        self._limits = _limit_lines(turn)
        for text in ("force", "new", f"variant {variant}", *self._limits, "force"):
            self.send(text)
        if fen is not None:
            self.send(f"setboard {fen}")
        self._fed = 0
        self._sync()

    def search(self, moves: Sequence[str], turn: Turn) -> ProgramAnswer:
        """Send the moves of the game that the engine does not have yet, then search.

        An engine that ponders gets only the one new move, and answers by itself: `force` would end
        its search. If the engine claims the end of the game while it receives moves, that is its
        answer.
        """
        new = moves[self._fed :]
        usermove = "usermove " if self.features.get("usermove") == "1" else ""
        limits = _limit_lines(turn)
        changed, self._limits = limits != self._limits, limits
        pondering = self.ponders and self._fed > 0 and len(new) == 1 and not changed
        if not pondering:
            self.send("force")
            for text in limits if changed else ():
                self.send(text)
            for text in new:
                self.send(usermove + text)
        if turn.allowance.base is not None and self.features.get("time") != "0":
            self.send(f"time {max(0, turn.clock.left) // 10}")
            self.send(f"otim {max(0, turn.clocks[1 - turn.side].left) // 10}")
        self._fed = len(moves) + 1
        if pondering:
            self.send(usermove + new[0])
        elif claim := self._sync():
            return ProgramAnswer(None, claim=claim)
        else:
            self.send("go")
        return self._answer(turn)

    def game_over(self, result: str, reason: str) -> None:
        self.send("force")
        self.send(f"result {result} {{{reason}}}")

    def _answer(self, turn: Turn) -> ProgramAnswer:
        thought: re.Match[str] | None = None
        for text, seconds, late in self._search_lines("move", "?", turn.wait, turn.grace):
            if text.startswith("feature "):
                self.features.update(_features(text))
            move, claim = _move(text), _claim(text)
            if move or claim:
                answer = ProgramAnswer(move or None, seconds=seconds, late=late, claim=claim)
                return answer if thought is None else _with_thought(answer, thought)
            thought = _THINKING.fullmatch(text) or thought
        raise AssertionError  # the lines end by an error only


def _limit_lines(turn: Turn) -> list[str]:
    """Return the commands that set the limits of a game or move. `st` and `level` exclude each other."""
    allowance = turn.allowance
    lines = []
    if allowance.movetime is not None:
        lines.append(f"st {allowance.movetime // 1000}")
    elif allowance.base is not None:
        seconds, rest = divmod(allowance.base, 1000)
        minutes, seconds = divmod(seconds + (rest > 0 and not seconds), 60)
        base = f"{minutes}:{seconds:02}" if seconds else str(minutes)
        lines.append(f"level {allowance.moves or 0} {base} {allowance.increment / 1000:g}")
    if allowance.depth is not None:
        lines.append(f"sd {allowance.depth}")
    return lines


def _features(text: str) -> list[tuple[str, str]]:
    words = text[text.index("feature ") :]
    return [(m[1], m[2] if m[2] is not None else m[3]) for m in _FEATURE.finditer(words)]


def _move(text: str) -> str:
    """Move of a line that plays one, else an empty text."""
    if text.startswith("move "):
        return text[5:].strip()
    old = _OLD_MOVE.fullmatch(text)
    return old[1] if old else ""


def _claim(text: str) -> str:
    """Claim about the game in a line (`resign`, or the line itself), else an empty text."""
    if text == "resign" or text.startswith("tellics resign"):
        return "resign"
    if _RESULT.match(text) or text.startswith("Illegal move"):
        return text
    return ""


def _with_thought(answer: ProgramAnswer, thinking: re.Match[str]) -> ProgramAnswer:
    """Add depth, score and nodes of the engine's last thinking line."""
    depth, score, _, nodes = (int(thinking[i]) for i in range(1, 5))
    if abs(score) > MATE_SCORE:
        mate = score - MATE_SCORE if score > 0 else score + MATE_SCORE
        return replace(answer, depth=depth, nodes=nodes, mate=mate)
    return replace(answer, depth=depth, nodes=nodes, score=score)
