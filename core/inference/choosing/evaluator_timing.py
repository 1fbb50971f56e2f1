"""Timing of evaluators against each other on a machine that is never quite idle.

Contenders take turns, so that the machine's other work affects all of them equally. A turn is
longer than a batch: after each batch the threads of onnxruntime spin for some 50 ms and take a core
from the next contender.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.inference.backends.composite_backends import ParallelEvaluator
from variant_ai.core.inference.backends.padding import fixed_sizes
from variant_ai.core.inference.interface import Evaluator

Name = TypeVar("Name", bound=Hashable)

SPINNING = 0.08
"""Seconds after which threads that wait for a batch certainly sleep (onnxruntime: 55 ms)."""

LEAST_CUT = 32
"""Smaller batches are not cut: their layers fit into the caches."""
PIECE_ROUNDS = 6
PIECE_GAIN = 0.05

TURN = 0.06
"""Seconds of the timed part of a turn."""


@dataclass(frozen=True)
class Timing:
    """Times of one evaluation of a batch, in seconds."""

    batch: int
    best: float
    median: float
    mean: float
    processor: float
    """Median processor time of all threads."""

    @property
    def rate(self) -> float:
        """Positions per second, by the median."""
        return self.batch / self.median

    @property
    def processor_rate(self) -> float:
        """Positions per second of processor time."""
        return self.batch / self.processor if self.processor else 0.0


def random_planes(evaluator: Evaluator, batch: int) -> NDArray[np.float32]:
    """Return planes float32 [B, C, H, W] as costly as real ones: a tenth of the squares is set."""
    rng = np.random.default_rng(0)
    return (rng.random((batch, *evaluator.planes_shape)) < 0.1).astype(np.float32)


def interleaved(
    evaluators: Mapping[Name, Evaluator],
    batch: int,
    *,
    warm_up: int = 2,
    rounds: int | None = None,
    seconds: float | None = None,
    apart: bool = False,
    advance: Callable[[int], None] = lambda n: None,
) -> dict[Name, Timing]:
    """Time each evaluator on the same batch, in turns of `TURN` seconds. A turn begins with
    evaluations that do not count, until the threads of the previous one have stopped spinning.

    It stops after `rounds` counted evaluations of each, or after `seconds` in total, whichever comes
    first (at least three turns of each, or `rounds`). With `apart`, the parts of a
    `ParallelEvaluator` do not wait for each other, as in a search. `advance` is called with the
    number of evaluations of each turn.
    """
    wall: dict[Name, list[float]] = {name: [] for name in evaluators}
    processor: dict[Name, list[float]] = {name: [] for name in evaluators}
    planes = {name: random_planes(e, batch) for name, e in evaluators.items()}
    for name, evaluator in evaluators.items():
        for _ in range(warm_up):
            evaluator.evaluate(planes[name])
    began = time.perf_counter()
    turns = 0
    while evaluators:
        for name, evaluator in evaluators.items():
            left = None if rounds is None else rounds - len(wall[name])
            if left == 0:
                continue
            _settle(evaluator, planes[name])
            if apart and isinstance(evaluator, ParallelEvaluator):
                more_wall, more_processor = _turn_apart(evaluator, planes[name])
            else:
                more_wall, more_processor = _turn(evaluator, planes[name], left)
            wall[name] += more_wall
            processor[name] += more_processor
            advance(len(more_wall))
        turns += 1
        late = seconds is not None and time.perf_counter() - began > seconds and turns >= 3
        if late or (rounds is not None and min(map(len, wall.values())) >= rounds):
            break
    return {
        name: Timing(
            batch,
            float(np.min(times)),
            float(np.median(times)),
            float(np.mean(times)),
            float(np.median(processor[name])),
        )
        for name, times in wall.items()
    }


def best_piece(evaluator: Evaluator, batch: int) -> int | None:
    """Return the fastest number of positions to evaluate at once; None: the whole batch.

    Layers of a large batch may not fit into the processor's caches; each position then takes longer.
    Sizes take turns, and a piece must be faster by `PIECE_GAIN`.
    """
    if batch < LEAST_CUT:
        return None
    sizes = fixed_sizes(batch, 4)[1:]
    planes = random_planes(evaluator, batch)
    times: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(PIECE_ROUNDS):
        for size in sizes:
            before = time.perf_counter()
            for first in range(0, batch, size):
                evaluator.evaluate(planes[first : first + size])
            times[size].append(time.perf_counter() - before)
    medians = {size: float(np.median(times[size][1:])) for size in sizes}
    best = min(sizes, key=lambda size: medians[size])
    return best if medians[best] * (1 + PIECE_GAIN) < medians[batch] else None


def _settle(evaluator: Evaluator, planes: NDArray[np.float32]) -> None:
    """Evaluate while threads of another evaluator may still spin, at least once."""
    began = time.perf_counter()
    while True:
        evaluator.evaluate(planes)
        if time.perf_counter() - began > SPINNING:
            return


def _turn(
    evaluator: Evaluator, planes: NDArray[np.float32], most: int | None
) -> tuple[list[float], list[float]]:
    """Wall-clock and processor seconds of each evaluation of a turn: at least one, and at most
    `most` if that is given."""
    wall: list[float] = []
    processor: list[float] = []
    began = time.perf_counter()
    while True:
        before, used = time.perf_counter(), time.process_time()
        evaluator.evaluate(planes)
        wall.append(time.perf_counter() - before)
        processor.append(time.process_time() - used)
        if time.perf_counter() - began > TURN or (most is not None and len(wall) >= most):
            return wall, processor


def _turn_apart(
    evaluator: ParallelEvaluator, planes: NDArray[np.float32]
) -> tuple[list[float], list[float]]:
    """`_turn` with one mean over the evaluations of a turn in which each part runs on its own."""
    # a small batch leaves some evaluators without a position
    parts = [part for part in np.array_split(planes, len(evaluator.evaluators)) if len(part)]
    counts = [0] * len(parts)

    def work(part: int) -> None:
        while counts[part] == 0 or time.perf_counter() - began < TURN:
            evaluator.evaluators[part].evaluate(parts[part])
            counts[part] += 1

    with ThreadPoolExecutor(len(parts)) as pool:
        began, used = time.perf_counter(), time.process_time()
        for done in [pool.submit(work, part) for part in range(len(parts))]:
            done.result()
        batches = sum(counts) / len(parts)
        return (
            [(time.perf_counter() - began) / batches],
            [(time.process_time() - used) / batches],
        )
