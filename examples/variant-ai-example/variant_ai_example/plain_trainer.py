"""A trainer: stochastic gradient descent at a constant rate, with checkpoints and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from variant_ai.core.errors import DataError
from variant_ai.core.nets.network import load_model, outputs_of
from variant_ai.core.system.interrupts import stop_on_signal
from variant_ai.core.train.interface import BaseTrainer, TrainResult
from variant_ai.core.train.loop.position_source import Samples, Source
from variant_ai.core.train.measure.prediction import predict
from variant_ai.core.train.run.checkpoint import (
    TrainState,
    list_checkpoints,
    save_checkpoint,
)
from variant_ai.core.train.run.run_folder import RunLog
from variant_ai.core.train.run.training_settings import TrainConfig


class PlainTrainer(BaseTrainer):
    """Trains at the least learning rate times ten. Alone: several processes are not supported."""

    def __init__(
        self,
        config: TrainConfig,
        train: Source,
        validation: Source | None,
        folder: Path,
        **options: Any,
    ) -> None:
        """options: those of `BaseTrainer`."""
        super().__init__(config, train, validation, folder, **options)
        torch.manual_seed(config.seed)
        self.net = config.net.build()
        self.optimiser = torch.optim.SGD(self.net.parameters(), lr=0.1 * config.lr_max)
        self.state = TrainState()

    def run(
        self, *, resume: bool = False, report: Callable[[str], None] = lambda text: None
    ) -> TrainResult:
        folder, config = self.folder / "checkpoints", self.config
        found = list_checkpoints(folder)
        if found and not resume:
            raise DataError(f"{self.folder} holds a training already; resume it or name another")
        if found:
            self.state = found[-1].state()
            load_model(self.net, found[-1].model(), found[-1].path)
        began, stopped = time.perf_counter() - self.state.seconds, False
        with stop_on_signal() as stop:
            for samples in self.train.batches(self.state.step, config.steps):
                self._step(samples)
                self.state.step += 1
                self.state.seconds = time.perf_counter() - began
                self.observer.stepped(self.state.step)
                if stop():
                    stopped = self.state.step < config.steps
                    break
        kept = save_checkpoint(
            folder, self.net, self.optimiser, self.state, config, keep=config.keep
        )
        scores = validation = None
        if self.validation is not None and not stopped:
            scores = predict(
                self.net, self.validation, torch.device("cpu"), limit=config.final_limit
            )
            validation = scores.metrics(config.value_weight)
            with RunLog(self.folder, self.state.step, tensorboard=self.tensorboard) as log:
                numbers = validation.as_dict()
                log.write("final", self.state.step, self.state.seconds, numbers)
        return TrainResult(self.net.eval(), self.state, kept, None, validation, scores, stopped)

    def _step(self, samples: Samples) -> None:
        self.net.train()
        found_outputs = outputs_of(self.net, torch.from_numpy(samples.planes))
        loss = nn.functional.cross_entropy(found_outputs.policy, torch.from_numpy(samples.action))
        loss = loss + nn.functional.mse_loss(found_outputs.value, torch.from_numpy(samples.value))
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
