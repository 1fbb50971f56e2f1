"""Checks of `castling:` and `shuffle:` that need no start position."""

from __future__ import annotations

import re

from variant_ai.core.spec.issues import Issues, Path, zone_issues
from variant_ai.core.spec.schema import VariantSpec

MAX_SIDES = 3
"""Sides to which a player may castle: a position has six bits for both players."""
MAX_CASTLING_FILES = 10
"""Files of boards on which king and rook may castle from any of them."""
_WALK = re.compile(r"[a-z][0-9]+-[a-z][0-9]+\Z")


def check_castling(spec: VariantSpec) -> Issues:
    """Check that the walks of castling are squares of the board, and that a position can hold their rights."""
    if len(spec.castling) > MAX_SIDES:
        yield ("castling",), f"{len(spec.castling)} sides; accepted: at most {MAX_SIDES}"
    for side, walk in spec.castling.items():
        for who, text in (("king", walk.king), ("rook", walk.rook)):
            path: Path = ("castling", side, who)
            if not _WALK.match(text):
                yield path, f"{text!r} is not two squares; accepted: such as 'e1-g1'"
                continue
            for name in text.split("-"):
                yield from zone_issues(spec, path, (name,))


def check_shuffle(spec: VariantSpec) -> Issues:
    """Check that `shuffle:` has the pieces and castling sides that it needs."""
    path: Path = ("rules", "shuffle")
    if spec.rules.shuffle == "none":
        return
    if spec.rules.engine != "kernel":
        yield (
            path,
            f"the engine {spec.rules.engine!r} castles from fixed squares only; use the kernel",
        )
    if spec.board.files > MAX_CASTLING_FILES:
        most = f"the kernel castles from any files on at most {MAX_CASTLING_FILES}"
        yield path, f"{spec.board.files} files; {most}; use `none`"
    rows = spec.rules.start.strip().partition(" ")[0].partition("[")[0].split("/")
    standard = sorted(rows[-1]) == sorted("RNBQKBNR") and rows[0] == rows[-1].lower()
    if spec.rules.shuffle == "chess960" and not standard:
        yield (
            path,
            "chess960 needs a start position with R N B Q K B N R on the first rank, in any order, "
            "and the same pieces opposite",
        )
    if any(check_castling(spec)):
        return
    sides = [(walk.king.split("-"), walk.rook.split("-")) for walk in spec.castling.values()]
    if sorted(king[0][0] < rook[0][0] for king, rook in sides) != [False, True]:
        yield path, f"{spec.rules.shuffle!r} needs two `castling:` sides, one with each rook"
