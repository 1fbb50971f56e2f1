"""Specs of variants: vocabulary, loader and checks. The YAML files are in `specs/`; README.md lists
the modules in reading order.

Names are imported when they are first used, because some programs need only the list of specs, and
must start without pydantic.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from variant_ai.core.renamed import moved_names

if TYPE_CHECKING:
    from variant_ai.core.spec.catalogue import builtin_specs
    from variant_ai.core.spec.hashing import encoding_hash, rules_hash, spec_hash
    from variant_ai.core.spec.loader import load_spec, parse_spec
    from variant_ai.core.spec.schema import VariantSpec

__all__ = [
    "VariantSpec",
    "builtin_specs",
    "encoding_hash",
    "load_spec",
    "parse_spec",
    "rules_hash",
    "spec_hash",
]

_MODULES = {
    "VariantSpec": "schema",
    "builtin_specs": "catalogue",
    "encoding_hash": "hashing",
    "load_spec": "loader",
    "parse_spec": "loader",
    "rules_hash": "hashing",
    "spec_hash": "hashing",
}


_moved = moved_names(
    __name__,
    dict.fromkeys(
        "DataError EngineError FenError MoveError PluginError SpecError UnknownNameError VariantAIError".split(),
        "variant_ai.core.errors",
    ),
)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        return _moved(name)
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
