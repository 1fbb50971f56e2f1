"""Evaluators by name: what `--evaluator` means.

    onnx openvino torch      run a net
    uniform random           stand in for one
    check:A,B                A, compared with B all along
    auto                     the fastest of those present, by measurement (`auto.py`)
    NAME@PRECISION           in these numbers, e.g. check:onnx,openvino@bf16

Plugins add names; they reach this module as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from variant_ai.core.errors import PluginError, UnknownNameError, VariantAIError
from variant_ai.core.inference.backends.netless import RandomEvaluator, UniformEvaluator
from variant_ai.core.inference.backends.parallel_backends import ParallelEvaluator
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.inference.model_file import ONNX_SUFFIX, PRECISIONS, find_model_file
from variant_ai.core.nets.interface import NetworkBuilder
from variant_ai.core.spec import VariantSpec

AUTO, CHECK, UNIFORM, RANDOM = "auto", "check", "uniform", "random"
WITHOUT_NET = (UNIFORM, RANDOM)
"""Those that look at no model."""
LONG_NAMES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
"""Other names of precisions, those of torch and of CrazyAra's option."""
NAMES = (AUTO, "onnx", "openvino", "torch", *WITHOUT_NET, "check:A,B")


@dataclass(frozen=True)
class EvaluatorRequest:
    """Everything an evaluator may be made from. Makers ignore what means nothing to them."""

    spec: VariantSpec
    model: Path | None = None
    """An ONNX file, a run directory or a checkpoint."""
    batch: int = 16
    """Positions usually evaluated at once."""
    threads: int | None = None
    """Of one evaluation; None leaves it to the library."""
    device: str = "cpu"
    """cpu, cuda, cuda:N, tensorrt; several, parted by commas, share each batch."""
    precision: str | None = None
    """fp32, bf16, fp16, int8; None: the model's own."""
    spin: bool = True
    """Whether threads wait busily, where the library lets one choose."""
    sessions: int = 1
    """Copies of the net that share each batch."""
    builders: Mapping[str, NetworkBuilder] | None = None
    """Of nets that a checkpoint may name; None: the built-in ones."""

    def need_model(self, evaluator: str) -> Path:
        """The model. Raises VariantAIError naming the evaluator where there is none."""
        if self.model is None:
            raise VariantAIError(
                f"evaluator {evaluator!r} runs a net and no model was given; name an ONNX file or "
                "a run directory, or take the evaluator 'uniform', which needs none"
            )
        return self.model


class EvaluatorMaker(Protocol):
    """What a plugin's entry does."""

    def make(self, request: EvaluatorRequest) -> Evaluator:
        """An evaluator for the request. Raises VariantAIError in words."""
        ...


Plugins = Mapping[str, EvaluatorMaker]
Say = Callable[[str], None]


def make_evaluator(
    spec: VariantSpec,
    model: Path | str | None,
    *,
    evaluator: str = AUTO,
    batch: int = 16,
    threads: int | None = None,
    device: str = "cpu",
    precision: str | None = None,
    say: Say | None = None,
    plugins: Plugins | None = None,
    builders: Mapping[str, NetworkBuilder] | None = None,
) -> Evaluator:
    """An evaluator by name, for a variant and a model.

    Args:
        model: an ONNX file, a run directory or a checkpoint; None for evaluators without a net.
        evaluator: see the head of this module.
        batch: positions usually evaluated at once; more or fewer are evaluated too.
        threads: of one evaluation on the CPU; None: as the library has it, or as `auto` measures.
        device: `cpu`, `cuda`, `cuda:N`, `tensorrt`; several parted by commas.
        precision: fp32, bf16, fp16, int8. None: that of the model; `auto` runs an fp32 model in
            bf16 if the processor multiplies it. fp32 gives the same numbers on every machine.
            int8 of `net.onnx` is looked for beside it, as `net-int8.onnx`.
        say: is told in sentences what was chosen and what the user should know.
        plugins: makers that plugins add, by name (`registry().evaluators`).
        builders: of the nets of checkpoints (`registry().builders()`).

    A net may have been trained with other planes or another policy than the spec's: its `info` has
    the spec to show it positions by (`ModelInfo.own_spec`), as searches do.

    Raises UnknownNameError (evaluator, device, precision), DataError (the model is missing,
    damaged, or for another variant, other rules or another encoder), VariantAIError (a package is not installed).
    """
    if batch < 1 or (threads is not None and threads < 1):
        raise VariantAIError(f"batch {batch} and threads {threads}: both are at least 1")
    precision = LONG_NAMES.get(precision or "", precision)
    if precision is not None and precision not in PRECISIONS:
        raise UnknownNameError("precision", precision, PRECISIONS)
    model = None if model is None else Path(model)
    request = EvaluatorRequest(spec, model, batch, threads, device, precision, builders=builders)
    made = make(evaluator, request, plugins or {}, say or _silent)
    for note in made.notes:
        (say or _silent)(note)
    return made


