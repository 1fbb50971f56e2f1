"""A small net with random weights, as a file and as a checkpoint, and planes to evaluate."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from variant_ai.core.encoding import ENCODER_VERSION, Encoder
from variant_ai.core.nets import configure_for
from variant_ai.core.nets.onnx_export import export_onnx
from variant_ai.core.spec import VariantSpec, builtin_specs, encoding_hash, load_spec


@dataclass(frozen=True)
class SmallNet:
    spec: VariantSpec
    net: torch.nn.Module
    onnx: Path
    run: Path
    """A run directory with the exported net and one checkpoint of the same step."""
    planes: NDArray[np.float32]
    """[11, C, H, W]."""
    metadata: dict[str, Any]


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallNet:
    spec = load_spec(builtin_specs()["minixiangqi"])
    encoder = Encoder(spec)
    config = configure_for(
        "risev2-mobile-small",
        encoder,
        blocks=2,
        channels=16,
        pool="global",
        wdl=True,
        plies_left=True,
    )
    torch.manual_seed(3)
    net = config.build()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_mean, -0.5, 0.5)
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)
    run = tmp_path_factory.mktemp("run")
    metadata = {
        "variant": spec.variant,
        "encoding_hash": encoding_hash(spec),
        "encoder_version": str(ENCODER_VERSION),
        "net": config.title,
        "head": "map",
        "steps": "7",
    }
    export_onnx(net, run / "model.onnx", metadata, shape=config.shape)
    checkpoint = run / "checkpoints" / "step-00000007"
    checkpoint.mkdir(parents=True)
    save_file(
        {name: t.contiguous() for name, t in net.state_dict().items()},
        checkpoint / "model.safetensors",
    )
    said = {
        "variant": spec.variant,
        "encoding_hash": encoding_hash(spec),
        "net": config.model_dump(mode="json"),
    }
    (checkpoint / "config.json").write_text(json.dumps(said))
    rng = np.random.default_rng(5)
    asked = (rng.random((11, *encoder.shape)) < 0.2).astype(np.float32)
    return SmallNet(spec, net.eval(), run / "model.onnx", run, asked, metadata)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Choices and compiled nets of the tests stay out of the user's cache folder."""
    from variant_ai.core.inference.backends import onnx_backend as onnx
    from variant_ai.core.inference.backends import openvino_backend as openvino
    from variant_ai.core.inference.choosing import saved_choices as kept

    folder = tmp_path_factory.mktemp("cache")

    def own(name: str) -> Path | None:
        (folder / name).mkdir(exist_ok=True)
        return folder / name

    for module in (kept, onnx, openvino):
        monkeypatch.setattr(module, "cache_folder", own)
