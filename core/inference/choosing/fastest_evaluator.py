"""`auto`: the fastest available evaluator, by a short measurement whose result is saved.

Contenders are evaluators times ways to use the cores: number of threads, busy waiting or not, one
session or several that share a batch. On cores that others use too, the library's default is rarely
the fastest. fp32 nets run in bf16 if the processor supports it, unless a precision is requested:
matches at equal nodes showed no loss (docs/speed.md). On other processors a net with an int8 file beside
it runs in int8, if that is faster by `INT8_GAIN`. While code is compiled nothing is measured: the most
frequent result is used (`_likely`). Then pieces of the batch are measured, because
a large batch may not fit into the caches. The result is saved (`saved_choices.py`) per machine,
library versions, net and batch, in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.inference.choosing import saved_choices
from variant_ai.core.inference.choosing.evaluator_timing import best_piece, interleaved
from variant_ai.core.inference.choosing.saved_choices import Choice, OtherLoad, SavedChoice
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.inference.model_file import (
    ONNX_SUFFIX,
    RUN_MODEL,
    ModelFile,
    beside_name,
    checkpoint_step,
    find_checkpoint_folder,
    find_model_file,
    read_model_file,
)
from variant_ai.core.jit import parallel_compilation
from variant_ai.core.system.missing_packages import missing_packages_explained
from variant_ai.core.system.processors import processors

if TYPE_CHECKING:
    from variant_ai.core.inference.choosing.evaluator_factory import EvaluatorRequest, Log

SECONDS = 3.0
"""Time to measure, without loading and warm-up."""
INT8_GAIN = 1.3
"""Least gain in speed over fp32 for which int8 is chosen: rounding costs a little strength."""
FEW_PROCESSORS = 4
"""Up to this many processors, one session for each is expected to be the fastest layout."""


def applied(choice: Choice, request: EvaluatorRequest) -> EvaluatorRequest:
    """Return the request with the settings of the choice."""
    return replace(
        request,
        device=choice.device,
        threads=choice.threads,
        spin=choice.spin,
        sessions=choice.sessions,
        precision=choice.precision or request.precision,
    )


def fastest(request: EvaluatorRequest, log: Log) -> Evaluator:
    """Return the fastest evaluator for a request, by a saved measurement if there is one.

    If none can be made, raises the error of the first contender.
    """
    from variant_ai.core.inference.choosing.evaluator_factory import make

    contenders, digest = _contenders(request)
    if len(contenders) == 1:
        if contenders[0].evaluator == "torch":
            _require_devices_of_torch(request)  # before anything is announced
        log(f"Evaluator: {contenders[0].describe()}, the only one that can run this.")
        return make(contenders[0].evaluator, applied(contenders[0], request), log)
    path = saved_choices.choice_file(
        [digest, request.batch, request.precision, request.device, request.threads], contenders
    )
    saved = saved_choices.read_choice(path)
    if saved is not None and saved.choice in contenders:
        made = _make_saved(saved, request, log)
        if made is not None:
            return made
    if parallel_compilation.is_under_way():
        guess = _likely(contenders)
        with contextlib.suppress(VariantAIError, RuntimeError):
            made = make(guess.evaluator, applied(guess, request), log)
            log(f"Evaluator: {_named(guess, made)} (the next start measures, without compiling).")
            return made
    return _measure(request, contenders, path, log)


def _likely(contenders: list[Choice]) -> Choice:
    """The most frequent result of measurements: OpenVINO, in int8 where the net has such a file, on few
    processors with a session for each."""

    def rank(choice: Choice) -> tuple[bool, bool, bool, int]:
        shared = choice.sessions > 1
        few = processors() <= FEW_PROCESSORS
        reduced = choice.precision == "int8"
        return choice.evaluator == "openvino", reduced, shared == few, choice.threads or 0

    return max(contenders, key=rank)


def _make_saved(saved: SavedChoice, request: EvaluatorRequest, log: Log) -> Evaluator | None:
    """Make the evaluator of a saved choice, which is not news and not logged; None if it fails or
    should be measured again, with the reason in the log."""
    from variant_ai.core.inference.choosing.evaluator_factory import make

    choice = saved.choice
    try:
        made = make(choice.evaluator, applied(choice, request), log)
    except (VariantAIError, RuntimeError) as error:
        log(f"{choice.describe()}, chosen earlier, does not work any more ({error}).")
        return None
    made.evaluate_in_pieces(saved.piece)
    reason = saved.reason_to_repeat(made, request.batch)
    if reason:
        made.close()
        log(f"{choice.describe()}, chosen on {saved.measured}, is measured again: {reason}.")
        return None
    return made


def _contenders(request: EvaluatorRequest) -> tuple[list[Choice], str]:
    """Choices to compare, and a digest of the net's layers. Raises DataError if the model is unusable."""
    from variant_ai.core.inference.backends import onnx_backend as onnx

    file, for_torch = _nets(request)
    choices: list[Choice] = []
    for device in dict.fromkeys(request.device.split(",")):
        kind = device.partition(":")[0]
        if file is not None and kind == "cpu":
            choices += _cpu_choices(request, file)
        elif file is not None and kind in onnx.devices():
            choices.append(Choice("onnx", device))
        # On the CPU torch has never been the fastest, and importing it takes seconds.
        if for_torch is not None and _torch_runs(request, device) and (not file or kind != "cpu"):
            # torch has one number of threads for the whole process: one contender is enough
            threads = request.threads or processors() if kind == "cpu" else None
            choices.append(Choice("torch", device, threads))
    if "," in request.device:  # one evaluator uses all of them
        names = dict.fromkeys(choice.evaluator for choice in choices)
        choices = [Choice(name, request.device) for name in names]
    if not choices:
        raise VariantAIError(
            f"{request.model}: no evaluator here runs it on {request.device} in "
            f"{request.precision or 'its own precision'}"
        )
    if file is None and for_torch is not None and for_torch.is_file():
        file = read_model_file(for_torch)
    if file is not None:
        return choices, file.layers_digest()
    return choices, hashlib.sha256(f"{for_torch}".encode()).hexdigest()


