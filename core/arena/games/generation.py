"""Games of a program or a net against itself, for training without games of people.

Game i depends only on the settings and i: its opening is sampled with the seed (seed, i), and the
player begins it with empty memory and searches a fixed number of nodes. So the same command gives
the same games with any number of them at once, if the player itself is deterministic (one thread
is). Games are judged by the referee of matches. `game_generators.py` plays them.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from variant_ai.core.arena.games.generated_games import (
    BLUNDER,
    BLUNDER_BOUND,
    DUPLICATE,
    BlunderRule,
    Dropped,
    Ended,
    RepetitionFilter,
    filtered,
    game_number,
)
from variant_ai.core.arena.games.openings import Opening, OpeningSampler, openings_digest
from variant_ai.core.arena.match.match_settings import resign_rule
from variant_ai.core.arena.match.player_pool import in_order
from variant_ai.core.arena.match.referee import Conduct, PlayedGame
from variant_ai.core.arena.players.player import random_move
from variant_ai.core.data.game_record import OPENING_TAG, GameRecord
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.system.text_tables import counted

MAX_FAILURES = 5
"""Games in a row that the player fails in, after which generation ends with an error."""
MAX_UNWANTED = 100
"""Games in a row that were dropped as blunders or duplicates, after which generation ends."""
DECISIVE = {"nodes", "node_jitter", "seed", "random_plies", "random_share", "max_plies", "append"}
"""Settings that decide the games."""
RANDOM_MOVE = "random"
"""Comment on a random move after the opening."""
NextGame: TypeAlias = Callable[[], tuple[int, Game] | None]


Plies = Annotated[int, Field(ge=0)]


class GenerationSettings(BaseModel):
    """Settings of `variant-ai generate`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    engine: str = "net:packaged"
    """Player, as in `match`: a UCI program with its arguments, searched in PATH and /usr/games; or
    net:FILE[;search.NAME=VALUE...], where FILE may be a run folder or `packaged`; or search without
    a net, net:-;evaluator=material."""
    games: int = Field(default=100, ge=1)
    """Number of games to finish."""
    nodes: int = Field(default=500, ge=1)
    """Nodes per move."""
    # Nodes are uniform in nodes · (1 ± node_jitter) ([CrazyAra-preprint] section 7: 1,000,000 ±
    # 100,000).
    node_jitter: float = Field(default=0.0, ge=0, lt=1)
    """Share by which the nodes of each move vary; 0.1 means ± 10 %."""
    seed: int = Field(default=0, ge=0)
    """Seed of everything random."""
    random_plies: tuple[Plies, Plies] = (2, 8)
    """Minimum and maximum number of random plies at the start of each game."""
    random_share: float = Field(default=0.0, ge=0, le=1)
    """Share of later plies that are random, too."""
    openings: Path | None = None
    """File of openings, used in turn; the random plies follow them."""
    opening_plies: int = Field(default=12, ge=1)
    """Plies taken from each game of --openings, maximum for a line of a book."""
    max_plies: int = Field(default=400, ge=1)
    """A game of this length in plies is a draw."""
    # Random moves have no score, so the count restarts after one.
    resign: str | None = None
    """End a game as lost for a player that scored -CP or less in that many own moves in a row
    (4:900); `both`: if the other side scored +CP or more, too."""
    drop_blunders: int | None = Field(default=None, ge=1, le=2 * BLUNDER_BOUND)
    """Drop games in which a move loses more than CP, the sum of its score and the reply's, each
    within ±1000; the noise of a search is 100 to 200 at a few hundred nodes."""
    cut_blunders: int | None = Field(default=None, ge=1, le=2 * BLUNDER_BOUND)
    """Keep such games from the position after the last such move on, and drop those that become too
    short."""
    kept_visits: int | None = Field(default=None, ge=0)
    """For a net, number of moves of each search, most visited first, that are stored with their
    visits; 32 by default."""
    hash_mb: int | None = Field(default=None, ge=1)
    """Memory of each program; 16 by default."""
    options: dict[str, str] = {}
    """Other options of a program."""
    workers: int | None = Field(default=None, ge=1)
    """Games at the same time; their number does not change the games; 1 by default, 64 of a net,
    which share its batches."""
    timeout: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """Seconds for one move; a program that takes longer is restarted and its game dropped."""
    append: bool = False
    """Add to a store that exists."""
    replace: bool = False
    """Replace a store that exists."""

    @property
    def conduct(self) -> Conduct:
        """Rules of play. Raises SettingError if the resign rule cannot be parsed."""
        return Conduct(
            think=self.timeout,
            grace=0.0,
            max_plies=self.max_plies,
            resign=resign_rule(self.resign) if self.resign else None,
            check_mates=False,
        )

    @property
    def blunder(self) -> BlunderRule | None:
        if self.cut_blunders is not None:
            return BlunderRule(self.cut_blunders, "cut")
        return None if self.drop_blunders is None else BlunderRule(self.drop_blunders)

    def decisive(
        self, name: str, player: Mapping[str, Any], openings: Sequence[Opening]
    ) -> dict[str, Any]:
        """Settings that decide the games, as journals store them. name: of the player. player:
        settings of the player that decide its play."""
        found: dict[str, Any] = {
            **self.model_dump(mode="json", include=DECISIVE),
            "engine": name,
            **player,
            "openings": openings_digest(openings),
        }
        for rule, value in (("resign", self.conduct.resign), ("blunder", self.blunder)):
            if value is not None:
                found[rule] = asdict(value)
        return found


