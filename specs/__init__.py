"""What a variant is: the schema of specs, the loader, the checks, and the specs themselves.

Names are imported when first used: the exceptions and the list of specs are wanted by programs
that must start in a blink and have no time for pydantic.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variant_ai.specs.errors import (
        DataError,
        EngineError,
        FenError,
        MoveError,
        PluginError,
        SpecError,
        UnknownNameError,
        VariantAIError,
    )
    from variant_ai.specs.hashing import encoding_hash, rules_hash, spec_hash
    from variant_ai.specs.index import builtin_specs
    from variant_ai.specs.loader import load_spec, parse_spec
    from variant_ai.specs.schema import VariantSpec

__all__ = [
    "DataError",
    "EngineError",
    "FenError",
    "MoveError",
    "PluginError",
    "SpecError",
    "UnknownNameError",
    "VariantAIError",
    "VariantSpec",
    "builtin_specs",
    "encoding_hash",
    "load_spec",
    "parse_spec",
    "rules_hash",
    "spec_hash",
]

_HOME = {
    "VariantSpec": "schema",
    "builtin_specs": "index",
    "encoding_hash": "hashing",
    "load_spec": "loader",
    "parse_spec": "loader",
    "rules_hash": "hashing",
    "spec_hash": "hashing",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME.get(name, 'errors')}"), name)
