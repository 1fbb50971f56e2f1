"""Timing evaluators against each other on a machine that is never quite quiet.

Contenders take turns, so that whatever else the machine does falls on all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.inference.interface import Evaluator


@dataclass(frozen=True)
class Timing:
    """Times of one evaluation of a batch, in seconds."""

    batch: int
    best: float
    median: float
    mean: float
    processor: float
    """Processor time of all threads, median: what the wall clock would show on one quiet core."""

    @property
    def rate(self) -> float:
        """Positions a second, by the median."""
        return self.batch / self.median

    @property
    def processor_rate(self) -> float:
        """Positions per second of processor time."""
        return self.batch / self.processor if self.processor else 0.0


def random_planes(evaluator: Evaluator, batch: int, seed: int = 0) -> NDArray[np.float32]:
    """Planes float32 [B, C, H, W] that cost what real ones cost: a tenth of the squares is set."""
    rng = np.random.default_rng(seed)
    return (rng.random((batch, *evaluator.planes_shape)) < 0.1).astype(np.float32)


def interleaved(
    evaluators: Mapping[str, Evaluator],
    batch: int,
    *,
    warm_up: int = 2,
    rounds: int | None = None,
    seconds: float | None = None,
    advance: Callable[[int], None] = lambda n: None,
) -> dict[str, Timing]:
    """Times each evaluator on the same batch, in turn: two evaluations, of which the second counts.
    During the first, caches fill, and threads of the one before that spin have time to stop.

    Stops after `rounds` of each or after `seconds` in all, whichever comes first (at least three
    rounds). `advance` is told how many evaluations were done.
    """
    wall: dict[str, list[float]] = {name: [] for name in evaluators}
    processor: dict[str, list[float]] = {name: [] for name in evaluators}
    planes = {name: random_planes(e, batch) for name, e in evaluators.items()}
    for name, evaluator in evaluators.items():
        for _ in range(warm_up):
            evaluator.evaluate(planes[name])
            advance(1)
    began = time.perf_counter()
    done = 0
    while evaluators:
        for name, evaluator in evaluators.items():
            evaluator.evaluate(planes[name])
            advance(1)
            before, used = time.perf_counter(), time.process_time()
            evaluator.evaluate(planes[name])
            wall[name].append(time.perf_counter() - before)
            processor[name].append(time.process_time() - used)
            advance(1)
        done += 1
        late = seconds is not None and time.perf_counter() - began > seconds and done >= 3
        if late or (rounds is not None and done >= rounds):
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
