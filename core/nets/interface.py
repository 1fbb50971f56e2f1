"""The NetworkBuilder interface: a name, its sizes, and a function from shape to network.

Nothing here imports torch: a plugin that registers builders costs no start-up time, and commands
list nets without it. A builder imports torch when it builds.

Symbols used throughout the room: B batch, C input planes, H ranks, W files, P policy planes,
A actions (P·H·W for the policy map, the number of labels for the flat head).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from variant_ai.core.errors import UnknownNameError, VariantAIError

if TYPE_CHECKING:
    from torch import nn

Head = Literal["map", "flat"]
HEADS: tuple[Head, ...] = ("map", "flat")


class NetSize(BaseModel):
    """Options of a builder with their defaults; each builder derives its own.

    Every option is a number or a word, so that a size can be given on a command line, stored in a
    checkpoint and written into a file's metadata.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class NetShape:
    """What a network takes and gives; all of it follows from the variant's spec."""

    planes: int
    """C, input planes."""
    height: int
    """H, ranks of the board."""
    width: int
    """W, files of the board."""
    actions: int
    """A, length of the policy output."""
    head: Head
    policy_planes: int | None = None
    """P; None where only a flat head is asked for and the spec's planes do not matter."""

    @property
    def squares(self) -> int:
        return self.height * self.width


class NetworkBuilder(ABC):
    """Builds one family of networks for any variant."""

    name: str
    summary: str
    source: str
    """Paper and tables the family comes from."""
    heads: tuple[Head, ...]
    """Policy heads it offers; the first is the default."""
    size_type: type[NetSize]

    @abstractmethod
    def build(self, shape: NetShape, size: NetSize) -> nn.Module:
        """A network with random weights: planes float [B, C, H, W] -> (value float [B] in
        [-1, 1] from the mover's side, policy logits float [B, A]).

        `size` is an instance of `size_type`. The weights depend on torch's seed alone.
        """

    def size(self, **options: Any) -> NetSize:
        """Options checked and completed with the builder's defaults.

        Raises UnknownNameError for an option the builder has not, VariantAIError for a bad value.
        """
        known = self.size_type.model_fields
        for name in options:
            if name not in known:
                raise UnknownNameError(f"option of net {self.name}", name, known)
        try:
            return self.size_type.model_validate(options)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            reason = first["msg"].removeprefix("Value error, ")
            given = f" = {first['input']!r}" if where else ""
            raise VariantAIError(f"net {self.name}: {where or 'size'}{given}: {reason}") from error


class NetConfig(BaseModel):
    """Everything needed to build a network again: kept in checkpoints and exported files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    planes: int
    board: tuple[int, int]
    """(H, W)."""
    actions: int
    head: Head
    policy_planes: int | None = None
    size: dict[str, Any]
    """Options of the builder, completed."""
    input_scale: tuple[float, ...] = ()
    """Factor of each input plane, [C], before the first layer; empty: none."""

    @property
    def shape(self) -> NetShape:
        return NetShape(
            self.planes, self.board[0], self.board[1], self.actions, self.head, self.policy_planes
        )

    @property
    def title(self) -> str:
        """`risev2-mobile 5x64 map`: name, the size where it has blocks and channels, head."""
        size = [str(self.size[key]) for key in ("blocks", "channels") if key in self.size]
        return " ".join([self.name, "x".join(size), self.head] if size else [self.name, self.head])

    def build(self, builders: Mapping[str, NetworkBuilder] | None = None) -> nn.Module:
        """A network of this configuration with random weights."""
        builder = find_builder(self.name, builders)
        net = builder.build(self.shape, builder.size(**self.size))
        if not self.input_scale:
            return net
        from variant_ai.core.nets.network import scale_input

        return scale_input(net, self.input_scale)


def find_builder(name: str, builders: Mapping[str, NetworkBuilder] | None = None) -> NetworkBuilder:
    """The builder of that name among `builders` (None: the built-in ones), or UnknownNameError.

    A mapping may have a reason of its own why it lacks one, and raise that.
    """
    known = core_networks() if builders is None else builders
    try:
        return known[name]
    except KeyError:
        raise UnknownNameError("net", name, known) from None


def core_networks() -> dict[str, NetworkBuilder]:
    """The built-in zoo by name."""
    from variant_ai.core.nets.zoo import BUILDERS

    return index_builders(BUILDERS)


def index_builders(builders: Iterable[NetworkBuilder]) -> dict[str, NetworkBuilder]:
    """Builders by name. Raises VariantAIError where two share one."""
    by_name: dict[str, NetworkBuilder] = {}
    for builder in builders:
        if builder.name in by_name:
            raise VariantAIError(f"two nets are registered under the name {builder.name!r}")
        by_name[builder.name] = builder
    return by_name


def configure_net(
    name: str,
    *,
    planes: int,
    board: tuple[int, int],
    policy_planes: int | None = None,
    actions: int | None = None,
    head: str | None = None,
    builders: Mapping[str, NetworkBuilder] | None = None,
    **size: Any,
) -> NetConfig:
    """The configuration of a named net for a variant, checked and completed.

    Args:
        board: (H, W), ranks and files.
        policy_planes: P; needed by the map head.
        actions: A; needed by the flat head, follows from P for the map.
        head: `map` or `flat`; None takes the builder's first.
        size: options of the builder.

    Raises UnknownNameError (net, head, option) or VariantAIError (a value that does not fit).
    """
    builder = find_builder(name, builders)
    if head is None:
        chosen: Head = builder.heads[0]
    elif head not in builder.heads:
        raise UnknownNameError(f"head of net {name}", head, builder.heads)
    else:
        chosen = "map" if head == "map" else "flat"
    height, width = board
    if chosen == "map":
        if policy_planes is None:
            raise VariantAIError(f"net {name}: the map head needs the number of policy planes")
        expected = policy_planes * height * width
        if actions is not None and actions != expected:
            raise VariantAIError(
                f"net {name}: the map head gives {expected} actions "
                f"({policy_planes} planes of {height} x {width}), not {actions}"
            )
        actions = expected
    elif actions is None:
        raise VariantAIError(f"net {name}: the flat head needs the number of actions")
    return NetConfig(
        name=name,
        planes=planes,
        board=board,
        actions=actions,
        head=chosen,
        policy_planes=policy_planes,
        size=builder.size(**size).model_dump(),
    )


def build_net(
    name: str,
    *,
    planes: int,
    board: tuple[int, int],
    policy_planes: int | None = None,
    actions: int | None = None,
    head: str | None = None,
    builders: Mapping[str, NetworkBuilder] | None = None,
    **size: Any,
) -> nn.Module:
    """A named net with random weights; arguments and errors as `configure_net`."""
    config = configure_net(
        name,
        planes=planes,
        board=board,
        policy_planes=policy_planes,
        actions=actions,
        head=head,
        builders=builders,
        **size,
    )
    return config.build(builders)
