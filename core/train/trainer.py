"""The training loop: from a resolved configuration and a source of batches to a trained net.

Everything that decides a number is a function of the configuration and the step: order of samples,
learning rate, momentum. So a training that was killed goes on from its last checkpoint and ends
with the very same net.

Nets are kept in the channels-last layout. Measured on two cores with AMX, batch 256: 815 against
572 positions/s for 5 x 64 RISEv2 under bf16, 70 against 47 for 13 x 256.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from variant_ai.core.nets.interface import NetworkBuilder
from variant_ai.core.train.checkpoint import (
    Checkpoint,
    TrainState,
    list_checkpoints,
    load_model,
    load_momenta,
    save_checkpoint,
)
from variant_ai.core.train.config import TrainConfig
from variant_ai.core.train.device import choose_device
from variant_ai.core.train.metrics import Metrics, Scores, Sums, losses, rank_of, score
from variant_ai.core.train.record import Recorder
from variant_ai.core.train.schedule import OneCycle
from variant_ai.core.train.source import Samples, Source
from variant_ai.specs.errors import DataError, VariantAIError

CHECKPOINTS = "checkpoints"
MAX_RECOVERIES = 3
RECOVERY_CUT = 0.5
"""Factor of the learning rate at each recovery."""


class Observer(Protocol):
    """Who watches a training, e.g. a progress bar."""

    def stepped(self, step: int) -> None:
        """A step was taken; `step` were taken in all."""

    def recorded(self, kind: str, step: int, numbers: dict[str, Any]) -> None:
        """A line was added to the record."""

    def validating(self, step: int) -> None:
        """A validation begins."""


class Silent:
    """An observer that looks away."""

    def stepped(self, step: int) -> None: ...

    def recorded(self, kind: str, step: int, numbers: dict[str, Any]) -> None: ...

    def validating(self, step: int) -> None: ...


class DivergedError(VariantAIError):
    """The loss is no number any more, and going back did not help."""


@dataclass(frozen=True)
class TrainResult:
    net: nn.Module
    """The trained net, on the CPU, in evaluation mode."""
    state: TrainState
    checkpoint: Checkpoint
    train: Metrics | None
    """Of the last log line."""
    validation: Metrics | None
    """On the validation positions after the last step; None without any, or if stopped."""
    scores: Scores | None
    """The same, position by position."""
    stopped: bool
    """Whether Ctrl-C ended it before the last step."""


class Trainer:
    """One training in one run directory."""

    def __init__(
        self,
        config: TrainConfig,
        train: Source,
        validation: Source | None,
        folder: Path,
        *,
        observer: Observer | None = None,
        builders: Mapping[str, NetworkBuilder] | None = None,
        tensorboard: bool = True,
    ) -> None:
        self.config = config
        self.train = train
        self.validation = validation
        self.folder = folder
        self.observer = observer or Silent()
        self.tensorboard = tensorboard
        self.device = choose_device(config.device)
        if config.threads and self.device.type == "cpu":
            torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        self.net = config.net.build(builders)
        place(self.net, self.device)
        self.optimiser = make_optimiser(self.net, config)
        self.schedule = make_schedule(config)
        self.state = TrainState()
        self._sums = Sums()
        self._window = _Window(config.log_every * config.batch, self.device)
        self._norm = torch.zeros(())
        self._last_train: Metrics | None = None

    # --- the whole training --------------------------------------------------------------------

    def run(self, *, resume: bool = False) -> TrainResult:
        """Trains to the last step, or until Ctrl-C (SIGINT, SIGTERM), which saves first.

        With `resume` it goes on from the newest checkpoint of the run directory; without, there
        must be none.

        Raises DataError (nothing to resume, or something that would be overwritten), DivergedError,
        OSError (a full disk; the last checkpoint stays).
        """
        found = list_checkpoints(self.folder / CHECKPOINTS)
        if resume and not found:
            raise DataError(f"{self.folder} has no checkpoint to resume from")
        if found and not resume:
            raise DataError(f"{self.folder} holds a training already; resume it or name another")
        if resume:
            self._load(found[-1])
        scores: Scores | None = None
        validation: Metrics | None = None
        stopped = False
        with Recorder(self.folder, self.state.step, tensorboard=self.tensorboard) as recorder:
            self._recorder = recorder
            self._checkpoint = found[-1] if found else self._save()
            with _stop_on_signal() as stop:
                while self.state.step < self.config.steps and not stopped:
                    try:
                        stopped = self._train(stop)
                    except FloatingPointError:
                        self._recover()
            if not stopped:
                self._flush()
                if self.validation is not None:
                    scores = self._validate("final", self.config.final_limit)
                    validation = scores.metrics(self.config.value_weight)
        self.net.eval().to("cpu")
        return TrainResult(
            self.net, self.state, self._checkpoint, self._last_train, validation, scores, stopped
        )

    def _train(self, stop: Callable[[], bool]) -> bool:
        """Steps until the last one, or a stop (True); FloatingPointError where the loss is none."""
        config, shift = self.config, self.state.data_shift
        # Looking at a number waits for a GPU; a NaN stays in the weights until it is looked for.
        check_every = 1 if self.device.type == "cpu" else config.log_every
        self.net.train()
        began, seconds = time.perf_counter(), self.state.seconds
        window_began, window_step = began, self.state.step
        for samples in self.train.batches(self.state.step + shift, config.steps + shift):
            self.state.step += 1
            step = self.state.step
            loss = self._step(samples, step - 1)
            due = {
                # Counted from the end, so that the last line stands for a whole window too.
                "log": (config.steps - step) % config.log_every == 0,
                "save": step % config.checkpoint_every == 0 or step == config.steps,
                "validate": step % config.validate_every == 0 and step < config.steps,
            }
            if (step % check_every == 0 or any(due.values())) and not math.isfinite(loss.item()):
                raise FloatingPointError
            stopped = stop() and step < config.steps
            self.state.seconds = seconds + time.perf_counter() - began
            if due["log"]:
                now = time.perf_counter()
                rate = (step - window_step) * config.batch / (now - window_began)
                self._log(step, rate)
            if due["save"] or stopped:
                self._checkpoint = self._save()
            self.observer.stepped(step)
            if stopped:
                return True
            if due["validate"] and self.validation is not None:
                self._validate("validation", config.validation_limit)
                self.net.train()
            if due["log"]:
                window_began, window_step = time.perf_counter(), step
        return False

    def _step(self, samples: Samples, step: int) -> Tensor:
        """One optimiser step; `step` were taken before. Returns the loss, on the device."""
        config = self.config
        planes, action, outcome = self._tensors(samples)
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.lr_at(step) * self.state.lr_scale
            group["momentum"] = self.schedule.momentum_at(step)
        with autocast(self.device, config.precision):
            value, logits = self.net(planes)
        policy_loss, value_loss = losses(value, logits, action, outcome)
        loss = (policy_loss + config.value_weight * value_loss).mean()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self._norm = nn.utils.clip_grad_norm_(self.net.parameters(), config.clip)
        self.optimiser.step()
        self._window.put(policy_loss.detach(), rank_of(logits, action), value.detach(), outcome)
        return loss.detach()

    def _tensors(self, samples: Samples) -> tuple[Tensor, Tensor, Tensor]:
        """A batch on the device: planes in channels-last layout, actions, outcomes."""
        planes = torch.from_numpy(samples.planes).to(self.device)
        return (
            planes.contiguous(memory_format=torch.channels_last),
            torch.from_numpy(samples.action).to(self.device),
            torch.from_numpy(samples.value).to(self.device),
        )

    def time_steps(self, seconds: float) -> tuple[float, float]:
        """Seconds per step and per position validated, measured for about so long.

        The net is no longer fit for a training afterwards.
        """
        warm, steps, began = 2, 0, 0.0
        batches = self.train.batches()
        self.net.train()
        while steps < warm + 1 or time.perf_counter() - began < seconds:
            if steps == warm:
                began = time.perf_counter()
            self._step(next(batches), 0).item()
            steps += 1
        step = (time.perf_counter() - began) / (steps - warm)
        if self.validation is None:
            return step, 0.0
        limit = 4 * self.config.batch
        predict(self.net, self.validation, self.device, self.config.precision, limit=1)
        began = time.perf_counter()
        scores = predict(self.net, self.validation, self.device, self.config.precision, limit=limit)
        return step, (time.perf_counter() - began) / len(scores.rank)

    # --- record --------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Adds the scores that wait on the device to the sums of the window."""
        whole = self._window.take()
        # Step by step, so that a checkpoint in between does not change how the sums are rounded.
        for first in range(0, len(whole.rank), self.config.batch):
            self._sums.add(whole.part(first, first + self.config.batch))

    def _log(self, step: int, rate: float) -> None:
        self._flush()
        self._last_train = self._sums.mean(self.config.value_weight)
        self._sums = Sums()
        self._write(
            "train",
            {
                "epoch": step / max(1, self.train.steps_per_epoch),
                "lr": self.schedule.lr_at(step - 1) * self.state.lr_scale,
                "momentum": self.schedule.momentum_at(step - 1),
                "gradient_norm": float(self._norm),
                "rate": round(rate, 1),
                **self._last_train.as_dict(),
            },
        )

    def _validate(self, kind: str, limit: int | None) -> Scores:
        assert self.validation is not None
        self.observer.validating(self.state.step)
        began = time.perf_counter()
        scores = predict(self.net, self.validation, self.device, self.config.precision, limit=limit)
        metrics = scores.metrics(self.config.value_weight)
        seconds = time.perf_counter() - began
        self._write(kind, {**metrics.as_dict(), "took": round(seconds, 2)})
        return scores

    def _write(self, kind: str, numbers: dict[str, Any]) -> None:
        self._recorder.write(kind, self.state.step, self.state.seconds, numbers)
        self.observer.recorded(kind, self.state.step, numbers)

    # --- going on and going back ---------------------------------------------------------------

    def _save(self) -> Checkpoint:
        self._flush()
        self.state.window = asdict(self._sums)
        return save_checkpoint(
            self.folder / CHECKPOINTS,
            self.net,
            self.optimiser,
            self.state,
            self.config,
            keep=self.config.keep,
        )

    def _load(self, checkpoint: Checkpoint) -> None:
        """Takes up everything of a checkpoint: weights, buffers, momentum, state."""
        load_model(self.net, checkpoint.model(), checkpoint.path)
        load_momenta(self.net, self.optimiser, checkpoint.optimiser())
        self.state = checkpoint.state()
        window: Any = self.state.window
        self._sums = Sums(**window)
        self._window.take()

    def _recover(self) -> None:
        """Goes back to the last checkpoint, buffers included (one NaN in a batch stays in the
        running statistics for ever), past the batch at fault, with half the learning rate."""
        failed, before = self.state.step, self.state
        if before.recoveries >= MAX_RECOVERIES:
            raise DivergedError(
                f"the loss is not a number at step {failed}, after {before.recoveries} returns to "
                f"a checkpoint; start again with a smaller learning rate than {self.config.lr_max}"
            )
        past = failed + before.data_shift
        self._load(self._checkpoint)
        self.state.recoveries = before.recoveries + 1
        self.state.data_shift = past - self.state.step
        self.state.lr_scale = before.lr_scale * RECOVERY_CUT
        self.state.seconds = before.seconds
        self._write(
            "recovery",
            {
                "failed_step": failed,
                "recoveries": self.state.recoveries,
                "lr_scale": self.state.lr_scale,
            },
        )


