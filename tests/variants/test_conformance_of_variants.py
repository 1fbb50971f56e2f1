"""The variants that ship with the project pass the kit that plugins are given."""

from __future__ import annotations

from functools import cache

import pytest

from variant_ai.core.data.read.game_reader import core_readers
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import core_notations
from variant_ai.plugins import registry
from variant_ai.testing import check_notation, check_reader, check_rules_engine

VARIANTS = tuple(registry().variants)
KERNEL = [name for name in VARIANTS if registry().variant(name).rules.engine == "kernel"]
CORE = {one.name for one in (*core_notations(), *core_readers())}
NOTATIONS = [
    (variant, name)
    for variant in VARIANTS
    for name in registry().notations(registry().variant(variant))
    if name not in CORE
]
FILES = {
    "crazyhouse-pgn": (
        '[Event "one"]\n[Variant "Crazyhouse"]\n\n1. e4 d5 2. exd5 Qxd5 3. P@e4 1-0\n\n'
        '[Event "two"]\n\n1. d4 Nf6 *\n'
    ),
    "xiangqi-pgn": (
        '[Game "Chinese Chess"]\n[Event "one"]\n\n1. 炮二平五 馬８進７ 2. 馬二進三 1-0\n\n'
        '[Game "Chinese Chess"]\n[Event "two"]\n\n1. C2=5 H8+7 *\n'
    ),
    "dhtmlxq": (
        "[DhtmlXQ]\n[DhtmlXQ_title]one[/DhtmlXQ_title]\n[DhtmlXQ_movelist]77477062[/DhtmlXQ_movelist]\n"
        "[/DhtmlXQ]\n\n[DhtmlXQ]\n[DhtmlXQ_movelist]7747[/DhtmlXQ_movelist]\n[/DhtmlXQ]\n"
    ),
}
"""Two games in the format of each reader."""


@cache
def rules_of(variant: str) -> Rules:
    return make_rules(registry().variant(variant))


@pytest.mark.parametrize("variant", VARIANTS)
def test_rules(variant: str) -> None:
    check_rules_engine(make_rules, registry().variant(variant), games=1)


@pytest.mark.parametrize("variant", KERNEL)
def test_notations_of_the_core(variant: str) -> None:
    for notation in core_notations():
        check_notation(notation, rules_of(variant), games=1)


@pytest.mark.parametrize(("variant", "name"), NOTATIONS)
def test_notations_of_plugins(variant: str, name: str) -> None:
    notation = registry().notation(registry().variant(variant), name)
    check_notation(notation, rules_of(variant), games=3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_readers_of_plugins(variant: str) -> None:
    spec = registry().variant(variant)
    notations = [one for name, one in registry().notations(spec).items() if name not in CORE]
    for name, reader in registry().readers(spec).items():
        if name in CORE:
            continue
        data = FILES[name].encode()
        games = check_reader(reader, data, games=2, rules=rules_of(variant), notations=notations)
        assert all(game.moves for game in games), name
