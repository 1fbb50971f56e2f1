"""Files in fewer bits: an fp32 ONNX file as int8 or fp16, and what it costs in agreement.

int8 is calibrated on positions of a store, tried with everything in int8 first and with more and
more in fp32 (`quantise.SPARING`) until the net agrees with itself well enough. The file keeps the
metadata of the fp32 one, and an int8 file carries known answers, by which an evaluator finds out
that a processor saturates.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from variant_ai.core.errors import DataError
from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
from variant_ai.core.inference.int8_check import METADATA_KEY, KnownAnswers, softmax
from variant_ai.core.inference.model_file import read_model_file
from variant_ai.core.nets import quantise
from variant_ai.core.nets.onnx_export import write_metadata
from variant_ai.core.spec import VariantSpec
from variant_ai.core.train.measure.precision_agreement import Agreement, Sample, agreement

KNOWN_POSITIONS = 4
TOLERANCE = 0.1
"""Of the known answers: rounding differs by 0.01 to 0.03 between libraries, saturation by far more."""


@dataclass(frozen=True)
class Reduced:
    """A file that was written."""

    path: Path
    precision: str
    agreement: Agreement | None
    """None where no positions were given (fp16 can do without)."""
    spared: tuple[str, ...] = ()
    """What stayed in fp32 because int8 cost too much, in words."""


def write_int8(
    source: Path,
    target: Path,
    spec: VariantSpec,
    calibration: Sequence[Sample],
    check: Sequence[Sample],
    *,
    spare: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Reduced:
    """Writes `target`, the int8 form of the fp32 file `source`.

    Args:
        calibration: positions that the ranges of activations are found on.
        check: other positions, that agreement is measured on.
        spare: how many of `quantise.SPARING` stay in fp32; None: as many as it takes.

    Raises DataError: not an fp32 file, another variant or spec, nothing to quantise.
    """
    metadata = _metadata(source, target, spec)
    model = quantise.load(source)
    planes = [sample.planes for sample in calibration]
    reference = OnnxEvaluator(source, spec)
    levels = range(len(quantise.SPARING) + 1) if spare is None else [spare]
    with tempfile.TemporaryDirectory() as folder:
        found: tuple[Agreement, int, Path] | None = None
        for level in levels:
            exclude = [name for _, names in quantise.SPARING[:level] for name in names(model)]
            say("quantising" if not level else f"again, with {_spared(level)} in fp32")
            reduced = quantise.quantise(model, planes, exclude=exclude)
            write_metadata(reduced, {**metadata, "precision": "int8"})
            plain = Path(folder) / f"{level}.onnx"
            quantise.save(reduced, plain)
            known = _known_answers(plain, check[0].planes[:KNOWN_POSITIONS])
            write_metadata(
                reduced,
                {**metadata, "precision": "int8", METADATA_KEY: known.encode()},
            )
            quantise.save(reduced, plain)
            say("comparing")
            evaluator = OnnxEvaluator(plain, spec)
            for note in evaluator.notes:
                say(note)
            measured = agreement(reference, evaluator, check)
            if found is None or _better(measured, found[0]):
                found = measured, level, plain
            if measured.good:
                break
        assert found is not None
        quantise.save(onnx.load(str(found[2])), target)
    return Reduced(
        target, "int8", found[0], tuple(words for words, _ in quantise.SPARING[: found[1]])
    )


def write_fp16(
    source: Path, target: Path, spec: VariantSpec, check: Sequence[Sample] = ()
) -> Reduced:
    """Writes `target`, the fp16 form of the fp32 file `source`. Errors as `write_int8`."""
    metadata = _metadata(source, target, spec)
    model = quantise.halve(quantise.load(source))
    write_metadata(model, {**metadata, "precision": "fp16"})
    quantise.save(model, target)
    if not check:
        return Reduced(target, "fp16", None)
    measured = agreement(OnnxEvaluator(source, spec), OnnxEvaluator(target, spec), check)
    return Reduced(target, "fp16", measured)


def _metadata(source: Path, target: Path, spec: VariantSpec) -> dict[str, str]:
    """What a file says that is to be kept. Raises DataError unless it is fp32, fits the spec and is
    not to be written over."""
    file = read_model_file(source)
    file.info.require(spec)
    if file.info.precision != "fp32":
        raise DataError(
            f"{source} is an {file.info.precision} file; give the fp32 one it came from"
        )
    if target.exists() and target.samefile(source):
        raise DataError(f"{target} is the fp32 file itself, which would be lost; name another")
    return {name: text for name, text in file.metadata.items() if name != "format"}


def _spared(level: int) -> str:
    return " and ".join(words for words, _ in quantise.SPARING[:level])


def _better(one: Agreement, other: Agreement) -> bool:
    return (one.good, one.same_first_decided, -one.lost) > (
        other.good,
        other.same_first_decided,
        -other.lost,
    )


def _known_answers(path: Path, planes: NDArray[np.float32]) -> KnownAnswers:
    """What the int8 file means, computed step by step in fp32: no processor saturates in that."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    planes = np.ascontiguousarray(planes)
    value, policy = session.run(["value", "policy"], {"planes": planes})
    return KnownAnswers(planes, value.reshape(-1), softmax(policy), TOLERANCE)
