"""Evaluators by name, as in `--evaluator`: `make_evaluator`.

    onnx openvino torch      run a net
    material                 counts the pieces; needs no net
    uniform random           know nothing, for comparison; need no net
    check:A,B                A, compared with B on every batch
    auto                     the fastest one available, by measurement (`fastest_evaluator.py`)
    NAME@PRECISION           in this precision, e.g. check:onnx,openvino@bf16

The plugin host adds those of plugins to `EVALUATORS` (`core/factories.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from variant_ai.core.errors import UnknownNameError, VariantAIError
from variant_ai.core.factories import EVALUATORS
from variant_ai.core.inference.backends.composite_backends import CheckEvaluator, ParallelEvaluator
from variant_ai.core.inference.backends.netless_backends import (
    MaterialEvaluator,
    RandomEvaluator,
    UniformEvaluator,
)
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.inference.model_file import PRECISIONS, find_model_file
from variant_ai.core.spec import VariantSpec
from variant_ai.core.spec.schema import SPEC_PLANES
from variant_ai.core.system.missing_packages import missing_packages_explained

AUTO, CHECK, MATERIAL, UNIFORM, RANDOM = "auto", "check", "material", "uniform", "random"
WITHOUT_NET = (MATERIAL, UNIFORM, RANDOM)
"""Evaluators that ignore the model."""
LONG_NAMES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
"""Other names of precisions, used by torch and by CrazyAra's option."""


def best_without_net(spec: VariantSpec) -> tuple[str, str]:
    """Return the name of the evaluator that plays best without a net, and a sentence about it for the user."""
    if spec.encoder.input == SPEC_PLANES:
        return MATERIAL, "the search counts pieces"
    return UNIFORM, "every move counts alike"


@dataclass(frozen=True)
class EvaluatorRequest:
    """All settings of an evaluator. Makers ignore those that do not apply to them."""

    spec: VariantSpec
    model: Path | None = None
    """An ONNX file, a run directory or a checkpoint."""
    batch: int = 16
    """Positions usually evaluated at once."""
    threads: int | None = None
    """Threads of one evaluation; None: the library decides."""
    device: str = "cpu"
    """cpu, cuda, cuda:N, tensorrt; several, separated by commas, share each batch."""
    precision: str | None = None
    """fp32, bf16, fp16, int8; None: that of the model."""
    spin: bool = True
    """True if threads wait in a busy loop, for libraries that offer the choice."""
    sessions: int = 1
    """Copies of the net that share each batch."""

    def need_model(self, evaluator: str) -> Path:
        """Return the model. Raises VariantAIError naming the evaluator if there is none."""
        if self.model is None:
            raise VariantAIError(
                f"evaluator {evaluator!r} runs a net and no model was given; name an ONNX file or "
                "a run directory, or use the evaluator 'material', which needs none"
            )
        return self.model


Log = Callable[[str], None]


def make_evaluator(
    spec: VariantSpec,
    model: Path | str | None,
    *,
    evaluator: str = AUTO,
    batch: int = 16,
    threads: int | None = None,
    device: str = "cpu",
    precision: str | None = None,
    log: Log | None = None,
) -> Evaluator:
    """Make an evaluator by name, for a variant and a model.

    Args:
        model: an ONNX file, a run directory or a checkpoint; None for evaluators without a net.
        evaluator: see the top of this module.
        batch: positions usually evaluated at once; other numbers work too.
        threads: of one evaluation on the CPU; None: the library or the measurement of `auto` decides.
        device: `cpu`, `cuda`, `cuda:N`, `tensorrt`; several separated by commas.
        precision: fp32, bf16, fp16, int8. None: that of the model; `auto` runs an fp32 model in
            bf16 if the processor supports it. fp32 gives the same numbers on every machine.
            int8 of `net.onnx` is expected beside it, as `net-int8.onnx`.
        log: called with sentences about the choice and anything the user should know.

    A net may have been trained with other planes or another policy than the spec's. Its `info`
    knows the spec by which it sees positions (`ModelInfo.own_spec`); searches use that.

    Raises UnknownNameError (evaluator, device, precision), DataError (the model is missing,
    damaged, or for another variant, other rules or another encoder), VariantAIError (a package is
    not installed).
    """
    if batch < 1 or (threads is not None and threads < 1):
        raise VariantAIError(f"batch {batch} and threads {threads}: both must be at least 1")
    precision = LONG_NAMES.get(precision or "", precision)
    if precision is not None and precision not in PRECISIONS:
        raise UnknownNameError("precision", precision, PRECISIONS)
    model = None if model is None else Path(model)
    request = EvaluatorRequest(spec, model, batch, threads, device, precision)
    log = log or (lambda text: None)
    made = make(evaluator, request, log)
    for note in made.notes:
        log(note)
    return made


