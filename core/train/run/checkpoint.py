"""Checkpoints: a directory each, written under another name and then renamed.

    step-00001000/
      model.safetensors       parameters and buffers (running statistics of the norms)
      optimiser.safetensors   state of the optimiser for each parameter, by its name
      average.safetensors     the moving average of parameters and buffers, if one is kept
      state.json              the step, and what else a resumed training needs (`TrainState`)
      config.json             the run's resolved configuration
      checksums.json          sha256 of each of these files

A directory with such a name is complete: a killed writer leaves a directory that ends in `.part`. A
checkpoint that a resumed training found damaged is renamed to `.damaged` and otherwise left alone.
There is no random state: the order of the samples and the learning rate follow from seed and step.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from variant_ai.core.errors import DataError
from variant_ai.core.inference.model_file import (
    AVERAGE,
    CHECKSUMS,
    MODEL,
    check_file,
    checksums_json,
    find_checkpoint_folder,
    read_checksums,
    read_tensors,
    step_folders,
)
from variant_ai.core.nets.network import load_model
from variant_ai.core.system.files import naming, rename, synchronise
from variant_ai.core.train.loop.optimisers import find_optimiser
from variant_ai.core.train.run.run_folder import CONFIG, read_config, read_object
from variant_ai.core.train.run.training_settings import TrainConfig

OPTIMISER, STATE = "optimiser.safetensors", "state.json"


@dataclass
class TrainState:
    """State of a training besides the numbers of net and optimiser. The names are those of
    state.json."""

    step: int = 0
    """Optimiser steps done."""
    data_shift: int = 0
    """Batches that recoveries skipped. Step s, the first is 0, takes batch s + data_shift of the source (and
    with micro-batches as many from there on as a step has)."""
    lr_scale: float = 1.0
    """Factor of the learning rate, reduced by recoveries."""
    recoveries: int = 0
    forgiven: int = 0
    """Those of earlier courses (`TrainConfig.begins_at`), which no longer count."""
    seconds: float = 0.0
    """Training time, including the time before the run was resumed."""
    window: dict[str, float] = field(default_factory=dict)
    """Sums of the metrics since the last log line."""
    further: dict[str, float] = field(default_factory=dict)
    """The same for the auxiliary outputs."""
    usual_loss: float = 0.0
    """Running mean of the loss, from which spikes are detected."""
    usual_steps: int = 0
    """Number of steps in that mean."""
    returned_to: int = -1
    """Step of the checkpoint that the last recovery went back to; -1: there was none."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk."""

    path: Path

    def config(self) -> TrainConfig:
        """Read the configuration. Raises DataError if it is missing, damaged or of another version."""
        check_file(self.path / CONFIG)
        return read_config(self.path / CONFIG)

    def state(self) -> TrainState:
        """Read the state. Raises DataError if it is missing or damaged."""
        check_file(self.path / STATE)
        try:
            return TrainState(**read_object(self.path / STATE))
        except TypeError as error:
            raise DataError(f"{self.path / STATE} is damaged: {error}") from None

    def check(self) -> None:
        """Read every file. Raises DataError if one is missing or damaged."""
        names = {MODEL, OPTIMISER, STATE, CONFIG, *read_checksums(self.path)}
        if missing := sorted(name for name in names if not (self.path / name).is_file()):
            raise DataError(f"{self.path / missing[0]} is not there")
        self.config(), self.state(), self.model(), self.optimiser(), self.average()

    def model(self) -> dict[str, Tensor]:
        return read_tensors(self.path / MODEL)

    def optimiser(self) -> dict[str, Tensor]:
        return read_tensors(self.path / OPTIMISER)

    def average(self) -> dict[str, Tensor] | None:
        """The moving average of the weights, None if the training keeps none."""
        path = self.path / AVERAGE
        return read_tensors(path) if path.is_file() else None

    def best(self) -> dict[str, Tensor]:
        """The weights to use: the moving average if there is one, else the last."""
        average = self.average()
        return self.model() if average is None else average

    def build(self, config: TrainConfig | None = None) -> nn.Module:
        """Build the net with the weights to use, on the CPU, in evaluation mode."""
        net = (config or self.config()).net.build()
        load_model(net, self.best(), self.path)
        return net.eval()


