"""Specs that ship with the project: a YAML file per variant, their JSON schema, and a table of names.

The code that reads them is `variant_ai.core.spec`.
"""

from variant_ai.core.renamed import moved_names

_ERRORS = (
    "DataError",
    "EngineError",
    "FenError",
    "MoveError",
    "PluginError",
    "SpecError",
    "UnknownNameError",
    "VariantAIError",
)
_OTHERS = (
    "VariantSpec",
    "builtin_specs",
    "encoding_hash",
    "load_spec",
    "parse_spec",
    "rules_hash",
    "spec_hash",
)

__getattr__ = moved_names(
    __name__,
    dict.fromkeys(_ERRORS, "variant_ai.core.errors")
    | dict.fromkeys(_OTHERS, "variant_ai.core.spec"),
)
