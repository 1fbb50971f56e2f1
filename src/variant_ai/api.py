"""What a program of one's own needs, in few words: positions, an engine, and what it finds.

    >>> import variant_ai
    >>> position = variant_ai.Position("crazyhouse", moves=["e2e4", "e7e5"])
    >>> len(position.legal_moves())
    29

Everything here is made of the rooms below (`variant_ai.core…`), which may be used directly for more.
Texts of moves are UCI: `e2e4`, `P@e4`, ranks from 1. Values and scores are seen from the side to
move.
"""

from __future__ import annotations

import functools
import queue
import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from variant_ai.core.errors import FenError, MoveError, VariantAIError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Outcome
from variant_ai.core.rules.text.notation import UciNotation, uci
from variant_ai.core.spec.catalogue import home_path
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.plugins import registry

if TYPE_CHECKING:
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.report import Report

_rules: dict[tuple[str, int], Rules] = {}


def load_variant(name_or_path: str | VariantSpec) -> VariantSpec:
    """The spec of a registered variant, or of a YAML file.

    Raises UnknownNameError, which says what there is, and SpecError.
    """
    if isinstance(name_or_path, VariantSpec):
        return name_or_path
    return registry().variant(name_or_path)


def _rules_of(spec: VariantSpec) -> Rules:
    """One rules object for each spec: its tables take a moment to make."""
    key = (spec.variant, id(spec))
    if key not in _rules:
        _rules[key] = registry().rules(spec)
    return _rules[key]


class Position:
    """A position with the moves that led to it. Not for two threads at once."""

    def __init__(
        self,
        variant: str | VariantSpec,
        fen: str | None = None,
        moves: Iterable[str] = (),
    ) -> None:
        """fen None or "startpos": the variant's start position. moves: a list, or texts with blanks
        between them. Raises UnknownNameError, FenError, MoveError."""
        self.spec = load_variant(variant)
        if fen is not None and not isinstance(fen, str):
            raise FenError(f"a FEN is text, not {fen!r} ({type(fen).__name__})")
        start = None if fen == "startpos" else fen
        listed = moves.split() if isinstance(moves, str) else list(moves)
        self.game = Game.from_uci(_rules_of(self.spec), start, map(_move_text, listed))

    @property
    def fen(self) -> str:
        return self.game.fen()

    @property
    def turn(self) -> int:
        """0 where the first player is to move, 1 for the second."""
        return self.game.side

    @property
    def moves(self) -> list[str]:
        """Moves played since the start position or the FEN."""
        return self.game.uci_moves()

    @property
    def in_check(self) -> bool:
        return self.game.rules.in_check(self.game.position)

    @property
    def outcome(self) -> Outcome | None:
        """How the game has ended, None while it goes on; repetitions and perpetual checks too."""
        return self.game.outcome()

    def legal_moves(self) -> list[str]:
        """Sorted."""
        return sorted(self._text(move) for move in self.game.legal_moves().tolist())

    def push(self, move: str) -> Self:
        """Play a legal move. Raises MoveError, which shows the move and the FEN."""
        self.game.push_uci(_move_text(move))
        return self

    def pop(self) -> str:
        """Take the last move back. Raises MoveError where there is none."""
        return self._text(self.game.pop())

    def written(self, move: str, notation: str = "san") -> str:
        """A legal move in another notation: san, iccs, or one of a plugin (wxf, chinese).

        Raises MoveError, UnknownNameError.
        """
        chosen = _notation(self.spec, notation)
        rules, position = self.game.rules, self.game.position
        text: str = chosen.write(
            rules, position, UciNotation().read(rules, position, _move_text(move))
        )
        return text

    def read(self, text: str, notation: str = "san") -> str:
        """A move of another notation as UCI text. Raises MoveError, UnknownNameError."""
        chosen = _notation(self.spec, notation)
        return self._text(chosen.read(self.game.rules, self.game.position, _move_text(text)))

    def copy(self) -> Position:
        """The same, to be changed on its own."""
        start = self.game.rules.fen(self.game.positions[0])
        return Position(self.spec, start, self.moves)

    def text(self, *, flipped: bool = False) -> str:
        """The board in lines."""
        from variant_ai.core.draw.terminal import board_text

        last = self.game.moves[-1] if self.game.moves else None
        return board_text(self.spec, self.game.position, last_move=last, flipped=flipped)

    def _text(self, move: int) -> str:
        return uci(self.game.rules.types, self.spec.board.files, move)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Position({self.spec.variant!r}, {self.fen!r})"


