"""A net for another spec: its file with the input planes and moves of that spec.

Planes that the net never saw get weights of zero, so that with the same rules it returns the same
numbers as before. Training can go on from it, also for a related variant on the same board.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from variant_ai.core.errors import DataError
from variant_ai.core.inference.model_file import read_model_file
from variant_ai.core.nets.interface import spec_metadata
from variant_ai.core.nets.onnx_export import write_metadata
from variant_ai.core.nets.onnx_files import serialised
from variant_ai.core.spec import VariantSpec, rules_hash
from variant_ai.core.spec.plane_layout import (
    InputPlane,
    PolicyPlane,
    input_planes,
    policy_planes,
)
from variant_ai.core.spec.schema import Encoders

PASSED_ON = ("Cast", "Flatten", "Reshape")
"""Nodes between the last convolution of a policy map and the output."""


@dataclass(frozen=True)
class _Source:
    """Plane of the net that gives its weights to a plane of the spec."""

    index: int
    """-1: none, the weights are zero."""
    factor: float = 1.0


def widen(path: Path, spec: VariantSpec, *, other_rules: bool = False) -> bytes:
    """Return the content of an ONNX file for `spec`, made from a net of the same variant that sees
    some of its input planes, in any order.

    other_rules: the net may be of another variant with a board of the same size. Pieces are the same
    if they have the same letter. Planes that the spec does not have are left out; other maxima of counts
    change the weights; a move that the net does not have begins with the weights of the most similar one.

    Raises DataError: damaged, without its spec, other rules or policy, a plane that `spec` does not
    have or normalises differently, another board, a net whose first layer is no convolution or, if the
    policies differ, whose policy is no map.
    """
    file = read_model_file(path)
    own = file.info.carried_spec
    if own is None:
        raise DataError(f"{path} does not contain the spec that it was trained with")
    same = own.variant == spec.variant and rules_hash(own) == rules_hash(spec)
    if not same and not other_rules:
        raise DataError(
            f"{path} is a net for {own.variant} with other rules than {spec.variant}; accept that "
            "with --other-rules"
        )
    file.info.require(own)
    board, ours = own.board, spec.board
    if (board.files, board.ranks) != (ours.files, ours.ranks):
        raise DataError(
            f"{path} is a net for a board of {board.files} x {board.ranks} squares, the spec has "
            f"{ours.files} x {ours.ranks}"
        )
    moves, wanted = policy_planes(own), policy_planes(spec)
    if (moves != wanted and not other_rules) or own.encoder != spec.encoder:
        raise DataError(f"{path} has other policy planes or another encoder than the spec")
    usual = Encoders().input
    if own.encoder.input != usual:
        raise DataError(f"{path}: only nets of the encoder {usual!r} can see more planes")
    sources = _input_sources(path, own, spec, strict=not other_rules)
    model = onnx.load(path)
    added = _change_first_layers(path, model, sources)
    if moves != wanted:
        added += _change_policy(path, model, moves, wanted, spec)
    metadata: dict[str, Any] = {**file.metadata, **spec_metadata(spec)}
    if metadata.get("parameters", "").isdecimal():
        metadata["parameters"] = str(int(metadata["parameters"]) + added)
    if "net_config" in metadata:
        config = json.loads(metadata["net_config"]) | {"planes": len(sources)}
        if moves != wanted:
            config |= {"policy_planes": len(wanted), "actions": len(wanted) * ours.squares}
        metadata["net_config"] = config
    write_metadata(model, metadata)
    return serialised(model)


def differences(path: Path, spec: VariantSpec) -> tuple[list[str], list[str]]:
    """Return the names of input planes of a net that `spec` does not have, and of those that are new to the
    net. Raises DataError for a damaged file."""
    own = read_model_file(path).info.carried_spec
    ours = {} if own is None else {_meaning(plane): plane.name for plane in input_planes(own)}
    wanted = {_meaning(plane): plane.name for plane in input_planes(spec)}
    left_out = [name for meaning, name in ours.items() if meaning not in wanted]
    return left_out, [name for meaning, name in wanted.items() if meaning not in ours]


# --- input -----------------------------------------------------------------------------------------


def _input_sources(
    path: Path, own: VariantSpec, spec: VariantSpec, *, strict: bool
) -> list[_Source]:
    """Return the plane of the net for each plane of `spec`. strict: all planes of the net are needed, as
    they are."""
    ours = {_meaning(plane): plane for plane in input_planes(own)}
    wanted = {_meaning(plane): plane for plane in input_planes(spec)}
    for meaning, plane in ours.items() if strict else ():
        if meaning not in wanted or wanted[meaning].max != plane.max:
            raise DataError(
                f"{path} sees a plane {plane.name!r} divided by {plane.max:g}, which the spec does not have"
            )
    sources = []
    for meaning, plane in wanted.items():
        old = ours.get(meaning)
        sources.append(_Source(-1) if old is None else _Source(old.index, plane.max / old.max))
    return sources


def _meaning(plane: InputPlane) -> tuple[object, ...]:
    return plane.item, plane.who, plane.piece, plane.number


def _change_first_layers(path: Path, model: onnx.ModelProto, sources: list[_Source]) -> int:
    """Give the convolutions that read the input the planes of `sources`; return how many weights there
    are more."""
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    (given,) = [value for value in model.graph.input if value.name not in weights]
    readers = [node for node in model.graph.node if given.name in node.input]
    names = {node.input[1] for node in readers if node.op_type == "Conv"}
    groups = [a.i for node in readers for a in node.attribute if a.name == "group"]
    users = [node for node in model.graph.node if names & set(node.input)]
    own = len(names) == len(readers) == len(users) and names <= weights.keys()
    if not own or any(group != 1 for group in groups):
        raise DataError(
            f"{path}: its first layer is not a convolution with weights of its own, as fp32 files have; "
            "it cannot see more planes"
        )
    added = 0
    for name in names:
        old = numpy_helper.to_array(weights[name])
        added += _replace(weights[name], _rows(old.swapaxes(0, 1), sources).swapaxes(0, 1))
    given.type.tensor_type.shape.dim[1].dim_value = len(sources)
    del model.graph.value_info[:]
    return added


# --- policy ----------------------------------------------------------------------------------------


def _change_policy(
    path: Path,
    model: onnx.ModelProto,
    moves: tuple[PolicyPlane, ...],
    wanted: tuple[PolicyPlane, ...],
    spec: VariantSpec,
) -> int:
    """Give the last convolution of the policy the planes `wanted`; return how many weights there are more."""
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    makers = {name: node for node in model.graph.node for name in node.output}
    node = makers.get("policy")
    while node is not None and node.op_type in PASSED_ON:
        node = makers.get(node.input[0])
    names = [] if node is None or node.op_type != "Conv" else list(node.input[1:])
    if not names or any(
        name not in weights or weights[name].dims[0] != len(moves) for name in names
    ):
        raise DataError(
            f"{path} has other policy planes than the spec, and its policy is not a map whose planes can be "
            "exchanged (fp32, head map)"
        )
    sources = [_similar(plane, moves) for plane in wanted]
    added = sum(
        _replace(weights[name], _rows(numpy_helper.to_array(weights[name]), sources))
        for name in names
    )
    (policy,) = [value for value in model.graph.output if value.name == "policy"]
    policy.type.tensor_type.shape.dim[1].dim_value = len(wanted) * spec.board.squares
    return added


def _similar(plane: PolicyPlane, moves: tuple[PolicyPlane, ...]) -> _Source:
    """The plane of the net that is most like `plane`: of the same kind, by displacement, then by piece."""
    kind = [move for move in moves if move.kind == plane.kind]
    if not kind:
        return _Source(-1)

    def distance(move: PolicyPlane) -> tuple[int, bool, int]:
        apart = abs(move.dx - plane.dx) + abs(move.dy - plane.dy)
        return apart, move.piece != plane.piece, move.index

    return _Source(min(kind, key=distance).index)


# --- weights ---------------------------------------------------------------------------------------


def _rows(old: NDArray[Any], sources: list[_Source]) -> NDArray[Any]:
    new = np.zeros((len(sources), *old.shape[1:]), old.dtype)
    for row, source in zip(new, sources, strict=True):
        if source.index >= 0:
            row[...] = old[source.index] * source.factor
    return new


def _replace(tensor: onnx.TensorProto, values: NDArray[Any]) -> int:
    """Set the values of a weight; return how many there are more."""
    before = int(np.prod(tensor.dims))
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), tensor.name))
    return values.size - before
