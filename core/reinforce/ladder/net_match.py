"""Matches of two nets of one variant, many games at once in one process.

Every opening is played twice, with the colours exchanged. A game passes from one player to the other
move by move, so that each evaluates the positions of about half the games in one batch. The players:

    PolicyPlayer    the net's first choice: one evaluation a move, no search
    ForestPlayer    a search of every position in the same batches (`core/search/forest`)
    PlainPlayer     the ordinary search, one game after the other, for rules that are not compiled
    GuessingPlayer  every legal move with equal probability

Moves are chosen without noise. `SinglePlayer` makes any of them a player of the arena, which plays one
game at a time.
"""

from __future__ import annotations

import math
import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from variant_ai.core.arena.games.openings import Opening, played_out, random_lines
from variant_ai.core.arena.players.player import Player, Reply, Turn, random_move
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.ladder.ladder_record import MatchScore
from variant_ai.core.reinforce.reinforce_settings import (
    ReinforceSettings,
    SearchChoice,
    Variety,
    forest_settings,
    plain_search,
)
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.search.forest.forest_search import ForestSearch
from variant_ai.core.search.interface import check_shape
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.net_view import encoder_and_rules, net_answers
from variant_ai.core.spec.schema import VariantSpec

AT_ONCE = 128
"""Games that are played at the same time."""
Chosen = list[tuple[int, int]]
"""Numbers of games, and the move chosen in each."""


def play_match(
    spec: VariantSpec,
    first: Evaluator,
    second: Evaluator | None,
    *,
    games: int,
    nodes: int,
    opening_plies: int,
    max_plies: int,
    seed: int,
    search: SearchChoice,
    rules: Rules | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> MatchScore:
    """Play a match of two nets, or of a net against uniformly random moves (`second` None).

    nodes: visits of a search; 0: the raw policy, one evaluation a move. opening_plies: random plies of
    each opening; the k-th one is played in the games 2k and 2k + 1. max_plies: a game of this length,
    opening included, is a draw. search: its settings but `nodes`; there is no noise. stop: ends the
    match when it returns True; the score counts the games that have ended by then. Raises DataError if
    an evaluator does not fit the variant.
    """
    rules = rules or make_rules(spec)

    def player_of(evaluator: Evaluator) -> BatchPlayer:
        return make_batch_player(
            spec,
            evaluator,
            rules,
            nodes=nodes,
            search=search,
            max_plies=max_plies,
            games=min(games, AT_ONCE),
        )

    other = GuessingPlayer(seed) if second is None else player_of(second)
    players = (player_of(first), other)
    openings = match_openings(rules, games, opening_plies, max_plies, seed)
    playing: dict[int, _Playing] = {}
    count = ScoreCount(max_plies)
    begun = 0
    try:
        while (playing or begun < games) and not stop():
            while begun < games and len(playing) < AT_ONCE:
                game = played_out(rules, openings[begun])
                playing[begun] = _Playing(game, begun % 2, game.ply)
                _ask(players, begun, playing[begun])
                begun += 1
            for player in players:
                for number, move in player.step():
                    one = playing[number]
                    one.game.push(move)
                    outcome = one.game.outcome()
                    if outcome is None and one.game.ply < max_plies:
                        _ask(players, number, one)
                        continue
                    del playing[number]
                    winner = None if outcome is None else outcome.winner
                    count.add(one.game, one.opening, one.first_colour, winner)
    finally:
        for player in players:
            player.close()
    spent = sum(player.evaluations for player in players)
    return MatchScore(**count.numbers(), evaluations=spent)


def match_openings(
    rules: Rules, games: int, opening_plies: int, max_plies: int, seed: int
) -> list[Opening]:
    """Return one opening for each game, of random plies. Two games in a row have the same opening; all
    others lead to other positions, as far as there are enough. max_plies: games must be longer than
    their opening."""
    plies = min(opening_plies, max_plies - 1)
    lines = random_lines(rules, math.ceil(games / 2), (plies, plies), seed)
    return [lines[number // 2 % len(lines)] for number in range(games)]


class ScoreCount:
    """Counts the games of a match as they end."""

    def __init__(self, max_plies: int) -> None:
        """max_plies: greatest length of a game."""
        self._max_plies = max_plies
        self._won: Counter[bool | None] = Counter()
        """Games that the first player won, lost (False), and drew (None)."""
        self._capped = 0
        self._seen: set[tuple[object, ...]] = set()

    def add(self, game: Game, opening: int, first_colour: int, winner: int | None) -> None:
        """Count a game that has ended. opening: its plies that no player chose. first_colour: of the
        first player. winner: colour that won; None for a draw."""
        self._won[None if winner is None else winner == first_colour] += 1
        self._capped += game.ply >= self._max_plies and game.outcome() is None
        start = game.rules.fen(game.positions[opening])
        self._seen.add((start, first_colour, *game.moves[opening:]))

    def numbers(self) -> dict[str, int]:
        """Return the fields of `MatchScore` that are counted here."""
        return {
            "wins": self._won[True],
            "draws": self._won[None],
            "losses": self._won[False],
            "capped": self._capped,
            "distinct": len(self._seen),
        }


@dataclass
class _Playing:
    """A game in progress."""

    game: Game
    first_colour: int
    """Colour of the first player."""
    opening: int
    """Plies of the opening."""


def _ask(players: tuple[BatchPlayer, BatchPlayer], number: int, one: _Playing) -> None:
    players[one.game.side != one.first_colour].ask(number, one.game)


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
        """Release the trees of the search. The evaluator belongs to the caller and stays open."""


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
