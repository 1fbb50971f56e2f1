"""Mates by checks found at leaves: they are forced, and the graph holds a proof of them."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from graph_walk import children, equation, reachable

from variant_ai.core.rules.game import Game
from variant_ai.core.rules.position import Position
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.tree.look_ahead.by_checks import mate_by_checks
from variant_ai.core.search.tree.nodes import END, LOST, OPEN, UNPROVEN, WON

MakeSearch = Callable[..., Search]

HAND = "r1bq1rk1/ppp2ppp/2n5/3np3/2B5/5Q2/PPPP1PPP/RNB1K2R[NNPB] w KQ - 0 9"
"""Crazyhouse with pieces in hand, where checks abound."""
SMOTHERED = "r6k/6pp/7N/8/2Q5/8/6PP/6K1[] w - - 0 1"
"""Mate in two: Qg8+ Rxg8, Nf7#."""


def check_proofs(search: Search) -> int:
    """Check every proven node that the root reaches: it follows from its children, whose positions are
    those of the rules. Returns the number of wins and losses that are not ends of the game."""
    tree = search.tree
    positions = {tree.root: search.game.position}
    todo, checked = [tree.root], 0
    while todo:
        node = todo.pop()
        record, position = tree.arrays.nodes[node], positions[node]
        for move, child in children(search, node):
            if child not in positions:
                positions[child] = search.rules.play(position, move)
                todo.append(child)
        if record["proof"] not in (WON, LOST) or record["state"] == END:
            continue
        edges = tree.edges(node)
        assert sorted(edges.moves.tolist()) == sorted(search.rules.legal_moves(position).tolist())
        if record["proof"] == WON:
            assert record["distance"] == edges.mates[edges.mates > 0].min()
        else:
            assert (edges.mates < 0).all()
            assert record["distance"] == -edges.mates.min()
        checked += 1
    return checked


def check_solution(search: Search, position: Position, node: int, *, attacks: bool) -> None:
    """Check a proven node of the solution: a check and all answers to it, until the game is won."""
    rules, nodes = search.rules, search.tree.scratch.mates.nodes
    record = nodes[node]
    assert record["proof"] == 0
    outcome = rules.outcome(position)
    if record["count"] == 0:
        assert not attacks
        assert outcome is not None
        assert outcome.winner == search.game.side
        return
    assert outcome is None
    below = range(int(record["first"]), int(record["first"] + record["count"]))
    if attacks:
        below = [next(child for child in below if nodes[child]["proof"] == 0)]
    else:
        moves = rules.legal_moves(position).tolist()
        assert sorted(int(nodes[child]["move"]) for child in below) == sorted(moves)
    for child in below:
        after = rules.play(position, int(nodes[child]["move"]))
        assert not attacks or rules.in_check(after) or rules.outcome(after) is not None
        check_solution(search, after, child, attacks=not attacks)


def random_games(search: Search, fen: str | None, count: int) -> list[Game]:
    chance = random.Random(5)
    games = []
    while len(games) < count:
        game = Game(search.rules, fen) if fen else Game(search.rules)
        for _ in range(chance.randint(0, 40)):
            moves = game.legal_moves().tolist()
            if not moves or game.outcome() is not None:
                break
            game.push(chance.choice(moves))
        if game.outcome() is None:
            games.append(game)
    return games


@pytest.mark.parametrize(
    ("variant", "fen"),
    [
        ("crazyhouse", HAND),
        ("crazyhouse", None),
        ("xiangqi", None),
        ("shogi", None),
        ("atomic", None),
    ],
)
def test_a_mate_by_checks_is_forced(make_search: MakeSearch, variant: str, fen: str | None) -> None:
    """The solution is checked move by move with the rules."""
    search = make_search(variant, fen)
    tree, found = search.tree, 0
    for game in random_games(search, fen, 120 if fen else 40):
        search.set_game(game)
        at = np.int64(tree.path_info["root_at"])
        if mate_by_checks(tree.tables, tree.settings, tree.descent, tree.scratch, at):
            check_solution(search, game.position, 0, attacks=True)
            found += 1
    assert found > 0 or fen is None


@pytest.mark.parametrize(
    ("net", "settings"),
    [
        ("uniform", {}),
        ("random", {}),
        ("random", {"mate_visits": 8}),  # nodes have edges already
        ("random", {"mate_visits": 8, "transpositions": False}),
    ],
)
@pytest.mark.parametrize(
    ("variant", "fen"), [("crazyhouse", HAND), ("xiangqi", None), ("atomic", None)]
)
def test_proofs_follow_from_their_children(
    make_search: MakeSearch, variant: str, fen: str | None, net: str, settings: dict[str, object]
) -> None:
    search = make_search(variant, fen, net=net, batch_size=8, **settings)
    checked = 0
    for game in random_games(search, fen, 8):
        search.set_game(game)
        search.run(Limits(simulations=1500))
        checked += check_proofs(search)
    assert checked > 20 or fen is None


def test_the_equation_holds_beside_written_mates(make_search: MakeSearch) -> None:
    """Without transpositions, because other parents of a node are updated at their next visit."""
    search = make_search("crazyhouse", HAND, net="random", transpositions=False)
    search.run(Limits(simulations=3000))
    g = search.tree.arrays
    proven = 0
    for node in reachable(search):
        if g.nodes[node]["state"] != OPEN:
            continue
        q, visits = equation(search, node)
        assert g.nodes[node]["visits"] == visits
        if g.nodes[node]["proof"] == UNPROVEN:
            assert abs(g.nodes[node]["q"] - q) < 1e-5
        else:
            proven += 1
    assert proven > 50


def test_a_mate_in_two_needs_no_visit_below_it(make_search: MakeSearch) -> None:
    found = make_search("crazyhouse", SMOTHERED).run(Limits(simulations=1000))
    assert (found.stopped_by, found.lines[0].mate) == ("solved", 3)
    assert found.visits <= 4
    slow = make_search("crazyhouse", SMOTHERED, look_for_mates=False).run(Limits(simulations=1000))
    assert slow.visits > found.visits


def test_a_mate_in_one_is_not_missed_for_long_forced_lines(make_search: MakeSearch) -> None:
    """Black's hand gives dozens of checks, most of which have one answer."""
    fen = "1bb1kr2/4b~p1p/p1q5/3pP3/p1P4n/3BP3/P2PPP1P/1N3RK1[Bqrrnnpp] b - - 1 28"
    report = make_search("crazyhouse", fen).run(Limits(simulations=100))
    assert report.lines[0].mate == 1
    assert report.visits <= 2


def test_mates_are_looked_for_at_the_visits_asked_for(make_search: MakeSearch) -> None:
    late = make_search("crazyhouse", SMOTHERED, mate_visits=50)
    assert late.run(Limits(simulations=30)).stopped_by != "solved"
    assert late.run(Limits(simulations=1000)).lines[0].mate == 3
    few = make_search("crazyhouse", SMOTHERED, mate_positions=1)
    assert few.run(Limits(simulations=10)).stopped_by != "solved"


def test_an_excluded_mate_is_not_proven(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", SMOTHERED)
    mating = {line.move for line in search.run(Limits(simulations=200)).lines if line.mate}
    others = [move for move in search.game.legal_moves().tolist() if move not in mating]
    search.clear()
    report = search.run(Limits(simulations=60), moves=others[:3])
    assert report.best in others[:3]


def test_full_memory_ends_the_search_and_keeps_the_graph_right(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", HAND, net="random", memory_mb=1)
    search.run(Limits(simulations=50_000))
    check_proofs(search)
