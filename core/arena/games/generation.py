"""Games of a program or a net with itself, for training where there are no games of people.

Game i depends on the settings and i alone: its opening is drawn from a generator seeded with
(seed, i), the engine starts it with an empty memory and searches a fixed number of nodes. So the
same command gives the same games with any number of workers, as far as the engine repeats itself
(one thread does). Our own rules judge every move and every end. Where the engine tells how often it
visited the moves of a position (`self_play.py`), the game keeps that.
"""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from variant_ai.core.arena.games.blunder_filter import BlunderRule, filtered
from variant_ai.core.arena.games.both_sides import SelfPlayer, game_seed
from variant_ai.core.arena.games.openings import Opening, played_out
from variant_ai.core.arena.match.referee import MOVE_LIMIT, RESIGN_RULE, ResignRule, resigned
from variant_ai.core.data.game_record import OPENING_TAG, GameRecord, PlyVisits, Result
from variant_ai.core.errors import EngineError, MoveError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules

MAX_FAILURES = 5
"""Games lost in a row to a failing engine before it is given up."""

OPENING_TRIES = 100
MAX_UNWANTED = 100
"""Games in a row that were played before or filtered out, after which there is nothing to gain."""
BLUNDER, DUPLICATE, STOPPED = "blunder", "duplicate", "stopped"
"""Reasons to drop a game that are no fault of the engine."""
RANDOM_MOVE = "random"
"""What is said of a move that was drawn by lot after the opening."""


@dataclass(frozen=True)
class GenerateSettings:
    games: int
    """Finished games wanted."""
    nodes: int
    """Nodes per move."""
    node_jitter: float = 0.0
    """Share by which the nodes of each move vary, drawn evenly from nodes · (1 ± node_jitter), in
    [0, 1) (000 section 7: 1,000,000 ± 100,000 nodes)."""
    seed: int = 0
    random_plies: tuple[int, int] = (2, 8)
    """Least and most plies of the opening that are drawn among the legal moves."""
    random_share: float = 0.0
    """Share of the later plies that are drawn among the legal moves as well, in [0, 1]."""
    max_plies: int = 400
    """A longer game is a draw, its termination `adjudicated: move limit`."""
    resign: ResignRule | None = None
    """Ends lost games early, their termination `adjudicated: resign rule`. A move by lot has no
    score, so the count begins anew after it."""
    blunder: BlunderRule | None = None
    """Drops or cuts games with a blunder in them."""
    move_timeout: float = 30.0
    """Seconds for one move; after that the engine counts as hung and its game is dropped."""
    openings: tuple[Opening, ...] = (Opening(),)
    """What games start with, in turn; the random plies come after it."""
    workers: int = 1
    """Engines that play at the same time."""


@dataclass(frozen=True)
class Dropped:
    """A game that was not finished or is not kept, and why."""

    number: int
    reason: str


Ended = GameRecord | Dropped


def is_settled(game: Ended) -> bool:
    """Whether a game need not be played again: a search that was stopped says nothing of it, and an
    engine that failed in it may be repaired."""
    return not isinstance(game, Dropped) or game.reason in (BLUNDER, DUPLICATE)


def number_of(game: Ended) -> int:
    """Number of a game, from 0."""
    return game.number if isinstance(game, Dropped) else game.number - 1


class Unlike:
    """Says of games, in the order of their numbers, which were played before: those are dropped."""

    def __init__(self) -> None:
        self._played: set[bytes] = set()

    def __call__(self, game: Ended) -> Ended:
        if isinstance(game, Dropped):
            return game
        key = _game_key(game)
        if key in self._played:
            return Dropped(number_of(game), DUPLICATE)
        self._played.add(key)
        return game


