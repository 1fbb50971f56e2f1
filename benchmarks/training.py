"""Speed of a training step: layouts, precisions, threads, and the trainer against a bare loop.

    python benchmarks/training.py                        # the ways to run a step
    python benchmarks/training.py --net alphazero-8v-map --blocks 5 --channels 64 --store a.store

With a store, the loop of the trainer (sampling, metrics, log) is compared with a bare loop over
tensors in memory. They take turns, so that other programs slow both down equally. Wall time depends on
the load of the cores, processor time less so. `--memory STEPS` shows that memory does not grow with the
steps.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from variant_ai.cli.common.ending import run_script
from variant_ai.core.data.sample.mixture import MixedSampler
from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.encoding import Encoder
from variant_ai.core.nets import NetConfig, configure_for
from variant_ai.core.nets.description import describe
from variant_ai.core.nets.layers import BoardConv
from variant_ai.core.spec import VariantSpec
from variant_ai.core.train.loop.devices import (
    Precision,
    autocast,
    choose_device,
    has_fast_bf16,
    place_net,
)
from variant_ai.core.train.loop.optimisers import find_optimiser
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai.core.train.run.plan import prepare
from variant_ai.core.train.run.training_settings import TrainConfig, TrainRequest
from variant_ai.plugins import registry


def bare_loop(
    config: NetConfig,
    batch: int,
    seconds: float,
    *,
    precision: Precision = "bf16",
    channels_last: bool = True,
    compiled: bool = False,
    threads: int | None = None,
) -> tuple[float, float]:
    """Return positions per second and per processor second of steps on one batch in memory."""
    if threads:
        torch.set_num_threads(threads)
    step = repeated_step(
        config, batch, precision=precision, channels_last=channels_last, compiled=compiled
    )
    for _ in range(3):
        step()
    wall, cpu, steps = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - wall < seconds:
        step()
        steps += 1
    return (
        steps * batch / (time.perf_counter() - wall),
        steps * batch / (time.process_time() - cpu),
    )


def repeated_step(
    config: NetConfig,
    batch: int,
    *,
    precision: Precision = "bf16",
    channels_last: bool = True,
    compiled: bool = False,
    plain: bool = False,
) -> Callable[[], None]:
    """Return a step of training on one batch in memory. plain: all gradients are torch's own."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net: Any = config.build().to(device)
    if plain:
        for module in net.modules():
            if isinstance(module, BoardConv):
                module.__class__ = nn.Conv2d  # type: ignore[assignment]
    layout = torch.channels_last if channels_last else torch.contiguous_format
    net.to(memory_format=layout)
    shape = config.shape
    planes = torch.rand(batch, shape.planes, shape.height, shape.width, device=device)
    planes = planes.contiguous(memory_format=layout)
    action = torch.randint(0, shape.actions, (batch,), device=device)
    outcome = torch.rand(batch, device=device)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    step_net = torch.compile(net) if compiled else net

    def step() -> None:
        with autocast(device, precision):
            value, logits = step_net(planes)
        loss = functional.cross_entropy(logits, action)
        loss = loss + 0.01 * functional.mse_loss(value, outcome)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(net.parameters(), 5)
        optimiser.step()
        loss.item()

    return step


def against_plain_gradients(config: NetConfig, batch: int, seconds: float) -> None:
    """Print the speed of steps with boards side by side against torch's own, taking turns."""
    ways = [repeated_step(config, batch, plain=plain) for plain in (True, False)]
    took: list[list[float]] = [[], []]
    for step in ways * 2:
        step()
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        for times, step in zip(took, ways, strict=True):
            at = time.perf_counter()
            step()
            times.append(time.perf_counter() - at)
    plain, abreast = (statistics.median(times) for times in took)
    print(
        f"gradients with boards side by side: {batch / abreast:,.0f} positions/s, torch's own "
        f"{batch / plain:,.0f}: {plain / abreast:.3f} by the median of {len(took[0])} steps each"
    )


