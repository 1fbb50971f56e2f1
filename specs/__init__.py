"""Specs that ship with the project: a YAML file per variant, their JSON schema, and a table of names.

The code that reads them is `variant_ai.core.spec`.
"""

from variant_ai.core.renamed import moved_names

_NAMES = (
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
)

__getattr__ = moved_names(__name__, dict.fromkeys(_NAMES, "variant_ai.core.spec"))
