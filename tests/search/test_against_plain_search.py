"""The compiled search against the plain one: the same tree, to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from plain_search import Node, PlainSearch

from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search

SHUFFLE = "h3e3 h8e8 e3h3 e8h8"
POSITIONS = [
    ("crazyhouse", None, "", {}),
    ("crazyhouse", "3k2r1/pBpr1p1p/Pp3p1B/3p4/2PPn2B/5NPp/q4PpP/1R1QR1K1[NNbp] w - - 1 23", "", {}),
    ("crazyhouse", "6k1/5ppp/8/8/8/8/5PPP/4R1K1[Qr] w - - 0 30", "", {"u_divisor": 0.5}),
    ("xiangqi", None, SHUFFLE, {}),
    ("xiangqi", "3k5/4P2N1/3Nb1c1b/8p/9/2B6/P7P/4B4/4A4/3AK4 w - - 0 1", "", {}),
    ("chess", "7k/8/5Q2/6K1/8/8/8/8 b - - 0 1", "", {}),
    ("crazyhouse", None, "", {"q_unvisited": "loss", "cpuct_init": 2.5}),
    ("dobutsu", None, "", {"q_unvisited": "draw"}),
    ("minixiangqi", None, "", {"enhance_checks": True, "u_divisor": "adaptive"}),
]


def compare(search: Search, index: int, node: Node, path: str = "") -> int:
    """Assert that two nodes and everything below them agree; returns the number of nodes."""
    record = search.tree.arrays.nodes[index]
    assert int(record["visits"]) == node.visits, path
    assert float(record["q"]) == node.q, path
    assert int(record["proof"]) == node.proof, path
    if node.proof:
        assert int(record["distance"]) == node.distance, path
    edges = search.tree.edges(index)
    assert edges.moves.tolist() == [edge.move for edge in node.edges], path
    assert edges.visits.tolist() == [edge.visits for edge in node.edges], path
    count = 1
    for edge, child, prior in zip(node.edges, edges.children, edges.priors, strict=True):
        assert prior == edge.prior
        if edge.child is not None:
            count += compare(search, int(child), edge.child, f"{path} {edge.move}")
        else:
            assert child == 0
    return count


@pytest.mark.parametrize("net", ["uniform", "random"])
@pytest.mark.parametrize(("variant", "fen", "moves", "params"), POSITIONS)
def test_the_tree_is_that_of_the_plain_search(
    make_search: Callable[..., Search],
    net: str,
    variant: str,
    fen: str | None,
    moves: str,
    params: dict[str, object],
) -> None:
    search = make_search(
        variant,
        fen,
        moves,
        net,
        batch_size=1,
        transpositions=False,
        look_for_mates=False,
        look_for_material=False,
        **params,
    )
    # the pipeline would fill the next batch while one is pending
    search.steps.max_pending = 1
    plain = PlainSearch(search.game, search.evaluators[0], search.params)
    plain.run(160)
    report = search.run(Limits(simulations=160))
    assert report.visits == plain.root.visits
    assert compare(search, search.tree.root, plain.root) == report.tree_nodes


def test_the_judge_knows_repetitions(make_search: Callable[..., Search]) -> None:
    """The comparison above would prove little if no cycle were closed."""
    search = make_search("xiangqi", None, SHUFFLE, look_for_mates=False, transpositions=False)
    plain = PlainSearch(search.game, search.evaluators[0], search.params)
    plain.run(160)
    todo, closed = [plain.root], 0
    while todo:
        node = todo.pop()
        closed += sum(edge.repeats for edge in node.edges)
        todo += [edge.child for edge in node.edges if edge.child is not None]
    assert closed > 0
    assert np.isfinite(plain.root.q)