class _Window:
    """Scores of the steps since the last line of the record, kept on the device.

    In one place from the start, for the reason that `Scores.room` gives, and so that a GPU need
    not be waited for at every step.
    """

    def __init__(self, positions: int, device: torch.device) -> None:
        self.policy_loss, self.value, self.outcome = torch.zeros(3, positions, device=device)
        self.rank = torch.zeros(positions, dtype=torch.int64, device=device)
        self.filled = 0

    def put(self, policy_loss: Tensor, rank: Tensor, value: Tensor, outcome: Tensor) -> None:
        """Adds a batch, each tensor [B]."""
        end = self.filled + len(rank)
        if end > len(self.rank):
            self.filled, end = 0, len(rank)  # a trial that nobody logs: forget what was there
        for mine, theirs in (
            (self.policy_loss, policy_loss),
            (self.rank, rank),
            (self.value, value),
            (self.outcome, outcome),
        ):
            mine[self.filled : end].copy_(theirs)
        self.filled = end

    def take(self) -> Scores:
        """What was added, as arrays that hold until the next `put`; the window is empty then."""
        n, self.filled = self.filled, 0
        return Scores(
            (-self.policy_loss[:n]).cpu().numpy(),
            self.rank[:n].cpu().numpy(),
            self.value[:n].cpu().numpy(),
            self.outcome[:n].cpu().numpy(),
        )


