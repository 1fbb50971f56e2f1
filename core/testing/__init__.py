"""Conformance kit: checks that the rules, encoder and other parts of a variant must pass.

For the tests of plugins as much as for ours:

    from variant_ai.core.testing import check_encoder, check_rules

    report = check_rules(load_spec("my-variant.yaml"), positions=2000, seed=1)
    assert report.agrees, report.first_difference

Every check plays random games from a seed, stops at the first difference and returns a `Report`
that names it by FEN and move. Modules in reading order:

    random_games           the report, and random games steered towards what is rare
    rules_conformance      check_rules: moves, checks and FENs against Fairy-Stockfish
    game_conformance       check_game_ends: repetition, chases and move counts against it
    fairy_agreement        check_fairy_engine: the rules engine `fairy` against pyffish itself
    encoding_conformance   check_encoder: planes, actions and codes, there and back
    interface_conformance  check_input_encoder, check_label_encoder, check_network, check_search,
                           check_trainer: what plugins may bring, by themselves
    variant_check          check_spec: all of these on one spec; check_export: its net as ONNX;
                           check_variant: every room once, in seconds
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variant_ai.core.testing.encoding_conformance import check_encoder
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
    "check_rules",
    "check_search",
    "check_spec",
    "check_trainer",
    "check_variant",
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
    "check_search": "interface_conformance",
    "check_trainer": "interface_conformance",
    "check_rules": "rules_conformance",
    "check_spec": "variant_check",
    "check_variant": "variant_check",
}
"""Module of each name; imported when the name is first used, since some need torch or pyffish."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