def checkpoint_name(step: int) -> str:
    return f"step-{step:08d}"


def save_checkpoint(
    folder: Path,
    net: nn.Module,
    optimiser: torch.optim.Optimizer,
    state: TrainState,
    config: TrainConfig,
    *,
    keep: int,
    average: nn.Module | None = None,
) -> Checkpoint:
    """Write the checkpoint of `state.step` into `folder` and delete all but the newest `keep`.

    Raises OSError (e.g. a full disk); the older checkpoints are unchanged then.
    """
    target = folder / checkpoint_name(state.step)
    part = folder / f"{target.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    with naming(target, part):
        part.mkdir(parents=True)
    try:
        contents = {
            MODEL: save(_plain(net.state_dict())),
            OPTIMISER: save(_plain(find_optimiser(config.optimiser).tensors(net, optimiser))),
            **({} if average is None else {AVERAGE: save(_plain(average.state_dict()))}),
            STATE: json.dumps(asdict(state)).encode(),
            CONFIG: config.model_dump_json(indent=2).encode(),
        }
        contents[CHECKSUMS] = checksums_json(contents)
        for name, content in contents.items():
            with naming(target / name, part / name):
                (part / name).write_bytes(content)
                synchronise(part / name)
        old = folder / f"{target.name}.old"
        if target.exists():  # the same step again, after a resumption
            rename(target, old)
        with naming(target, part):
            rename(part, target)
        shutil.rmtree(old, ignore_errors=True)
        synchronise(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    for outdated in list_checkpoints(folder)[:-keep]:
        delete_checkpoint(outdated)
    return Checkpoint(target)


def remove_leftovers(folder: Path) -> None:
    """Clean up after a killed writer: delete incomplete checkpoints, and rename back one that was
    about to be replaced."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.suffix == ".old" and not path.with_suffix("").exists():
            path.rename(path.with_suffix(""))
        elif path.suffix in (".old", ".part", ".gone"):
            shutil.rmtree(path, ignore_errors=True)


def list_checkpoints(folder: Path) -> list[Checkpoint]:
    """Complete checkpoints in a folder, oldest first."""
    return [Checkpoint(path) for path in step_folders(folder).values()]


def newest_undamaged(folder: Path, report: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint in a folder that is not damaged, None if there are no checkpoints.

    Newer, damaged ones get the suffix `.damaged`, so that they are no longer the newest, and a
    sentence about each is passed to `report`. Raises DataError if all are damaged.
    """
    damaged: list[tuple[Checkpoint, DataError]] = []
    found = list_checkpoints(folder)
    for checkpoint in reversed(found):
        try:
            checkpoint.check()
        except DataError as error:
            damaged.append((checkpoint, error))
            continue
        for newer, reason in damaged:
            aside = newer.path.with_name(f"{newer.path.name}.damaged")
            shutil.rmtree(aside, ignore_errors=True)
            newer.path.rename(aside)
            report(f"{reason}. Going back to {checkpoint.path.name}; it is kept as {aside.name}.")
        return checkpoint
    if damaged:
        newest = damaged[0][1]
        if len(damaged) == 1:
            raise newest
        raise DataError(
            f"all {len(damaged)} checkpoints in {folder} are damaged: {newest}"
        ) from newest
    return None


def delete_checkpoint(checkpoint: Checkpoint) -> None:
    """Delete a checkpoint; it is renamed first, because every directory with such a name is
    complete."""
    gone = checkpoint.path.with_name(f"{checkpoint.path.name}.gone")
    rename(checkpoint.path, gone)
    shutil.rmtree(gone, ignore_errors=True)


def find_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint at a path, or the newest one of the run directory at the path.

    Raises DataError if there is none.
    """
    return Checkpoint(find_checkpoint_folder(path))


def _plain(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors into the layout of safetensors: row by row, sharing no memory."""
    return {name: t.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, t in tensors.items()}  # fmt: skip
