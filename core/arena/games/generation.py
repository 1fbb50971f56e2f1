"""Games of a program or a net against itself, for training without games of people.

Game i depends only on the settings and i: its opening is sampled with the seed (seed, i), and the
player begins it with empty memory and searches a fixed number of nodes. So the same command gives
the same games with any number of workers, if the player itself is deterministic (one thread is). A
game is played by the referee of matches, with one player on both sides.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from variant_ai.core.arena.games.generated_games import (
    BLUNDER,
    CUT_TAG,
    DUPLICATE,
    STOPPED,
    Dropped,
    Ended,
    RepetitionFilter,
    game_number,
)
from variant_ai.core.arena.games.openings import (
    Opening,
    OpeningSampler,
    openings_digest,
    played_out,
)
from variant_ai.core.arena.match.match_settings import resign_rule
from variant_ai.core.arena.match.player_pool import PlayerPool
from variant_ai.core.arena.match.referee import Conduct, PlayedGame, Referee
from variant_ai.core.arena.players.player import (
    FAULTS,
    Allowance,
    Player,
    PlayerClock,
    Reply,
    Turn,
    random_move,
)
from variant_ai.core.data.game_record import OPENING_TAG, GameRecord
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.system.text_tables import counted

MAX_FAILURES = 5
"""Games in a row that the player fails in, after which generation ends with an error."""
MAX_UNWANTED = 100
"""Games in a row that were dropped as blunders or duplicates, after which generation ends."""
RANDOM_MOVE = "random"
"""Comment on a random move after the opening."""


BLUNDER_BOUND = 1000
"""Scores are limited to ± this many centipawns to find blunders."""
SHORTEST_CUT = 10
"""Minimum length in plies of a game of which the beginning was cut off."""


@dataclass(frozen=True)
class BlunderRule:
    """Blunders, and the treatment of games that have one.

    The score of a move and that of the reply are two evaluations of one position. If the second is
    much worse for the player who made the move, the move was a blunder, and the result of the game
    does not fit the positions before:

        drop(p) = clip(score(p)) + clip(score(p + 1)),  each from the mover's view

    Scores, mates included, are clipped to ±BLUNDER_BOUND, so that another way to win a won game is
    no blunder. Random moves have no score and are no blunders.
    """

    drop: int
    """A move that loses more centipawns is a blunder, 1 to 2 · BLUNDER_BOUND. It must be well above
    the noise of the search, which is 100 to 200 at a few hundred nodes."""
    action: Literal["drop", "cut"] = "drop"
    """`drop`: drop the game. `cut`: keep it from the position after its last blunder on, if
    SHORTEST_CUT plies are left and the rest ends like the whole game."""


class GenerationSettings(BaseModel):
    """Settings of `variant-ai generate`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str = Field(
        default="net:packaged",
        description="player: a UCI program with its arguments, searched in PATH and /usr/games; or a "
        "net as in `match`, net:FILE[;search.NAME=VALUE...]; or search without a net, "
        "net:-;evaluator=uniform",
    )
    games: int = Field(default=100, ge=1, description="number of games to finish")
    nodes: int = Field(default=500, ge=1, description="nodes per move")
    node_jitter: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="share by which the nodes of each move vary; 0.1 means ± 10 %",
    )
    """Nodes are uniform in nodes · (1 ± node_jitter) ([CrazyAra-preprint] section 7: 1,000,000 ±
    100,000)."""
    seed: int = Field(default=0, ge=0, description="seed of everything random")
    random_plies: tuple[int, int] = Field(
        default=(2, 8),
        description="minimum and maximum number of random plies at the start of each game",
    )
    random_share: float = Field(
        default=0.0, ge=0, le=1, description="share of later plies that are random, too"
    )
    openings: Path | None = Field(
        default=None, description="file of openings, used in turn; the random plies follow them"
    )
    opening_plies: int = Field(
        default=12,
        ge=1,
        description="plies taken from each game of --openings, maximum for a line of a book",
    )
    max_plies: int = Field(
        default=400, ge=1, description="a game of this length in plies is a draw"
    )
    resign: str | None = Field(
        default=None,
        description="end a game as lost for a player that scored -CP or less in that many own moves "
        "in a row (4:900); `both`: if the other side scored +CP or more, too",
    )
    """Random moves have no score, so the count restarts after one."""
    drop_blunders: int | None = Field(
        default=None,
        ge=1,
        le=2 * BLUNDER_BOUND,
        description="drop games in which a move loses more than CP, the sum of its score and the "
        "reply's, each within ±1000; the noise of a search is 100 to 200 at a few hundred nodes",
    )
    cut_blunders: int | None = Field(
        default=None,
        ge=1,
        le=2 * BLUNDER_BOUND,
        description="keep such games from the position after the last such move on, and drop those "
        "that become too short",
    )
    kept_visits: int | None = Field(
        default=None,
        ge=0,
        description="for a net, number of moves of each search, most visited first, that are stored "
        "with their visits; 32 by default",
    )
    hash_mb: int | None = Field(
        default=None, ge=1, description="memory of each program; 16 by default"
    )
    options: dict[str, str] = Field(default_factory=dict, description="other options of a program")
    workers: int = Field(
        default=1,
        ge=1,
        description="games at the same time; their number does not change the games",
    )
    timeout: float = Field(
        default=30.0,
        gt=0,
        allow_inf_nan=False,
        description="seconds for one move; a program that takes longer is restarted and its game "
        "dropped",
    )
    append: bool = Field(default=False, description="add to a store that exists")
    replace: bool = Field(default=False, description="replace a store that exists")

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
            "nodes": self.nodes,
            "node_jitter": self.node_jitter,
            "seed": self.seed,
            "random_plies": list(self.random_plies),
            "random_share": self.random_share,
            "max_plies": self.max_plies,
            "engine": name,
            **player,
            "openings": openings_digest(openings),
            "append": self.append,
        }
        for rule, value in (("resign", self.conduct.resign), ("blunder", self.blunder)):
            if value is not None:
                found[rule] = asdict(value)
        return found


