"""Who answers what, and when: one client, from its first word to `quit`.

Two threads. The reading one parses each line and answers at once what may not wait: the handshake,
`isready` during a search, `stop`, `ponderhit`, `quit`. Everything else goes into a queue, and the
working one does it in order: so `position` and `setoption` during a search wait their turn, and a
`go` during a search ends the first with an answer of its own. Nothing but these two and the
search's own reports write lines, each as one write.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterable
from typing import TYPE_CHECKING

from variant_ai.core.engine.answers import Answer, account_of, info_of, resigns
from variant_ai.core.engine.command_queue import Control, Inbox, Waiting
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
    SetOption,
    SetPosition,
    Show,
    Stop,
    Unreadable,
)
from variant_ai.core.engine.engine import Player
from variant_ai.core.engine.line_io import MAX_LINE, InputLine, LineWriter, ProtocolLog
from variant_ai.core.engine.protocols.chosen_options import OptionSet
from variant_ai.core.engine.protocols.ucci import Ucci
from variant_ai.core.engine.protocols.uci import Cyclone, Dialect, Identity, Uci, shown
from variant_ai.core.errors import VariantAIError
from variant_ai.core.system import compilation_progress as compilation

if TYPE_CHECKING:
    from variant_ai.core.engine.engine_builder import Workshop
    from variant_ai.core.search.report import Report

PROGRESS_EVERY = 1.0
"""Seconds between two lines on what is still loading, while `isready` waits for its answer."""
GRACE = 0.5
"""Seconds given to a search that is left behind at `quit`."""
PATIENCE = 10.0
"""Seconds given to what was asked for before `quit` and is no search."""
DIALECTS: dict[str, type[Dialect]] = {"uci": Uci, "ucci": Ucci, "cyclone": Cyclone}
AUTO = "auto"


class Session:
    """One client. `run` returns when it has left or its input has ended."""

    def __init__(
        self,
        who: Identity,
        workshop: Workshop,
        write: LineWriter,
        *,
        protocol: str = AUTO,
        variant: str | None = None,
        log: ProtocolLog | None = None,
    ) -> None:
        """protocol: `auto` (the first word decides), `uci`, `ucci` or `cyclone`. variant: the one
        to play until the client chooses another; None: the workshop's, or what the dialect is
        made for."""
        self.who = who
        self.workshop = workshop
        self.control = Control()
        self.options = OptionSet(workshop.names_offered, variant or workshop.default)
        self.player = Player(workshop, self.options, self._tell)
        self.debug = False
        self._write = write
        self._log = log
        self._auto = protocol == AUTO
        self._dialect: Dialect = DIALECTS["uci" if self._auto else protocol]()
        self._greeted = False
        self._variant = variant
        self._chosen = variant is not None
        """Whether somebody said which variant is played."""
        self._inbox = Inbox()
        self._asked = 0
        self._unready: set[int] = set()
        """`isready` that have not been answered."""
        self._answering = threading.Lock()
        self._last: Answer | None = None
        self._last_key: object = None
        """Of the position that the last answer is of."""
        self._patience = GRACE
        """Seconds that what is asked for may take once the client has gone."""
        self._worker = threading.Thread(target=self._work, name="worker", daemon=True)
        write.broken = self.leave
        if protocol in ("ucci", "cyclone"):
            self._prefer(protocol)

    def preset(self, name: str, text: str) -> None:
        """Set an option before the client speaks; the handshake declares the value as the default.
        Raises SettingError."""
        option = self.options.find(name)
        is_variant = option.name == "UCI_Variant"
        self.options.preset(name, self.workshop.named(text) if is_variant else text)
        self._chosen |= is_variant
        self.debug = self.options.is_on("debug")
        self._take_unit()

    def _take_unit(self) -> None:
        """UCCI's unit of time, where it was set before the client spoke."""
        if isinstance(self._dialect, Ucci):
            self._dialect.milliseconds = self.options.is_on("usemillisec")

    # --- the reading thread --------------------------------------------------------------------

    def run(self, lines: Iterable[InputLine]) -> None:
        """Serve until `quit`, the end of the input, or until nobody reads the answers."""
        self._worker.start()
        for line in lines:
            self.hear(line)
            if self.control.leaving:
                self._worker.join(self._patience)
                self._say(*self._dialect.farewell())
                return
        self.control.end_input()
        self._put(Quit())
        # a search may be long; signals are heard between two waits only
        while self._worker.is_alive() and not self.control.leaving:
            self._worker.join(0.2)
        self._worker.join(GRACE)

    @property
    def is_done(self) -> bool:
        """Whether the working thread has ended; one that has not is left behind."""
        return not self._worker.is_alive()

    def hear(self, line: InputLine) -> None:
        """Take one line of the client: never raises, whatever it is."""
        if self._log is not None:
            self._log("<", line.text)
        if line.cut:
            self._complain(f"a line of more than {MAX_LINE} bytes was not read")
            return
        if self._auto and not self._greeted:
            self._choose_dialect(line.text)
        try:
            command = self._dialect.parse(line.text)
        except Exception as error:  # a client's line must not end the program, whatever it is
            self._complain(f"{shown(line.text)}: {error}")
            return
        if command is not None:
            self._act(command, line)

    def _choose_dialect(self, text: str) -> None:
        word = (text.split() or [""])[0].lower()
        if word == "ucci":
            self._dialect = Ucci()
            self._take_unit()
            self._prefer("ucci")

    def _act(self, command: Command, line: InputLine) -> None:
        """Answer what may not wait, queue the rest."""
        control = self.control
        match command:
            case Handshake():
                self._greet()
            case Stop():
                if not control.stop():
                    self._say(*self._dialect.idle_stop())
            case PonderHit():
                control.ponder_hit(line.at, command.draw_offered)
            case Quit():
                self._quit()
            case Debug():
                self.debug = command.on
            case IsReady() if control.searching:
                self._say("readyok")
            case IsReady():
                self._put(command, line.at, 0, self._expect_ready())
            case Unreadable():
                self._complain(command.problem)
            case Go():
                # in UCCI's batch mode one search waits for the other
                number = control.next_number(stop_others=not self._is_batch())
                self._put(command, line.at, len(line.text), number)
            case Ignored():
                pass
            case _:
                self._put(command, line.at, len(line.text))

    def _expect_ready(self) -> int:
        """Number of an `isready` that the working thread will answer, or a timer if it takes long."""
        with self._answering:
            self._asked += 1
            number = self._asked
            self._unready.add(number)
        if not self.player.is_prepared:
            self._wait_with(number)
        return number

    def _wait_with(self, number: int) -> None:
        """Say what is loaded, again and again until `isready` is answered: `readyok` means ready."""
        timer = threading.Timer(PROGRESS_EVERY, self._still_loading, (number,))
        timer.daemon = True
        timer.start()

    def _still_loading(self, number: int) -> None:
        with self._answering:
            if number not in self._unready or self.control.leaving:
                return
            self._tell(str(compilation.latest() or "still loading"))
        self._wait_with(number)

    def _answer_ready(self, number: int) -> None:
        with self._answering:
            if number not in self._unready:
                return
            self._unready.discard(number)
        self._say("readyok")

    def _is_batch(self) -> bool:
        return isinstance(self._dialect, Ucci) and self.options.is_on("batch")

    def _greet(self) -> None:
        dialect = self._dialect
        options = self.options
        if isinstance(dialect, Ucci):
            shown_options = options.for_ucci()
        else:
            shown_options = [
                o for o in options.uci if dialect.has_variants or o.name != "UCI_Variant"
            ]
        self._say(*dialect.greeting(self.who, shown_options))
        self._greeted = True
        self._put(Ignored())  # the working thread warms up

    def _put(self, command: Command, at: float = 0.0, size: int = 0, number: int = 0) -> None:
        if not self._inbox.put(Waiting(command, number, at, size)):
            self._complain("too much is waiting for the end of the search; the line was not read")

    def _quit(self) -> None:
        """Stop searching, answer what was asked before, and go."""
        self.control.leave()
        if self._inbox.quit(answer_first=True):
            self._patience = PATIENCE

    def leave(self) -> None:
        """Stop everything and go, without another word."""
        self.control.leave()
        self._inbox.quit(answer_first=False)

    # --- writing -------------------------------------------------------------------------------

    def _say(self, *lines: str) -> None:
        if not lines:
            return
        if self._log is not None:
            self._log(">", *lines)
        self._write(*lines)

    def _tell(self, text: str) -> None:
        """A message for people. Before the handshake nothing but the handshake may be printed."""
        if self._greeted or not self._auto:
            self._say(self._dialect.message(" ".join(text.split())))
        else:
            sys.stderr.write(f"{text}\n")

    def _complain(self, problem: str) -> None:
        self._tell(f"error: {problem}")

    # --- the working thread --------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            command, number, at, _ = self._inbox.take()
            if isinstance(command, Quit):
                self.player.close()
                return
            try:
                self._do(command, number, at)
            except VariantAIError as error:
                self._complain(str(error))
            except Exception as error:
                traceback.print_exc()
                self._complain(f"internal: {type(error).__name__}: {error}")
            if isinstance(command, Go):
                with self.control.answering(number):
                    pass  # whatever went wrong, it is over
                self.player.tidy(command)

    def _do(self, command: Command, number: int, at: float) -> None:
        match command:
            case Go():
                self._go(command, number, at)
            case IsReady():
                self._ready(number)
            case SetOption():
                self._set_option(command)
            case SetPosition():
                self._set_position(command)
            case NewGame():
                self.player.new_game()
                self._last = None
            case BanMoves():
                table = self.player.table()
                table.banned = table.read_moves(command.moves, self._dialect.first_rank)
            case Probe():
                self._probe(command)
            case Show():
                lines = self.player.drawing(self._dialect.first_rank)
                self._say(*(self._dialect.message(text) for text in lines))
            case Ignored():
                self.workshop.warm()

    def _ready(self, number: int) -> None:
        """`readyok`, come what may: a client waits for nothing else."""
        try:
            self.player.prepare()
        finally:
            self._answer_ready(number)

    def _prefer(self, protocol: str) -> None:
        """Play the variant that the protocol is made for, where nobody chose one."""
        if not self._chosen:
            name = self.workshop.speaking(protocol)
            if name is not None:
                self.options.put("UCI_Variant", name)

    def _set_option(self, command: SetOption) -> None:
        ucci = isinstance(self._dialect, Ucci)
        try:
            option = self.options.find(command.name)
        except VariantAIError:
            if not ucci:
                raise
            return  # UCCI: what an engine does not know it passes over in silence
        if option.name == "UCI_Variant":
            self._set_variant(command.value or "")
        elif option.name == "Clear Hash":
            self.player.clear()
        elif option.name == "newgame":
            self.player.new_game()
            self._last = None
        else:
            self.options.set(command.name, command.value)
            if option.name == "debug":
                self.debug = self.options.is_on("debug")

    def _set_variant(self, given: str) -> None:
        name = self.workshop.named(given)
        protocol = self._dialect.name
        if protocol != "uci" and not self.workshop.speaks(name, protocol):
            return  # a bridge names the variant it would play elsewhere; this protocol has its own
        before = self.options.text("UCI_Variant")
        self.options.set("UCI_Variant", name)
        try:
            said = self.player.describe()
            self.player.table()
        except VariantAIError:  # a spec that cannot be read: on with the one there is
            self.options.put("UCI_Variant", before)
            raise
        self._chosen = True
        self._say(self._dialect.message(said))

    def _set_position(self, command: SetPosition) -> None:
        if command.bare:
            self._speak_cyclone()
        dialect = self._dialect
        table = self.player.table()
        table.set(command, first_rank=dialect.first_rank, continues=dialect.first_rank == 0)

    def _speak_cyclone(self) -> None:
        """A bare `fen` or `startpos`: the client speaks cyclone, if its variant does."""
        if self._dialect.name != "uci":
            return
        self._prefer("cyclone")
        if self.workshop.speaks(self.options.text("UCI_Variant"), "cyclone"):
            self._dialect = Cyclone()

    # --- searching -----------------------------------------------------------------------------

    def _go(self, go: Go, number: int, at: float) -> None:
        for problem in go.problems:
            self._complain(problem)
        dialect = self._dialect
        answer = None
        try:
            if go.perft is not None:
                self._perft(go.perft, number)
                return
            if go.depth == 0 and isinstance(dialect, Ucci):
                info = self.player.static_info()
                self._close(number, *dialect.info(info), "nobestmove")
                return
            answer = self._answer(go, number, at)
        except Exception as error:
            if not isinstance(error, VariantAIError):
                traceback.print_exc()
            self._complain(str(error) or type(error).__name__)
        if answer is None:
            # a client that asked for a move waits for one: any is better than none
            answer = Answer(move=self._any_move())
            self._last = None
        else:
            self._last, self._last_key = answer, self.player.table().key
        if self.control.leaving:
            return
        if answer.move is None:
            self._close(number, *dialect.no_move(answer.ended))
        else:
            best = dialect.best(answer.move, answer.ponder, answer.verdict)
            self._close(number, *answer.lines, *best)

    def _any_move(self) -> str | None:
        """A legal move without a search, for a search that failed."""
        try:
            return next(iter(self.player.any_moves()), None)
        except Exception:
            traceback.print_exc()
            return None

    def _close(self, number: int, *lines: str) -> None:
        """Print the answer to a `go`."""
        with self.control.answering(number):
            self._say(*lines)

    def _answer(self, go: Go, number: int, at: float) -> Answer:
        player, dialect, control = self.player, self._dialect, self.control
        first_rank = dialect.first_rank
        shows_wdl = self.options.is_on("UCI_ShowWDL")

        def on_report(report: Report) -> None:
            if control.is_stopped(number):
                return  # the last report is printed with the move
            for info in info_of(player.table().game, report, wdl=shows_wdl):
                self._say(*dialect.info(info))

        found = player.search(go, number, at, control, first_rank, on_report, self._complain)
        if found is None:
            return Answer(move=None, ended=player.verdict())
        report = found.report
        lines = [text for info in found.infos for text in dialect.info(info)]
        if self.debug:
            lines.append(dialect.message(account_of(report, at)))
        offered = go.draw_offered or control.hit_with_draw(number)
        verdict = ""
        if isinstance(dialect, Ucci):
            if resigns(player.chances, self.options.number("resign")):
                verdict = "resign"
            elif offered and report.lines and report.lines[0].is_known and report.lines[0].q <= 0:
                verdict = "draw"
        info = next(iter(found.infos), None)
        return Answer(found.move, found.ponder, False, verdict, tuple(lines), info)

    def _perft(self, depth: int, number: int) -> None:
        total = 0 if depth > 0 else 1
        for move, count in self.player.perft(depth, lambda: self.control.is_stopped(number)):
            total += count
            self._say(f"{self._dialect.squares(move)}: {count}")
        self._close(number, "", f"Nodes searched: {total}")

    def _probe(self, command: Probe) -> None:
        """What the last search found, if it was of this position."""
        last = self._last
        if last is None or last.info is None or last.move is None:
            self._say("pophash")
            return
        asked = self.player.key_of(command.position, self._dialect.first_rank)
        if asked != self._last_key:
            self._say("pophash")
            return
        move, info = self._dialect.squares(last.move), last.info
        self._say(
            f"pophash bestmove {move} lowerbound {info.cp} depth {info.depth} "
            f"upperbound {info.cp} depth {info.depth}"
        )
