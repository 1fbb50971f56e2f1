"""Where the time of a search goes.

The evaluator's own rate and the search are timed in turns, so that whatever else the machine does
falls on both. The tree's own work is timed with an evaluator that answers at once, and split by
what its parts cost alone on positions like those it visits:

    rules      legal moves and end of the game of every new node, a move played for every edge of
               every path
    encode     planes of every position evaluated
    select     what is left of the descents
    back-up    priors of new nodes, and values carried up
    network    waiting for the evaluator
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.encoding.kernels import encode_into
from variant_ai.core.inference.baseline import UniformEvaluator
from variant_ai.core.inference.interface import Evaluation, Evaluator
from variant_ai.core.inference.measure import random_planes
from variant_ai.core.rules.cache import Number, Record, njit
from variant_ai.core.rules.ends import end_of
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.kernel import KernelRules
from variant_ai.core.rules.movegen import legal_moves_into, new_moves, new_work
from variant_ai.core.rules.play import play_into
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.search.batch import new_batch
from variant_ai.core.search.limits import Limits
from variant_ai.core.search.nodes import UNPROVEN
from variant_ai.core.search.params import SearchParams
from variant_ai.core.search.report import Report
from variant_ai.core.search.search import Search
from variant_ai.core.search.tree import Tree

SAMPLES = 512


@dataclass
class Worked:
    """What an evaluator did while it was watched."""

    batches: int = 0
    positions: int = 0
    seconds: float = 0.0


class Watched(Evaluator):
    """An evaluator that counts and times what it is asked."""

    def __init__(self, inner: Evaluator) -> None:
        self.inner = inner
        self.name, self.info = inner.name, inner.info
        self.planes_shape, self.actions = inner.planes_shape, inner.actions
        self.precision, self.threads, self.notes = inner.precision, inner.threads, inner.notes
        self.worked = Worked()

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        begun = time.perf_counter()
        result = self.inner.evaluate(planes)
        self.worked.seconds += time.perf_counter() - begun
        self.worked.batches += 1
        self.worked.positions += len(planes)
        return result


@dataclass(frozen=True)
class PartCosts:
    """Seconds of one call of each part."""

    moves: float
    """Legal moves and end of the game of a position."""
    play: float
    encode: float


def part_costs(rules: KernelRules, encoder: Encoder, game: Game, seed: int = 0) -> PartCosts:
    """Measured on positions of random play from the game's last one; processor time."""
    positions, played = _sample(rules, game, seed)
    lists, work, after = new_moves(2), new_work(), np.zeros(1, POSITION)
    planes = np.zeros((1, int(np.prod(encoder.shape))), np.float32)
    tables, program = rules.tables, encoder.input_record
    return PartCosts(
        _cost(lambda: int(_moves_loop(tables, positions, lists, work)), len(positions)),
        _cost(lambda: int(_play_loop(tables, positions, played, after)), len(positions)),
        _cost(lambda: int(_encode_loop(program, positions, planes)), len(positions)),
    )


def _cost(call, count: int) -> float:  # type: ignore[no-untyped-def]
    """Seconds of processor time of one item, the best of several rounds."""
    call()
    best = np.inf
    for _ in range(7):
        begun = time.thread_time()
        call()
        best = min(best, time.thread_time() - begun)
    return float(best) / count


def _sample(rules: KernelRules, game: Game, seed: int) -> tuple[Position, NDArray[np.int64]]:
    """Positions of games of a few random moves, shape (SAMPLES,), and a legal move of each."""
    rng = np.random.default_rng(seed)
    positions = np.zeros(SAMPLES, POSITION)
    played = np.zeros(SAMPLES, np.int64)
    position = game.position.copy()
    count = 0
    steps = 0
    while count < SAMPLES:
        moves = rules.legal_moves(position)
        if not len(moves) or steps >= 12:
            if steps == 0:
                break
            position, steps = game.position.copy(), 0
            continue
        move = int(rng.choice(moves))
        positions[count], played[count] = position[0], move
        position = rules.play(position, move)
        count, steps = count + 1, steps + 1
    return positions[:count], played[:count]


@njit
def _moves_loop(t: Record, p: Position, out: Record, work: Record) -> Number:
    total = np.int64(0)
    for i in range(p.shape[0]):
        n = np.int64(legal_moves_into(t, p, i, out, work))
        total += n + end_of(t, p, i, n, np.int64(work[0]["check"]))
    return total


