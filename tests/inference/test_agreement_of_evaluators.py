"""Every evaluator returns the same numbers as torch, for any batch size."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from variant_ai.core.inference import (
    CheckEvaluator,
    Evaluation,
    Evaluator,
    OnnxEvaluator,
    ParallelEvaluator,
    make_evaluator,
)
from variant_ai.core.inference.backends import openvino_backend as openvino_room
from variant_ai.core.nets.network import outputs_of

needs_openvino = pytest.mark.skipif(
    not openvino_room.available(), reason="needs the package openvino"
)


def by_torch(small, planes) -> Evaluation:  # type: ignore[no-untyped-def]
    with torch.inference_mode():
        said = outputs_of(small.net, torch.from_numpy(planes))
    return Evaluation(
        said.value.numpy(),
        said.policy.numpy(),
        said.wdl.softmax(1).numpy(),
        said.plies_left.numpy(),
    )


def assert_alike(one: Evaluation, other: Evaluation, tolerance: float = 1e-4) -> None:
    for mine, theirs in zip(one, other, strict=True):
        assert mine is not None and theirs is not None
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, theirs, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", ["onnx", "torch", pytest.param("openvino", marks=needs_openvino)])
def test_agrees_with_torch_at_every_batch(small, name: str) -> None:  # type: ignore[no-untyped-def]
    model = small.run if name == "torch" else small.onnx
    with make_evaluator(small.spec, model, evaluator=name, batch=4, threads=1) as evaluator:
        assert evaluator.precision == "fp32"
        assert evaluator.info.variant == small.spec.variant
        for batch in (1, 3, 4, 11):  # smaller than, equal to and larger than the batch it expects
            planes = small.planes[:batch]
            assert_alike(evaluator.evaluate(planes), by_torch(small, planes))


@needs_openvino
def test_answers_are_the_callers_own(small) -> None:  # type: ignore[no-untyped-def]
    evaluator = make_evaluator(small.spec, small.onnx, evaluator="openvino", batch=4)
    first = evaluator.evaluate(small.planes[:3])
    kept = first.policy.copy()
    evaluator.evaluate(small.planes[4:8])
    np.testing.assert_array_equal(first.policy, kept)


def test_sessions_share_a_batch(small) -> None:  # type: ignore[no-untyped-def]
    copies: list[Evaluator] = [OnnxEvaluator(small.onnx, threads=1) for _ in range(3)]
    with ParallelEvaluator(copies) as evaluator:
        for batch in (1, 2, 11):
            planes = small.planes[:batch]
            assert_alike(evaluator.evaluate(planes), by_torch(small, planes))
        assert evaluator.describe().startswith("3 x (onnx")


def test_check_reports_the_largest_difference(small) -> None:  # type: ignore[no-untyped-def]
    class Off(OnnxEvaluator):
        def evaluate(self, planes):  # type: ignore[no-untyped-def]
            said = super().evaluate(planes)
            return said._replace(value=said.value + np.float32(0.25))

    check = CheckEvaluator(OnnxEvaluator(small.onnx), Off(small.onnx))
    said = check.evaluate(small.planes)
    assert_alike(said, by_torch(small, small.planes))
    assert check.differences.positions == 11
    assert check.differences.value == pytest.approx(0.25, abs=1e-5)
    assert check.differences.policy == 0
    assert check.differences.same_best == 11
    assert "11 positions: value at most 0.25 apart" in check.notes[-1]


def test_check_by_name(small) -> None:  # type: ignore[no-untyped-def]
    check = make_evaluator(small.spec, small.onnx, evaluator="check:onnx,random")
    check.evaluate(small.planes)
    assert isinstance(check, CheckEvaluator)
    assert check.differences.value > 0
    assert check.differences.policy > 0


@needs_openvino
def test_bf16_on_request_only(small) -> None:  # type: ignore[no-untyped-def]
    if not openvino_room.has_bf16():
        pytest.skip("this processor has no bf16 in hardware")
    evaluator = make_evaluator(small.spec, small.onnx, evaluator="openvino", precision="bf16")
    assert evaluator.precision == "bf16"
    said, exact = evaluator.evaluate(small.planes), by_torch(small, small.planes)
    assert 0 < np.abs(said.policy - exact.policy).max() < 0.2


CLOSED = """
import gc, signal, sys
from variant_ai.core.inference.backends.openvino_backend import OpenVinoEvaluator
first, second = (OpenVinoEvaluator(sys.argv[1], batch=1) for _ in range(2))
del first
gc.collect()
del second
gc.collect()
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""


@needs_openvino
def test_ctrl_c_still_works_after_nets_were_closed(small: Any) -> None:
    """Closed in the order in which they were opened, as a run of self-play does."""
    command = [sys.executable, "-c", CLOSED, str(small.onnx)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "interrupted\n", (done.returncode, done.stderr)
