"""`Search`: limits, stopping, reports, settings, bad input."""

from __future__ import annotations

import itertools
import math
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from graph_walk import reachable, signature
from numpy.typing import NDArray

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError, MoveError, VariantAIError
from variant_ai.core.inference import Evaluation, RandomEvaluator, UniformEvaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import UciNotation
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.move.variations import line_limit
from variant_ai.core.search.report import Report, centipawns
from variant_ai.core.search.search import Search
from variant_ai.core.search.tree.nodes import WAITING

MakeSearch = Callable[..., Search]
TACTICAL = "3k2r1/pBpr1p1p/Pp3p1B/3p4/2PPn2B/5NPp/q4PpP/1R1QR1K1[NNbp] w - - 1 23"


class Stuck(RandomEvaluator):
    """Evaluates the first batches and then waits until it is released."""

    def __init__(self, encoder: Encoder, answers: int = 3) -> None:
        super().__init__(encoder.shape, encoder.actions)
        self.answers = answers
        self.stuck = threading.Event()
        self.go_on = threading.Event()

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        self.answers -= 1
        if self.answers < 0:
            self.stuck.set()
            self.go_on.wait()
        return super().evaluate(planes)


class Broken(RandomEvaluator):
    """Returns something that is not a number."""

    def __init__(self, encoder: Encoder, value: float, logit: float) -> None:
        super().__init__(encoder.shape, encoder.actions)
        self.value, self.logit = value, logit

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        answer = super().evaluate(planes)
        return Evaluation(answer.value + np.float32(self.value), answer.policy + self.logit)


class Drawish(RandomEvaluator):
    """Returns draw probabilities."""

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        answer = super().evaluate(planes)
        draw = np.full(len(planes), 0.25, np.float32)
        win = (1 - draw) / 2
        return Evaluation(0 * answer.value, answer.policy, np.stack([win, draw, win], 1))


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("net", ["uniform", "random"])
@pytest.mark.parametrize("wanted", [1, 2, 17, 500])
def test_the_number_of_simulations(make_search: MakeSearch, net: str, wanted: int) -> None:
    search = make_search("crazyhouse", net=net)
    report = search.run(Limits(simulations=wanted))
    assert (report.visits, report.stopped_by) == (wanted, "simulations")
    assert report.best in search.game.legal_moves()


def test_evaluations_are_counted(make_search: MakeSearch) -> None:
    report = make_search("crazyhouse", net="random").run(Limits(evaluations=100))
    assert (report.evaluations, report.stopped_by) == (100, "evaluations")


def test_a_limit_of_evaluations_ends_where_nothing_is_left_to_evaluate(
    make_search: MakeSearch,
) -> None:
    """All moves reach the move count, which is no proof, and no further position is evaluated."""
    search = make_search("chess")
    search.set_game(Game(search.game.rules, "4k3/8/8/8/8/8/8/R3K3 w - - 99 80"))
    report = search.run(Limits(evaluations=50))
    assert report.stopped_by == "evaluations" and report.evaluations < 50


