"""Evaluators by name: the fastest one, saved choices, plugins, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from variant_ai.core.errors import DataError, UnknownNameError, VariantAIError
from variant_ai.core.factories import EVALUATORS
from variant_ai.core.inference import EvaluatorRequest, UniformEvaluator, make_evaluator
from variant_ai.core.inference.choosing import evaluator_timing as measure
from variant_ai.core.inference.choosing import fastest_evaluator as auto
from variant_ai.core.inference.choosing import saved_choices as kept
from variant_ai.core.inference.model_file import find_model_file, read_model_file
from variant_ai.core.nets.onnx_files import serialised
from variant_ai.core.spec import builtin_specs, load_spec


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Measurements that `auto` made; the last contender wins each."""
    seen: list[list[str]] = []

    def interleaved(evaluators, batch, **how):  # type: ignore[no-untyped-def]
        seen.append(list(evaluators))
        return {
            name: measure.Timing(batch, *[1.0 / (i + 1)] * 4) for i, name in enumerate(evaluators)
        }

    monkeypatch.setattr(auto, "interleaved", interleaved)
    monkeypatch.setattr(auto, "processors", lambda: 2)
    monkeypatch.setattr(kept, "observed_rate", lambda evaluator, batch: 100.0)
    monkeypatch.setattr(
        "variant_ai.core.inference.choosing.saved_choices._busy_seconds", lambda: None
    )
    # A second library is slow to load and changes nothing here.
    monkeypatch.setattr(
        "variant_ai.core.inference.backends.openvino_backend.available", lambda: False
    )
    return seen


