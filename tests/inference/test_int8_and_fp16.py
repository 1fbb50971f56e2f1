"""int8 and fp16 files: accuracy, metadata, and detection of wrong int8 results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from variant_ai.core.errors import DataError
from variant_ai.core.inference import OnnxEvaluator, make_evaluator
from variant_ai.core.inference.int8_check import METADATA_KEY, KnownAnswers
from variant_ai.core.inference.interface import softmax
from variant_ai.core.inference.model_file import MADE_FROM, find_model_file, read_model_file
from variant_ai.core.nets import quantise
from variant_ai.core.nets.onnx_export import write_metadata
from variant_ai.core.nets.onnx_files import read_onnx, write_onnx
from variant_ai.core.train.measure.reduced_precision import Sample, write_fp16, write_int8

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def samples(small) -> list[Sample]:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(8)
    actions = OnnxEvaluator(small.onnx).actions
    return [
        Sample(
            (rng.random((32, *small.planes.shape[1:])) < 0.2).astype(np.float32),
            rng.integers(0, actions, 32),
            [rng.choice(actions, 12, replace=False) for _ in range(32)],
        )
        for _ in range(4)
    ]


@pytest.fixture(scope="module")
def int8(small, samples, tmp_path_factory: pytest.TempPathFactory) -> Path:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("int8") / "small-int8.onnx"
    reduced = write_int8(small.onnx, path, small.spec, samples[:2], samples[2:], spare=0)
    assert reduced.agreement is not None
    assert reduced.agreement.positions == 64
    assert 0 < reduced.agreement.value_mean < 0.05
    assert reduced.agreement.same_first_decided > 0.9
    return path


def test_int8_is_near_and_says_what_it_is(small, int8: Path) -> None:  # type: ignore[no-untyped-def]
    own, other = read_model_file(small.onnx).metadata, read_model_file(int8).metadata
    assert own.items() <= {**other, "precision": "fp32"}.items()
    assert other["precision"] == "int8"
    kinds = {node.op_type for node in onnx.load(str(int8)).graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= kinds
    evaluator = make_evaluator(small.spec, int8, evaluator="onnx")
    assert evaluator.precision == "int8"
    log = evaluator.evaluate(small.planes)
    exact = OnnxEvaluator(small.onnx).evaluate(small.planes)
    assert np.abs(log.value - exact.value).max() < 0.1
    assert np.abs(softmax(log.policy) - softmax(exact.policy)).sum(1).max() < 0.3
    assert log.wdl is not None and log.plies_left is not None


def test_openvino_runs_int8(small, int8: Path) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("openvino")
    evaluator = make_evaluator(small.spec, int8, evaluator="openvino", batch=4)
    exact = OnnxEvaluator(int8).evaluate(small.planes)
    assert np.abs(evaluator.evaluate(small.planes).value - exact.value).max() < 0.1


@pytest.mark.parametrize("evaluator", ["onnx", "openvino"])
def test_a_processor_that_is_wrong_computes_in_fp32(  # type: ignore[no-untyped-def]
    small, int8: Path, tmp_path: Path, evaluator: str
) -> None:
    if evaluator == "openvino":
        pytest.importorskip("openvino")
    file = read_model_file(int8)
    known = KnownAnswers.decode(file.metadata[METADATA_KEY], int8)
    # Answers that this processor does not give, as one that saturates does not give the right ones.
    wrong = KnownAnswers(known.planes, -np.sign(known.value), known.policy, known.tolerance)
    model = onnx.load(str(int8))
    write_metadata(model, {**file.metadata, METADATA_KEY: wrong.encode()})
    path = tmp_path / "wrong.onnx"
    write_onnx(model, path)
    log: list[str] = []
    made = make_evaluator(small.spec, path, evaluator=evaluator, log=log.append)
    assert made.precision == "fp32"
    assert "computes int8 wrongly" in log[-1] and "fp32 instead" in log[-1]
    # Only the weights are still rounded: nearer to the fp32 net than int8 is.
    exact = OnnxEvaluator(small.onnx).evaluate(small.planes)
    off = np.abs(made.evaluate(small.planes).policy - exact.policy).mean()
    assert off < np.abs(OnnxEvaluator(int8).evaluate(small.planes).policy - exact.policy).mean()


def test_agreement_does_not_depend_on_the_processor(  # type: ignore[no-untyped-def]
    small, samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that computes int8 wrongly would run, and measure, the fp32 form of the file."""

    def measured(name: str) -> object:
        path = tmp_path / name
        return write_int8(small.onnx, path, small.spec, samples[:2], samples[2:]).agreement

    right = measured("a.onnx")
    backend = "variant_ai.core.inference.backends.onnx_backend.checked_precision"

    def in_fp32(evaluator, file, reopen):  # type: ignore[no-untyped-def]
        if file.info.precision == "int8":
            reopen(file, quantise.float_model(file.path))
        return "fp32", ("wrong",)

    monkeypatch.setattr(backend, in_fp32)
    assert measured("b.onnx") == right


def test_known_answers_are_encoded_and_decoded(small) -> None:  # type: ignore[no-untyped-def]
    policy = softmax(OnnxEvaluator(small.onnx).evaluate(small.planes).policy)
    known = KnownAnswers(small.planes, np.linspace(-1, 1, 11, dtype=np.float32), policy, 0.1)
    again = KnownAnswers.decode(known.encode(), "x.onnx")
    np.testing.assert_array_equal(again.planes, known.planes)
    np.testing.assert_allclose(again.policy, policy, atol=1e-3)
    with pytest.raises(DataError, match=r"x\.onnx: its known answers are damaged"):
        KnownAnswers.decode(known.encode()[:-40] + '"}', "x.onnx")


