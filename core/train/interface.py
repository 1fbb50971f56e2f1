"""The interface of trainers: a resolved configuration and batches in, a trained net out.

`variant-ai train --trainer NAME` chooses one. The built-in one is `standard`, the loop of
`loop/trainer.py`; plugins add others by the hook `register_trainers`. What comes before (stores,
splits, budget) and after (measures, export, model card, report) is the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from variant_ai.core.train.loop.devices import ALONE, Workers
from variant_ai.core.train.loop.position_source import Source
from variant_ai.core.train.measure.metrics import Metrics, Scores
from variant_ai.core.train.run.checkpoint import Checkpoint, TrainState
from variant_ai.core.train.run.run_folder import NoObserver, Observer
from variant_ai.core.train.run.training_settings import TrainConfig


@dataclass(frozen=True)
class TrainResult:
    """Result of a training."""

    net: nn.Module
    """The trained net, on the CPU, in evaluation mode."""
    state: TrainState
    checkpoint: Checkpoint
    train: Metrics | None
    """Metrics of the last log line."""
    validation: Metrics | None
    """Metrics on the validation positions after the last step; None if there are no such positions,
    or if stopped."""
    scores: Scores | None
    """The same, position by position."""
    stopped: bool
    """True if Ctrl-C ended it before the last step."""


class BaseTrainer(ABC):
    """One training in one run directory.

    A budget of minutes is turned into `config.steps` before the trainer is made, by the speed of the
    standard trainer.
    """

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
        """train: gives batches of `config.batch / config.micro_batches` positions, those of this
        process if there are several. observer: is called after every step. Raises VariantAIError for a
        configuration that cannot be trained."""
        self.config = config
        self.train = train
        self.validation = validation
        self.folder = folder
        self.observer = observer if observer is not None and workers.first else NoObserver()
        self.tensorboard = tensorboard
        self.workers = workers

    @abstractmethod
    def run(
        self, *, resume: bool = False, report: Callable[[str], None] = lambda text: None
    ) -> TrainResult:
        """Train to the last step, or until Ctrl-C (SIGINT, SIGTERM, SIGHUP), which saves first.

        With `resume`, go on from the newest undamaged checkpoint in `folder/checkpoints`, or begin if
        there is none. `report` gets sentences for the user. Raises DataError, DivergedError, OSError.
        """
