"""What a training step costs: layouts, precisions, threads, and the trainer against a bare loop.

    python benchmarks/training.py                        # the ways to run a step
    python benchmarks/training.py --net alphazero-8v-map --blocks 5 --channels 64 --store a.store

With a store, the trainer's own loop (sampling, metrics, record) is compared with a bare loop over
tensors that are already in memory. Wall time suffers where other programs use the cores; positions
per processor second suffer less.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from variant_ai.core.encoding import Encoder
from variant_ai.core.nets import NetConfig, configure_net
from variant_ai.core.nets.describe import describe
from variant_ai.core.train.device import has_fast_bf16
from variant_ai.core.train.plan import TrainRequest, prepare
from variant_ai.core.train.prediction import autocast
from variant_ai.core.train.trainer import Trainer
from variant_ai.plugins import registry
from variant_ai.specs import VariantSpec


def bare_loop(
    config: NetConfig,
    batch: int,
    seconds: float,
    *,
    precision: str = "bf16",
    channels_last: bool = True,
    compiled: bool = False,
    threads: int | None = None,
) -> tuple[float, float]:
    """Positions a second and a processor second of steps on one batch that stays in memory."""
    if threads:
        torch.set_num_threads(threads)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net: Any = config.build().to(device)
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
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 5)
        optimiser.step()
        loss.item()

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


def trainer_loop(
    spec: VariantSpec, config: NetConfig, store: Path, batch: int, seconds: float
) -> float:
    """Positions a second of the trainer itself, its record and metrics included."""
    request = TrainRequest(
        spec=spec,
        stores=(store,),
        net=config.name,
        head=config.head,
        size={key: value for key, value in config.size.items() if value is not None},
        batch=batch,
        steps=1_000_000,
    )
    prepared = prepare(request, rules=registry().rules(spec))

    class EnoughError(Exception):
        pass

    class Clock:
        began = ended = 0.0
        steps = 0

        def stepped(self, step: int) -> None:
            if step == 3:
                self.began = time.perf_counter()
            elif step > 3 and time.perf_counter() - self.began > seconds:
                self.steps, self.ended = step - 3, time.perf_counter()
                raise EnoughError

        def recorded(self, kind: str, step: int, numbers: dict[str, Any]) -> None: ...

        def validating(self, step: int) -> None: ...

    clock = Clock()
    quick = prepared.config.model_copy(update={"log_every": 20, "checkpoint_every": 1_000_000})
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(quick, prepared.train, None, Path(folder), observer=clock)
        with contextlib.suppress(EnoughError):
            trainer.run()
    return clock.steps * batch / (clock.ended - clock.began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--variant", default="chess")
    parser.add_argument("--net", default="risev2-mobile-small")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--compile", action="store_true", help="also try torch.compile")
    parser.add_argument("--store", type=Path, help="compare the trainer with the bare loop")
    given = parser.parse_args()
    spec = registry().variant(given.variant)
    encoder = Encoder(spec)
    config = configure_net(
        given.net,
        planes=encoder.shape[0],
        board=(encoder.shape[1], encoder.shape[2]),
        policy_planes=encoder.policy_shape[0],
        blocks=given.blocks,
        channels=given.channels,
    )
    report = describe(config.build(), config.shape)
    print(f"{config.title}, {report.parameters:,} parameters, {report.flops / 1e6:.1f} MFLOP")
    fast = has_fast_bf16(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    print(f"bf16 in hardware: {'yes' if fast else 'no'}; threads: {torch.get_num_threads()}")
    many = torch.get_num_threads()
    ways: dict[str, dict[str, Any]] = {
        "bf16, channels last": {},
        "bf16, channels first": {"channels_last": False},
        "fp32, channels last": {"precision": "fp32"},
        "bf16, channels last, 1 thread": {"threads": 1},
    }
    if given.compile:
        ways["bf16, channels last, compiled"] = {"compiled": True}
    for title, way in ways.items():
        wall, cpu = bare_loop(config, given.batch, given.seconds, **{"threads": many, **way})
        print(f"{title:32} {wall:8,.0f} positions/s {cpu:8,.0f} per processor second")
    if given.store:
        torch.set_num_threads(many)
        bare, _ = bare_loop(config, given.batch, given.seconds)
        own = trainer_loop(spec, config, given.store, given.batch, given.seconds)
        print(f"trainer {own:,.0f} positions/s, bare loop {bare:,.0f}: {own / bare:.2f}")


if __name__ == "__main__":
    main()
