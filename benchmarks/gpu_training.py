"""Training steps timed for `benchmarks/gpu.py`, by one process or by several together.

As a program it is one of several processes, started by torchrun with its settings in JSON.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from variant_ai.cli.common.ending import run_script
from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.system.child_processes import guard_child, release_child
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.loop.devices import ALONE, Workers, open_workers
from variant_ai.core.train.loop.position_source import Samples
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai.core.train.run.plan import prepare
from variant_ai.core.train.run.training_data import NO_SPLIT, TrainSource
from variant_ai.core.train.run.training_settings import TrainRequest
from variant_ai.plugins import registry

Row = dict[str, Any]

WARM_STEPS = 3
TURNS = 2
"""Number of changes between the sampler and a constant batch."""
START_SECONDS = 60.0
"""Minimum time that processes get to start: each loads torch and the sampler."""


def parse_net(text: str) -> tuple[str, dict[str, int]]:
    """Read `NAME` or `NAME:BLOCKSxCHANNELS`. Raises DataError for anything else after the colon."""
    name, colon, size = text.partition(":")
    match = re.fullmatch(r"(\d+)x(\d+)", size)
    if not colon:
        return name, {}
    if match is None:
        raise DataError(f"net {text!r}: accepted is NAME or NAME:BLOCKSxCHANNELS, {name}:5x64")
    return name, {"blocks": int(match[1]), "channels": int(match[2])}


@dataclass(frozen=True)
class Course:
    """Steps to time; also the settings of processes that train together."""

    variant: str
    net: str
    """NAME or NAME:BLOCKSxCHANNELS."""
    precision: str
    device: str
    batch: int | None
    """Positions of a step of each process; None: the spec's, on a CPU fewer."""
    seconds: float
    threads: int | None = None

    def open(self, workers: Workers = ALONE) -> tuple[Trainer, TrainSource]:
        """Return a trainer, and the sampler of the variant's sample store. Raises DataError if the
        variant comes without one."""
        known = registry()
        spec = known.variant(self.variant)
        entry = known.entry_of(spec)
        if entry is None or entry.sample is None or not entry.sample.is_file():
            raise DataError(f"{spec.variant} comes without a sample store to train on")
        name, size = parse_net(self.net)
        batch = self.batch
        if workers.world > 1:
            batch = workers.world * (batch or spec.training.batch)
        request = TrainRequest(
            spec=spec,
            stores=(entry.sample,),
            split=NO_SPLIT,
            net=name,
            size=size,
            batch=batch,
            steps=1_000_000,
            device=self.device,
            precision=self.precision,
            threads=self.threads,
        )
        prepared = prepare(request, rules=known.rules(spec), workers=workers)
        trainer = Trainer(
            prepared.config, prepared.train, None, Path(), tensorboard=False, workers=workers,
        )  # fmt: skip
        return trainer, prepared.train


@dataclass
class Steps:
    """Time and number of steps of one trainer. Several steps are made between looks at the clock,
    because each look waits for the GPU."""

    trainer: Trainer
    batches: Iterator[Samples]
    count: int = 0
    seconds: float = 0.0
    group: int = field(init=False)

    def __post_init__(self) -> None:
        self.group = 10 if self.trainer.device.type == "cuda" else 1

    @property
    def rate(self) -> float:
        """Positions a second, of all processes together."""
        return self.count * self.trainer.config.batch / self.seconds

    def run(self, seconds: float) -> None:
        """Train for some seconds; processes that train together stop after the same step."""
        begun, late = self._now(), False
        while not late:
            self.step(self.group)
            self.count += self.group
            late = self.trainer.workers.any(self._now() - begun >= seconds)
        self.seconds += self._now() - begun

    def step(self, count: int) -> None:
        rate, momentum = self.trainer.schedule.lr_at(0), self.trainer.schedule.momentum_at(0)
        for _ in range(count):
            self.trainer.step_at(self.batches, rate, momentum)

    def _now(self) -> float:
        if self.trainer.device.type == "cuda":
            torch.cuda.synchronize(self.trainer.device)
        return time.perf_counter()


def train_rows(course: Course) -> list[Row]:
    """Time steps with the sampler, alternating with steps over one batch in memory, which shows the
    cost of the sampler."""
    trainer, sampler = course.open()
    on_gpu = trainer.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(trainer.device)
    with _closing(sampler.batches()) as batches:
        fed, alone = Steps(trainer, batches), Steps(trainer, itertools.repeat(sampler.batch(0)))
        for steps in (fed, alone):
            steps.step(WARM_STEPS)
        for _ in range(TURNS):
            for steps in (fed, alone):
                steps.run(course.seconds / 2 / TURNS)
    memory = torch.cuda.max_memory_allocated(trainer.device) / 2**20 if on_gpu else None
    return [
        {
            "variant": course.variant,
            "net": course.net,
            "precision": course.precision,
            "batch": trainer.config.batch,
            "samples_per_second": round(fed.rate, 1),
            "net_alone": round(alone.rate, 1),
            "ratio": round(fed.rate / alone.rate, 3),
            "gpu_memory_mb": None if memory is None else round(memory),
        }
    ]


@contextlib.contextmanager
def _closing(batches: Iterator[Samples]) -> Iterator[Iterator[Samples]]:
    """End the sampler's threads after use."""
    try:
        yield batches
    finally:
        if isinstance(batches, Generator):
            batches.close()


def share_of_course(text: str) -> None:
    """Run one of several processes that train together, started by torchrun; the first one writes the
    rate to the file in its settings."""
    orders = json.loads(text)
    target = Path(orders.pop("target"))
    course = Course(**orders)
    with open_workers() as workers:
        trainer, sampler = course.open(workers)
        with _closing(sampler.batches()) as batches:
            fed = Steps(trainer, batches)
            fed.step(WARM_STEPS)
            fed.run(course.seconds)
        if workers.first:
            write_whole(target, json.dumps({"rate": fed.rate, "batch": trainer.config.batch}))


def together_rows(course: Course, processes: int, left: float) -> list[Row]:
    """Return the rate of several processes, started by torchrun. Raises VariantAIError with the message
    of one that failed, or if they take longer than `left` seconds (and `START_SECONDS`)."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "rate.json"
        orders = json.dumps({**asdict(course), "target": str(target)})
        torchrun = (
            "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1",
            "--nproc-per-node", str(processes),
        )  # fmt: skip
        with subprocess.Popen(
            [sys.executable, *torchrun, __file__, orders],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as running:
            guard_child(running.pid)
            try:
                output, _ = running.communicate(timeout=max(course.seconds + START_SECONDS, left))
            except BaseException as error:
                running.terminate()  # torchrun then ends its processes, which would survive a kill
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(30)
                running.kill()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise VariantAIError(f"no answer after {error.timeout:.0f} s") from None
                raise
            finally:
                release_child(running.pid)
        if not target.is_file():
            errors = [line for line in output.splitlines() if re.search(r"Error\b", line)]
            lines = errors or output.strip().splitlines() or ["they ended without a message"]
            raise VariantAIError(lines[0].strip())
        got = json.loads(target.read_text(encoding="utf-8"))
    return [
        {
            "variant": course.variant,
            "net": course.net,
            "precision": course.precision,
            "processes": processes,
            "batch": got["batch"],
            "samples_per_second": round(got["rate"], 1),
        }
    ]


if __name__ == "__main__":
    run_script(lambda: share_of_course(sys.argv[1]))
