"""Rules of a variant: positions, moves, legality, game ends, FEN and move text.

Read `interface` first, then `position`, `pieces`, `game`, and the folders `kernel/` (compiled),
`fairy/` (pyffish) and `text/` (FEN, notations). Engines are found by name in `RULES_ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from variant_ai.core.errors import FenError, SpecError
from variant_ai.core.factories import RULES_ENGINES

if TYPE_CHECKING:
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec

__all__ = ["RULES_ENGINES", "make_rules", "register_rules_engine", "rules_engines"]


def make_rules(spec: VariantSpec, engine: str | None = None) -> Rules:
    """Rules of the spec, played by the named engine (None: the spec's choice).

    Raises UnknownNameError for an engine that does not exist, SpecError if the engine cannot play
    the spec or its start position.
    """
    factory = RULES_ENGINES.load(spec.rules.engine if engine is None else engine)
    try:
        rules = factory(spec)
        rules.position()
    except FenError as error:
        message = f"variant {spec.variant!r}: rules.start: {error}"
        raise SpecError(message, keys=("rules", "start")) from error
    return rules


def register_rules_engine(name: str, factory: Callable[[VariantSpec], Rules] | str) -> None:
    """Add an engine: a Rules class or function of the spec, or `module:object` to import late.

    Adding the same one again changes nothing. Raises PluginError if another has the name.
    """
    RULES_ENGINES.register(name, factory)


def rules_engines() -> tuple[str, ...]:
    """Names that `make_rules` takes."""
    return RULES_ENGINES.names
