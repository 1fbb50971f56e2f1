"""Strategies give legal games of any variant, shrink to short ones, and say what they need."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import find, given, settings

from variant_ai.core.errors import FenError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.position import Position
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.testing import strategies

SPEC = load_spec(builtin_specs()["minishogi"])
RULES = make_rules(SPEC)


@given(strategies.games(RULES, max_plies=30))
@settings(max_examples=40)
def test_games_are_legal(game: Game) -> None:
    again = Game.from_uci(RULES, None, game.uci_moves())
    assert again.fen() == game.fen() and game.ply <= 30


@given(strategies.moves(SPEC))
@settings(max_examples=40)
def test_moves_are_legal(found: tuple[Position, int]) -> None:
    position, move = found
    assert move in RULES.legal_moves(position)
    assert RULES.outcome(position) is None


@given(strategies.fens(RULES))
@settings(max_examples=40)
def test_fens_are_read(fen: str) -> None:
    assert RULES.fen(RULES.position(fen)) == fen


@given(strategies.damaged_fens(RULES))
@settings(max_examples=100)
def test_damaged_fens_are_read_or_rejected(text: str) -> None:
    try:
        RULES.position(text)
    except FenError as error:
        assert str(error)


def test_games_shrink() -> None:
    few = settings(max_examples=60, database=None)
    found = find(strategies.games(RULES), lambda game: game.ply >= 3, settings=few)
    first = Game(RULES)
    for _ in range(3):
        first.push(int(first.legal_moves()[0]))
    assert found.uci_moves() == first.uci_moves()


def test_without_hypothesis_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from variant_ai.testing import check_rules\n"
        "from variant_ai.testing import strategies"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    wanted = (
        "VariantAIError: this needs hypothesis; install it with: pip install 'variant-ai[testing]'"
    )
    assert wanted in done.stderr


def test_an_unknown_name_of_the_kit() -> None:
    from variant_ai import testing

    with pytest.raises(AttributeError, match="has no attribute 'check_nothing'"):
        testing.check_nothing  # noqa: B018
    assert set(testing.__all__) <= set(dir(testing))