class Bare:
    """Steps over batches in memory, with which the trainer is compared. The net, the loss, the
    clipping and the optimiser are the trainer's own."""

    def __init__(self, config: TrainConfig, train: Sampler | MixedSampler, kept: int = 4) -> None:
        self.config, self.device = config, choose_device(config.device)
        torch.manual_seed(config.seed)
        self.net = config.net.build()
        place_net(self.net, self.device)
        self.net.train()
        self.optimiser = find_optimiser(config.optimiser).make(self.net, config)
        self.batches = []
        for step in range(kept):
            batch = train.batch(step)
            planes = torch.from_numpy(batch.planes).to(self.device)
            self.batches.append(
                (
                    planes.contiguous(memory_format=torch.channels_last).clone(),
                    torch.from_numpy(batch.action).to(self.device).clone(),
                    torch.from_numpy(batch.value).to(self.device).clone(),
                )
            )

    def run(self, steps: int) -> None:
        for step in range(steps):
            planes, action, outcome = self.batches[step % len(self.batches)]
            with autocast(self.device, self.config.precision):
                value, logits = self.net(planes)
            loss = functional.cross_entropy(logits, action)
            loss = loss + self.config.value_weight * functional.mse_loss(value, outcome)
            self.optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.config.clip)
            self.optimiser.step()
            if self.device.type == "cpu":
                loss.item()
        settle(self.device)


def settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class EnoughError(Exception):
    """Raised when all turns are done."""


class Turns:
    """Observer of a trainer that gives every other turn to the bare loop, so that other load on the
    machine slows both down equally."""

    def __init__(self, bare: Bare, turns: int, steps: int) -> None:
        self.bare, self.turns, self.steps = bare, turns, steps
        self.trainer_took: list[tuple[float, float]] = []
        self.bare_took: list[tuple[float, float]] = []
        self.began = (0.0, 0.0)

    @staticmethod
    def now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    def stepped(self, step: int) -> None:
        if step % self.steps:
            return
        settle(self.bare.device)
        now = self.now()
        if step > self.steps:  # the first turn warms up
            self.trainer_took.append((now[0] - self.began[0], now[1] - self.began[1]))
        before = self.now()
        self.bare.run(self.steps)
        after = self.now()
        if step > self.steps:
            self.bare_took.append((after[0] - before[0], after[1] - before[1]))
        if len(self.bare_took) == self.turns:
            raise EnoughError
        self.began = self.now()

    def recorded(self, kind: str, step: int, numbers: dict[str, Any]) -> None: ...

    def validating(self, step: int) -> None: ...


def against_bare(
    spec: VariantSpec, config: NetConfig, store: Path, batch: int, turns: int, steps: int,
    threads: int | None = None,
) -> None:  # fmt: skip
    """Print the speed of the trainer, with sampling, metrics and log, against the bare loop."""
    request = TrainRequest(
        spec=spec,
        stores=(store,),
        net=config.name,
        head=config.head,
        size={key: value for key, value in config.size.items() if value is not None},
        batch=batch,
        steps=1_000_000,
        threads=threads,
    )
    prepared = prepare(request, rules=registry().rules(spec))
    quick = prepared.config.model_copy(update={"log_every": 20, "checkpoint_every": 1_000_000})
    watching = Turns(Bare(quick, prepared.train), turns, steps)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(quick, prepared.train, None, Path(folder), observer=watching)
        with contextlib.suppress(EnoughError):
            trainer.run()
    done = turns * steps * batch
    wall, cpu = (
        [sum(took[clock] for took in both) for both in (watching.trainer_took, watching.bare_took)]
        for clock in (0, 1)
    )
    ratios = sorted(
        b[0] / t[0] for t, b in zip(watching.trainer_took, watching.bare_took, strict=True)
    )
    print(
        f"{config.title}: trainer {done / wall[0]:,.0f} positions/s, bare loop "
        f"{done / wall[1]:,.0f}: {wall[1] / wall[0]:.3f} by wall time (median of {turns} turns "
        f"{ratios[len(ratios) // 2]:.3f}), {cpu[1] / cpu[0]:.3f} by processor time"
    )


