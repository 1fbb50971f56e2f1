"""Networks: builder interface, blocks, towers, heads, the named zoo, ONNX export.

From lowest to highest: `interface` (no torch), `blocks`, `heads`, `network`, `zoo` (the named
builders), `describe`, `checksums`, `export`, `restore`. This file imports the interface alone, so that naming
nets costs no torch import.
"""

from variant_ai.core.nets.interface import (
    HEADS,
    Head,
    NetConfig,
    NetShape,
    NetSize,
    NetworkBuilder,
    build_net,
    configure_net,
    core_networks,
    find_builder,
    index_builders,
)

__all__ = [
    "HEADS",
    "Head",
    "NetConfig",
    "NetShape",
    "NetSize",
    "NetworkBuilder",
    "build_net",
    "configure_net",
    "core_networks",
    "find_builder",
    "index_builders",
]
