"""Lines and positions to start games from, read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from variant_ai.core.data.importer import Importer, MakeResolver
from variant_ai.core.data.reader import GameReader
from variant_ai.core.data.record import GameRecord
from variant_ai.core.rules.interface import Rules
from variant_ai.specs.errors import DataError, FenError

POSITION_SUFFIXES = (".epd", ".fen")
MAX_OPENINGS = 1_000_000


@dataclass(frozen=True)
class Opening:
    """Where a game begins: a position, and moves played from it that belong to the game."""

    fen: str | None = None
    """None: the variant's start position."""
    moves: tuple[int, ...] = ()
    """Move integers, all legal."""


def read_positions(path: Path, rules: Rules) -> tuple[Opening, ...]:
    """Openings of a file with a FEN or an EPD a line; blank lines and `#` lines are passed over.

    EPD's operations (`bm e4; id "1";`) are dropped; counters that are missing begin anew.
    Raises DataError naming file and line where a line is no position of the variant.
    """
    fields = sum(not word.isdigit() for word in rules.spec.rules.start.split())
    fens: dict[str, None] = {}
    for number, line in enumerate(path.read_text("utf-8-sig", "replace").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            fens[rules.fen(rules.position(_fen_of(text, fields)))] = None
        except FenError as error:
            raise DataError(f"{path}:{number}: {error}") from error
    return _some([Opening(fen) for fen in fens], path)


def read_lines(
    path: Path, plies: int, readers: Sequence[GameReader], make_resolver: MakeResolver
) -> tuple[Opening, ...]:
    """The first plies of each game of a file (PGN, or whatever the readers read), each line once.

    Raises DataError where no game can be read, with the first reason.
    """
    lines: dict[Opening, None] = {}

    class Lines:
        def add(self, record: GameRecord) -> None:
            lines[Opening(record.start_fen, tuple(record.moves[:plies]))] = None

    reasons: list[str] = []
    importer = Importer(
        readers, make_resolver, on_skip=lambda skip: reasons.append(f"{skip.reason}: {skip.detail}")
    )
    importer.run([path], Lines())
    return _some(list(lines), path, reasons[0] if reasons else "")


def _some(openings: list[Opening], path: Path, why: str = "") -> tuple[Opening, ...]:
    if not openings:
        raise DataError(f"{path}: there is no opening in it{f' ({why})' if why else ''}")
    if len(openings) > MAX_OPENINGS:
        raise DataError(f"{path}: more than {MAX_OPENINGS} openings")
    return tuple(openings)


def _fen_of(line: str, fields: int) -> str:
    """The FEN in a line of EPD or FEN: so many fields, and counters where they follow."""
    words = line.split(";", maxsplit=1)[0].split()
    counters = []
    for word in words[fields : fields + 2]:
        if not word.isdigit():
            break
        counters.append(word)
    return " ".join(words[:fields] + counters)