def test_sparing_leaves_layers_in_fp32(small, samples) -> None:  # type: ignore[no-untyped-def]
    model = read_onnx(small.onnx)
    planes = [sample.planes for sample in samples]
    whole = quantise.quantise(model, planes)
    some = quantise.quantise(model, planes, exclude=quantise.last_layers(model))

    def of_weights(m: onnx.ModelProto) -> int:
        names = {t.name for t in m.graph.initializer}
        return sum(n.op_type == "DequantizeLinear" and n.input[0] in names for n in m.graph.node)

    assert of_weights(whole) - of_weights(some) == 1  # the policy's last layer, without a bias
    assert len(quantise.sums(model)) == 2  # one for each block


def test_the_file_it_is_made_of_is_not_written_over(small, samples) -> None:  # type: ignore[no-untyped-def]
    before = small.onnx.read_bytes()
    with pytest.raises(DataError, match="is the fp32 file itself"):
        write_fp16(small.onnx, small.onnx, small.spec, samples)
    with pytest.raises(DataError, match="is the fp32 file itself"):
        write_int8(small.onnx, small.onnx, small.spec, samples, samples)
    assert small.onnx.read_bytes() == before


def test_fp16(small, samples, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "small-fp16.onnx"
    reduced = write_fp16(small.onnx, path, small.spec, samples)
    assert reduced.agreement is not None and reduced.agreement.good
    assert 0 < reduced.agreement.policy_mean < 0.01
    half = [t for t in onnx.load(str(path)).graph.initializer if t.data_type == TensorProto.FLOAT16]
    assert len(half) > 10
    assert make_evaluator(small.spec, path, evaluator="onnx").precision == "fp16"


def test_only_fp32_is_reduced(small, int8: Path, samples, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match="is an int8 file; use the fp32 file"):
        write_int8(int8, tmp_path / "x.onnx", small.spec, samples, samples)
    with pytest.raises(DataError, match="is not a usable ONNX model"):
        read_onnx(__file__)


def test_int8_is_found_beside_the_fp32_file(small, int8: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    plain, beside = tmp_path / "net.onnx", tmp_path / "net-int8.onnx"
    plain.write_bytes(small.onnx.read_bytes())
    beside.write_bytes(int8.read_bytes())
    assert make_evaluator(small.spec, plain, evaluator="onnx@int8").info.source == str(beside)
    assert make_evaluator(small.spec, beside, evaluator="onnx@fp32").info.source == str(plain)
    for path, steps in ((plain, 20), (beside, 10)):  # the net was trained on
        model = onnx.load(path)
        write_metadata(model, {**read_model_file(path).metadata, "steps": steps})
        onnx.save(model, path)
    with pytest.raises(DataError, match=r"net-int8.onnx was not made from .*net.onnx: steps"):
        make_evaluator(small.spec, plain, evaluator="onnx@int8")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "variants").glob("*/*-int8.onnx")), ids=lambda p: p.name
)
def test_int8_files_that_ship_are_made_from_the_nets_that_ship(path: Path) -> None:
    plain = path.with_name(path.name.replace("-int8", ""))
    assert find_model_file(plain, "int8").path == path


def test_a_file_of_another_net_of_the_same_training_settings_is_rejected(  # type: ignore[no-untyped-def]
    small, int8: Path, tmp_path: Path
) -> None:
    plain, beside = tmp_path / "net.onnx", tmp_path / "net-int8.onnx"
    beside.write_bytes(int8.read_bytes())
    model = onnx.load(small.onnx)
    write_metadata(model, {**read_model_file(small.onnx).metadata, "note": "other metadata"})
    onnx.save(model, plain)
    assert make_evaluator(small.spec, plain, evaluator="onnx@int8").info.source == str(beside)
    weights = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    array = onnx.numpy_helper.to_array(weights)
    weights.CopyFrom(onnx.numpy_helper.from_array(array * np.float32(1.01), weights.name))
    onnx.save(model, plain)
    with pytest.raises(DataError, match="its weights are those of another net; write it again"):
        make_evaluator(small.spec, plain, evaluator="onnx@int8")


@pytest.mark.parametrize("weight", [0.0, 1e-6, 0.1])
def test_biases_of_channels_with_next_to_no_weights_are_kept(weight: float) -> None:
    """An int32 of units as small as such weights would hold no bias of usual size."""
    weights = np.full((2, 3, 1, 1), 0.1, np.float32)
    weights[1] = weight
    bias = np.array([0.25, 0.5], np.float32)
    constants = {
        "w": onnx.numpy_helper.from_array(weights, "w"),
        "b": onnx.numpy_helper.from_array(bias, "b"),
    }
    node = onnx.helper.make_node("Conv", ["x", "w", "b"], ["y"], "conv")
    quantise._constants_of(node, quantise.Range(0.0, 1.0), constants)
    (name,) = (n for n in constants if n.startswith("b") and n.endswith(quantise.SUFFIX_W))
    whole, unit = (
        onnx.numpy_helper.to_array(constants[n]).astype(np.float64) for n in (name, f"{name}_scale")
    )
    assert whole * unit == pytest.approx(bias, rel=1e-4)
    scale = onnx.numpy_helper.to_array(constants[f"w{quantise.SUFFIX_W}_scale"])
    assert scale[0] == pytest.approx(0.1 / 127)  # what is usual is left as it is


@pytest.mark.parametrize("variant", ["crazyhouse", "xiangqi"])
def test_shipped_int8_files_are_of_the_shipped_nets(variant: str) -> None:
    from variant_ai.plugins import registry

    entry = registry().entry_of(registry().variant(variant))
    assert entry is not None and entry.model is not None
    file = find_model_file(entry.model, "int8")
    assert file.path != entry.model and MADE_FROM in file.metadata
    assert METADATA_KEY in file.metadata
