"""Keeping the graph between moves, and freeing unreachable nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graph_walk import reachable

from variant_ai.core.rules.game import Game
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.tree.edges import edge_arrays
from variant_ai.core.search.tree.nodes import (
    IDLE,
    JOINING,
    USED,
    allocate_cells,
    block_cells,
    bytes_used,
    node_cells,
)

MakeSearch = Callable[..., Search]


def cells_of(search: Search) -> int:
    """Number of cells of all nodes that the root reaches."""
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


def test_unreachable_nodes_are_freed(make_search: MakeSearch) -> None:
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


def test_searching_on_while_memory_is_freed(make_search: MakeSearch) -> None:
    """New nodes, and old ones reached again, survive a marking that is going on."""
    search = make_search("crazyhouse", net="random", batch_size=4)
    for _ in range(3):
        report = search.run(Limits(simulations=400))
        search.advance(report.best or 0)
        while search.tree.reclaim(40):  # a short search between the slices
            search.run(Limits(simulations=8))
        assert search.tree.counter("node_count") == len(reachable(search))
        assert search.tree.counter("cells") == cells_of(search)


def test_room_that_is_made_at_once_is_room(make_search: MakeSearch) -> None:
    """A small graph is freed within one slice; the search then ended as if nothing had been freed."""
    search = make_search("crazyhouse")
    report = search.run(Limits(simulations=50))
    search.advance(report.best or 0)
    before = search.tree.counter("node_count")
    assert search.tree.make_room()
    assert search.tree.counter("node_count") == len(reachable(search)) < before
    assert not search.tree.make_room()


def test_free_neighbours_are_joined(make_search: MakeSearch) -> None:
    """Blocks of nodes with few moves are joined for nodes with many."""
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


def test_memory_freed_at_the_top_is_used_again_before_the_last_slice(
    make_search: MakeSearch,
) -> None:
    """Slices may end anywhere: also between giving the last free blocks back and the end of the joining."""
    search = make_search("crazyhouse")
    search.run(Limits(simulations=500))
    root = search.tree.edges(search.tree.root)
    search.advance(int(root.moves[root.visits.argmin()]))  # most of the memory becomes free
    given_back = False
    while search.tree.reclaim(1):
        g = search.tree.arrays
        state = g.state[0]
        if state["phase"] != JOINING or given_back:
            continue
        top = int(state["cell_top"])
        given_back = top <= int(state["swept"])
        if given_back:
            for size in (300, 200):
                allocate_cells(g, np.int64(size))
            assert int(state["swept"]) in block_starts(search)
    assert given_back
    assert int(search.tree.arrays.state[0]["phase"]) == IDLE


def block_starts(search: Search) -> list[int]:
    """Cells at which the blocks of a search's memory begin, and the end of the last one."""
    g, starts = search.tree.arrays, [1]
    while starts[-1] < int(g.state[0]["cell_top"]):
        starts.append(starts[-1] + (int(g.blocks[starts[-1]]) & ~USED))
    return starts


def test_two_moves_on(make_search: MakeSearch) -> None:
    search = make_search("xiangqi")
    report = search.run(Limits(simulations=3000))
    line = report.lines[0].pv[:2]
    game = Game(search.rules)
    for move in line:
        game.push(move)
    search.set_game(game)
    assert search.report().lines[0].visits > 0


def test_a_game_with_new_moves_is_the_same_one(make_search: MakeSearch) -> None:
    """Engines do this: moves are added to the game that was set. Without transpositions the tree
    can only follow the moves."""
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


