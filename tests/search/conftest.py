"""Fixtures for the tests of the search."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from slow_rules import on_fairy

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import Evaluator, RandomEvaluator, UniformEvaluator
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import DEFAULT_SET, PAPER, SearchParams
from variant_ai.core.spec import VariantSpec
from variant_ai.plugins import registry

MakeSearch = Callable[..., Search]


@pytest.fixture(scope="session")
def spec_of() -> Callable[[str], VariantSpec]:
    known: dict[str, VariantSpec] = {}

    def get(name: str) -> VariantSpec:
        if name not in known:
            spec = registry().variant(name.removesuffix(" on fairy"))
            known[name] = on_fairy(spec) if name.endswith(" on fairy") else spec
        return known[name]

    return get


@pytest.fixture(scope="session")
def rules_of(spec_of: Callable[[str], VariantSpec]) -> Callable[[str], Rules]:
    known: dict[str, Rules] = {}

    def get(name: str) -> Rules:
        if name not in known:
            known[name] = make_rules(spec_of(name))
        return known[name]

    return get


@pytest.fixture
def make_search(rules_of: Callable[[str], Rules]) -> Iterator[MakeSearch]:
    """make_search(variant, fen=None, moves="", net="uniform" | "random" | Evaluator, **params)."""
    made: list[Search] = []

    def make(
        variant: str,
        fen: str | None = None,
        moves: str = "",
        net: str | Evaluator = "uniform",
        **params: object,
    ) -> Search:
        rules = rules_of(variant)
        encoder = Encoder(rules.spec)
        if isinstance(net, str):
            kind = UniformEvaluator if net == "uniform" else RandomEvaluator
            net = kind(encoder.shape, encoder.actions)
        params = {"memory_mb": 64, **params}
        # positions of the tests were found with the papers' settings, which are not tuned any more
        words = PAPER if PAPER in rules.spec.settings else DEFAULT_SET
        chosen = SearchParams.of(rules.spec, words, **params)
        search = Search(rules.spec, net, chosen, rules=rules)
        search.set_game(Game.from_uci(rules, fen, moves.split()))
        made.append(search)
        return search

    yield make
    for search in made:
        search.close()


@pytest.fixture
def one_move_left() -> str:
    """Moves of a xiangqi game in which Red is in perpetual check and has one move left, which repeats
    the position for the third time."""
    return (
        "a1a2 c7c6 g4g5 b10c8 h1g3 a10a9 g3f5 h8d8 h3e3 h10g8 i1h1 a9f9 f5e7 g8e7 e3e7 c8d6 h1h6 "
        "d6c4 b3b7 g7g6 h6g6 i10i8 a2c2 c4d6 g6d6 f9f4 d6d8 i8d8 c1e3 d8d1 e1d1 f4f1 d1d2 f1e1 "
        "c2c6 b8b1 g5g6 b1g1 e3g1 e1g1 c6c10 g1g2 d2d1 g2g1 d1d2 g1g2 d2d1 g2g1"
    )
