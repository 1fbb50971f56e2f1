"""Variants whose rules are not compiled: the descent in Python makes the same tree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import RandomEvaluator, UniformEvaluator
from variant_ai.core.rules.fairy.fairy_workers import workers_of
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.kernel.perft import perft
from variant_ai.core.rules.position import Position, move_target
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.game_tree import Tree
from variant_ai.core.search.tree.leaf_batch import new_batch
from variant_ai.core.search.tree.slow_tree import SlowTree


@pytest.mark.parametrize(
    ("variant", "moves"),
    [("minixiangqi", ""), ("dobutsu", ""), ("xiangqi", "h3e3 h8e8 e3h3 e8h8 h3e3 h8e8 e3h3")],
)
@pytest.mark.parametrize("transpositions", [True, False])
def test_both_descents_make_the_same_tree(
    rules_of: Callable[[str], Rules], variant: str, moves: str, transpositions: bool
) -> None:
    rules = rules_of(variant)
    encoder = Encoder(rules.spec)
    params = SearchParams.of(
        rules.spec,
        memory_mb=16,
        transpositions=transpositions,
        look_for_mates=False,
        look_for_material=False,
        enhance_checks=False,
    )
    net = RandomEvaluator(encoder.shape, encoder.actions)
    found = []
    for kind in (Tree, SlowTree):
        tree = kind(encoder, rules, params)
        tree.set_game(Game.from_uci(rules, None, moves.split()))
        tree.begin()
        batch = new_batch(4, int(np.prod(encoder.shape)), params.max_depth)
        while tree.counter("visits") < 200:
            rows, _ = tree.fill(batch, 0, 4, 200)
            answer = net.evaluate(batch.planes.reshape(-1, *encoder.shape))
            tree.complete(batch, rows, answer.value, answer.policy, None)
        edges = tree.edges(tree.root)
        counts = [tree.counter(name) for name in ("visits", "terminals", "merges", "node_count")]
        found.append((edges.moves.tolist(), edges.visits.tolist(), edges.q.tolist(), counts))
    assert found[0] == found[1]


def test_a_descent_without_a_leaf_ends(
    rules_of: Callable[[str], Rules], one_move_left: str
) -> None:
    rules = rules_of("xiangqi")
    encoder = Encoder(rules.spec)
    params = SearchParams.of(rules.spec, memory_mb=16)
    tree = SlowTree(encoder, rules, params)
    tree.set_game(Game.from_uci(rules, None, one_move_left.split()))
    tree.begin()
    batch = new_batch(4, int(np.prod(encoder.shape)), params.max_depth)
    assert tree.fill(batch, 0, 4, 1)[0] == 1
    tree.complete(batch, 1, np.zeros(1, np.float32), np.zeros((1, encoder.actions)), None)
    assert tree.fill(batch, 0, 4, 1 << 30)[0] == 0
    assert tree.counter("visits") > 1


def test_a_variant_on_fairy_is_searched(make_search: Callable[..., Search]) -> None:
    pytest.importorskip("pyffish")
    search = make_search("atomic on fairy", net="random", memory_mb=16)
    report = search.run(Limits(simulations=60))
    assert report.visits == 60
    assert report.best in search.game.legal_moves()
    assert report.nps > 0
    search.advance(report.best)
    assert search.run(Limits(simulations=20)).visits == 20


@pytest.mark.parametrize("net", ["random", "uniform"])
def test_workers_change_nothing_but_the_time(make_search: Callable[..., Search], net: str) -> None:
    pytest.importorskip("pyffish")
    found = []
    for count in (0, 1):
        search = make_search("atomic on fairy", net=net, memory_mb=16)
        workers_of(search.rules, count)
        search.clear()
        search.run(Limits(simulations=40))
        search.advance(int(search.game.legal_moves()[0]))
        search.run(Limits(simulations=20))
        edges = search.tree.edges(search.tree.root)
        found.append((edges.moves.tolist(), edges.visits.tolist(), edges.q.tolist()))
        pending = search.tree.arrays.nodes["pending"][search.tree.root]
        assert pending == 0
        search.close()
    assert found[0] == found[1]


def test_rules_derived_from_the_kernel_are_used(rules_of: Callable[[str], Rules]) -> None:
    """Compiled code would use the kernel's tables."""

    class Passive(KernelRules):
        def legal_moves(self, position: Position) -> np.ndarray:
            met = position["board"][0]
            listed = [m for m in super().legal_moves(position) if met[move_target(int(m))] == 0]
            return np.array(listed, np.int32)

    rules = Passive(rules_of("crazyhouse").spec)
    encoder = Encoder(rules.spec)
    params = SearchParams.of(rules.spec, memory_mb=16)
    net = UniformEvaluator(encoder.shape, encoder.actions)
    fen = "k2q4/8/1K6/8/8/8/8/3R4[] w - - 0 1"  # taking the queen mates
    with Search(rules.spec, net, params, rules=rules) as search:
        search.set_game(Game(rules, fen))
        report = search.run(Limits(simulations=50), multipv=99)
    listed = rules.legal_moves(rules.position(fen)).tolist()
    assert sorted(line.move for line in report.lines) == sorted(listed)
    assert perft(rules, rules.position(fen), 1) == len(listed)


@pytest.mark.parametrize("net", ["random", "uniform"])
def test_stop_works_in_the_middle_of_a_batch(
    make_search: Callable[..., Search], monkeypatch: pytest.MonkeyPatch, net: str
) -> None:
    pytest.importorskip("pyffish")
    search = make_search("atomic on fairy", net=net, memory_mb=16, batch_size=64, batch_growth=0.0)
    workers_of(search.rules, 0)
    search.run(Limits(simulations=1))  # so that a whole batch can be filled
    original, calls = search.rules.play, 0

    def play(position: Position, move: int) -> Position:
        nonlocal calls
        calls += 1
        if calls == 5:
            search.stop()
        return original(position, move)

    monkeypatch.setattr(search.rules, "play", play)
    assert search.run(Limits(infinite=True)).stopped_by == "stop"
    assert calls == 5
    assert search.tree.arrays.nodes["pending"][search.tree.root] == 0


def test_workers_are_ready_before_a_search_begins(make_search: Callable[..., Search]) -> None:
    pytest.importorskip("pyffish")
    search = make_search("atomic on fairy", memory_mb=16)
    workers = workers_of(search.rules, 1)
    assert workers is not None and not workers.is_running
    search.clear()
    assert not workers.is_running  # only a new tree starts them
    encoder = search.encoder
    net = RandomEvaluator(encoder.shape, encoder.actions)
    again = Search(search.rules.spec, net, search.params, rules=search.rules)
    assert workers.is_running
    again.close()
    assert not workers.is_running


def test_positions_of_freed_nodes_are_forgotten(make_search: Callable[..., Search]) -> None:
    search = make_search("minixiangqi on fairy")
    for _ in range(2):
        search.run(Limits(simulations=60))
        search.advance(search.report().lines[0].move)
    search.tree.finish_reclaim()
    assert isinstance(search.tree, SlowTree)
    assert len(search.tree._positions) <= search.tree.counter("node_count") + 1


def test_positions_count_as_memory_of_the_tree(rules_of: Callable[[str], Rules]) -> None:
    """They are kept outside of the graph: a small `Hash` would be exceeded many times over."""
    rules = rules_of("minixiangqi")
    encoder, params = Encoder(rules.spec), SearchParams.of(rules.spec, memory_mb=8)
    assert Tree(encoder, rules, params).memory == 8 << 20
    assert SlowTree(encoder, rules, params).memory == 1 << 20
