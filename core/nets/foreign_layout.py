"""Layouts of other projects' nets: names and order of planes and policy, and the meaning of the value.

A layout is a YAML file; the ones in `layouts/` ship with the program:

    variant: crazyhouse
    source: "[CrazyAra] section 4"           # where the layout is described
    input: {name: data, planes: [0, 1, 2]}   # its plane k is our plane planes[k]; all of ours by default
    value: {name: value_out, range: [-1, 1], view: mover}
    policy: {name: policy_out, numbers: auto, order: map}

`order` is `map` (a policy map with our planes, [P * H * W]) or a file beside the layout with one move a
line, in UCI as the mover sees the board; `-` is an output that means nothing. Names may be left out if
the file has one input, one output of size 1 and one of the size of the policy.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from variant_ai.core.errors import DataError, SettingError, SpecError, UnknownNameError
from variant_ai.core.spec.files.yaml_reader import (
    location_of,
    parse_yaml,
    plain_values,
    read_text,
    yaml_path,
)
from variant_ai.core.system.checked_models import reason_of

LAYOUTS = Path(__file__).resolve().parent / "layouts"
UNUSED = "-"
"""Line of a list of moves for an output without a meaning."""
_WHAT = "a layout of a net"


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InputLayout(_Words):
    """Planes that the net wants."""

    name: str | None = None
    planes: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(
        default=None,
        description="our plane for each of its planes; all of ours in order if left out",
    )
    counts: Literal["divided", "raw"] = Field(
        default="divided", description="counts divided by the spec's maxima, or as they are"
    )
    first_rank: Literal["first", "last"] = Field(
        default="first", description="place of the mover's own first rank among the rows"
    )


class ValueLayout(_Words):
    """Meaning of the value."""

    name: str | None = None
    range: tuple[float, float] = Field(
        default=(-1.0, 1.0), description="values of a certain loss and of a certain win"
    )
    view: Literal["mover", "opponent", "first player"] = "mover"


class PolicyLayout(_Words):
    """Order and meaning of the policy."""

    name: str | None = None
    order: str = Field(default="map", description="`map`, or a file with a move a line")
    numbers: Literal["auto", "logits", "probabilities"] = Field(
        default="auto", description="auto: probabilities if all sum to 1 and none is negative"
    )
    first_rank: Literal["first", "last"] = Field(
        default="first", description="of a policy map: as for the input"
    )


class NetLayout(_Words):
    """Layout of a net for one variant."""

    variant: str
    source: str = ""
    input: InputLayout = InputLayout()
    value: ValueLayout = ValueLayout()
    policy: PolicyLayout = PolicyLayout()
    _moves: tuple[str, ...] | None = PrivateAttr(default=None)

    @property
    def moves(self) -> tuple[str, ...] | None:
        """Moves of the policy's outputs; None with `order: map`."""
        return self._moves

    def with_moves(self, moves: tuple[str, ...]) -> NetLayout:
        """The layout with the moves of its file."""
        other = self.model_copy()
        other._moves = moves
        return other


def shipped_layouts() -> dict[str, Path]:
    """Name -> file of every layout that ships with the program."""
    return {path.stem: path for path in sorted(LAYOUTS.glob("*.yaml"))}


def read_layout(name: str) -> NetLayout:
    """Read a layout by its name or from a file.

    Raises UnknownNameError, DataError if a file cannot be read, SettingError with file and line for a
    wrong word.
    """
    path = shipped_layouts().get(name) or Path(name)
    if path.suffix not in (".yaml", ".yml"):
        raise UnknownNameError("layout of a net", name, shipped_layouts())
    try:
        tree = parse_yaml(read_text(path, _WHAT), str(path), _WHAT, "variant, input, value, policy")
    except SpecError as error:
        raise DataError(str(error)) from None
    words: dict[str, Any] = plain_values(tree)
    try:
        layout = NetLayout.model_validate(words)
    except ValidationError as error:
        lines = []
        for fault in error.errors():
            word = ".".join(map(str, fault["loc"]))
            where = location_of(tree, yaml_path(tree, fault["loc"]))
            lines.append(f"{where}: {word}: {reason_of(fault)}")
        raise SettingError("\n".join(lines)) from None
    low, high = layout.value.range
    if not math.isfinite(high - low) or low == high:
        raise SettingError(f"{path}: value.range: a loss is {low:g} and a win {high:g}")
    if layout.policy.order == "map":
        return layout
    if layout.policy.first_rank != "first":
        raise SettingError(f"{path}: policy.first_rank is of a policy map; with moves leave it out")
    return layout.with_moves(_read_moves(path.parent / layout.policy.order))


def _read_moves(path: Path) -> tuple[str, ...]:
    """Read the moves of a policy. Raises DataError."""
    try:
        moves = tuple(path.read_text(encoding="ascii").split())
    except (OSError, ValueError) as error:
        raise DataError(f"policy.order: {path}: {error}") from None
    seen: dict[str, int] = {}
    for number, move in enumerate(moves, start=1):
        if move != UNUSED and seen.setdefault(move, number) != number:
            raise DataError(f"{path}: move {number}, {move!r}, is move {seen[move]} already")
    return moves
