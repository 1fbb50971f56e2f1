"""The files of a run directory: their names, who writes them, and how they are read; the log of a training
(`RunLog`), and who else may follow it (`Observer`).

| file | contents | written by |
| --- | --- | --- |
| config.json | the resolved configuration | `training_run`, at the start |
| environment.json | versions and machine | `training_run`, at the start |
| checkpoints/ | the newest checkpoints (`checkpoint`) | `Trainer`, while it trains |
| metrics.jsonl | a line per event: `kind` (`train`, `validation`, `recovery`, `final`), `step`, `seconds` trained, numbers | `RunLog`, while it trains |
| tensorboard/ | the same for TensorBoard | `RunLog`, while it trains |
| results.json | metrics at the end, as printed | `training_run`, at the end |
| curves.png | learning curves | `training_run`, at the end |
| baseline.npy | how often each action was trained | `training_run`, at the end |
| model.onnx | the net | `training_run`, at the end |
| README.md | the model card | `training_run`, at the end |
| report.html, pictures/ | everything on one page, and its pictures | `run_report`, at the end or later |
| lock | the process that trains | `training_run`, while it trains |

Everybody reads them by the functions here. `core.inference` and the experiments read config.json,
checkpoints and model.onnx of a run without this module, by the same names.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from variant_ai.core.data.store.blocks import write_lock
from variant_ai.core.errors import DataError
from variant_ai.core.inference.model_file import RUN_MODEL
from variant_ai.core.system.checked_models import first_fault
from variant_ai.core.system.closing import Closing
from variant_ai.core.system.files import naming, write_whole
from variant_ai.core.train.run.training_settings import TrainConfig

CONFIG, ENVIRONMENT, RESULTS = "config.json", "environment.json", "results.json"
CHECKPOINTS, METRICS, TENSORBOARD = "checkpoints", "metrics.jsonl", "tensorboard"
CURVES, BASELINE, MODEL, CARD = "curves.png", "baseline.npy", RUN_MODEL, "README.md"
REPORT, PICTURES = "report.html", "pictures"
LOCK = "lock"

Event = dict[str, Any]
"""A line of metrics.jsonl."""


def require_empty(folder: Path) -> None:
    """Raise DataError if a new run would overwrite something."""
    if folder.is_file():
        raise DataError(f"{folder} is a file, not a run directory")
    if folder.exists() and any(path.name != LOCK for path in folder.iterdir()):
        raise DataError(
            f"{folder} is not empty; use --resume to continue it, or another folder with --run"
        )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a run's folder, which exists. Raises DataError that names the process that holds the lock;
    OSError."""
    path = folder / LOCK
    with contextlib.ExitStack() as held:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        file = held.enter_context(io.FileIO(descriptor, "r+"))
        try:
            held.enter_context(write_lock(file, path))
        except DataError:
            holder = path.read_text("utf-8").strip() or "another process"
            raise DataError(
                f"{folder} is being run by {holder}; name another folder, or stop it first"
            ) from None
        with naming(path):
            file.truncate(0)
            file.write(f"process {os.getpid()}, since {time.ctime()}".encode())
        yield
        file.truncate(0)


def first_run_folder(*folders: Path) -> Path | None:
    """The first of these folders that is a run directory, None if there is none."""
    return next((folder for folder in folders if (folder / CONFIG).is_file()), None)


def run_config(folder: Path) -> TrainConfig:
    """Read the configuration of a run. Raises DataError if the folder is not a run directory, or if
    the configuration is damaged or of another version."""
    path = folder / CONFIG
    if not path.is_file():
        what = "is no run directory: it has no config.json" if folder.exists() else "is not there"
        raise DataError(f"{folder} {what}")
    return read_config(path)


def read_config(path: Path) -> TrainConfig:
    """Read a resolved configuration. Raises DataError if it is damaged or of another version."""
    values = read_object(path)
    try:
        return TrainConfig.model_validate(values)
    except ValidationError as error:
        where, reason, _ = first_fault(error)
        raise DataError(f"{path}: {where}: {reason}") from None


