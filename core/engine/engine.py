"""The one who plays: game, net and search of the options in force, made when they are needed.

Nothing is loaded before a command needs it, so that a client may choose variant and net after the
handshake without paying for those it did not want. What an option changes is found out by
comparing settings, not by watching options.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from variant_ai.core.engine.answers import info_of
from variant_ai.core.engine.commands import Go, SetPosition
from variant_ai.core.engine.loading import Loader, deadlines
from variant_ai.core.engine.protocols.chosen_options import OptionSet
from variant_ai.core.engine.protocols.uci import Info
from variant_ai.core.engine.running_search import Searcher, Task
from variant_ai.core.engine.search_signals import Control
from variant_ai.core.errors import UnknownNameError, VariantAIError

if TYPE_CHECKING:
    from variant_ai.core.engine.engine_builder import Searching, Workshop
    from variant_ai.core.engine.position_history import LateJudge, Table
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.search.move.clock import TimeManager
    from variant_ai.core.search.report import Report
    from variant_ai.core.search.settings import SearchParams
    from variant_ai.core.spec.schema import VariantSpec

DEEPEST_PERFT = 200
"""Plies; nobody waits for less to be counted."""
LEAST_MEMORY = 16
"""MB of a search tree."""
INTERRUPTIBLE = 3
"""Depth of perft counted between two looks at `stop`."""
TIME_TO_LOAD = 10.0
"""Seconds on the clock with which half a second may be lost between two moves, once."""


@dataclass(frozen=True)
class Found:
    """What a search came to."""

    move: str
    ponder: str | None
    report: Report
    infos: tuple[Info, ...]
    """One of each line of the report, the best first."""


class Player:
    """Used by the working thread alone."""

    def __init__(self, workshop: Workshop, options: OptionSet, tell: Callable[[str], None]) -> None:
        self.workshop = workshop
        self.options = options
        self.chances: list[float] = []
        """Expected score of each own move of this game, in [0, 1]."""
        self._tell = tell
        self._spec: VariantSpec | None = None
        self._table: Table | None = None
        self._evaluator: Evaluator | None = None
        self._evaluator_settings: tuple[str, dict[str, Any]] | None = None
        self._search: Searching | None = None
        self._search_settings: tuple[str, dict[str, Any]] | None = None
        self._manager: TimeManager | None = None
        self._is_warm = False
        self._loader = Loader()
        self._ranked: tuple[int, list[int]] = (0, [])
        """Key of a position, and its moves as the net's policy ranks them."""
        self._is_net_idle = False
        """True while the net is ready and nobody else asks it."""
        self._judge: LateJudge | None = None
        """Of the game on the table, where the rules know chases."""
        self._frozen = False

    # --- what is in force ----------------------------------------------------------------------

    def spec(self) -> VariantSpec:
        """The variant played. Raises UnknownNameError, SpecError."""
        name = self.options.text("UCI_Variant")
        if self._spec is None or self._spec.variant != name:
            spec = self.workshop.spec(name)
            self._drop_search()
            self._table, self._evaluator_settings = None, None
            self._spec = spec
        return self._spec

    def table(self) -> Table:
        """The game on the table."""
        from variant_ai.core.engine.position_history import LateJudge, Table

        spec = self.spec()
        if self._table is None:
            forbidden = spec.rules.repetition.perpetual_chase != "none"
            self._judge = LateJudge(spec) if forbidden else None
            self._table = Table(self.workshop.rules(spec), self._judge)
        return self._table

    def key_of(self, position: SetPosition, first_rank: int) -> int:
        """The key of a position that is not put on the table. Raises FenError, MoveError."""
        from variant_ai.core.engine.position_history import Table

        table = Table(self.table().rules)
        table.set(position, first_rank=first_rank)
        return table.key

    @property
    def is_prepared(self) -> bool:
        """Whether the first search could begin at once; asked by the reading thread."""
        return self._search is not None and self._is_warm

    def prepare(self) -> None:
        """Load all that the next search needs, before a clock runs."""
        self._searching()
        self._timing()
        if not self._frozen:
            # what was loaded stays: the collector need not look at it again after every move
            gc.collect()
            gc.freeze()
            self._frozen = True

    def _load_judge(self) -> None:
        """Have chases judged from now on, on the table and in the search."""
        if self._judge is not None and not self._judge.is_loaded:
            self._judge.load()
            if self._search is not None:
                self._search.judge_chases(True)

    def _searching(self) -> Searching:
        from variant_ai.core.search.settings import SearchParams

        self._loader.finish()
        table = self.table()
        spec = self.spec()
        settings = (spec.variant, self.options.evaluator_settings)
        if self._evaluator is None or settings != self._evaluator_settings:
            self._drop_search()
            self._evaluator = self.workshop.evaluator(spec, settings[1], self._tell)
            self._evaluator_settings = settings
            self._is_warm = False
        words, overrides = self._chosen_settings(spec)
        if self._search is None or (words, overrides) != self._search_settings:
            self._drop_search()
            params = SearchParams.of(spec, words, **overrides)
            self._search = self._made_search(spec, self._evaluator, params, table.rules)
            self._search.judge_chases(self._judge is not None and self._judge.is_loaded)
            self._search_settings = words, overrides
        if not self._is_warm:
            self._rank_moves()
            self._is_net_idle = True
            self.workshop.compile_search()
            self._is_net_idle = False
            self._search.warm_up()
            self._is_warm = True
        return self._search

    def _load_by(self, task: Task, manager: TimeManager, control: Control) -> bool:
        """Load what the search needs in time for the task's move. True if it is ready by then; if not,
        it goes on loading."""
        ends = deadlines(task, manager)
        if ends is None or (self.is_prepared and not self._loader.is_busy):
            return True

        def until() -> float:
            has_policy = self._ranked[0] == self.table().key or self._is_net_idle
            return ends[0 if has_policy else 1]

        return self._loader.load(self._searching, until, task.number, control)

    def _rank_moves(self) -> list[int]:
        """The legal moves of the position on the table, as the net's policy ranks them; as they come
        without a net."""
        from variant_ai.core.search.tree_factory import encoder_and_rules, with_last_moves

        table, evaluator = self.table(), self._evaluator
        moves: list[int] = table.game.legal_moves().tolist()
        if evaluator is None or evaluator.is_uniform or not moves:
            return moves
        encoder, rules = encoder_and_rules(evaluator, self.spec(), table.rules)
        position = with_last_moves(table.game, rules).position
        logits = evaluator.evaluate(encoder.planes(position)).policy[0]
        likely = logits[encoder.action_indices(position, moves)]
        ranked = [moves[place] for place in (-likely).argsort(kind="stable")]
        self._ranked = (table.key, ranked)
        return ranked

    def _stopgap(self, moves: Sequence[int]) -> Found:
        """A move while the search is still loading: the policy's if there is one by now."""
        from variant_ai.core.rules.text.notation import uci
        from variant_ai.core.search.report import Report

        key, ranked = self._ranked
        if key != self.table().key:
            ranked = self._rank_moves() if self._is_net_idle else []
        move = next((move for move in ranked if move in moves), moves[0])
        whose = "the net's first choice" if ranked else "any legal move"
        self._tell(f"the search is still loading and the clock runs: playing {whose}")
        rules = self.table().rules
        text = uci(rules.types, rules.spec.board.files, move)
        return Found(text, None, Report(best=move, stopped_by="movetime"), ())

    def _chosen_settings(self, spec: VariantSpec) -> tuple[str, dict[str, Any]]:
        """Name of the set of search settings, and the options that override it."""
        from variant_ai.core.search.settings import DEFAULT_SET, words_of

        name = self.options.text("Search_Settings").strip().lower() or DEFAULT_SET
        try:
            words = words_of(spec, name)
        except UnknownNameError as error:
            self._tell(f"error: {error}; playing with {DEFAULT_SET}")
            name, words = DEFAULT_SET, spec.search
            self.options.put("Search_Settings", name)
        return name, self.options.search_overrides(words.u_divisor)

    def _made_search(
        self, spec: VariantSpec, evaluator: Evaluator, params: SearchParams, rules: Rules
    ) -> Searching:
        """A search with as much memory as there is, where there is less than asked for."""
        wanted = params.memory_mb
        while True:
            try:
                search = self.workshop.search(spec, evaluator, params, rules)
            except MemoryError:
                if params.memory_mb // 2 < LEAST_MEMORY:
                    raise
                params = replace(params, memory_mb=params.memory_mb // 2)
                continue
            if params.memory_mb < wanted:
                self._tell(f"error: no memory for Hash {wanted}; {params.memory_mb} is taken")
            return search

    def _timing(self) -> TimeManager:
        """The clock, with the options of the moment and what it remembers of the game."""
        from variant_ai.core.search.move.clock import TimeManager

        options = self.options
        if self._manager is None:
            self._manager = TimeManager()
        self._manager.overhead = self._overhead
        self._manager.jitter = options.number("Centi_Random_Move_Factor") / 100
        self._manager.speed = options.number("Slow Mover") / 100
        self._manager.early_stop = options.is_on("Allow_Early_Stopping")
        return self._manager

    @property
    def _overhead(self) -> float:
        return self.options.number("Move Overhead") / 1000

    def _drop_search(self) -> None:
        self._loader.finish()
        if self._search is not None:
            self._search.close()
        self._search, self._search_settings = None, None

    def close(self) -> None:
        self._drop_search()

    # --- between searches ----------------------------------------------------------------------

    def new_game(self) -> None:
        self.chances.clear()
        if self._manager is not None:
            self._manager.forget()
        if self._table is not None:
            self._table.new_game()
        self.clear()

    def clear(self) -> None:
        """Forget the search tree."""
        self._loader.finish()
        if self._search is not None:
            self._search.clear()

    def tidy(self, go: Go) -> None:
        """Collect the garbage of a search while the opponent thinks, and load the judge of chases
        if the next search may wait for that."""
        gc.collect(1)
        clocks = [time for time in go.times if time is not None]
        if min(clocks, default=TIME_TO_LOAD) >= TIME_TO_LOAD and go.movetime is None:
            self._load_judge()

    def describe(self) -> str:
        """The line XBoard's bridge reads: a board it does not know is drawn from it."""
        spec = self.spec()
        pocket = len(spec.hands.order) if spec.hands else 0
        return (
            f"variant {spec.variant} files {spec.board.files} ranks {spec.board.ranks} "
            f"pocket {pocket} template {spec.fairy or 'fairy'} startpos {spec.rules.start}"
        )

    def drawing(self, first_rank: int) -> Iterator[str]:
        """The position in lines of text."""
        from variant_ai.core.draw.terminal import board_text

        game = self.table().game
        last = game.moves[-1] if game.moves else None
        board = board_text(self.spec(), game.position, last_move=last, first_rank=first_rank)
        yield from board.splitlines()
        yield f"fen {game.fen()}"
        outcome = game.outcome()
        if outcome is not None:
            yield f"result {outcome.result} ({outcome.reason})"

    # --- searching -----------------------------------------------------------------------------

    def search(
        self,
        go: Go,
        number: int,
        at: float,
        control: Control,
        first_rank: int,
        on_report: Callable[[Report], None],
        complain: Callable[[str], None],
    ) -> Found | None:
        """Search the position on the table; None where there is no move to play."""
        from variant_ai.core.rules.text.notation import uci

        manager = self._timing()
        table, options = self.table(), self.options
        game = table.game
        playable = [move for move in game.legal_moves().tolist() if move not in table.banned]
        if not playable or self._is_over():
            self._wait_over(go, number, control)
            return None
        allowed = self._allowed(go, first_rank, playable, complain)
        fixed = options.number("Fixed_Movetime")
        task = Task(
            go=go,
            number=number,
            at=at,
            side=game.side,
            ply=int(game.position["ply"][0]),
            legal_moves=len(allowed if allowed is not None else playable),
            allowed=allowed,
            multipv=min(options.number("MultiPV"), len(allowed or playable)),
            node_limit=None if go.waits and not go.ponder else options.node_limit,
            fixed_movetime=fixed / 1000 if fixed else None,
            overhead=self._overhead,
        )
        task = self._in_nodes(task, manager)
        if not self._load_by(task, manager, control):
            return self._stopgap(allowed or playable)
        search = self._searching()
        search.set_game(self._playable(game))
        report = Searcher(control).run(search, task, manager, on_report)
        best = report.best
        if best is None or best not in (allowed or playable):
            best = (allowed or playable)[0]
        lines = report.lines
        # A search on the opponent's time that was not hit was of a move that never came.
        own = not go.waits or (go.ponder and control.hit(number) is not None)
        if lines and lines[0].is_known and own and not go.infinite:
            manager.played(lines[0].q)
            self.chances.append((lines[0].q + 1) / 2)
        types, files = table.rules.types, table.rules.spec.board.files
        return Found(
            uci(types, files, best),
            None if report.ponder is None else uci(types, files, report.ponder),
            report,
            tuple(info_of(game, report, wdl=options.is_on("UCI_ShowWDL"))),
        )

    def _in_nodes(self, task: Task, manager: TimeManager) -> Task:
        """The task with its clock turned into nodes, if `nodestime` asks for it."""
        rate, clock = self.options.number("nodestime"), task.clock
        if not rate or clock is None or task.go.waits:
            return task
        seconds = manager.budget(clock, task.own_moves).target
        nodes = max(round(1000 * seconds * rate), 1)
        limit = nodes if task.node_limit is None else min(nodes, task.node_limit)
        return replace(task, go=task.go._replace(times=(None, None)), node_limit=limit)

    def _playable(self, game: Game) -> Game:
        """The game, or its position alone where a draw was not claimed: the client plays on."""
        from variant_ai.core.rules.game import Game as NewGame

        if game.outcome() is None:
            return game
        position = game.position.copy()
        position["clock"] = 0
        return NewGame(game.rules, game.rules.fen(position))

    def _allowed(
        self, go: Go, first_rank: int, playable: list[int], complain: Callable[[str], None]
    ) -> tuple[int, ...] | None:
        """The moves to search where not all are: `searchmoves`, and what `banmoves` left."""
        table = self.table()
        chosen: list[int] = []
        for word in go.search_moves:
            try:
                move = table.read_moves([word], first_rank)[0]
            except VariantAIError as error:
                complain(str(error))
                continue
            if move in playable and move not in chosen:
                chosen.append(move)
        if chosen:
            return tuple(chosen)
        return tuple(playable) if table.banned else None

    def _is_over(self) -> bool:
        """Whether the position itself ends the game, although there may be moves (a king in the
        centre). Draws that must be claimed are played on."""
        outcome = self.table().rules.outcome(self.table().game.position)
        return outcome is not None and outcome.winner is not None

    def verdict(self) -> int:
        """How the game has ended for the side to move: 1 won, as in antichess without a move; 0 drawn;
        -1 lost: mated, stalemated where that loses, or all its moves banned."""
        game = self.table().game
        outcome = self.table().rules.outcome(game.position)
        if outcome is None:
            return -1
        return 0 if outcome.winner is None else 1 if outcome.winner == game.side else -1

    def _wait_over(self, go: Go, number: int, control: Control) -> None:
        """No answer before the client allows it, even where there is no move."""
        with control.changed:
            while go.waits and not (control.is_stopped(number) or control.input_ended):
                if go.ponder and not go.infinite and control.hit(number) is not None:
                    return
                control.wait(None)

    def any_moves(self) -> Iterator[str]:
        """Moves to play where everything else failed."""
        from variant_ai.core.rules.text.notation import uci

        try:
            table = self.table()
        except VariantAIError:
            return
        for move in table.game.legal_moves().tolist():
            if move not in table.banned:
                yield uci(table.rules.types, table.rules.spec.board.files, move)

    def static_info(self) -> Info:
        """The net's word on the position, without a search."""
        from variant_ai.core.search.report import centipawns
        from variant_ai.core.search.tree_factory import encoder_and_rules, with_last_moves

        self._searching().settle()
        assert self._evaluator is not None
        table = self.table()
        encoder, rules = encoder_and_rules(self._evaluator, self.spec(), table.rules)
        position = with_last_moves(table.game, rules).position
        value = self._evaluator.evaluate(encoder.planes(position)).value[0]
        return Info(depth=0, cp=centipawns(float(value)))

    def perft(self, depth: int, stopped: Callable[[], bool]) -> Iterator[tuple[str, int]]:
        """Leaves below each legal move (UCI text), until stopped."""
        from variant_ai.core.rules.kernel.perft import perft
        from variant_ai.core.rules.position import Position
        from variant_ai.core.rules.text.notation import uci

        table = self.table()
        rules = table.rules
        depth = min(depth, DEEPEST_PERFT)

        def leaves(position: Position, left: int) -> int:
            if left <= INTERRUPTIBLE:
                return perft(rules, position, left)
            total = 0
            for move in rules.legal_moves(position).tolist():
                if stopped():
                    break
                total += leaves(rules.play(position, move), left - 1)
            return total

        moves = table.game.legal_moves().tolist() if depth > 0 else []
        named = sorted((uci(rules.types, rules.spec.board.files, move), move) for move in moves)
        for text, move in named:
            if stopped():
                return
            yield text, leaves(rules.play(table.game.position, move), depth - 1)