def _move_text(move: object) -> str:
    if not isinstance(move, str):
        raise MoveError(f"a move is text like 'e2e4', not {move!r} ({type(move).__name__})")
    return move


def _notation(spec: VariantSpec, name: str) -> Any:
    from variant_ai.core.errors import UnknownNameError
    from variant_ai.core.rules.text.notation import core_notations

    known: dict[str, Any] = {notation.name: notation for notation in core_notations()}
    known.update({entry.name: entry for entry in registry().notations(spec)})
    if name not in known:
        raise UnknownNameError("notation", name, known)
    found = known[name]
    return found.make() if hasattr(found, "make") else found


@dataclass(frozen=True)
class Variation:
    """One move and what follows it."""

    move: str
    pv: tuple[str, ...]
    """The line of play, `move` first; every move is legal."""
    value: float
    """-1 (lost) to 1 (won)."""
    cp: int
    """The value in centipawns."""
    mate: int | None
    """Full moves to a proven end, negative when being mated."""
    wdl: tuple[float, float, float] | None
    """Chances of win, draw, loss; None where the net has none."""
    visits: int
    prior: float
    """The net's probability of the move."""


@dataclass(frozen=True)
class Analysis:
    """What a search found."""

    best: str | None
    """None where the game is over."""
    ponder: str | None
    """The answer expected."""
    lines: tuple[Variation, ...]
    """Best first; of moves that the search looked at."""
    visits: int
    """Made by this search; those of `lines` count the tree kept from earlier ones, too."""
    depth: int
    """Plies of a mean path, less than the limit `depth`, which is of the line of play."""
    seconds: float
    stopped_by: str
    """Why it ended: `simulations`, `movetime`, `solved`, … ; empty while it runs."""

    @property
    def value(self) -> float | None:
        """Of the best move, -1 to 1; None without one."""
        return self.lines[0].value if self.lines else None


