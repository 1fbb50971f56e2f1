"""Pictures of how a piece moves: marks at the right squares."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from variant_ai.core.draw.board import CELL
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.spec import builtin_specs, load_spec

Square = tuple[int, int]
SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "site" / "piece_moves.py"
if not SCRIPT.is_file():
    pytest.skip("needs the folder docs/ of the sources", allow_module_level=True)
piece_moves = SimpleNamespace(**runpy.run_path(str(SCRIPT)))
QUIET, CAPTURE, HOP = piece_moves.QUIET, piece_moves.CAPTURE, piece_moves.HOP


def marks(variant: str, symbol: str) -> tuple[int, dict[str, set[Square]]]:
    """Squares on each side of the piece, and the displacements of marks by their colour."""
    spec = load_spec(builtin_specs()[variant])
    svg = piece_moves.piece_moves_svg(spec.drawing, PieceTypes(spec).by_symbol[symbol], spec.board)
    found: dict[str, set[Square]] = {QUIET: set(), CAPTURE: set(), HOP: set()}
    cells = round(float(re.findall(r'viewBox="-2 -2 ([\d.]+)', svg)[0]) / CELL)
    middle = CELL * cells / 2
    for circle in re.findall(r"<circle [^>]*>", svg):
        x, y = (float(re.findall(rf'{axis}="([-\d.]+)"', circle)[0]) for axis in ("cx", "cy"))
        colour = next((colour for colour in found if colour in circle), None)
        if colour and (x, y) != (middle, middle):
            found[colour].add((round((x - middle) / CELL), round((middle - y) / CELL)))
    return cells // 2, found


def test_a_pawn_of_chess() -> None:
    radius, found = marks("chess", "P")
    assert radius == 2
    assert found == {QUIET: {(0, 1), (0, 2)}, CAPTURE: {(-1, 1), (1, 1)}, HOP: set()}


def test_a_cannon_captures_over_a_piece() -> None:
    radius, found = marks("xiangqi", "C")
    line = {step for n in range(1, radius + 1) for step in ((n, 0), (-n, 0), (0, n), (0, -n))}
    assert found[QUIET] == line and not found[CAPTURE]
    assert found[HOP] == {step for step in line if abs(sum(step)) > 1}


@pytest.mark.parametrize("variant", ["xiangqi", "shogi", "grand", "dobutsu"])
def test_every_piece_has_marks(variant: str) -> None:
    for kind in PieceTypes(load_spec(builtin_specs()[variant])).all:
        radius, found = marks(variant, kind.symbol)
        squares = set().union(*found.values())
        assert squares and max(max(abs(x), abs(y)) for x, y in squares) <= radius
