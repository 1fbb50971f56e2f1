"""Tables fit a terminal of 100 columns, whatever is in them."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from variant_ai.cli.common.console import print_table
from variant_ai.cli.main import cli
from variant_ai.core.arena.tables.crosstable import standings, text
from variant_ai.core.arena.tables.elo import Tally
from variant_ai.core.system.text_tables import WIDTH, counted, fitted

WORDS = st.text("abcdefgh /-", min_size=1, max_size=150)
NUMBERS = st.integers(0, 10**20).map(str)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_any_table_fits(data: st.DataObject) -> None:
    """Text is broken over lines, numbers never; nothing is left out."""
    numbers = data.draw(st.lists(st.booleans(), min_size=1, max_size=14))
    heads = [f"{data.draw(WORDS)}{column}" for column in range(len(numbers))]
    row = st.tuples(*(NUMBERS if number else WORDS for number in numbers))
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    right = [head for head, number in zip(heads, numbers, strict=True) if number]
    with CliRunner().isolation() as (out, *_):
        print_table(heads, rows, right=right)
        printed = out.getvalue().decode()
    assert max(map(len, printed.splitlines())) <= WIDTH
    for cells in rows:
        for cell, number in zip(cells, numbers, strict=True):
            if number:
                assert cell in printed
            else:
                assert set(cell.split()) <= set(printed.split()) or len(cell) > 10


def test_columns_that_do_not_fit_follow_below() -> None:
    groups = fitted([20, 30, 30, 30], [20, 30, 30, 30], gap=3)
    assert groups == [[(0, 20), (1, 30), (2, 30)], [(0, 20), (3, 30)]]
    assert fitted([20, 90], [14, 14], gap=3) == [[(0, 20), (1, 77)]]
    assert fitted([200], [150], gap=3) == [[(0, 150)]]  # nothing can be done


@pytest.mark.parametrize("players", [2, 4, 16])
def test_a_table_of_many_players_fits(players: int) -> None:
    names = [f"net:runs/{'a-very-long-name-of-a-run/' * 3}{k}" for k in range(players)]
    tally = Tally(wins=100, losses=20, draws=30)
    results = [[tally if i != j else Tally() for j in range(players)] for i in range(players)]
    extra = {name: {"nodes/s": "12,345", "depth": "14.2", "seconds": "1.25"} for name in names}
    shown = text(standings(names, results, extra=extra))
    table = [line for line in shown.splitlines() if " against " not in line]
    assert max(map(len, table)) <= WIDTH
    for k in range(players):
        assert f"/{k}" in shown
    if players > 2:
        met = Tally(wins=120, losses=120, draws=60).text
        assert shown.count(met) == players * (players - 1)


@pytest.mark.parametrize(
    "words",
    [
        ("variants",),
        ("plugins",),
        ("nets",),
        ("nets", "-V", "xiangqi", "-V", "crazyhouse"),
        ("nets", "risev3-mobile", "-V", "crazyhouse"),
        ("spec", "show", "xiangqi"),
    ],
)
def test_commands_fit(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, list(words))
    assert result.exit_code == 0, result.output
    tables = [part for part in result.stdout.split("\n\n") if "───" in part]
    assert tables
    for line in "\n".join(tables).splitlines():
        assert len(line) <= WIDTH


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "game", "0 games"),
        (1, "game", "1 game"),
        (1, "ply", "1 ply"),
        (2, "ply", "2 plies"),
        (3, "process", "3 processes"),
        (2, "match", "2 matches"),
        (2, "day", "2 days"),
        (2500, "finished shard", "2,500 finished shards"),
    ],
)
def test_a_number_agrees_with_its_noun(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text