class Engine:
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
        **overrides: Any,
    ) -> None:
        """model: an ONNX file or a run; None: the net that comes with the variant, or no net, with
        a warning. settings: name of a set of search settings of the spec, such as `paper`.
        overrides: fields of `SearchParams` that override them.

        Raises UnknownNameError, SettingError, DataError.
        """
        from variant_ai.core.search.search import Search
        from variant_ai.core.search.settings import SearchParams

        self.spec = load_variant(variant)
        self.params = SearchParams.of(self.spec, settings, **overrides)
        how: dict[str, Any] = {
            "evaluator": evaluator,
            "batch": self.params.batch_size,
            "threads": threads,
            "device": device,
            "precision": precision,
        }
        self.evaluator: Evaluator
        if model is None:
            warn = functools.partial(warnings.warn, stacklevel=3)
            self.evaluator = registry().usual_evaluator(self.spec, warn=warn, **how)
        else:
            self.evaluator = registry().evaluator(self.spec, home_path(model), **how)
        self.search = Search(self.spec, self.evaluator, self.params, rules=_rules_of(self.spec))
        # An engine that is dropped lets its threads go like one that is closed.
        self._release = weakref.finalize(self, self.search.close)
        self._release.atexit = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the threads of the search go."""
        self.search.stop()
        self._release()

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
        """Search until the first limit is met (800 nodes without any) and return what was found.

        movetime in seconds, mate in full moves; moves: the only ones to consider. The tree is kept
        for the next call where its position has been reached. Raises SettingError, MoveError.
        """
        game = self._set(position)
        limits = _limits(nodes, movetime, depth, mate)
        chosen = None if moves is None else [_read(game, move) for move in moves]
        return _analysis(game, self.search.run(limits, moves=chosen, multipv=multipv))

    def stream(
        self,
        position: Position,
        *,
        nodes: int | None = None,
        movetime: float | None = None,
        multipv: int = 1,
        interval: float = 0.5,
    ) -> Iterator[Analysis]:
        """What is known every `interval` seconds while the search runs, and in the end.

        Without a limit it goes on until the loop over it is left, or nothing is left to find out.
        """
        from variant_ai.core.search.move.limits import Limits

        game = self._set(position)
        endless = nodes is None and movetime is None
        limits = Limits(nodes=nodes, movetime=movetime, infinite=endless)
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
                    raise report
                yield _analysis(game, report)
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
        """Analyse positions side by side, in batches that they share: much faster than one after
        the other with a net that likes large batches.

        nodes: for each of them, 800 where neither is given; movetime: seconds for all together.
        The engine's own tree is left as it is.
        """
        from variant_ai.core.search.many_searches import analyse_many

        positions = _listed(positions)
        if not positions:
            return []
        games = [self._game(position) for position in positions]
        limits = _limits(nodes, movetime, None, None)
        self.search.settle()
        reports = analyse_many(
            self.spec, self.evaluator, games, limits, self.params, rules=_rules_of(self.spec)
        )
        return [_analysis(game, report) for game, report in zip(games, reports, strict=True)]

    def evaluate(self, positions: Sequence[Position]) -> list[tuple[float, dict[str, float]]]:
        """The net's word without a search: value in [-1, 1] and probabilities of the legal moves,
        for each position, in one batch."""
        import numpy as np

        from variant_ai.core.search.tree_factory import with_last_moves

        positions = _listed(positions)
        if not positions:
            return []
        for position in positions:
            self._require(position)
        encoder, rules = self.search.encoder, self.search.rules
        games = [with_last_moves(position.game, rules) for position in positions]
        records = np.concatenate([game.position for game in games])
        self.search.settle()
        answer = self.evaluator.evaluate(encoder.planes(records))
        found = []
        for row, position in enumerate(positions):
            moves = position.game.legal_moves().tolist()
            logits = answer.policy[row, encoder.action_indices(position.game.position, moves)]
            weights = np.exp(logits - logits.max()) if len(moves) else logits
            shares = (weights / weights.sum()).tolist() if len(moves) else []
            texts = [position._text(move) for move in moves]
            found.append((float(answer.value[row]), dict(zip(texts, shares, strict=True))))
        return found

    def forget(self) -> None:
        """Throw the tree away."""
        self.search.clear()

    def _set(self, position: Position) -> Game:
        game = self._game(position)
        self.search.set_game(game)
        return game

    def _game(self, position: Position) -> Game:
        """A game of the engine's own: the caller may play on while this one is searched."""
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


def _listed(positions: object) -> list[Position]:
    if isinstance(positions, Iterable) and not isinstance(positions, (str, Position)):
        return list(positions)
    raise VariantAIError(f"positions are a list of them, not a {type(positions).__name__}")


def _limits(
    nodes: int | None, movetime: float | None, depth: int | None, mate: int | None
) -> Limits:
    from variant_ai.core.search.move.limits import Limits

    if nodes is None and movetime is None and depth is None and mate is None:
        nodes = 800
    return Limits(nodes=nodes, movetime=movetime, depth=depth, mate=mate)


def _read(game: Game, move: str) -> int:
    return UciNotation().read(game.rules, game.position, move)


def _analysis(game: Game, report: Report) -> Analysis:
    types, files = game.rules.types, game.rules.spec.board.files

    def text(move: int) -> str:
        return uci(types, files, move)

    return Analysis(
        best=None if report.best is None else text(report.best),
        ponder=None if report.ponder is None else text(report.ponder),
        lines=tuple(
            Variation(
                move=text(line.move),
                pv=tuple(map(text, line.pv)),
                value=line.q,
                cp=line.cp,
                mate=line.mate_in,
                wdl=line.wdl,
                visits=line.visits,
                prior=line.prior,
            )
            for line in report.known_lines
        ),
        visits=report.visits,
        depth=report.depth,
        seconds=report.seconds,
        stopped_by=report.stopped_by,
    )
