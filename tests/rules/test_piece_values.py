"""Values of pieces from how far they move."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np
import pytest

from variant_ai.core.rules.geometry import Geometry
from variant_ai.core.rules.piece_values import (
    DECISIVE,
    capture_gains,
    mobility,
    piece_values,
    square_values,
    unwanted_letters,
)
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.core.spec.rule_words import Win


def spec_of(name: str) -> VariantSpec:
    return load_spec(builtin_specs()[name])


def moves_of(name: str, letter: str) -> float:
    spec = spec_of(name)
    return fmean(mobility(Geometry(spec), PieceTypes(spec).by_symbol[letter]).values())


@pytest.mark.parametrize("name", list(builtin_specs()))
def test_every_piece_has_a_value(name: str) -> None:
    values = piece_values(spec_of(name))
    assert set(values) == set(spec_of(name).pieces)
    assert all(math.isfinite(value) for value in values.values())
    assert sum(value != 0 for value in values.values()) >= 4


def test_mobility_by_hand() -> None:
    """A knight of chess has 336 moves on the empty board, each possible unless an own piece is there."""
    assert moves_of("chess", "N") == pytest.approx(336 / 64 * 7 / 8)
    assert moves_of("chess", "K") == pytest.approx(420 / 64 * 7 / 8)
    # xiangqi's horse: each of its 508 moves needs a free leg too
    assert moves_of("xiangqi", "N") == pytest.approx(508 / 90 * 7 / 8 * 3 / 4)
    assert moves_of("xiangqi", "A") == pytest.approx(16 / 9 * 7 / 8), (
        "of nine squares of the palace"
    )


def test_known_orders() -> None:
    chess = piece_values(spec_of("chess"))
    assert chess["K"] == 0
    assert 3 * chess["P"] > chess["N"] > 2 * chess["P"]
    assert chess["N"] < chess["B"] < chess["R"] < chess["Q"] < chess["R"] + chess["B"]
    shogi = piece_values(spec_of("shogi"))
    assert shogi["P"] < shogi["L"] < shogi["S"] < shogi["G"] < shogi["B"] < shogi["R"]
    assert shogi["+R"] > shogi["R"] and shogi["+P"] == shogi["G"]


def test_a_square_adds_what_can_be_reached_from_it() -> None:
    spec = spec_of("chess")
    values, on_squares = piece_values(spec), square_values(spec)
    for letter, value in values.items():
        assert on_squares[letter].mean() == pytest.approx(value), letter
    knight, pawn = on_squares["N"].reshape(8, 8), on_squares["P"].reshape(8, 8)
    assert knight[0, 0] < knight[0, 3] < knight[3, 3]
    assert pawn[2, 3] < pawn[3, 3] < pawn[5, 3] < pawn[6, 3], "on rank 2 it has a double step"
    assert not on_squares["K"].any(), "a king is not safer where it moves farther"
    guard = square_values(spec_of("janggi"))["A"]
    assert len(set(np.round(guard, 6))) > 1


def test_what_decides_and_what_is_better_lost() -> None:
    assert piece_values(spec_of("dobutsu"))["L"] == DECISIVE
    antichess = spec_of("antichess")
    assert unwanted_letters(antichess) and not capture_gains(antichess)
    assert all(value < 0 for value in piece_values(antichess).values())
    assert not unwanted_letters(spec_of("horde"))
    assert not capture_gains(spec_of("atomic")), "captures explode"


def test_gains_count_both_changes_of_the_balance() -> None:
    """Where captures go into the hand, one side loses a piece and the other gets it."""
    chess, crazyhouse = spec_of("chess"), spec_of("crazyhouse")
    assert capture_gains(chess) == piece_values(chess)
    assert capture_gains(crazyhouse)["R"] == 2 * piece_values(crazyhouse)["R"]


def test_the_gains_of_a_spec_are_its_values() -> None:
    xiangqi = spec_of("xiangqi")
    assert xiangqi.search.piece_gains
    values = piece_values(xiangqi)
    assert {letter: values[letter] for letter in xiangqi.search.piece_gains} == dict(
        xiangqi.search.piece_gains
    )


def test_a_piece_whose_moves_the_kernel_cannot_list_has_a_value_too() -> None:
    """A ride that leaves its zone and comes back needs `engine: fairy`; its other moves count."""
    chess = spec_of("chess")
    split = chess.pieces["R"].model_copy(update={"within": ("a1", "a2", "b1", "d1")})
    spec = chess.model_copy(update={"pieces": {**chess.pieces, "R": split}})
    assert 0 < piece_values(spec)["R"] < piece_values(chess)["R"]


@pytest.mark.parametrize("name", list(builtin_specs()))
def test_the_gains_are_settings_of_a_search(name: str) -> None:
    gains = capture_gains(spec_of(name))
    assert SearchParams.of(spec_of(name), piece_gains=gains).piece_gains == gains


def test_a_spec_says_gains_and_the_balance_counts_values() -> None:
    """In crazyhouse a capture changes the balance by two pieces; a piece without a gain has its usual value."""
    crazyhouse = spec_of("crazyhouse")
    words = crazyhouse.search.model_copy(update={"piece_gains": {"Q": 0.5}})
    spec = crazyhouse.model_copy(update={"search": words})
    assert piece_values(spec)["Q"] == 0.25
    assert piece_values(spec)["R"] == piece_values(crazyhouse)["R"]
    assert capture_gains(spec)["Q"] == 0.5


def test_forced_captures_have_no_gains() -> None:
    chess = spec_of("chess")
    rules = chess.rules.model_copy(update={"captures": "must"})
    assert not capture_gains(chess.model_copy(update={"rules": rules}))


def test_one_of_many_pieces_decides_nothing() -> None:
    chess = spec_of("chess")
    wins = tuple(Win(extinct=letter) for letter in ("P", "Q"))
    spec = chess.model_copy(update={"rules": chess.rules.model_copy(update={"wins": wins})})
    values = piece_values(spec)
    assert values["Q"] == DECISIVE and values["P"] == piece_values(chess)["P"]