def _nets(request: EvaluatorRequest) -> tuple[ModelFile | None, Path | None]:
    """The ONNX file of the model in the requested precision, and what torch can open: its newest
    checkpoint or its fp32 file. At least one of them. Raises DataError."""
    from variant_ai.core.inference.choosing.evaluator_factory import file_precision

    model = request.need_model("auto")
    checkpoint: Path | None = None
    step = ""
    if model.is_dir():
        with contextlib.suppress(DataError):
            folder = find_checkpoint_folder(model)
            checkpoint, step = folder.resolve(), str(checkpoint_step(folder))
    if model.suffix != ONNX_SUFFIX and model.is_dir() and not (model / RUN_MODEL).is_file():
        if checkpoint is None:
            raise DataError(f"{model} holds no net: neither {RUN_MODEL} nor a checkpoint")
        return None, checkpoint
    try:
        file = find_model_file(model, file_precision(request.precision, request.device))
    except DataError:
        for_torch = checkpoint or _fp32_file(model)
        runs = any(_torch_runs(request, device) for device in request.device.split(","))
        if request.precision != "fp16" or for_torch is None or not runs:
            raise
        return None, for_torch
    file.info.require(file.info.own_spec(request.spec))
    if checkpoint is not None and file.metadata.get("steps", step) != step:
        return None, checkpoint  # the run went on after its export: the checkpoint is newer
    return file, checkpoint or _fp32_file(model)


def _fp32_file(model: Path) -> Path | None:
    with contextlib.suppress(DataError):
        return find_model_file(model, "fp32").path
    return None


def _torch_runs(request: EvaluatorRequest, device: str) -> bool:
    """Return True if torch runs on such a device in the requested precision."""
    precisions = {"cpu": (None, "fp32", "bf16"), "cuda": (None, "fp32", "bf16", "fp16")}
    return request.precision in precisions.get(device.partition(":")[0], ())


def _require_devices_of_torch(request: EvaluatorRequest) -> None:
    with missing_packages_explained():
        from variant_ai.core.inference.backends.torch_backend import require_device

        for device in request.device.split(","):
            require_device(device)


