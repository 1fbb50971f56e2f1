"""perft counts that programs of other authors agree on, and the kernel's."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.kernel.perft import divide, perft
from variant_ai.core.spec import builtin_specs, load_spec

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "counts.json").read_text())
MOST_NODES = 1_000_000
"""Deeper counts are left to the full run."""


@cache
def rules_of(variant: str) -> KernelRules:
    return KernelRules(load_spec(builtin_specs()[variant]))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['variant']} {v['fen'][:24]}")
def test_counts_are_those_of_other_programs(vector: dict[str, Any]) -> None:
    rules = rules_of(vector["variant"])
    position = rules.position(vector["fen"])
    for depth, nodes in enumerate(vector["perft"], 1):
        if nodes is not None and nodes <= MOST_NODES:
            assert perft(rules, position, depth) == nodes, f"depth {depth}"


@pytest.mark.slow
@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['variant']} {v['fen'][:24]}")
def test_deep_counts_are_those_of_other_programs(vector: dict[str, Any]) -> None:
    rules = rules_of(vector["variant"])
    position = rules.position(vector["fen"])
    for depth, nodes in enumerate(vector["perft"], 1):
        if nodes is not None and nodes > MOST_NODES:
            assert perft(rules, position, depth) == nodes, f"depth {depth}"


def test_divide_splits_the_count_by_first_move() -> None:
    rules = rules_of("crazyhouse")
    parts = divide(rules, rules.position(), 3)
    assert len(parts) == 20
    assert sum(parts.values()) == 8902
    assert parts["e2e4"] == 600


def test_no_moves_is_one_sequence() -> None:
    rules = rules_of("crazyhouse")
    assert perft(rules, rules.position(), 0) == 1