def test_a_limit_of_any_size(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse")
    report = search.run(Limits(nodes=10**400, evaluations=10**23, simulations=5))
    assert report.visits == 5
    assert search.run(Limits(nodes=10**23, movetime=0.05)).visits > 5


def test_time_limit(make_search: MakeSearch) -> None:
    for net in ("uniform", "random"):
        report = make_search("crazyhouse", net=net).run(Limits(movetime=0.05))
        assert report.stopped_by == "movetime"
        assert report.best is not None


def test_the_time_of_a_report_is_that_of_the_search(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse")
    assert search.report().seconds == 0.0
    found = search.run(Limits(nodes=50))
    time.sleep(0.2)
    assert found.seconds <= search.report().seconds < found.seconds + 0.15


def test_moves_played_in_the_game_do_not_change_the_search(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse")
    game = Game(search.rules)
    search.set_game(game)
    search.run(Limits(nodes=20))
    game.push(int(game.legal_moves()[0]))
    best = search.run(Limits(nodes=40)).best
    assert best in Game(search.rules).legal_moves()


def test_depth_limit(make_search: MakeSearch) -> None:
    report = make_search("crazyhouse", net="random").run(Limits(depth=3, simulations=50_000))
    assert report.stopped_by == "depth"
    assert report.seldepth >= 3


def test_a_game_that_is_over(make_search: MakeSearch) -> None:
    search = make_search("chess", "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1")
    report = search.run(Limits(simulations=10))
    assert (report.best, report.lines, report.stopped_by) == (None, (), "game over")


def test_one_legal_move(make_search: MakeSearch) -> None:
    search = make_search("chess", "7k/8/8/8/8/8/6q1/7K w - - 0 1", net="random")
    assert len(search.game.legal_moves()) == 1
    report = search.run(Limits(movetime=600))
    assert report.best == search.game.legal_moves()[0]
    assert report.stopped_by == "solved"


def test_one_move_to_search_gets_its_whole_time(make_search: MakeSearch) -> None:
    """Its score is the question; only a clock saves time."""
    search = make_search("chess", net="random")
    report = search.run(Limits(movetime=0.3), moves=[int(search.game.legal_moves()[0])])
    assert report.stopped_by == "movetime"
    assert report.visits > 4 * search.params.batch_size


def test_a_batch_larger_than_the_tree_can_fill(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random", batch_size=512, batch_growth=0)
    report = search.run(Limits(simulations=300))
    assert report.visits == 300
    assert report.collisions > 0


def test_values_at_the_ends_of_lines_only_lower_a_move(make_search: MakeSearch) -> None:
    """pv_values: the same search, reported with other values."""
    values = {}
    for setting in ("off", "on"):
        search = make_search("crazyhouse", net="random", pv_values=setting, pv_depth=2)
        report = search.run(Limits(simulations=400), multipv=99)
        values[setting] = {line.move: line.q for line in report.lines if line.visits}
    assert values["on"].keys() == values["off"].keys()
    differences = [values["off"][move] - q for move, q in values["on"].items()]
    assert min(differences) >= 0 and max(differences) > 0


class Counting(RandomEvaluator):
    """Records the sizes of its batches."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder.shape, encoder.actions)
        self.sizes: list[int] = []

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        self.sizes.append(len(planes))
        return super().evaluate(planes)


@pytest.mark.parametrize("growth", [8, 4, 0])
def test_batches_grow_with_the_visits_of_the_root(
    make_search: MakeSearch, rules_of: Callable[[str], Rules], growth: float
) -> None:
    evaluator = Counting(Encoder(rules_of("crazyhouse").spec))
    search = make_search("crazyhouse", net=evaluator, batch_size=16, batch_growth=growth)
    search.run(Limits(simulations=1000))
    assert sum(evaluator.sizes) <= 1000
    visits = 0
    for size in evaluator.sizes:
        if growth and visits:
            assert size <= max(1, visits / growth)
        # there are also visits without evaluation, so this is the minimum for the root
        visits += size
    assert evaluator.sizes.count(16) > 1000 / 16 / 2
    assert evaluator.sizes[1:8] == [1 if growth else 16] * 7
    evaluator.sizes.clear()
    search.run(Limits(simulations=500))  # continues in the same tree: the root has enough visits
    assert evaluator.sizes[0] == 16


@pytest.mark.parametrize(
    "fen",
    [
        "1nr1knQ1/ppq1p1RP/Rp1b1P2/n2PP2p/1p1P3P/1P2pPNb/4P1B1/B3K2R[] w K - 0 38",
        "3k1bnr/r1pnpp1P/1p1q4/pP1P2p1/2QK1Pbp/P2PP3/1B4PP/RN3BNR[] b - - 0 18",
    ],
)
def test_a_proof_leaves_no_leaf_waiting(make_search: MakeSearch, fen: str) -> None:
    """Leaves collected for the next batch when the root was proven must be abandoned: otherwise they
    would be collisions forever, and a later search with no other leaves would never end."""
    search = make_search("crazyhouse", fen, net="random", batch_size=16)
    assert search.run(Limits(simulations=400)).stopped_by == "solved"
    g = search.tree.arrays
    for node in reachable(search):
        assert g.nodes[node]["state"] != WAITING
        assert g.nodes[node]["pending"] == 0


# --- stopping -------------------------------------------------------------------------------------


def test_stop_does_not_wait_for_the_network(
    make_search: MakeSearch, rules_of: Callable[[str], Rules]
) -> None:
    evaluator = Stuck(Encoder(rules_of("crazyhouse").spec))
    search = make_search(
        "crazyhouse", net=evaluator, batch_size=4, batch_growth=0, look_for_mates=False
    )

    def stop() -> None:
        evaluator.stuck.wait()
        search.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    report = search.run(Limits(infinite=True))
    thread.join()
    assert report.stopped_by == "stop"
    assert report.best in search.game.legal_moves()
    assert report.visits == 1 + 2 * 4
    edges = search.tree.edges(search.tree.root)
    assert 1 + edges.visits.sum() == report.visits
    # nothing is left pending, and the search continues from there
    g = search.tree.arrays
    assert g.nodes[search.tree.root]["pending"] == 0
    evaluator.answers = 1 << 30
    evaluator.go_on.set()
    assert search.run(Limits(simulations=200)).visits == 200


def test_a_batch_that_waits_is_not_evaluated_after_a_stop(
    make_search: MakeSearch, rules_of: Callable[[str], Rules]
) -> None:
    evaluator = Stuck(Encoder(rules_of("crazyhouse").spec))
    search = make_search("crazyhouse", net=evaluator, batch_size=4, batch_growth=0)

    def stop() -> None:
        evaluator.stuck.wait()
        while len(search.steps.pending) < search.steps.max_pending:
            time.sleep(0.001)
        search.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    search.run(Limits(infinite=True))
    thread.join()
    evaluator.go_on.set()
    search.settle()
    assert evaluator.answers == -1  # the running one; the one after it was not started


def test_stop_before_the_root_is_known(
    make_search: MakeSearch, rules_of: Callable[[str], Rules]
) -> None:
    evaluator = Stuck(Encoder(rules_of("crazyhouse").spec), answers=0)
    search = make_search("crazyhouse", net=evaluator)
    threading.Thread(target=lambda: (evaluator.stuck.wait(), search.stop())).start()
    report = search.run(Limits(infinite=True))
    assert report.best in search.game.legal_moves()
    assert report.visits == 0
    evaluator.go_on.set()


def test_no_batch_is_begun_where_no_time_is_left(
    make_search: MakeSearch, rules_of: Callable[[str], Rules]
) -> None:
    evaluator = Stuck(Encoder(rules_of("crazyhouse").spec), answers=1)
    search = make_search("crazyhouse", net=evaluator)
    report = search.run(Limits(movetime=0.0))
    assert report.best in search.game.legal_moves()
    assert (report.stopped_by, evaluator.answers) == ("movetime", 1)
    assert not report.lines[0].is_known
    assert search.run(Limits(evaluations=1)).evaluations == 1  # nothing was left pending


def test_an_infinite_search_of_a_mate_waits_for_stop(make_search: MakeSearch) -> None:
    search = make_search("chess", "7k/5Q2/6K1/8/8/8/8/8 w - - 0 1")
    timer = threading.Timer(0.2, search.stop)
    timer.start()
    report = search.run(Limits(infinite=True, simulations=3))
    assert report.stopped_by == "stop"
    assert report.lines[0].mate == 1


def test_reports_while_it_runs(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random")
    reports = []
    search.run(Limits(simulations=800), on_report=reports.append, interval=0.0, multipv=3)
    assert len(reports) > 3
    assert all(a.visits <= b.visits for a, b in itertools.pairwise(reports))
    assert all(a.depth <= b.depth for a, b in itertools.pairwise(reports))
    assert {len(report.lines) for report in reports} == {3}


@pytest.mark.parametrize("fen", [None, TACTICAL])
def test_a_report_without_lines_of_play_says_the_same(
    make_search: MakeSearch, fen: str | None
) -> None:
    search = make_search("crazyhouse", fen, net="random")
    search.run(Limits(simulations=300))
    whole, short = search.report(3), search.report(3, pv=False)
    assert any(len(line.pv) > 1 for line in whole.lines)
    assert short.lines == tuple(replace(line, pv=line.pv[:1]) for line in whole.lines)
    assert (short.best, short.visits, short.depth) == (whole.best, whole.visits, whole.depth)


# --- the same tree twice --------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"noise_epsilon": 0.25}, {"batch_size": 3}])
def test_the_same_seed_gives_the_same_tree(
    make_search: MakeSearch, params: dict[str, object]
) -> None:
    trees = []
    for _ in range(2):
        search = make_search(
            "crazyhouse", TACTICAL, net="random", deterministic=True, seed=4, **params
        )
        search.run(Limits(simulations=300))
        search.advance(search.report().lines[0].move)
        search.run(Limits(simulations=300))
        trees.append(signature(search))
    assert trees[0] == trees[1]


def test_clear_starts_over(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random", noise_epsilon=0.25)
    search.run(Limits(simulations=200))
    first = signature(search)
    search.clear()
    search.run(Limits(simulations=200))
    assert signature(search) == first


@pytest.mark.parametrize("streams", [1, 2])
def test_a_warm_search_is_as_new(
    make_search: MakeSearch, rules_of: Callable[[str], Rules], streams: int
) -> None:
    encoder = Encoder(rules_of("crazyhouse").spec)
    nets = [Counting(encoder) for _ in range(2 * streams)]
    cold, warm = (
        make_search("crazyhouse", net=own, noise_epsilon=0.25, deterministic=True)
        for own in (nets[:streams], nets[streams:])
    )
    warm.warm_up()
    nets = nets[streams:]
    assert all(warm.batch_rows in net.sizes for net in nets), "the greatest batch is not met"
    for search in (cold, warm):
        search.run(Limits(simulations=200))
    assert signature(warm) == signature(cold)


def test_another_seed_gives_another_tree(make_search: MakeSearch) -> None:
    trees = []
    for seed in (1, 2):
        search = make_search("crazyhouse", net="random", noise_epsilon=0.25, seed=seed)
        search.run(Limits(simulations=200))
        trees.append(signature(search))
    assert trees[0] != trees[1]


# --- moves and lines ------------------------------------------------------------------------------


def test_only_the_given_moves_are_searched(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", TACTICAL)
    search.run(Limits(simulations=300))
    legal = search.game.legal_moves().tolist()
    wanted = legal[3:6]
    before = {move: visits for move, visits, _ in signature(search)}
    report = search.run(Limits(simulations=400), moves=wanted, multipv=9)
    after = {move: visits for move, visits, _ in signature(search)}
    assert sorted(line.move for line in report.lines) == sorted(wanted)
    assert {move for move in legal if after[move] > before[move]} <= set(wanted)
    assert search.run(Limits(simulations=10)).visits == 10


def by_text(search: Search, *texts: str) -> list[int]:
    read = UciNotation().read
    return [read(search.game.rules, search.game.position, text) for text in texts]


def test_moves_excluded_from_a_search_are_in_the_next(
    make_search: MakeSearch,
) -> None:
    """A single move gets all visits of its search and would therefore be chosen in the next one."""
    search = make_search("crazyhouse", net="random", seed=1)
    free = search.run(Limits(simulations=300)).best
    other = next(m for m in search.game.legal_moves() if m != free)
    assert search.run(Limits(simulations=2000), moves=[other]).best == other
    again = search.run(Limits(simulations=300), multipv=99)
    assert again.best == free
    assert sum(line.visits for line in again.lines) <= 301


def test_the_same_moves_again_continue_the_search(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random")
    moves = by_text(search, "e2e4", "d2d4")
    search.run(Limits(simulations=200), moves=moves)
    report = search.run(Limits(simulations=200), moves=moves, multipv=2)
    assert sum(line.visits for line in report.lines) >= 399


def test_an_excluded_mate_proves_nothing_about_the_others(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", "6k1/5ppp/8/8/8/8/5PPP/3R2K1[] w - - 0 1", net="random")
    assert search.run(Limits(simulations=500)).lines[0].mate_in == 1
    report = search.run(Limits(simulations=300), moves=by_text(search, "g2g3", "g1f1"))
    assert report.stopped_by == "simulations"
    assert report.visits == 300
    assert search.run(Limits(simulations=500)).lines[0].mate_in == 1


def test_moves_without_visits_are_no_draws(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random", node_temperature=0.5)
    report = search.run(Limits(simulations=8), multipv=99)
    assert len(report.lines) == len(search.game.legal_moves())
    assert 1 < len(report.known_lines) <= 8
    assert all(line.visits for line in report.known_lines)
    policy = make_search("crazyhouse", net="random", use_raw_network=True)
    assert len(policy.run(Limits(simulations=8), multipv=5).known_lines) == 5


def test_one_evaluation_gives_the_net_s_value(make_search: MakeSearch) -> None:
    """A score of 0 would end a match as a draw."""
    search = make_search("crazyhouse", net="random")
    planes = search.encoder.planes(search.game.position)
    value = float(search.evaluators[0].evaluate(planes).value[0])
    for limits in (Limits(simulations=1), Limits(evaluations=1)):
        search.clear()
        line = search.run(limits).lines[0]
        assert not line.is_known and line.q == pytest.approx(value, abs=1e-6)
        assert line.cp == centipawns(line.q) != 0


def test_moves_of_an_earlier_search_restrict_no_other_position(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse")
    search.run(Limits(simulations=20), moves=[int(search.game.legal_moves()[0])])
    after = search.game.copy()
    after.push(int(after.legal_moves()[0]))
    search.set_game(after)
    assert search.report().best in after.legal_moves()


def test_no_legal_move_among_the_given_ones(make_search: MakeSearch) -> None:
    with pytest.raises(MoveError, match="none of the moves"):
        make_search("crazyhouse").run(Limits(simulations=10), moves=[0])


@pytest.mark.parametrize("variant", ["crazyhouse", "xiangqi", "chess"])
def test_lines_are_legal_and_end_with_the_game(make_search: MakeSearch, variant: str) -> None:
    search = make_search(variant)
    for _ in range(3):
        report = search.run(Limits(simulations=1500), multipv=50)
        for line in report.lines:
            assert line.pv[0] == line.move
            game = Game(search.rules)
            for move in search.game.moves:
                game.push(move)
            for move in line.pv:
                assert game.outcome() is None
                assert move in game.legal_moves()
                game.push(move)
        search.advance(report.best or 0)


def test_visits_of_the_lines_add_up(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random")
    report = search.run(Limits(simulations=500), multipv=100)
    assert sum(line.visits for line in report.lines) == report.visits - 1
    assert sum(line.prior for line in report.lines) == pytest.approx(1, abs=1e-3)
    assert report.ponder == report.lines[0].pv[1]


def test_draw_rates_are_shown_where_the_net_knows_them(
    make_search: MakeSearch, rules_of: Callable[[str], Rules]
) -> None:
    encoder = Encoder(rules_of("crazyhouse").spec)
    search = make_search("crazyhouse", net=Drawish(encoder.shape, encoder.actions))
    line = search.run(Limits(simulations=100)).lines[0]
    assert line.wdl == pytest.approx((0.375, 0.25, 0.375), abs=1e-4)
    assert make_search("crazyhouse").run(Limits(simulations=10)).lines[0].wdl is None


def test_raw_network(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random", use_raw_network=True)
    report = search.run(Limits(simulations=1000))
    assert (report.visits, report.stopped_by) == (1, "raw network")
    edges = search.tree.edges(search.tree.root)
    assert report.best == edges.moves[edges.priors.argmax()]


def test_noise_changes_priors_and_is_not_kept(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random", noise_epsilon=0.5)
    search.run(Limits(simulations=50))
    noisy = dict(zip(*_priors(search), strict=True))
    plain = make_search("crazyhouse", net="random")
    plain.run(Limits(simulations=50))
    clean = dict(zip(*_priors(plain), strict=True))
    assert sum(noisy.values()) == pytest.approx(1, abs=1e-3)
    assert max(abs(noisy[m] - clean[m]) for m in clean) > 0.05


def _priors(search: Search) -> tuple[list[int], list[float]]:
    edges = search.tree.edges(search.tree.root)
    return edges.moves.tolist(), edges.priors.tolist()


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "logit"), [(np.nan, 0.0), (0.0, np.nan), (np.inf, 0.0), (0.0, np.inf)]
)
def test_answers_that_are_no_numbers(
    make_search: MakeSearch, rules_of: Callable[[str], Rules], value: float, logit: float
) -> None:
    encoder = Encoder(rules_of("crazyhouse").spec)
    search = make_search("crazyhouse", net=Broken(encoder, value, logit))
    with pytest.raises(DataError, match="not a number"):
        search.run(Limits(simulations=100))


class Interrupted(RandomEvaluator):
    """Raises KeyboardInterrupt while it evaluates the first batch, as Ctrl-C does in the waiting thread."""

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.2)
        return super().evaluate(planes)


def test_after_an_interrupt_at_the_root_the_position_can_be_searched(
    make_search: MakeSearch, rules_of: Callable[[str], Rules]
) -> None:
    encoder = Encoder(rules_of("crazyhouse").spec)
    net = Interrupted(encoder.shape, encoder.actions)
    search = make_search("crazyhouse", net=net)
    with pytest.raises(KeyboardInterrupt):
        search.run(Limits(simulations=50))
    net.evaluate = super(Interrupted, net).evaluate  # type: ignore[method-assign]
    assert search.run(Limits(simulations=50, movetime=20)).stopped_by == "simulations"


def test_time_without_end(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random")
    for movetime in (math.inf, 1e11):
        assert search.run(Limits(simulations=50, movetime=movetime)).stopped_by == "simulations"


def test_a_closed_search_raises(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", net="random")
    search.close()
    with pytest.raises(VariantAIError, match="this search is closed"):
        search.run(Limits(simulations=5))


def test_an_infinite_search_reports_when_it_has_finished(make_search: MakeSearch) -> None:
    search = make_search("crazyhouse", "6k1/5ppp/8/8/8/8/8/R5K1[] w - - 0 1")
    reports: list[Report] = []

    def hear(report: Report) -> None:
        reports.append(report)
        search.stop()

    search.run(Limits(infinite=True), on_report=hear, interval=1000)
    assert [(report.stopped_by, report.lines[0].mate_in) for report in reports] == [("solved", 1)]


def test_a_depth_that_no_line_reaches(make_search: MakeSearch) -> None:
    """Two bare kings: every line repeats a position before it is long enough."""
    search = make_search("xiangqi", "3k5/9/9/9/9/9/9/9/9/5K3 w - - 0 1")
    report = search.run(Limits(depth=60, movetime=60))
    assert report.stopped_by == "depth"
    assert report.visits >= 60 * 500
    # the engine asks the same after a ponder hit
    assert report.depth < 60
    assert line_limit(search.game, report, 60, None) == "depth"
    assert line_limit(search.game, report, None, 60) == ""


def test_slices_begin_with_one_visit_for_slow_rules(
    make_search: MakeSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices must be short, because a visit may take ten milliseconds."""
    search = make_search("atomic on fairy")
    sizes: list[int] = []
    fill = search.tree.fill

    def watched(
        batch: object, start: int, size: int, most: int, enough: int, *rest: object
    ) -> object:
        sizes.append(enough)
        return fill(batch, start, size, most, enough, *rest)

    monkeypatch.setattr(search.tree, "fill", watched)
    search.run(Limits(simulations=20))
    assert sizes[1] <= 4  # the first is that of the root


def test_ends_of_games_leave_the_last_batches_whole(
    make_search: MakeSearch, rules_of: Callable[[str], Rules]
) -> None:
    """A limit of evaluations does not limit visits, some of which end by repetition here."""
    net = Counting(Encoder(rules_of("xiangqi").spec))
    fen = "2bak4/9/9/9/9/9/9/9/4A4/4KAB2 w - - 0 1"
    search = make_search("xiangqi", fen, net=net, batch_size=16, batch_growth=0.0)
    report = search.run(Limits(evaluations=1))
    assert net.sizes == [1]
    report = search.run(Limits(evaluations=960))
    assert report.terminals > 20
    assert report.evaluations == 960
    assert set(net.sizes[3:-1]) == {16}  # the tree is too narrow for the first


def test_a_net_of_another_shape(rules_of: Callable[[str], Rules]) -> None:
    rules, other = rules_of("crazyhouse"), Encoder(rules_of("xiangqi").spec)
    with pytest.raises(DataError, match="expects planes"):
        Search(rules.spec, UniformEvaluator(other.shape, other.actions), rules=rules)


def test_errors_of_the_evaluator_arrive(
    make_search: MakeSearch, rules_of: Callable[[str], Rules]
) -> None:
    class Failing(RandomEvaluator):
        def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
            raise RuntimeError("out of memory")

    encoder = Encoder(rules_of("crazyhouse").spec)
    search = make_search("crazyhouse", net=Failing(encoder.shape, encoder.actions))
    with pytest.raises(RuntimeError, match="out of memory"):
        search.run(Limits(simulations=100))
