"""Move programs: the movement of a piece from one square, written out as numbers.

Betza words, zones, ranges, board edges and the player's side are resolved here once, when a spec is
compiled.

A *forward* program (int16) lists the moves of one piece code from one square:

    flags, legs, n, target 1 .. target n,   flags, legs, n, ...,   END

A *reverse* program (int32) is derived from all forward programs of one colour, and lists the
squares from which one square can be captured. An entry is `square | mask of types << 8`: the types
(bit t for type t) that capture from that square.

    LEAPS   n, e 1 .. e n                    independent squares
    RAY     n, e 1 .. e n                    outwards; the first piece on the ray blocks it
    LAME    legs, e                          only while the legs are empty
    HOPS    n, e 1, h 1 .. e n, h n          a ray; h is the mask of types (without a square)
                                             that need one piece between
    BEHIND  n, e 1 .. e n                    a ray whose square 1 must be occupied; the next
                                             piece on it captures (grasshopper)
"""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from variant_ai.core.errors import SpecError
from variant_ai.core.rules.geometry import Geometry
from variant_ai.core.rules.pieces import PieceType
from variant_ai.core.rules.position import DOUBLE_STEP, NORMAL
from variant_ai.core.spec.betza import Movement

# Flags of a forward entry.
QUIET = 1
"""May end on an empty square (before any hurdle)."""
CAPTURE = 2
"""May capture the first piece met."""
LEAP = 4
"""The targets are independent of one another."""
PASSANT = 8
"""May capture on the en-passant square, though it is empty."""
DOUBLE = 16
"""The move leaves the jumped square open to en passant."""
HOP = 32
"""The first piece met is jumped."""
HOP_QUIET = 64
"""May end on an empty square beyond the hurdle."""
HOP_BEHIND = 128
"""Only the square just beyond the hurdle counts."""
END = -1

NO_LEGS = -1
"""Otherwise `leg | other leg << 7`, with one leg twice."""

LEAPS, RAY, LAME, HOPS, BEHIND = range(5)

TYPE_SHIFT = 8
SQUARE_MASK = 127

BEYOND_THE_KERNEL = (
    "accepted: other words, or under `rules:` `engine: fairy`, which plays the variant of "
    "Fairy-Stockfish, built-in or of a `fairy_ini:`, that `fairy:` names"
)


@dataclass(slots=True)
class Path:
    """One movement from one square, in absolute squares."""

    origin: int
    targets: tuple[int, ...]
    """Along the ray, nearest first."""
    step: tuple[int, int]
    """Absolute, not in the mover's view."""
    legs: tuple[int, ...]
    quiet: bool
    capture: bool
    hop: str
    """Empty, `over` or `behind`, as in `Movement`."""
    kind: int = NORMAL
    """Move kind of its quiet moves: NORMAL or DOUBLE_STEP."""
    passant: bool = False

    @property
    def rides(self) -> bool:
        """True if a piece in the way stops it."""
        return len(self.targets) > 1 or bool(self.hop)

    @property
    def flags(self) -> int:
        """Flags of its entry in a forward program."""
        if self.hop:
            hop = HOP | (HOP_BEHIND if self.hop == "behind" else 0)
            return hop | (HOP_QUIET if self.quiet else 0) | (CAPTURE if self.capture else 0)
        return (
            (QUIET if self.quiet else 0)
            | (CAPTURE if self.capture else 0)
            | (0 if self.rides else LEAP)
            | (PASSANT if self.passant else 0)
            | (DOUBLE if self.kind == DOUBLE_STEP else 0)
        )

    @property
    def packed_legs(self) -> int:
        return self.legs[0] | self.legs[-1] << 7 if self.legs else NO_LEGS


def piece_paths(geometry: Geometry, kind: PieceType, colour: int, origin: int) -> Iterator[Path]:
    """Paths of a piece from a square, without castling."""
    piece = kind.piece
    if piece.within is not None and origin not in geometry.zone(piece.within, colour):
        return  # it is never there
    for movement in geometry.movements(piece, colour, origin):
        if path := _path(geometry, kind, movement, colour, origin):
            yield path