def test_another_position_starts_a_new_graph(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse")
    search.run(Limits(simulations=500))
    other = "r1bqkb1r/pppp1ppp/2n2n2/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R[] w KQkq - 4 4"
    search.set_game(Game(search.rules, other))
    assert search.tree.counter("node_count") == 1
    assert search.report().lines[0].visits == 0


def test_the_same_position_with_another_ply_is_another(make_search: MakeSearch) -> None:
    """The network uses the move number, so no node may be shared."""
    search = make_search("crazyhouse")
    search.run(Limits(simulations=500))
    start = search.spec.rules.start.rsplit(" ", 1)[0]
    search.set_game(Game(search.rules, f"{start} 7"))
    assert search.tree.counter("node_count") == 1


HUNTED = "4k4/9/R8/4R4/9/4P4/9/9/9/4K4 b - - 0 1"
"""Two rooks chase a king; after these moves its position has already occurred twice."""
TWICE = "e10d10 e7b7 d10e10 b7e7 e10d10 e7b7 d10e10"


@pytest.mark.parametrize("transpositions", [True, False])
def test_a_proof_does_not_outlive_its_history(
    make_search: MakeSearch, transpositions: bool
) -> None:
    """The same position, but now the first move of the proven mate draws."""
    search = make_search("xiangqi", transpositions=transpositions)
    game = Game.from_uci(search.rules, HUNTED, TWICE.split())
    search.set_game(Game(search.rules, game.fen()))
    mate = search.run(Limits(simulations=5000)).best
    game.push(mate)
    outcome = game.outcome()
    assert outcome is not None and outcome.reason == "repetition"
    game.pop()
    search.set_game(game)
    assert not search.tree.solved
    report = search.run(Limits(simulations=5000))
    assert report.best != mate
    drawn = [line for line in search.report(100).lines if line.move == mate]
    assert [line.mate for line in drawn] == [None]


OPENING = "e2e4 d7d5 e4d5 d8d5 b1c3 d5a5"


def game_of(search: Search, moves: str, begun_at: int) -> Game:
    """Position after the moves, with the history from a ply on."""
    played = moves.split()
    fen = Game.from_uci(search.rules, None, played[:begun_at]).fen()
    return Game.from_uci(search.rules, fen, played[begun_at:])


@pytest.mark.parametrize(
    ("variant", "before", "after", "kept"),
    [
        ("chess", 0, 0, True),
        ("chess", 6, 6, True),
        ("chess", 0, 4, True),  # all since the capture
        ("chess", 4, 0, True),
        ("chess", 0, 6, False),
        ("chess", 6, 0, False),
        ("chess", 0, 5, False),
        ("crazyhouse", 0, 0, True),
        ("crazyhouse", 0, 4, False),  # captured pieces may return to the board
    ],
)
def test_the_same_position_with_another_past_is_another(
    make_search: MakeSearch, variant: str, before: int, after: int, kept: bool
) -> None:
    search = make_search(variant)
    search.set_game(game_of(search, OPENING, before))
    search.run(Limits(simulations=200))
    search.set_game(game_of(search, OPENING, after))
    assert (search.tree.visits_at_root() > 0) == kept


@pytest.mark.parametrize("begun_at", [0, 4, 6])
def test_a_game_is_sent_again_with_every_move(make_search: MakeSearch, begun_at: int) -> None:
    """Clients do this; some send only positions."""
    search = make_search("chess")
    search.set_game(game_of(search, OPENING, begun_at))
    report = search.run(Limits(simulations=2000))
    game = game_of(search, OPENING, begun_at)
    for move in report.lines[0].pv[:2]:
        game.push(move)
    search.set_game(game)
    assert search.tree.visits_at_root() > 0


def test_positions_without_moves_keep_the_graph(make_search: MakeSearch) -> None:
    """Some clients send no moves."""
    search = make_search("chess")
    game = game_of(search, OPENING, 6)
    search.set_game(game)
    for move in search.run(Limits(simulations=2000)).lines[0].pv[:2]:
        game.push(move)
    search.set_game(Game(search.rules, game.fen()))
    assert search.tree.visits_at_root() > 0


def test_a_takeback(make_search: MakeSearch) -> None:
    """The new root finds the nodes searched before, also after the moves are played again."""
    search = make_search("crazyhouse", noise_epsilon=0.0)
    game = Game.from_uci(search.rules, None, ["e2e4", "e7e5"])
    search.set_game(game)
    search.run(Limits(simulations=2000))
    known = search.tree.root
    move = game.pop()
    search.set_game(game)
    assert search.tree.visits_at_root() == 0
    report = search.run(Limits(simulations=2000))
    edges = search.tree.edges(search.tree.root)
    (child,) = edges.children[edges.moves == move].tolist()
    assert child == known
    assert report.evaluations < report.visits - 50  # known nodes are not evaluated again
    moves = edge_arrays(search.tree.arrays, search.tree.root)[0]
    assert sorted(moves.tolist()) == sorted(game.legal_moves().tolist())
    game.push(move)
    search.set_game(game)
    assert search.tree.root == known and search.tree.visits_at_root() >= 2000
    search.tree.finish_reclaim()
    assert search.tree.counter("node_count") == len(reachable(search))


def test_values_of_repetitions_are_forgotten(make_search: MakeSearch) -> None:
    """If a position of the game had occurred twice, the graph contains draws that are no longer valid."""
    search = make_search("xiangqi")
    moves = "h3e3 h10g8 e3h3 g8h10"
    for played, nodes in ((f"{moves} h3e3", 1), (f"{moves}", 1)):
        search.set_game(Game.from_uci(search.rules, None, played.split()))
        assert search.tree.counter("node_count") == nodes
        search.run(Limits(simulations=300))


def test_takebacks_leave_enough_memory(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", memory_mb=1)
    game = Game.from_uci(search.rules, None, ["e2e4", "e7e5", "g1f3"])
    search.set_game(game)
    search.run(Limits(simulations=1000))
    game.pop()
    search.set_game(game)
    assert search.tree.counter("node_count") > 1
    report = search.run(Limits(simulations=1_000_000))  # unreachable nodes are freed
    assert report.stopped_by == "memory"
    assert search.tree.counter("node_count") == len(reachable(search))
    game.pop()
    search.set_game(game)
    assert search.run(Limits(simulations=1000)).visits == 1000


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
    assert report.visits == 1000  # the other nodes were freed


def test_memory_for_ten_nodes(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random")
    search.tree.arrays.state[0]["cell_limit"] = 10
    search.clear()
    report = search.run(Limits(simulations=1000))
    assert report.stopped_by == "memory"
    assert report.best in search.game.legal_moves()
    assert report.tree_nodes >= 10


def test_marks_of_unfinished_runs_are_removed_when_the_numbers_begin_again(
    make_search: MakeSearch,
) -> None:
    """256 roots later a node could carry the number of the run that has just begun, and its children
    were freed."""
    search = make_search("crazyhouse")
    first = search.game
    search.run(Limits(simulations=4000))
    second = first.copy()
    second.push(search.report().lines[0].move)
    for number in range(255):
        search.set_game(first if number % 2 else second)
        if number == 100:
            search.run(Limits(simulations=500))
    search.tree.finish_reclaim()
    blocks = search.tree.arrays.blocks
    assert all(int(blocks[node]) & USED for node in reachable(search))
    assert search.tree.counter("node_count") == len(reachable(search))
