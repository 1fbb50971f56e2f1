"""Players that think about many games at once, for matches in one process.

    PolicyPlayer    the net's first choice: one evaluation a move, no search
    ForestPlayer    a search of every position in the same batches (`core/search/forest`)
    PlainPlayer     the ordinary search, one game after the other, for rules that are not compiled
    GuessingPlayer  every legal move with equal probability

Moves are chosen without noise. `SinglePlayer` makes any of them a player of the arena, which plays one
game at a time.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod

from variant_ai.core.arena.players.player import Player, Reply, Turn, random_move
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.chosen_search import forest_settings, plain_search
from variant_ai.core.reinforce.reinforce_settings import (
    ReinforceSettings,
    SearchChoice,
    Variety,
)
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.search.forest.forest_search import ForestSearch
from variant_ai.core.search.interface import check_shape
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.net_view import encoder_and_rules, net_answers
from variant_ai.core.spec.schema import VariantSpec

Chosen = list[tuple[int, int]]
"""Numbers of games, and the move chosen in each."""


class BatchPlayer(ABC):
    """Chooses moves in many games. Not for several threads."""

    evaluations = 0
    """Positions evaluated so far."""

    def __init__(self) -> None:
        self._waiting: dict[int, Game] = {}
        """Questions by the numbers of their games."""

    def ask(self, number: int, game: Game) -> None:
        """Ask for a move in the last position of a game, which must not have ended and must not change
        until the answer. number: of the game, one question at a time for each."""
        self._waiting[number] = game

    @abstractmethod
    def step(self) -> Chosen:
        """Think on, and return the moves chosen so far; possibly none, while there are questions."""

    def close(self) -> None:  # noqa: B027 (most have nothing to release)
        """Release what the search holds. The evaluator belongs to the caller and stays open."""


class PolicyPlayer(BatchPlayer):
    """Plays the legal move with the greatest logit: raw policy, one evaluation a move."""

    def __init__(self, spec: VariantSpec, evaluator: Evaluator, rules: Rules) -> None:
        """Raises DataError if the evaluator does not fit the variant."""
        super().__init__()
        self._encoder, self._rules = encoder_and_rules(evaluator, spec, rules)
        check_shape(self._encoder, evaluator)
        self._evaluator = evaluator

    def step(self) -> Chosen:
        if not self._waiting:
            return []
        games = list(self._waiting.values())
        answers = net_answers(self._evaluator, self._encoder, self._rules, games)
        chosen = [
            (number, answer.moves[int(answer.logits.argmax())])
            for number, answer in zip(self._waiting, answers, strict=True)
        ]
        self.evaluations += len(chosen)
        self._waiting.clear()
        return chosen


class ForestPlayer(BatchPlayer):
    """Searches a position of every game at once, by compiled rules."""

    def __init__(
        self,
        spec: VariantSpec,
        evaluator: Evaluator,
        settings: ReinforceSettings,
        games: int,
        rules: Rules,
    ) -> None:
        """games: most questions at once. Raises DataError if the evaluator does not fit the
        variant."""
        super().__init__()
        self._forest = ForestSearch(spec, evaluator, forest_settings(settings), games, rules=rules)
        self._free = list(range(games))
        self._tree_of: dict[int, int] = {}

    def ask(self, number: int, game: Game) -> None:
        tree = self._tree_of[number] = self._free.pop()
        self._forest.start(tree, game, number, number, moves=1)

    def step(self) -> Chosen:
        if not self._tree_of:
            return []
        self._forest.step()
        self.evaluations = self._forest.evaluations
        chosen = [(one.game, one.move) for one in self._forest.entries()]
        self._free += [self._tree_of.pop(number) for number, _ in chosen]
        return chosen


class PlainPlayer(BatchPlayer):
    """Searches one position after the other with the ordinary search."""

    def __init__(
        self,
        spec: VariantSpec,
        evaluator: Evaluator,
        search: SearchChoice,
        rules: Rules,
    ) -> None:
        """Raises DataError if the evaluator does not fit the variant."""
        super().__init__()
        self._search = plain_search(spec, evaluator, search, seed=0, rules=rules)
        self._nodes = search.nodes

    def step(self) -> Chosen:
        if not self._waiting:
            return []
        number = next(iter(self._waiting))
        self._search.set_game(self._waiting.pop(number))
        report = self._search.run(Limits(nodes=self._nodes + 1))  # the root's own evaluation counts
        self.evaluations += report.evaluations
        assert report.best is not None
        return [(number, report.best)]

    def close(self) -> None:
        self._search.close()


class GuessingPlayer(BatchPlayer):
    """Plays random legal moves, the same ones in a game of the same number."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed

    def step(self) -> Chosen:
        chosen = [
            (number, random_move(random.Random(f"{self._seed} {number} {game.ply}"), game))
            for number, game in self._waiting.items()
        ]
        self._waiting.clear()
        return chosen


def make_batch_player(
    spec: VariantSpec,
    evaluator: Evaluator,
    rules: Rules,
    *,
    nodes: int,
    search: SearchChoice,
    max_plies: int,
    games: int,
) -> BatchPlayer:
    """Make the player of a net. nodes: visits of a search; 0: raw policy. search: its other settings;
    noise and fast moves are left out. max_plies: games are shorter. games: most questions at once.

    Raises DataError if the evaluator does not fit the variant.
    """
    if nodes == 0:
        return PolicyPlayer(spec, evaluator, rules)
    without = {"noise": False, "full_share": 1.0, "fast_nodes": 0}
    choice = search.model_copy(update={"nodes": nodes, **without})
    if not is_compiled(rules):
        return PlainPlayer(spec, evaluator, choice, rules)
    settings = ReinforceSettings(
        variant=spec.variant,
        search=choice,
        variety=Variety(sampled_plies=0, max_plies=max_plies),
    )
    return ForestPlayer(spec, evaluator, settings, games, rules)


class SinglePlayer(Player):
    """A player of the arena that asks a `BatchPlayer` about one game."""

    def __init__(self, name: str, player: BatchPlayer) -> None:
        self.name = name
        self._player = player

    def start(self) -> None:
        pass

    def new_game(self, game: Game, number: int = 0) -> None:
        pass

    def play(self, game: Game, turn: Turn) -> Reply:
        started, before = time.monotonic(), self._player.evaluations
        self._player.ask(0, game)
        while not (chosen := self._player.step()):
            pass
        return Reply(
            chosen[0][1],
            nodes=self._player.evaluations - before,
            seconds=time.monotonic() - started,
        )

    def close(self) -> None:
        self._player.close()
