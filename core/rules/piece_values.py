"""Values of pieces, estimated from how far they move: for variants that have no net.

The mobility of a piece is the mean, over the squares where it may stand, of the number of squares that it
can be expected to reach if other pieces stand on a random quarter of the board. A piece that promotes has a
share of what it would gain by that. Values are in logits, as
`piece_gains:` in a spec: the value of a position is tanh of their balance.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from variant_ai.core.rules.geometry import Geometry
from variant_ai.core.rules.kernel.move_programs import Path, piece_paths
from variant_ai.core.rules.pieces import PieceType, PieceTypes
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import royal_letters

OCCUPIED = 0.25
"""Chance that a square holds a piece, of either side alike."""
PER_SQUARE = 0.07
"""Value of one square more to move to: a rook of chess has 0.54, a pawn 0.11."""
PROMOTES = 0.05
"""Share of what a piece would gain by promotion."""
DECISIVE = 3.0
"""Value of a piece whose loss loses the game."""


def piece_values(spec: VariantSpec) -> dict[str, float]:
    """Return the value of each piece of a spec, in logits; negative where losing all pieces wins.

    The values are those of `search: {piece_gains: ...}`, if the spec has them. Pieces that cannot be captured
    have 0, and those whose loss loses the game `DECISIVE`.
    """
    if spec.search.piece_gains:
        return {letter: spec.search.piece_gains.get(letter, 0.0) for letter in spec.pieces}
    geometry = Geometry(spec)
    kinds = [kind for kind in PieceTypes(spec).all if not kind.twin]
    moves = {kind.symbol: mobility(geometry, kind) for kind in kinds}
    royal = royal_letters(spec)
    decisive = {win.extinct for win in spec.rules.wins if win.left == 0}
    sign = -1 if wants_to_lose(spec) else 1
    values = {}
    for kind in kinds:
        letter = kind.symbol
        usual = PER_SQUARE * (moves[letter] + promotion_gain(kind, moves))
        values[letter] = (
            DECISIVE if letter in decisive else 0.0 if letter in royal else sign * usual
        )
    return values


def capture_gains(spec: VariantSpec) -> dict[str, float]:
    """Return the values as `piece_gains:` of a search for material; none where it would be wrong: if losing
    pieces is good, or if captures explode."""
    if wants_to_lose(spec) or spec.rules.explodes:
        return {}
    # a captured piece that changes sides is lost by one and gained by the other
    times = 2 if spec.hands is not None and spec.hands.captured == "changes side" else 1
    return {letter: times * value for letter, value in piece_values(spec).items()}


def wants_to_lose(spec: VariantSpec) -> bool:
    """Return True if a player who has lost all pieces has won."""
    rules = spec.rules
    lost = any(win.lost == "all pieces" for win in rules.wins)
    return lost or (rules.captures == "must" and rules.stalemate == "win")


def mobility(geometry: Geometry, kind: PieceType) -> float:
    """Return the mean number of squares that the first player's piece can be expected to reach."""
    squares = sorted(geometry.everywhere)
    if kind.piece.within is not None:
        squares = sorted(geometry.zone(kind.piece.within, 0) & geometry.everywhere)
    return fmean(sum(map(reach, piece_paths(geometry, kind, 0, square))) for square in squares)


def reach(path: Path) -> float:
    """Return the expected number of squares that a piece reaches on one path."""
    free = (1 - OCCUPIED) ** len(set(path.legs))
    lands = (1 - OCCUPIED) * path.quiet + OCCUPIED / 2 * path.capture
    arrives = 0.0
    for between in range(len(path.targets)):  # squares on the way
        if not path.hop:
            arrives += (1 - OCCUPIED) ** between
        elif between == 1 or (between and path.hop == "over"):
            arrives += between * OCCUPIED * (1 - OCCUPIED) ** (between - 1)
    return free * arrives * lands


def promotion_gain(kind: PieceType, moves: Mapping[str, float]) -> float:
    """Return the share of the best promotion that counts for a piece."""
    if kind.piece.promotes is None:
        return 0.0
    best = max((moves[letter] for letter in kind.piece.promotes.of_both), default=0.0)
    return max(best - moves[kind.symbol], 0.0) * PROMOTES
