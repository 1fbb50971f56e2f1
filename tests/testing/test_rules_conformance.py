"""Conformance kit: no difference in our specs, and a difference in wrong ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from small_board import small_xiangqi

from variant_ai.core.errors import SpecError
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.core.spec.schema import LastMovesPlanes, VariantSpec
from variant_ai.testing import check_game_ends, check_rules

JUDGED = tuple(name for name, path in builtin_specs().items() if load_spec(path).fairy)
POSITIONS = 150
"""Positions of each variant; `variant-ai spec check` has an option."""


def with_piece(spec: VariantSpec, symbol: str, **change: object) -> VariantSpec:
    pieces = dict(spec.pieces)
    pieces[symbol] = pieces[symbol].model_copy(update=change)
    return spec.model_copy(update={"pieces": pieces})


@pytest.mark.parametrize("variant", JUDGED)
def test_rules_agree_with_fairy_stockfish(variant: str) -> None:
    report = check_rules(load_spec(builtin_specs()[variant]), POSITIONS, seed=1, isolated=False)
    assert report.agrees, report.first_difference
    assert report.positions == POSITIONS
    assert report.counts["captures"] > 0


def test_planes_of_the_last_moves_change_no_verdict() -> None:
    spec = load_spec(builtin_specs()["chess"])
    seeing = spec.model_copy(update={"input": (*spec.input, LastMovesPlanes(last_moves=2))})
    report = check_rules(seeing, 60, seed=1, isolated=False)
    assert report.agrees, report.first_difference


def test_a_reference_on_another_board_is_named() -> None:
    """Otherwise nearly every move would differ, and the report would not say why."""
    with pytest.raises(SpecError, match=r"9 x 9.*accepted: a `fairy:` with this board"):
        check_rules(small_xiangqi(), 20, seed=1, isolated=False)


def test_a_wrong_movement_is_found_and_named_by_fen_and_move() -> None:
    spec = with_piece(load_spec(builtin_specs()["xiangqi"]), "N", moves="N")
    report = check_rules(spec, 500, seed=1, isolated=False)
    assert not report.agrees
    assert "moves only ours: " in report.first_difference
    assert report.first_difference.split()[0].count("/") == 9


def test_a_wrong_verdict_on_stalemate_is_found() -> None:
    spec = load_spec(builtin_specs()["antichess"])
    rules = spec.rules.model_copy(update={"stalemate": "draw"})
    wrong = spec.model_copy(update={"rules": rules})
    # Fairy-Stockfish gets the spec's stalemate rule, but keeps its own rule of extinction
    report = check_rules(wrong, 20_000, seed=1, isolated=False)
    assert "end for the side to move" in report.first_difference


def test_the_reference_runs_in_a_process_of_its_own() -> None:
    report = check_rules(load_spec(builtin_specs()["dobutsu"]), 60, seed=2)
    assert report.agrees
    assert report.positions == 60


def test_the_same_seed_plays_the_same_games() -> None:
    spec = load_spec(builtin_specs()["minishogi"])
    first, again = (check_rules(spec, 80, seed=5, isolated=False) for _ in range(2))
    assert first == again


def test_a_spec_without_a_reference_is_an_error() -> None:
    spec = load_spec(builtin_specs()["chess"]).model_copy(update={"fairy": None})
    with pytest.raises(SpecError, match="cannot be compared"):
        check_rules(spec, 10, seed=1, isolated=False)


@pytest.mark.parametrize("isolated", [True, False])
def test_the_error_of_an_unknown_reference_has_similar_names(isolated: bool) -> None:
    spec = load_spec(builtin_specs()["chess"]).model_copy(update={"fairy": "knightmat"})
    with pytest.raises(SpecError, match=r"`fairy: knightmat`.*similar: knightmate") as caught:
        check_rules(spec, 10, seed=1, isolated=isolated)
    assert "died" not in str(caught.value)
    with pytest.raises(SpecError, match="similar: knightmate"):
        check_game_ends(spec, 1, seed=1)


@pytest.mark.parametrize(
    ("words", "found"),
    [({"checked_king": "only captures"}, "moves only ours"), ({"checkmate": "win"}, "end for the")],
)
def test_rules_that_make_another_game_of_a_named_variant(
    words: dict[str, object], found: str
) -> None:
    spec = load_spec(builtin_specs()["chess"])
    wrong = spec.model_copy(update={"rules": spec.rules.model_copy(update=words)})
    # one step from mate: games from the start seldom get there
    report = check_rules(
        wrong, 4_000, 1, isolated=False, starts=("7k/5Q2/6K1/8/8/8/8/8 w - - 0 1",)
    )
    assert found in report.first_difference


def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from variant_ai import load_variant\nfrom variant_ai.testing import check_rules\n"
        "check_rules(load_variant('dobutsu'), 20, seed=1)\n"
    )
    done = subprocess.run([sys.executable, script], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert 'call it under `if __name__ == "__main__":`' in done.stderr
