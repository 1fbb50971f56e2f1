"""The evaluator that counts pieces."""

from __future__ import annotations

import numpy as np
import pytest

import variant_ai
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import VariantAIError
from variant_ai.core.inference import make_evaluator
from variant_ai.core.inference.backends.netless_backends import MaterialEvaluator
from variant_ai.core.inference.choosing.evaluator_factory import best_without_net
from variant_ai.core.rules.piece_values import piece_values, square_values
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.plugins import registry


def value_of(variant: str, fen: str) -> float:
    spec = load_spec(builtin_specs()[variant])
    position = registry().rules(spec).position(fen)
    answer = MaterialEvaluator(spec).evaluate(Encoder(spec).planes(position)[None])
    assert not answer.policy.any()
    return float(answer.value[0])


def test_the_value_is_the_balance_on_the_board_and_in_the_hands() -> None:
    spec = load_spec(builtin_specs()["crazyhouse"])
    held, placed = piece_values(spec), square_values(spec)
    d1, d2 = 3, 11  # the queen on d7 is on d2 as its owner sees the board
    balance = placed["N"][d1] + placed["R"][d2] - placed["Q"][d2] + held["N"] - 3 * held["P"]
    value = balance / (1 + abs(balance))
    fen = "4k3/3q4/8/8/8/8/3R4/3NK3[Nppp] {} - - 0 1"
    assert value_of("crazyhouse", fen.format("w")) == pytest.approx(value, abs=1e-6)
    assert value_of("crazyhouse", fen.format("b")) == pytest.approx(-value, abs=1e-6)


@pytest.mark.parametrize("variant", sorted({*builtin_specs()} - {"horde"}))
def test_start_positions_of_equal_sides_are_even(variant: str) -> None:
    start = load_spec(builtin_specs()[variant]).rules.start
    assert value_of(variant, start) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("variant", "fen", "move"),
    [
        ("chess", "4k3/8/3q4/8/8/3R4/8/4K3 w - - 0 1", "d3d6"),
        ("shogi", "4k4/9/9/4r4/9/4R4/9/9/4K4[-] w 0 1", "e4e6"),
    ],
)
def test_the_search_takes_what_hangs(variant: str, fen: str, move: str) -> None:
    with variant_ai.Engine(variant, evaluator="material", threads=1, batch_size=8) as engine:
        best = engine.analyse(variant_ai.Position(variant, fen), nodes=200).lines[0].move
    assert best.rstrip("+") == move


def test_a_protected_piece_is_left_alone() -> None:
    fen = "4k3/2p5/3p4/8/8/3R4/8/4K3 w - - 0 1"
    with variant_ai.Engine("chess", evaluator="material", threads=1, batch_size=8) as engine:
        analysis = engine.analyse(variant_ai.Position("chess", fen), nodes=400)
    assert analysis.lines[0].move != "d3d6"


def test_planes_of_a_plugin_are_refused_with_the_evaluator_that_works() -> None:
    spec = load_spec(builtin_specs()["chess"])
    other = spec.model_copy(update={"encoder": spec.encoder.model_copy(update={"input": "others"})})
    assert best_without_net(other)[0] == "uniform"
    assert best_without_net(spec)[0] == "material"
    with pytest.raises(VariantAIError, match=r"'others'; use the evaluator 'uniform'"):
        MaterialEvaluator(other)


def test_it_is_made_by_name() -> None:
    spec = load_spec(builtin_specs()["chess"])
    with make_evaluator(spec, None, evaluator="material") as evaluator:
        planes = np.zeros((3, *evaluator.planes_shape), np.float32)
        answer = evaluator.evaluate(planes)
    assert answer.value.tolist() == [0, 0, 0]
    assert answer.policy.shape == (3, evaluator.actions)
