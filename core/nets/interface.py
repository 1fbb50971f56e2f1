"""The interface of network builders: a name, sizes, and a function from a shape to a network.

Nothing here imports torch, so a plugin that registers builders starts fast, and commands can list
nets without it. A builder imports torch when it builds.

Symbols in this room: B batch, C input planes, H ranks, W files, P policy planes, A actions (P·H·W for
the policy map, the number of labels for the flat head).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from variant_ai.core.errors import PluginError, UnknownNameError, VariantAIError
from variant_ai.core.factories import NETWORKS
from variant_ai.core.spec import VariantSpec, encoding_hash, spec_hash
from variant_ai.core.spec.plane_layout import Head
from variant_ai.core.system.checked_models import first_fault

if TYPE_CHECKING:
    from torch import nn

    from variant_ai.core.encoding import Encoder

HEADS: tuple[Head, ...] = ("map", "flat")


class NetSize(BaseModel):
    """Options of a builder with their defaults; each builder has its own subclass.

    Every option is a number or a word, so that it can be given on the command line, and stored in
    checkpoints and in the metadata of files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class NetShape:
    """Input and output sizes of a network, which follow from the variant's spec."""

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
    """P; None if the head is flat and the spec's policy planes do not matter."""

    @property
    def squares(self) -> int:
        return self.height * self.width


class NetworkBuilder(ABC):
    """Builds one family of networks for any variant."""

    name: str
    summary: str
    source: str
    """Paper and tables of the family."""
    heads: tuple[Head, ...]
    """Supported policy heads; the first is the default."""
    size_type: type[NetSize]

    @abstractmethod
    def build(self, shape: NetShape, size: NetSize) -> nn.Module:
        """Build a network with random weights: planes float [B, C, H, W] -> (value float [B] in
        [-1, 1] from the mover's side, policy logits float [B, A]).

        `size` is an instance of `size_type`. The weights must depend on torch's seed alone.
        """

    def size(self, **options: Any) -> NetSize:
        """Check options and fill in the builder's defaults.

        Raises UnknownNameError for an unknown option, VariantAIError for a bad value.
        """
        known = self.size_type.model_fields
        for name in options:
            if name not in known:
                raise UnknownNameError(f"option of net {self.name}", name, known)
        try:
            return self.size_type.model_validate(options)
        except ValidationError as error:
            where, reason, value = first_fault(error)
            given = f" = {value!r}" if where else ""
            raise VariantAIError(f"net {self.name}: {where or 'size'}{given}: {reason}") from error


def problem_of_builder(builder: NetworkBuilder) -> str:
    """Return the first wrong attribute of a builder as a message; empty if all are right."""
    missing = [word for word in NetworkBuilder.__annotations__ if not hasattr(builder, word)]
    if missing:
        return f"is a builder without {', '.join(missing)}"
    heads: object = builder.heads
    if not isinstance(heads, tuple) or not heads or any(h not in HEADS for h in heads):
        return f"has heads = {heads!r}, not a tuple of some of {', '.join(HEADS)}"
    size: object = builder.size_type
    if not (isinstance(size, type) and issubclass(size, NetSize)):
        return f"has size_type = {size!r}, not a NetSize class"
    return ""


class NetConfig(BaseModel):
    """Everything needed to build a network again, as stored in checkpoints and exported files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    planes: int
    board: tuple[int, int]
    """(H, W)."""
    actions: int
    head: Head
    policy_planes: int | None = None
    size: dict[str, Any]
    """Options of the builder, including defaults."""
    input_scale: tuple[float, ...] = ()
    """Factor of each input plane, [C], before the first layer; empty: none."""

    @property
    def shape(self) -> NetShape:
        return NetShape(
            self.planes, self.board[0], self.board[1], self.actions, self.head, self.policy_planes
        )

    @property
    def title(self) -> str:
        """Short title, e.g. `risev2-mobile 5x64 map`: name, blocks and channels (if any), head."""
        size = [str(self.size[key]) for key in ("blocks", "channels") if key in self.size]
        return " ".join([self.name, "x".join(size), self.head] if size else [self.name, self.head])

    def build(self) -> nn.Module:
        """Build a network of this configuration with random weights."""
        builder = find_builder(self.name)
        net = builder.build(self.shape, builder.size(**self.size))
        from torch import nn

        if not isinstance(net, nn.Module):
            raise PluginError(
                f"the net {self.name!r} was built as a {type(net).__name__}, not a torch.nn.Module"
            )
        if not self.input_scale:
            return net
        from variant_ai.core.nets.network import scale_input

        return scale_input(net, self.input_scale)


def spec_metadata(spec: VariantSpec) -> dict[str, Any]:
    """Entries that say for which spec a net was made: in the metadata of its file, and in config.json."""
    return {
        "variant": spec.variant,
        "spec_hash": spec_hash(spec),
        "encoding_hash": encoding_hash(spec),
        "spec": spec.model_dump(mode="json", by_alias=True, exclude_defaults=True),
    }


def find_builder(name: str) -> NetworkBuilder:
    """Return the builder of that name, a built-in one or a plugin's.

    Raises UnknownNameError, PluginError if a plugin's builder cannot be made.
    """
    own = core_networks()
    if name in own:
        return own[name]
    if name in NETWORKS:
        return NETWORKS[name]()
    raise UnknownNameError("net", name, [*own, *NETWORKS])


def core_networks() -> dict[str, NetworkBuilder]:
    """The built-in builders by name."""
    from variant_ai.core.nets.zoo import BUILDERS

    return {builder.name: builder for builder in BUILDERS}


def choose_head(builder: NetworkBuilder, head: str | None) -> Head:
    """Return the policy head of that name; None: the builder's first. Raises UnknownNameError."""
    if head is None:
        return builder.heads[0]
    for offered in builder.heads:
        if offered == head:
            return offered
    raise UnknownNameError(f"head of net {builder.name}", head, builder.heads)


def configure_for(name: str, encoder: Encoder, **size: Any) -> NetConfig:
    """Configure a named net for the planes, head and actions of an encoder: check the options of its
    builder, and fill in defaults.

    Raises UnknownNameError (net, head, option) or VariantAIError (a value that does not fit).
    """
    builder = find_builder(name)
    planes, height, width = encoder.shape
    return NetConfig(
        name=name,
        planes=planes,
        board=(height, width),
        actions=encoder.actions,
        head=choose_head(builder, encoder.head),
        policy_planes=encoder.policy_shape[0],
        size=builder.size(**size).model_dump(),
    )
