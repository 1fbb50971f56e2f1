"""Keeping the graph between moves, and giving back what cannot be reached."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graph_walk import reachable

from variant_ai.core.rules.game import Game
from variant_ai.core.search.limits import Limits
from variant_ai.core.search.nodes import IDLE, USED, block_cells, bytes_used, node_cells
from variant_ai.core.search.search import Search

MakeSearch = Callable[..., Search]


def cells_of(search: Search) -> int:
    """Cells of all nodes that the root reaches."""
    g, total = search.tree.arrays, 0
    for node in reachable(search):
        record = g.nodes[node]
        total += int(node_cells(int(record["count"])))
        total += int(block_cells(int(record["opened"])))
    return total


@pytest.mark.parametrize("transpositions", [True, False])
def test_what_is_below_the_new_root_is_kept(make_search: MakeSearch, transpositions: bool) -> None:
    search = make_search("crazyhouse", transpositions=transpositions)
    search.run(Limits(simulations=4000))
    root = search.tree.edges(search.tree.root)
    best = int(root.visits.argmax())
    child = int(root.children[best])
    before = search.tree.edges(child)
    search.advance(int(root.moves[best]))
    assert search.tree.root == child
    after = search.tree.edges(search.tree.root)
    for name in ("moves", "priors", "visits", "q", "mates"):
        assert np.array_equal(getattr(before, name), getattr(after, name)), name
    report = search.report()
    assert report.lines[0].visits == before.visits.max()


def test_the_rest_is_given_back(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse")
    search.run(Limits(simulations=4000))
    search.advance(search.report().lines[0].move)
    live = len(reachable(search))
    assert search.tree.counter("node_count") > live
    slices = 0
    while search.tree.reclaim(100):
        slices += 1
    assert slices > 10
    assert int(search.tree.arrays.state[0]["phase"]) == IDLE
    assert search.tree.counter("node_count") == live
    assert search.tree.counter("cells") == cells_of(search)
    report = search.run(Limits(simulations=2000))
    assert report.visits == 2000
    assert search.tree.counter("cells") == cells_of(search)


def test_searching_on_while_memory_is_given_back(make_search: MakeSearch) -> None:
    """New nodes, and old ones met again, survive a marking that is under way."""
    search = make_search("crazyhouse", net="random", batch_size=4)
    for _ in range(3):
        report = search.run(Limits(simulations=400))
        search.advance(report.best or 0)
        while search.tree.reclaim(40):  # between slices a little search each
            search.run(Limits(simulations=8))
        assert search.tree.counter("node_count") == len(reachable(search))
        assert search.tree.counter("cells") == cells_of(search)


def test_free_neighbours_are_joined(make_search: MakeSearch) -> None:
    """Blocks of nodes with few moves become room for nodes with many."""
    search = make_search("crazyhouse")
    search.run(Limits(simulations=3000))
    search.advance(search.report().lines[0].move)
    search.tree.finish_reclaim()
    g = search.tree.arrays
    state, block, free, used, last_was_free = g.state[0], 1, 0, 0, False
    while block < int(state["cell_top"]):
        size = int(g.blocks[block])
        is_free = not size & USED
        assert not (is_free and last_was_free and size < 300)
        free, used = (free + size, used) if is_free else (free, used + (size & ~USED))
        block, last_was_free = block + (size & ~USED), is_free
    assert block == int(state["cell_top"])
    assert used == int(state["cells"])


def test_two_moves_on(make_search: MakeSearch) -> None:
    search = make_search("xiangqi")
    report = search.run(Limits(simulations=3000))
    line = report.lines[0].pv[:2]
    game = Game(search.rules)
    for move in line:
        game.push(move)
    search.set_game(game)
    assert search.report().lines[0].visits > 0


def test_a_game_that_is_played_on_is_the_same_one(make_search: MakeSearch) -> None:
    """As an engine's table does: the game that was set gets further moves. Without a table of
    positions, the tree has only the moves to go by."""
    search = make_search("crazyhouse", transpositions=False)
    game = Game(search.rules)
    search.set_game(game)
    search.run(Limits(simulations=2000))
    root = search.tree.edges(search.tree.root)
    best = int(root.visits.argmax())
    child = int(root.children[best])
    game.push(int(root.moves[best]))
    search.set_game(game)
    assert search.tree.root == child


def test_another_position_starts_anew(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse")
    search.run(Limits(simulations=500))
    other = "r1bqkb1r/pppp1ppp/2n2n2/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R[] w KQkq - 4 4"
    search.set_game(Game(search.rules, other))
    assert search.tree.counter("node_count") == 1
    assert search.report().lines[0].visits == 0


def test_the_same_position_with_another_ply_is_another(make_search: MakeSearch) -> None:
    """The network sees the move number, so nothing may be shared."""
    search = make_search("crazyhouse")
    search.run(Limits(simulations=500))
    start = search.spec.rules.start.rsplit(" ", 1)[0]
    search.set_game(Game(search.rules, f"{start} 7"))
    assert search.tree.counter("node_count") == 1


def test_reuse_can_be_turned_off(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", reuse_tree=False)
    report = search.run(Limits(simulations=500))
    search.advance(report.best or 0)
    assert search.tree.counter("node_count") == 1


def test_a_full_tree_still_answers(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", memory_mb=1)
    report = search.run(Limits(simulations=1_000_000))
    assert report.stopped_by == "memory"
    assert report.best in search.game.legal_moves()
    assert report.hashfull > 950
    assert bytes_used(search.tree.arrays) <= 1 << 20
    search.advance(report.best or 0)
    report = search.run(Limits(simulations=1000))
    assert report.visits == 1000  # the rest was given back


def test_memory_for_ten_nodes(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random")
    search.tree.arrays.state[0]["cell_limit"] = 10
    search.clear()
    report = search.run(Limits(simulations=1000))
    assert report.stopped_by == "memory"
    assert report.best in search.game.legal_moves()
    assert report.tree_nodes >= 10