class GameGenerator:
    """Plays the games; iterate over `games()`, call `stop` from anywhere to end early."""

    def __init__(
        self,
        rules: Rules,
        new_engine: Callable[[], SelfPlayer],
        settings: GenerateSettings,
    ) -> None:
        """`new_engine` makes a player that is not started; every worker has one of its own."""
        self.rules = rules
        self.settings = settings
        self._new_engine = new_engine
        self._stopped = threading.Event()
        self._local = threading.local()
        self._engines: list[SelfPlayer] = []
        self._openings_seen: set[str] = set()

    def stop(self) -> None:
        """End soon: games under way are dropped."""
        self._stopped.set()
        for engine in list(self._engines):
            engine.kill()

    def check_engine(self) -> str:
        """Start an engine and end it; what the engine calls itself.

        So what is wrong with the command is told before any game. Raises EngineError.
        """
        engine = self._new_engine()
        try:
            engine.start()
            return engine.name
        finally:
            engine.close()

    def games(
        self,
        done: Mapping[int, Ended] | None = None,
        on_end: Callable[[Ended], None] = lambda game: None,
    ) -> Generator[Ended, None, None]:
        """Finished and dropped games in the order of their numbers, until enough are finished.

        done: what an earlier run has to say of games, by number; these are not played again.
        on_end: told of every game that is played as soon as it has ended, in any order and before
        it is known whether it was played before; called in the caller's thread. Raises EngineError
        when the engine cannot be started, fails several games in a row, or plays nothing but games
        that are not kept; what an earlier run says does not count towards either.
        """
        settings, done = self.settings, done or {}
        unlike = Unlike()
        finished, failures, unwanted, number, next_number = 0, 0, 0, 0, 0
        ended: dict[int, Ended] = {}
        under_way: dict[Future[Ended], int] = {}
        pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="game")
        try:
            while finished < settings.games:
                room = min(2 * settings.workers, settings.games - finished)
                while number - next_number < room:
                    # Openings of games that are done count as seen: none is drawn twice.
                    game = self._opening(number)
                    if number in done:
                        ended[number] = done[number]
                    else:
                        under_way[pool.submit(self._play, number, game)] = number
                    number += 1
                # With a timeout the main thread still hears Ctrl-C on every system.
                while next_number not in ended:
                    over, _ = wait(under_way, timeout=0.2, return_when=FIRST_COMPLETED)
                    for future in over:
                        ended[under_way.pop(future)] = future.result()
                        on_end(future.result())
                result = unlike(ended.pop(next_number))
                is_new = next_number not in done
                next_number += 1
                yield result
                finished += isinstance(result, GameRecord)
                if not is_new:  # it tells nothing of the engine that plays now
                    continue
                if isinstance(result, GameRecord):
                    failures = unwanted = 0
                elif result.reason in (BLUNDER, DUPLICATE):
                    unwanted += 1
                else:
                    failures += 1
                if failures >= MAX_FAILURES:
                    assert isinstance(result, Dropped)
                    raise EngineError(
                        f"the engine failed in {failures} games in a row; the last time: "
                        f"{result.reason}"
                    )
                if unwanted >= MAX_UNWANTED:
                    raise EngineError(_nothing_new(result, unwanted))
        finally:
            self.stop()
            pool.shutdown(cancel_futures=True)
            for engine in self._engines:
                engine.close()

    # --- one game ------------------------------------------------------------------------------

    def _engine(self) -> SelfPlayer:
        """The engine of this thread."""
        engine: SelfPlayer | None = getattr(self._local, "engine", None)
        if engine is None:
            engine = self._local.engine = self._new_engine()
            self._engines.append(engine)
        return engine

    def _opening(self, number: int) -> Game:
        """The start of game `number`, unlike that of any game before it where that can be."""
        settings = self.settings
        chance = random.Random(f"opening {settings.seed} {number}")
        opening = settings.openings[number % len(settings.openings)]
        least, most = settings.random_plies
        game = played_out(self.rules, opening)
        for attempt in range(OPENING_TRIES):
            # Where the short openings are used up, longer ones are drawn.
            plies = chance.randint(least, most + attempt // 10)
            game = played_out(self.rules, opening)
            while game.ply < len(opening.moves) + plies and game.outcome() is None:
                game.push(_drawn(chance, game))
            key = game.fen()
            if game.outcome() is None and key not in self._openings_seen:
                self._openings_seen.add(key)
                break
        return game

    def _play(self, number: int, game: Game) -> Ended:
        if self._stopped.is_set():
            return Dropped(number, STOPPED)
        settings = self.settings
        chance = random.Random(f"game {settings.seed} {number}")
        engine = self._engine()
        scores: list[int | None] = [None] * game.ply
        visits: list[PlyVisits] = [()] * game.ply
        marked: dict[int, str] = {}
        opening_plies = game.ply
        try:
            engine.start()
            engine.new_game(game_seed(settings.seed, number))
            while not self._over(game, scores):
                if self._stopped.is_set():
                    return Dropped(number, STOPPED)
                if settings.random_share and chance.random() < settings.random_share:
                    move = _drawn(chance, game)
                    marked[game.ply] = RANDOM_MOVE
                    game.push(move)
                    scores.append(None)
                    visits.append(())
                    continue
                found = engine.choose(game, _jittered(chance, settings), settings.move_timeout)
                if self._stopped.is_set():  # by which the search may have been cut short
                    return Dropped(number, STOPPED)
                game.push(found.move)
                scores.append(found.score)
                visits.append(found.visits)
        except (EngineError, MoveError) as error:
            engine.kill()
            return Dropped(number, str(error))
        record = self._record(number, game, scores, engine, opening_plies, marked)
        record.visits = visits if any(visits) else None
        kept = filtered(self.rules, record, settings.blunder) if settings.blunder else record
        return kept or Dropped(number, BLUNDER)

    def _over(self, game: Game, scores: Sequence[int | None]) -> bool:
        settings = self.settings
        return (
            game.outcome() is not None
            or (settings.resign is not None and resigned(scores, settings.resign))
            or game.ply >= settings.max_plies
        )

    def _record(
        self,
        number: int,
        game: Game,
        scores: list[int | None],
        engine: SelfPlayer,
        opening_plies: int,
        marked: dict[int, str],
    ) -> GameRecord:
        settings = self.settings
        outcome = game.outcome()
        winner, termination = None, MOVE_LIMIT
        if outcome is not None:
            winner, termination = outcome.winner, outcome.reason
        elif settings.resign is not None and resigned(scores, settings.resign):
            winner, termination = game.side, RESIGN_RULE
        result: Result = "1/2-1/2" if winner is None else "0-1" if winner else "1-0"
        opening = settings.openings[number % len(settings.openings)]
        return GameRecord(
            variant=self.rules.spec.variant,
            moves=list(game.moves),
            start_fen=opening.fen,
            result=result,
            white=engine.name,
            black=engine.name,
            event=f"self-play, {settings.nodes} nodes a move",
            termination=termination,
            source=f"generate --seed {settings.seed}",
            number=number + 1,
            scores=scores,
            comments=marked,
            tags={
                "RandomPlies": str(opening_plies - len(opening.moves)),
                OPENING_TAG: str(opening_plies),
            },
        )


def _drawn(chance: random.Random, game: Game) -> int:
    """A legal move by lot. Sorted, so that the lot falls the same with either rules engine."""
    moves: Sequence[int] = sorted(int(move) for move in game.legal_moves())
    return chance.choice(moves)


def _jittered(chance: random.Random, settings: GenerateSettings) -> int:
    """Nodes of one move. Nothing is drawn without jitter, so games stay as they were."""
    if not settings.node_jitter:
        return settings.nodes
    reach = settings.node_jitter
    return max(1, round(settings.nodes * chance.uniform(1 - reach, 1 + reach)))


def _nothing_new(last: Ended, count: int) -> str:
    if isinstance(last, Dropped) and last.reason == BLUNDER:
        return f"none of the last {count} games was kept: allow a greater blunder, or more nodes"
    return (
        f"the last {count} games were played before: give more random plies, more openings or a "
        "node jitter"
    )


def _game_key(record: GameRecord) -> bytes:
    """The same for games of the same start and moves."""
    said = repr((record.start_fen, record.moves)).encode()
    return hashlib.blake2b(said, digest_size=12).digest()
