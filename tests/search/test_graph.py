"""The graph: invariants of every node after every visit, and transpositions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graph_walk import children, closes, equation, reachable

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import UniformEvaluator
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.position import PASS, Position, move_kind
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.leaf_batch import new_batch
from variant_ai.core.search.tree.nodes import OPEN, REPEATS, SHARED, UNPROVEN, WINS
from variant_ai.core.search.tree.transpositions import node_key
from variant_ai.core.spec import parse_spec

TACTICAL = "3k2r1/pBpr1p1p/Pp3p1B/3p4/2PPn2B/5NPp/q4PpP/1R1QR1K1[NNbp] w - - 1 23"
MakeSearch = Callable[..., Search]


@pytest.mark.parametrize(
    ("variant", "fen", "net", "params"),
    [
        ("crazyhouse", TACTICAL, "random", {}),
        ("minixiangqi", None, "random", {}),
        ("dobutsu", None, "uniform", {"q_unvisited": "draw"}),
    ],
)
def test_every_node_of_the_path_satisfies_its_equation(
    make_search: MakeSearch, variant: str, fen: str | None, net: str, params: dict[str, object]
) -> None:
    search = make_search(variant, fen, net=net, **params)
    tree, batch = search.tree, new_batch(1, int(np.prod(search.encoder.shape)), 99)
    tree.begin()
    for _ in range(2000 if variant == "dobutsu" else 300):
        rows, _ = tree.fill(batch, 0, 1, 1)
        length = int(tree.path_info["length"])
        if rows:
            answer = search.evaluators[0].evaluate(batch.planes.reshape(1, *search.encoder.shape))
            tree.complete(batch, 1, answer.value, answer.policy, None)
            if length == 0:  # the root is open now
                tree.prepare_root(None, np.random.default_rng(0))
        for node in batch.paths[0, 0, :length].tolist():
            record = tree.arrays.nodes[node]
            if record["proof"] == UNPROVEN:
                q, visits = equation(search, node)
                assert record["q"] == q
                assert record["visits"] == visits
            else:
                assert abs(float(record["q"])) in (0.0, 1.0)
    assert tree.counter("visits") > 200
    assert variant != "dobutsu" or tree.counter("merges") > 0


@pytest.mark.parametrize("params", [{}, {"transpositions": False}, {"backup": "q-epsilon"}])
def test_visits_add_up_at_every_node(make_search: MakeSearch, params: dict[str, object]) -> None:
    search = make_search("crazyhouse", TACTICAL, net="random", **params)
    search.run(Limits(simulations=1500))
    g = search.tree.arrays
    for node in reachable(search):
        record = g.nodes[node]
        assert record["pending"] == 0
        if record["state"] == OPEN:
            edges = search.tree.edges(node)
            assert int(record["visits"]) == 1 + int(edges.visits.sum())


def test_without_transpositions_q_is_the_mean_of_the_leaves(make_search: MakeSearch) -> None:
    search = make_search(
        "crazyhouse", TACTICAL, net="random", transpositions=False, solver=False, mate_stop=False
    )
    search.run(Limits(simulations=1000))
    g = search.tree.arrays

    def total(node: int) -> float:
        """Sum of the values of the leaves over the visits of a node, for its side to move."""
        record = g.nodes[node]
        if record["state"] != OPEN:
            return float(record["q"])
        found = float(record["value"])
        edges = search.tree.edges(node)
        for child, visits in zip(edges.children.tolist(), edges.visits.tolist(), strict=True):
            if child and g.nodes[child]["state"] == OPEN:
                found -= total(child)
            elif child:
                found -= visits * float(g.nodes[child]["q"])
        return found

    root = search.tree.root
    mean = total(root) / int(g.nodes[root]["visits"])
    assert float(g.nodes[root]["q"]) == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("variant", ["crazyhouse", "xiangqi"])
def test_edges_lead_to_the_position_after_their_move(make_search: MakeSearch, variant: str) -> None:
    search = make_search(variant)
    search.run(Limits(simulations=3000))
    g, rules = search.tree.arrays, search.rules
    read = np.int64(search.tree.settings[0]["read"])
    seen: dict[int, int] = {}
    todo: list[tuple[int, Position]] = [(search.tree.root, search.game.position)]
    while todo:
        node, position = todo.pop()
        assert g.nodes[node]["key"] == np.uint64(node_key(position, 0, read))
        ply = int(position["ply"][0])
        assert seen.setdefault(node, ply) == ply
        for move, child in children(search, node):
            if child not in seen:
                seen[child] = ply + 1
                todo.append((child, rules.play(position, move)))
            assert seen[child] == ply + 1
    assert len(seen) > 1000


@pytest.mark.parametrize("net", ["uniform", "random"])
def test_transpositions_merge(make_search: MakeSearch, net: str) -> None:
    """The graph has fewer nodes than a tree with the same visits."""
    nodes = {}
    for together in (True, False):
        search = make_search(
            "dobutsu",
            net=net,
            transpositions=together,
            solver=False,
            q_unvisited="loss",
            cpuct_init=2.5,
        )
        report = search.run(Limits(simulations=4000))
        assert report.visits == 4000
        nodes[together] = report.tree_nodes
        keys = search.tree.arrays.nodes["key"][reachable(search)].tolist()
        assert (len(set(keys)) == len(keys)) == together
        assert (report.merges > 0) == together
    assert nodes == {"uniform": {True: 2452, False: 3176}, "random": {True: 2974, False: 3157}}[net]


def test_a_position_has_one_node(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse")
    search.run(Limits(simulations=4000))
    keys = search.tree.arrays.nodes["key"][reachable(search)]
    assert len(set(keys.tolist())) == len(keys)


def test_a_swept_graph_changes_nothing_twice(make_search: MakeSearch) -> None:
    """Parents outside the path may be out of date; one sweep from the leaves up corrects all."""
    search = make_search("crazyhouse", TACTICAL, net="random", solver=False)
    search.run(Limits(simulations=2000))
    g, rules = search.tree.arrays, search.rules
    positions = {search.tree.root: search.game.position}
    order = []
    for node in reachable(search):
        order.append((int(positions[node]["ply"][0]), node))
        for move, child in children(search, node):
            if child not in positions:
                positions[child] = rules.play(positions[node], move)
    order.sort(reverse=True)
    root_before = float(g.nodes[search.tree.root]["q"])
    stale = []
    for _ in range(2):
        changed = 0
        for _, node in order:
            if g.nodes[node]["state"] == OPEN:
                q, _ = equation(search, node)
                changed += int(g.nodes[node]["q"] != q)
                g.nodes[node]["q"] = q
        stale.append(changed)
    assert stale[1] == 0
    assert stale[0] < 0.2 * len(order)
    assert abs(float(g.nodes[search.tree.root]["q"]) - root_before) < 0.02


def test_the_corrections_of_the_paper_merge_too(make_search: MakeSearch) -> None:
    counts = {}
    for backup in ("catch-up", "q-epsilon", "none"):
        search = make_search("dobutsu", net="random", backup=backup, solver=False, batch_growth=0)
        report = search.run(Limits(simulations=4000))
        counts[backup] = report.evaluations
        assert abs(report.lines[0].q) <= 1
    assert counts["catch-up"] < counts["q-epsilon"] <= counts["none"]


@pytest.mark.parametrize(
    ("variant", "params"),
    [
        ("dobutsu", {"q_unvisited": "draw"}),
        ("xiangqi", {}),
        ("crazyhouse", {"transpositions": False}),
        ("minixiangqi", {"backup": "q-epsilon"}),
    ],
)
def test_copies_of_a_child_are_its_own(
    make_search: MakeSearch, variant: str, params: dict[str, object]
) -> None:
    """Slots with a copy have the Q and proof of the child, over a few moves of a reused graph."""
    search = make_search(variant, **params)
    shared = single = repeats = 0
    for _ in range(3):
        report = search.run(Limits(simulations=3000))
        g = search.tree.arrays
        parents: dict[int, int] = {}
        for node in reachable(search):
            record = g.nodes[node]
            for k in range(int(record["opened"])):
                slot = g.slots[int(record["slots"]) + k]
                child, flags = int(slot["child"]), int(slot["flags"])
                repeats += bool(flags & REPEATS)
                if not child:
                    continue
                parents[child] = parents.get(child, 0) + 1
                there = g.nodes[child]
                if flags & (SHARED | REPEATS):
                    shared += 1
                elif slot["visits"]:
                    single += 1
                    assert (slot["q"], slot["proof"]) == (there["q"], there["proof"])
                    assert there["parent"] == node
                if flags & WINS:
                    assert (there["q"], there["count"]) == (-1.0, 0)
        for child, count in parents.items():
            assert count == 1 or g.nodes[child]["parent"] == 0
        if report.best is None:
            break
        search.advance(report.best)
    assert single > 1000
    assert (shared > 0) == (params.get("transpositions", True) or repeats > 0)
    assert repeats > 0 or variant == "crazyhouse"


def test_a_position_after_a_pass_is_another_node(make_search: MakeSearch) -> None:
    """A second pass ends the game, here as a loss; the same board without passes goes on."""
    ahead = "3k5/9/9/9/9/9/9/9/9/R4K3 w - - 0 1"
    search = make_search("janggi", ahead, moves="f1f1")
    search.run(Limits(simulations=300))
    edges = search.tree.edges(search.tree.root)
    (passed,) = (k for k, move in enumerate(edges.moves.tolist()) if move_kind(move) == PASS)
    assert edges.visits[passed] > 0 and edges.q[passed] == -1
    read = np.int64(search.tree.settings[0]["read"])
    once, twice = (
        Game.from_uci(search.rules, ahead, []),
        Game.from_uci(search.rules, ahead, ["f1f1"]),
    )
    after = twice.position.copy()
    after["side"], after["key"], after["clock"] = (
        once.position[f] for f in ("side", "key", "clock")
    )
    assert node_key(once.position, np.int64(0), read) != node_key(after, np.int64(0), read)


def test_two_passes_are_the_end_of_the_game_and_no_repetition(make_search: MakeSearch) -> None:
    """They bring back the position of two plies before, whose repetition would lose here."""
    words = "rules: {points: null, repetition: {otherwise: loss of mover}}"
    spec = parse_spec(f"{{spec: 1, extends: janggi, variant: mine, {words}}}")
    encoder = Encoder(spec)
    net = UniformEvaluator(encoder.shape, encoder.actions)
    with Search(spec, net, SearchParams.of(spec, memory_mb=64), rules=make_rules(spec)) as search:
        search.set_game(Game(search.rules, "3k5/9/9/9/9/9/9/9/9/5K3 w - - 0 1"))
        search.run(Limits(simulations=400))
        root = search.tree.edges(search.tree.root)
        (first,) = (k for k, move in enumerate(root.moves.tolist()) if move_kind(move) == PASS)
        replies = search.tree.edges(int(root.children[first]))
        (second,) = (k for k, m in enumerate(replies.moves.tolist()) if move_kind(m) == PASS)
        assert replies.visits[second] > 0 and replies.q[second] == 0
        assert not closes(search, int(root.children[first]), second)