class VariedPlayer(Player):
    """Plays random moves now and then, else those of another player, whose nodes vary."""

    def __init__(self, player: Player, settings: GenerationSettings) -> None:
        self.player, self.settings = player, settings
        self._chance = random.Random()

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.player.name

    def start(self) -> None:
        self.player.start()

    def new_game(self, game: Game, number: int = 0) -> None:
        self._chance = random.Random(f"game {self.settings.seed} {number}")
        self.start()
        self.player.new_game(game, game_seed(self.settings.seed, number))

    def play(self, game: Game, turn: Turn) -> Reply:
        share, jitter = self.settings.random_share, self.settings.node_jitter
        if share and self._chance.random() < share:
            return Reply(random_move(self._chance, game), comment=RANDOM_MOVE)
        if jitter:
            nodes = round(self.settings.nodes * self._chance.uniform(1 - jitter, 1 + jitter))
            clock = PlayerClock(Allowance(nodes=max(1, nodes)))
            turn = Turn((clock, clock), turn.side, turn.wait, turn.grace)
        return self.player.play(game, turn)

    def close(self) -> None:
        self.player.close()

    def kill(self) -> None:
        self.player.kill()


class GameGenerator:
    """Plays the games: iterate over `games()`; call `stop` from any thread to end early."""

    def __init__(
        self,
        settings: GenerationSettings,
        rules: Rules,
        make_player: Callable[[], Player],
        openings: Sequence[Opening] = (Opening(),),
    ) -> None:
        """make_player: makes a player that is not started; each worker has its own."""
        self.settings = settings
        self.rules = rules
        self._make_player = make_player
        self._pool = PlayerPool(
            settings.workers, lambda index: VariedPlayer(make_player(), settings)
        )
        self._referee = Referee(settings.conduct, self._pool.stopped)
        self._starts = OpeningSampler(rules, openings, settings.random_plies, settings.seed)

    def stop(self) -> None:
        """End soon: running games are dropped."""
        self._pool.stop()

    def check_player(self) -> str:
        """Start a player once and return its name, so that a wrong command is reported before the
        first game. Raises EngineError."""
        player = self._make_player()
        try:
            player.start()
            return player.name
        finally:
            player.close()

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
        ended: dict[int, Ended] = {}
        finished = number = next_number = failures = unwanted = 0

        def next_job() -> tuple[int, Game] | None:
            nonlocal number
            if number - next_number >= min(2 * settings.workers, settings.games - finished):
                return None
            number += 1
            # Openings of games that are done count as used, so that none is sampled twice.
            return number - 1, self._starts.game(number - 1)

        def play(job: tuple[int, Game]) -> Ended:
            return done.get(job[0]) or self._play(*job)

        for game in self._pool.results(next_job, play, submitted=2 * settings.workers):
            ended[game_number(game)] = game
            if game_number(game) not in done:
                on_end(game)
            while next_number in ended:
                result = without_repetition(ended.pop(next_number))
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

    def _play(self, number: int, game: Game) -> Ended:
        """Play one game from the end of its opening."""
        if self._pool.stopped():
            return Dropped(number, STOPPED)
        (player,) = self._pool.players((0,))
        allowance = Allowance(nodes=self.settings.nodes)
        try:
            played = self._referee.play(game, (player, player), (allowance, allowance), number)
        except EngineError as error:
            return Dropped(number, str(error))
        if self._pool.stopped():  # which may have cut a search short
            return Dropped(number, STOPPED)
        if played.reason in FAULTS:
            player.kill()
            return Dropped(number, played.detail)
        record = self._record(number, played, player.name)
        blunder = self.settings.blunder
        return (filtered(self.rules, record, blunder) if blunder else record) or Dropped(
            number, BLUNDER
        )

    def _record(self, number: int, played: PlayedGame, name: str) -> GameRecord:
        settings, opening = self.settings, self._starts.opening(number)
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
            visits=played.visits if any(played.visits) else None,
            comments=played.comments,
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


