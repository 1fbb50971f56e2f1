"""The Python API: positions, an engine, and its analyses.

    >>> import variant_ai
    >>> position = variant_ai.Position("crazyhouse", moves=["e2e4", "e7e5"])
    >>> len(position.legal_moves())
    29

Everything here is built on the packages `variant_ai.core…`, which may be used directly for more.
Moves are UCI text: `e2e4`, `P@e4`, ranks from 1. Values and scores are those of the side to move.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import queue
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from variant_ai.core.engine.analysis_result import Analysis, Variation, analysis_of
from variant_ai.core.errors import FenError, MoveError, SettingError, VariantAIError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Outcome
from variant_ai.core.rules.text.fen import fen_or_start
from variant_ai.core.rules.text.notation import UciNotation
from variant_ai.core.spec.catalogue import home_path
from variant_ai.core.spec.hashing import rules_hash
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.closing import Closing
from variant_ai.plugins import registry

if TYPE_CHECKING:
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.report import Report

__all__ = ["Analysis", "Engine", "Position", "Variation", "load_variant"]

_RULES_KEPT = 8
_rules: dict[int, tuple[VariantSpec, Rules]] = {}
"""The specs used last with their rules, by the identity of the spec."""


def load_variant(name_or_path: str | Path | VariantSpec) -> VariantSpec:
    """Return the spec of a registered variant, or of a YAML file.

    Raises UnknownNameError, which lists the names, and SpecError.
    """
    given: object = name_or_path
    if isinstance(given, VariantSpec):
        return given
    if not isinstance(given, str | Path):
        kind = type(given).__name__
        raise VariantAIError(f"a variant is a name, a path or a spec, not {given!r} ({kind})")
    return registry().variant(str(given))


def _rules_of(spec: VariantSpec) -> Rules:
    """The rules of a spec, made once for the specs used last: tables take a moment and two megabytes."""
    known = _rules.pop(id(spec), None) or (spec, registry().rules(spec))
    _rules[id(spec)] = known  # last, as the one used last
    while len(_rules) > _RULES_KEPT:
        del _rules[next(iter(_rules))]
    return known[1]


class Position:
    """A position with the moves that led to it. Not for two threads at once."""

    def __init__(
        self,
        variant: str | VariantSpec,
        fen: str | None = None,
        moves: Iterable[str] = (),
    ) -> None:
        """fen None or "startpos": the variant's start position. moves: a list, or one text with
        spaces. Raises UnknownNameError, FenError, MoveError."""
        self.spec = load_variant(variant)
        if fen is not None and not isinstance(fen, str):
            raise FenError(f"a FEN is text, not {fen!r} ({type(fen).__name__})")
        self.game = Game.from_uci(_rules_of(self.spec), fen_or_start(fen), _move_texts(moves))

    @property
    def fen(self) -> str:
        return self.game.fen()

    @property
    def turn(self) -> int:
        """0 if the first player is to move, 1 for the second."""
        return self.game.side

    @property
    def moves(self) -> list[str]:
        """Moves since the start position or the FEN."""
        return self.game.uci_moves()

    @property
    def in_check(self) -> bool:
        return self.game.rules.in_check(self.game.position)

    @property
    def outcome(self) -> Outcome | None:
        """End of the game, repetitions and perpetual checks included; None if it is not over."""
        return self.game.outcome()

    def legal_moves(self) -> list[str]:
        """Return the legal moves, sorted."""
        return sorted(self._text(move) for move in self.game.legal_moves().tolist())

    def push(self, move: str) -> Self:
        """Play a legal move. Raises MoveError, which shows the move and the FEN."""
        self.game.push_uci(_move_text(move))
        return self

    def pop(self) -> str:
        """Take the last move back. Raises MoveError if there is none."""
        return self._text(self.game.pop())

    def written(self, move: str, notation: str = "san") -> str:
        """Return a legal move in another notation: san, iccs, or one of a plugin (wxf, chinese).

        Raises MoveError, UnknownNameError.
        """
        chosen = registry().notation(self.spec, notation)
        rules, position = self.game.rules, self.game.position
        text: str = chosen.write(
            rules, position, UciNotation().read(rules, position, _move_text(move))
        )
        return text

    def read(self, text: str, notation: str = "san") -> str:
        """Return a move of another notation as UCI text. Raises MoveError, UnknownNameError."""
        chosen = registry().notation(self.spec, notation)
        return self._text(chosen.read(self.game.rules, self.game.position, _move_text(text)))

    def copy(self) -> Position:
        """Return an independent copy."""
        same = copy.copy(self)
        same.game = self.game.copy()
        return same

    def text(self, *, flipped: bool = False) -> str:
        """Return a text drawing of the board."""
        from variant_ai.core.draw.terminal import board_text

        return board_text(self.game, flipped=flipped)

    def _text(self, move: int) -> str:
        return self.game.rules.uci(move)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Position({self.spec.variant!r}, {self.fen!r})"


def _move_text(move: object) -> str:
    if not isinstance(move, str):
        raise MoveError(f"a move is text like 'e2e4', not {move!r} ({type(move).__name__})")
    return move


def _move_texts(moves: object) -> list[str]:
    """Moves of a list, or of one text with spaces. Raises MoveError."""
    if isinstance(moves, str):
        return moves.split()
    if not isinstance(moves, Iterable):
        raise MoveError(f"moves are a list of texts, or a text, not {moves!r}")
    return [_move_text(move) for move in moves]


class Engine(Closing):
    """A net and a search for one variant. Not for two threads at once; a context manager.

    >>> from variant_ai import Engine, Position
    >>> with Engine("crazyhouse", evaluator="uniform") as engine:
    ...     found = engine.analyse(Position("crazyhouse"), nodes=50)
    >>> found.visits >= 50, found.best in Position("crazyhouse").legal_moves()
    (True, True)
    """

    def __init__(
        self,
        variant: str | VariantSpec,
        model: str | Path | None = None,
        *,
        evaluator: str = "auto",
        threads: int | None = None,
        device: str = "cpu",
        precision: str | None = None,
        settings: str = "default",
        log: Callable[[str], None] | None = None,
        **overrides: Any,
    ) -> None:
        """model: an ONNX file or a run; None: the net that comes with the variant, or no net, with
        a warning. settings: name of a set of search settings of the spec, such as `paper`. log:
        called with sentences about the evaluator, the warning included. overrides: fields of
        `SearchParams` that override the settings.

        Raises UnknownNameError, SettingError, DataError.
        """
        from variant_ai.core.factories import SEARCHES
        from variant_ai.core.search.interface import make_search
        from variant_ai.core.search.settings import SearchParams

        self.spec = load_variant(variant)
        self.params = SearchParams.of(self.spec, settings, **overrides)
        self.rules = _rules_of(self.spec)
        SEARCHES.load(self.params.algorithm)  # raises before a net is loaded
        self.evaluator: Evaluator = registry().usual_evaluator(
            self.spec,
            None if model is None else home_path(model),
            evaluator=evaluator,
            batch=self.params.batch_size,
            threads=threads,
            device=device,
            precision=precision,
            log=log,
            warn=log or functools.partial(warnings.warn, stacklevel=3),
        )
        self.search = make_search(self.spec, self.evaluator, self.params, rules=self.rules)
        # An engine that is garbage-collected releases its threads like one that is closed.
        self._release = weakref.finalize(self, self.search.close)
        self._release.atexit = False
        self._lock = threading.Lock()
        self._net_is_open = True

    def close(self) -> None:
        """Release the threads of the search, and the net."""
        self.search.stop()
        self._release()
        self._close_unused_net()

    def _close_unused_net(self) -> None:
        """Close the net of a closed engine, once. An open stream still uses it, and closes it at its end."""
        if self._net_is_open and not self._lock.locked():
            self._net_is_open = False
            self.evaluator.close()

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Context of one use of the search. Raises VariantAIError if another has not ended."""
        if not self._lock.acquire(blocking=False):
            raise VariantAIError(
                "this engine is still searching: leave the loop of its stream first, or call the stream's "
                "close(), or use another engine"
            )
        try:
            self._require_open()
            yield
        finally:
            self._lock.release()
            if not self._release.alive:
                self._close_unused_net()

    def _require_open(self) -> None:
        if not self._release.alive:
            raise VariantAIError("this engine was closed")

    def analyse(
        self,
        position: Position,
        *,
        nodes: int | None = None,
        movetime: float | None = None,
        depth: int | None = None,
        mate: int | None = None,
        multipv: int = 1,
        moves: Sequence[str] | None = None,
    ) -> Analysis:
        """Search until the first limit is met (800 nodes without any).

        movetime in seconds, mate in full moves; moves: the only ones to consider, as in `Position`. The next call
        reuses the part of the tree below its position. Raises SettingError, MoveError.
        """
        _require_lines(multipv)
        limits = _limits(nodes, movetime, depth, mate)
        with self._in_use():
            game = self._set(position)
            chosen = None if moves is None else [_read(game, move) for move in _move_texts(moves)]
            return analysis_of(game, self.search.run(limits, moves=chosen, multipv=multipv))

    def stream(
        self,
        position: Position,
        *,
        nodes: int | None = None,
        movetime: float | None = None,
        multipv: int = 1,
        interval: float = 0.5,
    ) -> Iterator[Analysis]:
        """Yield an analysis every `interval` seconds during the search, and at its end.

        Without a limit it continues until the loop is left, or the search is finished. Until then the
        engine can do nothing else. Raises SettingError.
        """
        from variant_ai.core.search.move.limits import Limits

        _require_lines(multipv)
        _require_interval(interval)
        self._require(position)
        endless = nodes is None and movetime is None
        limits = Limits(nodes=nodes, movetime=movetime, infinite=endless)
        return self._streamed(position, limits, multipv, interval)

    def _streamed(
        self, position: Position, limits: Limits, multipv: int, interval: float
    ) -> Iterator[Analysis]:
        """Search from the first `next` on, as `stream` describes."""
        with self._in_use():
            yield from self._reports(self._set(position), limits, multipv, interval)

    def _reports(
        self, game: Game, limits: Limits, multipv: int, interval: float
    ) -> Iterator[Analysis]:
        """Search in a thread, and yield its reports."""
        found: queue.Queue[Report | BaseException] = queue.Queue()

        def run() -> None:
            try:
                found.put(
                    self.search.run(limits, multipv=multipv, on_report=found.put, interval=interval)
                )
            except BaseException as error:
                found.put(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            while True:
                report = found.get()
                if isinstance(report, BaseException):
                    self._require_open()
                    raise report
                yield analysis_of(game, report)
                if report.stopped_by:
                    return
        finally:
            while thread.is_alive():
                self.search.stop()
                thread.join(0.005)

    def analyse_many(
        self,
        positions: Sequence[Position],
        *,
        nodes: int | None = None,
        movetime: float | None = None,
    ) -> list[Analysis]:
        """Analyse positions in parallel, in shared batches: much faster than one after the other with
        a net that is efficient on large batches.

        nodes: for each of them, 800 if neither is given; movetime: seconds for all together. The
        engine's own tree is unchanged.
        """
        from variant_ai.core.search.forest.position_searches import analyse_many

        positions = _listed(positions)
        if not positions:
            return []
        games = [self._game(position) for position in positions]
        limits = _limits(nodes, movetime, None, None)
        with self._in_use():
            self.search.settle()
            reports = analyse_many(
                self.spec,
                self.evaluator,
                games,
                self.params,
                nodes=limits.nodes,
                movetime=limits.movetime,
                rules=self.search.rules,
            )
        return [analysis_of(game, report) for game, report in zip(games, reports, strict=True)]

    def evaluate(self, positions: Sequence[Position]) -> list[tuple[float, dict[str, float]]]:
        """Return the net's value in [-1, 1] and probabilities of the legal moves for each position,
        without a search, in one batch."""
        positions = _listed(positions)
        if not positions:
            return []
        for position in positions:
            self._require(position)
        from variant_ai.core.search.net_view import net_answers

        search = self.search
        with self._in_use():
            search.settle()
            games = [position.game for position in positions]
            answers = net_answers(self.evaluator, search.encoder, search.rules, games)
        text = positions[0]._text
        return [
            (answer.value, {text(move): share for move, share in answer.shares().items()})
            for answer in answers
        ]

    def forget(self) -> None:
        """Discard the search tree."""
        with self._in_use():
            self.search.clear()

    def _set(self, position: Position) -> Game:
        game = self._game(position)
        self.search.set_game(game)
        return game

    def _game(self, position: Position) -> Game:
        """A copy of the game: the caller may play on while this one is searched."""
        self._require(position)
        return position.copy().game

    def _require(self, position: Position) -> None:
        if not isinstance(position, Position):
            raise VariantAIError(
                f"a position is a variant_ai.Position, not {position!r} ({type(position).__name__})"
            )
        if position.spec.variant != self.spec.variant:
            raise VariantAIError(
                f"this engine plays {self.spec.variant}, the position is one of "
                f"{position.spec.variant}"
            )
        if position.spec is not self.spec and rules_hash(position.spec) != rules_hash(self.spec):
            raise VariantAIError(
                f"the position is one of another spec of {self.spec.variant}, with other rules; make "
                "engine and position from the same one"
            )


def _listed(positions: object) -> list[Position]:
    if isinstance(positions, Iterable) and not isinstance(positions, (str, Position)):
        return list(positions)
    raise VariantAIError(f"a list of positions is expected, not a {type(positions).__name__}")


def _require_lines(multipv: object) -> None:
    if not (isinstance(multipv, Integral) and int(multipv) >= 1):
        raise SettingError(f"multipv = {multipv!r}: must be a whole number of at least 1")


def _require_interval(interval: object) -> None:
    real = isinstance(interval, Real) and 0 < float(interval) < math.inf
    if isinstance(interval, bool) or not real:
        raise SettingError(f"interval = {interval!r}: must be a number of seconds above 0")


def _limits(
    nodes: int | None, movetime: float | None, depth: int | None, mate: int | None
) -> Limits:
    from variant_ai.core.search.move.limits import Limits

    if nodes is None and movetime is None and depth is None and mate is None:
        nodes = 800
    return Limits(nodes=nodes, movetime=movetime, depth=depth, mate=mate)


def _read(game: Game, move: str) -> int:
    return UciNotation().read(game.rules, game.position, move)
