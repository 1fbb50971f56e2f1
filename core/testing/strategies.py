"""Hypothesis strategies: games, positions, moves and FENs of any variant, reached by random play.

    from hypothesis import given
    from variant_ai.testing import strategies

    @given(strategies.moves(rules))
    def test_a_move_changes_the_side(found):
        position, move = found
        assert rules.play(position, move)["side"][0] != position["side"][0]

A failing example shrinks to a short game of the first legal moves, and Hypothesis prints its FEN and
moves.
"""

from __future__ import annotations

import random

from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.missing_packages import missing_packages_explained
from variant_ai.core.testing.random_games import STYLES, preferred_moves

with missing_packages_explained():
    from hypothesis import note
    from hypothesis import strategies as st

MAX_PLIES = 80
_DAMAGE = "/0129KkPpQx+~*[]-–é\0 "
"""Characters put into damaged FENs."""


def _rules_of(of: Rules | VariantSpec) -> Rules:
    return of if isinstance(of, Rules) else make_rules(of)


def games(of: Rules | VariantSpec, *, max_plies: int = MAX_PLIES) -> st.SearchStrategy[Game]:
    """Games of at most `max_plies` random moves; some have ended.

    of: rules, or a spec, which is played by its own rules engine. Half of the games prefer
    captures, checks, special or quiet moves, so that rare rules are met.
    """
    rules = _rules_of(of)

    @st.composite
    def play(draw: st.DrawFn) -> Game:
        plies = draw(st.integers(0, max_plies))
        style = draw(st.sampled_from(("any", *STYLES)))
        chance = random.Random(0)
        game = Game(rules)
        for choice in draw(st.lists(st.integers(0, 999), min_size=plies, max_size=plies)):
            if game.outcome() is not None:
                break
            legal: list[int] = game.legal_moves().tolist()
            liked = (
                preferred_moves(rules, game.position, legal, style, chance) if choice % 3 else []
            )
            pool = liked or legal
            game.push(pool[choice % len(pool)])
        note(f"{game.fen()} after {' '.join(game.uci_moves()) or 'no moves'}")
        return game

    return play()


def positions(
    of: Rules | VariantSpec, *, max_plies: int = MAX_PLIES
) -> st.SearchStrategy[Position]:
    """Positions after random moves, records of shape (1,)."""
    return games(of, max_plies=max_plies).map(lambda game: game.position)


def moves(
    of: Rules | VariantSpec, *, max_plies: int = MAX_PLIES
) -> st.SearchStrategy[tuple[Position, int]]:
    """Positions in which the game goes on, each with one of its legal moves."""

    @st.composite
    def choose(draw: st.DrawFn, playing: st.SearchStrategy[Game]) -> tuple[Position, int]:
        game = draw(playing)
        if game.outcome() is not None:
            game.pop()
        return game.position, draw(st.sampled_from(game.legal_moves().tolist()))

    return choose(games(of, max_plies=max_plies))


def fens(of: Rules | VariantSpec, *, max_plies: int = MAX_PLIES) -> st.SearchStrategy[str]:
    """FENs of positions after random moves."""
    return games(of, max_plies=max_plies).map(lambda game: game.fen())


def damaged_fens(of: Rules | VariantSpec, *, max_plies: int = MAX_PLIES) -> st.SearchStrategy[str]:
    """FENs with one to three characters removed, replaced or inserted; few of them can be read, and
    for the others `Rules.position` must raise FenError."""

    @st.composite
    def damage(draw: st.DrawFn, whole: st.SearchStrategy[str]) -> str:
        text = draw(whole)
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(text)))
            put = draw(st.sampled_from(("", *_DAMAGE)))
            text = text[:at] + put + text[at + draw(st.integers(0, 1)) :]
        return text

    return damage(fens(of, max_plies=max_plies))
