"""The variant that `docs/new-variant.md` makes is a variant: its rules, planes and mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import SpecError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.spec import builtin_specs, parse_spec
from variant_ai.core.spec.betza import UNSUPPORTED, parse_betza
from variant_ai.core.spec.rule_words import Piece, RuleWords

PAGE = Path(__file__).parents[2] / "docs" / "new-variant.md"


def block(language: str, number: int = 0) -> str:
    """The n-th fenced block of a language on the page."""
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[number]


def test_its_rules_agree_with_fairy_stockfish() -> None:
    spec = parse_spec(block("yaml"))
    kernel, fairy = make_rules(spec), make_rules(spec, "fairy")
    rng = np.random.default_rng(5)
    game = Game(kernel)
    for _ in range(60):
        if game.outcome() is not None:
            break
        moves = np.sort(kernel.legal_moves(game.position))
        np.testing.assert_array_equal(moves, np.sort(fairy.legal_moves(game.position)))
        game.push(int(rng.choice(moves)))
    assert game.ply > 10


def test_its_net_has_the_planes_the_page_lists() -> None:
    encoder = Encoder(parse_spec(block("yaml")))
    assert encoder.shape == (5 + 5 + 2 + 3, 6, 6)


def test_the_mistake_shown_is_the_mistake_made() -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(block("yaml").replace("to: [N, R, Q]", "to: [B, R, Q]"), "losalamos.yaml")
    assert block("text").strip() == str(caught.value)


@pytest.mark.parametrize(("model", "prefix"), [(Piece, "pieces.X"), (RuleWords, "rules")])
def test_every_word_of_pieces_and_rules_is_described(
    model: type[Piece | RuleWords], prefix: str
) -> None:
    described = set(
        re.findall(rf"^\| `{re.escape(prefix)}\.(\w+)` \|", PAGE.read_text("utf-8"), re.M)
    )
    assert described == {field.alias or name for name, field in model.model_fields.items()}


def rows(head: str) -> dict[str, str]:
    """First column -> second of the table whose first column is headed so."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition(f"| {head} |")[2].partition("\n\n")[0]
    return {cells[1]: cells[2] for line in table.splitlines()[2:] if (cells := line.split("|"))}


def test_the_betza_words_are_read() -> None:
    words = [word for row in rows("word") for word in re.findall(r"`(\S+)`", row)][:7]
    assert len(words) == 7
    riders = [row for row in rows("letters") if re.search(r"`(R4|WW)`", row)]
    for word in words + [w for row in riders for w in re.findall(r"`(\w+)`", row)]:
        assert parse_betza(word), word


def test_letters_described_as_rejected_are_rejected() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("Other dialects' letters (")[2]
    letters = re.findall(r"`(\w)`", text.partition(")")[0])
    assert set(letters) == set(UNSUPPORTED)
    for letter in letters:
        with pytest.raises(SpecError):
            parse_betza(f"{letter}W")


def test_the_double_step_is_that_of_chess() -> None:
    words = block("text", 1).strip().removesuffix(" promotes: ...}")
    assert words in builtin_specs()["chess"].read_text(encoding="utf-8")


def test_the_variant_of_a_variant_agrees_with_fairy_stockfish() -> None:
    spec = parse_spec(block("yaml", 1))
    assert (spec.variant, spec.board.files, spec.pieces["K"].royal) == ("hoppel", 8, True)
    kernel, fairy = make_rules(spec), make_rules(spec, "fairy")
    rng = np.random.default_rng(7)
    game = Game(kernel)
    while game.ply < 60 and game.outcome() is None:
        moves = np.sort(kernel.legal_moves(game.position))
        np.testing.assert_array_equal(moves, np.sort(fairy.legal_moves(game.position)))
        game.push(int(rng.choice(moves)))
    assert game.ply > 10