def make(name: str, request: EvaluatorRequest, log: Log) -> Evaluator:
    """Make an evaluator by name; arguments and errors as for `make_evaluator`."""
    if name.startswith(f"{CHECK}:"):
        return _check(name, request, log)
    base, at, precision = name.partition("@")
    if at:
        if precision not in PRECISIONS:
            raise UnknownNameError("precision", precision, PRECISIONS)
        request = replace(request, precision=precision)
    if base != AUTO and base not in _MAKERS:
        if base in EVALUATORS:
            return EVALUATORS[base](request)
        raise UnknownNameError("evaluator", name, {*NAMES, *EVALUATORS})
    devices = request.device.split(",")
    for device in devices:
        if re.fullmatch(r"cpu|(cuda|tensorrt)(:\d+)?", device) is None:
            raise UnknownNameError("device", device, ("cpu", "cuda", "cuda:N", "tensorrt"))
    if base == AUTO:
        from variant_ai.core.inference.choosing.fastest_evaluator import fastest

        return fastest(request, log)
    copies = [replace(request, device=d) for d in devices for _ in range(request.sessions)]
    if len(copies) == 1 or base in WITHOUT_NET:
        return _MAKERS[base](request)
    share = -(-request.batch // len(copies))
    return ParallelEvaluator([_MAKERS[base](replace(copy, batch=share)) for copy in copies])


def make_onnx(request: EvaluatorRequest) -> Evaluator:
    """Make an onnxruntime evaluator. TensorRT converts an fp32 file to fp16 itself."""
    from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator

    model = request.need_model("onnx")
    if request.precision == "bf16":
        raise UnknownNameError("precision of onnxruntime", "bf16", ("fp32", "fp16", "int8"))
    needed = file_precision(request.precision, request.device)
    file = find_model_file(_onnx_file(model, "onnx"), needed)
    return OnnxEvaluator(
        file,
        file.info.own_spec(request.spec),
        device=request.device,
        threads=request.threads,
        spin=request.spin,
        batch=request.batch,
        precision=request.precision,
    )


def file_precision(precision: str | None, device: str) -> str | None:
    """Return the precision of the file with which onnxruntime computes in `precision`."""
    return None if device.startswith("tensorrt") and precision == "fp16" else precision


def make_openvino(request: EvaluatorRequest) -> Evaluator:
    """Make an OpenVINO evaluator, for the CPU."""
    from variant_ai.core.inference.backends.openvino_backend import OpenVinoEvaluator

    if request.device != "cpu":
        raise UnknownNameError("device of openvino", request.device, ("cpu",))
    model = _onnx_file(request.need_model("openvino"), "openvino")
    file = find_model_file(model, request.precision)
    return OpenVinoEvaluator(
        file,
        file.info.own_spec(request.spec),
        precision=request.precision,
        threads=request.threads,
        batch=request.batch,
    )


def make_torch(request: EvaluatorRequest) -> Evaluator:
    """Make a torch evaluator of a run directory, a checkpoint or an ONNX file."""
    with missing_packages_explained():
        from variant_ai.core.inference.backends.torch_backend import TorchEvaluator

    return TorchEvaluator.load(
        request.need_model("torch"),
        request.spec,
        device=request.device,
        precision=request.precision,
        threads=request.threads,
        batch=request.batch,
    )


def make_uniform(
    request: EvaluatorRequest, kind: type[UniformEvaluator] = UniformEvaluator
) -> Evaluator:
    """Make an evaluator that needs no net; the model is ignored."""
    from variant_ai.core.encoding import Encoder

    encoder = Encoder(request.spec)
    return kind(encoder.shape, encoder.actions)


def make_material(request: EvaluatorRequest) -> Evaluator:
    """Make an evaluator that counts pieces; the model is ignored."""
    return MaterialEvaluator(request.spec)


_MAKERS: dict[str, Callable[[EvaluatorRequest], Evaluator]] = {
    "onnx": make_onnx,
    "openvino": make_openvino,
    "torch": make_torch,
    MATERIAL: make_material,
    UNIFORM: make_uniform,
    RANDOM: partial(make_uniform, kind=RandomEvaluator),
}
NAMES = (AUTO, *_MAKERS, "check:A,B")
"""Names that messages list."""


def _onnx_file(model: Path, evaluator: str) -> Path:
    """The model: a file or a run directory. Raises VariantAIError for a checkpoint."""
    if model.is_dir() and (model / "model.safetensors").is_file():
        raise VariantAIError(
            f"evaluator {evaluator!r} runs ONNX files; {model} is a checkpoint: write one with "
            f"`variant-ai export {model} -o FILE`, or use the evaluator torch"
        )
    return model


def _check(name: str, request: EvaluatorRequest, log: Log) -> Evaluator:
    parts = name.removeprefix(f"{CHECK}:").split(",")
    if len(parts) != 2 or not all(parts):
        raise VariantAIError(
            f"evaluator {name!r}: check compares two evaluators, e.g. check:onnx,openvino"
        )
    first = make(parts[0], request, log)
    second = make(parts[1], request, log)
    try:
        return CheckEvaluator(first, second)
    except ValueError as error:
        raise VariantAIError(str(error)) from None
