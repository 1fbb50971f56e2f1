"""Opening lines out of a policy."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from variant_ai.core.arena.games.openings import policy_lines
from variant_ai.core.errors import DataError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.plugins import registry


@pytest.fixture(scope="module")
def rules() -> Rules:
    return make_rules(registry().variant("crazyhouse"))


def sloped(game: Game) -> list[tuple[int, float]]:
    return [(int(move), 0.8**i) for i, move in enumerate(game.legal_moves())]


def test_lines_follow_the_policy(rules: Rules) -> None:
    lines = [opening.moves for opening in policy_lines(rules, sloped, 300, seed=1)]
    assert len(set(lines)) == 300
    lengths = [len(line) for line in lines]
    assert min(lengths) >= 1
    assert np.mean(lengths) == pytest.approx(5.84, abs=0.6)
    assert np.std(lengths) == pytest.approx(2.77, abs=0.5)
    first = Counter(line[0] for line in lines)
    likely = [int(move) for move in Game(rules).legal_moves()[:4]]
    assert {move for move, _ in first.most_common(2)} <= set(likely)
    # 59 % of the probability, less what is lost to short lines that were drawn before
    assert 0.4 < sum(first[move] for move in likely) / 300 < 0.65
    again = [opening.moves for opening in policy_lines(rules, sloped, 300, seed=1)]
    assert again == lines


def test_heat_spreads_the_moves(rules: Rules) -> None:
    def firsts(temperature: float) -> int:
        lines = policy_lines(rules, sloped, 100, temperature=temperature)
        return len({opening.moves[0] for opening in lines})

    assert firsts(0.3) < firsts(1.0) < firsts(5.0)


def test_a_policy_without_more_lines_says_so(rules: Rules) -> None:
    def one(game: Game) -> list[tuple[int, float]]:
        return [(int(game.legal_moves()[0]), 1.0)]

    with pytest.raises(DataError, match="only 1 different line;"):
        list(policy_lines(rules, one, 5, plies=(3.0, 0.0)))
