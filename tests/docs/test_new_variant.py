"""The variant that `docs/new-variant.md` makes is a variant: its rules, planes and mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from variant_ai.core.encoding import Encoder
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.specs import SpecError, parse_spec

PAGE = Path(__file__).parents[2] / "docs" / "new-variant.md"


def block(language: str, number: int = 0) -> str:
    """The n-th fenced block of a language on the page."""
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[number]


def test_its_rules_agree_with_the_judge() -> None:
    spec = parse_spec(block("yaml"))
    kernel, judge = make_rules(spec), make_rules(spec, "fairy")
    rng = np.random.default_rng(5)
    game = Game(kernel)
    for _ in range(60):
        if game.outcome() is not None:
            break
        moves = np.sort(kernel.legal_moves(game.position))
        np.testing.assert_array_equal(moves, np.sort(judge.legal_moves(game.position)))
        game.push(int(rng.choice(moves)))
    assert game.ply > 10


def test_its_net_has_the_planes_the_page_lists() -> None:
    encoder = Encoder(parse_spec(block("yaml")))
    assert encoder.shape == (5 + 5 + 2 + 3, 6, 6)


def test_the_mistake_shown_is_the_mistake_made() -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(block("yaml").replace("to: [N, R, Q]", "to: [B, R, Q]"), "losalamos.yaml")
    assert block("text").strip() == str(caught.value)
