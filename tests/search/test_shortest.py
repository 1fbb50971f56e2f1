"""The shortest win is reported, is forced, and its nodes satisfy the invariants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graph_walk import equation, reachable

from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.tree.look_ahead.shortest_mate import PATIENT, POSITIONS, MateShortener
from variant_ai.core.search.tree.nodes import LOST, OPEN, UNPROVEN, WON

MakeSearch = Callable[..., Search]

LONGER_PROOF_FIRST = [
    # mates in two for which a longer win is proven first
    "2bak4/4a4/3cb4/p8/8p/4n4/P3r3P/2R1C1R2/4r4/3K5 b - - 0 1",
    "2b1kab2/9/3a5/9/9/9/3R5/2n1r4/3K5/9 b - - 0 1",
    "5k3/3cP4/9/1N4N2/9/9/9/9/4A4/2BK1AB2 w - - 0 1",
    "3a5/1C1na4/4k3C/p5p1p/5R3/6P2/P7P/4B4/4A4/2Br1K3 w - - 0 1",
]
"""Positions of ../shared/data/puzzles/xiangqi-mates.jsonl."""


def wins_within(rules: Rules, game: Game, plies: int) -> bool:
    """Return True if the side to move wins within the plies; a simple and slow reference."""
    side = game.side
    for move in game.legal_moves().tolist():
        game.push(move)
        outcome = game.outcome()
        won = outcome is not None and outcome.winner == side
        if outcome is None and plies > 1:
            won = True
            for reply in game.legal_moves().tolist():
                game.push(reply)
                won = game.outcome() is None and wins_within(rules, game, plies - 2)
                game.pop()
                if not won:
                    break
        game.pop()
        if won:
            return True
    return False


@pytest.mark.parametrize(
    ("limits", "factor"),
    [
        (Limits(mate=2), PATIENT),
        (Limits(infinite=True), PATIENT),
        (Limits(mate=2, nodes=200_000), 1),  # who counts nodes does not expect a minute of them
        (Limits(nodes=200_000), 1),
    ],
)
def test_the_effort_follows_from_the_limits(
    make_search: MakeSearch, monkeypatch: pytest.MonkeyPatch, limits: Limits, factor: int
) -> None:
    search, efforts = make_search("xiangqi", LONGER_PROOF_FIRST[0]), []

    def shorten(positions: int, *_: object) -> None:
        efforts.append(positions)
        search.stop()  # without a limit it would wait for that

    monkeypatch.setattr(search.tree, "shorten", shorten)
    search.run(limits)
    assert efforts == [factor * POSITIONS]


@pytest.mark.parametrize("fen", LONGER_PROOF_FIRST)
def test_a_win_is_reported_with_its_shortest_line(make_search: MakeSearch, fen: str) -> None:
    search = make_search("xiangqi", fen)
    report = search.run(Limits(simulations=200_000))
    assert report.stopped_by == "solved"
    assert report.lines[0].mate == 3
    assert len(report.lines[0].pv) == 3
    assert not wins_within(search.rules, Game(search.rules, fen), 1)
    assert wins_within(search.rules, Game(search.rules, fen), 3)


@pytest.mark.parametrize("fen", LONGER_PROOF_FIRST[:2])
def test_the_written_mate_is_a_whole_proof(make_search: MakeSearch, fen: str) -> None:
    """Every proof follows from the children, with the moves and ends of the rules."""
    search = make_search("xiangqi", fen)
    search.run(Limits(simulations=200_000))
    tree = search.tree
    positions = {tree.root: search.game.position}
    todo = [tree.root]
    checked = 0
    while todo:
        node = todo.pop()
        record, position = tree.arrays.nodes[node], positions[node]
        outcome = search.rules.outcome(position)
        if outcome is not None:
            assert record["distance"] == 0
            continue
        if record["proof"] not in (WON, LOST):
            continue
        checked += 1
        edges = tree.edges(node)
        assert sorted(edges.moves.tolist()) == sorted(search.rules.legal_moves(position).tolist())
        if record["proof"] == WON:
            wins = edges.mates[edges.mates > 0]
            assert record["distance"] == wins.min()
            kept = [int(np.flatnonzero(edges.mates == wins.min())[0])]
        else:
            assert (edges.mates < 0).all()
            assert record["distance"] == -edges.mates.min()
            kept = list(range(len(edges.moves)))
        for e in kept:
            child = int(edges.children[e])
            positions[child] = search.rules.play(position, int(edges.moves[e]))
            todo.append(child)
    assert checked > 1


def test_the_equation_holds_where_a_mate_was_written(make_search: MakeSearch) -> None:
    """Without transpositions, because other parents of a new node are updated at their next visit."""
    search = make_search("xiangqi", LONGER_PROOF_FIRST[2], transpositions=False)
    report = search.run(Limits(simulations=200_000))
    assert report.lines[0].mate == 3
    g = search.tree.arrays
    for node in reachable(search):
        if g.nodes[node]["state"] == OPEN:
            q, visits = equation(search, node)
            assert g.nodes[node]["visits"] == visits
            if g.nodes[node]["proof"] == UNPROVEN:
                assert abs(g.nodes[node]["q"] - q) < 1e-5


def test_the_move_after_a_written_reply_is_known(make_search: MakeSearch) -> None:
    search = make_search("xiangqi", LONGER_PROOF_FIRST[0])
    line = search.run(Limits(simulations=200_000)).lines[0]
    search.advance(line.pv[0])
    assert search.tree.solved
    search.advance(line.pv[1])
    report = search.run(Limits(simulations=10))
    assert (report.stopped_by, report.visits, report.lines[0].mate) == ("solved", 0, 1)


def test_the_distance_of_a_lost_side_is_reported(make_search: MakeSearch) -> None:
    search = make_search("xiangqi", LONGER_PROOF_FIRST[0])
    first = search.run(Limits(simulations=200_000)).best
    assert first is not None
    fresh = make_search("xiangqi", LONGER_PROOF_FIRST[0])
    fresh.advance(first)
    fresh.clear()
    assert fresh.run(Limits(simulations=200_000)).lines[0].mate == -2


def test_excluded_moves_do_not_win(make_search: MakeSearch) -> None:
    """If the move of the shortest win is excluded, a longer one is reported."""
    search = make_search("xiangqi", LONGER_PROOF_FIRST[0])
    best = search.run(Limits(simulations=200_000)).best
    others = [int(move) for move in search.game.legal_moves() if move != best]
    fresh = make_search("xiangqi", LONGER_PROOF_FIRST[0])
    report = fresh.run(Limits(simulations=20_000), moves=others)
    assert report.best != best
    assert report.lines[0].mate is None or report.lines[0].mate >= 3


@pytest.mark.parametrize(
    ("variant", "fen", "plies"),
    [
        ("crazyhouse", "k7/8/1K6/8/8/8/8/8[Q] w - - 0 1", 1),
        ("chess", "7k/8/5K2/8/8/8/8/6Q1 w - - 0 1", 1),
        ("chess", "7k/8/8/5K2/8/8/8/6Q1 w - - 0 1", 3),
        ("xiangqi", "3k5/9/9/9/9/9/9/9/4R4/4K4 w - - 0 1", 1),
    ],
)
def test_the_quickest_win_has_the_right_distance(
    make_search: MakeSearch, variant: str, fen: str, plies: int
) -> None:
    """Also by stalemate, if it is a win in the variant."""
    search = make_search(variant, fen)
    found = MateShortener(search.tree, 100_000, lambda: True).quickest(plies)
    plain = [n for n in (1, 3) if n <= plies and wins_within(search.rules, search.game, n)]
    assert (found.plies if found else None) == (plain[0] if plain else None)


def test_too_few_positions_leave_the_first_proof(make_search: MakeSearch) -> None:
    for search, positions, goes_on in (
        (make_search("xiangqi", LONGER_PROOF_FIRST[0]), 5, True),
        (make_search("crazyhouse"), 10**9, False),
    ):
        shortener = MateShortener(search.tree, positions, lambda goes_on=goes_on: goes_on)
        assert shortener.quickest(9) is None
    search = make_search("xiangqi", LONGER_PROOF_FIRST[0])
    assert MateShortener(search.tree, 10**6, lambda: True).quickest(9) is not None
