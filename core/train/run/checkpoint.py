"""Checkpoints: one directory, written aside and renamed whole.

    step-00001000/
      model.safetensors       parameters and buffers (running statistics of the norms)
      optimiser.safetensors   momentum of each parameter, by its name
      average.safetensors     the running mean of parameters and buffers, where one is kept
      state.json              step and everything else that training goes on from
      config.json             the run's resolved configuration
      checksums.json          sha256 of each of these files

A directory with that name is complete: a killed writer leaves `.part` behind, never a half of it.
One that a resumed training found damaged is renamed to `.damaged` and otherwise left alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from variant_ai.core.errors import DataError
from variant_ai.core.inference.backends.torch_backend import find_checkpoint_folder
from variant_ai.core.nets.checksums import CHECKSUMS, check_file, checksums_json, read_checksums
from variant_ai.core.system.files import naming
from variant_ai.core.train.run.training_settings import TrainConfig

MODEL, OPTIMISER = "model.safetensors", "optimiser.safetensors"
AVERAGE = "average.safetensors"
SECOND = "exp_avg_sq/"
"""Before the name of a parameter: Adam's mean of its squared gradients."""
STATE, CONFIG = "state.json", "config.json"
_NAME = re.compile(r"step-(\d{8,})\Z")


@dataclass
class TrainState:
    """What a training goes on from, beside the numbers of net and optimiser."""

    step: int = 0
    """Optimiser steps taken."""
    data_shift: int = 0
    """The batch of step s is the source's batch s + data_shift: what recoveries stepped past."""
    lr_scale: float = 1.0
    """Factor of the learning rate, cut by recoveries."""
    recoveries: int = 0
    seconds: float = 0.0
    """Time trained, over all resumptions."""
    window: dict[str, float] = field(default_factory=dict)
    """Sums of the metrics since the last log line."""
    further: dict[str, float] = field(default_factory=dict)
    """The same of what the net says beside value and policy."""
    usual_loss: float = 0.0
    """Running mean of the loss, by which spikes are told."""
    usual_steps: int = 0
    """Steps that mean has seen."""
    returned_to: int = -1
    """Step of the checkpoint that the last recovery went to; -1: there was none."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk."""

    path: Path

    def config(self) -> TrainConfig:
        """Raises DataError if it is missing, damaged or of another version of the program."""
        check_file(self.path / CONFIG)
        return read_config(self.path / CONFIG)

    def state(self) -> TrainState:
        """Raises DataError if it is missing or damaged."""
        check_file(self.path / STATE)
        try:
            return TrainState(**_json(self.path / STATE))
        except TypeError as error:
            raise DataError(f"{self.path / STATE} is damaged: {error}") from None

    def check(self) -> None:
        """Reads every file of it. Raises DataError if one is missing or damaged."""
        names = {MODEL, OPTIMISER, STATE, CONFIG, *read_checksums(self.path)}
        if missing := sorted(name for name in names if not (self.path / name).is_file()):
            raise DataError(f"{self.path / missing[0]} is not there")
        self.config(), self.state(), self.model(), self.optimiser(), self.average()

    def model(self) -> dict[str, Tensor]:
        return _tensors(self.path / MODEL)

    def optimiser(self) -> dict[str, Tensor]:
        return _tensors(self.path / OPTIMISER)

    def average(self) -> dict[str, Tensor] | None:
        """The running mean of the weights, None where the training keeps none."""
        path = self.path / AVERAGE
        return _tensors(path) if path.is_file() else None

    def best(self) -> dict[str, Tensor]:
        """The weights to use: the running mean where there is one, else the last."""
        average = self.average()
        return self.model() if average is None else average

    def build(self, config: TrainConfig | None = None, builders: Any = None) -> nn.Module:
        """The net with the weights to use, on the CPU, ready to evaluate."""
        net = (config or self.config()).net.build(builders)
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
    """Writes the checkpoint of `state.step` under `folder` and deletes all but the newest `keep`.

    Raises OSError (a full disk) with the older checkpoints untouched.
    """
    target = folder / checkpoint_name(state.step)
    part = folder / f"{target.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        contents = {
            MODEL: save(_plain(net.state_dict())),
            OPTIMISER: save(_plain(momenta(net, optimiser))),
            **({} if average is None else {AVERAGE: save(_plain(average.state_dict()))}),
            STATE: json.dumps(asdict(state)).encode(),
            CONFIG: config.model_dump_json(indent=2).encode(),
        }
        contents[CHECKSUMS] = checksums_json(contents)
        for name, content in contents.items():
            with naming(target / name):
                (part / name).write_bytes(content)
                _sync(part / name)
        old = folder / f"{target.name}.old"
        if target.exists():  # the same step again, after a resumption
            target.rename(old)
        part.rename(target)
        shutil.rmtree(old, ignore_errors=True)
        _sync(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    for outdated in list_checkpoints(folder)[:-keep]:
        delete_checkpoint(outdated)
    return Checkpoint(target)


def clear_up(folder: Path) -> None:
    """Puts in order what a killed writer left: halves are deleted, and a checkpoint that was about
    to be replaced gets its name back."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.suffix == ".old" and not path.with_suffix("").exists():
            path.rename(path.with_suffix(""))
        elif path.suffix in (".old", ".part", ".gone"):
            shutil.rmtree(path, ignore_errors=True)


def list_checkpoints(folder: Path) -> list[Checkpoint]:
    """Complete checkpoints under a folder, oldest first."""
    if not folder.is_dir():
        return []
    found = [(int(m[1]), p) for p in folder.iterdir() if (m := _NAME.match(p.name))]
    return [Checkpoint(path) for _, path in sorted(found)]


def newest_whole(folder: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint under a folder that is not damaged, None if there are none at all.

    Damaged ones that are newer get the suffix `.damaged`, so that nothing takes them for the
    newest, and `say` is given a sentence about each. Raises DataError if all are damaged.
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
            say(f"{reason}. Going back to {checkpoint.path.name}; it is kept as {aside.name}.")
        return checkpoint
    if damaged:
        newest = damaged[0][1]
        if len(damaged) == 1:
            raise newest
        raise DataError(
            f"none of the {len(damaged)} checkpoints in {folder} is whole: {newest}"
        ) from newest
    return None


def delete_checkpoint(checkpoint: Checkpoint) -> None:
    """Renamed first: what has a checkpoint's name is whole even while it is being deleted."""
    gone = checkpoint.path.with_name(f"{checkpoint.path.name}.gone")
    checkpoint.path.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def find_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint that a path means: itself, or the newest of a run directory.

    Raises DataError where there is none.
    """
    return Checkpoint(find_checkpoint_folder(path))


def read_config(path: Path) -> TrainConfig:
    """A resolved configuration. Raises DataError where it is damaged or of another version."""
    values = _json(path)
    try:
        return TrainConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{path}: {where}: {first['msg']}") from None


def momenta(net: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Momentum of each parameter by its name, Adam's second one as `exp_avg_sq/NAME`; absent
    before the first step."""
    buffers = {}
    for name, weight in net.named_parameters():
        state = optimiser.state.get(weight, {})
        for prefix, key in (("", "momentum_buffer"), ("", "exp_avg"), (SECOND, "exp_avg_sq")):
            if state.get(key) is not None:
                buffers[prefix + name] = state[key]
    return buffers


def momentum_rooms(net: nn.Module, names: list[str]) -> dict[str, Tensor]:
    """Zeros of the shapes of the momenta of those names."""
    weights = dict(net.named_parameters())
    return {name: torch.zeros_like(weights[name.removeprefix(SECOND)]) for name in names}


def load_momenta(
    net: nn.Module, optimiser: torch.optim.Optimizer, buffers: dict[str, Tensor], step: int
) -> None:
    """Gives each parameter its momentum, in the parameter's own memory layout. `step`: how many
    were taken, by which Adam corrects its means."""
    optimiser.state.clear()
    adam = isinstance(optimiser, torch.optim.Adam)
    for name, weight in net.named_parameters():
        if name not in buffers:
            continue
        keys = {"exp_avg": name, "exp_avg_sq": SECOND + name} if adam else {"momentum_buffer": name}
        state: dict[str, Tensor] = {"step": torch.tensor(float(step))} if adam else {}
        for key, stored in keys.items():
            state[key] = torch.empty_like(weight, requires_grad=False)
            state[key].copy_(buffers[stored])
        optimiser.state[weight] = state


def load_model(net: nn.Module, tensors: dict[str, Tensor], where: Path) -> None:
    """Copies parameters and buffers into a net of the same shape; DataError where one differs."""
    own = net.state_dict()
    wrong = [name for name in own if name not in tensors or own[name].shape != tensors[name].shape]
    wrong += [name for name in tensors if name not in own]
    if wrong:
        raise DataError(
            f"{where}: its weights do not fit the net it names ({len(wrong)} of {len(own)} "
            f"tensors differ, the first is {wrong[0]})"
        )
    net.load_state_dict(tensors)


def _plain(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """As safetensors wants them: row by row, sharing no memory."""
    return {name: t.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, t in tensors.items()}  # fmt: skip


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        check_file(path)
        tensors: dict[str, Tensor] = load_file(path)
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except SafetensorError as error:
        raise DataError(f"{path} is damaged: {error}") from None
    return tensors


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text())
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is damaged: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path} is damaged: not an object")
    return value


def _sync(path: Path) -> None:
    """Forces a file or directory to the disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
