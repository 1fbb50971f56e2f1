"""Files in reduced precision: int8 or fp16 from an fp32 ONNX file, and how well they agree with it.

int8 is calibrated on positions of a store, first with everything in int8, then with more and more
in fp32 (`quantise.SPARING`) until the net agrees well enough with the fp32 one. The file keeps the
metadata of the fp32 file. An int8 file also contains known answers, from which an evaluator detects
a processor whose int8 products saturate.

Agreement is measured on real positions. N positions, B in a batch, A actions; probabilities are over
the legal moves.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
from variant_ai.core.inference.int8_check import METADATA_KEY, KnownAnswers
from variant_ai.core.inference.interface import Evaluation, softmax
from variant_ai.core.inference.model_file import MADE_FROM, read_model_file
from variant_ai.core.nets import quantise
from variant_ai.core.nets.onnx_export import write_metadata
from variant_ai.core.nets.onnx_files import cpu_session, read_onnx, write_onnx
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec import VariantSpec
from variant_ai.core.system.files import is_same_file
from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.measure.evaluation import legal_actions
from variant_ai.core.train.measure.metric_tables import TITLES

Evaluate = Callable[[NDArray[np.float32]], Evaluation]
"""Evaluates planes [B, C, H, W]."""
KNOWN_POSITIONS = 4
TOLERANCE = 0.1
"""Tolerance of the known answers: rounding differs by 0.01 to 0.03 between libraries, saturation by
much more."""


DECIDED = 0.05
"""Smallest difference of the probabilities of a net's first two moves in a decided position."""
MOST_LOST, LEAST_KEPT = 0.005, 0.98
"""An agreement is good if policy accuracy falls by at most the first number, and the share of decided
positions with the same first move is at least the second."""


@dataclass(frozen=True)
class Sample:
    """Positions copied from a sampler, with their legal moves."""

    planes: NDArray[np.float32]
    """[B, C, H, W]."""
    action: NDArray[np.int64]
    """[B] the move played."""
    legal: list[NDArray[np.int64]]
    """B arrays with the actions of the legal moves."""


