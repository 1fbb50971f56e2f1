"""A player of a cluster: gets a net, plays for a while, returns the games that ended.

Nothing here imports Ray, so that the player can be tested, and run, without it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.reinforce.cpu_clock import cpu_seconds
from variant_ai.core.reinforce.games.game_journal import game_line
from variant_ai.core.reinforce.games.game_supply import LocalGames
from variant_ai.core.reinforce.games.self_play import Resignations
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.tree_factory import rules_for
from variant_ai.core.spec.schema import VariantSpec


@dataclass(frozen=True)
class PlayerSetup:
    """Everything that a player needs besides nets. It is sent to other machines."""

    spec: str
    """The spec as JSON, so that the machine need not have its file."""
    settings: ReinforceSettings
    make_rules: Callable[[VariantSpec], Rules] = rules_for


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
    resignations: Resignations
    """All of this player so far."""


class ClusterPlayer:
    """Plays games of a run."""

    def __init__(self, setup: PlayerSetup, first_game: int) -> None:
        """first_game: its games are numbered from here. Raises DataError, VariantAIError."""
        spec = VariantSpec.model_validate_json(setup.spec)
        self._games = LocalGames(
            spec,
            setup.settings,
            set(),
            rules=setup.make_rules(spec),
            first_game=first_game,
        )
        self._folder = tempfile.TemporaryDirectory(prefix="variant-ai-player-")
        self._generation: int | None = None
        self._counted = 0

    def play(self, net: NetFile, seconds: float) -> GameBlock:
        """Play about so many seconds, or until the end of a game if none has ended by then.

        Games in progress go on with the net given. Raises DataError if it does not fit."""
        began = cpu_seconds()
        if net.generation != self._generation:
            path = Path(self._folder.name) / f"{net.generation:06}.onnx"
            path.write_bytes(net.content)
            self._games.use_net(path, net.generation)
            path.unlink()
            self._generation = net.generation
        lines = tuple(game_line(record) for record in self._played(time.monotonic() + seconds))
        before, self._counted = self._counted, self._games.evaluations
        return GameBlock(
            lines, self._counted - before, cpu_seconds() - began, self._games.resignations
        )

    def _played(self, until: float) -> Iterator[GameRecord]:
        while True:
            record = self._games.next_game(lambda: False)
            if record is not None:
                yield record
            if time.monotonic() >= until:
                return
