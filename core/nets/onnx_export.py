"""ONNX export: one file, any batch size, and the metadata an evaluator checks.

The file has one input, `planes` float32 [batch, C, H, W], and two outputs, `value` float32
[batch, 1] in [-1, 1] from the mover's side and `policy` float32 [batch, A], logits: the softmax is
taken over the legal moves, which the network does not know. A net with the heads for them has
`wdl` float32 [batch, 3], probabilities of win, draw and loss, and `plies_left` float32 [batch, 1]
as well.
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
from variant_ai.core.nets.checksums import METADATA_PREFIX, serialised
from variant_ai.core.nets.interface import NetShape
from variant_ai.core.nets.network import Network, outputs_of

OPSET = 17
INPUT = "planes"
OUTPUTS = ("value", "policy")
TOLERANCE = 1e-4
"""Largest difference allowed between onnxruntime's output and torch's, of outputs up to 1; of greater
ones in proportion, as fp32 rounds."""
FORMAT_VERSION = "1"


class _Outputs(nn.Module):
    """The network with every output a matrix: value and plies left as columns, and win, draw and
    loss as probabilities."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.names = [*OUTPUTS, *(net.auxiliary if isinstance(net, Network) else ())]

    def forward(self, planes: Tensor) -> tuple[Tensor, ...]:
        said = outputs_of(self.net, planes)
        outputs = [said.value.float().unsqueeze(1), said.policy.float()]
        if said.wdl is not None:
            outputs.append(said.wdl.float().softmax(1))
        if said.plies_left is not None:
            outputs.append(said.plies_left.float().unsqueeze(1))
        return tuple(outputs)


def export_onnx(
    module: nn.Module,
    path: str | os.PathLike[str],
    metadata: Mapping[str, Any],
    *,
    shape: NetShape | None = None,
) -> float:
    """Writes the net to `path` (whole or not at all) and compares the file with the net.

    Args:
        metadata: stored under the prefix `variant_ai.`; strings as they are, anything else as
            JSON. Expected by evaluators: variant, spec_hash, encoding_hash, net, head.
        shape: of a net that does not carry one itself.

    Returns the largest difference of any output between onnxruntime and torch (`difference_from`).
    Raises DataError where it exceeds 1e-4 or is no number: such a file is not written.

    torch's newer exporter writes opset 20 and splits the weights into a second file; the
    TorchScript one writes opset 17 and a single file, and folds batch norms into convolutions.
    """
    if shape is None:
        carried = getattr(module, "shape", None)
        if not isinstance(carried, NetShape):
            raise TypeError("export_onnx needs the shape of a net that does not carry it")
        shape = carried
    training = module.training
    net = _Outputs(module).eval()
    samples = sample_planes(shape).to(next(module.parameters()).device)
    try:
        model = onnx.load_from_string(_trace(net, samples))
        write_metadata(model, metadata)
        onnx.checker.check_model(model, full_check=True)
        content = serialised(model)
        difference = difference_from(module, content, samples)
    finally:
        module.train(training)
    if not difference <= TOLERANCE:
        raise DataError(
            f"{path}: the exported file differs from the net by {difference:.2g} "
            f"(at most {TOLERANCE:g} is allowed); not written"
        )
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    try:
        part.write_bytes(content)
        part.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:
        part.unlink(missing_ok=True)
    return difference


def _trace(net: _Outputs, samples: Tensor) -> bytes:
    buffer: Any = io.BytesIO()  # accepted, though its signature speaks of paths only
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces that it prefers its other exporter
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
    """Replaces the model's own metadata by `metadata` under the project's prefix."""
    kept = [p for p in model.metadata_props if not p.key.startswith(METADATA_PREFIX)]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    for key, value in {"format": FORMAT_VERSION, **metadata}.items():
        text = (
            value if isinstance(value, str) else json.dumps(value)
        )  # in its order, which in a spec is meaning
        model.metadata_props.add(key=METADATA_PREFIX + key, value=text)


def sample_planes(shape: NetShape) -> Tensor:
    """Random planes [3, C, H, W], the same every time, to compare nets by."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(3, shape.planes, shape.height, shape.width, generator=generator)


def difference_from(module: nn.Module, content: bytes, planes: Tensor) -> float:
    """The largest difference of any output between an ONNX file run by onnxruntime and the net in
    evaluation, which are the same net, over planes [B, C, H, W]; of an output that goes beyond ±1 as a
    share of its greatest number. NaN where an output is no number."""
    import onnxruntime

    with torch.no_grad():
        expected = [output.cpu().numpy() for output in _Outputs(module).eval()(planes)]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    actual = session.run(None, {INPUT: planes.cpu().numpy()})  # all outputs, as the file has them
    apart = [
        np.abs(a - e).max() / max(1.0, np.abs(e).max())
        for a, e in zip(actual, expected, strict=True)
    ]
    return float(np.max(apart))
