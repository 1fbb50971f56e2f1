"""A small part of the comparison of game ends with Fairy-Stockfish, and proof that it can fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from variant_ai.core.errors import SpecError
from variant_ai.core.rules import RULES_ENGINES
from variant_ai.core.rules.interface import Outcome
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.position import Position
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.testing import check_game_ends

GOLDEN = Path(__file__).parents[1] / "golden" / "xiangqi_repetition.json"
STARTS = {
    "crazyhouse": ["4k3/8/8/8/8/8/4R3/4K3[Np] b - - 0 1", "4k3/pp6/8/8/8/8/8/4K2R[] w K - 0 1"],
    "xiangqi": [
        case["fen"] for case in json.loads(GOLDEN.read_text(encoding="utf-8"))["positions"]
    ],
}


@pytest.mark.parametrize("name", ["crazyhouse", "xiangqi"])
def test_ends_agree(name: str) -> None:
    spec = load_spec(builtin_specs()[name])
    report = check_game_ends(spec, 8, 7, starts=STARTS[name], max_plies=80)
    assert report.agrees, report.first_difference
    assert report.games == 8 and report.positions > 60
    assert report.counts
    met = {end.partition(",")[0] for end in report.counts}
    assert not met & set(report.not_met.split(", "))
    assert ("perpetual chase" in met | set(report.not_met.split(", "))) == (name == "xiangqi")


class Endless(KernelRules):
    """Never sees an end by position."""

    def outcome(self, position: Position) -> Outcome | None:
        return None


def test_a_wrong_end_is_named_by_fen_and_moves() -> None:
    RULES_ENGINES.register("endless", Endless)
    spec = load_spec(builtin_specs()["xiangqi"])
    starts = ["3k5/9/9/9/9/9/9/9/4R4/5K3 w - - 118 1"]
    report = check_game_ends(spec, 20, 1, engine="endless", starts=starts, max_plies=10)
    assert not report.agrees
    assert starts[0] in report.first_difference
    assert "ours: the game goes on; Fairy-Stockfish: draw" in report.first_difference


def test_without_a_reference() -> None:
    spec = load_spec(builtin_specs()["crazyhouse"])
    data = spec.model_dump(mode="python", by_alias=True)
    nameless = VariantSpec.model_validate({**data, "fairy": None})
    with pytest.raises(SpecError, match="cannot be compared"):
        check_game_ends(nameless, 1, 1)
