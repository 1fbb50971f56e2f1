"""Puzzle suites: read from both formats, solved and not solved."""

from __future__ import annotations

from pathlib import Path

import pytest
from arena_players import ToyPlayer

from variant_ai.core.arena.players.player import Allowance, Fault
from variant_ai.core.data.game_record import MATE
from variant_ai.core.errors import DataError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import core_notations
from variant_ai.plugins import registry
from variant_ai_experiments.puzzle_suites import read_suite, solve

BACK_RANK = "6k1/5ppp/8/8/8/8/8/K3R3[] w - - 0 1"
SUITE = f"""# mates
{{"fen": "{BACK_RANK}", "mate_in": 1, "pv": "e1e8"}}
{BACK_RANK} bm Re8+ e1e7; id "back rank; or not";
6k1/5ppp/8/8/8/8/8/K3R3[] w - - bm e1e2; dm 1;
"""


@pytest.fixture(scope="module")
def rules() -> Rules:
    return make_rules(registry().variant("crazyhouse"))


def attempts(rules: Rules, suite: Path, player: ToyPlayer) -> list[bool]:
    puzzles = read_suite(suite, rules, core_notations())
    return [a.solved for a in solve(player, rules, puzzles, Allowance(nodes=1), wait=5)]


def test_both_formats_are_read_and_solved(rules: Rules, tmp_path: Path) -> None:
    suite = tmp_path / "s.epd"
    suite.write_text(SUITE)
    puzzles = read_suite(suite, rules, core_notations())
    assert [p.mate_in for p in puzzles] == [1, None, 1]
    assert [len(p.best) for p in puzzles] == [1, 2, 1]
    assert puzzles[1].name == "back rank; or not"

    def playing(move: str, score: int | None = None) -> ToyPlayer:
        class Solver(ToyPlayer):
            def play(self, game, turn):  # type: ignore[no-untyped-def]
                from dataclasses import replace

                from variant_ai.core.rules.text.notation import UciNotation

                chosen = UciNotation().read(game.rules, game.position, move)
                return replace(super().play(game, turn), move=chosen, score=score)

        return Solver("s")

    # any mate solves a mate puzzle
    assert attempts(rules, suite, playing("e1e8")) == [True, True, True]
    assert attempts(rules, suite, playing("e1e7")) == [False, True, False]
    assert attempts(rules, suite, playing("e1e2")) == [False, False, True]
    # a mate announced in time counts, a later one does not
    assert attempts(rules, suite, playing("e1e3", MATE - 1)) == [True, False, True]
    assert attempts(rules, suite, playing("e1e3", MATE - 2)) == [False, False, False]


def test_a_player_that_fails_has_not_solved(rules: Rules, tmp_path: Path) -> None:
    suite = tmp_path / "s.epd"
    suite.write_text(SUITE)
    bad = ToyPlayer("bad", fault=Fault("hang", "bad hangs"))
    puzzles = read_suite(suite, rules, core_notations())
    done = list(solve(bad, rules, puzzles, Allowance(nodes=1), wait=5))
    assert [(a.solved, a.fault) for a in done] == [(False, "bad hangs")] * 3


def test_sets_of_mates_in_one_are_read(rules: Rules, tmp_path: Path) -> None:
    suite = tmp_path / "mates.jsonl"
    head = f'{{"format": 1, "variant": "{rules.spec.variant}", "positions": 1}}'
    suite.write_text(f'{head}\n{{"fen": "{BACK_RANK}", "mates": ["e1e7"], "legal": 20}}\n')
    (puzzle,) = read_suite(suite, rules, core_notations())
    assert puzzle.mate_in == 1 and len(puzzle.best) == 1
    suite.write_text(suite.read_text().replace(rules.spec.variant, "shogi", 1))
    with pytest.raises(DataError, match=r"mates.jsonl:1: positions of 'shogi', not of"):
        read_suite(suite, rules, core_notations())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no puzzle"),
        ("not a position at all bm e4;", r"s.epd:1: "),
        (f"\n{BACK_RANK} bm e1e9;", r"s.epd:2: .*e1e9"),
        (f"{BACK_RANK} id x;", "bm .* are missing"),
        ('{"mate_in": 1}', "s.epd:1: `fen`, a text, is missing"),
        ('{"fen": "8/8", "mate_in": "1"}', "s.epd:1: mate_in '1'; accepted: a number"),
        ('{"fen": "8/8", "bm": 5}', "s.epd:1: bm 5; accepted: moves"),
        ('{"fen": "8/8"}', "bm .* are missing"),
        ("{", "s.epd:1"),
    ],
)
def test_suites_that_are_wrong(rules: Rules, tmp_path: Path, text: str, reason: str) -> None:
    suite = tmp_path / "s.epd"
    suite.write_text(text)
    with pytest.raises(DataError, match=reason):
        read_suite(suite, rules, core_notations())
