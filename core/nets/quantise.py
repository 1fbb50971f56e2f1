"""int8 and fp16 files from fp32 ones, by rewriting the ONNX graph; no torch.

int8 is static: weights become int8 with a scale for each output channel, activations uint8 with a
scale and a zero point for each tensor, measured on positions of real games. The file has pairs of
QuantizeLinear and DequantizeLinear around what is to run in int8 (onnxruntime and OpenVINO fuse
them), so that it can be turned back into a float net (`float_model`) on a processor that computes
int8 wrongly.

The convolutions, and the sums and products between them, run in int8. The small matrix products of
attention and value head stay in fp32, and so do all nodes that the caller names, e.g. those of
`SPARING` for nets that would lose too much accuracy.

onnxruntime's own quantiser removes ReLUs, which `float_model` needs, and its fp16 converter writes
nodes with equal names for nets with a win-draw-loss head.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from variant_ai.core.errors import DataError
from variant_ai.core.nets.onnx_files import cpu_session, read_onnx

QUANTISED = ("Conv", "Add", "Mul")
"""Operations that run in int8."""
HALVED = (
    "Conv",
    "Add",
    "Mul",
    "Relu",
    "BatchNormalization",
    "Flatten",
    "AveragePool",
    "ReduceMean",
)
"""Operations that run in fp16."""
SUFFIX_Q, SUFFIX_DQ, SUFFIX_W = "_quantised", "_rounded", "_int8"


@dataclass(frozen=True)
class Range:
    """Range of an activation; it contains 0."""

    low: float
    high: float

    @property
    def scale(self) -> float:
        return max((self.high - self.low) / 255, 1e-8)

    @property
    def zero(self) -> int:
        """The uint8 that stands for 0."""
        return int(np.clip(round(-self.low / self.scale), 0, 255))


def clean(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy a model so that every constant is a separate initialiser with one reader.

    torch shares equal biases between layers through Identity nodes, which would make it impossible to
    quantise them separately.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    alias: dict[str, str] = {}
    nodes = []
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensor = TensorProto()
            tensor.CopyFrom(node.attribute[0].t)
            tensor.name = node.output[0]
            constants[tensor.name] = tensor
        elif node.op_type == "Identity" and alias.get(node.input[0], node.input[0]) in constants:
            alias[node.output[0]] = alias.get(node.input[0], node.input[0])
        else:
            nodes.append(node)
    kept: dict[str, TensorProto] = {}
    for node in nodes:
        for i, name in enumerate(node.input):
            source = alias.get(name, name)
            if source not in constants:
                continue
            own = source if source not in kept else f"{source}_{len(kept)}"
            tensor = TensorProto()
            tensor.CopyFrom(constants[source])
            tensor.name = own
            kept[own] = tensor
            node.input[i] = own
    _rebuild(graph, nodes, kept)
    return copy


def quantise(
    model: onnx.ModelProto,
    batches: Iterable[NDArray[np.float32]],
    *,
    exclude: Iterable[str] = (),
) -> onnx.ModelProto:
    """Make an int8 model whose outputs are about those of the fp32 model.

    Args:
        batches: planes float32 [B, C, H, W] of real positions, at least a few hundred in all.
        exclude: names of nodes that stay in fp32.

    Raises DataError if the model has nothing to quantise.
    """
    cleaned = clean(model)
    chosen = _chosen(cleaned, frozenset(exclude))
    if not chosen:
        raise DataError("the net has no convolution that could run in int8")
    edges = _edges(cleaned, chosen)
    ranges = calibrate(cleaned, edges, batches)
    return _insert(cleaned, chosen, ranges)


def last_layers(model: onnx.ModelProto) -> list[str]:
    """Names of the convolutions that are separated from an output only by reshaping."""
    makers = {name: node for node in model.graph.node for name in node.output}
    last = []
    for output in model.graph.output:
        node = makers.get(output.name)
        while node is not None and node.op_type in ("Flatten", "Reshape", "Cast", "Squeeze"):
            node = makers.get(node.input[0])
        if node is not None and node.op_type == "Conv":
            last.append(node.name)
    return last


def sums(model: onnx.ModelProto) -> list[str]:
    """Names of the sums; without them the shortcuts of the tower are never rounded."""
    return [node.name for node in model.graph.node if node.op_type == "Add"]


SPARING: tuple[tuple[str, Callable[[onnx.ModelProto], list[str]]], ...] = (
    ("the last layer of the policy", last_layers),
    ("the sums of the shortcuts", sums),
)
"""(description, function that finds the nodes) of the layers to keep in fp32 if int8 loses too much
accuracy, in this order: the first makes the net a fifth slower, both a third."""


def float_model(path: str | os.PathLike[str]) -> bytes:
    """Turn an int8 file back into a float net, as the bytes of a model.

    Weights keep their rounding to int8, activations are no longer rounded: the outputs are closer to
    the original fp32 net than those of the int8 file. Raises DataError if the file is not a model.
    """
    model = read_onnx(path)
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    alias: dict[str, str] = {}
    nodes = []
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in constants:
            numbers = numpy_helper.to_array(constants[node.input[0]]).astype(np.float32)
            scale = numpy_helper.to_array(constants[node.input[1]])
            if scale.ndim:
                scale = scale.reshape(-1, *[1] * (numbers.ndim - 1))
            tensor = numpy_helper.from_array((numbers * scale).astype(np.float32), node.output[0])
            constants[tensor.name] = tensor
        elif node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            alias[node.output[0]] = alias.get(node.input[0], node.input[0])
        else:
            nodes.append(node)
    for node in nodes:
        for i, name in enumerate(node.input):
            node.input[i] = alias.get(name, name)
    _rebuild(graph, nodes, constants)
    content: bytes = model.SerializeToString()
    return content


def halve(model: onnx.ModelProto) -> onnx.ModelProto:
    """Make an fp16 model with fp32 input and outputs, for GPUs.

    The matrix products stay in fp32 (those of the value head end in tanh); the convolutions and
    everything between them become fp16.
    """
    copy = clean(model)
    graph = copy.graph
    makers = {name: node for node in graph.node for name in node.output}
    half = {node.name for node in graph.node if node.op_type in HALVED}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    casts: dict[tuple[str, int], str] = {}
    nodes: list[onnx.NodeProto] = []

    def is_half(name: str) -> bool:
        maker = makers.get(name)
        return maker is not None and maker.name in half

    def cast(name: str, to: int) -> str:
        if (name, to) not in casts:
            casts[name, to] = f"{name}_{'fp16' if to == TensorProto.FLOAT16 else 'fp32'}"
            nodes.append(helper.make_node("Cast", [name], [casts[name, to]], to=to))
        return casts[name, to]

    outputs = {value.name for value in graph.output}
    for node in graph.node:
        for i, name in enumerate(node.input):
            if node.name in half:
                if name in constants:
                    array = numpy_helper.to_array(constants[name])
                    if array.dtype == np.float32:
                        constants[name] = numpy_helper.from_array(array.astype(np.float16), name)
                elif not is_half(name):
                    node.input[i] = cast(name, TensorProto.FLOAT16)
            elif is_half(name):
                node.input[i] = cast(name, TensorProto.FLOAT)
        nodes.append(node)
        for i, name in enumerate(node.output):
            if name in outputs and node.name in half:
                node.output[i] = f"{name}_half"
                nodes.append(
                    helper.make_node("Cast", [node.output[i]], [name], to=TensorProto.FLOAT)
                )
    _rebuild(graph, nodes, constants)
    del graph.value_info[:]
    onnx.checker.check_model(copy, full_check=True)
    return copy


# --- choice of nodes ------------------------------------------------------------------------------


def _chosen(model: onnx.ModelProto, exclude: frozenset[str]) -> list[onnx.NodeProto]:
    """Nodes that run in int8: convolutions, and sums and products of two activations."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [
        node
        for node in model.graph.node
        if node.op_type in QUANTISED
        and node.name not in exclude
        and (
            node.input[1] in constants
            if node.op_type == "Conv"
            else not constants & set(node.input)
        )
    ]