def make_optimiser(net: nn.Module, config: TrainConfig) -> torch.optim.SGD:
    """SGD with Nesterov momentum; rate and momentum are set before each step."""
    return torch.optim.SGD(
        net.parameters(),
        lr=config.lr_max,
        momentum=config.momentum[1],
        nesterov=True,
        weight_decay=config.weight_decay,
    )


def place(net: nn.Module, device: torch.device) -> None:
    """Moves a net to the device, in the channels-last layout that `predict` and training use."""
    untyped: Any = net.to(device)  # torch's stubs do not know the keyword
    untyped.to(memory_format=torch.channels_last)


def make_schedule(config: TrainConfig) -> OneCycle:
    return OneCycle(config.steps, config.lr_max, config.lr_min, config.momentum, config.warmup)


def autocast(device: torch.device, precision: str) -> torch.autocast | nullcontext[None]:
    """bf16 inside, or nothing."""
    if precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


def predict(
    net: nn.Module,
    source: Source,
    device: torch.device,
    precision: str = "fp32",
    *,
    limit: int | None = None,
) -> Scores:
    """Scores of the net on the positions of a source, in the order of its sweep."""
    net.eval()
    scores = Scores.room(source.positions if limit is None else min(limit, source.positions))
    at = 0
    with torch.inference_mode(), autocast(device, precision):
        for samples in source.sweep(limit=limit):
            planes = torch.from_numpy(samples.planes).to(device)
            value, logits = net(planes.contiguous(memory_format=torch.channels_last))
            action = torch.from_numpy(samples.action).to(device)
            outcome = torch.from_numpy(samples.value).to(device)
            at = scores.put(at, score(value, logits, action, outcome))
    return scores


@contextmanager
def _stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Within, the first SIGINT or SIGTERM only asks to stop; a second interrupts at once."""
    asked = False

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, handler) for number in signals]
    try:
        yield lambda: asked
    finally:
        for number, old in zip(signals, before, strict=True):
            signal.signal(number, old)