def read_results(folder: Path, step: int) -> dict[str, Any] | None:
    """Read results.json; None if there is none for this step (it is older than a resumed run)."""
    path = folder / RESULTS
    if not path.is_file():
        return None
    results = read_object(path)
    return results if results.get("steps") == step else None


def read_metrics(folder: Path) -> list[Event]:
    """Read the events of a run, oldest first; a last line that was cut off is left out."""
    path = folder / METRICS
    events: list[Event] = []
    if not path.is_file():
        return events
    for line in path.read_text("utf-8").splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return events


def train_and_validation(events: Sequence[Event]) -> tuple[list[Event], list[Event]]:
    """Events of the training and of its validations, without those that were undone by a return to a
    checkpoint."""
    kept: list[Event] = []
    for event in events:
        if event["kind"] == "recovery":
            kept = [e for e in kept if e["step"] <= event["step"]]
        else:
            kept.append(event)
    train = [e for e in kept if e["kind"] == "train"]
    return train, [e for e in kept if e["kind"] in ("validation", "final")]


def last_metrics(folder: Path, kind: str) -> dict[str, Any] | None:
    """Numbers of a run's last event of that kind, None if there is none; null becomes NaN."""
    for event in reversed(read_metrics(folder)):
        if event["kind"] == kind:
            return {name: math.nan if value is None else value for name, value in event.items()}
    return None


def save_counts(folder: Path, counts: NDArray[np.int64]) -> None:
    """Write how often each action was trained, int64 [A]."""
    buffer = io.BytesIO()
    np.save(buffer, counts)
    write_whole(folder / BASELINE, buffer.getvalue())


def load_counts(folder: Path, actions: int) -> NDArray[np.int64] | None:
    """Read how often each action was trained, int64 [A]; None if the run has no such file.

    Raises DataError if it is damaged or has another number of actions.
    """
    path = folder / BASELINE
    if not path.is_file():
        return None
    try:
        counts: NDArray[np.int64] = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(f"{path} is damaged: {error}") from None
    if counts.shape != (actions,):
        raise DataError(f"{path} counts {len(counts)} actions; the net has {actions}")
    return counts


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object. Raises DataError if it is missing or damaged."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is damaged: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path} is damaged: not an object")
    return value


# --- following a training --------------------------------------------------------------------------


class Observer(Protocol):
    """Object that follows a training, e.g. a progress bar."""

    def stepped(self, step: int) -> None:
        """Called after each step; `step` steps were done in all."""

    def recorded(self, kind: str, step: int, numbers: dict[str, Any]) -> None:
        """Called for each event of the log."""

    def validating(self, step: int) -> None:
        """Called when a validation begins."""


class NoObserver:
    """Observer that does nothing."""

    def stepped(self, step: int) -> None: ...

    def recorded(self, kind: str, step: int, numbers: dict[str, Any]) -> None: ...

    def validating(self, step: int) -> None: ...


class RunLog(Closing):
    """Writer of a run's log. When a run is resumed, it drops all events after `step`."""

    def __init__(
        self, folder: Path, step: int = 0, *, recoveries: int = 0, tensorboard: bool = True
    ) -> None:
        """`step` and `recoveries`: done before. Measurements of the end (`final`) are dropped, since
        they will be repeated."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / METRICS
        kept = [
            line
            for line in read_metrics(folder)
            if line["step"] <= step
            and line["kind"] != "final"
            and line.get("recoveries", 0) <= recoveries
        ]
        write_whole(self.path, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self._file = self.path.open("a")
        self._board: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            purge = step + 1 if step else None
            self._board = SummaryWriter(str(folder / TENSORBOARD), purge_step=purge)

    def write(self, kind: str, step: int, seconds: float, numbers: dict[str, Any]) -> None:
        """Add an event; NaN and infinity are written as null."""
        from variant_ai.core.train.measure.metrics import for_json

        line = {"kind": kind, "step": step, "seconds": round(seconds, 3), **for_json(numbers)}
        with naming(self.path):
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        if self._board is not None:
            for name, value in numbers.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()