@njit
def _play_loop(t: Record, p: Position, moves: NDArray[np.int64], after: Position) -> Number:
    total = np.int64(0)
    for i in range(p.shape[0]):
        play_into(t, p, i, after, np.int64(0), moves[i])
        total += np.int64(after[0]["side"])
    return total


@njit
def _encode_loop(e: Record, p: Position, planes: NDArray[np.float32]) -> Number:
    for i in range(p.shape[0]):
        encode_into(e, p, i, planes, np.int64(0), np.int64(0), np.int64(0))
    return np.int64(p.shape[0])


def bytes_per_node(tree: Tree) -> float:
    """Of a full tree, all arrays counted: the hash table is there from the start, and each node of a
    full tree has its share of it."""
    state = tree.arrays.state[0]
    table = 4 * len(tree.arrays.heads)
    used = (int(state["bytes"]) - table) / max(int(state["node_count"]), 1)
    return used / (1.0 - table / int(state["byte_limit"]))


# --- the tree's share ----------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeCosts:
    """Seconds of processor time that one evaluation costs the tree's thread, by part."""

    select: float
    rules: float
    encode: float
    back_up: float
    bytes_per_node: float
    mean_depth: float

    @property
    def total(self) -> float:
        return self.select + self.rules + self.encode + self.back_up


def tree_costs(
    rules: KernelRules, encoder: Encoder, game: Game, params: SearchParams, evaluations: int
) -> TreeCosts:
    """Run a tree on an evaluator that is free, and split its time."""
    parts = part_costs(rules, encoder, game)
    size = params.batch_size
    tree = Tree(encoder, rules, params)
    tree.set_game(game)
    tree.begin()
    batch = new_batch(size, int(np.prod(encoder.shape)), params.max_depth)
    values, logits = np.zeros(size, np.float32), np.zeros((size, encoder.actions), np.float32)
    filling = completing = 0.0
    # the root, then a warm-up that compiles or loads what the loop needs
    for warm in (1, 8 * size, evaluations):
        filling = completing = 0.0
        tree.begin()
        state = tree.arrays.state[0]
        while int(state["evaluations"]) < warm:
            begun = time.thread_time()
            row, _ = tree.fill(batch, 0, size, size)
            filled = time.thread_time()
            if tree.arrays.nodes[tree.root]["proof"] != UNPROVEN:
                break
            tree.complete(batch, 0, row, values, logits, None)
            filling += filled - begun
            completing += time.thread_time() - filled
        if warm == 1:
            tree.prepare_root(None, np.random.default_rng(params.seed))
    state = tree.arrays.state[0]
    done = max(int(state["evaluations"]), 1)
    steps = int(state["depths"]) / max(int(state["visits"]), 1)
    rules_cost = parts.moves + parts.play * steps
    return TreeCosts(
        select=max(filling / done - rules_cost - parts.encode, 0.0),
        rules=rules_cost,
        encode=parts.encode,
        back_up=completing / done,
        bytes_per_node=bytes_per_node(tree),
        mean_depth=steps,
    )


# --- the whole -----------------------------------------------------------------------------------


@dataclass
class Speed:
    """What a bench measured. Rates are by the wall's clock unless they say otherwise."""

    simulations: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    """Of the search."""
    simulations_per_second: float = 0.0
    simulations_per_processor_second: float = 0.0
    """Per second of processor time of all threads of the process."""
    evaluations_per_second: float = 0.0
    """New positions that the network saw inside the search."""
    evaluator_rate: float | None = None
    """Positions a second of the evaluator alone at the same batch size; None where it is free."""
    evaluator_processor_rate: float | None = None
    batch_fill: float | None = None
    """Positions of a mean batch over the batch size."""
    time_split: dict[str, float] = field(default_factory=dict)
    """Shares of the search's time: select, rules, encode, back-up, network (waiting for it)."""
    terminals: int = 0
    collisions: int = 0
    waste: float = 0.0
    """Share of all descents that met a leaf which was at the network already."""
    merges: int = 0
    tree_nodes: int = 0
    bytes_per_node: float | None = None
    mean_depth: float = 0.0
    """Edges of a mean path."""

    @property
    def ratio(self) -> float | None:
        """New evaluations inside the search over the evaluator's own rate."""
        if not self.evaluator_rate:
            return None
        return self.evaluations_per_second / self.evaluator_rate


