"""Repetition belongs to the path: it depends on the game's history, and the verdict on the moves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from graph_walk import closes
from numpy.typing import NDArray
from small_board import CYCLE, TEXT

from variant_ai.core.inference import Evaluation, UniformEvaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.position import POSITION
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.search.forest.position_searches import analyse_many
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.tree.backup import recompute
from variant_ai.core.search.tree.descent import visit_cycle
from variant_ai.core.search.tree.nodes import UNPROVEN, WON
from variant_ai.core.search.tree.repetition import past_of, times_before

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "xiangqi_repetition.json"
CASES = json.loads(GOLDEN.read_text())["positions"]
MakeSearch = Callable[..., Search]


def edge_to(search: Search, text: str) -> int:
    files, types = search.spec.board.files, search.rules.types
    moves = search.tree.edges(search.tree.root).moves.tolist()
    return [uci(types, files, move) for move in moves].index(text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["note"])
def test_the_move_that_closes_the_cycle_is_worth_the_games_verdict(
    make_search: MakeSearch, rules_of: Callable[[str], object], case: dict[str, str]
) -> None:
    *before, last = case["moves"].split()
    search = make_search("xiangqi", case["fen"], " ".join(before))
    game = Game.from_uci(search.rules, case["fen"], case["moves"].split())
    outcome = game.outcome()
    if outcome is None:
        pytest.skip("the game goes on")
    move = game.moves[-1]
    report = search.run(Limits(simulations=60), moves=[move])
    edge = edge_to(search, last)
    edges = search.tree.edges(search.tree.root)
    assert closes(search, search.tree.root, edge)
    assert edges.q[edge] == -outcome.value(game.side)
    assert report.lines[0].pv == (move,)
    assert edges.mates[edge] == 0


@pytest.mark.parametrize("net", ["uniform", "random"])
def test_a_search_whose_only_move_repeats_ends(
    make_search: MakeSearch, one_move_left: str, net: str
) -> None:
    """There is never a leaf to evaluate; compiled code must not search for one forever."""
    search = make_search("xiangqi", None, one_move_left, net=net)
    assert len(search.game.legal_moves()) == 1
    report = search.run(Limits(movetime=0.05))
    assert report.stopped_by == "movetime"
    assert report.best == search.game.legal_moves()[0]
    assert search.run(Limits(simulations=5000)).visits == 5000


def test_one_node_two_histories_two_verdicts(make_search: MakeSearch) -> None:
    """The same position, once without and once with its history."""
    shuffle = "h3e3 h8e8 e3h3 e8h8"
    verdicts = {}
    for history in (shuffle, f"{shuffle} {shuffle}"):
        *before, last = history.split()
        search = make_search("xiangqi", None, " ".join(before), look_for_mates=False)
        search.run(Limits(simulations=400))
        edge = edge_to(search, last)
        verdicts[len(before)] = closes(search, search.tree.root, edge)
    assert verdicts == {3: False, 7: True}


def test_the_second_occurrence_counts_after_the_root(make_search: MakeSearch) -> None:
    """Bare kings: the search finds the draw one cycle earlier than the game."""
    search = make_search("xiangqi", "3k5/9/9/9/9/9/9/9/9/5K3 w - - 0 1", look_for_mates=False)
    report = search.run(Limits(simulations=300))
    assert report.terminals > 0
    g = search.tree.arrays
    assert int(g.state[0]["repeat_top"]) > 1
    assert report.lines[0].q == pytest.approx(0, abs=1e-6)
    assert not search.tree.solved  # a repetition proves nothing


def test_the_past_counts_every_occurrence() -> None:
    keys = np.array([5, 9, 5, 2**63 + 1, 9, 5, 2**63 + 1], np.uint64)
    line = np.zeros(len(keys), POSITION)
    line["key"] = keys
    past = past_of(line, len(keys))
    counts = {int(k): int(times_before(past, k)) for k in keys}
    assert counts == {5: 3, 9: 2, 2**63 + 1: 2}
    assert int(times_before(past, np.uint64(6))) == 0


@pytest.mark.parametrize("judged", [False, True])
def test_a_search_without_a_judge_has_no_verdicts(make_search: MakeSearch, judged: bool) -> None:
    search = make_search("xiangqi")
    search.judge_chases(judged)
    search.run(Limits(simulations=20_000))
    assert bool(np.count_nonzero(search.tree._chases.verdicts["used"])) == judged


def test_a_search_goes_on_where_nobody_can_judge_chases(
    make_search: MakeSearch, tmp_path: Path
) -> None:
    spec = tmp_path / "small-xiangqi.yaml"
    spec.write_text(TEXT)
    search = make_search(str(spec), None, " ".join((CYCLE * 2)[:-1]), net="random")
    with pytest.warns(UserWarning, match="9 x 9"):
        report = search.run(Limits(simulations=300))
    assert report.visits == 300
    edge = edge_to(search, CYCLE[-1])
    assert search.tree.edges(search.tree.root).q[edge] == 0


CHASED_KING = "4k4/9/9/9/9/9/9/9/5K3/4R4 b - - 0 1"


@pytest.mark.parametrize("use_raw_network", [False, True])
def test_a_move_lost_by_repetition_is_not_played(
    make_search: MakeSearch, use_raw_network: bool
) -> None:
    """Even if its prior is high and the search is short."""
    cycle = "e10d10 e1d1 d10e10 d1e1"
    search = make_search("xiangqi", CHASED_KING, f"{cycle} {cycle}".rsplit(" ", 1)[0])
    game = search.game
    (losing,) = game.lost_at_once()
    after = Game.from_uci(game.rules, CHASED_KING, [*game.uci_moves(), "d1e1"])
    assert after.outcome() is not None
    assert game.rules.legal_moves(game.position).tolist().count(losing) == 1
    encoder = search.encoder
    action = encoder.action(game.position, losing)

    class Insists(UniformEvaluator):
        is_uniform = False

        def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
            answer = super().evaluate(planes)
            answer.policy[:, action] = 20.0
            return answer

    stubborn = Insists(encoder.shape, encoder.actions)
    other = make_search(
        "xiangqi",
        CHASED_KING,
        " ".join(game.uci_moves()),
        net=stubborn,
        use_raw_network=use_raw_network,
    )
    assert other.run(Limits(simulations=60)).best != losing
    explicit = other.run(Limits(simulations=60), moves=[losing])
    assert explicit.best == losing
    for visits in (1, 60):
        (report,) = analyse_many(game.rules.spec, stubborn, [game], nodes=visits, rules=game.rules)
        assert report.best != losing


def test_one_lost_cycle_leaves_the_drawn_ones(make_search: MakeSearch) -> None:
    """An edge closes other cycles on other paths; only a judge's verdict is about all of them."""
    search = make_search("chess")
    search.run(Limits(simulations=50))
    g, root = search.tree.arrays, np.int64(search.tree.root)
    slot = np.int64(g.nodes[root]["slots"])
    for value in [0] * 9 + [1]:
        assert visit_cycle(g, root, slot, np.int64(value))
    repeat = g.repeats[int(g.slots[slot]["repeat"])]
    assert (repeat["visits"], repeat["sum"], repeat["draws"]) == (10, -1.0, 9.0)
    repeat["verdict"] = 1  # the judge's, which comes late
    assert visit_cycle(g, root, slot, np.int64(1))
    assert (repeat["visits"], repeat["sum"], repeat["draws"]) == (11, -11.0, 0.0)


def test_an_edge_that_repeats_proves_nothing(make_search: MakeSearch) -> None:
    """Its child may be lost, but the move may end the game before: a win must be proven by another move,
    or the root is won without a move that wins."""
    search = make_search("chess", "k7/8/1K6/8/8/8/8/6Q1 w - - 0 1", look_for_mates=False)
    search.run(Limits(simulations=3000))
    g, root = search.tree.arrays, search.tree.root
    record = g.nodes[root]
    assert record["proof"] == WON
    for edge in range(int(record["opened"])):
        slot = np.int64(record["slots"]) + edge
        if g.slots[slot]["child"]:
            assert visit_cycle(g, np.int64(root), slot, np.int64(0))
    record["proof"] = UNPROVEN
    recompute(g, search.tree.settings, np.int64(root))
    assert record["proof"] == UNPROVEN
    assert not (search.tree.edges(root).mates > 0).any()
