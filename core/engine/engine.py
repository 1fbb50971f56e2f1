"""The engine behind `go`: the game, net and search of the current options, made when needed.

Nothing is loaded before a command needs it, so a client may choose variant and net after the
handshake without waiting for others. Changes of options are detected by comparing settings.

`Engine.search` is the path of a `go`: collect its limits in a `SearchTask`, load the search if
necessary, run it (`run_search`), and return an `Answer`.
"""

from __future__ import annotations

import gc
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from variant_ai.core.engine.answers import Answer, infos_of
from variant_ai.core.engine.commands import Go, SetPosition
from variant_ai.core.engine.loading import (
    BackgroundLoader,
    has_time_to_look,
    loading_deadlines,
)
from variant_ai.core.engine.protocols.chosen_options import OptionSet
from variant_ai.core.engine.protocols.uci import Info
from variant_ai.core.engine.running_search import SearchTask, run_search
from variant_ai.core.engine.search_signals import SearchSignals
from variant_ai.core.errors import UnknownNameError, VariantAIError

if TYPE_CHECKING:
    from variant_ai.core.engine.current_game import CurrentGame, LazyChaseJudge
    from variant_ai.core.engine.engine_builder import EngineBuilder
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.search.interface import BaseSearch
    from variant_ai.core.search.move.clock import TimeManager
    from variant_ai.core.search.report import Report
    from variant_ai.core.search.settings import SearchParams
    from variant_ai.core.spec.schema import VariantSpec

LEAST_MEMORY = 16
"""MB of a search tree."""
UNREADABLE_NODES = 800
"""Nodes of a search whose limits could not be read: about a second of a large net on one core."""
TIME_TO_LOAD = 10.0
"""Seconds on the clock with which half a second may be lost between two moves, once."""


