"""Matches of two nets of one variant, many games at once in one process.

Every opening is played twice, with the colours exchanged. A game passes from one player to the other
move by move, so that each evaluates the positions of about half the games in one batch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from variant_ai.core.arena.games.openings import Opening, played_out, random_lines
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.ladder.batch_players import (
    BatchPlayer,
    GuessingPlayer,
    make_batch_player,
)
from variant_ai.core.reinforce.ladder.ladder_record import MatchScore
from variant_ai.core.reinforce.reinforce_settings import SearchChoice
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec

AT_ONCE = 128
"""Games that are played at the same time."""


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