def forced_squares(geometry: Geometry, kind: PieceType, colour: int) -> frozenset[int]:
    """Squares on which a piece must promote."""
    promotes, within = kind.piece.promotes, kind.piece.within
    if promotes is None or promotes.must is False:
        return frozenset()
    if promotes.must == "where stuck":
        squares = frozenset(
            square for square in geometry.everywhere if _is_stuck(geometry, kind, colour, square)
        )
    else:
        squares = geometry.zone(promotes.at if promotes.must is True else promotes.must, colour)
    return squares if within is None else squares & geometry.zone(within, colour)


def _is_stuck(geometry: Geometry, kind: PieceType, colour: int, square: int) -> bool:
    try:
        return not any(piece_paths(geometry, kind, colour, square))
    except SpecError:  # a ride that leaves its zone and comes back, for `engine: fairy`
        return False


def _path(
    geometry: Geometry, kind: PieceType, movement: Movement, colour: int, origin: int
) -> Path | None:
    turn = 1 - 2 * colour  # the second player's movements are rotated by 180 degrees
    dx, dy = movement.dx * turn, movement.dy * turn
    targets = geometry.ray(origin, dx, dy)[: movement.reach or None]
    if kind.piece.within is not None:
        targets = _within(kind, targets, geometry.zone(kind.piece.within, colour))
    if len(targets) < (2 if movement.hop else 1):
        return None
    legs = [geometry.step(origin, x * turn, y * turn) for x, y in movement.legs]
    if None in legs:  # a wall stands in the way
        return None
    doubles = kind.piece.passant and movement.is_double_step
    return Path(
        origin=origin,
        targets=targets,
        step=(dx, dy),
        legs=tuple(leg for leg in legs if leg is not None),
        quiet=movement.quiet,
        capture=movement.capture,
        hop=movement.hop,
        kind=DOUBLE_STEP if doubles else NORMAL,
        passant=kind.piece.passant and movement.capture and movement.reach == 1,
    )


def _within(kind: PieceType, targets: tuple[int, ...], zone: frozenset[int]) -> tuple[int, ...]:
    """Part of a ray inside the piece's zone."""
    inside = [square in zone for square in targets]
    if False in inside and True in inside[inside.index(False) :] and len(targets) > 1:
        raise SpecError(
            f"kernel: piece {kind.symbol!r} leaves its zone {kind.piece.within!r} and comes back in "
            f"one move; {BEYOND_THE_KERNEL}",
            keys=("pieces", kind.base, "within"),
        )
    return tuple(square for square, ok in zip(targets, inside, strict=True) if ok)


def forward_program(paths: list[Path]) -> list[int]:
    """Forward program of one piece on one square."""
    program: list[int] = []
    for flags, legs, targets in _merged(paths):
        program += [flags, legs, len(targets), *targets]
    return [*program, END]