class Engine:
    """Plays one game after the other. Used by the working thread; the loader thread runs `_ready_search`."""

    def __init__(
        self,
        builder: EngineBuilder,
        options: OptionSet,
        signals: SearchSignals,
        message: Callable[[str], None],
    ) -> None:
        """message: called with messages for the user."""
        self.builder = builder
        self.options = options
        self.signals = signals
        self.chances: list[float] = []
        """Expected score after each own move of this game, in [0, 1]."""
        self._message = message
        self._spec: VariantSpec | None = None
        self._game: CurrentGame | None = None
        self._judge: LazyChaseJudge | None = None
        """Judge of the current game, if the rules forbid chases."""
        self._evaluator: Evaluator | None = None
        self._evaluator_settings: tuple[str, dict[str, Any]] | None = None
        self._search: BaseSearch | None = None
        self._search_settings: tuple[str, dict[str, Any]] | None = None
        self._is_warm = False
        self._loader = BackgroundLoader(signals)
        self._time_manager: TimeManager | None = None
        self._ranked: tuple[int, list[int]] = (0, [])
        """Key of a position, and its moves in the order of the net's policy."""
        self._look_seconds = 0.0
        """Least time in which the net has ranked the moves of a position."""
        self._is_net_free = False
        """True while the net is ready and not in use."""
        self._net_lock = threading.Lock()
        """Held while the net is used before the search is ready, and to take it back for that."""
        self._is_frozen = False

    # --- searching -----------------------------------------------------------------------------

    def search(
        self,
        go: Go,
        number: int,
        at: float,
        notation: str,
        on_report: Callable[[Report], None],
    ) -> Answer:
        """Search the current position. number: of the `go`; at: time when it was read.
        notation: of the moves in it."""
        current = self.game()
        game = current.game
        playable = [move for move in game.legal_moves().tolist() if move not in current.banned]
        if not playable or current.is_over:
            self.signals.wait_for_release(go, number)
            return Answer(None, result=current.result)
        allowed = self._allowed_moves(go, notation, playable)
        choices = allowed or playable
        manager = self._updated_time_manager()
        task = self._task(go, number, at, allowed, len(choices), manager)
        if not self._load_in_time(task, manager):
            return self._quick_answer(choices)
        search = self._ready_search()
        search.set_game(current.searchable())
        report = run_search(search, task, manager, self.signals, on_report)
        lines = report.lines
        unseen = not report.visits and not (lines and lines[0].is_known)
        has_net = self._evaluator is not None and self._evaluator.ranks_moves
        if unseen and has_net and report.stopped_by in ("movetime", "stop"):
            may_look = has_time_to_look(task, manager, self._look_seconds)
            return self._quick_answer(choices, report, may_look)
        best = choices[0] if report.best is None or report.best not in choices else report.best
        # without a ponder hit, a search on the opponent's time was about a move that never came
        is_own = not go.waits or (go.ponder and self.signals.ponder_hit_time(number) is not None)
        if lines and lines[0].is_known and is_own and not go.infinite:
            manager.played(lines[0].q)
            self.chances.append((lines[0].q + 1) / 2)
        shows_wdl = self.options.is_on("UCI_ShowWDL")
        infos = tuple(infos_of(game, report, wdl=shows_wdl))
        if not infos and current.result == 0:  # drawn by itself: nothing was searched
            wdl = (0, 1000, 0) if shows_wdl else None
            infos = (Info(depth=1, seldepth=1, wdl=wdl, pv=(current.text(best),)),)
        ponder = None if report.ponder is None else current.text(report.ponder)
        return Answer(current.text(best), ponder, report, infos)

    def _task(
        self,
        go: Go,
        number: int,
        at: float,
        allowed: tuple[int, ...] | None,
        choices: int,
        manager: TimeManager,
    ) -> SearchTask:
        """The `go` with the position and the options that its search depends on."""
        options, game = self.options, self.game().game
        fixed = options.number("Fixed_Movetime")
        task = SearchTask(
            go=go,
            number=number,
            at=at,
            side=game.side,
            ply=int(game.position["ply"][0]),
            legal_moves=choices,
            allowed=allowed,
            multipv=min(options.number("MultiPV"), choices),
            node_limit=None if go.waits and not go.ponder else options.node_limit,
            fixed_movetime=fixed / 1000 if fixed else None,
            overhead=manager.overhead,
        )
        # The client expects an answer: it gave a limit that could not be read, or only the other's time.
        if (go.problems or go.times != (None, None)) and not (go.infinite or task.has_limit):
            self._message(f"error: go: no limit is left, so {UNREADABLE_NODES} nodes are searched")
            return replace(task, node_limit=UNREADABLE_NODES)
        rate, clock = options.number("nodestime"), task.clock
        if not rate or clock is None or go.infinite:
            return task
        # `nodestime`: spend the time of the clock as nodes; while pondering they are no limit
        seconds = manager.budget(clock, task.own_moves).target
        nodes = max(round(1000 * seconds * rate), 1)
        limit = nodes if go.nodes is None else min(nodes, go.nodes)
        return replace(task, go=go._replace(times=(None, None), nodes=limit))

    def _allowed_moves(self, go: Go, notation: str, playable: list[int]) -> tuple[int, ...] | None:
        """The only moves to search, by `searchmoves` and `banmoves`; None: all."""
        current = self.game()
        chosen: list[int] = []
        for word in go.search_moves:
            try:
                move = current.read_moves([word], notation)[0]
            except VariantAIError as error:
                self._message(f"error: {error}")
                continue
            if move in playable and move not in chosen:
                chosen.append(move)
        if chosen:
            return tuple(chosen)
        return tuple(playable) if current.banned else None

    def _quick_answer(
        self, moves: Sequence[int], report: Report | None = None, may_look: bool = True
    ) -> Answer:
        """A move without a search: the first choice of the policy if there is one, and no score.

        report: of a search whose time was over before the net saw the position; asking for the
        first choice costs one more evaluation, unless `may_look` is False. None: the search is still loading.
        """
        from variant_ai.core.search.report import Report

        with self._net_lock:  # the loader waits before it uses the net
            may_evaluate = self._is_net_free if report is None else may_look
            ranked = self._ranked_moves(may_evaluate=may_evaluate)
        move = next((move for move in ranked if move in moves), moves[0])
        if report is None:
            whose = "the net's first choice" if ranked else "any legal move"
            self._message(f"the search is still loading: playing {whose}")
            report = Report(best=move, stopped_by="movetime")
        return Answer(self.game().text(move), None, report)

    def any_move(self) -> str | None:
        """Return a legal move without a search, None if there is none. Raises VariantAIError."""
        current = self.game()
        moves = current.game.legal_moves().tolist()
        return next((current.text(move) for move in moves if move not in current.banned), None)

    # --- loading -------------------------------------------------------------------------------

    def spec(self) -> VariantSpec:
        """Return the spec of the chosen variant. Raises UnknownNameError, SpecError."""
        name = self.options.text("UCI_Variant")
        if self.options.is_on("UCI_Chess960"):
            name = self.builder.shuffled(name)
        if self._spec is None or self._spec.variant != name:
            spec = self.builder.spec(name)
            self._drop_search()
            self._game, self._evaluator_settings = None, None
            self._spec = spec
        return self._spec

    def game(self) -> CurrentGame:
        """Return the current game of the chosen variant. Raises UnknownNameError, SpecError."""
        from variant_ai.core.engine.current_game import CurrentGame, LazyChaseJudge

        spec = self.spec()
        if self._game is None:
            rules = self.builder.rules(spec)
            forbidden = spec.rules.repetition.forbids_chases
            self._judge = LazyChaseJudge(rules) if forbidden and spec.fairy is not None else None
            self._game = CurrentGame(rules, self._judge)
        return self._game

    @property
    def is_prepared(self) -> bool:
        """True if a search could begin at once; also called by the reading thread."""
        return self._search is not None and self._is_warm

    def _is_current(self) -> bool:
        """True if a search with the chosen options could begin at once."""
        spec = self.spec()
        return (
            self.is_prepared
            and self._evaluator_settings == (spec.variant, self.options.evaluator_settings)
            and self._search_settings == self._chosen_settings(spec)
        )

    def prepare(self) -> None:
        """Load everything that the next search needs, before a clock runs."""
        self._ready_search()
        self._updated_time_manager()
        if not self._is_frozen:
            # loaded objects stay: the collector need not look at them after every move
            gc.collect()
            gc.freeze()
            self._is_frozen = True

    def finish_loading(self) -> None:
        """Wait for the end of background loading."""
        self._loader.finish()

    def _load_in_time(self, task: SearchTask, manager: TimeManager) -> bool:
        """Load the search. Return False if that takes longer than the task's time, or the client says
        `stop`; loading then continues in the background."""
        if not self._loader.is_busy and self._is_current():
            return True
        key = self.game().key

        def until() -> float:
            policy, last = loading_deadlines(task, manager, self.signals)
            return policy if self._ranked[0] == key or self._is_net_free else last

        # a copy: the client may set another position while the net still looks at this one
        make = partial(self._ready_search, self.game().game.copy())
        return self._loader.load(make, until, task.number)

    def _ready_search(self, game: Game | None = None) -> BaseSearch:
        """The search of the current settings, compiled and warmed up. game: the net ranks the moves of its
        position meanwhile; None: the current game."""
        from variant_ai.core.search.settings import SearchParams

        self._loader.finish()
        # the rules first: what they compile is shared with other processes, and `auto` does not
        # measure evaluators meanwhile
        rules = self.game().rules
        spec = self.spec()
        settings = (spec.variant, self.options.evaluator_settings)
        if self._evaluator is None or settings != self._evaluator_settings:
            self.close()  # a new net may need the memory of the old one
            self._evaluator = self.builder.evaluator(spec, settings[1], self._message)
            self._evaluator_settings = settings
            self._is_warm = False
        chosen_set, overrides = self._chosen_settings(spec)
        if self._search is None or (chosen_set, overrides) != self._search_settings:
            self._drop_search()
            params = SearchParams.of(spec, chosen_set, **overrides)
            self._search = self._search_in_memory(self._evaluator, params, rules)
            self._search.judge_chases(self._judge is not None and self._judge.is_loaded)
            self._search_settings = chosen_set, overrides
        if not self._is_warm:
            game = self.game().game if game is None else game
            self._rank_moves(game)
            self._is_net_free = True
            self.builder.compile_search()
            with self._net_lock:
                self._is_net_free = False
            self._search.warm_up()
            self._look_seconds = math.inf
            self._rank_moves(game)  # how long it takes once all is warm
            self._is_warm = True
        return self._search

    def _chosen_settings(self, spec: VariantSpec) -> tuple[str, dict[str, Any]]:
        """Name of the set of search settings, and the options that override it."""
        from variant_ai.core.factories import SEARCHES
        from variant_ai.core.search.settings import DEFAULT_SET, SearchParams, words_of

        name = self.options.text("Search_Settings").strip().lower() or DEFAULT_SET
        try:
            words = words_of(spec, name)
        except UnknownNameError as error:
            self._message(f"error: {error}; playing with {DEFAULT_SET}")
            name, words = DEFAULT_SET, spec.search
            self.options.put("Search_Settings", name)
        overrides = self.options.search_overrides(words.u_divisor)
        try:
            SEARCHES.load(SearchParams.of(spec, name, **overrides).algorithm)
        except VariantAIError as error:
            if "algorithm" not in overrides:
                raise
            self._message(f"error: {error}; playing with the search of {spec.variant}")
            self.options.put("Search_Algorithm", "auto")
            del overrides["algorithm"]
        return name, overrides

    def _search_in_memory(
        self, evaluator: Evaluator, params: SearchParams, rules: Rules
    ) -> BaseSearch:
        """A search with the requested memory, or with as much as is available."""
        requested = params.memory_mb
        while True:
            try:
                search = self.builder.search(self.spec(), evaluator, params, rules)
            except MemoryError:
                if params.memory_mb // 2 < LEAST_MEMORY:
                    raise
                params = replace(params, memory_mb=params.memory_mb // 2)
                continue
            if params.memory_mb < requested:
                self._message(f"error: no memory for Hash {requested}; {params.memory_mb} is used")
            return search

    def _updated_time_manager(self) -> TimeManager:
        """The time manager with the current options and its knowledge of the game."""
        from variant_ai.core.search.move.clock import TimeManager

        options = self.options
        manager = self._time_manager = self._time_manager or TimeManager()
        manager.overhead = options.number("Move Overhead") / 1000
        manager.jitter = options.number("Centi_Random_Move_Factor") / 100
        manager.speed = options.number("Slow Mover") / 100
        manager.early_stop = options.is_on("Allow_Early_Stopping")
        return manager

    def _rank_moves(self, game: Game) -> list[int]:
        """The legal moves in the order of the net's policy, unsorted without a net."""
        from variant_ai.core.search.net_view import answer_of

        search, evaluator = self._search, self._evaluator
        moves: list[int] = game.legal_moves().tolist()
        if search is None or evaluator is None or not evaluator.ranks_moves or not moves:
            return moves
        began = time.perf_counter()
        shares = answer_of(search, game).shares()
        self._look_seconds = min(self._look_seconds, time.perf_counter() - began)
        ranked = sorted(moves, key=lambda move: -shares[move])
        self._ranked = (int(game.position["key"][0]), ranked)
        return ranked

    def _ranked_moves(self, *, may_evaluate: bool) -> list[int]:
        """The same from memory if the position was ranked before; empty if it was not and the net may
        not be used now."""
        key, ranked = self._ranked
        if key == self.game().key:
            return ranked
        return self._rank_moves(self.game().game) if may_evaluate else []

    def _drop_search(self) -> None:
        self._loader.finish()
        if self._search is not None:
            self._search.close()
        self._search, self._search_settings = None, None

    def close(self) -> None:
        """Release the search and the net. The next search loads them again."""
        self._drop_search()
        evaluator, self._evaluator = self._evaluator, None
        if evaluator is not None:
            evaluator.close()

    # --- between searches ----------------------------------------------------------------------

    def new_game(self) -> None:
        """Forget the game and the search tree, and read the spec again if its file was edited.

        Raises SpecError if it has a mistake now; the rules read before stay.
        """
        self.chances.clear()
        if self._time_manager is not None:
            self._time_manager.forget()
        if self._game is not None:
            self._game.new_game()
        self.clear()
        self._follow_edits()

    def _follow_edits(self) -> None:
        before = self._spec
        if before is None:
            return
        spec = self.builder.spec(before.variant)
        if spec is not before:
            self.builder.rules(spec)  # a mistake in its start position shows here
            self._spec = None
            self._message(f"the spec of {spec.variant} was edited and read again")

    def clear(self) -> None:
        """Forget the search tree."""
        self._loader.finish()
        if self._search is not None:
            self._search.clear()

    def after_move(self, go: Go) -> None:
        """Collect the garbage of a search while the opponent thinks, and load the judge of chases if
        there is time for that."""
        gc.collect(1)
        clocks = [time for time in go.times if time is not None]
        if min(clocks, default=TIME_TO_LOAD) < TIME_TO_LOAD or go.movetime is not None:
            return
        judge = self._judge
        is_move = go.perft is None and go.depth != 0  # otherwise a clock may start at once
        if judge is None or judge.is_loaded or not is_move:
            return
        self._judge = None  # unless it can be loaded: one warning is enough
        if judge.load(lambda problem: self._message(f"error: {problem}")):
            self._judge = judge
            if self._search is not None:
                self._search.judge_chases(True)

    # --- other questions -----------------------------------------------------------------------

    def key_of(self, position: SetPosition, notation: str) -> int:
        """Return the key of another position. Raises FenError, MoveError."""
        from variant_ai.core.engine.current_game import CurrentGame

        other = CurrentGame(self.game().rules)
        other.set(position, notation=notation)
        return other.key

    def describe_variant(self) -> str:
        """Return the line from which XBoard's bridge draws a board that it does not know."""
        spec = self.spec()
        pocket = len(spec.hands.order) if spec.hands else 0
        return (
            f"variant {spec.variant} files {spec.board.files} ranks {spec.board.ranks} "
            f"pocket {pocket} template {spec.fairy or 'fairy'} startpos {spec.rules.start}"
        )

    def drawing(self, first_rank: int) -> Iterator[str]:
        """Yield the lines of a text drawing of the position."""
        from variant_ai.core.draw.terminal import board_text

        game = self.game().game
        yield from board_text(game, first_rank=first_rank).splitlines()
        yield f"fen {game.fen()}"
        outcome = game.outcome()
        if outcome is not None:
            yield f"result {outcome.result} ({outcome.reason})"

    def static_info(self) -> Info | None:
        """Return the net's score of the position, without a search; None if the game is over."""
        from variant_ai.core.search.net_view import answer_of
        from variant_ai.core.search.report import centipawns

        game = self.game().game
        if not len(game.legal_moves()) or self.game().is_over:
            return None
        answer = answer_of(self._ready_search(), game)
        return Info(depth=0, cp=centipawns(answer.value))
