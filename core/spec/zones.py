"""Squares (`square = rank * files + file`, a1 = 0), and zones: sets of them as the first player sees them."""

from __future__ import annotations

import re

from variant_ai.core.errors import SpecError
from variant_ai.core.spec.rule_words import Board, Zone

_RANKS = re.compile(r"rank ([0-9]+)(?:-([0-9]+))?\Z")
_FILES = re.compile(r"file ([a-z])(?:-([a-z]))?\Z")
_RECTANGLE = re.compile(r"([a-z][0-9]+)-([a-z][0-9]+)\Z")
_SQUARE = re.compile(r"([a-z])([1-9][0-9]?)\Z")

_OTHER_WORDS = ("where stuck",)
"""Words accepted in place of a zone."""
ACCEPTED = "`rank 2`, `rank 6-10`, `file a-c`, `d1-f3`, a name of board.zones, or a list of squares"


def square_of(name: str, board: Board) -> int:
    """Square number of `e4`. Raises SpecError if it is not on the board."""
    match = _SQUARE.match(name)
    if match is None:
        raise SpecError(f"{name!r} is not a square; squares look like 'e4'")
    file, rank = ord(match[1]) - 97, int(match[2]) - 1
    if file >= board.files or rank >= board.ranks:
        last = f"{chr(96 + board.files)}{board.ranks}"
        raise SpecError(f"square {name!r} is outside the board, which ends at {last}")
    return rank * board.files + file


def square_name(square: int, files: int) -> str:
    """Name of a square: `e4`; ranks are 1-based as in UCI (`a10` exists)."""
    return f"{chr(97 + square % files)}{square // files + 1}"


def view(square: int, colour: int, files: int, ranks: int, sides: str) -> int:
    """Square as the player of `colour` sees it (the function is its own inverse).

    For the second player `mirror` turns ranks and keeps files, `rotate` turns both.
    """
    if colour == 0:
        return square
    if sides == "rotate":
        return files * ranks - 1 - square
    return (ranks - 1 - square // files) * files + square % files


def seen_by(square: int, colour: int, board: Board) -> int:
    """Square of a spec's board as the player of `colour` sees it; see `view`."""
    return view(square, colour, board.files, board.ranks, board.sides)


def mirrored_square(square: int, files: int) -> int:
    """Square on the same rank, counted from the other edge."""
    return square + files - 1 - 2 * (square % files)


def reads_as_zone(name: str) -> bool:
    """Return True if a text already has a meaning as a zone, so that no zone can have this name."""
    return name in _OTHER_WORDS or any(p.match(name) for p in (_RANKS, _FILES, _RECTANGLE, _SQUARE))


def zone_squares(zone: Zone, board: Board) -> frozenset[int]:
    """Squares of a zone. Raises SpecError if it is unknown, empty or not on the board."""
    if not isinstance(zone, str):
        if not zone:
            raise SpecError(f"an empty list is not a zone; accepted: {ACCEPTED}")
        return frozenset(square_of(name, board) for name in zone)
    if zone in board.zones:
        inner = board.zones[zone]
        if isinstance(inner, str) and inner in board.zones:
            raise SpecError(f"zone {zone!r} names another zone {inner!r}; write its squares")
        return zone_squares(inner, board)
    if match := _RANKS.match(zone):
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise SpecError(f"zone {zone!r} is empty; accepted: `rank {last}-{first}`")
        if first < 1 or last > board.ranks:
            raise SpecError(f"zone {zone!r} is outside the board's ranks 1-{board.ranks}")
        return _rectangle(range(board.files), range(first - 1, last), board)
    if match := _FILES.match(zone):
        left, right = ord(match[1]) - 97, ord(match[2] or match[1]) - 97
        if right < left:
            message = f"zone {zone!r} is empty; accepted: `file {match[2]}-{match[1]}`"
            raise SpecError(message)
        if right >= board.files:
            raise SpecError(f"zone {zone!r} is outside files a-{chr(96 + board.files)}")
        return _rectangle(range(left, right + 1), range(board.ranks), board)
    if match := _RECTANGLE.match(zone):
        a, b = square_of(match[1], board), square_of(match[2], board)
        files = range(a % board.files, b % board.files + 1)
        ranks = range(a // board.files, b // board.files + 1)
        if not files or not ranks:
            raise SpecError(f"zone {zone!r} is empty: give its lower left corner first")
        return _rectangle(files, ranks, board)
    if _SQUARE.match(zone):
        return frozenset((square_of(zone, board),))
    names = ", ".join(board.zones) or "none"
    raise SpecError(f"{zone!r} is not a zone; accepted: {ACCEPTED} (named here: {names})")


def _rectangle(files: range, ranks: range, board: Board) -> frozenset[int]:
    return frozenset(rank * board.files + file for rank in ranks for file in files)
