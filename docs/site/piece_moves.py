"""The movement of one piece as SVG: a small board with the piece in its middle and its targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from variant_ai.core.draw.board import CELL, DARK, FRAME, LIGHT
from variant_ai.core.draw.piece_images import piece
from variant_ai.core.rules.pieces import PieceType
from variant_ai.core.spec.betza import Movement, Step, parse_betza
from variant_ai.core.spec.rule_words import Board
from variant_ai.core.spec.schema import Drawing

LEAST_RADIUS, GREATEST_RADIUS = 2, 4
"""Squares on each side of the piece: as many as its longest leap needs, between these."""
QUIET, CAPTURE, HOP = "#2f6f4f", "#b3261e", "#1c6e8c"
ZONE_OPACITY = 0.4


@dataclass
class _Target:
    """Ways to reach a square; `somewhere`: only from squares of a zone."""

    quiet: bool = False
    capture: bool = False
    hop: bool = False
    somewhere: bool = True

    def add(self, move: Movement, somewhere: bool) -> None:
        if self.somewhere and not somewhere:  # what holds everywhere replaces what holds in a zone
            self.quiet = self.capture = self.hop = False
        elif somewhere and not self.somewhere:
            return
        self.somewhere = somewhere
        self.quiet |= move.quiet
        self.capture |= move.capture
        self.hop |= move.hop != ""


def piece_moves_svg(drawing: Drawing, kind: PieceType, board: Board, *, size: int = 200) -> str:
    """Draw the moves of a piece of the first player from the middle of an otherwise empty board.

    A green dot is a move without capture, a red ring a capture, both together any move; blue ones
    go over another piece. Faint ones are possible in a zone only (`from:` of the spec). The picture
    is a square, `size` pixels wide.
    """
    radius = _radius(kind, board)
    targets = _targets(kind, radius)
    cells = 2 * radius + 1
    middle = CELL * cells / 2
    text = kind.piece.name
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" '
        f'viewBox="-2 -2 {CELL * cells + 4:g} {CELL * cells + 4:g}">',
        f"<title>Moves of the {escape(text)}</title>",
    ]
    for row in range(cells):
        for column in range(cells):
            fill = LIGHT if (row + column) % 2 == 0 else DARK
            parts.append(
                f'<rect x="{column * CELL:g}" y="{row * CELL:g}" width="{CELL:g}" '
                f'height="{CELL:g}" fill="{fill}" opacity="0.55"/>'
            )
    parts.append(
        f'<rect width="{CELL * cells:g}" height="{CELL * cells:g}" fill="none" stroke="{FRAME}" '
        'stroke-width="2"/>'
    )
    for (dx, dy), target in sorted(targets.items()):
        parts += _marks(target, middle + dx * CELL, middle - dy * CELL)
    parts += piece(drawing, kind, 0, middle, middle, CELL * 0.88, points_up=True)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _movements(kind: PieceType) -> Iterator[tuple[Movement, bool]]:
    """Movements of a piece, with True for those of zones."""
    for move in parse_betza(kind.piece.moves):
        yield move, False
    for word in kind.piece.from_.values():
        for move in parse_betza(word):
            yield move, True


def _radius(kind: PieceType, board: Board) -> int:
    """Squares to show on each side: three for pieces that ride, otherwise the longest leap."""
    longest = max(
        3 if move.reach != 1 else max(abs(move.dx), abs(move.dy)) for move, _ in _movements(kind)
    )
    largest = max(board.files, board.ranks) - 1
    return min(max(longest, LEAST_RADIUS), GREATEST_RADIUS, max(largest, LEAST_RADIUS))


def _targets(kind: PieceType, radius: int) -> dict[Step, _Target]:
    targets: dict[Step, _Target] = {}
    for move, somewhere in _movements(kind):
        # a hopper needs a square for the piece that it goes over
        first = 2 if move.hop else 1
        last = move.reach or radius
        for steps in range(first, last + 1):
            step = move.dx * steps, move.dy * steps
            if max(abs(step[0]), abs(step[1])) > radius:
                break
            targets.setdefault(step, _Target()).add(move, somewhere)
    return targets


def _marks(target: _Target, x: float, y: float) -> Iterator[str]:
    opacity = ZONE_OPACITY if target.somewhere else 1.0
    if target.quiet:
        fill = HOP if target.hop and not target.capture else QUIET
        yield f'<circle cx="{x:g}" cy="{y:g}" r="{CELL * 0.15:g}" fill="{fill}" opacity="{opacity:g}"/>'
    if target.capture:
        stroke = HOP if target.hop else CAPTURE
        yield (
            f'<circle cx="{x:g}" cy="{y:g}" r="{CELL * 0.3:g}" fill="none" stroke="{stroke}" '
            f'stroke-width="{CELL * 0.07:g}" opacity="{opacity:g}"/>'
        )
