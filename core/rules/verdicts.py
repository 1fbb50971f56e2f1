"""Parts and descriptions of game ends, shared by the rules engines and `Game`."""

from __future__ import annotations

from variant_ai.core.rules.interface import Outcome
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import (
    DROP,
    PASS,
    PROMOTION,
    Position,
    move_kind,
    move_origin,
    piece_colour,
    piece_type,
)
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import start_walls

PLAYERS = ("first player", "second player")
_ORDINALS = ("zeroth", "first", "second", "third", "fourth", "fifth", "sixth")


def ordinal(number: int) -> str:
    if number < len(_ORDINALS):
        return _ORDINALS[number]
    teen = number % 100 // 10 == 1
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def idle_winner(types: PieceTypes, position: Position) -> int | None:
    """Winner of a repetition without perpetual check or chase at its last position."""
    otherwise = types.spec.rules.repetition.otherwise
    if otherwise == "draw":
        return winner_of_draw(types, position)
    return 1 if otherwise == "loss of first player" else int(position["side"][0])


def winner_of_draw(types: PieceTypes, position: Position) -> int | None:
    """Winner by `points:` of a game that would be drawn without them; None if it is drawn."""
    rule = types.spec.rules.points
    if rule is None:
        return None
    first, second = points_of_sides(types, position)
    return None if first == second else int(first < second)


def draw_detail(types: PieceTypes, position: Position) -> str:
    """Describe the result where a game would be drawn without points: `draw`, or the points."""
    if types.spec.rules.points is None:
        return "draw"
    first, second = points_of_sides(types, position)
    return f"{first:g} points to {second:g}"


def points_of_sides(types: PieceTypes, position: Position) -> tuple[float, float]:
    """Points of both players: their pieces on the board, and the extra points of the second."""
    rule = types.spec.rules.points
    totals = [0.0, rule.second if rule else 0.0]
    points = types.points()
    for code in position["board"][0].tolist():
        if code:
            totals[piece_colour(code)] += points[piece_type(code)]
    return totals[0], totals[1]


def kings_on_open_file(spec: VariantSpec, position: Position) -> bool:
    """Return True if royal pieces that may not face each other (`faces`) are on a file with nothing
    between."""
    files = spec.board.files
    low, high = sorted(position["kings"][0].tolist())
    if low < 0 or low % files != high % files:
        return False
    faces = any(piece.faces for piece in spec.pieces.values())
    if not faces or position["board"][0, low + files : high : files].any():
        return False
    return start_walls(spec).isdisjoint(range(low, high, files))


def progress_plies(spec: VariantSpec, position: Position) -> int:
    """Plies that count for the move-count rule: the clock minus two (a check and its reply) for
    every check beyond `checks_counted` of the side that gave more checks."""
    clock = int(position["clock"][0])
    counted = spec.rules.no_progress.checks_counted
    if counted == "all":
        return clock
    return clock - 2 * max(0, int(position["checks"][0].max()) - counted)


def move_count_end(types: PieceTypes, position: Position) -> Outcome | None:
    """Return the outcome by the move-count rule, None before its last ply."""
    plies = types.spec.rules.no_progress.plies
    if plies == "none" or progress_plies(types.spec, position) < plies:
        return None
    detail = move_count_detail(types, position)
    return Outcome(winner_of_draw(types, position), "move count", detail)


def mover_resets(types: PieceTypes, position: Position, move: int) -> bool:
    """Return True if a move resets the clock of the move-count rule whether or not it captures."""
    reset = types.spec.rules.no_progress.reset
    if move_kind(move) in (DROP, PASS):
        return move_kind(move) == DROP and "drops" in reset
    if move_kind(move) == PROMOTION and "promotions" in reset:
        return True
    code = int(position["board"][0, move_origin(move)])
    return code != 0 and types.all[piece_type(code)].symbol in reset


def checkmate_detail(spec: VariantSpec) -> str:
    """Describe what checkmate is; empty if it is a loss, as usual."""
    value = spec.rules.checkmate
    return "" if value == "loss" else f"checkmate is a {value} for the side in check"


def stalemate_detail(spec: VariantSpec) -> str:
    value = spec.rules.stalemate
    if value == "fewer pieces win":
        return "after stalemate the side with fewer pieces wins"
    return f"stalemate is a {value} for the side without a move"


def move_count_detail(types: PieceTypes, position: Position) -> str:
    """Describe the move-count rule: `120 plies without captures`, and points if they decide."""
    rule = types.spec.rules.no_progress
    points = "" if types.spec.rules.points is None else f": {draw_detail(types, position)}"
    return f"{rule.plies} plies without {', '.join(rule.reset)}{points}"
