"""Nets of other projects, made into nets of ours: an ONNX file in a layout of its own is wrapped.

The file that is written holds the foreign graph, with nodes before it that put our planes into its
order, and nodes behind it that turn its outputs into our value and policy logits. It is then a net like
any other: evaluators, search, engine and matches need not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from variant_ai.core.encoding import ENCODER_VERSION, Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.nets.foreign_layout import UNUSED, NetLayout
from variant_ai.core.nets.interface import spec_metadata
from variant_ai.core.nets.onnx_export import INPUT, OUTPUTS, write_metadata
from variant_ai.core.nets.onnx_files import cpu_session, serialised
from variant_ai.core.spec import VariantSpec
from variant_ai.core.system.text_tables import counted

NEVER = -1e4
"""Logit of our moves that the foreign policy does not have."""
LEAST = 1e-10
"""Least probability of a foreign policy, before its logarithm is taken."""
TOLERANCE = 1e-3
"""Largest difference of a position's outputs evaluated alone and among others."""
_PREFIX = "adopted/"


@dataclass(frozen=True)
class Adopted:
    """An adopted net."""

    head: str
    """`map` or `flat`."""
    numbers: str
    """`logits` or `probabilities`, as given or found."""
    missing: tuple[str, ...]
    """Moves of ours that its policy does not have."""
    content: bytes
    """Bytes of the ONNX file."""


class _Nodes:
    """Nodes added before or behind the graph of a foreign model."""

    def __init__(self, model: onnx.ModelProto, place: str) -> None:
        """place: `before` or `behind`, a part of their names."""
        self.model, self.place = model, place
        self.nodes: list[onnx.NodeProto] = []

    def add(self, operation: str, *inputs: str | NDArray[Any], **words: Any) -> str:
        """Append a node with one output, and return its name. inputs: names, or constants."""
        name = f"layout/{self.place}/{operation}{len(self.nodes)}"
        names: list[str] = []
        for given in inputs:
            if isinstance(given, np.ndarray):
                constant = numpy_helper.from_array(given, f"{name}/{len(names)}")
                self.model.graph.initializer.append(constant)
                names.append(constant.name)
            else:
                names.append(given)
        self.nodes.append(helper.make_node(operation, names, [name], **words))
        return name


def adopt(model: onnx.ModelProto, layout: NetLayout, spec: VariantSpec, source: str) -> Adopted:
    """Wrap a foreign net of a variant. source: name of its file, for messages.

    Raises DataError if inputs or outputs do not have the layout's names and sizes, or positions
    evaluated together and alone differ.
    """
    if layout.variant != spec.variant:
        raise DataError(f"the layout is one for {layout.variant}, not for {spec.variant}")
    encoder = Encoder(spec, "map" if layout.moves is None else "flat")
    given, value, policy = _ends(model, layout, encoder, source)
    if layout.policy.numbers == "auto":
        channels = encoder.shape[0] if layout.input.planes is None else len(layout.input.planes)
        numbers = _found_numbers(model, given, policy, (channels, *encoder.shape[1:]), source)
    else:
        numbers = layout.policy.numbers
    onnx.compose.add_prefix(model, _PREFIX, inplace=True)
    _free_batch(model, _PREFIX + given)
    before, behind = _Nodes(model, "before"), _Nodes(model, "behind")
    _add_input(before, _PREFIX + given, layout, encoder)
    value_name = _add_value(behind, _PREFIX + value, layout, encoder)
    policy_name, missing = _add_policy(behind, _PREFIX + policy, layout, encoder, numbers)
    _finish(model.graph, before.nodes, behind.nodes, encoder, value_name, policy_name)
    metadata = {
        **spec_metadata(spec),
        "encoder_version": str(ENCODER_VERSION),
        "net": Path(source).stem,
        "head": encoder.head,
        "adopted": {"file": Path(source).name, **layout.model_dump(mode="json")},
    }
    write_metadata(model, metadata)
    content = serialised(model)
    _check(content, encoder, source)
    return Adopted(encoder.head, numbers, missing, content)


# --- the foreign file -----------------------------------------------------------------------------


def _shape(info: onnx.ValueInfoProto) -> list[int]:
    """Sizes of a tensor; 0 if one is not fixed."""
    return [dim.dim_value for dim in info.type.tensor_type.shape.dim]


