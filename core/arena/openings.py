"""Positions to start games from, read from a file."""

from __future__ import annotations

from pathlib import Path

from variant_ai.core.rules.interface import Rules
from variant_ai.specs.errors import DataError, FenError

MAX_OPENINGS = 1_000_000


def read_openings(path: Path, rules: Rules) -> tuple[str, ...]:
    """FENs of a file that has a FEN or an EPD a line; blank lines and `#` lines are passed over.

    EPD's operations (`bm e4; id "1";`) are dropped; counters that are missing begin anew. Raises DataError naming file and line where a line is no position of the variant.
    """
    fields = sum(not word.isdigit() for word in rules.spec.rules.start.split())
    fens: list[str] = []
    for number, line in enumerate(path.read_text("utf-8-sig", "replace").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            fens.append(rules.fen(rules.position(_fen_of(text, fields))))
        except FenError as error:
            raise DataError(f"{path}:{number}: {error}") from error
        if len(fens) > MAX_OPENINGS:
            raise DataError(f"{path}: more than {MAX_OPENINGS} positions")
    if not fens:
        raise DataError(f"{path}: there is no position in it")
    return tuple(fens)


def _fen_of(line: str, fields: int) -> str:
    """The FEN in a line of EPD or FEN: so many fields, and counters where they follow."""
    words = line.split(";", maxsplit=1)[0].split()
    counters = []
    for word in words[fields : fields + 2]:
        if not word.isdigit():
            break
        counters.append(word)
    return " ".join(words[:fields] + counters)
