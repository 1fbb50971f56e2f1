"""Rules of both built-in variants, by every engine that plays them."""

from __future__ import annotations

from functools import cache

import pytest

from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec


@cache
def _spec(name: str) -> VariantSpec:
    return load_spec(builtin_specs()[name])


@cache
def _rules(name: str, engine: str) -> Rules:
    return make_rules(_spec(name), engine)


@pytest.fixture(params=("kernel", "fairy"))
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def crazyhouse(engine: str) -> Rules:
    return _rules("crazyhouse", engine)


@pytest.fixture
def xiangqi(engine: str) -> Rules:
    return _rules("xiangqi", engine)


@pytest.fixture(params=("crazyhouse", "xiangqi"))
def rules(request: pytest.FixtureRequest, engine: str) -> Rules:
    return _rules(request.param, engine)


@pytest.fixture(params=("crazyhouse", "xiangqi"))
def spec(request: pytest.FixtureRequest) -> VariantSpec:
    return _spec(request.param)