class GameVariation:
    """Random moves and numbers of nodes of one game."""

    def __init__(self, settings: GenerationSettings, number: int) -> None:
        self._settings = settings
        self._chance = random.Random(f"game {settings.seed} {number}")

    def random_move(self, game: Game) -> int | None:
        """Return a random move for `random_share` of the calls, otherwise None."""
        share = self._settings.random_share
        if share and self._chance.random() < share:
            return random_move(self._chance, game)
        return None

    def nodes(self) -> int:
        """Return the nodes of the next search."""
        nodes, jitter = self._settings.nodes, self._settings.node_jitter
        if not jitter:
            return nodes
        return max(1, round(nodes * self._chance.uniform(1 - jitter, 1 + jitter)))


class GameGenerator(ABC):
    """Plays the games: iterate over `games()`; call `stop` from any thread to end early."""

    def __init__(
        self,
        settings: GenerationSettings,
        rules: Rules,
        openings: Sequence[Opening],
        *,
        ahead: int,
    ) -> None:
        """ahead: games that are begun at most before the oldest one of them has ended."""
        self.settings = settings
        self.rules = rules
        self.openings = tuple(openings)
        self._ahead = ahead
        self._starts = OpeningSampler(rules, openings, settings.random_plies, settings.seed)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End soon: running games are dropped."""
        self._stopped.set()

    @abstractmethod
    def check_player(self) -> str:
        """Start a player once and return its name, so that a wrong command is reported before the
        first game. Raises EngineError, DataError."""

    @property
    def group(self) -> int:
        """Number of games that are played best at the same time by one process."""
        return 1

    def play_group(self, games: Sequence[tuple[int, Game]]) -> list[Ended]:
        """Play games to their ends. games: numbers, and games at the end of their openings."""
        left = iter(games)
        return list(self._played(lambda: next(left, None), {}))

    @abstractmethod
    def _played(self, next_game: NextGame, done: Mapping[int, Ended]) -> Iterator[Ended]:
        """Play games, and yield them as they end, in any order, until `next_game` has no more and all
        have ended, or until `stop`. next_game: returns the number of a game and its opening, None if
        there is none at present. done: games to yield as they are."""

    def games(
        self,
        done: Mapping[int, Ended] | None = None,
        on_end: Callable[[Ended], None] = lambda game: None,
    ) -> Generator[Ended, None, None]:
        """Finished and dropped games in the order of their numbers, until enough are finished.

        done: games of an earlier run by number, which are not played again. on_end: called in this
        thread for every new game when it ends, in any order and before duplicates are found. Raises
        EngineError if the player cannot be started, fails in several games in a row, or plays only
        games that are dropped; games of an earlier run do not count for this.
        """
        settings, done = self.settings, done or {}
        without_repetition = RepetitionFilter()
        finished = number = next_number = failures = unwanted = 0

        def next_game() -> tuple[int, Game] | None:
            nonlocal number
            if number - next_number >= min(self._ahead, settings.games - finished):
                return None
            number += 1
            # Openings of games that are done count as used, so that none is sampled twice.
            return number - 1, self._starts.game(number - 1)

        def arrivals() -> Iterator[Ended]:
            for game in self._played(next_game, done):
                if game_number(game) not in done:
                    on_end(game)
                yield game

        for game in in_order(arrivals(), game_number, itertools.count()):
            result = without_repetition(game)
            is_new = next_number not in done
            next_number += 1
            yield result
            finished += isinstance(result, GameRecord)
            if not is_new:
                continue
            if isinstance(result, GameRecord):
                failures = unwanted = 0
            elif result.reason in (BLUNDER, DUPLICATE):
                unwanted += 1
            else:
                failures += 1
                if failures >= MAX_FAILURES:
                    raise EngineError(
                        f"the engine failed in {counted(failures, 'game')} in a row; the last time: "
                        f"{result.reason}"
                    )
            if unwanted >= MAX_UNWANTED:
                raise EngineError(_nothing_new(result, unwanted))

    def _kept(self, number: int, played: PlayedGame, name: str) -> Ended:
        """Record of a finished game of the player `name`; dropped if it has a blunder."""
        record, rule = self._record(number, played, name), self.settings.blunder
        kept = filtered(self.rules, record, rule) if rule else record
        return kept or Dropped(number, BLUNDER)

    def _record(self, number: int, played: PlayedGame, name: str) -> GameRecord:
        settings, opening = self.settings, self._starts.opening(number)
        visits = played.by_ply(lambda reply: reply.visits)
        values = played.by_ply(lambda reply: reply.value)
        comments = played.by_ply(lambda reply: reply.comment)
        return GameRecord(
            variant=self.rules.spec.variant,
            moves=list(played.game.moves),
            start_fen=opening.fen,
            result=played.result,
            white=name,
            black=name,
            event=f"self-play, {counted(settings.nodes, 'node')} a move",
            termination=played.reason,
            source=f"generate --seed {settings.seed}",
            number=number + 1,
            scores=played.scores,
            visits=[ply or () for ply in visits] if any(visits) else None,
            root_values=values if any(value is not None for value in values) else None,
            comments={ply: comment for ply, comment in enumerate(comments) if comment},
            tags={
                "RandomPlies": str(played.opening_plies - len(opening.moves)),
                OPENING_TAG: str(played.opening_plies),
            },
        )


def game_seed(seed: int, number: int) -> int:
    """Seed for the player in game `number`, in 63 bits."""
    text = f"player {seed} {number}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def _nothing_new(last: Ended, count: int) -> str:
    if isinstance(last, Dropped) and last.reason == BLUNDER:
        return (
            f"the last {counted(count, 'game')} were all dropped as blunders: allow greater ones, or give more "
            "nodes"
        )
    return (
        f"the last {counted(count, 'game')} repeat earlier ones: give more random plies, more openings or a node "
        "jitter"
    )
