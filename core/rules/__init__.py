"""Rules of a variant: positions, moves, legality, game ends, FEN and move text.

Rules engines have names. Two are built in and imported at first use; plugins add theirs with
`register_rules_engine`. README.md lists the modules in reading order.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from variant_ai.core.errors import FenError, PluginError, SpecError, UnknownNameError

if TYPE_CHECKING:
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec

__all__ = [
    "OWN_ENGINES",
    "make_rules",
    "plugin_engines",
    "register_rules_engine",
    "rules_engines",
]

_engines: dict[str, str | Callable[[VariantSpec], Rules]] = {
    "kernel": "variant_ai.core.rules.kernel.kernel_rules:KernelRules",
    "fairy": "variant_ai.core.rules.fairy.fairy_rules:FairyRules",
}
OWN_ENGINES = tuple(_engines)
"""Names of the built-in engines."""


def make_rules(spec: VariantSpec, engine: str | None = None) -> Rules:
    """Make the rules of a spec with the named engine; None: the spec's engine.

    Raises UnknownNameError for an unknown engine, SpecError if the engine cannot play the spec or
    its start position.
    """
    name = spec.rules.engine if engine is None else engine
    if name not in _engines:
        raise UnknownNameError("rules engine", name, _engines)
    factory = _engines[name]
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = getattr(importlib.import_module(module), attribute)
    try:
        rules = factory(spec)
        rules.position()
    except FenError as error:
        message = f"variant {spec.variant!r}: rules.start: {error}"
        raise SpecError(message, keys=("rules", "start")) from error
    return rules


def register_rules_engine(name: str, factory: Callable[[VariantSpec], Rules] | str) -> None:
    """Add an engine: a Rules class, a function of the spec, or `module:object` to import late.

    Adding the same engine twice has no effect. Raises PluginError if another one has the name.
    """
    if _engines.get(name, factory) != factory:
        raise PluginError(f"the rules engine {name!r} exists already; use another name")
    _engines[name] = factory


def plugin_engines() -> dict[str, str]:
    """Name -> `module:object` of the engines added by plugins, for child processes, which do not
    load plugins but register these again."""
    return {n: f for n, f in _engines.items() if n not in OWN_ENGINES and isinstance(f, str)}


def rules_engines() -> tuple[str, ...]:
    """Names that `make_rules` accepts."""
    return tuple(_engines)
