"""Scattered starts: possible positions of every variant, as Fairy-Stockfish sees them too."""

from __future__ import annotations

import numpy as np
import pytest

from variant_ai.core.rules import make_rules
from variant_ai.core.rules.fairy.fairy_rules import FairyRules
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.position import piece_code
from variant_ai.core.rules.scattered_starts import ScatteredStarts
from variant_ai.core.spec import builtin_specs, load_spec


@pytest.mark.parametrize("name", sorted(builtin_specs()))
def test_scattered_positions_can_be_played(name: str) -> None:
    spec = load_spec(builtin_specs()[name])
    rules = make_rules(spec)
    starts, random = ScatteredStarts(rules), np.random.default_rng(7)
    fens = [fen for _ in range(12) if (fen := starts.sample(random)) is not None]
    assert len(set(fens)) == 12
    assert {fen.split()[1] for fen in fens} == {"w", "b"}
    judge = FairyVariant(spec.fairy) if spec.fairy else None
    for fen in fens:
        game = Game(rules, fen)
        assert rules.fen(game.position) == fen
        assert not rules.in_check(game.position)
        moves = {rules.uci(move) for move in game.legal_moves()}
        assert moves
        if judge is not None and spec.rules.shuffle == "none":
            assert moves == set(judge.legal_moves(fen)), fen


def test_rules_that_are_not_compiled() -> None:
    spec = load_spec(builtin_specs()["minixiangqi"])
    kernel, slow = make_rules(spec), FairyRules(spec)
    starts, random = ScatteredStarts(slow), np.random.default_rng(3)
    fens = {starts.sample(random) for _ in range(6)}
    assert len(fens) == 6 and all(fen and kernel.position(fen)["kings"].min() >= 0 for fen in fens)


def test_the_same_random_numbers_give_the_same_position() -> None:
    starts = ScatteredStarts(make_rules(load_spec(builtin_specs()["crazyhouse"])))
    one, other = (starts.sample(np.random.default_rng(5)) for _ in range(2))
    assert one == other


def test_pieces_stand_where_they_can_come_to() -> None:
    """An elephant has seven squares, a pawn of xiangqi none behind its first rank."""
    rules = make_rules(load_spec(builtin_specs()["xiangqi"]))
    starts, random = ScatteredStarts(rules), np.random.default_rng(2)
    boards = [rules.position(starts.sample(random))[0]["board"] for _ in range(60)]
    types = starts.types.by_symbol
    elephants = {
        s for b in boards for s in np.flatnonzero(b == piece_code(types["B"].index, 0)).tolist()
    }
    pawns = {
        s for b in boards for s in np.flatnonzero(b == piece_code(types["P"].index, 0)).tolist()
    }
    assert elephants == {2, 6, 18, 22, 26, 38, 42}
    assert min(pawns) == 27


def test_pieces_that_are_missing_are_in_a_hand() -> None:
    rules = make_rules(load_spec(builtin_specs()["minishogi"]))
    starts, random = ScatteredStarts(rules), np.random.default_rng(1)
    for _ in range(20):
        position = rules.position(starts.sample(random))[0]
        assert np.count_nonzero(position["board"]) + position["hands"].sum() == 12
