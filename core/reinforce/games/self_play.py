"""Self-play: games of a net with itself, as records with policy targets and root values.

`SelfPlay` plays many games at once (`core/search/forest`). Rules that are not compiled are played by
`SlowSelfPlay`, game by game with the ordinary search; `make_self_play` chooses. Both give each game
random plies, noise and sampled moves by its number, so that the same numbers give other games than
those before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from variant_ai.core.arena.games.openings import Opening, played_out
from variant_ai.core.data.game_record import (
    CAPPED,
    LOST_BY,
    TRAINS_POLICY,
    TRAINS_VALUE,
    GameRecord,
    PlyVisits,
    Result,
    whole_weights,
)
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.games.game_journal import self_play_record
from variant_ai.core.reinforce.reinforce_settings import (
    ReinforceSettings,
    forest_settings,
    plain_search,
)
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.rules.scattered_starts import ScatteredStarts
from variant_ai.core.rules.shuffled_starts import STARTS, is_shuffled, shuffled_start
from variant_ai.core.search.forest.forest_arrays import ENDED, RESIGNED
from variant_ai.core.search.forest.forest_search import ForestSearch, SearchedMove
from variant_ai.core.spec.schema import VariantSpec

RESIGNATION = "resignation"
BRANCHES = 512
"""Games that branches start from: the last ones."""
RESIGNATIONS = ("played_out", "would_resign", "wrong")
"""Counts of resignations that were checked by games played out regardless: the games, those in which a
side would have resigned, and those in which this side did not lose."""
MOST_ATTEMPTS = 100
"""Attempts to find random plies that do not end the game."""


@dataclass
class _Playing:
    """A game in progress."""

    game: Game
    number: int
    opening: int
    """Plies that no player chose."""
    resigns: bool
    generation: int
    searched: list[SearchedMove] = field(default_factory=list)


class BaseSelfPlay(ABC):
    """Games of one variant with one net at a time."""

    def __init__(
        self,
        spec: VariantSpec,
        evaluator: Evaluator,
        settings: ReinforceSettings,
        *,
        generation: int,
        first_game: int = 1,
        done: frozenset[int] = frozenset(),
        rules: Rules | None = None,
        openings: Sequence[Opening] = (),
    ) -> None:
        """generation: of the net. first_game: number of the first game to play, from 1; those in
        `done` are left out. openings: one is sampled for each game; none: the start of the variant.
        Raises DataError if the evaluator does not fit the variant."""
        self.spec = spec
        self.settings = settings
        self.generation = generation
        self.rules = rules or make_rules(spec)
        self.resignations: Counter[str] = Counter()
        """By the names in RESIGNATIONS."""
        self.next_number = first_game
        self._done = done
        self._openings = openings
        self._earlier: deque[GameRecord] = deque(maxlen=BRANCHES)
        self._begin(evaluator)

    @abstractmethod
    def _begin(self, evaluator: Evaluator) -> None:
        """Make the search. Raises DataError if the evaluator does not fit."""

    @property
    @abstractmethod
    def evaluations(self) -> int:
        """Positions evaluated so far."""

    @property
    @abstractmethod
    def visits(self) -> int:
        """Visits of the searches that have finished."""

    @abstractmethod
    def set_net(self, evaluator: Evaluator, generation: int) -> None:
        """Go on with another net; games in progress go on, too. Raises DataError if it does not fit."""

    @abstractmethod
    def next_game(self, stop: Callable[[], bool]) -> GameRecord | None:
        """Play until a game ends; None if `stop` returned True first. The games in progress go on with
        the next call.

        Games end in any order: `number` of a record is the place of the game in the order in which
        they began, from 1."""

    def close(self) -> None:
        """End the threads and processes of the search, but not the evaluator."""
        return

    def finished(self) -> Iterator[GameRecord]:
        """Yield games as they end, without end."""
        while (record := self.next_game(lambda: False)) is not None:
            yield record

    def _new_game(self) -> _Playing:
        while self.next_number in self._done:
            self.next_number += 1
        number = self.next_number
        self.next_number += 1
        rng = np.random.default_rng([self.settings.seed, number])
        variety = self.settings.variety
        resigns = variety.resign_below is not None and rng.random() >= variety.played_out
        game = self._opening(rng)
        return _Playing(game, number, len(game.moves), resigns, self.generation)

    def _opening(self, rng: np.random.Generator) -> Game:
        """A game after its opening and random plies, from scattered pieces, or at a random position of an
        earlier game."""
        variety = self.settings.variety
        branches = rng.random() < variety.branch_share
        if branches and self._earlier:
            earlier = self._earlier[int(rng.integers(len(self._earlier)))]
            game = Game(self.rules, earlier.start_fen)
            for move in earlier.moves[: int(rng.integers(earlier.plies))]:
                game.push(move)
            if game.outcome() is None and game.ply < variety.max_plies:
                return game
        if variety.scattered_share and rng.random() < variety.scattered_share:
            fen = self._scattered.sample(rng)
            if fen is not None:
                return Game(self.rules, fen)
        least, most = variety.random_plies
        for attempt in range(MOST_ATTEMPTS):
            plies = int(rng.integers(least, most + 1)) if attempt < MOST_ATTEMPTS - 1 else 0
            game = self._first_game(rng)
            for _ in range(min(plies, variety.max_plies - 1 - game.ply)):
                moves = game.legal_moves()
                game.push(int(moves[rng.integers(len(moves))]))
                if game.outcome() is not None:
                    break
            if game.outcome() is None:
                return game
        raise AssertionError("the start position ends the game")

    @cached_property
    def _scattered(self) -> ScatteredStarts:
        return ScatteredStarts(self.rules)

    def _first_game(self, rng: np.random.Generator) -> Game:
        """A random opening, or a start of the variant."""
        if self._openings:
            return played_out(self.rules, self._openings[int(rng.integers(len(self._openings)))])
        if is_shuffled(self.spec):
            return Game(self.rules, shuffled_start(self.spec, int(rng.integers(STARTS))))
        return Game(self.rules)

    def _record(self, playing: _Playing, resigned: int | None) -> GameRecord | None:
        """Record of a game whose moves are all in `searched`; None if it has not ended. resigned:
        colour of the side that resigned."""
        game = playing.game
        for searched in playing.searched[game.ply - playing.opening :]:
            game.push(searched.move)
        result: Result
        if resigned is not None:
            result, termination = LOST_BY[resigned], RESIGNATION
        else:
            outcome = game.outcome()
            if outcome is not None:
                result, termination = outcome.result, outcome.reason
            elif game.ply >= self.settings.variety.max_plies:
                result, termination = "1/2-1/2", CAPPED
            else:
                return None
        value_bit = 0 if termination == CAPPED else TRAINS_VALUE
        opening = playing.opening
        searches = playing.searched
        record = self_play_record(
            self.spec.variant,
            number=playing.number,
            generation=playing.generation,
            start_fen=game.start_fen,
            opening_plies=opening,
            moves=list(game.moves),
            result=result,
            termination=termination,
            visits=[()] * opening + [_target(s) if s.full else () for s in searches],
            root_values=[None] * opening + [s.root_value for s in searches],
            trains=[0] * opening + [value_bit | (TRAINS_POLICY if s.full else 0) for s in searches],
        )
        self._earlier.append(record)
        self._count_resignation(playing, record)
        return record

    def _count_resignation(self, playing: _Playing, record: GameRecord) -> None:
        """Find out whether a game that was played out would have been resigned."""
        limit = self.settings.variety.resign_below
        if limit is None or playing.resigns or record.termination == CAPPED:
            return
        self.resignations["played_out"] += 1
        lost = [0, 0]
        side = int(playing.game.positions[playing.opening]["side"][0])
        for searched in playing.searched:
            for player in (0, 1):
                own = searched.root_value if player == side else -searched.root_value
                lost[player] = lost[player] + 1 if own < limit else 0
                if lost[player] >= self.settings.variety.resign_plies:
                    self.resignations["would_resign"] += 1
                    self.resignations["wrong"] += record.result != LOST_BY[player]
                    return
            side = 1 - side


def _target(searched: SearchedMove) -> PlyVisits:
    return whole_weights(searched.moves.tolist(), searched.weights.tolist())


def recorded_positions(record: GameRecord) -> int:
    """Number of positions of a game that a net learns from."""
    return sum(bits > 0 for bits in record.trains or ())


class SelfPlay(BaseSelfPlay):
    """Games at once with shared batches, by compiled rules."""

    def _begin(self, evaluator: Evaluator) -> None:
        settings = self.settings
        self._forest = ForestSearch(
            self.spec,
            evaluator,
            forest_settings(settings),
            settings.games_at_once,
            rules=self.rules,
        )
        self._playing: dict[int, _Playing] = {}
        """By tree."""
        self._tree_of: dict[int, int] = {}
        """Tree of each game in progress."""
        self._ended: deque[int] = deque()
        """Trees whose game has ended and is not reported yet."""

    @property
    def evaluations(self) -> int:
        return self._forest.evaluations

    @property
    def visits(self) -> int:
        return self._forest.visits

    def set_net(self, evaluator: Evaluator, generation: int) -> None:
        self._forest.set_evaluator(evaluator)
        self.generation = generation

    def next_game(self, stop: Callable[[], bool]) -> GameRecord | None:
        forest = self._forest
        if not self._playing:
            for tree in range(forest.trees):
                self._start(tree)
        while True:
            while self._ended:
                tree = self._ended.popleft()
                record = self._end(tree)
                if record is not None:
                    self._start(tree)
                    return record
            if stop():
                return None
            forest.step()
            for searched in forest.entries():
                self._playing[self._tree_of[searched.game]].searched.append(searched)
            self._ended.extend(np.flatnonzero(forest.states >= ENDED).tolist())

    def _start(self, tree: int) -> None:
        old = self._playing.get(tree)
        if old is not None:
            del self._tree_of[old.number]
        playing = self._new_game()
        self._playing[tree] = playing
        self._tree_of[playing.number] = tree
        rng = np.random.default_rng([self.settings.seed, playing.number, 1])
        seed = int(rng.integers(1 << 63))
        self._forest.start(tree, playing.game, playing.number, seed, resigns=playing.resigns)

    def _end(self, tree: int) -> GameRecord | None:
        playing = self._playing[tree]
        resigned = None
        if int(self._forest.states[tree]) == RESIGNED:
            lost = self._forest.forest.trees[tree]["lost"]
            resigned = 0 if lost[0] >= lost[1] else 1
        record = self._record(playing, resigned)
        if record is None:
            self._forest.go_on(tree)
        return record


class SlowSelfPlay(BaseSelfPlay):
    """Games one after the other with the ordinary search, for rules that are not compiled.

    Its policy targets are visits. It is slow: a position takes Fairy-Stockfish milliseconds.

    The search is PUCT with `search.nodes` visits for each move (`plain_search`). The settings of
    the Gumbel search, `forced_playouts`, `full_share`, `fast_nodes` and `look_for_material` are
    ignored, and so are `temperature` and `temperature_end`: moves are sampled in proportion to their
    visits. No side resigns.
    """

    evaluations = 0
    visits = 0
    _playing: _Playing | None = None

    def _begin(self, evaluator: Evaluator) -> None:
        settings = self.settings
        self._search = plain_search(
            self.spec, evaluator, settings.search, seed=settings.seed, rules=self.rules
        )

    def set_net(self, evaluator: Evaluator, generation: int) -> None:
        self.close()
        self._begin(evaluator)
        self.generation = generation

    def close(self) -> None:
        self._search.close()

    def next_game(self, stop: Callable[[], bool]) -> GameRecord | None:
        if self._playing is None:
            self._playing = self._new_game()
            self._rng = np.random.default_rng([self.settings.seed, self._playing.number, 1])
            self._search.clear(int(self._rng.integers(1 << 31)))
        while not stop():
            self._playing.searched.append(self._move(self._playing, self._rng))
            record = self._record(self._playing, None)
            if record is not None:
                self._playing = None
                return record
        return None

    def _move(self, playing: _Playing, rng: np.random.Generator) -> SearchedMove:
        from variant_ai.core.search.move.limits import Limits

        search, variety = self._search, self.settings.variety
        search.set_game(playing.game)
        nodes = self.settings.search.nodes + 1  # the root's own evaluation counts
        report = search.run(Limits(nodes=nodes))
        self.evaluations += report.evaluations
        self.visits += report.visits
        visited = search.root_visits()
        moves = np.array([move for move, _ in visited], np.int32)
        weights = np.array([count for _, count in visited], np.float64)
        if not len(moves):
            assert report.best is not None
            moves, weights = np.array([report.best], np.int32), np.ones(1)
        weights /= weights.sum()
        move = int(moves[weights.argmax()])
        if playing.game.ply - playing.opening < variety.sampled_plies:
            move = int(rng.choice(moves, p=weights))
        tree = search.tree
        value = float(tree.arrays.nodes[tree.root]["q"])
        return SearchedMove(
            playing.number, playing.game.ply, move, True, value, moves, weights.astype(np.float32)
        )


def make_self_play(
    spec: VariantSpec,
    evaluator: Evaluator,
    settings: ReinforceSettings,
    *,
    rules: Rules | None = None,
    **games: Any,
) -> BaseSelfPlay:
    """Make the player for a variant: `SelfPlay` if its rules are compiled, otherwise `SlowSelfPlay`.

    games: other arguments of `BaseSelfPlay`."""
    rules = rules or make_rules(spec)
    kind = SelfPlay if is_compiled(rules) else SlowSelfPlay
    return kind(spec, evaluator, settings, rules=rules, **games)
