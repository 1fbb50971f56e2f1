"""Proofs of the search: mates and their length, draws, and what must not count as a proof."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from variant_ai.core.rules.game import Game
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search

MakeSearch = Callable[..., Search]


def text(search: Search, move: int) -> str:
    return uci(search.rules.types, search.spec.board.files, move)


def mates(folder: Path, moves: int, count: int) -> list[dict[str, str]]:
    text = (folder / "puzzles/xiangqi-mates.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    rows = [row for row in rows if row["mate_in"] == moves]
    return rows[:: max(1, len(rows) // count)][:count]


def test_mates_in_one_are_found_at_once(make_search: MakeSearch, shared_data: Path) -> None:
    search = make_search("xiangqi")
    for row in mates(shared_data, 1, 12):
        search.set_game(Game(search.rules, row["fen"]))
        report = search.run(Limits(simulations=20_000))
        assert (report.stopped_by, report.lines[0].mate) == ("solved", 1), row
        assert report.lines[0].q == 1
        assert len(report.lines[0].pv) == 1


def test_mates_in_two_are_found(make_search: MakeSearch, shared_data: Path) -> None:
    search = make_search("xiangqi")
    for row in mates(shared_data, 2, 8):
        search.set_game(Game(search.rules, row["fen"]))
        report = search.run(Limits(simulations=200_000))
        assert report.stopped_by == "solved", row
        assert report.lines[0].mate is not None
        assert report.lines[0].mate >= 3
        assert len(report.lines[0].pv) == report.lines[0].mate


@pytest.mark.parametrize(
    ("variant", "fen", "move", "plies"),
    [
        ("crazyhouse", "6k1/5ppp/8/8/8/8/5PPP/6K1[R] w - - 0 1", "R@a8", None),
        ("crazyhouse", "k7/8/1K6/8/8/8/8/8[Q] w - - 0 1", None, 1),
        ("chess", "7k/5Q2/6K1/8/8/8/8/8 w - - 0 1", None, 1),
    ],
)
def test_mates_elsewhere(
    make_search: MakeSearch, variant: str, fen: str, move: str | None, plies: int | None
) -> None:
    search = make_search(variant, fen)
    report = search.run(Limits(simulations=50_000))
    if plies is not None:
        assert (report.stopped_by, report.lines[0].mate) == ("solved", plies)
    if move is not None:
        assert report.best is not None
        assert text(search, report.best) == move


def test_a_lost_root_takes_the_longest_defence(make_search: MakeSearch, shared_data: Path) -> None:
    """After the first move of a mate in two every reply allows mate in one: two plies."""
    row = mates(shared_data, 2, 1)[0]
    search = make_search("xiangqi", row["fen"], row["pv"].split()[0])
    report = search.run(Limits(simulations=100_000))
    assert report.stopped_by == "solved"
    assert report.lines[0].mate == -2
    assert report.lines[0].q == -1


def test_a_bare_draw_is_proven(make_search: MakeSearch) -> None:
    """The king captures the last piece, which leaves a dead position; no other move is better."""
    search = make_search("chess", "8/8/8/8/8/2k5/1p6/K7 w - - 0 1")
    report = search.run(Limits(simulations=20_000))
    assert report.lines[0].q > -1


def test_without_the_solver_nothing_is_proven(make_search: MakeSearch) -> None:
    search = make_search("chess", "7k/5Q2/6K1/8/8/8/8/8 w - - 0 1", solver=False)
    report = search.run(Limits(simulations=2000))
    assert report.stopped_by == "simulations"
    assert report.lines[0].mate is None
    # mate stop: once the mating move has been tried, no other move is
    assert report.lines[0].q > 0.9
    assert report.lines[0].visits > 1500


def test_the_move_count_proves_nothing(make_search: MakeSearch) -> None:
    """One ply before the limit of the move count every quiet move draws, but only by the count."""
    fen = "4k4/9/9/9/9/9/9/9/4A4/3K1A3 w - - 119 100"
    search = make_search("xiangqi", fen)
    report = search.run(Limits(simulations=500))
    assert report.stopped_by == "simulations"
    assert report.terminals > 400
    assert report.lines[0].q == 0
    assert report.lines[0].mate is None
    assert len(report.lines[0].pv) == 1
