"""Conformance kit: checks that the rules, encoder and other parts of a variant must pass.

`variant_ai.testing` is its public name, for the tests of plugins as much as for ours. Every check
plays random games from a seed and stops at the first difference. Those of a whole variant return a
`Report`, those of one implementation raise AssertionError. Modules in reading order:

    random_games           the report, and random games steered towards what is rare
    rules_conformance      check_rules: moves, checks and FENs against Fairy-Stockfish
    game_conformance       check_game_ends: repetition, chases and move counts against it
    engine_conformance     check_rules_engine: what every rules engine must do, without a judge
    fairy_agreement        check_fairy_engine: the rules engine `fairy` against pyffish itself
    encoding_conformance   check_encoder: planes, actions and codes, there and back
    interface_conformance  check_input_encoder, check_label_encoder, check_network, check_search,
                           check_trainer: what plugins may bring, by themselves
    text_conformance       check_notation, check_reader: moves as text, files of games
    strategies             Hypothesis strategies of games, positions, moves and FENs
    variant_check          check_spec: all of these on one spec; check_export: its net as ONNX;
                           check_variant: every room once, in seconds
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variant_ai.core.testing import strategies
    from variant_ai.core.testing.encoding_conformance import check_encoder
    from variant_ai.core.testing.engine_conformance import check_rules_engine
    from variant_ai.core.testing.fairy_agreement import check_fairy_engine
    from variant_ai.core.testing.game_conformance import check_game_ends
    from variant_ai.core.testing.interface_conformance import (
        check_input_encoder,
        check_label_encoder,
        check_network,
        check_search,
        check_trainer,
    )
    from variant_ai.core.testing.random_games import Report
    from variant_ai.core.testing.rules_conformance import check_rules
    from variant_ai.core.testing.text_conformance import check_notation, check_reader
    from variant_ai.core.testing.variant_check import check_export, check_spec, check_variant

__all__ = [
    "Report",
    "check_encoder",
    "check_export",
    "check_fairy_engine",
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
    "check_variant",
    "strategies",
]

_MODULES = {
    "Report": "random_games",
    "check_encoder": "encoding_conformance",
    "check_export": "variant_check",
    "check_fairy_engine": "fairy_agreement",
    "check_game_ends": "game_conformance",
    "check_input_encoder": "interface_conformance",
    "check_label_encoder": "interface_conformance",
    "check_network": "interface_conformance",
    "check_notation": "text_conformance",
    "check_reader": "text_conformance",
    "check_rules": "rules_conformance",
    "check_rules_engine": "engine_conformance",
    "check_search": "interface_conformance",
    "check_spec": "variant_check",
    "check_trainer": "interface_conformance",
    "check_variant": "variant_check",
    "strategies": "",
}
"""Module of each name; imported when the name is first used, since some need torch, pyffish or
Hypothesis. Empty: the name is a module."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES[name] or name}")
    return getattr(module, name) if _MODULES[name] else module


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
