"""Games labelled by a stronger player: its policy and its value for each position.

In the games of a net with itself these are the positions that the net reaches, with better answers than
its own. The labels replace those of the game (visits, root values, scores); its moves and result stay.

    policy   program: softmax of the scores of the moves that it compared (MultiPV), else its move;
             net: visits of its search
    value    program: its score; net: value of its move, as the root value
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from variant_ai.core.arena.games.generated_games import Dropped
from variant_ai.core.arena.match.player_pool import PlayerPool, in_order
from variant_ai.core.arena.players.player import (
    Allowance,
    Fault,
    Player,
    PlayerClock,
    Reply,
    Turn,
)
from variant_ai.core.data.game_record import (
    FULL_WEIGHT,
    TRAINS_ALL,
    TRAINS_POLICY,
    GameRecord,
    PlyVisits,
    whole_weights,
)
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.store_writer import StoreWriter
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.system.text_tables import counted

MAX_FAILURES = 5
"""Games in a row that the player fails in, after which labelling ends with an error."""
MAX_WAITING = 64
"""Labelled games that wait for an earlier one; memory stays bounded if that one takes long."""
UNANSWERED = ("no move", "illegal move", "false claim", "resignation")
"""Faults in a position that do not show that the player is broken: the position keeps its labels."""


class LabelSettings(BaseModel):
    """Settings of `variant-ai store label` that decide the labels."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    nodes: int = Field(default=3000, ge=1)
    """Nodes of each search."""
    lines: int = Field(default=4, ge=1, le=64)
    """Moves that a program compares (its option MultiPV), whose scores become the policy; 1: its
    move alone."""
    temperature: float = Field(default=50.0, gt=0, allow_inf_nan=False)
    """Centipawns below the best move at which a move gets 1/e of its weight."""
    timeout: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """Seconds after which a program must stop; after twice that it counts as hung."""


@dataclass(frozen=True)
class Labelled:
    """A game with new labels."""

    number: int
    record: GameRecord
    positions: int
    """Positions that were labelled."""


@dataclass
class LabelReport:
    """Counts of a run, and how it ended."""

    read: int = 0
    """Games of the store that are done: labelled or left out."""
    games: int = 0
    positions: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """Games left out, by reason."""
    interrupted: bool = False
    failure: str = ""
    """Why the player ended it; empty if it did not."""

    @classmethod
    def resumed(cls, mark: Mapping[str, Any] | None) -> LabelReport:
        """Counts of an interrupted run, from the mark that `write_labels` left in its store; zeros
        without one."""
        if mark is None:
            return cls()
        failed = Counter(mark["failed"])
        return cls(int(mark["read"]), mark["games"], mark["positions"], failed)

    def count(self, game: Labelled | Dropped) -> None:
        self.read = game.number + 1
        if isinstance(game, Labelled):
            self.games += 1
            self.positions += game.positions
        else:
            self.failed[game.reason] += 1


