"""The one guarded door to pyffish, Fairy-Stockfish's rules as a Python module.

pyffish is a thin wrapper around C++ that trusts its caller: a variant name it does not know kills
the process, a refused configuration leaves names that kill the next call, a FEN it cannot read is
silently an empty position, and several answers are garbage unless another call was made first. So
no other module imports it. What passes here:

- a variant is named only after `variants()` has listed it;
- a configuration is built from keys known to exist and is loaded at most once per process;
- FENs and moves are plain ASCII without control characters; callers pass FENs that they wrote
  themselves from a checked position, never text as a user gave it;
- values come back as +1, 0, -1 for the side to move, or None where the game goes on.

State is global to the process and every call holds the GIL for about 2 ms, because the piece
tables are rebuilt each time: use processes, not threads, to go faster. The import costs 0.5 s, so
it happens at the first call.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from variant_ai.core.errors import (
    FenError,
    MoveError,
    SpecError,
    UnknownNameError,
    VariantAIError,
)
from variant_ai.core.spec.schema import VariantSpec

T = TypeVar("T")

_lock = threading.RLock()


@cache
def pyffish() -> Any:
    """The module itself, imported at the first call. Raises VariantAIError where it is missing."""
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
"""Names of loaded configurations: this, then a digest of their text."""


def spec_settings(spec: VariantSpec, *, move_count: bool, chase: bool) -> dict[str, str]:
    """The spec's end-of-game rules in Fairy-Stockfish's words.

    move_count False: without the move-count rule, for callers that count by themselves.
    chase False: without perpetual chase, for telling chases from checks.

    Raises SpecError where the words cannot say it (an odd number of plies).
    """
    rules = spec.rules
    plies = rules.no_progress.plies if move_count else "none"
    if plies != "none" and plies % 2:
        raise SpecError(
            f"no_progress.plies is {plies}: Fairy-Stockfish counts full moves, so only an even "
            "number can be compared with it"
        )
    otherwise = rules.repetition.otherwise
    return {
        "nMoveRule": "0" if plies == "none" else str(plies // 2),
        "nFoldRule": str(rules.repetition.fold),
        # values are seen from the side to move, or from White where they are absolute
        "nFoldValue": {"draw": "draw", "loss of first player": "loss", "loss of mover": "win"}[
            otherwise
        ],
        "nFoldValueAbsolute": "true" if otherwise == "loss of first player" else "false",
        "perpetualCheckIllegal": "true" if rules.repetition.perpetual_check == "loss" else "false",
        "chasingRule": rules.repetition.perpetual_chase if chase else "none",
        "stalemateValue": rules.stalemate,
        "countingRule": rules.counting,
    }


class FairyVariant:
    """One variant of Fairy-Stockfish with settings of its own; stateless, safe in any thread.

    Every method takes a FEN and the moves (UCI) made from it. Raises FenError for text that is
    not plain ASCII, MoveError for a move that is not legal.
    """

    def __init__(self, base: str, settings: Mapping[str, str] | None = None) -> None:
        """base: a built-in variant; settings: keys and values as in Fairy-Stockfish's
        `variants.ini` (keys must exist: unknown ones are ignored without a word).

        Raises UnknownNameError, SpecError.
        """
        with _lock:
            known = fairy_variants()
            if base not in known:
                raise UnknownNameError("Fairy-Stockfish variant", base, known)
            self.base = base
            self.name = _load(base, settings) if settings else base

    def start_fen(self) -> str:
        return str(self._ask(lambda f: f.start_fen(self.name), ""))

    def is_valid(self, fen: str) -> bool:
        """Whether a FEN given by anybody is one that the other questions may be asked about."""
        if not _plain(fen) or not _SHAPE.match(fen):
            return False
        # rights to bring pieces in are letters of castling rights, and called wrong when the king
        # has moved; those that nobody has do no harm
        without = re.sub(r"( [wb]) [A-Za-z]+ ", r"\1 - ", fen)
        return bool(self._ask(lambda f: f.validate_fen(without, self.name) == f.FEN_OK, fen))

    def legal_moves(self, fen: str, moves: Sequence[str] = ()) -> list[str]:
        """Legal moves as UCI strings, always in the same order."""
        return list(self._ask(lambda f: f.legal_moves(self.name, fen, list(moves)), fen, moves))

    def fen_after(self, fen: str, moves: Sequence[str]) -> str:
        return str(self._ask(lambda f: f.get_fen(self.name, fen, list(moves)), fen, moves))

    def san(self, fen: str, move: str) -> str:
        return str(self._ask(lambda f: f.get_san(self.name, fen, move), fen, [move]))

    def in_check(self, fen: str, moves: Sequence[str] = ()) -> bool:
        """Whether the side to move is in check (which pyffish calls `gives_check`)."""
        return bool(self._ask(lambda f: f.gives_check(self.name, fen, list(moves)), fen, moves))

    def immediate_end(self, fen: str, moves: Sequence[str] = ()) -> int | None:
        """An end by a rule of the variant other than mate, stalemate, repetition and counting."""
        return self._end("is_immediate_game_end", fen, moves)

    def optional_end(self, fen: str, moves: Sequence[str] = ()) -> int | None:
        """An end by move count, repetition, perpetual check or chase, or counting."""
        return self._end("is_optional_game_end", fen, moves)

    def mated_value(self, fen: str, moves: Sequence[str] = ()) -> int:
        """Value for the side to move where it is known to have no legal move: pyffish takes that
        for granted, and calls the start position of xiangqi lost."""
        value = self._ask(lambda f: f.game_result(self.name, fen, list(moves)), fen, moves)
        return _sign(value)

    def insufficient_material(self, fen: str) -> tuple[bool, bool]:
        """Which of the two players can never win by mate."""
        white, black = self._ask(lambda f: f.has_insufficient_material(self.name, fen, []), fen)
        return bool(white), bool(black)

    def _end(self, function: str, fen: str, moves: Sequence[str]) -> int | None:
        ended, value = self._ask(
            lambda f: getattr(f, function)(self.name, fen, list(moves)), fen, moves
        )
        return _sign(value) if ended else None  # without the flag the value is uninitialised

    def _ask(self, call: Callable[[Any], T], fen: str, moves: Sequence[str] = ()) -> T:
        if not _plain(fen):
            raise FenError(f"not a FEN: {fen[:80]!r}")
        for move in moves:
            if not _plain(move):
                raise MoveError(f"not a move: {move[:80]!r} (FEN {fen})")
        with _lock:
            try:
                return call(pyffish())
            except (SystemError, ValueError, TypeError) as error:
                # a SystemError hides the ValueError of an illegal move as its cause
                shown = " ".join(moves[-6:]) if moves else "no moves"
                raise MoveError(
                    f"{self.base} (Fairy-Stockfish) cannot play {shown} from {fen!r}: "
                    f"{error.__cause__ or error}"
                ) from error


def _load(base: str, settings: Mapping[str, str]) -> str:
    """Name of the configuration, loaded if this process has not yet. The lock is held."""
    body = "".join(f"{key} = {value}\n" for key, value in settings.items())
    if not all(_plain(line) for line in body.splitlines()):
        raise SpecError(f"settings for Fairy-Stockfish are not plain text: {dict(settings)!r}")
    name = _PREFIX + hashlib.blake2b(f"{base}\n{body}".encode(), digest_size=8).hexdigest()
    if name not in pyffish().variants():
        pyffish().load_variant_config(f"[{name}:{base}]\n{body}")
        if name not in pyffish().variants():
            raise SpecError(f"Fairy-Stockfish refused a configuration of {base!r}: {body!r}")
    return name


def _plain(text: str) -> bool:
    return text.isascii() and (text.isprintable() or not text)


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
