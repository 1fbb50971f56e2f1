"""The named nets of the papers, each for every variant; smaller ones by options.

Details that the papers' tables leave open are settled by their parameter counts ([Xiangqi-thesis]
table 4.13): the last policy convolution has no bias in RISEv2 and one in RISEv3; AlphaZero's map head
is that of RISEv2 (both are table 8); RISEv2-13 has SE only in its last five blocks; RISEv3-13 has
3 x 3 depthwise convolutions in all blocks, including its attention block.

torch is imported when a net is built, not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from variant_ai.core.nets.interface import NetShape, NetSize, NetworkBuilder
from variant_ai.core.spec.plane_layout import Head

if TYPE_CHECKING:
    from torch import nn

    from variant_ai.core.nets.heads import HeadModule, OutcomeHead


class HeadSize(NetSize):
    """Options of the heads, shared by all towers."""

    value_channels: int = Field(default=8, ge=1, description="channels of the value head")
    value_hidden: int = Field(default=256, ge=1, description="width of its hidden layer")
    wdl: bool = Field(
        default=False, description="also predict win, draw and loss; the value is then W - L"
    )
    plies_left: bool = Field(default=False, description="also predict the plies left")


class TowerSize(HeadSize):
    """AlphaZero towers: `blocks` x `channels`."""

    blocks: int = Field(default=19, ge=1, le=100)
    channels: int = Field(default=256, ge=1, le=2048)


class FlatTowerSize(TowerSize):
    policy_channels: int = Field(default=8, ge=1, description="channels of the flat policy head")


class RiseSize(HeadSize):
    """RISE towers. `None`: computed from `channels` in the papers' proportions."""

    blocks: int = Field(default=13, ge=1, le=100)
    channels: int = Field(default=256, ge=4, le=2048, description="kept between blocks")
    width: int | None = Field(
        default=None, ge=1, description="operating channels of the first block (None: channels / 2 "
        "of a pyramid, else 2 x channels)"
    )  # fmt: skip
    growth: int | None = Field(
        default=None, ge=0, description="operating channels that each block has more than the "
        "previous one (None: channels / 4 of a pyramid, else 0)"
    )  # fmt: skip
    pyramid: bool = Field(default=True, description="let operating channels grow")
    kernel: int = Field(
        default=3, ge=1, le=19, description="side of the depthwise convolutions, an odd number (19 "
        "covers ten ranks from any square)"
    )  # fmt: skip
    ratio: int = Field(default=2, ge=1, description="SE reduction r")
    pool: Literal["global", "window"] = Field(default="global", description="pooling of SE")

    @field_validator("kernel")
    @classmethod
    def _odd(cls, kernel: int) -> int:
        if kernel % 2 == 0:  # the output would be larger than the board
            raise ValueError("must be odd")
        return kernel

    def widths(self) -> list[int]:
        """Operating channels of each block: 128 + 64 i at 256 channels ([CrazyAra-preprint] section 6)."""
        first, step = self.width, self.growth
        if first is None:
            first = max(1, self.channels // 2) if self.pyramid else 2 * self.channels
        if step is None:
            step = self.channels // 4 if self.pyramid else 0
        return [first + step * i for i in range(self.blocks)]


class RiseV2Size(RiseSize):
    se_blocks: int = Field(default=5, ge=0, description="number of last blocks with SE")


class RiseV2SmallSize(RiseV2Size):
    blocks: int = Field(default=5, ge=1, le=100)
    pyramid: bool = False


class RiseV3Size(RiseSize):
    ratio: int = Field(default=4, ge=1, description="SE reduction r")
    wide_blocks: int = Field(default=0, ge=0, description="number of last blocks with 5 x 5")


class RiseV3SmallSize(RiseV3Size):
    blocks: int = Field(default=5, ge=1, le=100)
    pyramid: bool = False
    wide_blocks: int = Field(default=2, ge=0, description="number of last blocks with 5 x 5")


class _FourEight(FlatTowerSize):
    value_channels: int = Field(default=4, ge=1, description="channels of the value head")


class _EightSixteen(FlatTowerSize):
    policy_channels: int = Field(default=16, ge=1, description="channels of the flat policy head")


@dataclass(frozen=True)
class PaperBuilder(NetworkBuilder):
    """A net of the papers: a tower between the first convolution and the two heads."""

    name: str
    summary: str
    source: str
    heads: tuple[Head, ...]
    size_type: type[TowerSize | RiseSize]
    tower: Callable[[NetShape, Any], list[nn.Module]]
    """Makes the layers of the tower, of a size of that type."""

    def build(self, shape: NetShape, size: NetSize) -> nn.Module:
        from torch import nn

        from variant_ai.core.nets.layers import conv_norm
        from variant_ai.core.nets.network import Network

        assert isinstance(size, TowerSize | RiseSize)
        tower = self.tower(shape, size)
        policy = _policy_head(shape, size)
        return Network(
            nn.Sequential(*conv_norm(shape.planes, size.channels, 3)),
            nn.Sequential(*tower),
            _value_head(shape, size),
            policy,
        )


def _residual_tower(shape: NetShape, size: TowerSize) -> list[nn.Module]:
    """[CrazyAra-preprint] table 3."""
    from variant_ai.core.nets.layers import residual_block

    return [residual_block(size.channels) for _ in range(size.blocks)]


def _preactivation_tower(shape: NetShape, size: TowerSize) -> list[nn.Module]:
    """[CrazyAra-preprint] table 4."""
    from torch import nn

    from variant_ai.core.nets.layers import preactivation_block

    blocks = [preactivation_block(size.channels) for _ in range(size.blocks)]
    return [*blocks, nn.BatchNorm2d(size.channels), nn.ReLU(inplace=True)]


def _risev2_tower(shape: NetShape, size: RiseV2Size) -> list[nn.Module]:
    from torch import nn

    from variant_ai.core.nets.layers import SqueezeExcite, risev2_block

    board = (shape.height, shape.width)
    tower: list[nn.Module] = []
    for i, width in enumerate(size.widths()):
        attention: list[nn.Module] = []
        if i >= size.blocks - size.se_blocks:
            attention = [SqueezeExcite(size.channels, size.ratio, nn.Sigmoid(), size.pool, board)]
        tower.append(risev2_block(size.channels, width, size.kernel, attention))
    return tower


def _risev3_tower(shape: NetShape, size: RiseV3Size) -> list[nn.Module]:
    from torch import nn

    from variant_ai.core.nets.layers import SpatialAttention, SqueezeExcite, risev3_block

    board = (shape.height, shape.width)
    tower: list[nn.Module] = []
    for i, width in enumerate(size.widths()):
        attention: nn.Module
        if i < size.blocks - 1:
            attention = SqueezeExcite(size.channels, size.ratio, nn.Hardsigmoid(), size.pool, board)
        else:
            attention = SpatialAttention(nn.Hardsigmoid())
        kernel = 5 if i >= size.blocks - size.wide_blocks else size.kernel
        tower.append(risev3_block(size.channels, width, kernel, attention))
    return [*tower, nn.BatchNorm2d(size.channels), nn.ReLU(inplace=True)]


def _value_head(shape: NetShape, size: TowerSize | RiseSize) -> HeadModule | OutcomeHead:
    from variant_ai.core.nets.heads import OutcomeHead, value_head

    widths = size.channels, shape.squares, size.value_channels, size.value_hidden
    if size.wdl or size.plies_left:
        return OutcomeHead(*widths, wdl=size.wdl, plies_left=size.plies_left)
    return value_head(*widths)


def _policy_head(shape: NetShape, size: TowerSize | RiseSize) -> HeadModule:
    from variant_ai.core.nets.heads import flat_head, map_head, one_hot_head

    channels, squares, planes = size.channels, shape.squares, shape.policy_planes
    if isinstance(size, FlatTowerSize):
        return flat_head(channels, squares, size.policy_channels, shape.actions)
    if shape.head == "flat":
        return one_hot_head(channels, channels, squares, planes or channels, shape.actions)
    assert planes is not None
    return map_head(channels, channels, planes, bias=isinstance(size, RiseV3Size))


_PAPER = "[CrazyAra-preprint]"
_THESIS = "[Xiangqi-thesis]"

BUILDERS: tuple[NetworkBuilder, ...] = (
    PaperBuilder(
        "risev2-mobile",
        "mobile bottlenecks, pyramid of 13 blocks, SE in the last five",
        f"{_PAPER}, table 5; {_THESIS}, table 4.5",
        ("map", "flat"),
        RiseV2Size,
        _risev2_tower,
    ),
    PaperBuilder(
        "risev2-mobile-small",
        "mobile bottlenecks, 5 blocks of constant width, SE in all",
        f"{_THESIS}, table 4.4",
        ("map", "flat"),
        RiseV2SmallSize,
        _risev2_tower,
    ),
    PaperBuilder(
        "risev3-mobile",
        "norm-first bottlenecks, pyramid of 13 blocks, SE in all but the last, which has "
        "spatial attention",
        f"{_THESIS}, table 4.7",
        ("map", "flat"),
        RiseV3Size,
        _risev3_tower,
    ),
    PaperBuilder(
        "risev3-mobile-small",
        "norm-first bottlenecks, 5 blocks of constant width, the last two with 5 x 5",
        f"{_THESIS}, table 4.6",
        ("map", "flat"),
        RiseV3SmallSize,
        _risev3_tower,
    ),
    PaperBuilder(
        "alphazero-4v8p",
        "19 residual blocks, value head of 4 channels, flat policy head of 8",
        f"{_PAPER}, tables 3, 6, 7",
        ("flat",),
        _FourEight,
        _residual_tower,
    ),
    PaperBuilder(
        "alphazero-8v16p",
        "19 residual blocks, value head of 8 channels, flat policy head of 16",
        f"{_PAPER}, tables 3, 6, 7",
        ("flat",),
        _EightSixteen,
        _residual_tower,
    ),
    PaperBuilder(
        "alphazero-8v-map",
        "19 residual blocks, value head of 8 channels, policy map",
        f"{_PAPER}, tables 3, 6, 8",
        ("map",),
        TowerSize,
        _residual_tower,
    ),
    PaperBuilder(
        "alphazero-preact-8v-map",
        "19 pre-activation blocks, value head of 8 channels, policy map",
        f"{_PAPER}, tables 4, 6, 8",
        ("map",),
        TowerSize,
        _preactivation_tower,
    ),
)
