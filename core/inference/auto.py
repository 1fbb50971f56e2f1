"""`auto`: the fastest evaluator present, by a short measurement that is made once and kept.

Contenders are evaluators times ways to use the cores: how many threads, whether they spin while
they wait, one session or several that share a batch. On cores that others use too the best way is
rarely the library's own. The precision is the one asked for, or the model's: it is never changed
for speed. What was found is kept per machine, versions, net and batch, in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variant_ai.core.inference.folders import cache_folder, keep_newest
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.inference.measure import interleaved
from variant_ai.core.inference.model_file import ONNX_SUFFIX, RUN_MODEL, ModelFile, find_model_file
from variant_ai.core.processors import processors
from variant_ai.specs.errors import DataError, VariantAIError

if TYPE_CHECKING:
    from variant_ai.core.inference.choose import EvaluatorRequest

SECONDS = 3.0
"""Of measuring, beside loading and warming up."""
KEPT_CHOICES = 200
FORMAT = 3
"""Raised when kept choices come to mean something else, or an evaluator has become faster."""


@dataclass(frozen=True)
class Choice:
    """An evaluator and how it uses the cores."""

    evaluator: str
    device: str = "cpu"
    threads: int | None = None
    spin: bool = True
    sessions: int = 1

    def applied(self, request: EvaluatorRequest) -> EvaluatorRequest:
        return replace(
            request,
            device=self.device,
            threads=self.threads,
            spin=self.spin,
            sessions=self.sessions,
        )

    def describe(self) -> str:
        """`onnx, 2 threads that do not spin`."""
        if self.device != "cpu":
            return f"{self.evaluator} on {self.device}"
        if self.threads is None:
            return self.evaluator
        many = f"{self.sessions} sessions of " if self.sessions > 1 else ""
        noun = "thread" if self.threads == 1 else "threads"
        calm = "" if self.spin or self.threads == 1 else " that do not spin"
        return f"{self.evaluator}, {many}{self.threads} {noun}{calm}"


def fastest(request: EvaluatorRequest, say: Callable[[str], None]) -> Evaluator:
    """The evaluator chosen for a request, by an earlier measurement if there was one.

    Raises what the only contender raised where none can be made.
    """
    from variant_ai.core.inference.choose import make

    request.need_model("auto")
    contenders, digest = _contenders(request)
    if len(contenders) == 1:
        say(f"Evaluator: {contenders[0].describe()}, the only one that can run this.")
        return make(contenders[0].evaluator, contenders[0].applied(request), {}, say)
    path = _kept_path(request, digest, contenders)
    kept = _read(path)
    if kept is not None and kept[0] in contenders:
        try:
            made = make(kept[0].evaluator, kept[0].applied(request), {}, say)
        except (VariantAIError, RuntimeError) as error:
            say(f"{kept[0].describe()}, chosen earlier, does not work any more ({error}).")
        else:
            say(f"Evaluator: {kept[0].describe()}, {made.precision} (measured {kept[1]}).")
            return made
    return _measure(request, contenders, path, say)


def _contenders(request: EvaluatorRequest) -> tuple[list[Choice], str]:
    """What may be tried, and a digest of the net. Raises DataError where the model is unusable."""
    from variant_ai.core.inference import onnx, openvino
    from variant_ai.core.inference.choose import file_precision

    model = request.need_model("auto")
    kinds = {device: device.partition(":")[0] for device in request.device.split(",")}
    file: ModelFile | None = None
    checkpoint = _checkpoint(model)
    by_torch = [d for d in kinds if checkpoint is not None and _torch_runs(request, kinds[d])]
    if model.suffix == ONNX_SUFFIX or not model.is_dir() or (model / RUN_MODEL).is_file():
        try:
            file = find_model_file(model, file_precision(request.precision, request.device))
        except DataError:
            if request.precision != "fp16" or not by_torch:
                raise
    if file is not None:
        file.info.require(file.info.own_spec(request.spec))
        if checkpoint is not None and file.metadata.get("steps") not in (None, checkpoint[1]):
            # The run went on after its export: the checkpoint is what it has come to.
            file = None
    choices: list[Choice] = []
    for device, kind in kinds.items():
        if file is not None and kind != "cpu":
            choices += [Choice("onnx", device)] if kind in onnx.devices() else []
        elif file is not None:
            choices += _onnx_choices(request, file)
            if openvino.available() and file.info.precision != "fp16":
                choices += _openvino_choices(request)
        # On the CPU torch has never won against the two libraries, and costs seconds to import.
        if device in by_torch and (file is None or kind != "cpu"):
            choices += _torch_choices(request, device)
    if "," in request.device:  # all of them together, by one evaluator
        names = list(dict.fromkeys(choice.evaluator for choice in choices))
        choices = [Choice(name, request.device) for name in names]
    if file is None and checkpoint is None:
        raise DataError(f"{model} holds no net: neither {RUN_MODEL} nor a checkpoint")
    if not choices:
        raise VariantAIError(
            f"{model}: no evaluator here runs it on {request.device} in "
            f"{request.precision or 'its own precision'}"
        )
    if file is not None:
        return choices, file.digest()
    assert checkpoint is not None
    return choices, hashlib.sha256(f"{checkpoint[0].resolve()}".encode()).hexdigest()


def _torch_runs(request: EvaluatorRequest, kind: str) -> bool:
    """Whether torch could, on a device of this kind, in the precision asked for."""
    precisions = {"cpu": (None, "fp32", "bf16"), "cuda": (None, "fp32", "bf16", "fp16")}
    return request.precision in precisions.get(kind, ())


def _checkpoint(model: Path) -> tuple[Path, str] | None:
    """Folder and step of the newest checkpoint under a path, None where there is none."""
    if not model.is_dir():
        return None
    from variant_ai.core.inference.torch import checkpoint_step, find_checkpoint_folder

    try:
        folder = find_checkpoint_folder(model)
    except DataError:
        return None
    return folder, str(checkpoint_step(folder))


def _layouts(request: EvaluatorRequest) -> list[tuple[int, int]]:
    """(threads, sessions) worth trying within the threads given, or the cores there are."""
    most = request.threads or processors()
    counts = dict.fromkeys((most, max(1, most // 2), 1)) if request.threads is None else [most]
    layouts = [(threads, 1) for threads in counts]
    if 1 < most <= request.batch:
        layouts.append((1, most))
    return layouts


def _onnx_choices(request: EvaluatorRequest, file: ModelFile) -> list[Choice]:
    if request.precision == "bf16":
        return []
    return [
        Choice("onnx", "cpu", threads, spin, sessions)
        for threads, sessions in _layouts(request)
        for spin in ((True, False) if threads > 1 else (False,))
    ]


def _openvino_choices(request: EvaluatorRequest) -> list[Choice]:
    if request.precision == "bf16":
        from variant_ai.core.inference.openvino import has_bf16

        if not has_bf16():
            return []
    return [
        Choice("openvino", "cpu", threads, True, sessions)
        for threads, sessions in _layouts(request)
    ]


def _torch_choices(request: EvaluatorRequest, device: str) -> list[Choice]:
    if device != "cpu":
        return [Choice("torch", device)]
    # torch has one number of threads for the whole process: contenders cannot take turns.
    return [Choice("torch", "cpu", request.threads or processors())]


def _measure(
    request: EvaluatorRequest,
    contenders: list[Choice],
    path: Path | None,
    say: Callable[[str], None],
) -> Evaluator:
    from variant_ai.core.inference.choose import make

    made: dict[Choice, Evaluator] = {}
    failures: list[VariantAIError] = []
    for choice in contenders:
        try:
            made[choice] = make(choice.evaluator, choice.applied(request), {}, lambda text: None)
        except VariantAIError as error:
            failures.append(error)
        except RuntimeError as error:  # of a library or a driver; others may do
            failures.append(VariantAIError(f"{choice.describe()}: {error}"))
    if not made:
        raise failures[0]
    timings = interleaved(
        {choice.describe(): evaluator for choice, evaluator in made.items()},
        request.batch,
        seconds=SECONDS,
        apart=True,
    )
    best = min(made, key=lambda choice: timings[choice.describe()].median)
    for choice, evaluator in made.items():
        if choice != best:
            evaluator.close()
    rates = {name: round(timing.rate, 1) for name, timing in timings.items()}
    others = {
        evaluator: max(rates[c.describe()] for c in made if c.evaluator == evaluator)
        for evaluator in dict.fromkeys(c.evaluator for c in made)
        if evaluator != best.evaluator
    }
    against = "".join(f"; {name} {rate:,.0f}" for name, rate in others.items())
    say(
        f"Evaluator: {best.describe()}, {made[best].precision}: {rates[best.describe()]:,.0f} "
        f"positions/s in batches of {request.batch}{against} (measured now, {len(made)} ways)."
    )
    for reason in dict.fromkeys(map(str, failures)):
        say(f"Left out: {reason}")
    if path is not None:
        _write(path, best, rates)
    return made[best]


# --- what was found is kept ----------------------------------------------------------------------


def _kept_path(request: EvaluatorRequest, digest: str, contenders: list[Choice]) -> Path | None:
    """The file of a choice: named by all that it depends on. None without a cache folder."""
    folder = cache_folder("evaluators")
    if folder is None:
        return None
    key = json.dumps(
        [
            FORMAT,
            machine(),
            digest,
            request.batch,
            request.precision,
            request.device,
            request.threads,
            [asdict(choice) for choice in contenders],
        ]
    )
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


@cache
def machine() -> dict[str, Any]:
    """What speed depends on: processor, cores, versions of the libraries."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for package in ("onnxruntime", "onnxruntime-gpu", "openvino", "torch"):
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {
        "processor": _processor(),
        "cores": processors(),
        "system": platform.system(),
        "versions": versions,
    }


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        lines = [line for line in file if line.startswith(("model name", "flags"))]
        # The flags too: virtual machines give different processors one name.
        return hashlib.sha256("".join(sorted(set(lines))).encode()).hexdigest()[:16]
    return f"{platform.machine()} {platform.processor()}"


def _read(path: Path | None) -> tuple[Choice, str] | None:
    """A kept choice and the day it was measured; a damaged file is a missing one."""
    if path is None:
        return None
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return Choice(**said["choice"]), str(said["measured"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, choice: Choice, rates: dict[str, float]) -> None:
    """Whole or not at all; a disk that is full costs a measurement next time and nothing else."""
    said = {
        "choice": asdict(choice),
        "rates": rates,
        "measured": time.strftime("%Y-%m-%d"),
    }
    part = path.with_suffix(f".{os.getpid()}.part")
    with contextlib.suppress(OSError):
        part.write_text(json.dumps(said, indent=2), encoding="utf-8")
        part.replace(path)
        keep_newest(path.parent, KEPT_CHOICES)
