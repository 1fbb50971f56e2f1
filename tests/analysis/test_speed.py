"""What a bench times, and what it leaves out."""

from __future__ import annotations

import pytest

from variant_ai.core.analysis import search_speed as speed
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import SettingError
from variant_ai.core.inference import RandomEvaluator
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec.catalogue import builtin_specs
from variant_ai.core.spec.loader import load_spec


def test_the_judge_of_chases_is_loaded_before_anything_is_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It halts every thread for a quarter of a second, at the first repetition that asks for it."""
    rules = make_rules(load_spec(builtin_specs()["xiangqi"]))
    encoder = Encoder(rules.spec)
    net = RandomEvaluator(encoder.shape, encoder.actions)
    done: list[str] = []

    def load(given: Rules) -> None:
        assert given is rules
        done.append("loaded")

    def run(search: speed.Search, *_: object) -> object:
        done.append("searched")
        return make_run(search, *_)

    make_run = speed.Search.run
    monkeypatch.setattr(speed, "load_judge", load)
    monkeypatch.setattr(speed.Search, "run", run)
    params = SearchParams.of(rules.spec, memory_mb=16, batch_size=4)
    found = speed.measure(Game(rules), net, params, simulations=20, rounds=1)
    assert done[:2] == ["loaded", "searched"]
    assert found.simulations == 20


def test_few_simulations_are_all_made() -> None:
    rules = make_rules(load_spec(builtin_specs()["dobutsu"]))
    net = RandomEvaluator(Encoder(rules.spec).shape, Encoder(rules.spec).actions)
    params = SearchParams.of(rules.spec, memory_mb=16, batch_size=4)
    assert speed.measure(Game(rules), net, params, simulations=2, rounds=3).simulations == 2


def test_another_search_is_not_timed_as_the_graph_search(monkeypatch: pytest.MonkeyPatch) -> None:
    class OtherSearch:
        def close(self) -> None:
            pass

    monkeypatch.setattr(speed, "make_search", lambda *_, **__: OtherSearch())
    rules = make_rules(load_spec(builtin_specs()["dobutsu"]))
    net = RandomEvaluator(Encoder(rules.spec).shape, Encoder(rules.spec).actions)
    with pytest.raises(SettingError, match="only the search `graph`"):
        speed.measure(Game(rules), net, SearchParams.of(rules.spec), simulations=2, rounds=1)
