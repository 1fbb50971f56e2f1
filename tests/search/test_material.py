"""Material that a search of the rules finds at leaves: as a plain minimax of the same rules has it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from graph_walk import children, reachable

from variant_ai.core.errors import VariantAIError
from variant_ai.core.inference.backends.netless_backends import MaterialEvaluator
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.piece_values import capture_gains
from variant_ai.core.rules.position import (
    DROP,
    EN_PASSANT,
    Position,
    move_kind,
    move_origin,
    move_target,
)
from variant_ai.core.search.compiled_settings import gain_of
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.look_ahead.material import (
    MOST,
    SPREAD,
    gain_by_captures,
    with_gain,
)
from variant_ai.core.search.tree.nodes import OPEN
from variant_ai.plugins import registry

MakeSearch = Callable[..., Search]

GAINS = {
    "xiangqi": {"R": 0.5, "C": 0.25, "N": 0.2, "A": 0.1, "B": 0.1, "P": 0.05},
    "crazyhouse": {"P": 0.2, "N": 0.3, "B": 0.3, "R": 0.4, "Q": 0.7},
    "chess": {"P": 0.1, "N": 0.3, "B": 0.3, "R": 0.5, "Q": 0.9},
}
UNLIMITED = 1_000_000


def gain_by_rules(
    rules: Rules, position: Position, gain: dict[int, float], low: float = -MOST, high: float = MOST
) -> float:
    """Return the gain by its definition, with the plainest cut: both sides capture or stop, and leave out
    captures by a better piece that can be captured back."""
    best = 0.0
    if best >= high:
        return best
    for move in rules.legal_moves(position).tolist():
        won = captured(position, move, gain)
        if won > 0:
            after = rules.play(position, move)
            mover = gain[(int(position["board"][0][move_origin(move)]) - 1) & 31]
            if won < mover and captures_back(rules, after, move_target(move)):
                continue
            below = gain_by_rules(rules, after, gain, won - high, won - max(low, best))
            best = max(best, won - below)
        if best >= high:
            break
    return best


def captures_back(rules: Rules, position: Position, square: int) -> bool:
    """Return True if the king could legally capture on the square, or another piece if it were not pinned."""
    us = int(position["side"][0])
    king = int(position["kings"][0, us])
    free = position.copy()
    free["kings"][0, us] = -1
    to_square = [
        (move_origin(move) == king, p is position)
        for p in (position, free)
        for move in rules.legal_moves(p).tolist()
        if move_target(move) == square and move_kind(move) != DROP
    ]
    return (True, True) in to_square or (False, False) in to_square


def captured(position: Position, move: int, gain: dict[int, float]) -> float:
    """Return the gain of what a move captures."""
    if move_kind(move) == DROP:
        return 0.0
    square = move_origin(move) if move_kind(move) == EN_PASSANT else move_target(move)
    piece = int(position["board"][0][square])
    return gain[(piece - 1) & 31] if piece else 0.0


def searched(search: Search, position: Position) -> float:
    """Return `gain_by_captures` of a position."""
    tree = search.tree
    line = np.zeros(40, position.dtype)
    line[0] = position[0]
    descent = tree.descent._replace(line=line)
    tree.scratch.material.used[0] = 0
    return float(
        gain_by_captures(tree.tables, tree.settings, descent, tree.scratch, 0, 0, -MOST, MOST)
    )


@pytest.mark.parametrize("variant", list(GAINS))
def test_the_gain_is_that_of_a_plain_search(make_search: MakeSearch, variant: str) -> None:
    search = make_search(variant, piece_gains=GAINS[variant], material_positions=UNLIMITED)
    rules = search.rules
    gain = {t.index: gain_of(rules.spec, t, GAINS[variant]) for t in rules.types.all}
    rng = random.Random(0)
    found = []
    while len(found) < 30:
        position = rules.position()
        for _ in range(rng.randrange(4, 30 if variant == "xiangqi" else 14)):
            if rules.outcome(position) is not None:
                break
            position = rules.play(position, rng.choice(rules.legal_moves(position).tolist()))
        if rules.outcome(position) is not None:
            continue
        found.append(searched(search, position))
        plain = gain_by_rules(rules, position, gain)
        assert found[-1] == pytest.approx(plain, abs=1e-9), rules.fen(position)
    assert len({round(gain, 3) for gain in found}) >= 3


@pytest.mark.parametrize(
    ("fen", "gain"),
    [
        ("3k5/9/9/r8/9/9/9/R8/9/4K4 w - - 0 1", 0.5),
        ("3k5/9/r8/r8/9/9/9/R8/9/4K4 w - - 0 1", 0.0),  # protected
        ("3k5/9/9/c8/9/9/9/9/R8/4K4 b - - 0 1", 0.0),  # only the other side could capture
        (
            "3k5/9/9/3c5/9/9/9/3R5/9/4K4 w - - 0 1",
            0.25,
        ),  # a king that faces it does not capture back
        ("3k5/3c5/9/9/9/9/9/3R5/9/4K4 w - - 0 1", 0.0),  # the king captures back
        ("3k5/3c5/9/9/9/9/9/3R5/3R5/4K4 w - - 0 1", 0.25),  # it may not
    ],
)
def test_hanging_pieces(make_search: MakeSearch, fen: str, gain: float) -> None:
    search = make_search("xiangqi", fen, piece_gains=GAINS["xiangqi"])
    assert searched(search, search.game.position) == gain


def test_leaves_get_the_gains_in_value_and_priors(make_search: MakeSearch) -> None:
    """Without gains the search is unchanged; with them each node has both."""
    plain = make_search("xiangqi", net="random", look_for_material=False)
    same = make_search("xiangqi", net="random", piece_gains={})
    short = make_search("xiangqi", net="random", piece_gains=GAINS["xiangqi"], material_positions=1)
    adds = make_search(
        "xiangqi",
        net="random",
        piece_gains=GAINS["xiangqi"],
        material_prior=5.0,
        enhance_checks=False,
    )
    for search in (plain, same, short, adds):
        search.run(Limits(simulations=300))
    first, *others = (replace(search.report(3), seconds=0.0) for search in (plain, same, short))
    assert others == [first, first], "no gains, or too few positions for any"
    rules, encoder = adds.rules, adds.encoder
    gain_of_type = {t.index: gain_of(rules.spec, t, GAINS["xiangqi"]) for t in rules.types.all}
    positions = {adds.tree.root: adds.game.position}
    changed = 0
    for node in reachable(adds):
        record, position = adds.tree.arrays.nodes[node], positions[node]
        for move, child in children(adds, node):
            positions.setdefault(child, rules.play(position, move))
        if record["state"] != OPEN:
            continue
        edges = adds.tree.edges(node)
        moves = edges.moves.tolist()
        gains = np.array(
            [
                captured(position, move, gain_of_type) - searched(adds, rules.play(position, move))
                for move in moves
            ]
        )
        gain = gains.max()
        changed += gain != 0
        answer = adds.evaluators[0].evaluate(encoder.planes(position)[None])
        assert record["value"] == pytest.approx(with_gain(float(answer.value[0]), gain), abs=1e-5)
        logits = answer.policy[0][encoder.action_indices(position, moves)]
        weights = np.exp(logits / adds.params.node_temperature + 5.0 * gains)
        exact = gains > gain - SPREAD + 1e-6
        known = edges.priors[exact] / edges.priors[exact].sum()
        assert known == pytest.approx(weights[exact] / weights[exact].sum(), rel=1e-2)
        assert (edges.priors[~exact] <= edges.priors[exact].max()).all()
    assert changed > 20


@pytest.mark.parametrize(
    ("gains", "message"),
    [({"R": -1}, "R = -1"), ({"R": math.nan}, "nan"), ({"Z": 1}, "unknown piece 'Z'")],
)
def test_gains_that_make_no_sense(
    make_search: MakeSearch, gains: dict[str, float], message: str
) -> None:
    with pytest.raises(VariantAIError, match=message):
        make_search("xiangqi", piece_gains=gains)


def test_a_gain_moves_a_value_but_never_proves_it() -> None:
    assert with_gain(0.3, 0.0) == 0.3
    assert with_gain(0.0, 0.5) == pytest.approx(math.tanh(0.5))
    assert -1 < with_gain(-1.0, -MOST) < with_gain(-1.0, MOST) < with_gain(1.0, MOST) < 1
    assert math.isnan(with_gain(math.nan, 1.0))


def test_gains_by_the_mobility_of_pieces(make_search: MakeSearch) -> None:
    """A share of the values of pieces, for nets; a spec's own gains override it, the evaluator that counts
    pieces keeps its values, and where captures explode or are forced nothing is gained."""
    values = capture_gains(registry().variant("chess"))
    half = {piece: 0.5 * value for piece, value in values.items()}
    assert make_search("chess", net="random", piece_gain_share=0.5).params.piece_gains == half
    assert make_search("chess", net="random", piece_gain_share=0.0).params.piece_gains == {}
    given = make_search("chess", net="random", piece_gain_share=0.5, piece_gains={"Q": 1.0})
    assert given.params.piece_gains == {"Q": 1.0}
    for variant in ("antichess", "atomic"):
        search = make_search(variant, net="random", piece_gain_share=0.5)
        assert search.params.piece_gains == {}
    counting = SearchParams(piece_gain_share=0.5).fitted_to(
        MaterialEvaluator(registry().variant("chess")), registry().variant("chess")
    )
    assert counting.piece_gains == values
