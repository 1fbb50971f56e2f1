"""The outputs of a net's layers, for those who want to look into it.

The ONNX file is run by onnxruntime with its inner tensors as outputs, so that nets of any origin can
be looked into.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import DataError
from variant_ai.core.inference.model_file import read_model_file

if TYPE_CHECKING:
    from onnx import ModelProto

ACTIVATIONS = ("Relu", "LeakyRelu", "PRelu", "Clip", "Elu", "Gelu", "HardSwish", "Mish", "Softplus")
"""ONNX operators that end a layer."""


@dataclass(frozen=True)
class NetLayer:
    """A layer whose output has a value for each square."""

    name: str
    """Name in the file, such as `tower/tower.0/relu`."""
    channels: int
    tensor: str


class LayerOutputs:
    """The layers of one net."""

    def __init__(self, path: str | os.PathLike[str], ranks: int, files: int) -> None:
        """Raises DataError: no such file, not a model, or no layer of the board's size."""
        import onnx

        from variant_ai.core.nets.onnx_files import cpu_session

        source = read_model_file(Path(path)).path
        try:
            model = onnx.shape_inference.infer_shapes(onnx.load(source))
            self.layers = _board_layers(model, ranks, files)
            for layer in self.layers:
                model.graph.output.append(onnx.ValueInfoProto(name=layer.tensor))
            self._session = cpu_session(model.SerializeToString(), threads=1)
        except Exception as error:  # onnx and onnxruntime raise classes of their own
            raise DataError(f"{source}: its layers cannot be shown: {error}") from error
        if not self.layers:
            raise DataError(
                f"{source}: has no layer with a value for each of {files} x {ranks} squares"
            )

    def evaluate(self, planes: NDArray[np.float32], layer: int) -> NDArray[np.float32]:
        """Return the output of a layer (its index) for one position, float32 [channels, H, W].

        planes: [1, C, H, W], as an evaluator takes them.
        """
        given = self._session.get_inputs()[0]
        batch = given.shape[0]
        if isinstance(batch, int) and batch > 1:  # a file of a fixed batch
            planes = np.repeat(planes, batch, axis=0)
        (output,) = self._session.run([self.layers[layer].tensor], {given.name: planes})
        result: NDArray[np.float32] = output[0].astype(np.float32)
        return result


def _board_layers(model: ModelProto, ranks: int, files: int) -> list[NetLayer]:
    """Return the activations with a value for each square; of a net that has none, all such tensors."""
    shapes = {
        value.name: [size.dim_value for size in value.type.tensor_type.shape.dim]
        for value in model.graph.value_info
    }
    found = [
        (node.op_type, NetLayer(_layer_name(output), shapes[output][1], output))
        for node in model.graph.node
        for output in node.output
        if len(shapes.get(output, ())) == 4 and shapes[output][2:] == [ranks, files]
    ]
    return [layer for kind, layer in found if kind in ACTIVATIONS] or [layer for _, layer in found]


def _layer_name(tensor: str) -> str:
    """Name of the module that made a tensor: `/tower/tower.0/relu/Relu_output_0` is `tower/tower.0/relu`."""
    parts = tensor.strip("/").split("/")
    return "/".join(parts[:-1]) or tensor
