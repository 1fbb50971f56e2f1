"""Words of a game resolved to legal moves. This is the only check of legality.

The notation of a game is found by trial: the first that reads it to the end is right. The order of
trials depends on the game alone, so that the same file gives the same games in every process.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

from variant_ai.core.data.game_record import GameRecord, PlyVisits
from variant_ai.core.data.read.decoding import REPLACEMENT
from variant_ai.core.data.read.game_reader import RawGame, Skip, plain_name
from variant_ai.core.data.read.headers import fill
from variant_ai.core.errors import FenError, MoveError
from variant_ai.core.rules.game import IDENTITY
from variant_ai.core.rules.interface import Rules, positions_before
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import Notation
from variant_ai.core.spec.schema import VariantSpec

OPENING_PLIES = 40
"""Games with the same first plies, so many of them, share a group: copies and continuations."""
_MAX_FENS = 4096


class Resolver:
    """Resolves games of one variant. Not safe to share between threads."""

    def __init__(self, rules: Rules, notations: Sequence[Notation]) -> None:
        """`notations`: in the order in which they are tried if the notation is not known."""
        self.rules = rules
        self.notations = {notation.name: notation for notation in notations}
        self.names = variant_names(rules.spec)
        self._start = rules.position()
        self._start_of = lru_cache(_MAX_FENS)(self._read_start)

    def resolve(self, raw: RawGame) -> GameRecord | Skip:
        """Return the game, or the reason why it is skipped."""
        if raw.problem:
            return self._skip(raw, raw.problem, raw.detail)
        for name in ("Variant", "Game"):
            value = raw.headers.get(name, "")
            plain = plain_name(value)
            another = plain and plain not in self.names
            # a header `Game` may say anything
            if another and (name == "Variant" or "chess" in plain):
                return self._skip(raw, "another variant", f"header {name} {value!r}", value)
        fen = raw.headers.get("FEN", "")
        try:
            position, start_fen = self._start_of(fen)
        except FenError as error:
            return self._skip(raw, "bad FEN", str(error), fen)
        if not raw.moves:
            return self._skip(raw, "no moves", "the game has no moves")
        notation, moves, failure = self._read(raw, position)
        if failure is not None:
            return self._failed(raw, len(moves), failure)
        visits: list[PlyVisits] | None = None
        if raw.visits is not None:
            try:
                visits = self._visits(raw.visits, notation, moves, position)
            except MoveError as error:
                return self._skip(raw, "unreadable visits", str(error))
        record = GameRecord(self.rules.spec.variant, moves, start_fen)
        record.source, record.number = raw.source, raw.number
        record.visits = visits
        record.root_values, record.trains = raw.root_values, raw.trains
        record.generation = raw.generation
        fill(record, raw, first_begins=int(position["side"][0]) == 0)
        record.group = record.group or opening_group(record)
        return record

    # --- moves ---------------------------------------------------------------------------------

    def _read(self, raw: RawGame, start: Position) -> tuple[Notation, list[int], MoveError | None]:
        """Notation and moves, or if no notation reads all: those of the one that read most, and its
        error."""
        names = (raw.headers.get("Format", "").lower(), *raw.notations, *self.notations)
        found: list[tuple[Notation, list[int], MoveError]] = []
        for name in dict.fromkeys(names):
            if (notation := self.notations.get(name)) is None:
                continue
            moves, error = self._read_in(notation, raw.moves, start)
            if error is None:
                return notation, moves, None
            found.append((notation, moves, error))
        # Among equals, the error of a notation that knows the word is more informative.
        return max(found, key=lambda one: _rank(one[1], one[2]))

    def _read_in(
        self, notation: Notation, texts: Sequence[str], position: Position
    ) -> tuple[list[int], MoveError | None]:
        moves: list[int] = []
        rules = self.rules
        try:
            for text in texts:
                move = notation.read(rules, position, text)
                position = rules.play(position, move)
                moves.append(move)
        except MoveError as error:
            return moves, error
        return moves, None

    def _visits(
        self,
        texts: Sequence[dict[str, int]],
        notation: Notation,
        moves: Sequence[int],
        position: Position,
    ) -> list[PlyVisits]:
        """Visits by move, in the notation that has read the game. Raises MoveError."""
        rules = self.rules
        visits: list[PlyVisits] = []
        positions = positions_before(rules, position, moves)
        for before, visited in zip(positions, texts, strict=True):
            read = {notation.read(rules, before, text): n for text, n in visited.items()}
            visits.append(tuple(read.items()))
        return visits

    def _read_start(self, fen: str) -> tuple[Position, str | None]:
        """Start position and its FEN, None for the variant's own. Raises FenError."""
        if not fen:
            return self._start, None
        position = self.rules.position(fen)
        if all((position[name] == self._start[name]).all() for name in IDENTITY):
            return self._start, None
        return position, self.rules.fen(position)

    # --- skipped games -------------------------------------------------------------------------

    def _failed(self, raw: RawGame, ply: int, error: MoveError) -> Skip:
        text = raw.moves[ply]
        if REPLACEMENT in text:
            reason = "wrong encoding"
        elif raw.open_end and ply == len(raw.moves) - 1:
            reason = "cut off"
        else:
            word = str(error).split(" ", 1)[0]
            reason = f"{word} move" if word in ("illegal", "ambiguous") else "unreadable move"
        return Skip(
            reason,
            raw.source,
            raw.number,
            raw.lines[ply] if ply < len(raw.lines) else raw.line,
            ply + 1,
            text[:200],
            str(error),
        )

    @staticmethod
    def _skip(raw: RawGame, reason: str, detail: str, text: str = "") -> Skip:
        return Skip(reason, raw.source, raw.number, raw.line, text=text[:200], detail=detail)


def _rank(moves: list[int], error: MoveError) -> tuple[int, bool]:
    return len(moves), not str(error).startswith("unreadable")


def opening_group(record: GameRecord) -> str:
    """Hash of the first plies of a game, in hex digits; equal for games with the same opening."""
    opening = f"{record.start_fen or ''} {record.moves[:OPENING_PLIES]}"
    return hashlib.blake2b(opening.encode(), digest_size=6).hexdigest()


def variant_names(spec: VariantSpec) -> frozenset[str]:
    """Names of the variant in headers, reduced to letters and digits."""
    texts = [spec.variant, spec.fairy or "", spec.title, *re.split(r"[(),/]", spec.title)]
    texts += [name for names in spec.names.values() for name in names]
    return frozenset(filter(None, map(plain_name, texts)))
