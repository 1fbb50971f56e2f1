"""`auto`: the fastest evaluator present, by a short measurement that is made once and kept.

Contenders are evaluators times ways to use the cores: how many threads, whether they spin while
they wait, one session or several that share a batch. On cores that others use too the best way is
rarely the library's own. fp32 nets are run in bf16 where the processor multiplies it, unless a
precision is asked for: matches at equal nodes showed no loss (docs/speed.md). Then the batch itself is
looked at: a batch too large for the caches is evaluated in pieces. What was found is kept (`kept.py`)
per machine, versions, net and batch, in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.inference.choosing import kept_choices
from variant_ai.core.inference.choosing.kept_choices import Choice, Kept
from variant_ai.core.inference.choosing.machine_load import OtherLoad
from variant_ai.core.inference.choosing.timing import best_piece, interleaved
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.inference.model_file import ONNX_SUFFIX, RUN_MODEL, ModelFile, find_model_file
from variant_ai.core.jit import parallel_compilation
from variant_ai.core.system.processors import processors

if TYPE_CHECKING:
    from variant_ai.core.inference.choosing.evaluator_choice import EvaluatorRequest

SECONDS = 3.0
"""Of measuring, beside loading and warming up."""
FEW_PROCESSORS = 4
"""Processors up to which a session for each is expected to be faster than one session of all."""


def applied(choice: Choice, request: EvaluatorRequest) -> EvaluatorRequest:
    """The request as the choice has it made."""
    return replace(
        request,
        device=choice.device,
        threads=choice.threads,
        spin=choice.spin,
        sessions=choice.sessions,
        precision=choice.precision or request.precision,
    )


def fastest(request: EvaluatorRequest, say: Callable[[str], None]) -> Evaluator:
    """The evaluator chosen for a request, by an earlier measurement if there was one.

    Raises what the only contender raised where none can be made.
    """
    from variant_ai.core.inference.choosing.evaluator_choice import make

    request.need_model("auto")
    contenders, digest = _contenders(request)
    if len(contenders) == 1:
        say(f"Evaluator: {contenders[0].describe()}, the only one that can run this.")
        return make(contenders[0].evaluator, applied(contenders[0], request), {}, say)
    path = kept_choices.kept_path(
        [digest, request.batch, request.precision, request.device, request.threads], contenders
    )
    kept = kept_choices.read(path)
    if kept is not None and kept.choice in contenders:
        made = _made_again(kept, request, say)
        if made is not None:
            return made
    if parallel_compilation.is_under_way():
        guess = _likely(contenders)
        with contextlib.suppress(VariantAIError, RuntimeError):
            made = make(guess.evaluator, applied(guess, request), {}, say)
            say(f"Evaluator: {_named(guess, made)} (the next start measures, without compiling).")
            return made
    return _measure(request, contenders, path, say)


def _likely(contenders: list[Choice]) -> Choice:
    """The choice that measurements end with most often: OpenVINO, on few processors by a session for
    each."""

    def rank(choice: Choice) -> tuple[bool, bool, int]:
        shared = choice.sessions > 1
        few = processors() <= FEW_PROCESSORS
        return choice.evaluator == "openvino", shared == few, choice.threads or 0

    return max(contenders, key=rank)


def _made_again(
    kept: Kept, request: EvaluatorRequest, say: Callable[[str], None]
) -> Evaluator | None:
    """The evaluator of a kept choice; None if it fails or is doubted, with the reason said."""
    from variant_ai.core.inference.choosing.evaluator_choice import make

    choice = kept.choice
    try:
        made = make(choice.evaluator, applied(choice, request), {}, say)
    except (VariantAIError, RuntimeError) as error:
        say(f"{choice.describe()}, chosen earlier, does not work any more ({error}).")
        return None
    made.evaluate_in_pieces(kept.piece)
    doubt = kept.doubt(made, request.batch)
    if doubt:
        made.close()
        say(f"{choice.describe()}, chosen on {kept.measured}, is measured again: {doubt}.")
        return None
    say(f"Evaluator: {_named(choice, made)} (measured {kept.measured}).")
    return made


def _contenders(request: EvaluatorRequest) -> tuple[list[Choice], str]:
    """What may be tried, and a digest of the net. Raises DataError where the model is unusable."""
    from variant_ai.core.inference.backends import onnx_backend as onnx
    from variant_ai.core.inference.backends import openvino_backend as openvino
    from variant_ai.core.inference.choosing.evaluator_choice import file_precision

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
                choices += _openvino_choices(request, file)
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
    from variant_ai.core.inference.backends.torch_backend import (
        checkpoint_step,
        find_checkpoint_folder,
    )

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


def _openvino_choices(request: EvaluatorRequest, file: ModelFile) -> list[Choice]:
    from variant_ai.core.inference.backends.openvino_backend import has_bf16

    precisions = [request.precision]
    if request.precision == "bf16" and not has_bf16():
        return []
    if request.precision is None and file.info.precision == "fp32" and has_bf16():
        # twice as fast as fp32 on every processor that has it: that one need not be measured
        precisions = ["bf16"]
    return [
        Choice("openvino", "cpu", threads, True, sessions, precision)
        for threads, sessions in _layouts(request)
        for precision in precisions
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
    from variant_ai.core.inference.choosing.evaluator_choice import make

    made: dict[Choice, Evaluator] = {}
    failures: list[VariantAIError] = []
    for choice in contenders:
        try:
            made[choice] = make(choice.evaluator, applied(choice, request), {}, lambda text: None)
        except VariantAIError as error:
            failures.append(error)
        except RuntimeError as error:  # of a library or a driver; others may do
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
    best = min(made, key=lambda choice: timings[choice.describe()].median)
    for choice, evaluator in made.items():
        if choice != best:
            evaluator.close()
    piece = best_piece(made[best], request.batch)
    made[best].evaluate_in_pieces(piece)
    others = load.processors()
    rates = {name: round(timing.rate, 1) for name, timing in timings.items()}
    _say_measured(made, best, rates, request.batch, say)
    kept = Kept(
        choice=best,
        rate=round(kept_choices.observed_rate(made[best], request.batch), 1),
        piece=piece,
        others=None if others is None else round(others, 2),
        measured=time.strftime("%Y-%m-%d"),
        rates=rates,
    )
    if piece is not None:
        say(f"Batches of {request.batch} are evaluated in pieces of {piece}, which is faster.")
    if kept.is_provisional:
        say(
            f"Other programs used {others:.1f} processors meanwhile: it is measured again when the "
            "machine is quiet."
        )
    for reason in dict.fromkeys(map(str, failures)):
        say(f"Left out: {reason}")
    if path is not None:
        kept_choices.write(path, kept)
    return made[best]


def _named(choice: Choice, made: Evaluator) -> str:
    """`openvino bf16, 2 threads`; of a file's own precision `onnx, 2 threads, fp32`."""
    return choice.describe() if choice.precision else f"{choice.describe()}, {made.precision}"


def _say_measured(
    made: dict[Choice, Evaluator],
    best: Choice,
    rates: dict[str, float],
    batch: int,
    say: Callable[[str], None],
) -> None:
    others = {
        evaluator: max(rates[c.describe()] for c in made if c.evaluator == evaluator)
        for evaluator in dict.fromkeys(c.evaluator for c in made)
        if evaluator != best.evaluator
    }
    against = "".join(f"; {name} {rate:,.0f}" for name, rate in others.items())
    say(
        f"Evaluator: {_named(best, made[best])}: {rates[best.describe()]:,.0f} "
        f"positions/s in batches of {batch}{against} (measured now, {len(made)} ways)."
    )