def _merged(paths: list[Path]) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Entries of a program: similar leaps in one list, the two halves of a cannon in one ray.

    No quiet move and no capture is listed twice if a word has it twice (`KR`).
    """
    leaps: dict[tuple[int, int], int] = defaultdict(int)
    rays: dict[tuple[int, ...], list[int]] = {}
    for path in paths:
        if path.rides:
            rays.setdefault(path.targets, []).append(path.flags)
        else:
            leaps[(path.targets[0], path.packed_legs)] |= path.flags
    slides = {targets: _combined(flags) for targets, flags in rays.items()}
    for targets, listed in slides.items():
        for other, theirs in slides.items():
            if other[: len(targets)] == targets and other != targets:
                slides[targets] = [f for f in slides[targets] if f not in theirs]
        if listed and (targets[0], NO_LEGS) in leaps:
            covered = _union(flags for flags in listed if not flags & HOP)
            leaps[(targets[0], NO_LEGS)] &= ~(covered & (QUIET | CAPTURE))
    by_flags: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (target, legs), flags in leaps.items():
        if flags & (QUIET | CAPTURE):
            by_flags[(flags, legs)].append(target)
    for (flags, legs), squares in by_flags.items():
        yield flags, legs, tuple(squares)
    for targets, listed in slides.items():
        for flags in listed:
            yield flags, NO_LEGS, targets


def may_repeat(program: list[int]) -> bool:
    """Return True if a forward program may list a quiet move to or a capture on one square twice,
    by a leap and a slide or by two of either."""
    met: set[tuple[int, int]] = set()
    at = 0
    while program[at] != END:
        flags, _, count = program[at : at + 3]
        moves = flags & (QUIET | CAPTURE) | QUIET * bool(flags & HOP_QUIET)
        for target in program[at + 3 : at + 3 + count]:
            # a hop and a slide on one ray never reach the same square
            for one in (QUIET, CAPTURE):
                if moves & one and (target, one) in met:
                    return True
            met.update((target, one) for one in (QUIET, CAPTURE) if moves & one)
        at += 3 + count
    return False


def _combined(listed: list[int]) -> list[int]:
    """Combine the flags of rays over the same squares: plain slides in one, and a capturing hop in
    the same one if the slide is quiet only (xiangqi's cannon)."""
    slide = _union(flags for flags in listed if not flags & HOP)
    hops = sorted({flags for flags in listed if flags & HOP})
    if slide == QUIET and HOP | CAPTURE in hops:
        hops.remove(HOP | CAPTURE)
        slide = QUIET | HOP | CAPTURE
    return [slide, *hops] if slide else hops


def _union(flags: Iterable[int]) -> int:
    return functools.reduce(operator.or_, flags, 0)


@dataclass
class _Ray:
    squares: tuple[int, ...]
    first: list[int]
    """Mask of types that capture when first on the ray, by distance."""
    second: list[int]
    """Mask of types that capture over one piece."""


def reverse_program(capturing: list[tuple[int, Path, int]]) -> list[int]:
    """Reverse program of a square: the squares from which it can be captured.

    capturing: type, path, and number of squares of the path before the captured one.
    """
    rays: dict[tuple[tuple[int, int], bool], _Ray] = {}
    lame: dict[tuple[int, int], int] = defaultdict(int)
    for kind, path, distance in capturing:
        if path.legs:
            lame[(path.packed_legs, path.origin)] |= 1 << kind
            continue
        back = (-path.step[0], -path.step[1])
        ray = rays.setdefault((back, path.hop == "behind"), _Ray((), [], []))
        farther = distance + 1 - len(ray.squares)
        if farther > 0:
            ray.squares = (*reversed(path.targets[:distance]), path.origin)
            ray.first += [0] * farther
            ray.second += [0] * farther
        (ray.second if path.hop == "over" else ray.first)[distance] |= 1 << kind
    leaps: list[int] = []
    long: list[tuple[int, list[int]]] = []
    for (_, behind), ray in rays.items():
        body = [s | mask << TYPE_SHIFT for s, mask in zip(ray.squares, ray.first, strict=True)]
        if behind:
            long.append((BEHIND, [len(body), *body]))
        elif any(ray.second):
            pairs = [word for pair in zip(body, ray.second, strict=True) for word in pair]
            long.append((HOPS, [len(body), *pairs]))
        elif len(body) == 1:
            leaps += body
        else:
            long.append((RAY, [len(body), *body]))
    long += [(LAME, [legs, origin | mask << TYPE_SHIFT]) for (legs, origin), mask in lame.items()]
    if leaps:
        long.append((LEAPS, [len(leaps), *leaps]))
    long.sort(key=lambda entry: (entry[0], -len(entry[1])))
    return [word for opcode, body in long for word in (opcode, *body)] + [END]


def captures_of(
    geometry: Geometry, kind: PieceType, origin: int, paths: list[Path]
) -> Iterator[Path]:
    """Paths of a piece that capture, and the open line to a piece it may not face."""
    yield from (path for path in paths if path.capture)
    if kind.piece.faces is not None:
        for dy in (1, -1):
            line = geometry.ray(origin, 0, dy)
            if line:
                yield Path(origin, line, (0, dy), (), False, True, "")
