"""The training loop: from a resolved configuration and a source of batches to a trained net.

Everything that decides a number is a function of the configuration and the step: order of samples,
learning rate, momentum. So a training that was killed goes on from its last checkpoint and ends
with the very same net.

A step may be computed in parts (`micro_batches`): one after the other, their gradients added up,
or by several processes (`workers.py`), each its share of the parts. The source gives the batches of
the parts; which process computes which changes nothing but the time.

Nets are kept in the channels-last layout. Measured on two cores with AMX, batch 256: 815 against
572 positions/s for 5 x 64 RISEv2 under bf16, 70 against 47 for 13 x 256.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.nets.interface import NetworkBuilder
from variant_ai.core.system.interrupts import stop_on_signal
from variant_ai.core.train.interface import BaseTrainer, TrainResult
from variant_ai.core.train.loop.averages import Average, NormStatistics
from variant_ai.core.train.loop.device import choose_device
from variant_ai.core.train.loop.distributed import ALONE, Workers
from variant_ai.core.train.loop.divergence import Guard
from variant_ai.core.train.loop.learner import FurtherSums, Learner, Learnt, further_outputs
from variant_ai.core.train.loop.observer import Observer, Silent
from variant_ai.core.train.loop.optimisers import (
    frozen_layers,
    make_optimiser,
    make_schedule,
    wrap_learner,
)
from variant_ai.core.train.loop.placement import place_batch, place_net
from variant_ai.core.train.loop.position_source import Samples, Source
from variant_ai.core.train.loop.score_window import Window
from variant_ai.core.train.measure.metrics import Metrics, Scores, Sums
from variant_ai.core.train.measure.prediction import autocast, predict
from variant_ai.core.train.run.checkpoint import (
    Checkpoint,
    TrainState,
    checkpoint_name,
    clear_up,
    delete_checkpoint,
    list_checkpoints,
    load_model,
    load_momenta,
    momenta,
    momentum_rooms,
    newest_whole,
    save_checkpoint,
)
from variant_ai.core.train.run.initial_weights import find_start
from variant_ai.core.train.run.run_log import Recorder, last_metrics
from variant_ai.core.train.run.training_settings import TrainConfig

CHECKPOINTS = "checkpoints"
MAX_RECOVERIES = 3
RECOVERY_CUT = 0.5
"""Factor of the learning rate at each recovery."""


class DivergedError(VariantAIError):
    """The loss is no number any more, or far too great, and going back did not help."""


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
        builders: Mapping[str, NetworkBuilder] | None = None,
        tensorboard: bool = True,
        workers: Workers = ALONE,
    ) -> None:
        """`train` gives batches of `config.batch / config.micro_batches` positions, those of this
        process where there are several. Raises VariantAIError where the processes cannot share
        the parts of a step evenly, or a device or net is not to be had."""
        if config.batch % config.micro_batches:
            raise VariantAIError(
                f"a batch of {config.batch} cannot be computed in {config.micro_batches} equal parts"
            )
        if config.micro_batches % workers.world:
            raise VariantAIError(
                f"{workers.world} processes cannot share the {config.micro_batches} parts of a "
                "step evenly; start as many as divide it"
            )
        super().__init__(config, train, validation, folder, workers=workers)
        self.observer = observer if observer is not None and workers.first else Silent()
        self.tensorboard = tensorboard
        self.parts = config.micro_batches // workers.world
        """Parts of a step that this process computes."""
        self.device = workers.device(choose_device(config.device))
        if config.threads and self.device.type == "cpu":
            torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        self._builders = builders
        self.net = config.net.build(builders)
        place_net(self.net, self.device)
        self.frozen = frozen_layers(self.net, config.freeze)
        for layer in self.frozen:
            layer.requires_grad_(False)
        self.optimiser = make_optimiser(self.net, config)
        self.schedule = make_schedule(config)
        self.state = TrainState()
        further = further_outputs(self.net)
        self._wants_plies = "plies_left" in further
        learner = Learner(self.net, config.value_weight, config.plies_weight)
        self._learner = wrap_learner(learner, config, workers, self.device)
        self._average = Average(self.net, config.ema) if config.ema else None
        self._train_mode()
        self._norms = NormStatistics(self.net) if config.micro_batches > 1 else None
        self._guard = Guard(config.spike)
        # Looking at numbers waits for a GPU, so its guard is shown many at once.
        self.looks_every = 1 if self.device.type == "cpu" else config.log_every
        self._unseen: list[Tensor] = []
        self._sums, self._further = Sums(), FurtherSums()
        self._part_size = config.batch // config.micro_batches
        self._window = Window(config.log_every * self.parts * self._part_size, self.device, further)
        self._norm = torch.zeros(())
        self._last_train: Metrics | None = None

    @property
    def best(self) -> nn.Module:
        """The net as it is validated and kept: the running mean where there is one."""
        return self.net if self._average is None else self._average.net

    # --- the whole training --------------------------------------------------------------------

    def run(
        self, *, resume: bool = False, say: Callable[[str], None] = lambda text: None
    ) -> TrainResult:
        """Trains to the last step, or until Ctrl-C (SIGINT, SIGTERM, SIGHUP), which saves first.

        With `resume` it goes on from the newest checkpoint of the run directory that is not damaged
        (`say` is given a sentence about each that is), or begins if there is none yet; without,
        there must be none.

        Raises DataError (something that would be overwritten, a start that is not there, every
        checkpoint damaged),
        DivergedError, OSError (a full disk; the last checkpoint stays).
        """
        workers = self.workers
        checkpoints = self.folder / CHECKPOINTS
        if workers.first:
            clear_up(checkpoints)
        if not resume and workers.share(list_checkpoints(checkpoints)):
            raise DataError(f"{self.folder} holds a training already; resume it or name another")
        found = workers.share(newest_whole(checkpoints, say) if workers.first else None)
        if found is not None:
            self._load(found)
        else:
            self.take_start()
        scores: Scores | None = None
        validation: Metrics | None = None
        stopped = False
        with ExitStack() as stack:
            self._recorder: Recorder | None = None
            if workers.first:
                self._recorder = stack.enter_context(
                    Recorder(
                        self.folder,
                        self.state.step,
                        recoveries=self.state.recoveries,
                        tensorboard=self.tensorboard,
                    )
                )
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
        workers.wait()
        if self._last_train is None and workers.first:  # resumed where nothing was left to train
            self._last_train = last_metrics(self.folder, "train")
        net = self.best.eval().to("cpu")
        return TrainResult(
            net, self.state, self._checkpoint, self._last_train, validation, scores, stopped
        )

    def _train(self, stop: Callable[[], bool]) -> bool:
        """Steps until the last one, or a stop (True); FloatingPointError where the loss is wrong."""
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
                # Counted from the end, so that the last line stands for a whole window too.
                "log": (config.steps - step) % config.log_every == 0,
                "save": step % config.checkpoint_every == 0 or step == config.steps,
                "validate": step % config.validate_every == 0 and step < config.steps,
            }
            (stopped,) = self.workers.any(stop() and step < config.steps)
            due["save"] |= stopped
            self._unseen.append(loss)
            wrong = False
            if step % self.looks_every == 0 or any(due.values()):
                losses = torch.stack(self._unseen)
                self._unseen.clear()
                self.workers.add([losses])  # so that their guards agree
                wrong = any(map(self._guard.objects, (losses / self.workers.world).tolist()))
            # The loss tells nothing of what the step after it did.
            if due["save"] and not wrong:
                # Nor do the running statistics, which no step looks at and every evaluation needs.
                wrong = not all(bool(w.isfinite().all()) for w in self.net.state_dict().values())
            if any(self.workers.any(wrong)):
                raise FloatingPointError
            self.state.seconds = seconds + time.perf_counter() - began
            if due["log"]:
                now = time.perf_counter()
                self._log(step, (step - window_step) * config.batch / (now - window_began))
            # Before the checkpoint: a kill in between then repeats the validation, and does not
            # lose it.
            if due["validate"] and self.validation is not None:
                before = time.perf_counter()
                self._validate("validation", config.validation_limit)
                self._train_mode()
                window_began += time.perf_counter() - before  # the rate is that of steps
            if due["save"]:
                self._checkpoint = self._save()
            self.observer.stepped(step)
            if stopped:
                return True
            if due["log"]:
                window_began, window_step = time.perf_counter(), step
        return False

    def _train_mode(self) -> None:
        """Norms use the batch and follow it, but for those of frozen layers."""
        self.net.train()
        for layer in self.frozen:
            layer.eval()

    def step_at(self, batches: Iterator[Samples], rate: float, momentum: float) -> Tensor:
        """One optimiser step on the next `parts` batches. Returns the mean loss of this process's
        positions, on the device."""
        config, net = self.config, self.net
        for group in self.optimiser.param_groups:
            group["lr"], group["momentum"] = rate, momentum
        self.optimiser.zero_grad(set_to_none=True)
        if self._norms is not None:
            self._norms.begin()
        total: Tensor | None = None
        for part in range(self.parts):
            batch = place_batch(next(batches), self.device)
            plies = batch.plies_left if self._wants_plies else None
            with self._together(part == self.parts - 1):
                with autocast(self.device, config.precision):
                    learnt: Learnt = self._learner(
                        batch.planes, batch.action, batch.outcome, plies, batch.soft
                    )
                (learnt.loss / self.parts).backward()  # type: ignore[no-untyped-call]
            loss = learnt.loss.detach()
            total = loss if total is None else total + loss
            self._window.put(learnt, batch.outcome)
            if self._norms is not None:
                self._norms.end_part()
        if self._norms is not None:
            self.workers.add(self._norms.sums)
            self._norms.end(config.micro_batches)
        self._norm = nn.utils.clip_grad_norm_(net.parameters(), config.clip)
        self.optimiser.step()
        assert total is not None
        return total / self.parts

    def _together(self, last: bool) -> AbstractContextManager[Any]:
        """Between processes gradients are added up once a step, with its last part."""
        if self.workers.world == 1 or last:
            return nullcontext()
        quiet: AbstractContextManager[Any] = self._learner.no_sync()
        return quiet

    def time_steps(self, seconds: float) -> tuple[float, float]:
        """Seconds per step and per position validated, measured for about so long.

        The net is no longer fit for a training afterwards.
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

    # --- record --------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Adds the scores that wait on the device to the sums of the window."""
        seen, batch = self._window.take(self.workers, self._part_size), self.config.batch
        # Step by step, so that a checkpoint in between does not change how the sums are rounded.
        for first in range(0, len(seen.scores.rank), batch):
            self._sums.add(seen.scores.part(first, first + batch))
            for name, values in seen.further.items():
                self._further.add(name, values[first : first + batch])

    def _log(self, step: int, rate: float) -> None:
        self._flush()
        self._last_train = self._sums.mean(self.config.value_weight)
        further = self._further.means()
        self._sums, self._further = Sums(), FurtherSums()
        self._write(
            "train",
            {
                "epoch": step * self.parts / max(1, self.train.steps_per_epoch),
                "lr": self.schedule.lr_at(step - 1) * self.state.lr_scale,
                "momentum": self.schedule.momentum_at(step - 1),
                "gradient_norm": float(self._norm),
                "rate": round(rate, 1),
                **self._last_train.as_dict(),
                **further,
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
        if self._recorder is not None:
            self._recorder.write(kind, self.state.step, self.state.seconds, numbers)
        self.observer.recorded(kind, self.state.step, numbers)

    # --- going on and going back ---------------------------------------------------------------

    def _save(self) -> Checkpoint:
        self._flush()
        self.state.window = asdict(self._sums)
        self.state.further = self._further.sums
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
        """Takes up everything of a checkpoint: weights, buffers, momentum, state.

        The first process reads it, so the others need not reach its files.
        """
        names: list[str] = []
        if self.workers.first:
            load_model(self.net, checkpoint.model(), checkpoint.path)
            momentum = checkpoint.optimiser()
            self.state = checkpoint.state()
            load_momenta(self.net, self.optimiser, momentum, self.state.step)
            average = checkpoint.average()
            if self._average is not None and average is not None:
                load_model(self._average.net, average, checkpoint.path)
            names = list(momentum)
        names, self.state = self.workers.share((names, self.state))
        if not self.workers.first:
            rooms = momentum_rooms(self.net, names)
            load_momenta(self.net, self.optimiser, rooms, self.state.step)
        self.workers.spread(list(self.net.state_dict().values()))
        self.workers.spread(list(momenta(self.net, self.optimiser).values()))
        if self._average is not None:
            self.workers.spread(list(self._average.net.state_dict().values()))
        window: Any = self.state.window
        self._sums, self._further = Sums(**window), FurtherSums(self.state.further)
        self._guard = Guard(self.config.spike, self.state.usual_loss, self.state.usual_steps)
        self._unseen.clear()
        self._window.filled = 0

    def take_start(self) -> None:
        """Takes over the weights the training is to begin with, where it names some."""
        if not self.config.start_from:
            return
        nets = [self.net] if self._average is None else [self.net, self._average.net]
        if self.workers.first:
            start = find_start(Path(self.config.start_from))
            weights = start.weights(self.train, self._builders)
            for net in nets:
                load_model(net, weights, start.path)
        for net in nets:
            self.workers.spread(list(net.state_dict().values()))

    def _recover(self) -> None:
        """Goes back to the last checkpoint, buffers included (one NaN in a batch stays in the
        running statistics for ever), past the batch at fault, with half the learning rate. One that
        was gone back to in vain has ruined weights itself: then to the one before it."""
        failed, before = self.state.step, self.state
        if before.recoveries >= MAX_RECOVERIES:
            raise DivergedError(
                f"the loss is no number or far too great at step {failed}, after "
                f"{before.recoveries} returns to a checkpoint; start again with a smaller learning "
                f"rate than {self.config.lr_max}"
            )
        past = failed + before.data_shift
        last = self._checkpoint
        if last.path.name == checkpoint_name(before.returned_to):
            older = list_checkpoints(last.path.parent)[-2:] if self.workers.first else []
            self._checkpoint = self.workers.share(older[0] if older else last)
        self._load(self._checkpoint)
        state = self.state
        state.returned_to, state.data_shift = state.step, past - state.step
        state.recoveries = before.recoveries + 1
        state.lr_scale = before.lr_scale * RECOVERY_CUT
        state.seconds = before.seconds
        said = {"recoveries": state.recoveries, "lr_scale": state.lr_scale}
        self._write("recovery", {"failed_step": failed, **said})
        # At once: a training killed after this must not meet the same batch again.
        self._checkpoint = self._save()
        if self.workers.first and self._checkpoint != last and self._checkpoint.path.is_dir():
            delete_checkpoint(last)
