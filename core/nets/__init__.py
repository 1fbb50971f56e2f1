"""Networks: builder interface, blocks, heads, the named nets, ONNX files. `README.md` lists the modules.

This file imports `interface` alone, so that listing the nets does not import torch.
"""

from variant_ai.core.nets.interface import (
    HEADS,
    NetConfig,
    NetShape,
    NetSize,
    NetworkBuilder,
    choose_head,
    configure_for,
    core_networks,
    find_builder,
)
from variant_ai.core.spec.plane_layout import Head

__all__ = [
    "HEADS",
    "Head",
    "NetConfig",
    "NetShape",
    "NetSize",
    "NetworkBuilder",
    "choose_head",
    "configure_for",
    "core_networks",
    "find_builder",
]
