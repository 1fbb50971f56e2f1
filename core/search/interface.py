"""The interface of searches: from a game to a move and its evaluation.

The setting `algorithm` names the search: in a spec (`search: {algorithm: NAME}`), in commands
(`--search NAME`), for players of matches (`search.algorithm=NAME`), as an option of the engine
(`Search_Algorithm`). The built-in one is `graph`, the Monte-Carlo graph search of `search.py`; plugins add
others by the hook `register_searches`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.errors import DataError, MoveError
from variant_ai.core.factories import SEARCHES
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Phases, Report
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.closing import Closing


class BaseSearch(Closing, ABC):
    """Searches one game after the other.

    All methods but `stop`, `report` and `root_visits` belong to one thread. A subclass sets `encoder`,
    `rules` and `evaluators` in its constructor, and calls `super().__init__`.
    """

    encoder: Encoder
    """Encoder of positions for the net, which may have other planes than the spec."""
    rules: Rules
    evaluators: Sequence[Evaluator]

    def __init__(self, spec: VariantSpec, params: SearchParams | None = None) -> None:
        """params: settings; those of the spec by default."""
        self.spec = spec
        self.params = params or SearchParams.of(spec)
        self.phases = Phases()
        """Seconds of the parts of the present `run`, for those who measure."""

    # --- the position ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def game(self) -> Game:
        """The game whose last position is searched; the start position at first."""

    @abstractmethod
    def set_game(self, game: Game) -> None:
        """Search from the game's last position. What is known of it from before may be kept."""

    @abstractmethod
    def clear(self, seed: int | None = None) -> None:
        """Forget everything but the game; random numbers begin again with the seed (None: that of
        the settings)."""

    def advance(self, move: int) -> None:
        """Play a legal move. Raises MoveError."""
        game = self.game
        if move not in game.legal_moves():
            raise MoveError(f"move {move} is not legal (FEN {game.fen()})")
        after = game.copy()
        after.push(move)
        self.set_game(after)

    def judge_chases(self, on: bool) -> None:
        """Judge perpetual chases, if the rules know them, or treat them as ordinary repetitions.
        A search that follows no lines need not override this."""

    # --- the search ------------------------------------------------------------------------------

    @abstractmethod
    def run(
        self,
        limits: Limits,
        *,
        moves: Sequence[int] | None = None,
        multipv: int = 1,
        on_report: Callable[[Report], None] | None = None,
        interval: float = 1.0,
    ) -> Report:
        """Search until a limit is met, `stop` is called, or nothing is left to find out.

        moves: the moves of the root to consider (None: all); illegal ones are ignored, and MoveError
        is raised if none is left. on_report: called in this thread every `interval` seconds. Raises
        DataError if the evaluator's answer is not a number. An infinite search returns only after
        `stop`. At the end of a game the report has no best move and is `stopped_by` `game over`.
        """

    @abstractmethod
    def stop(self) -> None:
        """End the present `run`. From any thread; does not wait."""

    @abstractmethod
    def report(self, multipv: int = 1, *, pv: bool = True) -> Report:
        """Return the results so far. Any thread may call it. Without `pv`, lines end with their first
        move."""

    @abstractmethod
    def root_visits(self) -> list[tuple[int, int]]:
        """Moves of the root and the visits that a policy may learn from, most visited first."""

    def settle(self) -> None:
        """Wait until evaluators have finished what a stopped `run` left behind."""

    def warm_up(self) -> None:
        """Load compiled code and prepare the evaluators before a clock runs. Leaves no trace."""
        self.run(Limits(nodes=1))
        self.clear()

    def close(self) -> None:
        """Release threads and processes. The evaluators belong to the caller and stay open."""


def check_shape(encoder: Encoder, evaluator: Evaluator) -> None:
    """Raise DataError if an evaluator takes other planes, or has other actions, than an encoder."""
    if tuple(evaluator.planes_shape) != encoder.shape or evaluator.actions != encoder.actions:
        raise DataError(
            f"{evaluator.info.source}: expects planes {tuple(evaluator.planes_shape)} and returns "
            f"{evaluator.actions} actions; {encoder.spec.variant} has {encoder.shape} and "
            f"{encoder.actions}"
        )


def make_search(
    spec: VariantSpec,
    evaluator: Evaluator | Sequence[Evaluator],
    params: SearchParams | None = None,
    *,
    rules: Rules | None = None,
) -> BaseSearch:
    """Return the search that the settings name (`params.algorithm`).

    Raises UnknownNameError if there is none of that name, and what its constructor raises.
    """
    params = params or SearchParams.of(spec)
    return SEARCHES.load(params.algorithm)(spec, evaluator, params, rules=rules)
