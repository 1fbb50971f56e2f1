"""Safe interface to pyffish, Fairy-Stockfish's rules as a Python module.

pyffish is a thin wrapper around C++ that does not check its input: an unknown variant kills the
process, a rejected configuration leaves names that kill the next call, an invalid FEN becomes an
empty position without an error, and several results are undefined unless another call was made
first. So no other module imports it, and this one ensures:

- variants are in the list of `variants()`;
- a configuration has known keys and is loaded at most once per process;
- FENs and moves are plain ASCII without control characters; callers pass FENs that they wrote from
  a checked position, never a user's text;
- values are +1, 0, -1 for the side to move, or None if the game goes on.

State is global to the process, and every call holds the GIL for about 2 ms, because the piece
tables are rebuilt each time: processes make it faster, threads do not. The import takes 0.5 s and
happens at the first call.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from variant_ai.core.errors import (
    FenError,
    MoveError,
    SpecError,
    UnknownNameError,
    VariantAIError,
)
from variant_ai.core.spec.files.fairy_ini import own_names
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import board_size

_lock = threading.RLock()


@cache
def pyffish() -> Any:
    """Import the module at the first call. Raises VariantAIError if it is not installed."""
    try:
        import pyffish as module
    except ImportError as error:
        raise VariantAIError(
            f"the rules engine 'fairy' needs the package pyffish: {error}"
        ) from error
    return module


def fairy_variants() -> tuple[str, ...]:
    """Names of the variants that Fairy-Stockfish has built in, sorted."""
    with _lock:
        return tuple(sorted(n for n in pyffish().variants() if not n.startswith(_PREFIX)))


_SHAPE = re.compile(r"[A-Za-z0-9/+~*\[\]-]{1,600} [wb]( [A-Za-z0-9+-]{1,60}){0,5}\Z")
_PREFIX = "spec0"
"""Prefix of the names of loaded configurations, before a digest of their text."""


def spec_settings(spec: VariantSpec, *, move_count: bool, chase: bool) -> dict[str, str]:
    """Settings of Fairy-Stockfish for the spec's end-of-game rules.

    move_count False: without the move-count rule, for callers that count themselves. chase False:
    without perpetual chase, to distinguish chases from checks.

    Raises SpecError if there are no such settings (an odd number of plies).
    """
    rules = spec.rules
    plies = rules.no_progress.plies if move_count else "none"
    if plies != "none" and plies % 2:
        raise SpecError(
            f"no_progress.plies is {plies}: Fairy-Stockfish counts full moves, so it needs "
            "an even number"
        )
    otherwise = rules.repetition.otherwise
    return {
        "nMoveRule": "0" if plies == "none" else str(plies // 2),
        "nFoldRule": str(rules.repetition.fold),
        # values are for the side to move, or for White if they are absolute
        "nFoldValue": {"draw": "draw", "loss of first player": "loss", "loss of mover": "win"}[
            otherwise
        ],
        "nFoldValueAbsolute": "true" if otherwise == "loss of first player" else "false",
        "perpetualCheckIllegal": "true" if rules.repetition.perpetual_check == "loss" else "false",
        "chasingRule": rules.repetition.perpetual_chase if chase else "none",
        "stalemateValue": "win" if rules.stalemate == "fewer pieces win" else rules.stalemate,
        "countingRule": rules.counting,
        "stalematePieceCount": "true" if rules.stalemate == "fewer pieces win" else "false",
        # Only if the spec has it: older specs leave it to the named variant.
        **({"checkmateValue": rules.checkmate} if rules.checkmate != "loss" else {}),
        **({"makpongRule": "true"} if rules.checked_king != "may move" else {}),
        **({"chess960": "true"} if rules.shuffle != "none" else {}),
    }


class FairyVariant:
    """One variant of Fairy-Stockfish with settings of its own; stateless, safe in any thread.

    Every method takes a FEN and the moves (UCI) made from it. Raises FenError for text that is
    not plain ASCII, MoveError for a move that is not legal.
    """

    def __init__(
        self, base: str, settings: Mapping[str, str] | None = None, ini: str | None = None
    ) -> None:
        """base: a built-in variant, or one of `ini`. settings: keys and values of Fairy-Stockfish's
        `variants.ini`; it ignores unknown keys without an error. ini: text of such a file.

        Raises UnknownNameError, SpecError.
        """
        with _lock:
            self.base = self.name = base
            if ini is not None:
                self.name = _load_ini(base, ini)
            elif base not in (known := fairy_variants()):
                raise UnknownNameError("Fairy-Stockfish variant", base, known)
            if settings:
                self.name = _load(self.name, settings)

    @classmethod
    def of_spec(cls, spec: VariantSpec, settings: Mapping[str, str]) -> FairyVariant:
        """The variant that a spec names, which must name one. Raises SpecError also if Fairy-Stockfish plays
        it on a board of another size, as after `extends:` with another board."""
        assert spec.fairy is not None
        variant, board = cls(spec.fairy, settings, spec.fairy_ini), spec.board
        files, ranks = board_size(variant.start_fen().split(maxsplit=1)[0])
        if (files, ranks) != (board.files, board.ranks):
            raise SpecError(
                f"variant {spec.variant!r} has a board of {board.files} x {board.ranks}, and "
                f"Fairy-Stockfish plays {spec.fairy!r} on one of {files} x {ranks}; accepted: a `fairy:` "
                "with this board, or `fairy: null`",
                keys=("fairy",),
            )
        return variant

    def start_fen(self) -> str:
        with _lock:
            return str(pyffish().start_fen(self.name))

    def is_valid(self, fen: str) -> bool:
        """Return True if the other methods accept a FEN, which may be any text."""
        if not _is_plain(fen) or not _SHAPE.match(fen):
            return False
        # rights to bring pieces in are written as castling rights, which are invalid after the king
        # has moved; ignoring them does no harm
        without = re.sub(r"( [wb]) [A-Za-z]+ ", r"\1 - ", fen)
        with _lock:
            return bool(pyffish().validate_fen(without, self.name) == pyffish().FEN_OK)

    def legal_moves(self, fen: str, moves: Sequence[str] = ()) -> list[str]:
        """Legal moves as UCI strings, in a fixed order."""
        return list(self._call("legal_moves", fen, moves))

    def fen_after(self, fen: str, moves: Sequence[str]) -> str:
        return str(self._call("get_fen", fen, moves))

    def in_check(self, fen: str, moves: Sequence[str] = ()) -> bool:
        """Return True if the side to move is in check (pyffish's `gives_check`)."""
        return bool(self._call("gives_check", fen, moves))

    def immediate_end(self, fen: str, moves: Sequence[str] = ()) -> int | None:
        """Value of an end by the variant's rules other than mate, stalemate, repetition and
        counting."""
        return self._end("is_immediate_game_end", fen, moves)

    def optional_end(self, fen: str, moves: Sequence[str] = ()) -> int | None:
        """Value of an end by move count, repetition, perpetual check or chase, or counting."""
        return self._end("is_optional_game_end", fen, moves)

    def mated_value(self, fen: str, moves: Sequence[str] = ()) -> int:
        """Value for the side to move if it has no legal move, which the caller must ensure: pyffish
        does not check it."""
        return _sign(self._call("game_result", fen, moves))

    def stalemate(self) -> str:
        """Return what `rules.stalemate` of a spec says, asked with the pieces of the start position and
        with one of them gone."""
        placed, _, rest = self.start_fen().partition(" ")
        board, bracket, pocket = placed.partition("[")

        def value(letters: str) -> int:
            """Value with one piece fewer of the side with these letters."""
            found = re.search(f"(?<=[A-Za-z])[{letters}](?=[A-Za-z])", board)
            if found is None:
                return 0
            fewer = f"{board[: found.start()]}1{board[found.end() :]}"
            return self.mated_value(f"{fewer}{bracket}{pocket} {rest}")

        if (value("A-Z"), value("a-z")) == (1, -1):
            return "fewer pieces win"
        return {1: "win", 0: "draw", -1: "loss"}[self.mated_value(self.start_fen())]

    def insufficient_material(self, fen: str) -> tuple[bool, bool]:
        """For each player, True if it can never win by mate."""
        white, black = self._call("has_insufficient_material", fen)
        return bool(white), bool(black)

    def _end(self, function: str, fen: str, moves: Sequence[str]) -> int | None:
        ended, value = self._call(function, fen, moves)
        return _sign(value) if ended else None  # the value is undefined unless `ended` is set

    def _call(self, function: str, fen: str, moves: Sequence[str] = ()) -> Any:
        """Call a function of pyffish with a FEN, and the moves made from it."""
        if not _is_plain(fen):
            raise FenError(f"not a FEN: {fen[:80]!r}")
        for text in moves:
            if not _is_plain(text):
                raise MoveError(f"not a move: {text[:80]!r} (FEN {fen})")
        with _lock:
            try:
                return getattr(pyffish(), function)(self.name, fen, list(moves))
            except (SystemError, ValueError, TypeError) as error:
                # the cause of a SystemError is the ValueError of an illegal move
                shown = " ".join(moves[-6:]) if moves else "no moves"
                raise MoveError(
                    f"{self.base} (Fairy-Stockfish) cannot play {shown} from {fen!r}: "
                    f"{error.__cause__ or error}"
                ) from error


def _load(base: str, settings: Mapping[str, str]) -> str:
    """Load a configuration, unless this process has already, and return its name. Needs the
    lock."""
    body = "".join(f"{key} = {value}\n" for key, value in settings.items())
    name = _PREFIX + hashlib.blake2b(f"{base}\n{body}".encode(), digest_size=8).hexdigest()
    if name not in pyffish().variants():
        pyffish().load_variant_config(f"[{name}:{base}]\n{body}")
    return name


def _load_ini(name: str, ini: str) -> str:
    """Load a variant of an ini file with its ancestors, and return its name. Needs the lock."""
    known, text = own_names(ini, name, f"{_PREFIX}ini")
    if known not in pyffish().variants():
        pyffish().load_variant_config(text)
    if known not in pyffish().variants():
        raise SpecError(f"Fairy-Stockfish does not accept the variant {name!r} of the ini file")
    return known


def _is_plain(text: str) -> bool:
    return text.isascii() and (text.isprintable() or not text)


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
