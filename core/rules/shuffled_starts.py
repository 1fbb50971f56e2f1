"""Start positions of variants with `shuffle: chess960`, by number.

Chess960 numbers its 960 first ranks as Scharnagl does: the usual one is 518. The number is divided in
turn by 4 (file of the light-squared bishop), 4 (the dark-squared one), 6 (the queen, among the empty
files) and 10 (the two knights); rook, king and rook take the last three files.
"""

from __future__ import annotations

from itertools import combinations
from random import Random

from variant_ai.core.errors import SettingError
from variant_ai.core.spec.schema import VariantSpec

STARTS = 960
"""Number of start positions of `shuffle: chess960`."""
_KNIGHTS = tuple(combinations(range(5), 2))


def is_shuffled(spec: VariantSpec) -> bool:
    """Return True if new games of the variant begin from positions with shuffled first ranks."""
    return spec.rules.shuffle == "chess960"


def castles_from_any_files(spec: VariantSpec) -> bool:
    """Return True if king and rook may castle from any files of their first rank."""
    return spec.rules.shuffle != "none"


def shuffled_start(spec: VariantSpec, number: int) -> str:
    """FEN of a start position, with the files of the rooks as castling rights.

    number: 0 to 959. Raises SettingError for another number, or another variant.
    """
    if not is_shuffled(spec):
        raise SettingError(
            f"{spec.variant} has one start position; no `shuffle: chess960` in its spec"
        )
    if not 0 <= number < STARTS:
        raise SettingError(f"start position {number}: accepted are 0 to {STARTS - 1}")
    rank = _first_rank(number)
    board, side, rights, *rest = spec.rules.start.split()
    placement, bracket, hands = board.partition("[")
    rows = placement.split("/")
    rows[0], rows[-1] = rank.lower(), rank
    if rights != "-":
        left, right = (chr(65 + file) for file in range(8) if rank[file] == "R")
        first, second = (right + left), (right + left).lower()
        rights = first * any(map(str.isupper, rights)) + second * any(map(str.islower, rights))
    return " ".join(["/".join(rows) + bracket + hands, side, rights, *rest])


def random_start(spec: VariantSpec, random: Random) -> str | None:
    """FEN of a start position sampled at random; None if the variant has only one."""
    return shuffled_start(spec, random.randrange(STARTS)) if is_shuffled(spec) else None


def _first_rank(number: int) -> str:
    rank = [""] * 8
    number, bishop = divmod(number, 4)
    rank[2 * bishop + 1] = "B"
    number, bishop = divmod(number, 4)
    rank[2 * bishop] = "B"
    number, queen = divmod(number, 6)
    rank[_empty(rank)[queen]] = "Q"
    empty = _empty(rank)
    for knight in _KNIGHTS[number]:
        rank[empty[knight]] = "N"
    for file, piece in zip(_empty(rank), "RKR", strict=True):
        rank[file] = piece
    return "".join(rank)


def _empty(rank: list[str]) -> list[int]:
    return [file for file in range(8) if not rank[file]]