@dataclass(frozen=True)
class Agreement:
    """Comparison of a net in reduced precision with the fp32 net."""

    positions: int
    accuracy: float
    """Share of positions in which the highest logit is the move played."""
    accuracy_fp32: float
    same_first: float
    """Share of positions with the same first legal move."""
    decided: int
    """Positions in which the fp32 net's first two moves differ by over 0.05."""
    same_first_decided: float
    """The same share among those; 1 if there are none."""
    value_mean: float
    """Mean difference of the value, 0 to 2."""
    value_most: float
    policy_mean: float
    """Mean difference of the probabilities of a position: half the sum, 0 to 1."""

    @property
    def lost(self) -> float:
        """Policy accuracy lost, of 1; below 0 where the other net is better by luck."""
        return self.accuracy_fp32 - self.accuracy

    @property
    def good(self) -> bool:
        return self.lost <= MOST_LOST and self.same_first_decided >= LEAST_KEPT

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Greater for a better agreement."""
        return self.good, self.same_first_decided, -self.lost

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "lost": self.lost, "good": self.good}

    def lines(self) -> list[tuple[str, str]]:
        """Names and values for a table."""
        return [
            ("positions", f"{self.positions:,}"),
            (TITLES["policy_accuracy"], f"{self.accuracy:.2%} (fp32 {self.accuracy_fp32:.2%})"),
            ("same first move", f"{self.same_first:.2%}"),
            (
                "same first move where decided",
                f"{self.same_first_decided:.2%} of {counted(self.decided, 'position')} whose first two "
                f"moves differ by over {DECIDED}",
            ),
            (
                "value difference",
                f"{self.value_mean:.4f} on average, at most {self.value_most:.3f}",
            ),
            ("policy difference", f"{self.policy_mean:.4f} on average"),
        ]


def take_samples(
    source: Sampler, encoder: Encoder, rules: Rules, positions: int, first: int = 0
) -> list[Sample]:
    """Take `positions` random positions from a source, from its batch of step `first` on."""
    taken: list[Sample] = []
    left = positions
    while left > 0:
        batch = source.batch(first + len(taken))
        taken.append(
            Sample(
                batch.planes[:left].copy(),
                batch.action[:left].copy(),
                legal_actions(rules, encoder, batch.positions[:left]),
            )
        )
        left -= len(taken[-1].action)
    return taken


def agreement(reference: Evaluate, other: Evaluate, samples: Sequence[Sample]) -> Agreement:
    """Compare two evaluations of the same positions."""
    hits = hits_reference = same = decided = same_decided = total = 0
    value_sum = value_most = policy_sum = 0.0
    for sample in samples:
        expected, found = reference(sample.planes), other(sample.planes)
        total += len(sample.action)
        hits += int((found.policy.argmax(1) == sample.action).sum())
        hits_reference += int((expected.policy.argmax(1) == sample.action).sum())
        value = np.abs(found.value - expected.value)
        value_sum += float(value.sum())
        value_most = max(value_most, float(value.max()))
        for i, legal in enumerate(sample.legal):
            mine, theirs = softmax(expected.policy[i, legal]), softmax(found.policy[i, legal])
            agree = int(mine.argmax() == theirs.argmax())
            same += agree
            policy_sum += float(np.abs(mine - theirs).sum()) / 2
            if len(mine) > 1:
                second, best = np.partition(mine, -2)[-2:]
                if best - second > DECIDED:
                    decided += 1
                    same_decided += agree
    return Agreement(
        total,
        hits / total,
        hits_reference / total,
        same / total,
        decided,
        same_decided / decided if decided else 1.0,
        value_sum / total,
        value_most,
        policy_sum / total,
    )


# --- writing files -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reduced:
    """A written file."""

    path: Path
    precision: str
    agreement: Agreement | None
    """None if no positions were given (fp16 does not need any)."""
    spared: tuple[str, ...] = ()
    """Descriptions of the layers that stayed in fp32 because int8 cost too much."""


def write_int8(
    source: Path,
    target: Path,
    spec: VariantSpec,
    calibration: Sequence[Sample],
    check: Sequence[Sample],
    *,
    spare: int | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> Reduced:
    """Write `target`, the int8 form of the fp32 file `source`.

    Args:
        calibration: positions on which the ranges of activations are measured; the first few are
            those of the known answers.
        check: other positions, on which agreement is measured.
        spare: number of entries of `quantise.SPARING` that stay in fp32; None: as many as needed.

    Raises DataError: not an fp32 file, another variant or spec, nothing to quantise.
    """
    metadata = _metadata(source, target, spec)
    model = read_onnx(source)
    planes = [sample.planes for sample in calibration]
    reference = OnnxEvaluator(source, spec)
    levels = range(len(quantise.SPARING) + 1) if spare is None else [spare]
    with tempfile.TemporaryDirectory() as folder:
        found: tuple[Agreement, int, Path] | None = None
        for level in levels:
            report("quantising" if not level else f"again, with {_spared(level)} in fp32")
            path = Path(folder) / f"{level}.onnx"
            evaluate = _quantise_into(path, model, metadata, planes, level)
            report("comparing")
            measured = agreement(reference.evaluate, evaluate, check)
            if found is None or measured.rank > found[0].rank:
                found = measured, level, path
            if measured.good:
                break
        assert found is not None
        write_onnx(found[2].read_bytes(), target)
    return Reduced(
        target, "int8", found[0], tuple(words for words, _ in quantise.SPARING[: found[1]])
    )


def write_int8_unmeasured(
    source: Path, target: Path, spec: VariantSpec, planes: NDArray[np.float32]
) -> None:
    """Write `target`, the int8 form of the fp32 file `source`, with the policy's last layer in fp32.

    planes: [B, C, H, W] of real positions, for calibration. Errors as in `write_int8`.
    """
    metadata = _metadata(source, target, spec)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / target.name
        _quantise_into(path, read_onnx(source), metadata, [planes], 1)
        write_onnx(path.read_bytes(), target)


def write_fp16(
    source: Path, target: Path, spec: VariantSpec, check: Sequence[Sample] = ()
) -> Reduced:
    """Write `target`, the fp16 form of the fp32 file `source`. Errors as in `write_int8`."""
    metadata = _metadata(source, target, spec)
    model = quantise.halve(read_onnx(source))
    write_metadata(model, {**metadata, "precision": "fp16"})
    write_onnx(model, target)
    if not check:
        return Reduced(target, "fp16", None)
    measured = agreement(
        OnnxEvaluator(source, spec).evaluate, OnnxEvaluator(target, spec).evaluate, check
    )
    return Reduced(target, "fp16", measured)


def _metadata(source: Path, target: Path, spec: VariantSpec) -> dict[str, str]:
    """The metadata of a file to copy, and the digest of its graph. Raises DataError unless the file is fp32, fits the spec and is
    not the target."""
    file = read_model_file(source)
    file.info.require(spec)
    if file.info.precision != "fp32":
        raise DataError(
            f"{source} is an {file.info.precision} file; use the fp32 file that it was made from"
        )
    if is_same_file(target, source):
        raise DataError(
            f"{target} is the fp32 file itself, which would be lost; choose another name"
        )
    kept = {name: text for name, text in file.metadata.items() if name != "format"}
    return {**kept, MADE_FROM: file.graph_digest()}


def _quantise_into(
    path: Path,
    model: onnx.ModelProto,
    metadata: dict[str, str],
    planes: Sequence[NDArray[np.float32]],
    level: int,
) -> Evaluate:
    """Write an int8 file with its known answers; return its evaluation.

    level: number of entries of `quantise.SPARING` that stay in fp32.
    """
    exclude = [name for _, names in quantise.SPARING[:level] for name in names(model)]
    reduced = quantise.quantise(model, planes, exclude=exclude)
    metadata = {**metadata, "precision": "int8"}
    write_metadata(reduced, metadata)
    write_onnx(reduced, path)
    evaluate = _node_by_node(path)
    known = _known_answers(evaluate, planes[0][:KNOWN_POSITIONS])
    write_metadata(reduced, {**metadata, METADATA_KEY: known.encode()})
    write_onnx(reduced, path)
    return evaluate


def _spared(level: int) -> str:
    return " and ".join(words for words, _ in quantise.SPARING[:level])


def _node_by_node(path: Path) -> Evaluate:
    """Evaluation of an int8 file one node after the other, in fp32 between roundings: slow, and the same
    on every processor. One whose int8 products saturate would measure something else."""
    session = cpu_session(str(path), optimise=False)

    def evaluate(planes: NDArray[np.float32]) -> Evaluation:
        value, policy = session.run(["value", "policy"], {"planes": np.ascontiguousarray(planes)})
        return Evaluation(value.reshape(-1), policy)

    return evaluate


def _known_answers(evaluate: Evaluate, planes: NDArray[np.float32]) -> KnownAnswers:
    found = evaluate(planes)
    return KnownAnswers(np.ascontiguousarray(planes), found.value, softmax(found.policy), TOLERANCE)
