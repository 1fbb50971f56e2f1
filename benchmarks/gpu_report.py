"""Results of `benchmarks/gpu.py`: rows kept in a JSON file, and the tables made from them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import torch
from page_tables import markdown_table

from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.run.training_run import describe_environment

Row = dict[str, Any]

WHICH = {"variant": "variant", "net": "net"}
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "training": (
        "Training, samples a second. The sampler feeds the net; for the net alone one batch stays in "
        "memory:",
        {
            **WHICH,
            "precision": "precision",
            "batch": "batch",
            "samples_per_second": "samples/s",
            "net_alone": "net alone",
            "ratio": "ratio",
            "gpu_memory_mb": "MiB",
        },
    ),
    "processes": (
        "Processes that train one net together, each with a batch of its own:",
        {
            **WHICH,
            "precision": "precision",
            "processes": "processes",
            "batch": "samples a step",
            "samples_per_second": "samples/s",
        },
    ),
    "evaluators": (
        "Evaluators, positions a second by batch:",
        {**WHICH, "evaluator": "evaluator"},
    ),
    "search": (
        "The search from the start position, with the fastest evaluator at its batch size:",
        {
            **WHICH,
            "evaluator": "evaluator",
            "batch": "batch",
            "evaluations_per_second": "evaluations/s",
            "ratio": "of its own rate",
            "nodes_per_second": "nodes/s",
        },
    ),
}
"""Title and columns of the table of each section, in order."""


class Report:
    """Rows by section, kept in a file after each of them."""

    def __init__(self, path: Path, minutes: float, facts: dict[str, Any]) -> None:
        """Open the file. Raises DataError if its folder does not exist."""
        if not path.absolute().parent.is_dir():
            raise DataError(f"{path}: the folder {path.parent} does not exist")
        self.path, self.facts = path, facts
        self.rows: dict[str, list[Row]] = {}
        self.missing: list[str] = []
        """Sentences about missing measurements."""
        self.end = time.monotonic() + 60 * minutes
        self.save()

    @property
    def left(self) -> float:
        """Seconds until no other measurement begins."""
        return self.end - time.monotonic()

    def save(self) -> None:
        whole = {**self.facts, **self.rows, "missing": self.missing}
        write_whole(self.path, json.dumps(whole, indent=2))

    def measure(self, section: str, what: str, work: Callable[[], list[Row]]) -> None:
        """Add the rows of a measurement, or the reason why there are none."""
        if self.left <= 0:
            self.leave_out(section, what, "no time left")
            return
        print(f"{section}: {what}", file=sys.stderr, flush=True)
        try:
            rows = work()
        except (RuntimeError, VariantAIError) as error:  # RuntimeError: out of GPU memory too
            lines = str(error).strip().splitlines() or [type(error).__name__]
            self.leave_out(section, what, lines[0])
            return
        self.rows.setdefault(section, []).extend(rows)
        for row in rows:
            print("  " + _words(row), file=sys.stderr, flush=True)
        self.save()

    def leave_out(self, section: str, what: str, reason: str) -> None:
        """Note a measurement that was left out."""
        self.missing.append(f"{section}: {what}: {reason}")
        print(f"  not measured: {self.missing[-1]}", file=sys.stderr, flush=True)
        self.save()


def _words(row: Row) -> str:
    """Return the parts of a row that its heading does not name."""
    named = [(name, value) for name, value in list(row.items())[2:] if value is not None]
    return ", ".join(f"{name.replace('_', ' ')} {_cell(value, name)}" for name, value in named)


def machine(device: torch.device) -> dict[str, Any]:
    """Return machine and libraries of the measurement; nothing personal."""
    import onnxruntime

    facts: dict[str, Any] = {**describe_environment(), "date": date.today().isoformat()}
    facts["device"] = device.type
    facts["packages"]["torch"] = torch.__version__  # with its build: +cpu, +cu128
    facts["onnxruntime"] = onnxruntime.__version__
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        facts["gpu_memory_mb"] = properties.total_memory >> 20
        facts["gpu_capability"] = f"{properties.major}.{properties.minor}"
        facts["cuda"], facts["cudnn"] = torch.version.cuda, torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    return facts


def markdown(report: Report) -> str:
    """Return the tables of a report in the form of `docs/speed.md`."""
    parts = [_heading(report.facts["command"], report.facts["machine"])]
    for section, (title, columns) in TABLES.items():
        rows = report.rows.get(section)
        if not rows:
            continue
        if section == "evaluators":
            rows, batches = _by_batch(rows)
            columns = {**columns, **{batch: batch for batch in batches}}
        parts += [title, _table(rows, columns)]
    if report.missing:
        parts += ["Not measured:", "\n".join(f"- {line}" for line in report.missing)]
    return "\n\n".join(parts) + "\n"


def _heading(command: str, facts: dict[str, Any]) -> str:
    """Return command, machine and libraries of a measurement."""
    where = f"{facts['cpu']['cores']} cores ({facts['cpu']['name']})"
    packages = f"torch {facts['packages']['torch']}, onnxruntime {facts['onnxruntime']}"
    if facts["device"] == "cuda":
        gpus, memory = facts["gpus"], facts["gpu_memory_mb"] / 1024
        where = f"{len(gpus)} x {gpus[0]} with {memory:.0f} GiB, {where}"
        packages += f", CUDA {facts['cuda']}, cuDNN {facts['cudnn']}"
    else:
        where += ", no GPU used"
    return f"`{command}` on {where}; {packages}; {facts['date']}."


def _by_batch(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """Return a row for each evaluator, with its positions a second by batch size; and the sizes."""
    wide: dict[tuple[str, ...], Row] = {}
    for row in rows:
        names = {name: row[name] for name in ("variant", "net", "evaluator")}
        line = wide.setdefault(tuple(names.values()), names)
        line[str(row["batch"])] = row["positions_per_second"]
    return list(wide.values()), [str(batch) for batch in sorted({row["batch"] for row in rows})]


def _table(rows: list[Row], columns: Mapping[str, str]) -> str:
    """Return a table. columns: the head of each name; empty columns are left out."""
    used = [name for name in columns if any(row.get(name) is not None for row in rows)]
    numbers = [all(_is_number(row.get(name)) for row in rows) for name in used]
    lines = [[_cell(row.get(name), name) for name in used] for row in rows]
    return markdown_table([[columns[name] for name in used], *lines], numbers)


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def _cell(value: Any, name: str) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}" if name in ("ratio", "milliseconds") else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
