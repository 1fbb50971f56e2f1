"""Input and policy planes of a spec, one record per plane, in order.

Encoders, networks, `spec show` and the checks all use these lists. Everything is in the mover's
view: `dy > 0` is forward, `dx > 0` is to the right on the board as it is turned for the mover.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from variant_ai.core.errors import SpecError
from variant_ai.core.spec.betza import displacements, word_displacements
from variant_ai.core.spec.rule_words import Piece, Who
from variant_ai.core.spec.schema import (
    AttackPlanes,
    CapturedPlanes,
    CastlingPlanes,
    ChecksPlane,
    DropPlanes,
    HalfmovePlane,
    HandPlanes,
    InputItem,
    LastMovesPlanes,
    LeapPlanes,
    MoveNumberPlane,
    PiecePlanes,
    PromotedPlane,
    PromotionPlanes,
    RepetitionPlanes,
    SlidePlanes,
    VariantSpec,
)
from variant_ai.core.spec.zones import square_of, zone_squares

COMPASS: dict[str, tuple[int, int]] = {
    "N": (0, 1),
    "NE": (1, 1),
    "E": (1, 0),
    "SE": (1, -1),
    "S": (0, -1),
    "SW": (-1, -1),
    "W": (-1, 0),
    "NW": (-1, 1),
}
_LEAP = re.compile(r"([1-9])([NS])([1-9])([EW])\Z")
_WHOSE = {"me": "my", "them": "their"}
Step = tuple[int, int]


@dataclass(frozen=True)
class InputPlane:
    """One input plane."""

    index: int
    item: str
    """`pieces`, `attacks`, `captured`, `hand`, `repetitions`, `last_moves`, `promoted`, `en_passant`,
    `colour`, `move_number`, `castling`, `halfmove` or `checks`."""
    who: Who | None
    piece: str | None
    number: int
    """Number of the repetition (1 = occurred once before) or of the castling side (0 = first); for
    `last_moves` 2 * (plies since the move) for its origin, plus 1 for its target."""
    max: float
    """Normalisation constant by which the count is divided; 1 for binary planes."""
    name: str


PlaneKind = Literal["move", "promotion", "drop", "pass"]
"""Kind of the moves of a policy plane."""
Head = Literal["map", "flat"]
"""Numbers of actions: by policy plane and square, or by labels in a list."""


@dataclass(frozen=True)
class PolicyPlane:
    """One policy plane: a displacement of moves or promotions, or drops of a piece."""

    index: int
    kind: PlaneKind
    dx: int
    dy: int
    piece: str | None
    """Piece promoted to or dropped."""
    name: str


def input_planes(spec: VariantSpec) -> tuple[InputPlane, ...]:
    """Every input plane, in order ([CrazyAra-preprint] and [CrazyAra] table 1, [Xiangqi-thesis]
    table 4.2)."""
    planes: list[InputPlane] = []
    for item in spec.input:
        for kind, who, piece, number, top, name in input_rows(spec, item):
            planes.append(InputPlane(len(planes), kind, who, piece, number, top, name))
    return tuple(planes)


_Row = tuple[str, Who | None, str | None, int, float, str]


def input_rows(spec: VariantSpec, item: InputItem) -> Iterator[_Row]:
    """Planes of one item of `input`: the fields of `InputPlane` without the index."""
    match item:
        case PiecePlanes(pieces=who):
            for letter, piece in spec.pieces.items():
                yield "pieces", who, letter, 0, 1, f"{_WHOSE[who]} {piece.name}s"
        case AttackPlanes(attacks=who):
            for letter, piece in spec.pieces.items():
                yield "attacks", who, letter, 0, 1, f"attacked by {_WHOSE[who]} {piece.name}s"
        case CapturedPlanes(captured=count):
            for letter in count.order:
                name = f"{spec.pieces[letter].name}s captured by {count.by}"
                yield "captured", count.by, letter, 0, count.max, name
        case HandPlanes(hand=hand):
            for letter in hand.order:
                name = f"{spec.pieces[letter].name}s in {_WHOSE[hand.of]} hand"
                yield "hand", hand.of, letter, 0, hand.max, name
        case RepetitionPlanes(repetitions=count_):
            for k in range(1, count_ + 1):
                yield "repetitions", None, None, k, 1, f"occurred at least {k} times before"
        case LastMovesPlanes(last_moves=moves):
            for k in range(moves):
                mover: Who = "me" if k % 2 else "them"
                when = "their last move" if k == 0 else f"{_WHOSE[mover]} move {k + 1} plies ago"
                yield "last_moves", mover, None, 2 * k, 1, f"origin of {when}"
                yield "last_moves", mover, None, 2 * k + 1, 1, f"target of {when}"
        case PromotedPlane(promoted=who):
            yield "promoted", who, None, 0, 1, f"{_WHOSE[who]} promoted pieces"
        case CastlingPlanes(castling=who):
            for number, side in enumerate(spec.castling):
                yield "castling", who, None, number, 1, f"{_WHOSE[who]} castling right {side}"
        case MoveNumberPlane(move_number=top):
            yield "move_number", None, None, 0, top.max, "full move number"
        case HalfmovePlane(halfmove=top):
            yield "halfmove", None, None, 0, top.max, "plies without progress"
        case ChecksPlane(checks=checks):
            yield "checks", checks.of, None, 0, checks.max, f"checks given by {checks.of}"
        case "colour":
            yield "colour", None, None, 0, 1, "one for the first player"
        case "en_passant":
            yield "en_passant", None, None, 0, 1, "en passant square"


def last_moves_shown(spec: VariantSpec) -> int:
    """Number of last moves that the input planes show."""
    return max(
        (item.last_moves for item in spec.input if isinstance(item, LastMovesPlanes)), default=0
    )


def parse_leap(text: str) -> Step:
    """`2N1E` -> (1, 2). Raises SpecError."""
    match = _LEAP.match(text)
    if match is None:
        raise SpecError(f"{text!r} is not a leap; leaps look like '2N1E' (two north, one east)")
    dy = int(match[1]) * (1 if match[2] == "N" else -1)
    dx = int(match[3]) * (1 if match[4] == "E" else -1)
    return dx, dy


def parse_step(text: str) -> Step:
    """Displacement of a compass point or a leap. Raises SpecError."""
    return COMPASS[text] if text in COMPASS else parse_leap(text)


def step_name(dx: int, dy: int) -> str:
    """Name of a displacement: `N`, `3NE`, `2N1E`."""
    if dx == 0 or dy == 0 or abs(dx) == abs(dy):
        length = max(abs(dx), abs(dy))
        point = ("N" if dy > 0 else "S" if dy < 0 else "") + ("E" if dx > 0 else "W" if dx else "")
        return point if length == 1 else f"{length}{point}"
    return f"{abs(dy)}{'N' if dy > 0 else 'S'}{abs(dx)}{'E' if dx > 0 else 'W'}"


def policy_planes(
    spec: VariantSpec, layout: Literal["derived"] | None = None
) -> tuple[PolicyPlane, ...]:
    """Every policy plane, in order ([CrazyAra-preprint] table 2, [Xiangqi-thesis] table 4.3).

    `layout="derived"` ignores the planes in the spec and derives them from the pieces; only `pass`,
    which cannot be derived, is kept. Raises SpecError if two planes have the same move.
    """
    derived = layout == "derived" or spec.policy == "derived"
    rows = _derived_rows(spec) if derived else _written_rows(spec)
    planes: list[PolicyPlane] = []
    seen: dict[tuple[str, int, int, str | None], int] = {}
    for kind, dx, dy, piece in rows:
        key = (kind, dx, dy, piece)
        name = step_name(dx, dy) if kind in ("move", "promotion") else kind
        name = f"{name}={piece}" if kind == "promotion" else f"{piece}@" if piece else name
        if key in seen:
            raise SpecError(f"planes {seen[key]} and {len(planes)} both have the {kind} {name}")
        seen[key] = len(planes)
        planes.append(PolicyPlane(len(planes), kind, dx, dy, piece, name))
    return tuple(planes)


_PolicyRow = tuple[PlaneKind, int, int, str | None]


def _written_rows(spec: VariantSpec) -> Iterator[_PolicyRow]:
    steps: list[Step] = []
    """Displacements so far, for `promotions: {as: moves}`."""
    for item in spec.policy:
        match item:
            case SlidePlanes(slides=slides):
                for point, length in slides.items():
                    dx, dy = COMPASS[point]
                    for k in range(1, length + 1):
                        steps.append((k * dx, k * dy))
                        yield "move", k * dx, k * dy, None
            case LeapPlanes(leaps=leaps):
                for text in leaps:
                    dx, dy = parse_leap(text)
                    steps.append((dx, dy))
                    yield "move", dx, dy, None
            case PromotionPlanes(promotions=choice):
                choices = choice.to or all_promotion_choices(spec)
                twins = steps if choice.as_ == "moves" else [parse_step(s) for s in choice.steps]
                for piece in choices:
                    for dx, dy in twins:
                        yield "promotion", dx, dy, piece
            case DropPlanes(drops=drops):
                for piece in drops:
                    yield "drop", 0, 0, piece
            case "derived":
                for row in _moves_of_pieces(spec):
                    if row[0] == "move":
                        steps.append(row[1:3])
                    yield row
            case "pass":
                yield "pass", 0, 0, None


def clockwise(steps: Iterable[Step]) -> list[Step]:
    """Sort displacements clockwise from north, then by length."""

    def key(step: Step) -> tuple[float, int]:
        dx, dy = step
        shared = math.gcd(dx, dy)
        return math.atan2(dx // shared, dy // shared) % (2 * math.pi), shared

    return sorted(set(steps), key=key)


def _derived_rows(spec: VariantSpec) -> Iterator[_PolicyRow]:
    yield from _moves_of_pieces(spec)
    # no piece shows that players may pass; last, so that all other moves keep their codes
    if not isinstance(spec.policy, str) and "pass" in spec.policy:
        yield "pass", 0, 0, None


def _moves_of_pieces(spec: VariantSpec) -> Iterator[_PolicyRow]:
    moves: set[Step] = set()
    promotions: dict[str, set[Step]] = {}
    for letter, piece in spec.pieces.items():
        moves |= displacements(piece, spec.board)
        for choice in promotion_choices(spec, letter):
            promotions.setdefault(choice, set()).update(promotion_steps(spec, piece))
    moves |= castling_steps(spec)
    for dx, dy in clockwise(moves):
        yield "move", dx, dy, None
    for choice in spec.pieces:
        for dx, dy in clockwise(promotions.get(choice, ())):
            yield "promotion", dx, dy, choice
    for piece_ in spec.hand_order:
        yield "drop", 0, 0, piece_


def castling_steps(spec: VariantSpec) -> set[Step]:
    """Displacements of the castling king, in both players' views; with `shuffle:`, to its rook on any
    other file."""
    if spec.castling and spec.rules.shuffle != "none":
        far = spec.board.files - 1  # the king is never on the edge
        return {(dx, 0) for dx in range(1 - far, far) if dx}
    steps: set[Step] = set()
    for side in spec.castling.values():
        a, b = (square_of(name, spec.board) for name in side.king.split("-"))
        files = spec.board.files
        dx, dy = b % files - a % files, b // files - a // files
        steps.add((dx, dy))
        if spec.board.sides == "rotate":
            steps.add((-dx, dy))
    return steps


def promotion_choices(spec: VariantSpec, letter: str) -> tuple[str, ...]:
    """Pieces that `letter` may promote to, in policy order; empty if it never promotes."""
    promotes = spec.pieces[letter].promotes
    if promotes is None:
        return ()
    if promotes.to == "captured pieces":
        return tuple(p for p, piece in spec.pieces.items() if p != letter and not piece.royal)
    return promotes.of_both


def all_promotion_choices(spec: VariantSpec) -> tuple[str, ...]:
    """Every piece that some piece may promote to, in plane order."""
    found = {choice for letter in spec.pieces for choice in promotion_choices(spec, letter)}
    return tuple(p for p in spec.pieces if p in found)


def promotion_steps(spec: VariantSpec, piece: Piece) -> set[Step]:
    """Displacements by which a piece can promote somewhere on the board."""
    promotes = piece.promotes
    if promotes is None:
        return set()
    board = spec.board
    zone = zone_squares(promotes.at, board)
    everywhere = word_displacements(piece.moves, board)
    added = [
        (zone_squares(name, board), word_displacements(moves, board))
        for name, moves in piece.from_.items()
    ]
    steps: set[Step] = set()
    for square in range(board.squares):
        file, rank = square % board.files, square // board.files
        here = set(everywhere).union(*(extra for where, extra in added if square in where))
        for dx, dy in here - steps:
            f, r = file + dx, rank + dy
            if not (0 <= f < board.files and 0 <= r < board.ranks):
                continue
            from_inside = promotes.on == "from or to" and square in zone
            if from_inside or r * board.files + f in zone:
                steps.add((dx, dy))
    return steps
