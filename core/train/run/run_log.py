"""The log of a training: lines of metrics.jsonl, the same for TensorBoard, and observers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from variant_ai.core.system.closing import Closing
from variant_ai.core.system.files import naming, write_whole
from variant_ai.core.train.measure.metrics import for_json
from variant_ai.core.train.run.run_folder import METRICS, TENSORBOARD, read_metrics


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
