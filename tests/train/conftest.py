"""Stores of a few random games, made once per session."""

from __future__ import annotations

from pathlib import Path

import pytest
from random_games import random_store

from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec


@pytest.fixture(scope="session")
def xiangqi() -> VariantSpec:
    return load_spec(builtin_specs()["xiangqi"])


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, xiangqi: VariantSpec) -> Path:
    return random_store(tmp_path_factory.mktemp("stores") / "a.store", xiangqi, 24, 20, 0)


@pytest.fixture(scope="session")
def other_store(tmp_path_factory: pytest.TempPathFactory, xiangqi: VariantSpec) -> Path:
    return random_store(tmp_path_factory.mktemp("stores") / "b.store", xiangqi, 8, 12, 1)


@pytest.fixture(scope="session")
def crazyhouse_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = load_spec(builtin_specs()["crazyhouse"])
    return random_store(tmp_path_factory.mktemp("stores") / "c.store", spec, 8, 12, 2)