def _ends(
    model: onnx.ModelProto, layout: NetLayout, encoder: Encoder, source: str
) -> tuple[str, str, str]:
    """Names of input, value and policy. Raises DataError."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {i.name: i for i in model.graph.input if i.name not in weights}
    outputs = {output.name: output for output in model.graph.output}
    size = encoder.actions if layout.moves is None else len(layout.moves)
    listed = ", ".join(f"{name} {_shape(info)}" for name, info in {**inputs, **outputs}.items())

    def chosen(name: str | None, among: dict[str, Any], what: str, fits: Any) -> str:
        found = [n for n, info in among.items() if fits(_shape(info))]
        if name is not None and name in among:
            return name
        if name is not None or len(found) != 1:
            wanted = (
                f"no {what} {name!r}"
                if name
                else f"{len(found) or 'no'} {what} of the size that the layout gives"
            )
            raise DataError(f"{source}: has {wanted}; it has {listed}")
        return found[0]

    planes = encoder.shape[0] if layout.input.planes is None else len(layout.input.planes)
    fits_input = chosen(
        layout.input.name, inputs, "input", lambda s: len(s) == 4 and s[1] in (0, planes)
    )
    given = _shape(inputs[fits_input])
    wanted = [planes, *encoder.shape[1:]]
    if len(inputs) > 1:
        raise DataError(f"{source}: has more than one input, which no layout can feed: {listed}")
    if len(given) != 4 or any(a not in (0, b) for a, b in zip(given[1:], wanted, strict=True)):
        raise DataError(
            f"{source}: input {fits_input!r} is {given}; the layout gives [batch, {planes}, "
            f"{wanted[1]}, {wanted[2]}]"
        )
    value = chosen(layout.value.name, outputs, "value", lambda s: s[1:] in ([1], []))
    if _shape(outputs[value])[1:] not in ([1], [0], []):
        raise DataError(
            f"{source}: value {value!r} is {_shape(outputs[value])}; accepted: one number a position"
        )
    policy = chosen(
        layout.policy.name, outputs, "policy", lambda s: len(s) > 1 and np.prod(s[1:]) == size
    )
    found = _shape(outputs[policy])[1:]
    if 0 not in found and np.prod(found) != size:
        raise DataError(f"{source}: policy {policy!r} is {found}; the layout has {size:,} outputs")
    return fits_input, value, policy


def _free_batch(model: onnx.ModelProto, given: str) -> None:
    """Accept any number of positions: a file made for one size has it in its shapes."""
    fixed = 0
    for info in model.graph.input:
        if info.name == given:
            fixed = info.type.tensor_type.shape.dim[0].dim_value
    del model.graph.value_info[:]
    if not fixed:
        return
    shapes = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    for tensor in model.graph.initializer:
        if tensor.name in shapes:
            _free_shape(tensor, fixed)
    for node in model.graph.node:
        if node.op_type == "Constant" and node.output[0] in shapes:
            for attribute in node.attribute:
                if attribute.name == "value":
                    _free_shape(attribute.t, fixed)


def _free_shape(tensor: onnx.TensorProto, fixed: int) -> None:
    """Write 0, the size of the input, in place of the number of positions."""
    shape = numpy_helper.to_array(tensor).copy()
    if shape.size and shape[0] == fixed:
        shape[0] = 0
        tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))


def _found_numbers(
    model: onnx.ModelProto, given: str, policy: str, size: tuple[int, ...], source: str
) -> str:
    """Find out by an evaluation if the policy's numbers are probabilities. size: of the input, without
    the number of positions."""
    session = _session(model.SerializeToString(), source)
    info = next(info for info in model.graph.input if info.name == given).type.tensor_type
    batch = info.shape.dim[0].dim_value or 1
    kind = helper.tensor_dtype_to_np_dtype(info.elem_type)
    planes = np.random.default_rng(0).random((batch, *size)).astype(kind)
    with _reported_as(f"{source}: it cannot evaluate a position"):
        numbers = np.asarray(session.run([policy], {given: planes})[0], np.float64)
    sums = numbers.reshape(batch, -1).sum(1)
    is_probability = (numbers >= 0).all() and np.abs(sums - 1).max() < 0.01
    return "probabilities" if is_probability else "logits"


# --- nodes ----------------------------------------------------------------------------------------


def _add_input(before: _Nodes, given: str, layout: NetLayout, encoder: Encoder) -> None:
    """Add the nodes between our planes and the foreign input."""
    channels = encoder.shape[0]
    order = layout.input.planes
    if order is not None and max(order, default=0) >= channels:
        raise DataError(f"input.planes: {max(order)} is no plane; there are 0 to {channels - 1}")
    name = INPUT
    if layout.input.counts == "raw":
        factors = encoder.input.scale.reshape(1, channels, 1, 1)
        name = before.add("Mul", name, factors.astype(np.float32))
    if order is not None:
        name = before.add("Gather", name, np.array(order, np.int64), axis=1)
    if layout.input.first_rank == "last":
        name = before.add("Gather", name, np.arange(encoder.shape[1])[::-1], axis=2)
    kind = next(i for i in before.model.graph.input if i.name == given).type.tensor_type.elem_type
    before.nodes.append(helper.make_node("Cast", [name], [given], to=kind))


def _add_value(behind: _Nodes, value: str, layout: NetLayout, encoder: Encoder) -> str:
    """Add the nodes that make a value in [-1, 1] from the mover's side; return its name."""
    column = np.array([-1, 1], np.int64)
    name = behind.add("Cast", value, to=TensorProto.FLOAT)
    name = behind.add("Reshape", name, column)
    low, high = layout.value.range
    factor, shift = 2 / (high - low), -(high + low) / (high - low)
    if layout.value.view == "opponent":
        factor, shift = -factor, -shift
    name = behind.add("Mul", name, np.array([factor], np.float32))
    name = behind.add("Add", name, np.array([shift], np.float32))
    if layout.value.view == "first player":
        shown = encoder.input_planes if encoder.compiled else ()
        colour = next((plane.index for plane in shown if plane.item == "colour"), None)
        if colour is None:
            raise DataError(
                "value.view: the planes do not show whose move it is, so that a value from the "
                "first player's side cannot be turned; accepted: mover, opponent"
            )
        # the plane is 1 if the first player moves, else 0
        turn = INPUT
        for axis, place in ((3, 0), (2, 0), (1, colour)):  # one number of the constant plane
            turn = behind.add("Gather", turn, np.array(place, np.int64), axis=axis)
        turn = behind.add("Reshape", turn, column)
        turn = behind.add("Mul", turn, np.array([2], np.float32))
        turn = behind.add("Sub", turn, np.array([1], np.float32))
        name = behind.add("Mul", name, turn)
    return name


