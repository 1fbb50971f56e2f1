"""Counts of visits near their maximum. They are set by hand, because a search would need minutes to
reach them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from graph_walk import reachable

from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.tree.backup import back_up
from variant_ai.core.search.tree.descent import visit_cycle
from variant_ai.core.search.tree.game_tree import FULL_COUNT, Tree
from variant_ai.core.search.tree.nodes import CELL, MAX_VISITS, NODE, REPEATS, cells_of

MakeSearch = Callable[..., Search]
KINGS = "8/8/8/p7/P1k5/8/2K5/8 w - - 0 80"


def visit(tree: Tree, node: int, visits: int) -> None:
    """Add visits to the most visited edge of a node."""
    record = tree.arrays.nodes[node]
    first, opened = int(record["slots"]), int(record["opened"])
    slots = tree.arrays.slots[first : first + opened]
    best = int(slots["visits"].argmax())
    slots[best]["visits"] += visits
    record["visits"] += visits


def test_counts_stop_at_the_greatest(make_search: MakeSearch) -> None:
    """An inner node may have more visits than the root, through its other parents."""
    search = make_search("crazyhouse", transpositions=False)
    only = [int(search.game.legal_moves()[0])]
    search.run(Limits(simulations=200), moves=only)
    tree = search.tree
    child = int(tree.edges(tree.root).children[0])
    visit(tree, child, MAX_VISITS - 100 - int(tree.arrays.nodes[child]["visits"]))
    report = search.run(Limits(simulations=500), moves=only)
    assert report.visits == 500
    assert tree.visits_at_root() == 700
    assert tree.arrays.nodes[child]["visits"] == MAX_VISITS
    edges = tree.edges(child)
    assert edges.visits.min() >= 0 and edges.visits.max() > MAX_VISITS - 500
    assert abs(report.lines[0].q) <= 1


def test_an_edge_that_repeats_counts_no_further(make_search: MakeSearch) -> None:
    search = make_search("chess", KINGS)
    search.run(Limits(simulations=3000))
    tree = search.tree
    g = tree.arrays
    node, edge = next(
        (node, edge)
        for node in reachable(search)
        for edge in range(int(g.nodes[node]["opened"]))
        if int(g.slots[int(g.nodes[node]["slots"]) + edge]["flags"]) & REPEATS
    )
    index = np.int64(int(g.nodes[node]["slots"]) + edge)
    slot = g.slots[index]
    repeat = g.repeats[int(slot["repeat"])]
    slot["visits"] = repeat["visits"] = MAX_VISITS - 2
    repeat["sum"], repeat["draws"] = 0.0, MAX_VISITS - 2.0
    path = np.array([[[node], [edge]]], np.int32)
    for _ in range(5):
        assert visit_cycle(g, np.int64(node), index, np.int64(0))
        back_up(g, tree.settings, path, np.int64(0), np.int64(1), 0.0, 1.0, np.int64(0))
    assert slot["visits"] == repeat["visits"] == repeat["draws"] == MAX_VISITS
    assert g.nodes[node]["visits"] == MAX_VISITS
    assert tree.edges(node).q[edge] == 0


@pytest.mark.parametrize("net", ["uniform", "random"])
def test_a_search_ends_where_its_counts_are_full(make_search: MakeSearch, net: str) -> None:
    search = make_search("crazyhouse", net=net)
    search.run(Limits(simulations=500))
    visit(search.tree, search.tree.root, FULL_COUNT - 1000)
    report = search.run(Limits(simulations=200_000, movetime=60))
    assert report.stopped_by == "counts"
    assert 0 < report.visits < 200_000
    assert FULL_COUNT <= search.tree.visits_at_root() < MAX_VISITS
    again = search.run(Limits(simulations=100))
    assert (again.stopped_by, again.visits, again.best) == ("counts", 0, report.best)
    search.advance(again.best)
    assert search.game.ply == 1


def test_full_counts_wait_for_stop(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse")
    search.run(Limits(simulations=500))
    visit(search.tree, search.tree.root, FULL_COUNT)
    ended: list[str] = []
    timer = threading.Timer(0.2, search.stop)
    timer.start()
    report = search.run(
        Limits(infinite=True), on_report=lambda report: ended.append(report.stopped_by), interval=60
    )
    assert (ended, report.stopped_by) == (["counts"], "stop")
    assert report.best in search.game.legal_moves()


def test_slots_have_a_number_however_much_memory_there_is() -> None:
    cells = cells_of(1 << 40)
    assert 4 * cells + 3 <= np.iinfo(NODE["slots"]).max
    assert cells * CELL > 31 << 30
    assert cells_of(1 << 30) < (1 << 30) // CELL