class Labelling:
    """Asks players about the positions of games. Closing the generator of `games` ends their processes."""

    def __init__(
        self,
        settings: LabelSettings,
        rules: Rules,
        make_player: Callable[[], Player],
        workers: int = 1,
    ) -> None:
        """make_player: makes a player that is not started. workers: games at the same time, each with
        a player of its own; their number does not change the labels."""
        self.settings, self.rules = settings, rules
        self._make_player = make_player
        self._pool = PlayerPool(workers, lambda index: make_player())

    def check_player(self) -> tuple[str, str]:
        """Start a player once, so that a wrong one is reported at once, and return its name and the
        digest of its file (`Player.digest`). Raises EngineError, DataError."""
        with closing(self._make_player()) as player:
            reason = player.rejection(Allowance(nodes=self.settings.nodes))
            if reason:
                raise EngineError(f"player {player.name!r} cannot label: {reason}")
            player.start()
            return player.name, player.digest

    def games(
        self, numbers: Sequence[int], read: Callable[[int], GameRecord]
    ) -> Generator[Labelled | Dropped, None, None]:
        """Label games, and yield them in the order of `numbers`. read: reads a game by its number.

        Raises EngineError if the player fails in several games in a row.
        """
        waiting = iter(numbers)
        ended: dict[int, Labelled | Dropped] = {}
        failures = 0

        def next_job() -> tuple[int, GameRecord] | None:
            if len(ended) >= MAX_WAITING:
                return None
            number = next(waiting, None)
            return None if number is None else (number, read(number))

        for game in in_order(
            # No name for the results: an error would keep them, and with them the pool, open.
            self._pool.results(next_job, self._label_game),
            lambda result: result.number,
            numbers,
            ended,
        ):
            failures = failures + 1 if isinstance(game, Dropped) else 0
            yield game
            if isinstance(game, Dropped) and failures >= MAX_FAILURES:
                raise EngineError(
                    f"the player failed in {counted(failures, 'game')} in a row; the last time: "
                    f"{game.reason}"
                )

    def _label_game(self, job: tuple[int, GameRecord]) -> Labelled | Dropped:
        number, record = job
        (player,) = self._pool.players((0,))
        try:
            return self._labelled(number, record, player)
        except Fault as fault:
            player.kill()
            return Dropped(number, f"{fault.reason}: {fault}")
        except EngineError as error:
            return Dropped(number, str(error))

    def _labelled(self, number: int, record: GameRecord, player: Player) -> Labelled | Dropped:
        settings = self.settings
        game = Game(self.rules, record.start_fen)
        player.start()
        player.new_game(game)
        clock = PlayerClock(Allowance(nodes=settings.nodes))
        visits = list(record.visits or [()] * record.plies)
        values = list(record.root_values or [None] * record.plies)
        scores = list(record.scores or [None] * record.plies)
        trains = list(record.trains or [TRAINS_ALL] * record.plies)
        positions = 0
        unanswered = ""
        for ply, move in enumerate(record.moves):
            try:
                reply = player.play(
                    game, Turn((clock, clock), game.side, settings.timeout, settings.timeout)
                )
            except Fault as fault:
                if fault.reason not in UNANSWERED:
                    raise
                unanswered = str(fault)
            else:
                visits[ply] = policy_of(reply, settings.temperature)
                values[ply] = reply.value
                scores[ply] = reply.score
                trains[ply] |= TRAINS_POLICY  # the result stays unlearnt where it means nothing
                positions += 1
            game.push(move)
        if unanswered and not positions:
            return Dropped(number, unanswered)
        labelled = replace(
            record,
            visits=visits,
            root_values=None if all(value is None for value in values) else values,
            scores=None if all(score is None for score in scores) else scores,
            trains=trains,
        )
        return Labelled(number, labelled, positions)


def write_labels(
    store: Store,
    writer: StoreWriter,
    labelling: Labelling,
    report: LabelReport,
    on_game: Callable[[], None] = lambda: None,
) -> None:
    """Write the games of a store with new labels, and close the writer; without a game, nothing is
    written.

    Ctrl-C and an error of the player end it early, with the games until then; `report` records which.
    The writer keeps a mark, from which `LabelReport.resumed` continues.

    report: counts of the games that the writer has already (`LabelReport.resumed`); updated before each
    call of `on_game`.
    """
    before = replace(report, failed=report.failed.copy())
    added: list[tuple[int, int]] = []  # number and labelled positions of each game
    left_out: list[Dropped] = []

    def mark() -> dict[str, Any]:
        kept = added[: writer.games]
        read = kept[-1][0] + 1 if kept else before.read
        failed = Counter(game.reason for game in left_out if game.number < read)
        return {
            "read": read,
            "games": before.games + len(kept),
            "positions": before.positions + sum(positions for _, positions in kept),
            "failed": before.failed + failed,
        }

    writer.mark = mark
    with closing(labelling.games(range(before.read, len(store)), store.game)) as games:
        try:
            for game in games:
                if isinstance(game, Labelled):
                    added.append((game.number, game.positions))
                    writer.add(game.record)
                else:
                    left_out.append(game)
                report.count(game)
                on_game()
        except KeyboardInterrupt:
            report.interrupted = True
        except EngineError as error:
            report.failure = str(error)
    if not report.games:
        writer.abort()
    writer.close(report.failed, interrupted=report.interrupted or bool(report.failure))


def policy_of(reply: Reply, temperature: float) -> PlyVisits:
    """Policy target of an answer: visits of a search, or weights that add up to FULL_WEIGHT."""
    if reply.visits:
        return reply.visits
    if not reply.candidates:
        return ((reply.move, FULL_WEIGHT),)
    scores = np.array([score for _, score in reply.candidates], np.float64)
    shares = np.exp((scores - scores.max()) / temperature)
    return whole_weights([move for move, _ in reply.candidates], (shares / shares.sum()).tolist())
