"""The plugin host: what a plugin may add (`hookspecs`), and the registry of all that was added.

Importing this package is cheap: names are known without reading a spec or loading a network.
"""

from __future__ import annotations

from variant_ai.plugins.hookspecs import (
    API_VERSION,
    CommandEntry,
    EncoderEntry,
    EvaluatorEntry,
    NetworkEntry,
    NotationEntry,
    ProtocolEntry,
    ReaderEntry,
    RulesEntry,
    SearchEntry,
    TrainerEntry,
    VariantEntry,
    hookimpl,
)
from variant_ai.plugins.host import PluginInfo
from variant_ai.plugins.registered import Registry, registry

__all__ = [
    "API_VERSION",
    "CommandEntry",
    "EncoderEntry",
    "EvaluatorEntry",
    "NetworkEntry",
    "NotationEntry",
    "PluginInfo",
    "ProtocolEntry",
    "ReaderEntry",
    "Registry",
    "RulesEntry",
    "SearchEntry",
    "TrainerEntry",
    "VariantEntry",
    "hookimpl",
    "registry",
]
