"""The torch evaluator of ONNX files, and its CUDA graphs where there is a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.inference import EvaluatorRequest, make_evaluator
from variant_ai.core.inference.choosing import fastest_evaluator as auto
from variant_ai.core.spec import builtin_specs, load_spec

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
REPOSITORY = Path(__file__).parents[2]
NETS = {"dobutsu": "variants/nets/dobutsu.onnx", "crazyhouse": "variants/crazyhouse/model.onnx"}
SIZES = (1, 3, 4, 7, 16, 37)


@pytest.fixture(params=list(NETS))
def packaged(request: pytest.FixtureRequest) -> Any:
    spec = load_spec(builtin_specs()[request.param])
    path = REPOSITORY / NETS[request.param]
    with make_evaluator(spec, path, evaluator="onnx") as onnx:
        rng = np.random.default_rng(1)
        shape = (max(SIZES), *onnx.planes_shape)
        planes = (rng.random(shape) < 0.2).astype(np.float32)
        yield spec, path, planes, onnx.evaluate(planes)


def agree(packaged: Any, tolerance: float, **how: Any) -> None:
    spec, path, planes, expected = packaged
    with make_evaluator(spec, path, evaluator="torch", batch=16, **how) as net:
        assert net.notes == ()
        for size in SIZES:
            found = net.evaluate(planes[:size])
            np.testing.assert_allclose(found.value, expected.value[:size], atol=tolerance)
            np.testing.assert_allclose(found.policy, expected.policy[:size], atol=20 * tolerance)


def test_an_onnx_file_in_torch(packaged: Any) -> None:
    agree(packaged, 1e-4)


def test_a_folder_with_nothing_but_an_onnx_file(small, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "model.onnx").write_bytes(small.onnx.read_bytes())
    with pytest.raises(DataError, match="its metadata does not describe the net"):
        make_evaluator(small.spec, tmp_path, evaluator="torch")


def test_torch_is_asked_where_onnxruntime_has_no_gpu(small, monkeypatch: Any) -> None:  # type: ignore[no-untyped-def]
    from variant_ai.core.inference.backends import onnx_backend

    monkeypatch.setattr(onnx_backend, "devices", lambda: ["cpu"])
    for precision in (None, "fp32", "bf16", "fp16"):
        request = EvaluatorRequest(small.spec, small.onnx, device="cuda", precision=precision)
        found, _ = auto._contenders(request)
        assert [(choice.evaluator, choice.device) for choice in found] == [("torch", "cuda")]
    with pytest.raises(DataError, match="no fp16 one beside it"):
        auto._contenders(EvaluatorRequest(small.spec, small.onnx, precision="fp16"))


def test_a_missing_gpu_is_an_error_before_anything_is_announced(small, monkeypatch: Any) -> None:  # type: ignore[no-untyped-def]
    from variant_ai.core.inference.backends import onnx_backend

    monkeypatch.setattr(onnx_backend, "devices", lambda: ["cpu"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    log: list[str] = []
    for device in ("cuda", "cuda:0,cuda:1"):
        with pytest.raises(VariantAIError, match="not available here: torch sees no GPU; use cpu"):
            make_evaluator(small.spec, small.onnx, device=device, log=log.append)
    assert not log


@needs_gpu
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 2e-2), ("fp16", 2e-2)])
def test_graphs_return_the_numbers_of_the_file(
    packaged: Any, precision: str, tolerance: float
) -> None:
    agree(packaged, tolerance, device="cuda", precision=precision)


@needs_gpu
def test_pieces_and_nets_that_cannot_be_recorded(packaged: Any, monkeypatch: Any) -> None:
    spec, path, planes, expected = packaged
    with make_evaluator(spec, path, evaluator="torch", batch=16, device="cuda") as net:
        net.evaluate_in_pieces(4)
        np.testing.assert_allclose(net.evaluate(planes).value, expected.value, atol=2e-2)

    def fails(*given: Any, **how: Any) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "graph", fails)
    with make_evaluator(spec, path, evaluator="torch", batch=4, device="cuda") as net:
        assert "without CUDA graphs" in net.notes[0]
        np.testing.assert_allclose(net.evaluate(planes).value, expected.value, atol=2e-2)