def measure(
    game: Game,
    evaluator: Evaluator,
    params: SearchParams,
    *,
    simulations: int | None = None,
    seconds: float = 10.0,
    rounds: int = 5,
    on_round: Callable[[], None] = lambda: None,
    stops: list[Callable[[], None]] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Speed:
    """Time evaluator and search in turns, `rounds` of each.

    simulations: of the search in all; None: as many as take `seconds`. stops: is given what ends
    the search at once. stopped: asked between turns; what is measured by then is returned.
    """
    rules = game.rules
    is_free = isinstance(evaluator, UniformEvaluator)
    watched = None if is_free else Watched(evaluator)
    search = Search(rules.spec, watched or evaluator, params, rules=rules)
    speed = Speed()
    if stops is not None:
        stops.append(search.stop)
    try:
        search.set_game(game)
        search.run(Limits(simulations=4 * params.batch_size))
        if watched is not None:
            watched.worked = Worked()
        alone, alone_processor, asked = 0.0, 0.0, 0
        processor = 0.0
        for number in range(rounds):
            if stopped():
                break
            if watched is not None:
                wall, used, count = _alone(evaluator, params.batch_size, seconds / rounds / 3)
                alone, alone_processor, asked = alone + wall, alone_processor + used, asked + count
            if simulations is None:
                limits = Limits(movetime=seconds / rounds)
            else:
                share = simulations * (number + 1) // rounds - simulations * number // rounds
                limits = Limits(simulations=share)
            before = time.process_time()
            report = search.run(limits)
            processor += time.process_time() - before
            _count(speed, report)
            on_round()
            if report.visits == 0:  # solved, or full
                break
        _rates(speed, processor)
        if watched is not None and asked:
            speed.evaluator_rate = asked / alone
            speed.evaluator_processor_rate = asked / max(alone_processor, 1e-9)
            filled = watched.worked.batches * params.batch_size
            speed.batch_fill = watched.worked.positions / max(filled, 1)
    finally:
        search.close()
    if isinstance(rules, KernelRules) and not stopped():
        costs = tree_costs(rules, Encoder(rules.spec), game, params, 20_000)
        speed.time_split = _split(speed, costs, is_free)
        speed.bytes_per_node, speed.mean_depth = costs.bytes_per_node, costs.mean_depth
    return speed


def _alone(evaluator: Evaluator, batch: int, seconds: float) -> tuple[float, float, int]:
    """(wall seconds, processor seconds, positions) of the evaluator by itself."""
    planes = random_planes(evaluator, batch)
    evaluator.evaluate(planes)
    begun, used, count = time.perf_counter(), time.process_time(), 0
    while count == 0 or time.perf_counter() - begun < seconds:
        evaluator.evaluate(planes)
        count += batch
    return time.perf_counter() - begun, time.process_time() - used, count


def _count(speed: Speed, report: Report) -> None:
    speed.simulations += report.visits
    speed.evaluations += report.evaluations
    speed.seconds += report.seconds
    speed.terminals += report.terminals
    speed.collisions += report.collisions
    speed.merges += report.merges
    speed.tree_nodes = report.tree_nodes


def _rates(speed: Speed, processor: float) -> None:
    seconds = max(speed.seconds, 1e-9)
    speed.simulations_per_second = speed.simulations / seconds
    speed.simulations_per_processor_second = speed.simulations / max(processor, 1e-9)
    speed.evaluations_per_second = speed.evaluations / seconds
    speed.waste = speed.collisions / max(speed.collisions + speed.simulations, 1)


def _split(speed: Speed, costs: TreeCosts, is_free: bool) -> dict[str, float]:
    """Shares of the search's time by the costs of an evaluation; they sum to 1."""
    parts = {
        "select": costs.select,
        "rules": costs.rules,
        "encode": 0.0 if is_free else costs.encode,
        "back-up": costs.back_up,
    }
    took = {name: cost * speed.evaluations for name, cost in parts.items()}
    busy = sum(took.values())
    took["network"] = 0.0 if is_free else max(speed.seconds - busy, 0.0)
    total = max(busy + took["network"], 1e-12)
    return {name: part / total for name, part in took.items()}