def last_blunder(scores: Sequence[int | None], drop: int) -> int | None:
    """Ply of the last move that lost more than `drop`; None if there is none. scores: per ply, in
    centipawns of the mover, None if unknown. The last move has no reply to judge it by."""
    for ply in range(len(scores) - 2, -1, -1):
        own, reply = scores[ply], scores[ply + 1]
        if own is not None and reply is not None and _clipped(own) + _clipped(reply) > drop:
            return ply
    return None


def filtered(rules: Rules, record: GameRecord, rule: BlunderRule) -> GameRecord | None:
    """Apply the rule to a game; None if it is dropped."""
    ply = last_blunder(record.scores or (), rule.drop)
    if ply is None:
        return record
    return None if rule.action == "drop" else _after(rules, record, ply + 1)


def _after(rules: Rules, record: GameRecord, plies: int) -> GameRecord | None:
    """The game without its first `plies`; None if the rest is too short, or if its end depends on
    the plies before (a repetition)."""
    if record.plies - plies < SHORTEST_CUT:
        return None
    whole = played_out(rules, Opening(record.start_fen, tuple(record.moves[:plies])))
    rest = Game(rules, whole.fen())
    for move in record.moves[plies:]:
        whole.push(move)
        rest.push(move)
    if whole.outcome() != rest.outcome():
        return None
    return replace(
        record,
        start_fen=rules.fen(rest.positions[0]),
        moves=record.moves[plies:],
        scores=(record.scores or [])[plies:],
        visits=None if record.visits is None else record.visits[plies:],
        comments={ply - plies: text for ply, text in record.comments.items() if ply >= plies},
        tags={
            **record.tags,
            "RandomPlies": "0",
            OPENING_TAG: str(max(0, record.opening_plies - plies)),
            CUT_TAG: str(plies),
        },
    )


def _clipped(score: int) -> int:
    return max(-BLUNDER_BOUND, min(BLUNDER_BOUND, score))
