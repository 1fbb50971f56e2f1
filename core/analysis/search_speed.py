"""Speed of a search, and the share of its parts.

The evaluator alone and the search are timed in turns, so that other load on the machine affects
both. The search reports the time to gather leaves, to wait for the evaluator and to process its
answers. The first is divided by the cost of its parts, measured alone on positions like those of
the search:

    select     the rest of gathering leaves
    rules      legal moves and end of the game for every new node, one move played for every edge of
               every path
    encode     planes of every evaluated position; for rules that are not compiled, selection and encoding
               are counted as rules
    back-up    priors of new nodes, and back-up of values
    network    waiting for the evaluator
    other      bookkeeping in between
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.encoding.encoding_kernels import InputTables, encode_into
from variant_ai.core.errors import SettingError
from variant_ai.core.inference.backends.netless_backends import UniformEvaluator
from variant_ai.core.inference.choosing.evaluator_timing import random_planes
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.jit import Number, njit
from variant_ai.core.jit.signatures import Floats2D
from variant_ai.core.rules.chase_judge import load_judge
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.kernel.attacks import MoveWork
from variant_ai.core.rules.kernel.game_ends import end_of
from variant_ai.core.rules.kernel.kernel_rules import KernelRules, is_compiled
from variant_ai.core.rules.kernel.movegen import legal_moves_into, new_work
from variant_ai.core.rules.kernel.play_move import play_into
from variant_ai.core.rules.kernel.table_layout import MoveLists, Tables, new_moves
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.search.interface import make_search
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Phases, Report
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.nodes import bytes_used

SAMPLES = 512
PROFILED = 20_000
"""Simulations to profile a search with a uniform evaluator."""
LONGER = 1.5
"""Longest time of a search until its evaluations are made, as a multiple of the time asked for: ends of
games need none."""


class Instant(UniformEvaluator):
    """Gives equal policies and values of 0 at no cost; the search treats it like a net."""

    name = "instant"
    is_uniform = False


@dataclass(frozen=True)
class PartCosts:
    """Seconds for one call of each part."""

    moves: float
    """Legal moves and end of the game of a position."""
    play: float
    encode: float


def part_costs(game: Game) -> PartCosts:
    """Measure processor time on positions of random play from the game's current one. All are 0 if
    the rules are not compiled."""
    rules, encoder = game.rules, Encoder(game.rules.spec)
    if not is_compiled(rules):
        return PartCosts(0.0, 0.0, 0.0)
    positions, played = _sample(rules, game)
    lists, work, after = new_moves(2), new_work(), np.zeros(1, POSITION)
    planes = np.zeros((1, int(np.prod(encoder.shape))), np.float32)
    tables, program = rules.tables, encoder.input_record
    return PartCosts(
        _cost(lambda: _moves_loop(tables, positions, lists, work), len(positions)),
        _cost(lambda: _play_loop(tables, positions, played, after), len(positions)),
        _cost(lambda: _encode_loop(tables, program, positions, planes), len(positions)),
    )


def _cost(call: Callable[[], object], count: int) -> float:
    """Processor time of one item in seconds, the minimum of several rounds."""
    call()
    best = np.inf
    for _ in range(7):
        begun = time.thread_time()
        call()
        best = min(best, time.thread_time() - begun)
    return float(best) / count


def _sample(rules: KernelRules, game: Game) -> tuple[Position, NDArray[np.int64]]:
    """Sample positions a few random moves ahead, shape (SAMPLES,), with a legal move of each."""
    rng = np.random.default_rng(0)
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
def _moves_loop(t: Tables, p: Position, out: MoveLists, work: MoveWork) -> Number:
    total = np.int64(0)
    for i in range(p.shape[0]):
        n = np.int64(legal_moves_into(t, p, i, out, work))
        total += n + end_of(t, p, i, n, np.int64(work[0]["check"]))
    return total


@njit
def _play_loop(t: Tables, p: Position, moves: NDArray[np.int64], after: Position) -> Number:
    total = np.int64(0)
    for i in range(p.shape[0]):
        play_into(t, p, i, after, np.int64(0), moves[i])
        total += np.int64(after[0]["side"])
    return total


@njit
def _encode_loop(t: Tables, e: InputTables, p: Position, planes: Floats2D) -> Number:
    for i in range(p.shape[0]):
        encode_into(t, e, p, i, planes, np.int64(0), np.int64(0), np.int64(0))
    return np.int64(p.shape[0])


# --- the search -----------------------------------------------------------------------------------


@dataclass
class Speed:
    """Result of a measurement. Rates are per second of wall-clock time, unless noted."""

    simulations: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    """Wall-clock time of the search."""
    simulations_per_second: float = 0.0
    simulations_per_processor_second: float = 0.0
    """Per second of processor time, summed over all threads of the process."""
    evaluations_per_second: float = 0.0
    """New positions that the network evaluated in the search."""
    evaluator_rate: float | None = None
    """Positions per second of the evaluator alone, at the same batch size; None if it has no
    cost."""
    evaluator_processor_rate: float | None = None
    batch_fill: float | None = None
    """Mean number of positions in a batch, divided by the batch size."""
    time_split: dict[str, float] = field(default_factory=dict)
    """Shares of the search's time by part."""
    terminals: int = 0
    collisions: int = 0
    waste: float = 0.0
    """Share of all descents that reached a leaf waiting for the network."""
    merges: int = 0
    tree_nodes: int = 0
    bytes_per_node: float | None = None
    path_edges: int = 0
    """Edges of all paths."""
    mean_depth: float = 0.0
    """Mean number of edges of a path."""

    @property
    def ratio(self) -> float | None:
        """Rate of new evaluations in the search, divided by that of the evaluator alone."""
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
    """Measure evaluator and search in turns, `rounds` times each.

    simulations: total number for the search; None: as many as fit in `seconds`. stops: a function
    that ends the search at once is added to it. stopped: called between turns; if True, the results
    so far are returned. Raises SettingError for another search than the graph search.
    """
    rules = game.rules
    rounds = rounds if simulations is None else min(rounds, simulations)
    # the first batches of a search are smaller; measure full ones
    params = params.replace(batch_growth=0.0)
    load_judge(rules)  # engines and matches do so before any clock runs
    search = _graph_search(game, evaluator, params)
    speed, phases = Speed(), Phases()
    alone, alone_processor, evaluated = 0.0, 0.0, 0
    processor = tree = 0.0
    if stops is not None:
        stops.append(search.stop)
    with search:
        search.set_game(game)
        search.run(Limits(simulations=4 * params.batch_size))
        for number in range(rounds):
            if stopped():
                break
            if not evaluator.is_uniform:
                search.settle()
                wall, used, count = _alone(evaluator, params.batch_size, seconds / rounds / 3)
                alone += wall
                alone_processor += used
                evaluated += count
            limits = Limits(movetime=seconds / rounds)
            if evaluated:
                # Limit the number, since a time limit would leave uncounted batches behind.
                batches = round(evaluated / alone * seconds / rounds / params.batch_size)
                enough = (
                    max(batches, 1) * params.batch_size
                )  # no smaller batch at the end of a turn
                limits = Limits(evaluations=enough, movetime=LONGER * seconds / rounds)
            if simulations is not None:
                share = simulations * (number + 1) // rounds - simulations * number // rounds
                limits = Limits(simulations=share)
            before, own = time.process_time(), time.thread_time()
            report = search.run(limits)
            processor += time.process_time() - before
            tree += time.thread_time() - own
            _count(speed, report, search)
            _add(phases, search.phases)
            on_round()
            if report.visits == 0:  # solved, or full
                break
        speed.bytes_per_node = bytes_per_node(search)
    _rates(speed, processor)
    if evaluated:
        speed.evaluator_rate = evaluated / alone
        speed.evaluator_processor_rate = evaluated / max(alone_processor, 1e-9)
        speed.batch_fill = phases.rows / max(phases.batches * search.batch_rows, 1)
    if not stopped():
        if evaluator.is_uniform:
            phases, seen, tree = _profile(game, evaluator, params)
        else:
            seen = speed
        speed.time_split = _split(phases, seen, tree, part_costs(game), evaluator.is_uniform)
    return speed


