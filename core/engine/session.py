"""A session with one client, from its first line to `quit`.

The reading thread parses each line and answers at once what cannot wait: the handshake,
`isready` during a search, `stop`, `ponderhit`, `quit`. All other commands go into a queue, and the
working thread executes them in order. So `position` and `setoption` during a search wait for its
end, and a `go` during a search stops it, unless the protocol queues searches; both are answered.
Other threads load the search, report its loading, and watch the clock (README.md). Each line is
written with a single write.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING

from variant_ai.core.engine.answers import Answer, debug_line, infos_of, resigns
from variant_ai.core.engine.commands import (
    BanMoves,
    Command,
    Debug,
    Go,
    Handshake,
    Ignored,
    IsReady,
    NewGame,
    PonderHit,
    Probe,
    Quit,
    Respond,
    SetOption,
    SetPosition,
    Show,
    Stop,
    Unreadable,
)
from variant_ai.core.engine.engine import Engine
from variant_ai.core.engine.line_io import MAX_LINE, InputLine, LineWriter
from variant_ai.core.engine.loading import LoadingProgress
from variant_ai.core.engine.protocols.chosen_options import OptionSet
from variant_ai.core.engine.protocols.engine_options import SHUFFLED, VARIANT
from variant_ai.core.engine.protocols.uci import Dialect, Identity, shown
from variant_ai.core.engine.search_signals import QueuedCommand, SearchSignals
from variant_ai.core.errors import VariantAIError
from variant_ai.core.factories import DIALECTS

if TYPE_CHECKING:
    from variant_ai.core.engine.engine_builder import EngineBuilder
    from variant_ai.core.engine.protocol_log import ProtocolLog
    from variant_ai.core.search.report import Report

GRACE = 0.5
"""Seconds that a running search has to end after `quit`."""
PATIENCE = 10.0
"""Seconds that commands sent before `quit` have to be answered, searches excluded."""
MAX_WAITING = 32 << 20
"""Characters of lines that may wait for the end of a search."""
AUTO = "auto"


class Session:
    """One client. `run` returns when it has quit or its input has ended."""

    def __init__(
        self,
        identity: Identity,
        builder: EngineBuilder,
        write: LineWriter,
        *,
        protocol: str = AUTO,
        variant: str | None = None,
        log: ProtocolLog | None = None,
    ) -> None:
        """protocol: a name of `DIALECTS`, or `auto`: the first word of the client decides.
        variant: the one to play until the client chooses another; None: the default of the builder,
        or one that the protocol is made for."""
        self.identity = identity
        self.builder = builder
        self.signals = SearchSignals()
        self.options = OptionSet(builder.names_offered, variant or builder.default)
        self.engine = Engine(builder, self.options, self.signals, self._message)
        self.debug = False
        self._write = write
        self._log = log
        self._auto = protocol == AUTO
        self._dialect: Dialect = DIALECTS.load("uci" if self._auto else protocol)()
        self._is_greeted = False
        self._is_variant_chosen = variant is not None
        self._queue: SimpleQueue[QueuedCommand] = SimpleQueue()
        self._read, self._done = 0, 0
        """Characters of the lines that the reading thread queued, and that the working thread took."""
        self._asked, self._taken = 0, 0
        """Commands that get an answer even after `quit`: queued, and taken."""
        self._is_cut_off = False
        """True if nobody reads any more answers."""
        self._progress = LoadingProgress(self._is_loaded, self._message)
        self._last: Answer | None = None
        self._last_key: object = None
        """Key of the position of the last answer."""
        self._patience = GRACE
        self._worker = threading.Thread(target=self._work, name="worker", daemon=True)
        write.broken = self.leave
        if not self._dialect.has_variants:
            self._prefer_variant_for(protocol)

    def preset(self, name: str, text: str) -> None:
        """Set an option before the client does; the handshake declares the value as the default.
        Raises SettingError."""
        option = self.options.find(name)
        if option.name == VARIANT:
            self._is_variant_chosen, text = True, self.builder.resolve_name(text)
        self.options.preset(name, text)
        self.debug = self.options.is_on("debug")
        self._dialect.apply(self.options)

    def _select_dialect(self, text: str) -> None:
        """Speak the protocol whose handshake the line is; any other line is read as UCI."""
        words = text.lower().split(maxsplit=1)
        found = next((d for d in self._dialects() if [d.first_word] == words[:1]), None)
        if found is not None and found.first_word != self._dialect.first_word:
            self._dialect = found
            found.apply(self.options)
            if not found.has_variants:
                self._prefer_variant_for(found.name)

    def _dialects(self) -> Iterator[Dialect]:
        """Yield all protocols. One that cannot be made, of a plugin, is reported and left out."""
        for name in DIALECTS.names:
            try:
                yield DIALECTS.load(name)()
            except Exception as error:
                self._error(f"protocol {name!r}: {type(error).__name__}: {error}")

    # --- the reading thread --------------------------------------------------------------------

    def run(self, lines: Iterable[InputLine]) -> None:
        """Serve until `quit`, the end of the input, or until nobody reads the answers."""
        self._worker.start()
        for line in lines:
            self.handle_line(line)
            if self.signals.leaving:
                self._worker.join(self._patience)
                self._print(*self._dialect.farewell())
                return
        self.signals.end_input()
        self._put(Quit())
        # a search may take long, and Python handles signals between two waits only
        while self._worker.is_alive() and not self.signals.leaving:
            self._worker.join(0.2)
        self._worker.join(GRACE)

    @property
    def is_done(self) -> bool:
        """True if the working thread has ended."""
        return not self._worker.is_alive()

    def handle_line(self, line: InputLine) -> None:
        """Parse one line of the client and dispatch its command. Never raises."""
        if self._log is not None:
            self._log("<", line.text)
        if line.cut:
            self._error(f"a line of more than {MAX_LINE} bytes was not read")
            return
        if self._auto and not self._is_greeted:
            self._select_dialect(line.text)
        try:
            command = self._dialect.parse(line.text)
        except Exception as error:  # no line of a client may end the program
            self._error(f"{shown(line.text)}: {error}")
            return
        if command is not None:
            self._dispatch(command, line)

    def _dispatch(self, command: Command, line: InputLine) -> None:
        """Answer what cannot wait, queue the rest."""
        signals = self.signals
        match command:
            case Handshake():
                self._greet()
            case Stop():
                if not signals.stop():
                    self._print(*self._dialect.idle_stop())
            case PonderHit():
                signals.ponder_hit(line.at, command.draw_offered)
            case Quit():
                self._quit()
            case Debug():
                self.debug = command.on
            case IsReady() if signals.searching:
                self._print("readyok")
            case IsReady():
                self._put_pending(command)
            case Unreadable():
                self._error(command.problem)
            case Go():
                waits = self._dialect.queues_searches
                number = signals.next_number(stop_others=not waits)
                put = self._put_pending if command.perft is None else self._put
                put(command, line.at, number)
            case Ignored():
                pass
            case _ if self._read + len(line.text) - self._done > MAX_WAITING:
                self._error("too much is waiting for the end of the search; the line was not read")
            case _:
                self._put(command, line.at, size=len(line.text))

    def _greet(self) -> None:
        dialect = self._dialect
        declared = dialect.declared(self.options)
        if not dialect.has_variants:
            declared = [
                replace(one, choices=self.builder.playable(one.choices, dialect.name))
                if one.name == VARIANT
                else one
                for one in declared
            ]
        self._print(*dialect.greeting(self.identity, declared))
        self._is_greeted = True
        self._put(Ignored())  # the working thread imports modules meanwhile

    def _put(self, command: Command, at: float = 0.0, number: int = 0, size: int = 0) -> None:
        self._read += size
        self._asked += not isinstance(command, Go | Ignored)
        self._queue.put(QueuedCommand(command, number, at, size))

    def _put_pending(self, command: IsReady | Go, at: float = 0.0, number: int = 0) -> None:
        """Queue a command whose answer may wait for loading, and print the progress meanwhile."""
        self._progress.begin()
        self._put(command, at, number)

    def _is_loaded(self) -> bool:
        return self.engine.is_prepared or self.signals.leaving

    def _quit(self) -> None:
        """Stop searching and leave after the answers to earlier commands."""
        self.signals.leave()
        if self._asked > self._taken:
            self._patience = PATIENCE
        self._put(Quit())

    def leave(self) -> None:
        """Stop everything and leave without further answers."""
        self._is_cut_off = True
        self.signals.leave()
        self._put(Quit())

    # --- writing -------------------------------------------------------------------------------

    def _print(self, *lines: str) -> None:
        if not lines:
            return
        if self._log is not None:
            self._log(">", *lines)
        self._write(*lines)

    def _message(self, text: str) -> None:
        """Print a message for the user. Before the handshake it goes to stderr, because the client
        expects nothing else."""
        if self._is_greeted or not self._auto:
            self._print(self._dialect.message(" ".join(text.split())))
        else:
            sys.stderr.write(f"{text}\n")

    def _error(self, problem: str) -> None:
        self._message(f"error: {problem}")

    # --- the working thread --------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            command, number, at, size = self._queue.get()
            self._done += size
            self._taken += not isinstance(command, Go | Ignored)
            if isinstance(command, Quit):
                self.engine.close()
                return
            if self._is_cut_off or (self.signals.leaving and isinstance(command, Go | Ignored)):
                continue
            with self._errors_reported():
                self._execute(command, number, at)
            if isinstance(command, Go):
                if command.perft is None:
                    self._progress.end()
                self._finish_go(number)  # even after an error
                with self._errors_reported():
                    self.engine.after_move(command)

    @contextlib.contextmanager
    def _errors_reported(self) -> Iterator[None]:
        """Context in which an error is reported and no more: the working thread must go on."""
        try:
            yield
        except VariantAIError as error:
            self._error(str(error))
        except Exception as error:
            traceback.print_exc()
            self._error(f"internal: {type(error).__name__}: {error}")

    def _execute(self, command: Command, number: int, at: float) -> None:
        engine, dialect = self.engine, self._dialect
        match command:
            case Go():
                self._go(command, number, at)
            case IsReady():
                self._ready()
            case SetOption():
                self._set_option(command)
            case SetPosition():
                self._set_position(command)
            case NewGame():
                self._new_game()
            case BanMoves():
                current = engine.game()
                current.banned = current.read_moves(command.moves, dialect.notation)
            case Probe():
                self._probe(command)
            case Show():
                self._print(*map(dialect.message, engine.drawing(dialect.first_rank)))
            case Ignored():
                self.builder.import_early()
            case Respond():
                self._print(command.line)

    def _ready(self) -> None:
        """Print `readyok` when the engine is prepared, and also if that fails."""
        try:
            self.engine.prepare()
        finally:
            self._progress.end()
            self._print("readyok")

    def _new_game(self) -> None:
        self.engine.new_game()
        self._last = None

    def _prefer_variant_for(self, protocol: str) -> None:
        """Play the variant that the protocol is made for, unless one was chosen."""
        if not self._is_variant_chosen:
            name = self.builder.variant_for(protocol)
            if name is not None:
                self.options.put(VARIANT, name)

    def _set_option(self, command: SetOption) -> None:
        try:
            option = self.options.find(command.name)
        except VariantAIError:
            if not self._dialect.ignores_unknown_options:
                raise
            return
        self.engine.finish_loading()  # it reads the options
        if option.name == VARIANT:
            self._set_variant(command.value or "")
        elif option.name == "Clear Hash":
            self.engine.clear()
        elif option.name == "newgame":
            self._new_game()
        elif option.name == SHUFFLED:
            self._set_game(SHUFFLED, command.value or "")
        else:
            self.options.set(command.name, command.value)
            if option.name == "debug":
                self.debug = self.options.is_on("debug")

    def _set_variant(self, given: str) -> None:
        name = self.builder.resolve_name(given)
        dialect = self._dialect
        if not dialect.has_variants and not self.builder.supports(name, dialect.name):
            playing = self.options.text(VARIANT)
            self._error(f"{given!r} cannot be played in {dialect.name}; still playing {playing}")
            return
        self._set_game(VARIANT, name)
        self._is_variant_chosen = True
        self._print(self._dialect.message(self.engine.describe_variant()))

    def _set_game(self, option: str, value: str) -> None:
        """Set an option that decides the variant; the value before stays if its spec cannot be read."""
        before = self.options.value(option)
        self.options.set(option, value)
        try:
            self.engine.game()
        except VariantAIError:
            self.options.put(option, before)
            raise

    def _set_position(self, command: SetPosition) -> None:
        before, variant = self._dialect, self.options.value(VARIANT)
        other = before.bare_dialect
        if command.bare and other:
            self._prefer_variant_for(other)
            if self.builder.supports(self.options.text(VARIANT), other):
                self._dialect = DIALECTS.load(other)()
        notation, continues = self._dialect.notation, self._dialect.first_rank == 0
        try:
            self.engine.game().set(command, notation=notation, continues=continues)
        except VariantAIError:  # nothing has changed
            self._dialect = before
            self.options.put(VARIANT, variant)
            raise

    # --- searching -----------------------------------------------------------------------------

    def _go(self, go: Go, number: int, at: float) -> None:
        """Answer a `go`. A client that asked for a move gets one, even after an error."""
        for problem in go.problems:
            self._error(problem)
        dialect = self._dialect
        try:
            board = self.engine.spec().board
            dialect.board = board.files, board.ranks
            if go.perft is not None:
                self._perft(go.perft, number)
                return
            if go.depth == 0 and dialect.has_static_search:
                info = self.engine.static_info()
                if info is None:
                    lines = dialect.no_move(self.engine.game().result)
                else:
                    lines = [*dialect.info(info), *dialect.idle_stop()]
                self._finish_go(number, *lines)
                return
            lines = self._search(go, number, at)
        except Exception as error:
            if not isinstance(error, VariantAIError):
                traceback.print_exc()
            self._error(str(error) or type(error).__name__)
            self.signals.wait_for_release(go, number)
            self._last = None
            move = None
            with contextlib.suppress(Exception):  # the error of the search was reported
                move = self.engine.any_move()
            lines = dialect.no_move(0) if move is None else dialect.best(move, None)
        if not self.signals.leaving:
            self._finish_go(number, *lines)

    def _search(self, go: Go, number: int, at: float) -> list[str]:
        """Search the current position; print reports and return the lines of the answer."""
        engine, dialect, signals = self.engine, self._dialect, self.signals
        shows_wdl = self.options.is_on("UCI_ShowWDL")

        def on_report(report: Report) -> None:
            if signals.is_stopped(number):
                return  # the last report is printed with the move
            for info in infos_of(engine.game().game, report, wdl=shows_wdl):
                self._print(*dialect.info(info))

        answer = engine.search(go, number, at, dialect.notation, on_report)
        if answer.move is None:
            lines = dialect.no_move(answer.result)
        else:
            lines = [text for info in answer.infos for text in dialect.info(info)]
            if self.debug and answer.report is not None:
                lines.append(dialect.message(debug_line(answer.report, at)))
            lines += dialect.best(answer.move, answer.ponder, self._verdict(go, number, answer))
        self._last, self._last_key = answer, engine.game().key
        return lines

    def _verdict(self, go: Go, number: int, answer: Answer) -> str:
        """`resign`, `draw` if an offered draw is accepted, or empty."""
        if not self._dialect.has_verdicts or answer.report is None:
            return ""
        if resigns(self.engine.chances, self.options.number("resign")):
            return "resign"
        offered = go.draw_offered or self.signals.ponder_hit_with_draw(number)
        lines = answer.report.lines
        accepts = offered and lines and lines[0].is_known and lines[0].q <= 0
        return "draw" if accepts else ""

    def _finish_go(self, number: int, *lines: str) -> None:
        """Print the answer to a `go`."""
        with self.signals.answering(number):
            self._print(*lines)

    def _perft(self, depth: int, number: int) -> None:
        total = 0 if depth > 0 else 1
        current = self.engine.game()
        for move, count in current.perft(depth, lambda: self.signals.is_stopped(number)):
            total += count
            self._print(f"{self._dialect.squares(move)}: {count}")
        if self.signals.is_stopped(number):
            self._finish_go(number, self._dialect.message("perft was stopped"))
        else:
            self._finish_go(number, "", f"Nodes searched: {total}")

    def _probe(self, command: Probe) -> None:
        """Print the result of the last search if it was of this position."""
        last = self._last
        key = self.engine.key_of(command.position, self._dialect.notation)
        if last is None or last.move is None or not last.infos or key != self._last_key:
            self._print("pophash")
            return
        move, info = self._dialect.squares(last.move), last.infos[0]
        self._print(
            f"pophash bestmove {move} lowerbound {info.cp} depth {info.depth} "
            f"upperbound {info.cp} depth {info.depth}"
        )
