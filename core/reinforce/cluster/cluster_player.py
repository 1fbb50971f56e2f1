"""A player of a cluster: gets a net, plays for a while, returns the games that ended.

Nothing here imports Ray, so that the player can be tested, and run, without it.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from variant_ai.core.arena.games.openings import Opening
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.reinforce.cpu_clock import cpu_seconds
from variant_ai.core.reinforce.games.game_journal import game_line
from variant_ai.core.reinforce.games.game_supply import LocalGames
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.rules import make_rules as make_usual_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec


@dataclass(frozen=True)
class PlayerSetup:
    """Everything that a player needs besides nets. It is sent to other machines."""

    spec: str
    """The spec as JSON, so that the machine need not have its file."""
    settings: ReinforceSettings
    _: KW_ONLY
    openings: tuple[Opening, ...] = ()
    make_rules: Callable[[VariantSpec], Rules] = make_usual_rules
    """Makes the rules; also where nets and evaluators of plugins are made known on that machine."""


@dataclass(frozen=True)
class NetFile:
    """A net that travels to the players."""

    generation: int
    content: bytes
    """Of the ONNX file."""


@dataclass(frozen=True)
class GameBlock:
    """Games that ended during one call of a player."""

    lines: tuple[bytes, ...]
    """Lines of a journal."""
    evaluations: int
    """Positions evaluated during the call."""
    cpu_seconds: float
    """CPU time of the call, of all threads."""
    resignations: Counter[str]
    """Counted during the call."""


class ClusterPlayer:
    """Plays games of a run."""

    def __init__(self, setup: PlayerSetup, first_game: int) -> None:
        """first_game: its games are numbered from here."""
        self._setup, self._first_game = setup, first_game
        self._games: LocalGames | None = None
        self._generation: int | None = None
        self._evaluations = 0
        self._resignations: Counter[str] = Counter()

    def play(self, net: NetFile, seconds: float) -> GameBlock:
        """Play for about `seconds`, or until the end of a game if none has ended by then.

        Games in progress go on with the net given. Raises DataError if it does not fit,
        VariantAIError if this machine cannot play the variant.
        """
        began = cpu_seconds()
        if self._games is None:  # here, because errors of a constructor reach nobody as they are
            self._games = self._begin()
        games = self._games
        if net.generation != self._generation:
            with tempfile.TemporaryDirectory(prefix="variant-ai-player-") as folder:
                path = Path(folder) / f"{net.generation:06}.onnx"
                path.write_bytes(net.content)
                games.use_net(path, net.generation)
            self._generation = net.generation
        lines = tuple(game_line(record) for record in _played(games, time.monotonic() + seconds))
        evaluations, resignations = self._evaluations, self._resignations
        self._evaluations, self._resignations = games.evaluations, games.resignations.copy()
        return GameBlock(
            lines,
            self._evaluations - evaluations,
            cpu_seconds() - began,
            self._resignations - resignations,
        )

    def _begin(self) -> LocalGames:
        setup = self._setup
        spec = VariantSpec.model_validate_json(setup.spec)
        return LocalGames(
            spec,
            setup.settings,
            set(),
            rules=setup.make_rules(spec),
            first_game=self._first_game,
            openings=setup.openings,
        )


def _played(games: LocalGames, until: float) -> Iterator[GameRecord]:
    while True:
        record = games.next_game(lambda: False)
        if record is not None:
            yield record
        if time.monotonic() >= until:
            return