def _graph_search(game: Game, evaluator: Evaluator, params: SearchParams) -> Search:
    """Return the search of the settings. Raises SettingError if it is not the graph search, whose parts
    are timed here."""
    search = make_search(game.rules.spec, evaluator, params, rules=game.rules)
    if not isinstance(search, Search):
        search.close()
        raise SettingError(
            f"algorithm = {params.algorithm!r}: only the search `graph` can be timed by its parts"
        )
    return search


def bytes_per_node(search: Search) -> float:
    """Bytes per node of a full tree, with all arrays and each node's share of the hash table."""
    arrays = search.tree.arrays
    table = 4 * len(arrays.heads)
    used = (bytes_used(arrays) - table) / max(int(arrays.state[0]["node_count"]), 1)
    return used / (1.0 - table / (search.params.memory_mb << 20))


def _profile(game: Game, evaluator: Evaluator, params: SearchParams) -> tuple[Phases, Speed, float]:
    """Profile a short search with an evaluator that costs nothing: with the uniform evaluator, all
    runs in compiled code, which has no clock."""
    seen = Speed()
    instant = Instant(evaluator.planes_shape, evaluator.actions)
    with _graph_search(game, instant, params) as search:
        search.set_game(game)
        search.run(Limits(simulations=4 * params.batch_size))
        before = time.thread_time()
        report = search.run(Limits(simulations=PROFILED))
        tree = time.thread_time() - before
        _count(seen, report, search)
        return search.phases, seen, tree


