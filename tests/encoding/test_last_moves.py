"""Planes of the last moves: `last_moves` in a spec's input."""

from __future__ import annotations

import random

import numpy as np
import pytest
from encoding_games import spec_of

from variant_ai.core.encoding import Encoder
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import DROP, Position, move_kind, move_origin, move_target
from variant_ai.core.search.tree.transpositions import counters_read, node_key
from variant_ai.core.spec import VariantSpec
from variant_ai.core.spec.zones import seen_by
from variant_ai.testing import check_encoder

VARIANTS = ("crazyhouse", "xiangqi", "shogi", "chess")


def seeing(name: str, moves: int, *, first: bool = False) -> VariantSpec:
    """Built-in spec with planes of the last moves, before or after the others."""
    data = spec_of(name).model_dump(by_alias=True)
    item = ({"last_moves": moves},)
    data["input"] = item + data["input"] if first else data["input"] + item
    return VariantSpec.model_validate(data)


def random_game(rules: Rules, plies: int, seed: int) -> tuple[list[Position], list[int]]:
    rng = random.Random(seed)
    positions, moves = [rules.position()], []
    while len(moves) < plies:
        legal = rules.legal_moves(positions[-1]).tolist()
        if not legal:
            break
        moves.append(rng.choice([m for m in legal if move_kind(m) == DROP] or legal))
        positions.append(rules.play(positions[-1], moves[-1]))
    return positions, moves


def expected(spec: VariantSpec, side: int, moves: list[int], count: int) -> np.ndarray:
    board = spec.board
    planes = np.zeros((2 * count, board.ranks * board.files), np.float32)

    def seen(square: int) -> int:
        return seen_by(square, side, board)

    for k, move in enumerate(reversed(moves[-count:])):
        if move_kind(move) != DROP:
            planes[2 * k, seen(move_origin(move))] = 1
        planes[2 * k + 1, seen(move_target(move))] = 1
    return planes.reshape(-1, board.ranks, board.files)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize("name", VARIANTS)
def test_planes_show_where_the_last_moves_came_from_and_went(
    name: str, count: int, first: bool
) -> None:
    spec = seeing(name, count, first=first)
    rules, encoder = make_rules(spec), Encoder(spec)
    plain = Encoder(spec_of(name))
    assert encoder.shape[0] == plain.shape[0] + 2 * count
    drops = 0
    for seed in range(3):
        positions, moves = random_game(rules, 80, seed)
        drops += sum(move_kind(move) == DROP for move in moves)
        for ply, position in enumerate(positions):
            planes = encoder.planes(position)[0]
            last, others = planes[-2 * count :], planes[: -2 * count]
            if first:
                last, others = planes[: 2 * count], planes[2 * count :]
            wanted = expected(spec, int(position[0]["side"]), moves[:ply], count)
            assert np.array_equal(last, wanted)
            assert np.array_equal(others, plain.planes(position)[0])
    assert bool(drops) == (spec.hands is not None)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_conformance_kit_passes(name: str) -> None:
    report = check_encoder(seeing(name, 2), 300, seed=3)
    assert report.agrees, report.first_difference
    assert report.counts["views of the other player"]


@pytest.mark.parametrize("name", ["crazyhouse", "xiangqi"])
def test_fairy_stockfish_remembers_the_same(name: str) -> None:
    spec = seeing(name, 3)
    kernel, fairy = make_rules(spec), make_rules(spec, "fairy")
    positions, moves = random_game(kernel, 25, seed=5)
    there = fairy.position()
    for position, move in zip(positions[1:], moves, strict=True):
        there = fairy.play(there, move)
        assert there[0]["last_moves"].tolist() == position[0]["last_moves"].tolist()


def test_a_variant_without_these_planes_stores_no_moves() -> None:
    positions, _ = random_game(make_rules(spec_of("crazyhouse")), 10, seed=0)
    assert not any(position["last_moves"].any() for position in positions)


def test_nodes_are_shared_only_where_the_net_sees_the_same() -> None:
    """Two orders of the same four moves, with the same last one: one node, unless the net uses the
    move before it."""
    orders = (["h3e3", "h8e8", "b1c3", "b10c8"], ["b1c3", "h8e8", "h3e3", "b10c8"])
    for count, shared in ((0, True), (1, True), (2, False)):
        spec = spec_of("xiangqi") if count == 0 else seeing("xiangqi", count)
        rules = make_rules(spec)
        keys = []
        for order in orders:
            position = Game.from_uci(rules, None, order).position
            keys.append(node_key(position, 0, np.int64(counters_read(spec))))
        assert (keys[0] == keys[1]) == shared


@pytest.mark.parametrize("count", [0, 9, "all"])
def test_a_count_that_does_not_fit(count: object) -> None:
    with pytest.raises(ValueError, match="last_moves"):
        seeing("xiangqi", count)  # type: ignore[arg-type]