def _add_policy(
    behind: _Nodes, policy: str, layout: NetLayout, encoder: Encoder, numbers: str
) -> tuple[str, tuple[str, ...]]:
    """Add the nodes that make our logits; return their name and the moves that are missing."""
    name = behind.add("Cast", policy, to=TensorProto.FLOAT)
    name = behind.add("Flatten", name, axis=1)
    if numbers == "probabilities":
        name = behind.add("Max", name, np.array([LEAST], np.float32))
        name = behind.add("Log", name)
    if layout.moves is None:
        if layout.policy.first_rank == "last":
            ranks = np.arange(encoder.actions).reshape(encoder.policy_shape)[:, ::-1].reshape(-1)
            name = behind.add("Gather", name, ranks, axis=1)
        return name, ()
    places = {move: place for place, move in enumerate(layout.moves) if move != UNUSED}
    labels = list(getattr(encoder.labels, "labels", ()))
    missing = tuple(label for label in labels if label not in places)
    if len(missing) > len(labels) // 2:
        raise DataError(
            f"policy.order: {len(missing):,} of the {counted(len(labels), 'move')} of "
            f"{encoder.spec.variant} are not in the list, such as {', '.join(missing[:5])}; moves are written as in UCI, as "
            "the mover sees the board"
        )
    order = [places.get(label, 0) for label in labels]
    name = behind.add("Gather", name, np.array(order, np.int64), axis=1)
    if missing:
        shift = [[0.0 if label in places else NEVER for label in labels]]
        name = behind.add("Add", name, np.array(shift, np.float32))
    return name, missing


def _finish(
    inner: onnx.GraphProto,
    before: list[onnx.NodeProto],
    behind: list[onnx.NodeProto],
    encoder: Encoder,
    value: str,
    policy: str,
) -> None:
    """Put all nodes in order, and give the graph our input and outputs."""
    nodes = [*before, *inner.node, *behind]
    for name, output in ((value, OUTPUTS[0]), (policy, OUTPUTS[1])):
        nodes.append(helper.make_node("Identity", [name], [output]))
    weights = {tensor.name for tensor in inner.initializer}
    kept = [info for info in inner.input if info.name in weights]
    for repeated in (inner.node, inner.input, inner.output):
        del repeated[:]
    inner.node.extend(nodes)
    shape: list[str | int | None] = ["batch", *encoder.shape]
    inner.input.extend([helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, shape), *kept])
    for output, size in zip(OUTPUTS, (1, encoder.actions), strict=True):
        inner.output.append(
            helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", size])
        )


# --- checks ---------------------------------------------------------------------------------------


@contextmanager
def _reported_as(problem: str) -> Iterator[None]:
    """Raise an error of onnxruntime as DataError, with the problem and the first line of the reason."""
    try:
        yield
    except Exception as error:  # onnxruntime raises a class of its own per status code
        raise DataError(f"{problem}: {str(error).splitlines()[0]}") from None


def _session(content: bytes, source: str) -> Any:
    with _reported_as(f"{source}: onnxruntime cannot run it"):
        return cpu_session(content)


def _check(content: bytes, encoder: Encoder, source: str) -> None:
    """Compare positions evaluated together and alone. Raises DataError."""
    session = _session(content, source)
    planes: NDArray[np.float32] = np.random.default_rng(1).random((3, *encoder.shape), np.float32)
    with _reported_as(f"{source}: it cannot evaluate other batches than its own"):
        together = session.run(list(OUTPUTS), {INPUT: planes})
        alone = [session.run(list(OUTPUTS), {INPUT: planes[i : i + 1]}) for i in range(3)]
    if together[0].shape != (3, 1) or together[1].shape != (3, encoder.actions):
        shapes = " and ".join(str([*output.shape]) for output in together)
        raise DataError(f"{source}: value and policy of three positions are {shapes}")
    for number, whole in enumerate(together):
        parts = np.concatenate([outputs[number] for outputs in alone])
        scale = max(1.0, float(np.abs(whole[whole > NEVER / 2]).max(initial=0.0)))
        if not np.abs(whole - parts).max() <= TOLERANCE * scale:
            raise DataError(f"{source}: positions evaluated together and alone have other results")
