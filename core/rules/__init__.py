"""Rules of a variant: positions, moves, legality, game ends, FEN and move text.

Engines are found by name. Two are built in and imported when first asked for; plugins add theirs
with `register_rules_engine`.
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
"""Those that are built in."""


def make_rules(spec: VariantSpec, engine: str | None = None) -> Rules:
    """Rules of the spec, played by the named engine (None: the spec's choice).

    Raises UnknownNameError for an engine that does not exist, SpecError where the engine cannot
    play the spec, its start position too.
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
    """Add an engine: a Rules class or function of the spec, or `module:object` to import late.

    Adding the same one again changes nothing. Raises PluginError where another has the name.
    """
    if _engines.get(name, factory) != factory:
        raise PluginError(f"the rules engine {name!r} exists already; choose another name")
    _engines[name] = factory


def plugin_engines() -> dict[str, str]:
    """Name -> `module:object` of the engines that plugins added so, for a process of ours that looks
    for no plugins itself: it registers them again."""
    return {n: f for n, f in _engines.items() if n not in OWN_ENGINES and isinstance(f, str)}


def rules_engines() -> tuple[str, ...]:
    """Names that `make_rules` takes."""
    return tuple(_engines)
