"""Evaluators: shapes, repeatability, and models that do not fit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from variant_ai.core.errors import DataError, UnknownNameError
from variant_ai.core.inference import OnnxEvaluator, RandomEvaluator, UniformEvaluator
from variant_ai.core.spec import builtin_specs, encoding_hash, load_spec, parse_spec

SPEC = load_spec(builtin_specs()["xiangqi"])
SHAPE = (28, 10, 9)
CI_VARIABLES = ("CI", "TF_BUILD", "GITHUB_ACTIONS")
"""Where one of them is set onnxruntime reports nothing anyway."""


def write_model(path: Path, metadata: dict[str, str], outputs: tuple[str, str]) -> Path:
    """A model whose value is the mean plane and whose policy is the first plane, flattened."""
    nodes = [
        helper.make_node("ReduceMean", ["planes"], ["mean"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Unsqueeze", ["mean", "one"], [outputs[0]]),
        helper.make_node("Slice", ["planes", "zero", "one", "one"], ["first"]),
        helper.make_node("Flatten", ["first"], [outputs[1]]),
    ]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("planes", TensorProto.FLOAT, ["batch", *SHAPE])],
        [
            helper.make_tensor_value_info(outputs[0], TensorProto.FLOAT, ["batch", 1]),
            helper.make_tensor_value_info(outputs[1], TensorProto.FLOAT, ["batch", 90]),
        ],
        [
            helper.make_tensor("zero", TensorProto.INT64, [1], [0]),
            helper.make_tensor("one", TensorProto.INT64, [1], [1]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {f"variant_ai.{k}": v for k, v in metadata.items()})
    onnx.save(model, str(path))
    return path


def own_metadata() -> dict[str, str]:
    return {"variant": SPEC.variant, "encoding_hash": encoding_hash(SPEC), "net": "t"}


def test_onnx_evaluator_runs_any_batch(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.onnx", own_metadata(), ("value", "policy"))
    evaluator = OnnxEvaluator(path, SPEC, threads=1)
    assert evaluator.planes_shape == SHAPE
    assert evaluator.actions == 90
    planes = np.random.default_rng(1).random((3, *SHAPE), np.float32)
    for batch in (1, 3):
        evaluation = evaluator.evaluate(planes[:batch])
        assert evaluation.value.shape == (batch,)
        np.testing.assert_allclose(evaluation.value, planes[:batch].mean((1, 2, 3)), rtol=1e-5)
        assert evaluation.policy.shape == (batch, 90)


def test_models_that_do_not_fit_are_rejected(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.onnx", own_metadata(), ("value", "policy"))
    changed = builtin_specs()["xiangqi"].read_text(encoding="utf-8").replace("max: 500", "max: 9")
    with pytest.raises(DataError, match="another version of the xiangqi spec"):
        OnnxEvaluator(path, parse_spec(changed))
    with pytest.raises(DataError, match="a net for xiangqi, not for crazyhouse"):
        OnnxEvaluator(path, load_spec(builtin_specs()["crazyhouse"]))
    with pytest.raises(UnknownNameError, match="accepted: cpu"):
        OnnxEvaluator(path, SPEC, device="cpuu")
    with pytest.raises(DataError, match="no such model file"):
        OnnxEvaluator(tmp_path / "none.onnx")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="not a usable ONNX model"):
        OnnxEvaluator(broken)
    foreign = write_model(tmp_path / "f.onnx", {}, ("value", "policy"))
    with pytest.raises(DataError, match="no metadata"):
        OnnxEvaluator(foreign, SPEC)
    other = write_model(tmp_path / "o.onnx", own_metadata(), ("a", "b"))
    with pytest.raises(DataError, match="outputs a, b"):
        OnnxEvaluator(other, SPEC)


def test_random_answers_are_repeatable() -> None:
    planes = np.random.default_rng(1).random((4, *SHAPE), np.float32)
    uniform = UniformEvaluator(SHAPE, 50).evaluate(planes)
    assert not uniform.value.any()
    assert not uniform.policy.any()
    random = RandomEvaluator(SHAPE, 50, seed=3)
    whole = random.evaluate(planes)
    assert np.all(np.abs(whole.value) <= 1)
    np.testing.assert_array_equal(random.evaluate(planes[2:]).policy, whole.policy[2:])
    assert len(np.unique(whole.value)) == 4
    other = RandomEvaluator(SHAPE, 50, seed=4).evaluate(planes)
    assert not np.array_equal(other.value, whole.value)


def test_openvino_is_imported_without_its_converter() -> None:
    """Which takes longer than the rest, and reports the import to its makers."""
    pytest.importorskip("openvino")
    program = (
        "import sys; from variant_ai.core.inference.backends.openvino_backend import import_openvino; "
        "import_openvino().Core(); "
        "print([name for name in sys.modules if 'ovc' in name or 'telemetry' in name])"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip() == "[]"


def test_onnxruntime_sends_no_telemetry(tmp_path: Path) -> None:
    """Where it reports, it keeps an identifier of the machine in the user's cache."""
    program = "import variant_ai, onnxruntime, os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("ORT_DISABLE_TELEMETRY", *CI_VARIABLES)
    }
    environment |= {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}

    def run(**more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment | more,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    assert run() == "1"
    assert list(tmp_path.rglob("*")) == []
    assert run(ORT_DISABLE_TELEMETRY="0") == "0"  # whoever wants to report may
