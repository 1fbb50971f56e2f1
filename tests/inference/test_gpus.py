"""GPUs through onnxruntime and torch, where there is none: what is asked of the libraries, and what
is log when they fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper

from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.inference import EvaluatorRequest, OnnxEvaluator, make_evaluator
from variant_ai.core.inference.backends.onnx_backend import PROVIDERS
from variant_ai.core.inference.backends.torch_backend import TorchEvaluator
from variant_ai.core.inference.choosing import evaluator_timing as measure
from variant_ai.core.inference.choosing import fastest_evaluator as auto
from variant_ai.core.nets.onnx_files import serialised


class Machine:
    """What an onnxruntime built for GPUs does, computing on the CPU."""

    def __init__(self) -> None:
        self.real = onnxruntime.InferenceSession
        self.fault = ""
        """Raised where a GPU is asked for."""
        self.silent = False
        """Whether the GPU is left out without a word."""
        self.asked: list[dict[str, Any]] = []
        self.sizes: list[int] = []

    def session(self, given: Any, options: Any, *, providers: Any, enable_fallback: int = 1) -> Any:
        asked = [p if isinstance(p, tuple) else (p, {}) for p in providers]
        self.asked.append(dict(asked) | {"enable_fallback": enable_fallback})
        on_gpu = asked[0][0] != PROVIDERS["cpu"]
        if on_gpu and self.fault:
            raise RuntimeError(self.fault)
        made = self.real(given, options, providers=[PROVIDERS["cpu"]])
        present = [PROVIDERS["cpu"]] if self.silent else [name for name, _ in asked]
        run = made.run

        def counted(outputs: Any, inputs: dict[str, Any], *more: Any) -> Any:
            self.sizes.append(len(next(iter(inputs.values()))))
            return run(outputs, inputs, *more)

        made.run, made.get_providers = counted, lambda: present
        return made


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(onnxruntime, "InferenceSession", made.session)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: list(PROVIDERS.values()))
    return made


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "tensorrt"])
def test_batches_of_a_gpu_have_sizes_it_has_met(small, machine: Machine, device: str) -> None:  # type: ignore[no-untyped-def]
    with OnnxEvaluator(small.onnx, small.spec, device=device, batch=6) as net:
        assert machine.sizes == [6, 1, 2, 4]  # none outside those before it but the first two
        net.evaluate(small.planes[:5])
        assert machine.sizes[4:] == [6]
        assert net.describe().endswith(f"on {device if ':' in device else device + ':0'}")
    (asked,) = machine.asked
    assert asked["enable_fallback"] == 0
    assert asked["CUDAExecutionProvider"]["device_id"] == int(device == "cuda:1")
    assert asked["CUDAExecutionProvider"]["cudnn_conv_algo_search"] == "HEURISTIC"


def test_compiled_nets_are_distinguished_by_their_weights(  # type: ignore[no-untyped-def]
    small, machine: Machine, tmp_path: Path
) -> None:
    other = tmp_path / small.onnx.name
    model = onnx.load(small.onnx)
    weight = max(model.graph.initializer, key=lambda one: np.prod(one.dims))
    weight.CopyFrom(numpy_helper.from_array(-numpy_helper.to_array(weight), weight.name))
    other.write_bytes(serialised(model))
    for path in (small.onnx, other, small.onnx):
        OnnxEvaluator(path, small.spec, device="tensorrt", batch=1).close()
    told = [asked["TensorrtExecutionProvider"] for asked in machine.asked]
    names = [options["trt_engine_cache_prefix"] for options in told]
    assert names[0] == names[2] != names[1]


@pytest.mark.parametrize("silent", [False, True])
def test_a_gpu_that_does_not_work_is_not_a_processor(  # type: ignore[no-untyped-def]
    small, machine: Machine, silent: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.silent, machine.fault = silent, "" if silent else "CUDA failure 101: invalid device"
    with pytest.raises(VariantAIError, match=r"does not run it on cuda:5: .*CUDA") as caught:
        OnnxEvaluator(small.onnx, small.spec, device="cuda:5")
    assert not isinstance(caught.value, DataError)  # nothing is wrong with the file
    assert capsys.readouterr().out == ""


def test_int8_is_for_processors(small, machine: Machine, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "int8.onnx"
    model = onnx.load(small.onnx)
    log = {prop.key: prop.value for prop in model.metadata_props}
    onnx.helper.set_model_props(model, log | {"variant_ai.precision": "int8"})
    path.write_bytes(serialised(model))
    with pytest.raises(DataError, match="TensorRT runs fp32 files"):
        OnnxEvaluator(path, small.spec, device="tensorrt")


def test_auto_goes_on_with_what_works(  # type: ignore[no-untyped-def]
    small, machine: Machine, gpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: Any, **how: Any) -> Any:
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(torch.nn.Module, "to", broken)
    monkeypatch.setattr(
        auto,
        "interleaved",
        lambda nets, batch, **how: {n: measure.Timing(1, 1, 1, 1, 1) for n in nets},
    )
    log: list[str] = []
    with make_evaluator(small.spec, small.run, device="cuda", batch=2, log=log.append) as made:
        assert made.name == "onnx"
    assert any("out of memory" in text for text in log)


def test_half_precision_on_gpus(small, machine: Machine, gpus: None) -> None:  # type: ignore[no-untyped-def]
    """TensorRT makes fp16 of an fp32 file, and torch of a checkpoint."""
    how: dict[str, Any] = {"precision": "fp16", "batch": 1}
    with make_evaluator(small.spec, small.onnx, device="tensorrt", **how) as made:
        assert made.precision == "fp16"
    assert machine.asked[-1]["TensorrtExecutionProvider"]["trt_fp16_enable"] is True
    request = EvaluatorRequest(small.spec, small.run, device="cuda", precision="fp16")
    found, _ = auto._contenders(request)
    assert [(choice.evaluator, choice.device) for choice in found] == [("torch", "cuda")]
    with pytest.raises(DataError, match="no fp16 one beside it"):
        make_evaluator(small.spec, small.run, device="cpu", **how)


def test_gpus_of_torch(small, gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(VariantAIError, match="torch sees 2 GPUs"):
        TorchEvaluator.load(small.run, small.spec, device="cuda:2")

    def full(*given: Any, **how: Any) -> Any:
        raise RuntimeError("CUDA error: out of memory\nmore about it")

    monkeypatch.setattr(torch.nn.Module, "to", full)
    with pytest.raises(
        VariantAIError, match=r"does not run it on cuda:1: CUDA error: out of memory$"
    ):
        TorchEvaluator.load(small.run, small.spec, device="cuda:1")


def test_the_numbers_are_those_of_the_processor(small, machine: Machine) -> None:  # type: ignore[no-untyped-def]
    with (
        OnnxEvaluator(small.onnx, small.spec) as plain,
        OnnxEvaluator(small.onnx, small.spec, device="cuda", batch=4) as padded,
    ):
        one, other = plain.evaluate(small.planes), padded.evaluate(small.planes)
    np.testing.assert_allclose(one.policy, other.policy, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-4, atol=1e-5)
