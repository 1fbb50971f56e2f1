"""A net for another spec: its file with weights of zero for the input planes that it never saw.

It returns the same numbers as before, and training can go on from it with the new planes, or for the
rules of a related variant.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from variant_ai.core.errors import DataError
from variant_ai.core.inference.model_file import read_model_file
from variant_ai.core.nets.checksums import serialised
from variant_ai.core.nets.interface import spec_metadata
from variant_ai.core.nets.onnx_export import write_metadata
from variant_ai.core.spec import VariantSpec, rules_hash
from variant_ai.core.spec.plane_layout import InputPlane, input_planes, policy_planes
from variant_ai.core.spec.schema import Encoders


def widen(path: Path, spec: VariantSpec, *, other_rules: bool = False) -> bytes:
    """Return the content of an ONNX file for `spec`, made from a net of the same variant that sees
    some of its input planes, in any order.

    other_rules: the net may be of another variant with the same board and policy. Pieces are the same
    if they have the same letter.

    Raises DataError: damaged, without its spec, other rules or policy, a plane that `spec` does not
    have or normalises differently, a net whose first layer is no convolution.
    """
    file = read_model_file(path)
    own = file.info.carried_spec
    if own is None:
        raise DataError(f"{path} does not contain the spec that it was trained with")
    same = own.variant == spec.variant and rules_hash(own) == rules_hash(spec)
    if not same and not other_rules:
        raise DataError(
            f"{path} is a net for {own.variant} with other rules than {spec.variant}; --other-rules lets "
            "it begin with what it learnt there"
        )
    file.info.require(own)
    board, ours = own.board, spec.board
    if (board.files, board.ranks) != (ours.files, ours.ranks):
        raise DataError(
            f"{path} is a net for a board of {board.files} x {board.ranks} squares, the spec has "
            f"{ours.files} x {ours.ranks}"
        )
    if policy_planes(own) != policy_planes(spec) or own.encoder != spec.encoder:
        raise DataError(f"{path} has other policy planes or another encoder than the spec")
    usual = Encoders().input
    if own.encoder.input != usual:
        raise DataError(f"{path}: only nets of the encoder {usual!r} can see more planes")
    places = _places(path, own, spec)
    model = onnx.load(path)
    added = _widen_first_layers(path, model, places, len(input_planes(spec)))
    metadata: dict[str, Any] = {**file.metadata, **spec_metadata(spec)}
    if metadata.get("parameters", "").isdecimal():
        metadata["parameters"] = str(int(metadata["parameters"]) + added)
    if "net_config" in metadata:
        config = json.loads(metadata["net_config"])
        metadata["net_config"] = {**config, "planes": len(input_planes(spec))}
    write_metadata(model, metadata)
    return serialised(model)


def _places(path: Path, own: VariantSpec, spec: VariantSpec) -> list[int]:
    """Return the index in `spec` of each plane of the net."""
    numbers = {_meaning(plane): plane.index for plane in input_planes(spec)}
    places = []
    for plane in input_planes(own):
        if _meaning(plane) not in numbers:
            raise DataError(
                f"{path} sees a plane {plane.name!r} divided by {plane.max:g}, which the spec does not have"
            )
        places.append(numbers[_meaning(plane)])
    return places


def _meaning(plane: InputPlane) -> tuple[object, ...]:
    return plane.item, plane.who, plane.piece, plane.number, plane.max


def _widen_first_layers(path: Path, model: onnx.ModelProto, places: list[int], planes: int) -> int:
    """Give the convolutions that read the input weights of zero for planes not in `places`, and return
    the number of these weights."""
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
        new = np.zeros((old.shape[0], planes, *old.shape[2:]), old.dtype)
        new[:, places] = old
        weights[name].CopyFrom(numpy_helper.from_array(new, name))
        added += new.size - old.size
    given.type.tensor_type.shape.dim[1].dim_value = planes
    del model.graph.value_info[:]
    return added
