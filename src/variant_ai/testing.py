"""The conformance kit: what the tests of a plugin call, and those of the project itself.

    >>> import variant_ai
    >>> from variant_ai.testing import check_rules_engine, check_spec
    >>> spec = variant_ai.load_variant("dobutsu")
    >>> for report in check_spec(spec, positions=50, seed=1):
    ...     _ = report.require()
    >>> check_rules_engine(variant_ai.make_rules, spec)

| check | of | a failure |
| --- | --- | --- |
| `check_spec` | a whole variant: rules, game ends, encoding, net | `Report` |
| `check_rules`, `check_game_ends` | rules against Fairy-Stockfish | `Report` |
| `check_encoder` | planes, actions and codes of the spec | `Report` |
| `check_export` | a small net as ONNX | `Report` |
| `check_rules_engine` | a `Rules` class, without a judge | AssertionError |
| `check_input_encoder`, `check_label_encoder` | an `InputEncoder`, a `LabelEncoder` | AssertionError |
| `check_network` | a `NetworkBuilder` | AssertionError |
| `check_search` | a `BaseSearch` class | AssertionError |
| `check_trainer` | a `BaseTrainer` class | AssertionError |
| `check_reader` | a `GameReader`, with a file of its format | AssertionError |
| `check_notation` | a `Notation` | AssertionError |

A `Report` has the first difference with FEN and move; `report.require()` raises it as an
AssertionError. `strategies` has Hypothesis strategies of games, positions, moves and FENs of any
variant; it alone needs Hypothesis (`pip install 'variant-ai[testing]'`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from variant_ai.core.testing.encoding_conformance import check_encoder
from variant_ai.core.testing.engine_conformance import check_rules_engine
from variant_ai.core.testing.game_conformance import check_game_ends
from variant_ai.core.testing.interface_conformance import (
    check_input_encoder,
    check_label_encoder,
    check_network,
    check_notation,
    check_reader,
    check_search,
    check_trainer,
)
from variant_ai.core.testing.random_games import Report
from variant_ai.core.testing.rules_conformance import check_rules
from variant_ai.core.testing.variant_check import check_export, check_spec

if TYPE_CHECKING:
    from variant_ai.core.testing import strategies

__all__ = [
    "Report",
    "check_encoder",
    "check_export",
    "check_game_ends",
    "check_input_encoder",
    "check_label_encoder",
    "check_network",
    "check_notation",
    "check_reader",
    "check_rules",
    "check_rules_engine",
    "check_search",
    "check_spec",
    "check_trainer",
    "strategies",
]


def __getattr__(name: str) -> Any:
    if name != "strategies":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return importlib.import_module("variant_ai.core.testing.strategies")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