def test_auto_measures_once_and_keeps_its_choice(small, measured, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    log: list[str] = []

    def made():  # type: ignore[no-untyped-def]
        return make_evaluator(small.spec, small.onnx, batch=4, log=log.append)

    first = made()
    assert measured == [
        [
            "onnx, 2 threads",
            "onnx, 2 threads that do not spin",
            "onnx, 1 thread",
            "onnx, 2 sessions of 1 thread",
        ]
    ]
    assert first.describe() == "2 x (onnx fp32, 1 thread)"
    assert "positions/s" in log[0] and "4 ways" in log[0]
    log.clear()
    second = made()
    assert len(measured) == 1
    assert second.describe() == first.describe()
    assert log == [], "a choice made earlier is not news"
    assert first.precision == "fp32"
    # another batch, other cores: measured again
    make_evaluator(small.spec, small.onnx, batch=8)
    monkeypatch.setattr(auto, "processors", lambda: 1)
    assert make_evaluator(small.spec, small.onnx, batch=4).describe() == "onnx fp32, 1 thread"
    assert len(measured) == 2  # one core leaves one contender and nothing to measure


def test_a_net_with_other_weights_needs_no_measurement(small, measured, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The speed depends on the layers alone."""
    make_evaluator(small.spec, small.onnx)
    model = onnx.load(small.onnx)
    del model.metadata_props[-1]  # its checksum
    weight = next(w for w in model.graph.initializer if len(w.dims) == 4)
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * 2, weight.name))
    onnx.save(model, tmp_path / "taught.onnx")
    make_evaluator(small.spec, tmp_path / "taught.onnx")
    assert len(measured) == 1
    conv = next(node for node in model.graph.node if node.op_type == "Conv")
    conv.attribute.add().CopyFrom(onnx.helper.make_attribute("auto_pad", "NOTSET"))
    onnx.save(model, tmp_path / "changed.onnx")
    make_evaluator(small.spec, tmp_path / "changed.onnx")
    assert len(measured) == 2, "other layers"


def test_a_damaged_choice_is_made_again(small, measured) -> None:  # type: ignore[no-untyped-def]
    make_evaluator(small.spec, small.onnx)
    (file,) = kept_files()
    file.write_text("{")
    make_evaluator(small.spec, small.onnx)
    assert len(measured) == 2
    log = json.loads(file.read_text())
    log["choice"]["evaluator"] = "none-such"
    file.write_text(json.dumps(log))
    make_evaluator(small.spec, small.onnx)
    assert len(measured) == 3


def kept_files() -> list[Path]:
    folder = kept.cache_folder("evaluators")
    assert folder is not None
    return list(folder.glob("*.json"))


@pytest.mark.parametrize("rate", [20.0, 400.0])
def test_a_choice_is_measured_again_when_its_rate_is_far_off(
    small, measured, monkeypatch, rate
) -> None:  # type: ignore[no-untyped-def]
    make_evaluator(small.spec, small.onnx)
    monkeypatch.setattr(kept, "observed_rate", lambda evaluator, batch: 120.0)
    make_evaluator(small.spec, small.onnx)
    assert len(measured) == 1, "within what a noisy machine shows"
    monkeypatch.setattr(kept, "observed_rate", lambda evaluator, batch: rate)
    log: list[str] = []
    make_evaluator(small.spec, small.onnx, log=log.append)
    assert len(measured) == 2
    assert "measured again" in log[0] and f"{rate:,.0f} positions/s now, 100 then" in log[0]


def test_a_choice_made_on_a_loaded_machine_is_measured_again_when_it_is_quiet(
    small, measured, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    others = 0.9
    monkeypatch.setattr(
        "variant_ai.core.inference.choosing.saved_choices.OtherLoad.processors", lambda self: others
    )
    log: list[str] = []
    make_evaluator(small.spec, small.onnx, log=log.append)
    assert "Other programs used 0.9 processors" in log[-1]
    make_evaluator(small.spec, small.onnx)
    assert len(measured) == 1, "still loaded: a measurement would be no better"
    others = 0.0
    make_evaluator(small.spec, small.onnx, log=log.append)
    assert len(measured) == 2
    assert any("beside programs that used 0.9 processors" in text for text in log)
    make_evaluator(small.spec, small.onnx)
    assert len(measured) == 2


def test_auto_tries_bf16_if_the_hardware_has_it(small, measured, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(
        "variant_ai.core.inference.backends.openvino_backend.available", lambda: True
    )
    for has, tried in ((True, {"openvino bf16"}), (False, {"openvino"})):
        monkeypatch.setattr(
            "variant_ai.core.inference.backends.openvino_backend.has_bf16", lambda has=has: has
        )
        request = EvaluatorRequest(small.spec, small.onnx)
        names = {c.describe().split(",")[0] for c in auto._contenders(request)[0]}
        assert names == {"onnx", *tried}
        pinned = EvaluatorRequest(small.spec, small.onnx, precision="fp32")
        assert all(choice.precision in (None, "fp32") for choice in auto._contenders(pinned)[0])


@pytest.fixture
def pair(small, tmp_path: Path) -> Path:  # type: ignore[no-untyped-def]
    """A net and an int8 file beside it."""
    net = tmp_path / "net.onnx"
    net.write_bytes(small.onnx.read_bytes())
    model = onnx.load(str(net))
    known = {p.key: p.value for p in model.metadata_props if not p.key.endswith("checksum")}
    onnx.helper.set_model_props(model, known | {"variant_ai.precision": "int8"})
    (tmp_path / "net-int8.onnx").write_bytes(serialised(model))
    return net


def test_auto_tries_int8_beside_the_net_without_bf16(small, pair, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    backend = "variant_ai.core.inference.backends.openvino_backend"
    monkeypatch.setattr(f"{backend}.available", lambda: True)

    def tried(bf16: bool, net: Path, precision: str | None = None) -> set[str | None]:
        monkeypatch.setattr(f"{backend}.has_bf16", lambda: bf16)
        request = EvaluatorRequest(small.spec, net, precision=precision)
        return {choice.precision for choice in auto._contenders(request)[0]}

    assert tried(False, pair) == {None, "int8"}
    assert tried(True, pair) == {None, "bf16"}
    assert tried(False, small.onnx) == {None}
    assert "int8" not in tried(False, pair, "fp32")


@pytest.mark.parametrize(("gain", "chosen"), [(1.2, "fp32"), (1.5, "int8")])
def test_int8_must_be_much_faster(small, pair, monkeypatch, gain: float, chosen: str) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("openvino")
    backend = "variant_ai.core.inference.backends.openvino_backend"
    monkeypatch.setattr(f"{backend}.has_bf16", lambda: False)

    def interleaved(evaluators, batch, **how):  # type: ignore[no-untyped-def]
        seconds = {name: 1.0 / (gain if "int8" in name else 1.0) for name in evaluators}
        return {name: measure.Timing(batch, *[time] * 4) for name, time in seconds.items()}

    monkeypatch.setattr(auto, "interleaved", interleaved)
    made = make_evaluator(small.spec, pair, threads=1)
    assert made.precision == chosen
    # if int8 is asked for, the faster library runs it
    asked = make_evaluator(small.spec, pair, threads=1, precision="int8")
    assert (asked.name, asked.precision) == ("openvino", "int8")
    # a processor that computes int8 wrongly runs the file in fp32, which is no gain
    monkeypatch.setattr(f"{backend}.checked_precision", lambda *_: ("fp32", ()))
    log: list[str] = []
    assert make_evaluator(small.spec, pair, threads=1, batch=7, log=log.append).precision == "fp32"
    assert any("openvino int8, 1 thread: it runs in fp32" in line for line in log)


def test_int8_is_the_guess_while_kernels_are_compiled(small, pair, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("openvino")
    backend = "variant_ai.core.inference.backends.openvino_backend"
    monkeypatch.setattr(f"{backend}.has_bf16", lambda: False)
    monkeypatch.setattr(auto.parallel_compilation, "is_under_way", lambda: True)
    made = make_evaluator(small.spec, pair, threads=1)
    assert (made.name, made.precision) == ("openvino", "int8")


def test_auto_takes_a_run_directory(small, measured) -> None:  # type: ignore[no-untyped-def]
    assert make_evaluator(small.spec, small.run).name == "onnx"
    checkpoint = small.run / "checkpoints" / "step-00000007"
    assert make_evaluator(small.spec, checkpoint).name == "torch"


def test_plugins_add_evaluators(small, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    def make(request: EvaluatorRequest) -> UniformEvaluator:
        assert request.model == Path("x.mine") and request.batch == 5
        return UniformEvaluator((1, 2, 3), 4)

    monkeypatch.setitem(EVALUATORS, "mine", make)
    made = make_evaluator(small.spec, Path("x.mine"), evaluator="mine", batch=5)
    assert made.actions == 4
    with pytest.raises(UnknownNameError, match=r"accepted: .*mine"):
        make_evaluator(small.spec, None, evaluator="mein")


def test_entries_of_the_plugin_host_are_makers(small, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    from variant_ai.plugins import EvaluatorEntry

    entry = EvaluatorEntry(
        "mine", "variant_ai.core.inference.choosing.evaluator_factory:make_uniform"
    )
    monkeypatch.setitem(EVALUATORS, "mine", entry.make)
    made = make_evaluator(small.spec, None, evaluator="mine")
    assert isinstance(made, UniformEvaluator)


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evaluator", "message"),
    [
        ("onxx", "did you mean 'onnx'"),
        ("onnx@int7", "unknown precision 'int7'"),
        ("onnx@bf16", "accepted: fp16, fp32, int8"),
        ("onnx@int8", "variant-ai export .* --precision int8 -o .*model-int8.onnx"),
        ("check:onnx", "check compares two"),
        ("torch", "its metadata does not describe the net"),
    ],
)
def test_rejected_names(small, evaluator: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(VariantAIError, match=message):
        make_evaluator(small.spec, small.onnx, evaluator=evaluator)


@pytest.mark.parametrize("evaluator", ["auto", "onnx", "openvino", "torch"])
def test_a_net_is_needed(small, evaluator: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(VariantAIError, match="no model was given"):
        make_evaluator(small.spec, None, evaluator=evaluator)


@pytest.mark.parametrize("evaluator", ["auto", "onnx", "torch"])
def test_nets_of_other_variants_are_rejected(small, evaluator: str) -> None:  # type: ignore[no-untyped-def]
    other = load_spec(builtin_specs()["crazyhouse"])
    model = small.run if evaluator == "torch" else small.onnx
    with pytest.raises(DataError, match="a net for minixiangqi, not for crazyhouse"):
        make_evaluator(other, model, evaluator=evaluator)


def test_nets_of_another_encoder_are_rejected(small, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    model = onnx.load(str(small.onnx))
    for entry in model.metadata_props:
        if entry.key == "variant_ai.encoder_version":
            entry.value = "99"
    (tmp_path / "m.onnx").write_bytes(serialised(model))
    with pytest.raises(DataError, match="version 99 of the encoder"):
        make_evaluator(small.spec, tmp_path / "m.onnx", evaluator="onnx")


@pytest.mark.parametrize("share", [0.0, 0.2, 0.9, 0.99999])
def test_cut_off_files(small, tmp_path: Path, share: float) -> None:  # type: ignore[no-untyped-def]
    content = small.onnx.read_bytes()
    path = tmp_path / "cut.onnx"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match="cut off after"):
        make_evaluator(small.spec, path)


def test_other_files(small, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "text.onnx"
    path.write_text("not a model\n" * 30)
    with pytest.raises(DataError, match="is not a usable ONNX model"):
        make_evaluator(small.spec, path)
    with pytest.raises(DataError, match="no such model file"):
        make_evaluator(small.spec, tmp_path / "none.onnx")
    with pytest.raises(DataError, match=r"holds no net: neither model\.onnx nor a checkpoint"):
        make_evaluator(small.spec, tmp_path, evaluator="onnx")
    (tmp_path / "checkpoints/step-00000001").mkdir(parents=True)
    with pytest.raises(DataError, match=r"has no model\.onnx; write one with"):
        make_evaluator(small.spec, tmp_path, evaluator="onnx")


def test_metadata_is_what_onnx_reads(small) -> None:  # type: ignore[no-untyped-def]
    model = onnx.load(str(small.onnx))
    known = {p.key.removeprefix("variant_ai."): p.value for p in model.metadata_props}
    assert known.pop("checksum")
    assert read_model_file(small.onnx).metadata == known
    assert find_model_file(small.run).path == small.onnx


@pytest.mark.parametrize("evaluator", ["onnx", "openvino"])
def test_nan_and_infinity_are_rejected(small, tmp_path: Path, evaluator: str) -> None:  # type: ignore[no-untyped-def]
    if evaluator == "openvino":
        pytest.importorskip("openvino")
    model = onnx.load(str(small.onnx))
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.ndim == 4:
            tensor.CopyFrom(numpy_helper.from_array(np.full_like(array, np.nan), tensor.name))
            break
    path = tmp_path / "nan.onnx"
    path.write_bytes(serialised(model))
    made = make_evaluator(small.spec, path, evaluator=evaluator)
    with pytest.raises(DataError, match=r"nan\.onnx: .*NaN or infinity for 3 of 3 positions"):
        made.evaluate(small.planes[:3])


@pytest.mark.parametrize("evaluator", ["auto", "onnx", "torch", "openvino", "uniform"])
def test_an_unknown_device_is_named(small, evaluator: str) -> None:  # type: ignore[no-untyped-def]
    log: list[str] = []
    with pytest.raises(
        UnknownNameError, match=r"unknown device 'gpu'.*cpu, cuda, cuda:N, tensorrt"
    ):
        make_evaluator(
            small.spec, small.onnx, evaluator=evaluator, device="cpu,gpu", log=log.append
        )
    assert not log
