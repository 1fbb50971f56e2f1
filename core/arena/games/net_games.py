"""Games of a net against itself, many at once with shared batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from variant_ai.core.arena.games.generated_games import Ended
from variant_ai.core.arena.games.generation import (
    RANDOM_MOVE,
    GameGenerator,
    GameVariation,
    GenerationSettings,
    NextGame,
    game_seed,
)
from variant_ai.core.arena.games.openings import Opening
from variant_ai.core.arena.match.referee import PlayedGame, Referee
from variant_ai.core.arena.players.player import Reply
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.forest.position_searches import PositionSearches
from variant_ai.core.search.settings import SearchParams

AT_ONCE = 64
"""Games at once, if the settings do not say how many."""
AHEAD = 8
"""Games that are begun for each of those before the oldest one has ended: games differ in length."""


@dataclass
class _Game:
    """A game in progress."""

    number: int
    played: PlayedGame
    variety: GameVariation
    rng: np.random.Generator
    """Of its noise and sampled moves."""


class NetGames(GameGenerator):
    """Games of a net with compiled rules, each search with a fresh tree."""

    def __init__(
        self,
        settings: GenerationSettings,
        rules: Rules,
        make_evaluator: Callable[[int], Evaluator],
        params: SearchParams,
        name: str,
        openings: Sequence[Opening] = (Opening(),),
        *,
        kept_visits: int = 0,
    ) -> None:
        """make_evaluator: loads the net for batches of this size. name: of the player in records.
        kept_visits: moves of each search that are recorded with their visits."""
        self.at_once = min(settings.workers or AT_ONCE, settings.games)
        super().__init__(settings, rules, openings, ahead=AHEAD * self.at_once)
        self.name = name
        self.kept_visits = kept_visits
        self._params = params
        self._make_evaluator = make_evaluator
        self._searches: PositionSearches | None = None
        self._referee = Referee(settings.conduct, self._stopped.is_set)
        self._playing: dict[int, _Game] = {}
        """By tree."""

    @property
    def group(self) -> int:
        return self.at_once

    def check_player(self) -> str:
        self._loaded()
        return self.name

    def _loaded(self) -> PositionSearches:
        if self._searches is None:
            settings = self.settings
            self._searches = PositionSearches(
                self.rules.spec,
                self._make_evaluator(self.at_once),
                self._params,
                self.at_once,
                positions=settings.max_plies,
                nodes=round(settings.nodes * (1 + settings.node_jitter)),
                rules=self.rules,
            )
        return self._searches

    def _played(self, next_game: NextGame, done: Mapping[int, Ended]) -> Iterator[Ended]:
        searches = self._loaded()
        free = list(range(self.at_once))
        while not self._stopped.is_set():
            while free and (begun := next_game()) is not None:
                number, game = begun
                if number in done:
                    yield done[number]
                    continue
                tree = free.pop()
                seed = self._params.seed + game_seed(self.settings.seed, number)
                self._playing[tree] = _Game(
                    number,
                    PlayedGame(game, game.ply),
                    GameVariation(self.settings, number),
                    np.random.default_rng(seed),
                )
                if not self._search(tree, searches):
                    free.append(tree)
                    yield self._end(tree)
            if not self._playing:
                return
            for tree in searches.step():
                self._move(tree, searches)
                if not self._search(tree, searches):
                    free.append(tree)
                    yield self._end(tree)

    def _search(self, tree: int, searches: PositionSearches) -> bool:
        """Begin the search of a game's next move, after random moves if these are due; returns False
        if the game has ended."""
        playing = self._playing[tree]
        played = playing.played
        while not self._referee.is_over(played):
            move = playing.variety.random_move(played.game)
            if move is None:
                searches.start(tree, played.game, playing.variety.nodes(), playing.rng)
                return True
            played.play(Reply(move, comment=RANDOM_MOVE))
        return False

    def _move(self, tree: int, searches: PositionSearches) -> None:
        """Play the move of a complete search."""
        report = searches.report(tree, pv=False)
        assert report.best is not None
        line = report.best_line
        self._playing[tree].played.play(
            Reply(
                report.best,
                score=line.score if line else None,
                nodes=report.visits,
                visits=tuple(searches.root_visits(tree)[: self.kept_visits]),
                value=round(searches.root_value(tree), 5),
            )
        )

    def _end(self, tree: int) -> Ended:
        playing = self._playing.pop(tree)
        return self._kept(playing.number, playing.played, self.name)