def make(name: str, request: EvaluatorRequest, plugins: Plugins, say: Say) -> Evaluator:
    """An evaluator by name; arguments and errors as `make_evaluator`."""
    if name.startswith(f"{CHECK}:"):
        return _check(name, request, plugins, say)
    base, at, precision = name.partition("@")
    if at:
        if precision not in PRECISIONS:
            raise UnknownNameError("precision", precision, PRECISIONS)
        request = replace(request, precision=precision)
    if base in plugins and base not in _MAKERS and base != AUTO:
        made = plugins[base].make(request)
        if not isinstance(made, Evaluator):
            raise PluginError(f"evaluator {base!r} of a plugin is a {type(made).__name__}")
        return made
    if base == AUTO:
        from variant_ai.core.inference.choosing.automatic_choice import fastest

        return fastest(request, say)
    if base not in _MAKERS:
        raise UnknownNameError("evaluator", name, {*NAMES, *plugins})
    devices = request.device.split(",")
    copies = [replace(request, device=d) for d in devices for _ in range(request.sessions)]
    if len(copies) == 1 or base in WITHOUT_NET:
        return _MAKERS[base](request)
    share = -(-request.batch // len(copies))
    return ParallelEvaluator([_MAKERS[base](replace(copy, batch=share)) for copy in copies])


def make_onnx(request: EvaluatorRequest) -> Evaluator:
    """onnxruntime. TensorRT makes fp16 of an fp32 file itself."""
    from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator

    model = request.need_model("onnx")
    if request.precision == "bf16":
        raise UnknownNameError("precision of onnxruntime", "bf16", ("fp32", "fp16", "int8"))
    wanted = file_precision(request.precision, request.device)
    file = find_model_file(_file_only(model, "onnx"), wanted)
    return OnnxEvaluator(
        file.path,
        file.info.own_spec(request.spec),
        device=request.device,
        threads=request.threads,
        spin=request.spin,
        batch=request.batch,
        precision=request.precision,
    )


def file_precision(precision: str | None, device: str) -> str | None:
    """Of the file to look for, where onnxruntime is to compute in `precision`."""
    return None if device.startswith("tensorrt") and precision == "fp16" else precision


def make_openvino(request: EvaluatorRequest) -> Evaluator:
    """OpenVINO, on the CPU."""
    from variant_ai.core.inference.backends.openvino_backend import OpenVinoEvaluator

    if request.device != "cpu":
        raise UnknownNameError("device of openvino", request.device, ("cpu",))
    model = _file_only(request.need_model("openvino"), "openvino")
    file = find_model_file(model, request.precision)
    return OpenVinoEvaluator(
        file.path,
        file.info.own_spec(request.spec),
        precision=request.precision,
        threads=request.threads,
        batch=request.batch,
    )


def make_torch(request: EvaluatorRequest) -> Evaluator:
    """torch, from a run directory or a checkpoint."""
    model = request.need_model("torch")
    if model.suffix == ONNX_SUFFIX:
        raise VariantAIError(
            f"evaluator 'torch' runs checkpoints and run directories; {model} is an ONNX file: "
            "take the evaluator onnx or openvino"
        )
    from variant_ai.core.inference.backends.torch_backend import (
        TorchEvaluator,
        find_checkpoint_folder,
        read_checkpoint_info,
    )

    folder = find_checkpoint_folder(model)
    info, _ = read_checkpoint_info(folder)
    return TorchEvaluator.load(
        folder,
        info.own_spec(request.spec),
        device=request.device,
        precision=request.precision,
        threads=request.threads,
        builders=request.builders,
    )


def make_uniform(request: EvaluatorRequest) -> Evaluator:
    """Every move alike; a model given is not looked at."""
    from variant_ai.core.encoding import Encoder

    encoder = Encoder(request.spec)
    return UniformEvaluator(encoder.shape, encoder.actions)


def make_random(request: EvaluatorRequest) -> Evaluator:
    """Random, but repeatable; a model given is not looked at."""
    from variant_ai.core.encoding import Encoder

    encoder = Encoder(request.spec)
    return RandomEvaluator(encoder.shape, encoder.actions)


_MAKERS: dict[str, Callable[[EvaluatorRequest], Evaluator]] = {
    "onnx": make_onnx,
    "openvino": make_openvino,
    "torch": make_torch,
    UNIFORM: make_uniform,
    RANDOM: make_random,
}


def _file_only(model: Path, evaluator: str) -> Path:
    """The model. Raises VariantAIError for a checkpoint, which is no run directory either."""
    if model.is_dir() and (model / "model.safetensors").is_file():
        raise VariantAIError(
            f"evaluator {evaluator!r} runs ONNX files; {model} is a checkpoint: write one with "
            f"`variant-ai export {model} -o FILE`, or take the evaluator torch"
        )
    return model


def _check(name: str, request: EvaluatorRequest, plugins: Plugins, say: Say) -> Evaluator:
    from variant_ai.core.inference.backends.backend_comparison import CheckEvaluator

    parts = name.removeprefix(f"{CHECK}:").split(",")
    if len(parts) != 2 or not all(parts):
        raise VariantAIError(
            f"evaluator {name!r}: check runs two evaluators, e.g. check:onnx,openvino"
        )
    first = make(parts[0], request, plugins, say)
    second = make(parts[1], request, plugins, say)
    try:
        return CheckEvaluator(first, second)
    except ValueError as error:
        raise VariantAIError(str(error)) from None


def _silent(text: str) -> None: ...