def _cpu_choices(request: EvaluatorRequest, file: ModelFile) -> list[Choice]:
    """Libraries and their use of the cores, within the given threads or the available cores."""
    from variant_ai.core.inference.backends import openvino_backend as openvino

    most = request.threads or processors()
    counts = dict.fromkeys((most, max(1, most // 2), 1)) if request.threads is None else [most]
    layouts = [(threads, 1) for threads in counts]
    if 1 < most <= request.batch:
        layouts.append((1, most))
    choices: list[Choice] = []
    precision, own = request.precision, file.info.precision
    if precision != "bf16":
        choices += [
            Choice("onnx", "cpu", threads, spin, sessions)
            for threads, sessions in layouts
            for spin in ((True, False) if threads > 1 else (False,))
        ]
    if openvino.available() and own != "fp16":
        may_be_bf16 = precision == "bf16" or (precision is None and own == "fp32")
        precisions = [precision]
        if may_be_bf16 and openvino.has_bf16():
            # twice as fast as fp32 on every processor that has it, so fp32 is not measured
            precisions = ["bf16"]
        elif precision == "bf16":
            return choices
        elif precision is None and own == "fp32" and beside_name(file.path, "int8").is_file():
            precisions.append("int8")
        choices += [
            Choice("openvino", "cpu", threads, True, sessions, precision)
            for precision in precisions
            for threads, sessions in layouts
        ]
    return choices


def _measure(
    request: EvaluatorRequest,
    contenders: list[Choice],
    path: Path | None,
    log: Log,
) -> Evaluator:
    """Make all contenders, keep the fastest, and save the choice."""
    from variant_ai.core.inference.choosing.evaluator_factory import make

    made: dict[Choice, Evaluator] = {}
    failures: list[VariantAIError] = []
    for choice in contenders:
        try:
            evaluator = make(choice.evaluator, applied(choice, request), lambda text: None)
            if choice.precision in (None, evaluator.precision):
                made[choice] = evaluator
                continue
            failures.append(
                VariantAIError(f"{choice.describe()}: it runs in {evaluator.precision}")
            )
            evaluator.close()
        except VariantAIError as error:
            failures.append(error)
        except RuntimeError as error:  # of a library or a driver; others may work
            failures.append(VariantAIError(f"{choice.describe()}: {error}"))
    if not made:
        raise failures[0]
    load = OtherLoad()
    timings = interleaved(
        {choice.describe(): evaluator for choice, evaluator in made.items()},
        request.batch,
        seconds=SECONDS,
        apart=True,
    )

    def cost(choice: Choice) -> float:
        rounds = choice.precision == "int8" and request.precision is None
        return timings[choice.describe()].median * (INT8_GAIN if rounds else 1)

    best = min(made, key=cost)
    for choice, evaluator in made.items():
        if choice != best:
            evaluator.close()
    piece = best_piece(made[best], request.batch)
    made[best].evaluate_in_pieces(piece)
    others = load.processors()
    rates = {name: round(timing.rate, 1) for name, timing in timings.items()}
    _log_rates(made, best, rates, request.batch, log)
    saved = SavedChoice(
        choice=best,
        rate=round(saved_choices.observed_rate(made[best], request.batch), 1),
        piece=piece,
        others=None if others is None else round(others, 2),
        measured=time.strftime("%Y-%m-%d"),
        rates=rates,
    )
    if piece is not None:
        log(f"Batches of {request.batch} are evaluated in pieces of {piece}, which is faster.")
    if saved.is_provisional:
        log(
            f"Other programs used {others:.1f} processors meanwhile: it is measured again when the "
            "machine is quiet."
        )
    for reason in dict.fromkeys(map(str, failures)):
        log(f"Left out: {reason}")
    if path is not None:
        saved_choices.write_choice(path, saved)
    return made[best]


def _named(choice: Choice, made: Evaluator) -> str:
    """`openvino bf16, 2 threads`, or with the file's own precision `onnx, 2 threads, fp32`."""
    return choice.describe() if choice.precision else f"{choice.describe()}, {made.precision}"


def _log_rates(
    made: dict[Choice, Evaluator],
    best: Choice,
    rates: dict[str, float],
    batch: int,
    log: Log,
) -> None:
    kinds: dict[str, float] = {}  # the fastest of each library and precision
    for choice in made:
        kind = " ".join(filter(None, (choice.evaluator, choice.precision)))
        if (choice.evaluator, choice.precision) != (best.evaluator, best.precision):
            kinds[kind] = max(kinds.get(kind, 0.0), rates[choice.describe()])
    against = "".join(f"; {name} {rate:,.0f}" for name, rate in kinds.items())
    log(
        f"Evaluator: {_named(best, made[best])}: {rates[best.describe()]:,.0f} "
        f"positions/s in batches of {batch}{against} (measured now, {len(made)} ways)."
    )
