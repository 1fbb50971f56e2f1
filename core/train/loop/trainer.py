"""The training loop: a resolved configuration and a source of batches become a trained net.

Every number that affects the result is a function of the configuration and the step: order of
samples, learning rate, momentum. So a training that was killed resumes from its last checkpoint and
ends with exactly the same net.

A step may be computed in parts (`micro_batches`): one after the other, adding up their gradients,
or by several processes (`devices.Workers`), which share the parts. The source gives the batches of the
parts; which process computes which only changes the time.

Nets are kept in the channels-last layout. Measured on two cores with AMX, batch 256: 815 instead of
572 positions/s for 5 x 64 RISEv2 in bf16, 70 instead of 47 for 13 x 256.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.nets.network import auxiliary_outputs, first_layers, load_model
from variant_ai.core.system.interrupts import stop_on_signal
from variant_ai.core.train.interface import BaseTrainer, TrainResult
from variant_ai.core.train.loop.devices import ALONE, Workers, autocast, choose_device, place_net
from variant_ai.core.train.loop.learner import (
    AuxiliaryMeans,
    BatchResult,
    Learner,
    LossGuard,
    NormStatistics,
    ScoreWindow,
    WeightAverage,
)
from variant_ai.core.train.loop.optimisers import find_optimiser
from variant_ai.core.train.loop.position_source import Samples, Source, place_batch
from variant_ai.core.train.measure.metrics import Metrics, Scores, Sums
from variant_ai.core.train.measure.prediction import predict
from variant_ai.core.train.run.checkpoint import (
    Checkpoint,
    TrainState,
    checkpoint_name,
    delete_checkpoint,
    list_checkpoints,
    newest_undamaged,
    remove_leftovers,
    save_checkpoint,
)
from variant_ai.core.train.run.initial_weights import find_start, random_net
from variant_ai.core.train.run.run_folder import CHECKPOINTS, Observer, RunLog, last_metrics
from variant_ai.core.train.run.training_settings import TrainConfig

MAX_RECOVERIES = 3
RECOVERY_CUT = 0.5
"""Factor of the learning rate at each recovery."""


class DivergedError(VariantAIError):
    """The loss is not a number, or far too large, and returning to a checkpoint did not help."""


class Trainer(BaseTrainer):
    """One training in one run directory."""

    def __init__(
        self,
        config: TrainConfig,
        train: Source,
        validation: Source | None,
        folder: Path,
        *,
        observer: Observer | None = None,
        tensorboard: bool = True,
        workers: Workers = ALONE,
    ) -> None:
        """`train` gives batches of `config.batch / config.micro_batches` positions, and to each of
        several processes its own batches. Raises VariantAIError if the processes cannot share the
        parts of a step evenly, or if a device or net is not available."""
        if config.batch % config.micro_batches:
            raise VariantAIError(
                f"a batch of {config.batch} cannot be computed in {config.micro_batches} equal parts"
            )
        if config.micro_batches % workers.world:
            raise VariantAIError(
                f"{workers.world} processes cannot share the {config.micro_batches} parts of a "
                "step evenly; start a number of processes that divides it"
            )
        super().__init__(
            config,
            train,
            validation,
            folder,
            observer=observer,
            tensorboard=tensorboard,
            workers=workers,
        )
        self.parts = config.micro_batches // workers.world
        """Parts of a step that this process computes."""
        self.device = workers.device(choose_device(config.device))
        if config.threads and self.device.type == "cpu":
            torch.set_num_threads(config.threads)
        self.net = random_net(config)
        place_net(self.net, self.device)
        self.frozen = first_layers(self.net, config.freeze)
        for layer in self.frozen:
            layer.requires_grad_(False)
        self._kind = find_optimiser(config.optimiser)
        self.optimiser = self._kind.make(self.net, config)
        self.schedule = self._kind.schedule(config)
        self.state = TrainState()
        auxiliary = auxiliary_outputs(self.net)
        self._predicts_plies = "plies_left" in auxiliary
        learner: Any = Learner(self.net, config.value_weight, config.plies_weight)
        if config.compile:
            learner = torch.compile(learner)
        self._learner = workers.wrap(learner, self.device)
        self._average = WeightAverage(self.net, config.ema) if config.ema else None
        self._train_mode()
        self._norms = NormStatistics(self.net) if config.micro_batches > 1 else None
        self._has_dropout = any(isinstance(module, _DropoutNd) for module in self.net.modules())
        self._guard = LossGuard(config.spike)
        # Reading a number waits for the GPU, so there the losses are checked many at once.
        self.check_every = 1 if self.device.type == "cpu" else config.log_every
        self._unchecked: list[Tensor] = []
        self._sums, self._auxiliary = Sums(), AuxiliaryMeans()
        self._part_size = config.batch // config.micro_batches
        positions = config.log_every * self.parts * self._part_size
        self._window = ScoreWindow(positions, self.device, auxiliary)
        self._norm = torch.zeros(())
        self._last_train: Metrics | None = None

    @property
    def best(self) -> nn.Module:
        """The net that is validated and kept: the moving average if there is one."""
        return self.net if self._average is None else self._average.net

    # --- the whole training --------------------------------------------------------------------

    def run(
        self, *, resume: bool = False, report: Callable[[str], None] = lambda text: None
    ) -> TrainResult:
        """Train to the last step, or until Ctrl-C (SIGINT, SIGTERM, SIGHUP), which saves first.

        With `resume`, training continues from the newest checkpoint of the run directory that is not
        damaged (a sentence about each damaged one is passed to `report`), or starts if there is none.
        Without it, there must be no checkpoint.

        Raises DataError (something would be overwritten, the initial weights are missing, or all
        checkpoints are damaged), DivergedError, OSError (a full disk; the last checkpoint remains).
        """
        workers = self.workers
        checkpoints = self.folder / CHECKPOINTS
        if workers.first:
            remove_leftovers(checkpoints)
        if not resume and workers.broadcast_object(list_checkpoints(checkpoints)):
            raise DataError(f"{self.folder} already holds a training; resume it or name another")
        found = newest_undamaged(checkpoints, report) if workers.first else None
        found = workers.broadcast_object(found)
        if found is not None:
            self._load(found)
        else:
            self.load_initial_weights()
        scores: Scores | None = None
        validation: Metrics | None = None
        stopped = False
        with ExitStack() as stack:
            self._log: RunLog | None = None
            if workers.first:
                log = RunLog(
                    self.folder,
                    self.state.step,
                    recoveries=self.state.recoveries,
                    tensorboard=self.tensorboard,
                )
                self._log = stack.enter_context(log)
            self._checkpoint = found or self._save()
            with stop_on_signal() as stop:
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
        workers.barrier()
        if self._last_train is None and workers.first:  # resumed after the last step
            last = last_metrics(self.folder, "train")
            self._last_train = None if last is None else Metrics.of(last)
        net = self.best.eval().to("cpu")
        return TrainResult(
            net, self.state, self._checkpoint, self._last_train, validation, scores, stopped
        )

    def _train(self, stop: Callable[[], bool]) -> bool:
        """Train to the last step, or until a stop (True). Raises FloatingPointError if the loss cannot
        be right."""
        config, shift = self.config, self.state.data_shift
        self._train_mode()
        began, seconds = time.perf_counter(), self.state.seconds
        window_began, window_step = began, self.state.step
        batches = self.train.batches(
            (self.state.step + shift) * self.parts, (config.steps + shift) * self.parts
        )
        while self.state.step < config.steps:
            self.state.step += 1
            step = self.state.step
            rate = self.schedule.lr_at(step - 1) * self.state.lr_scale
            loss = self.step_at(batches, rate, self.schedule.momentum_at(step - 1))
            if self._average is not None:
                self._average.update(step)
            due = {
                # Counted from the end, so that the last line covers a whole window too.
                "log": (config.steps - step) % config.log_every == 0,
                "save": step % config.checkpoint_every == 0 or step == config.steps,
                "validate": step % config.validate_every == 0 and step < config.steps,
            }
            stopped = self.workers.any(stop() and step < config.steps)
            due["save"] |= stopped
            self._unchecked.append(loss)
            wrong = False
            if step % self.check_every == 0 or any(due.values()):
                losses = torch.stack(self._unchecked)
                self._unchecked.clear()
                self.workers.all_reduce([losses])  # so that their guards agree
                wrong = any(map(self._guard.rejects, (losses / self.workers.world).tolist()))
            # The loss does not show what the last step did to the weights.
            if due["save"] and not wrong:
                # Nor the running statistics, which only evaluation uses.
                wrong = not all(bool(w.isfinite().all()) for w in self.net.state_dict().values())
            if self.workers.any(wrong):
                raise FloatingPointError
            self.state.seconds = seconds + time.perf_counter() - began
            if due["log"]:
                now = time.perf_counter()
                self._write_train(step, (step - window_step) * config.batch / (now - window_began))
            # Before the checkpoint, so that a kill in between repeats the validation instead of
            # losing it.
            if due["validate"] and self.validation is not None:
                before = time.perf_counter()
                self._validate("validation", config.validation_limit)
                self._train_mode()
                window_began += time.perf_counter() - before  # the rate counts steps only
            if due["save"]:
                self._checkpoint = self._save()
            self.observer.stepped(step)
            if stopped:
                return True
            if due["log"]:
                window_began, window_step = time.perf_counter(), step
        return False

    def _train_mode(self) -> None:
        """Set training mode, in which norms use and follow the batch, except in frozen layers."""
        self.net.train()
        for layer in self.frozen:
            layer.eval()

    def step_at(self, batches: Iterator[Samples], rate: float, momentum: float) -> Tensor:
        """Do one optimiser step on the next `parts` batches. Returns the mean loss of this process's
        positions, on the device."""
        config, net = self.config, self.net
        for group in self.optimiser.param_groups:
            group["lr"], group["momentum"] = rate, momentum
        self.optimiser.zero_grad(set_to_none=True)
        if self._norms is not None:
            self._norms.begin()
        total: Tensor | None = None
        for part in range(self.parts):
            if self._has_dropout:  # the same after a resumption, and another one in each process
                number = self.workers.rank * self.parts + part
                torch.manual_seed(hash((config.seed, self.state.step, number)))
            batch = place_batch(next(batches), self.device)
            plies = batch.plies_left if self._predicts_plies else None
            with self._synchronised(part == self.parts - 1):
                with autocast(self.device, config.precision):
                    result: BatchResult = self._learner(
                        batch.planes,
                        batch.action,
                        batch.outcome,
                        plies,
                        batch.soft,
                        batch.weights,
                    )
                (result.loss / self.parts).backward()  # type: ignore[no-untyped-call]
            loss = result.loss.detach()
            total = loss if total is None else total + loss
            self._window.put(result, batch.outcome, batch.weights)
            if self._norms is not None:
                self._norms.end_part()
        if self._norms is not None:
            self.workers.all_reduce(self._norms.sums)
            self._norms.end(config.micro_batches)
        self._norm = nn.utils.clip_grad_norm_(net.parameters(), config.clip)
        self.optimiser.step()
        assert total is not None
        return total / self.parts

    def _synchronised(self, last: bool) -> AbstractContextManager[Any]:
        """Context that averages gradients over the processes only with the last part of a step."""
        if self.workers.world == 1 or last:
            return nullcontext()
        quiet: AbstractContextManager[Any] = self._learner.no_sync()
        return quiet

    def time_steps(self, seconds: float) -> tuple[float, float]:
        """Seconds per step and per validated position, measured for about `seconds`.

        The net cannot be trained properly afterwards.
        """
        warm, steps, began = 2, 0, 0.0
        batches = self.train.batches()
        rate, momentum = self.schedule.lr_at(0), self.schedule.momentum_at(0)
        self._train_mode()
        while steps < warm + 1 or time.perf_counter() - began < seconds:
            if steps == warm:
                began = time.perf_counter()
            self.step_at(batches, rate, momentum).item()
            steps += 1
        step = (time.perf_counter() - began) / (steps - warm)
        if self.validation is None:
            return step, 0.0
        limit = 4 * self.config.batch
        predict(self.net, self.validation, self.device, self.config.precision, limit=1)
        began = time.perf_counter()
        scores = predict(self.net, self.validation, self.device, self.config.precision, limit=limit)
        return step, (time.perf_counter() - began) / len(scores.rank)

    # --- log -----------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Add the scores that are still on the device to the sums since the last log line."""
        scores, auxiliary = self._window.take(self.workers, self._part_size)
        batch = self.config.batch
        # Step by step, so that a checkpoint in between does not change the rounding of the sums.
        for first in range(0, len(scores.rank), batch):
            part = scores.select(slice(first, first + batch))
            self._sums.add(part)
            for name, values in auxiliary.items():
                self._auxiliary.add(name, values[first : first + batch][part.teaches_value])

    def _write_train(self, step: int, rate: float) -> None:
        self._flush()
        self._last_train = self._sums.mean(self.config.value_weight)
        auxiliary = self._auxiliary.means()
        self._sums, self._auxiliary = Sums(), AuxiliaryMeans()
        self._write(
            "train",
            {
                "epoch": step * self.parts / max(1, self.train.steps_per_epoch),
                "lr": self.schedule.lr_at(step - 1) * self.state.lr_scale,
                "momentum": self.schedule.momentum_at(step - 1),
                "gradient_norm": float(self._norm),
                "rate": round(rate, 1),
                **self._last_train.as_dict(),
                **auxiliary,
            },
        )

    def _validate(self, kind: str, limit: int | None) -> Scores:
        assert self.validation is not None
        self.observer.validating(self.state.step)
        began = time.perf_counter()
        scores = predict(
            self.best,
            self.validation,
            self.device,
            self.config.precision,
            limit=limit,
            workers=self.workers,
        )
        metrics = scores.metrics(self.config.value_weight)
        seconds = time.perf_counter() - began
        self._write(kind, {**metrics.as_dict(), "took": round(seconds, 2)})
        return scores

    def _write(self, kind: str, numbers: dict[str, Any]) -> None:
        if self._log is not None:
            self._log.write(kind, self.state.step, self.state.seconds, numbers)
        self.observer.recorded(kind, self.state.step, numbers)

    # --- checkpoints and recovery ---------------------------------------------------------------

    def _save(self) -> Checkpoint:
        self._flush()
        self.state.window = asdict(self._sums)
        self.state.further = self._auxiliary.sums
        self.state.usual_loss, self.state.usual_steps = self._guard.usual, self._guard.steps
        folder = self.folder / CHECKPOINTS
        if not self.workers.first:
            return Checkpoint(folder / checkpoint_name(self.state.step))
        return save_checkpoint(
            folder,
            self.net,
            self.optimiser,
            self.state,
            self.config,
            keep=self.config.keep,
            average=None if self._average is None else self._average.net,
        )

    def _load(self, checkpoint: Checkpoint) -> None:
        """Load everything from a checkpoint: weights, buffers, optimiser, state.

        The first process reads it, so the others need not be able to read its files.
        """
        names: list[str] = []
        if self.workers.first:
            load_model(self.net, checkpoint.model(), checkpoint.path)
            tensors = checkpoint.optimiser()
            self.state = checkpoint.state()
            self._kind.load_tensors(self.net, self.optimiser, tensors, self.state.step)
            average = checkpoint.average()
            if self._average is not None and average is not None:
                load_model(self._average.net, average, checkpoint.path)
            names = list(tensors)
        names, self.state = self.workers.broadcast_object((names, self.state))
        if not self.workers.first:
            empty = self._kind.empty_tensors(self.net, names)
            self._kind.load_tensors(self.net, self.optimiser, empty, self.state.step)
        self.workers.broadcast(list(self.net.state_dict().values()))
        self.workers.broadcast(list(self._kind.tensors(self.net, self.optimiser).values()))
        if self._average is not None:
            self.workers.broadcast(list(self._average.net.state_dict().values()))
        if self.state.step == self.config.begins_at:
            self.state.forgiven, self.state.lr_scale = self.state.recoveries, 1.0
        window: Any = self.state.window
        self._sums, self._auxiliary = Sums(**window), AuxiliaryMeans(self.state.further)
        self._guard = LossGuard(self.config.spike, self.state.usual_loss, self.state.usual_steps)
        self._unchecked.clear()
        self._window.filled = 0

    def load_initial_weights(self) -> None:
        """Load the weights that the training starts from, if the configuration names any."""
        if not self.config.start_from:
            return
        nets = [self.net] if self._average is None else [self.net, self._average.net]
        if self.workers.first:
            start = find_start(Path(self.config.start_from))
            weights = start.weights(self.train)
            for net in nets:
                load_model(net, weights, start.path)
        for net in nets:
            self.workers.broadcast(list(net.state_dict().values()))

    def _recover(self) -> None:
        """Return to the last checkpoint, including buffers (one NaN in a batch stays in the running
        statistics for ever), skip the batches up to the one that failed, and halve the learning rate. If the training
        already returned to that checkpoint, its weights are the cause: return to the one before."""
        failed, before = self.state.step, self.state
        if before.recoveries - before.forgiven >= MAX_RECOVERIES:
            raise DivergedError(
                f"the loss is not a number or far too great at step {failed}, after "
                f"{before.recoveries - before.forgiven} returns to a checkpoint; start again with a learning rate below "
                f"{self.config.lr_max}"
            )
        past = failed + before.data_shift
        last = self._checkpoint
        if last.path.name == checkpoint_name(before.returned_to):
            older = list_checkpoints(last.path.parent)[-2:] if self.workers.first else []
            self._checkpoint = self.workers.broadcast_object(older[0] if older else last)
        self._load(self._checkpoint)
        state = self.state
        state.returned_to, state.data_shift = state.step, past - state.step
        state.recoveries, state.forgiven = before.recoveries + 1, before.forgiven
        state.lr_scale = before.lr_scale * RECOVERY_CUT
        state.seconds = before.seconds
        numbers = {"recoveries": state.recoveries, "lr_scale": state.lr_scale}
        self._write("recovery", {"failed_step": failed, **numbers})
        # At once: a training killed after this must not get the same batch again.
        self._checkpoint = self._save()
        if self.workers.first and self._checkpoint != last and self._checkpoint.path.is_dir():
            delete_checkpoint(last)