def memory_of_steps(spec: VariantSpec, store: Path, steps: int) -> None:
    """Print the memory of the process while a tiny net is trained for many steps."""
    request = TrainRequest(
        spec=spec, stores=(store,), net="alphazero-8v-map",
        size={"blocks": 1, "channels": 4, "value_hidden": 8}, batch=64, steps=steps, threads=1,
    )  # fmt: skip
    prepared = prepare(request, rules=registry().rules(spec))

    class Watch:
        def stepped(self, step: int) -> None:
            if step % max(1, steps // 10) == 0:
                pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
                print(f"  step {step:>8,}: {pages * resource.getpagesize() / 2**20:,.1f} MiB")

        def recorded(self, kind: str, step: int, numbers: dict[str, Any]) -> None: ...

        def validating(self, step: int) -> None: ...

    quick = prepared.config.model_copy(
        update={
            "validation_limit": 512,
            "final_limit": 512,
            "checkpoint_every": max(1, steps // 20),
        }
    )
    games = prepared.config.data.train_games
    print(f"memory over {steps:,} steps, a store of {games:,} games:")
    with tempfile.TemporaryDirectory() as folder:
        Trainer(quick, prepared.train, prepared.validation, Path(folder), observer=Watch()).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--variant", default="chess")
    parser.add_argument("--net", default="risev2-mobile-small")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--compile", action="store_true", help="also try torch.compile")
    parser.add_argument(
        "--gradients", action="store_true", help="only compare gradients with torch's own"
    )
    parser.add_argument("--store", type=Path, help="compare the trainer with the bare loop")
    parser.add_argument("--turns", type=int, default=10, help="turns of each of the two")
    parser.add_argument("--steps", type=int, default=10, help="steps of a turn")
    parser.add_argument("--threads", type=int, help="threads of torch; default: as many as cores")
    parser.add_argument("--only", action="store_true", help="with --store: only the comparison")
    parser.add_argument(
        "--memory",
        type=int,
        metavar="STEPS",
        help="with --store: measure memory over this many steps",
    )
    given = parser.parse_args()
    spec = registry().variant(given.variant)
    if given.memory:
        if given.store is None:
            parser.error("--memory needs a --store to train on")
        memory_of_steps(spec, given.store, given.memory)
        return
    encoder = Encoder(spec)
    config = configure_for(given.net, encoder, blocks=given.blocks, channels=given.channels)
    report = describe(config.build(), config.shape)
    print(f"{config.title}, {report.parameters:,} parameters, {report.flops / 1e6:.1f} MFLOP")
    if given.threads:
        torch.set_num_threads(given.threads)
    fast = has_fast_bf16(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    print(f"bf16 in hardware: {'yes' if fast else 'no'}; threads: {torch.get_num_threads()}")
    many = torch.get_num_threads()
    if given.gradients:
        against_plain_gradients(config, given.batch, given.seconds)
        return
    ways: dict[str, dict[str, Any]] = {
        "bf16, channels last": {},
        "bf16, channels first": {"channels_last": False},
        "fp32, channels last": {"precision": "fp32"},
        "bf16, channels last, 1 thread": {"threads": 1},
    }
    if given.compile:
        ways["bf16, channels last, compiled"] = {"compiled": True}
    for title, way in ({} if given.only else ways).items():
        wall, cpu = bare_loop(config, given.batch, given.seconds, **{"threads": many, **way})
        print(f"{title:32} {wall:8,.0f} positions/s {cpu:8,.0f} per processor second")
    if given.store:
        threads = given.threads or many
        torch.set_num_threads(threads)
        against_bare(
            spec, config, given.store, given.batch, given.turns, given.steps, threads=threads
        )


if __name__ == "__main__":
    run_script(main)
