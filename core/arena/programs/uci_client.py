"""A UCI engine: started, asked, and never waited for longer than agreed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from variant_ai.core.arena.programs.engine_process import (
    GAMES_FOLDERS,
    Answer,
    EngineHungError,
    EngineProcess,
    engine_command,
)
from variant_ai.core.errors import EngineError, unknown

__all__ = ["GAMES_FOLDERS", "Answer", "UciClient", "UciOption", "engine_command", "parse_option"]


@dataclass(frozen=True)
class UciOption:
    """An option as the engine declared it."""

    name: str
    kind: str
    """`check`, `spin`, `combo`, `button` or `string`."""
    default: str = ""
    choices: tuple[str, ...] = ()
    """The `var` values of a combo."""


NO_MOVES = ("(none)", "0000", "(null)", "NULL", "none", "")
"""What engines write for the move where they see none."""


class UciClient(EngineProcess):
    """One engine process that speaks UCI."""

    hello = "uci"
    """The client's first word; the engine answers it with the same and `ok`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        options: Mapping[str, str] | None = None,
        soft_options: Mapping[str, str] | None = None,
        timeout: float = 20.0,
        cwd: Path | None = None,
    ) -> None:
        """`options` are set at every start, names in any case; `soft_options` too, but only where
        the engine has them. `timeout` (seconds) is the longest wait for `uciok` and `readyok`."""
        super().__init__(command, timeout=timeout, cwd=cwd)
        self.options_wanted = dict(options or {})
        self.soft_options = dict(soft_options or {})
        self.author = ""
        self.options: dict[str, UciOption] = {}
        """By lower-case name."""

    def start(self) -> None:
        self._launch()
        self.options = {}
        self._send(self.hello)
        deadline = time.monotonic() + self.timeout
        while (line := self._line(f"{self.hello}ok", deadline)) != f"{self.hello}ok":
            if line.startswith("id name "):
                self.name = line.removeprefix("id name ").strip()
            elif line.startswith("id author "):
                self.author = line.removeprefix("id author ").strip()
            elif line.startswith("option "):
                option = self.read_option(line)
                if option is not None:
                    self.options[option.name.lower()] = option
        self.greeted()
        for name, value in self.soft_options.items():
            if name.lower() in self.options:
                self.set_option(name, value)
        for name, value in self.options_wanted.items():
            self.set_option(name, value)
        self.ready()

    def read_option(self, line: str) -> UciOption | None:
        """An option as the protocol declares it; None where the line makes no sense."""
        return parse_option(line)

    def greeted(self) -> None:
        """What is to be said before the options that the user wants."""

    def ready(self) -> None:
        """Wait until the engine has done all that it was told."""
        self._send("isready")
        deadline = time.monotonic() + self.timeout
        while self._line("readyok", deadline) != "readyok":
            pass

    def set_option(self, name: str, value: str) -> None:
        """Raises EngineError where the engine has no such option or does not offer the value."""
        option = self.options.get(name.lower())
        if option is None:
            known = sorted(o.name for o in self.options.values())
            raise EngineError(f"engine {self.name}: {unknown('option', name, known)}")
        if option.choices and value not in option.choices:
            listed = sorted(option.choices)
            raise EngineError(
                f"engine {self.name}: {unknown(f'value of {option.name}', value, listed)}"
            )
        self._send(
            f"setoption name {option.name}" + ("" if option.kind == "button" else f" value {value}")
        )

    def value_of(self, name: str) -> str | None:
        """The value that an option has since the start; None where the engine does not have it."""
        option = self.options.get(name.lower())
        if option is None:
            return None
        wanted = {**self.soft_options, **self.options_wanted}
        given = [value for key, value in wanted.items() if key.lower() == name.lower()]
        return given[-1] if given else option.default

    def set_variant(self, name: str) -> None:
        """Set UCI_Variant. An engine without that option plays one variant and is believed."""
        if "uci_variant" in self.options:
            self.set_option("UCI_Variant", name)
            self.ready()

    def new_game(self) -> None:
        self._send("ucinewgame")
        self.ready()

    def go(
        self,
        fen: str,
        moves: Sequence[str] = (),
        *,
        limits: Mapping[str, int],
        timeout: float,
        grace: float = 0.0,
    ) -> Answer:
        """Search the position after `moves` from `fen`; `limits` as UCI has them (`nodes`,
        `depth`, `movetime`, `wtime`). `timeout` is in seconds; then the engine is told to stop,
        and counts as hung where it does not answer within `grace` seconds more."""
        if not limits:
            raise ValueError("a search without a limit never ends")
        self._send(self.position_line(fen, moves))
        return self.search(self.go_line(limits), timeout, grace)

    def position_line(self, fen: str | None, moves: Sequence[str]) -> str:
        """The line that sets a position; `fen` None: the variant's start."""
        played = f" moves {' '.join(moves)}" if moves else ""
        return f"position {'startpos' if fen is None else f'fen {fen}'}{played}"

    def go_line(self, limits: Mapping[str, int]) -> str:
        return "go " + " ".join(f"{word} {value}" for word, value in limits.items())

    def search(self, command: str, timeout: float, grace: float = 0.0) -> Answer:
        """Send the `go` line and wait for the move; see `go`."""
        self._send(command)
        return self.answer(timeout, grace)

    # --- pondering -----------------------------------------------------------------------------

    def ponder(self, limits: Mapping[str, int]) -> None:
        """Search the position that was set, in which the expected move has been played, until
        `hit` or `miss`."""
        self._send(self.go_line(limits).replace("go", "go ponder", 1))

    def hit(self, timeout: float, grace: float = 0.0) -> Answer:
        """The expected move was played: wait for the answer to it, as `search` does."""
        self._send("ponderhit")
        return self.answer(timeout, grace)

    def miss(self) -> None:
        """Another move was played: end the search. Raises EngineHungError."""
        self._send("stop")
        deadline = time.monotonic() + self.timeout
        while not self._line("bestmove", deadline).startswith(("bestmove", "nobestmove")):
            pass

    def answer(self, timeout: float, grace: float) -> Answer:
        """Wait for the move of the search under way; see `go`."""
        started = time.monotonic()
        deadline, late = started + timeout, False
        ranks: dict[int, str] = {}
        while True:
            line = self._next(deadline)
            if line is None:
                if late or grace <= 0:
                    self.kill()
                    raise EngineHungError(
                        f"engine {self.name} hangs: no 'bestmove' in the time agreed"
                    )
                late, deadline = True, deadline + grace
                self._send("stop")
                continue
            text = line.text
            if text.startswith(("bestmove", "nobestmove")):
                words = text.split()
                move = words[1] if len(words) > 1 and words[0] == "bestmove" else ""
                answer = _answer(None if move in NO_MOVES else move, ranks)
                claim = next((word for word in words[2:] if word in ("draw", "resign")), "")
                expected = words[3] if words[2:3] == ["ponder"] and len(words) > 3 else ""
                return replace(
                    answer,
                    seconds=line.at - started,
                    late=late,
                    claim=claim,
                    expected="" if expected in NO_MOVES else expected,
                )
            if text.startswith("info ") and (" pv " in text or " score " in text):
                rank = _number(text.split(), "multipv", 1)
                # A bound is a score only where the search was cut off before any exact one.
                if rank not in ranks or not _is_bound(text) or _is_bound(ranks[rank]):
                    ranks[rank] = _completed(text, ranks.get(rank, ""))


