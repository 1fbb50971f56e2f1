"""Rules of a variant: positions, moves, legality, game ends, FEN and move text.

Rules engines have names. Two are built in and imported at first use; plugins add theirs with
`register_rules`. README.md lists the modules in reading order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from variant_ai.core.errors import FenError, SpecError
from variant_ai.core.factories import RULES_ENGINES

if TYPE_CHECKING:
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec

__all__ = ["RULES_ENGINES", "make_rules"]


def make_rules(spec: VariantSpec, engine: str | None = None) -> Rules:
    """Make the rules of a spec with the named engine; None: the spec's engine.

    Raises UnknownNameError for an unknown engine, SpecError if the engine cannot play the spec or
    its start position.
    """
    factory = RULES_ENGINES.load(spec.rules.engine if engine is None else engine)
    try:
        rules = factory(spec)
        rules.position()
    except FenError as error:
        message = f"variant {spec.variant!r}: rules.start: {error}"
        raise SpecError(message, keys=("rules", "start")) from error
    return rules