def _edges(model: onnx.ModelProto, chosen: Sequence[onnx.NodeProto]) -> list[str]:
    """Activations that are rounded: everything that a chosen node reads or writes.

    A ReLU after a node belongs to it: the output of the ReLU is rounded.
    """
    relu = _relus(model)
    edges: dict[str, None] = {}
    for node in chosen:
        inputs = node.input[:1] if node.op_type == "Conv" else node.input
        for name in (*inputs, relu.get(node.output[0], node.output[0])):
            edges[name] = None
    return list(edges)


def _relus(model: onnx.ModelProto) -> dict[str, str]:
    """Activation -> output of the ReLU, if that is its only reader."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    return {
        name: nodes[0].output[0]
        for name, nodes in readers.items()
        if len(nodes) == 1 and nodes[0].op_type == "Relu"
    }


# --- ranges --------------------------------------------------------------------------------------


def calibrate(
    model: onnx.ModelProto,
    edges: Sequence[str],
    batches: Iterable[NDArray[np.float32]],
) -> dict[str, Range]:
    """Range of each activation over all positions.

    Nothing is clipped. Measured on a trained net, ranges with the least squared rounding error keep
    the net's first move less often (98.3 instead of 99.9 % of the decided positions), because the rare
    large numbers decide it.
    """
    traced = onnx.ModelProto()
    traced.CopyFrom(model)
    inputs = [value.name for value in traced.graph.input]
    _replace(
        traced.graph.output,
        [onnx.ValueInfoProto(name=name) for name in edges if name not in inputs],
    )
    session = cpu_session(traced.SerializeToString())
    names = [output.name for output in session.get_outputs()]

    low = dict.fromkeys(edges, 0.0)
    high = dict.fromkeys(edges, 0.0)
    for planes in batches:
        found: Any = session.run(names, {inputs[0]: planes})
        for name, numbers in (*zip(names, found, strict=True), (inputs[0], planes)):
            if name in low:
                low[name] = min(low[name], float(numbers.min()))
                high[name] = max(high[name], float(numbers.max()))
    return {name: Range(low[name], high[name]) for name in edges}


# --- inserting nodes -----------------------------------------------------------------------------


def _insert(
    model: onnx.ModelProto, chosen: Sequence[onnx.NodeProto], ranges: Mapping[str, Range]
) -> onnx.ModelProto:
    """Insert the pairs: edge -> Q -> DQ -> its readers, and weight and bias -> DQ -> node."""
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    relu = _relus(model)
    names = {node.name for node in chosen}
    rounded = {relu.get(node.output[0], node.output[0]) for node in chosen}
    after: dict[str, list[onnx.NodeProto]] = {}
    for name, found in ranges.items():
        pair, parameters = _pair(name, found)
        after[name] = pair
        constants.update(parameters)
    nodes: list[onnx.NodeProto] = []
    for value in graph.input:
        nodes += after.get(value.name, [])
    outputs = {value.name for value in graph.output}
    for node in graph.node:
        quantised = node.name in names
        if quantised and node.op_type == "Conv":
            nodes += _constants_of(node, ranges[node.input[0]], constants)
        for i, name in enumerate(node.input):
            # Outputs of int8 nodes exist only rounded; other edges are read unrounded by float nodes.
            if name in ranges and (quantised or name in rounded):
                node.input[i] = name + SUFFIX_DQ
        nodes.append(node)
        for name in node.output:
            if name in after and name not in outputs:
                nodes += after[name]
    _rebuild(graph, nodes, constants)
    del graph.value_info[:]
    onnx.checker.check_model(model, full_check=True)
    return model


def _pair(name: str, found: Range) -> tuple[list[onnx.NodeProto], dict[str, TensorProto]]:
    """Nodes that round an activation, and their parameters."""
    scale, zero = f"{name}_scale", f"{name}_zero"
    parameters = {
        scale: numpy_helper.from_array(np.array(found.scale, np.float32), scale),
        zero: numpy_helper.from_array(np.array(found.zero, np.uint8), zero),
    }
    quantised = name + SUFFIX_Q
    nodes = [
        helper.make_node("QuantizeLinear", [name, scale, zero], [quantised], f"{name}/Q"),
        helper.make_node(
            "DequantizeLinear", [quantised, scale, zero], [name + SUFFIX_DQ], f"{name}/DQ"
        ),
    ]
    return nodes, parameters


def _constants_of(
    node: onnx.NodeProto, source: Range, constants: dict[str, TensorProto]
) -> list[onnx.NodeProto]:
    """Make a convolution read int8 weights and an int32 bias; return the nodes before it."""
    weights = numpy_helper.to_array(constants[node.input[1]])
    largest = np.abs(weights).reshape(len(weights), -1).max(1)
    scale = np.maximum(largest / 127, 1e-8)
    bias = np.zeros(len(weights))
    if len(node.input) > 2:
        bias = numpy_helper.to_array(constants[node.input[2]]).astype(np.float64)
        # If weights are very small, the bias would not fit into int32 in their unit.
        scale = np.maximum(scale, np.abs(bias) / (source.scale * 2.0**30))
    scale = scale.astype(np.float32)
    rounded = np.clip(np.rint(weights / scale.reshape(-1, 1, 1, 1)), -127, 127).astype(np.int8)
    nodes = [_dequantise(node, 1, rounded, scale, constants)]
    if len(node.input) > 2:
        unit = (scale * np.float32(source.scale)).astype(np.float32)
        whole = np.rint(bias / unit).astype(np.int32)
        nodes.append(_dequantise(node, 2, whole, unit, constants))
    return nodes


def _dequantise(
    node: onnx.NodeProto,
    i: int,
    numbers: NDArray[Any],
    scale: NDArray[np.float32],
    constants: dict[str, TensorProto],
) -> onnx.NodeProto:
    """Replace the node's constant input i by integers; return the node that dequantises them."""
    name = f"{node.input[i]}{SUFFIX_W}"
    zero = np.zeros(len(scale), numbers.dtype)
    for suffix, array in (("", numbers), ("_scale", scale), ("_zero", zero)):
        constants[name + suffix] = numpy_helper.from_array(array, name + suffix)
    node.input[i] = f"{name}{SUFFIX_DQ}"
    return helper.make_node(
        "DequantizeLinear",
        [name, f"{name}_scale", f"{name}_zero"],
        [node.input[i]],
        f"{name}/DQ",
        axis=0,
    )


def _rebuild(
    graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto], constants: Mapping[str, TensorProto]
) -> None:
    """Give a graph these nodes, and those of the constants that they read."""
    used = {name for node in nodes for name in node.input}
    _replace(graph.node, nodes)
    _replace(graph.initializer, [t for t in constants.values() if t.name in used])


def _replace(field: Any, values: Iterable[Any]) -> None:
    """Replace the values of a repeated protobuf field."""
    listed = list(values)
    del field[:]
    field.extend(listed)
