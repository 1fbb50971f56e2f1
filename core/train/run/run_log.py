"""What a run writes down while it trains: one JSON line per event, and the same for TensorBoard.

`metrics.jsonl` is the record that figures and reports are made from; a line is an object with
`kind` (`train`, `validation`, `recovery`, `final`), `step`, `seconds` trained, and numbers.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from variant_ai.core.system.files import naming, write_whole
from variant_ai.core.train.measure.metrics import Metrics

METRICS = "metrics.jsonl"
TENSORBOARD = "tensorboard"


class Recorder:
    """Writes the record of a run, and when it is resumed forgets what lies behind `step`."""

    def __init__(
        self, folder: Path, step: int = 0, *, recoveries: int = 0, tensorboard: bool = True
    ) -> None:
        """`step` and `recoveries` were gone through before; of the former, what measured the end
        (`final`) will be measured again."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / METRICS
        kept = [
            line
            for line in read_metrics(folder)
            if step
            and line["step"] <= step
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
        """Adds an event; NaN is written as null, which JSON has."""
        line: dict[str, Any] = {"kind": kind, "step": step, "seconds": round(seconds, 3)}
        for name, value in numbers.items():
            bad = isinstance(value, float) and not math.isfinite(value)
            line[name] = None if bad else value
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

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def last_metrics(folder: Path, kind: str) -> Metrics | None:
    """The metrics of a run's last event of that kind, None where there is none."""
    for line in reversed(read_metrics(folder)):
        if line["kind"] == kind:
            numbers: dict[str, Any] = {n: line.get(n) for n in Metrics.__dataclass_fields__}
            for name, value in numbers.items():
                numbers[name] = math.nan if value is None else value
            return Metrics(**numbers)
    return None


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The events of a run, oldest first; a last line cut off by a kill is left out."""
    path = folder / METRICS
    events: list[dict[str, Any]] = []
    if not path.is_file():
        return events
    for line in path.read_text().splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return events
