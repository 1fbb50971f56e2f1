"""Checks of `input:`, `policy:` and `symmetry:` against the pieces and rules of a spec."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from variant_ai.core.errors import SpecError
from variant_ai.core.spec.betza import displacements, parse_betza
from variant_ai.core.spec.issues import (
    Issues,
    Path,
    listed_twice,
    not_in_hand,
    unknown_pieces,
)
from variant_ai.core.spec.plane_layout import (
    castling_steps,
    clockwise,
    input_planes,
    input_rows,
    policy_planes,
    promotion_choices,
    promotion_steps,
    step_name,
)
from variant_ai.core.spec.rule_words import Piece
from variant_ai.core.spec.schema import (
    AttackPlanes,
    CapturedPlanes,
    CastlingPlanes,
    ChecksPlane,
    DropPlanes,
    HandPlanes,
    PromotedPlane,
    PromotionPlanes,
    VariantSpec,
)
from variant_ai.core.spec.start_position import has_even_walls, start_walls
from variant_ai.core.spec.zones import mirrored_square, zone_squares


def check_input(spec: VariantSpec) -> Issues:
    """Check that every input plane has something to show, and is listed once."""
    issues = list(_item_issues(spec))
    yield from issues
    if issues:
        return
    if not input_planes(spec):
        yield ("input",), "a net needs at least one input plane"
    elif "colour" not in spec.input and not has_even_walls(spec):
        message = (
            "the players see the walls on other squares, which a net cannot see without `colour`"
        )
        yield ("input",), message
    listed: dict[Hashable, int] = {}
    for i, item in enumerate(spec.input):
        rows = list(input_rows(spec, item))
        for row in rows:
            if row in listed:
                message = f"the plane of {row[-1]!r} is one of input.{listed[row]} already"
                yield ("input", i), f"{message}; accepted: each block once"
                break
        listed.update((row, i) for row in rows)


def _item_issues(spec: VariantSpec) -> Issues:
    for i, item in enumerate(spec.input):
        path: Path = ("input", i)
        match item:
            case AttackPlanes() if spec.rules.engine != "kernel":
                yield (path, "planes of attacks need the rules of the kernel (`engine: kernel`)")
            case CapturedPlanes(captured=count):
                yield from unknown_pieces(spec, (*path, "captured", "order"), count.order)
                yield from listed_twice((*path, "captured", "order"), count.order)
            case HandPlanes(hand=hand):
                yield from not_in_hand(spec, (*path, "hand", "order"), hand.order)
                yield from listed_twice((*path, "hand", "order"), hand.order)
            case PromotedPlane() if not (
                spec.hands and spec.hands.promoted.startswith("returns as ")
            ):
                yield path, "a `promoted` plane needs `hands: {promoted: returns as …}`"
            case CastlingPlanes() if not spec.castling:
                yield (
                    path,
                    "castling planes need `castling:`; without castling, write an `input:` without them",
                )
            case ChecksPlane() if not any(win.checks for win in spec.rules.wins):
                yield path, "a `checks` plane needs `wins: [{checks: n}]`"
            case "en_passant" if not any(p.passant for p in spec.pieces.values()):
                yield path, "an en passant plane needs a piece with `passant: true`"


def check_policy(spec: VariantSpec) -> Issues:
    """Check that the policy planes express every move that a piece can make."""
    for i, item in enumerate(spec.policy if isinstance(spec.policy, tuple) else ()):
        if isinstance(item, DropPlanes):
            yield from not_in_hand(spec, ("policy", i, "drops"), item.drops)
        if isinstance(item, PromotionPlanes):
            path: Path = ("policy", i, "promotions", "to")
            yield from unknown_pieces(spec, path, item.promotions.to)
    try:
        planes = policy_planes(spec)
    except SpecError as error:
        yield ("policy",), str(error)
        return
    have = {(p.kind, p.dx, p.dy, p.piece) for p in planes}

    def missing(kind: str, steps: Iterable[tuple[int, int]], to: str | None = None) -> str:
        found = [s for s in steps if (kind, *s, to) not in have]
        return ", ".join(step_name(dx, dy) for dx, dy in clockwise(found))

    def gaps() -> Iterator[tuple[str, str]]:
        for letter, piece in spec.pieces.items():
            steps = displacements(piece, spec.board)
            yield f"moves of the {piece.name} ({letter})", missing("move", steps)
            for choice in promotion_choices(spec, letter):
                steps = promotion_steps(spec, piece)
                yield f"promotions of {letter} to {choice}", missing("promotion", steps, choice)
        yield "castling", missing("move", castling_steps(spec))

    for moves, steps in gaps():
        if steps:
            yield ("policy",), f"the policy cannot express {moves}: {steps}"
    for letter in spec.hand_order:
        if ("drop", 0, 0, letter) not in have:
            yield ("policy",), f"the policy cannot express drops of {letter}"


def check_symmetry(spec: VariantSpec) -> Issues:
    """Check that a game with `symmetry: [files]` is the same after left-right mirroring."""
    if "files" not in spec.symmetry:
        return
    path: Path = ("symmetry",)
    if spec.castling:
        yield path, "a game with castling has no left-right symmetry"
    walls = start_walls(spec)
    if walls != {mirrored_square(square, spec.board.files) for square in walls}:
        yield ("rules", "start"), "the walls are not symmetric, as `symmetry: [files]` needs"
    for letter, piece in spec.pieces.items():
        if not _moves_symmetrically(spec, piece):
            yield path, f"{letter} moves differently to the left and to the right"
        zones = [piece.within, piece.drop]
        if piece.promotes is not None:
            zones += [piece.promotes.at, piece.promotes.must]
        for zone in zones:
            if zone != "where stuck" and not _is_symmetric(spec, zone):
                yield path, f"zone {zone!r} of {letter} is not symmetric"
    for win in spec.rules.wins:
        if not _is_symmetric(spec, win.reaches):
            yield path, f"goal {win.reaches!r} of `wins` is not symmetric"


def _moves_symmetrically(spec: VariantSpec, piece: Piece) -> bool:
    """Return True if on every square the piece has the mirrored moves of the square opposite. Words that
    differ may still give them: `frF` in a left corner and `flF` in a right one."""
    board = spec.board
    moves = [set(parse_betza(piece.moves)) for _ in range(board.squares)]
    for zone, word in piece.from_.items():
        for square in zone_squares(zone, board):
            moves[square].update(parse_betza(word))
    return all(
        {move._replace(dx=-move.dx) for move in there}
        == moves[mirrored_square(square, board.files)]
        for square, there in enumerate(moves)
    )


def _is_symmetric(spec: VariantSpec, zone: object) -> bool:
    if not isinstance(zone, str | tuple):
        return True
    files, squares = spec.board.files, zone_squares(zone, spec.board)
    return squares == {mirrored_square(s, files) for s in squares}
