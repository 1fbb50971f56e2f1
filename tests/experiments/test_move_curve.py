"""The curve of a move, with a search whose results the test decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.text.notation import UciNotation
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Line, Report
from variant_ai.core.search.settings import SearchParams
from variant_ai.plugins import registry
from variant_ai_experiments.move_curve import (
    MOVE,
    POSITION,
    MoveCurve,
    curve_params,
    draw,
    follow,
    looks,
)

VARIANT = "crazyhouse"


class Late:
    """Visits the move watched only after 100 simulations, and then with every one of them."""

    def __init__(self, move: int, other: int) -> None:
        self.move = move
        self.other = other
        self.total = 0

    def set_game(self, game: Game) -> None: ...

    def run(
        self,
        limits: Limits,
        *,
        moves: Sequence[int] | None = None,
        multipv: int = 1,
        on_report: Callable[[Report], None] | None = None,
        interval: float = 1.0,
    ) -> Report:
        assert limits.visits is not None
        self.total += limits.visits
        late = max(0, self.total - 100)
        lines = (
            Line(self.other, (self.other,), self.total - late, 0.9, 0.1),
            Line(self.move, (self.move,), late, 0.001, 0.6),
        )
        return Report(best=lines[late > 100].move, lines=lines, visits=limits.visits)


def test_the_position_is_that_of_the_figure() -> None:
    game = Game(make_rules(registry().variant(VARIANT)), POSITION)
    assert len(game.legal_moves()) == 73
    assert UciNotation().read(game.rules, game.position, MOVE) in game.legal_moves()


def test_settings_differ_in_what_they_are_named_for() -> None:
    chosen = curve_params(SearchParams.of(registry().variant(VARIANT)), {"batch_size": 4})
    plain, everything = chosen["default"], chosen["all"]
    assert (plain.mate_stop, plain.enhance_checks, plain.u_divisor) == (False, False, 1.0)
    assert (everything.mate_stop, everything.enhance_checks) == (True, True)
    assert everything.u_divisor == "adaptive"
    assert chosen["fix-checkmates"] == plain.replace(mate_stop=True)
    assert chosen["enhance-checks"] == plain.replace(enhance_checks=True)
    assert chosen["u-divisor"] == plain.replace(u_divisor="adaptive")
    for params in chosen.values():
        assert (params.noise_style, params.noise_epsilon) == ("uniform", 0.25)
        assert params.deterministic
        assert not params.solver
        assert params.batch_size == 4


def test_looks_are_evenly_spaced_to_the_end() -> None:
    assert looks(100, 4) == [25, 50, 75, 100]
    assert looks(3, 10) == [1, 2, 3]


def test_a_curve_tells_when_the_move_was_found() -> None:
    game = Game(make_rules(registry().variant(VARIANT)), POSITION)
    move = UciNotation().read(game.rules, game.position, MOVE)
    other = next(m for m in game.legal_moves().tolist() if m != move)
    curve = follow(Late(move, other), game, move, "late", looks(300, 6))
    assert curve.simulations == [50, 100, 150, 200, 250, 300]
    assert curve.visits == [0, 0, 50, 100, 150, 200]
    assert curve.q == [-1.0, -1.0, 0.6, 0.6, 0.6, 0.6]
    assert (curve.first_visit, curve.won_at, curve.rank) == (150, 150, 2)
    assert curve.chosen
    short = follow(Late(move, other), game, move, "cut", looks(300, 6), stopped=lambda: True)
    assert short.simulations == [50]
    assert (short.first_visit, short.won_at) == (None, None)
    assert MoveCurve("at once", [50], [40], [0.6]).won_at == 50
    assert MoveCurve("at once", [50, 100], [40, 80], [0.6, 0.6]).won_at == 50


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_plot_is_written(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"plot.{ending}"
    draw([MoveCurve("a", [1, 2], [0, 1], [-1.0, 0.5])], "title", path)
    assert path.stat().st_size > 1000