def _alone(evaluator: Evaluator, batch: int, seconds: float) -> tuple[float, float, int]:
    """Wall-clock seconds, processor seconds and positions of the evaluator alone."""
    planes = random_planes(evaluator, batch)
    evaluator.evaluate(planes)
    begun, used, count = time.perf_counter(), time.process_time(), 0
    while count == 0 or time.perf_counter() - begun < seconds:
        evaluator.evaluate(planes)
        count += batch
    return time.perf_counter() - begun, time.process_time() - used, count


def _count(speed: Speed, report: Report, search: Search) -> None:
    speed.simulations += report.visits
    speed.evaluations += report.evaluations
    speed.seconds += report.seconds
    speed.terminals += report.terminals
    speed.collisions += report.collisions
    speed.merges += report.merges
    speed.tree_nodes = report.tree_nodes
    speed.path_edges += search.tree.counter("depths")


def _add(total: Phases, one: Phases) -> None:
    for name in Phases.__dataclass_fields__:
        setattr(total, name, getattr(total, name) + getattr(one, name))


def _rates(speed: Speed, processor: float) -> None:
    seconds = max(speed.seconds, 1e-9)
    speed.simulations_per_second = speed.simulations / seconds
    speed.simulations_per_processor_second = speed.simulations / max(processor, 1e-9)
    speed.evaluations_per_second = speed.evaluations / seconds
    speed.waste = speed.collisions / max(speed.collisions + speed.simulations, 1)
    speed.mean_depth = speed.path_edges / max(speed.simulations, 1)


def _split(
    phases: Phases, seen: Speed, tree: float, parts: PartCosts, is_free: bool
) -> dict[str, float]:
    """Shares of the time of a search, which sum to 1. For an evaluator without cost, planes and
    waiting are left out. tree: processor seconds of the tree's thread, fewer than its wall-clock
    time on a busy machine."""
    new = seen.evaluations + seen.terminals
    seconds = seen.seconds
    slowed = max((seconds - phases.wait) / max(tree, 1e-9), 1.0)
    rules = min(slowed * (parts.moves * new + parts.play * seen.path_edges), phases.fill)
    encode = min(slowed * parts.encode * phases.rows, phases.fill - rules)
    took = {"select": phases.fill - rules - encode, "rules": rules, "encode": encode}
    if not parts.moves:  # rules that are not compiled: their share is unknown, but large
        took = {"rules": phases.fill}
    took["back-up"] = phases.complete
    if is_free:
        took.pop("encode", None)
    else:
        took["network"] = phases.wait
        took["other"] = max(seconds - phases.fill - phases.complete - phases.wait, 0.0)
    total = max(sum(took.values()), 1e-12)
    return {name: part / total for name, part in took.items()}
