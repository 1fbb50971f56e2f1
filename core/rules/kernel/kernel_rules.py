"""`KernelRules`: the kernel's implementation of `Rules`.

Compiled code of other rooms calls `legal_moves_into`, `play_into`, `is_in_check` and `end_of` with
the tables instead.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import FenError
from variant_ai.core.rules.interface import EndReason, Outcome, Rules
from variant_ai.core.rules.kernel.attacks import kings_face
from variant_ai.core.rules.kernel.game_ends import (
    CHECKMATE,
    DEAD_POSITION,
    MOVE_COUNT,
    NO_END,
    STALEMATE,
    VARIANT_WIN,
    end_of,
)
from variant_ai.core.rules.kernel.movegen import VARIANT_ENDS, legal_moves_into, new_work
from variant_ai.core.rules.kernel.play_move import full_key, is_in_check, play_into
from variant_ai.core.rules.kernel.rule_tables import compile_tables
from variant_ai.core.rules.kernel.table_layout import (
    BARE_KING_LOSES,
    HELD,
    MAX_MOVES,
    RACES,
    WINS_BY_CHECKS,
    WINS_BY_EXTINCTION,
    WINS_BY_REACHING,
    Tables,
    new_moves,
)
from variant_ai.core.rules.position import POSITION, Position, new_position
from variant_ai.core.rules.text.fen import format_fen, parse_fen, shorten
from variant_ai.core.rules.verdicts import (
    checkmate_detail,
    draw_detail,
    kings_on_open_file,
    move_count_detail,
    stalemate_detail,
)
from variant_ai.core.spec.rule_words import ALL_PIECES, Win, letters_in_words
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.text_tables import counted

_REASONS: dict[int, EndReason] = {
    CHECKMATE: "checkmate",
    STALEMATE: "stalemate",
    MOVE_COUNT: "move count",
    VARIANT_WIN: "variant win",
    DEAD_POSITION: "insufficient material",
}
_MOST_MOVES = MAX_MOVES // 2
"""FENs with more legal moves are rejected: later positions could overflow the move list."""


def is_compiled(rules: Rules) -> TypeGuard[KernelRules]:
    """Return True if compiled code may use the tables instead of calling the methods. A subclass of
    the kernel may return something else."""
    return type(rules) is KernelRules


def _win_detail(win: Win) -> str:
    """Describe an item of `wins` that ended a game."""
    if win.checks is not None:
        return f"{win.checks} checks given"
    if win.reaches is not None:
        assert win.piece is not None
        piece = "a piece" if win.piece == ALL_PIECES else letters_in_words(win.piece, "or")
        return f"{piece} reaches its goal"
    gone = win.extinct or win.lost
    assert gone is not None  # a new kind of win needs words here
    if win.extinct and not win.left:
        return f"{letters_in_words(gone, 'and')} captured"
    which = letters_in_words(gone, "or")
    if gone == ALL_PIECES:
        return f"at most {counted(win.left, 'piece')} left" if win.left else "no pieces left"
    return f"at most {win.left} {which} left" if win.left else f"no {which} left"


def _feature(win: Win) -> int:
    """The bit of `features` for an item of `wins`."""
    if win.checks is not None:
        return WINS_BY_CHECKS
    if win.reaches is not None:
        return WINS_BY_REACHING
    assert win.extinct or win.lost  # a new kind of win needs its bit here
    return WINS_BY_EXTINCTION


class _Scratch(threading.local):
    """Buffers of one thread."""

    def __init__(self) -> None:
        self.position = new_position()
        self.moves = new_moves(2)
        self.work = new_work()


class KernelRules(Rules):
    """Compiled rules. Thread-safe; a thread's first call compiles or loads the functions it
    needs."""

    name = "kernel"

    def __init__(self, spec: VariantSpec) -> None:
        """Raises SpecError that lists the words of the spec which the kernel does not support."""
        super().__init__(spec)
        self.tables = compile_tables(spec)
        """Tables of the variant, shape (1,), for compiled callers."""
        self._scratch = _Scratch()
        self._start = self._read(spec.rules.start)

    def __reduce__(self) -> tuple[type[KernelRules], tuple[VariantSpec]]:
        return KernelRules, (self.spec,)  # tables are compiled again, buffers belong to threads

    def position(self, fen: str | None = None) -> Position:
        return self._start.copy() if fen is None else self._read(fen)

    def _read(self, fen: str) -> Position:
        position = parse_fen(self.types, fen)
        us = int(position[0]["side"])
        scratch = self._scratch
        scratch.position[0] = position[0]
        scratch.position[0]["side"] = 1 - us
        # whose king has exploded has lost, so that the other one's check is over too
        exploded = self.spec.rules.explodes and position[0]["kings"][us] < 0
        if is_in_check(self.tables, scratch.position, 0) and not exploded:
            exposed = "the side that is not to move is in check"
            if kings_on_open_file(self.spec, position):
                exposed = "the kings face each other on an open file"
            raise FenError(f"{exposed}, in FEN {shorten(fen)}")
        position[0]["key"] = full_key(self.tables, position, 0)
        count = len(self.legal_moves(position))
        if count > _MOST_MOVES:
            raise FenError(f"{count} legal moves, more than {_MOST_MOVES}, in FEN {shorten(fen)}")
        return position

    def fen(self, position: Position) -> str:
        return format_fen(self.types, position)

    def legal_moves(self, position: Position) -> NDArray[np.int32]:
        scratch = self._scratch
        scratch.position[0] = position[0]
        count = legal_moves_into(self.tables, scratch.position, 0, scratch.moves, scratch.work)
        moves: NDArray[np.int32] = scratch.moves["move"][0, :count].copy()
        return moves

    def play(self, position: Position, move: int) -> Position:
        # position.copy() copies records field by field and takes ten times as long
        after: Position = np.frombuffer(bytearray(POSITION.itemsize), POSITION)
        if not position.flags.writeable:  # numba would compile a second signature
            position = position.copy()
        play_into(self.tables, position, 0, after, 0, int(move))
        return after

    def in_check(self, position: Position) -> bool:
        scratch = self._scratch
        scratch.position[0] = position[0]
        return bool(is_in_check(self.tables, scratch.position, 0))

    def outcome(self, position: Position) -> Outcome | None:
        count = len(self.legal_moves(position))
        scratch = self._scratch
        check = int(scratch.work[0]["check"])
        end = int(end_of(self.tables, scratch.position, 0, count, check))
        if end == NO_END:
            return None
        reason, winner = end & 7, (end >> 3) - 1
        if reason == VARIANT_WIN and position[0]["passes"] > 1:
            how = "passed between facing kings" if self._face(position) else "both players passed"
            detail = f"{how}: {draw_detail(self.types, position)}"
        elif reason == VARIANT_WIN and winner < 0:
            detail = "both have reached the goal"
        else:
            detail = self._detail(reason, position)
        return Outcome(winner if winner >= 0 else None, _REASONS[reason], detail)

    def _face(self, position: Position) -> bool:
        """True if the kings face each other and must part. Not compiled: the kernel has this function only
        within others, and for one description a game it would be compiled for seconds."""
        face: Any = kings_face
        faces = self.spec.rules.facing_kings == "must part"
        return faces and bool(face.py_func(self.tables[0], position[0]))

    def _detail(self, reason: int, position: Position) -> str:
        """Describe the rule of the spec that ended the game."""
        if reason == STALEMATE:
            return stalemate_detail(self.spec)
        if reason == CHECKMATE:
            return checkmate_detail(self.spec)
        if reason == MOVE_COUNT:
            return move_count_detail(self.types, position)
        return self._won_by() if reason == VARIANT_WIN else ""

    @cached_property
    def _ways_to_win(self) -> list[tuple[str, Tables]]:
        """Each way to win of the spec: its description, and tables that know no other way."""
        rules = self.spec.rules
        ways = [(_win_detail(win), _feature(win)) for win in rules.wins]
        if rules.bare_king == "loss":
            ways.append(("the other has nothing but a king", BARE_KING_LOSES))
        found = []
        nth = 0
        for detail, feature in ways:
            alone = self.tables.copy()
            kept = feature | RACES | HELD if feature == WINS_BY_REACHING else feature
            alone["features"] = self.tables["features"] & (~(VARIANT_ENDS | RACES | HELD) | kept)
            if feature == WINS_BY_EXTINCTION:
                alone["extinctions"] = 1
                for word in ("extinct_types", "extinct_left", "extinct_wins"):
                    alone[word][0, 0] = self.tables[word][0, nth]
                nth += 1
            found.append((detail, alone))
        return found

    def _won_by(self) -> str:
        """Describe the way to win that ended the game in the scratch position: each is tried alone."""
        for detail, alone in self._ways_to_win:
            if int(end_of(alone, self._scratch.position, 0, 0, 0)) & 7 == VARIANT_WIN:
                return detail
        raise AssertionError("no rule of `wins:` explains the end")
