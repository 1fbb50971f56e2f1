"""ONNX export: one file for any batch size, with the metadata that evaluators check.

The file has one input, `planes` float32 [batch, C, H, W], and two outputs: `value` float32
[batch, 1] in [-1, 1] from the mover's side, and `policy` float32 [batch, A], logits; the caller takes
the softmax over the legal moves, which the network does not know. A net with auxiliary heads also has
`wdl` float32 [batch, 3], probabilities of win, draw and loss, and `plies_left` float32 [batch, 1].
"""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from variant_ai.core.errors import DataError
from variant_ai.core.nets.description import evaluating
from variant_ai.core.nets.interface import NetShape
from variant_ai.core.nets.network import auxiliary_outputs, outputs_of
from variant_ai.core.nets.onnx_files import METADATA_PREFIX, cpu_session, serialised, write_onnx

OPSET = 17
INPUT = "planes"
OUTPUTS = ("value", "policy")
TOLERANCE = 1e-4
"""Largest allowed difference between the outputs of onnxruntime and torch, for outputs up to 1; relative
for greater ones, because of fp32 rounding."""
FORMAT_VERSION = "1"


class _Outputs(nn.Module):
    """The network with matrices as outputs: value and plies left as columns, and win, draw and loss
    as probabilities."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.names = [*OUTPUTS, *auxiliary_outputs(net)]

    def forward(self, planes: Tensor) -> tuple[Tensor, ...]:
        outputs = outputs_of(self.net, planes).by_name().values()
        return tuple(output.unsqueeze(1) if output.dim() == 1 else output for output in outputs)


def export_onnx(
    module: nn.Module,
    path: str | os.PathLike[str],
    metadata: Mapping[str, Any],
    *,
    shape: NetShape,
) -> float:
    """Write the net to `path` (completely or not at all) and compare the file with the net.

    Args:
        metadata: stored under the prefix `variant_ai.`; strings unchanged, anything else as JSON.
            Evaluators expect: variant, spec_hash, encoding_hash, net, head.
        shape: of the net's inputs and outputs.

    Returns the largest difference of any output between onnxruntime and torch (`difference_from`).
    Raises DataError if it exceeds 1e-4 or is not a number; then no file is written.

    torch's newer exporter writes opset 20 and splits the weights into a second file; the
    TorchScript one writes opset 17 and a single file, and folds batch norms into convolutions.
    """
    samples = sample_planes(shape).to(next(module.parameters()).device)
    with evaluating(module):
        net = _Outputs(module).eval()
        model = onnx.load_from_string(_trace(net, samples))
        write_metadata(model, metadata)
        onnx.checker.check_model(model, full_check=True)
        content = serialised(model)
        difference = difference_from(module, content, samples)
    if not difference <= TOLERANCE:
        raise DataError(
            f"{path}: the exported file differs from the net by {difference:.2g} "
            f"(at most {TOLERANCE:g} is allowed); not written"
        )
    write_onnx(content, Path(path))
    return difference


def _trace(net: _Outputs, samples: Tensor) -> bytes:
    buffer: Any = io.BytesIO()  # accepted, although the signature has only paths
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch recommends its other exporter
        torch.onnx.export(
            net,
            (samples,),
            buffer,
            input_names=[INPUT],
            output_names=net.names,
            opset_version=OPSET,
            dynamic_axes={name: {0: "batch"} for name in (INPUT, *net.names)},
            dynamo=False,
        )
    content: bytes = buffer.getvalue()
    return content


def write_metadata(model: onnx.ModelProto, metadata: Mapping[str, Any]) -> None:
    """Replace the model's metadata under the project's prefix by `metadata`."""
    kept = [p for p in model.metadata_props if not p.key.startswith(METADATA_PREFIX)]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    for key, value in {"format": FORMAT_VERSION, **metadata}.items():
        # Keys are not sorted: in a spec, their order has a meaning.
        text = value if isinstance(value, str) else json.dumps(value)
        model.metadata_props.add(key=METADATA_PREFIX + key, value=text)


def sample_planes(shape: NetShape) -> Tensor:
    """Random planes [3, C, H, W] for comparing nets, always the same."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(3, shape.planes, shape.height, shape.width, generator=generator)


def difference_from(module: nn.Module, content: bytes, planes: Tensor) -> float:
    """Largest difference of any output between an ONNX file in onnxruntime and the same net in
    evaluation mode, over planes [B, C, H, W]; relative to the greatest number of an output that exceeds
    ±1. NaN if an output is not a number."""
    with evaluating(module), torch.no_grad():
        expected = [output.cpu().numpy() for output in _Outputs(module).eval()(planes)]
    session = cpu_session(content)
    actual = session.run(None, {INPUT: planes.cpu().numpy()})  # all outputs of the file
    differences = [
        np.abs(a - e).max() / max(1.0, np.abs(e).max())
        for a, e in zip(actual, expected, strict=True)
    ]
    return float(np.max(differences))