def _completed(text: str, before: str) -> str:
    """An `info` line with the score or the line of play of the one before, where it has none."""
    if " pv " not in text and " pv " in before:
        return f"{text} pv {before.split(' pv ', 1)[1]}"
    if " score " not in text and " score " in before:
        return f"{before.split(' pv ', 1)[0]} pv {text.split(' pv ', 1)[1]}"
    return text


def parse_option(line: str) -> UciOption | None:
    """`option name N type T [default D] [var V]…`, names and values with blanks in them."""
    fields: dict[str, list[str]] = {"name": [], "type": [], "default": [], "var": []}
    word = ""
    for token in line.split()[1:]:
        if token in fields and (token == "var" or not fields[token]):
            word = token
            if token == "var":
                fields["var"].append("")
        elif token in ("min", "max"):
            word = ""
        elif word == "var":
            fields["var"][-1] = f"{fields['var'][-1]} {token}".strip()
        elif word:
            fields[word].append(token)
    if not fields["name"] or not fields["type"]:
        return None
    return UciOption(
        " ".join(fields["name"]),
        fields["type"][0],
        " ".join(fields["default"]),
        tuple(fields["var"]),
    )


def _number(words: Sequence[str], after: str, default: int) -> int:
    try:
        return int(words[words.index(after) + 1])
    except (ValueError, IndexError):
        return default


def _score(words: Sequence[str]) -> int | None:
    """Centipawns of an `info` line: after `cp`, or in UCCI right after `score`."""
    after = "cp" if "cp" in words else "score"
    try:
        return int(words[words.index(after) + 1])
    except (ValueError, IndexError):
        return 0 if after == "cp" else None


def _is_bound(line: str) -> bool:
    return " lowerbound " in line or " upperbound " in line


def _answer(move: str | None, ranks: Mapping[int, str]) -> Answer:
    """The best line's facts; an `info` line that makes no sense counts as none."""
    words = ranks[min(ranks)].split() if ranks else []
    score = _score(words)
    mate = _number(words, "mate", 0) if "mate" in words else None
    return Answer(
        move=move,
        score=score,
        mate=mate,
        depth=_number(words, "depth", 0),
        nodes=_number(words, "nodes", 0),
        pv=tuple(words[words.index("pv") + 1 :]) if "pv" in words else (),
        info=tuple(ranks[rank] for rank in sorted(ranks)),
    )
