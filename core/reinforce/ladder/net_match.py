"""Matches of two nets of one variant, many games at once in one process.

Every opening is played twice, with the colours exchanged. A game passes from one player to the other
move by move, so that each evaluates the positions of about half the games in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    openings = match_openings(rules, games, min(opening_plies, max_plies - 1), seed)
    playing: dict[int, _Playing] = {}
    wins = draws = losses = 0
    capped = 0
    seen: set[tuple[object, ...]] = set()
    begun = 0
    try:
        while (playing or begun < games) and not stop():
            while begun < games and len(playing) < AT_ONCE:
                opening = openings[begun // 2 % len(openings)]
                game = played_out(rules, opening)
                playing[begun] = _Playing(game, begun % 2, game.ply, game.fen())
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
                    if outcome is None:
                        capped += 1
                    winner = None if outcome is None else outcome.winner
                    draws += winner is None
                    wins += winner == one.first_colour
                    losses += winner == 1 - one.first_colour
                    seen.add((one.start, one.first_colour, *one.game.moves[one.opening :]))
    finally:
        for player in players:
            player.close()
    spent = sum(player.evaluations for player in players)
    return MatchScore(
        wins=wins, draws=draws, losses=losses, capped=capped, evaluations=spent, distinct=len(seen)
    )


def match_openings(rules: Rules, games: int, plies: int, seed: int) -> Sequence[Opening]:
    """Openings of random plies to different positions, one for two games, as far as there are
    enough."""
    return random_lines(rules, math.ceil(games / 2), (plies, plies), seed)


@dataclass
class _Playing:
    """A game in progress."""

    game: Game
    first_colour: int
    """Colour of the first player."""
    opening: int
    """Plies of the opening."""
    start: str
    """FEN after the opening."""


def _ask(players: tuple[BatchPlayer, BatchPlayer], number: int, one: _Playing) -> None:
    players[one.game.side != one.first_colour].ask(number, one.game)
