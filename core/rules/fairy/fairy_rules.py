"""`FairyRules`: variants as Fairy-Stockfish plays them, at 1.4 ms a call.

This engine is the reference for the kernel, and plays the variants that the kernel does not
support. Positions are the same records and moves the same integers. Each record also carries a FEN
and moves for Fairy-Stockfish (`fairy_positions.py`), since it cannot hold everything (walls, two e.p.
squares, a pass). pyffish gets only FENs that it wrote itself, that were written from a checked
record, or, for specs with `engine: fairy`, that it has found valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import FenError, MoveError, SpecError
from variant_ai.core.rules.fairy.fairy_positions import (
    UNKNOWN,
    FairyMoves,
    RecentCache,
    State,
    fingerprint,
    is_move_text,
    is_pass,
    state_of,
    with_state,
)
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant, spec_settings
from variant_ai.core.rules.interface import Outcome, Rules
from variant_ai.core.rules.position import (
    MAX_CLOCK,
    PASS,
    Position,
    add_last_move,
    is_capture,
    move_kind,
    position_key,
)
from variant_ai.core.rules.text.fen import format_fen, parse_fen, shorten
from variant_ai.core.rules.verdicts import (
    PLAYERS,
    checkmate_detail,
    kings_on_open_file,
    move_count_end,
    mover_resets,
    ordinal,
    stalemate_detail,
)
from variant_ai.core.spec.plane_layout import last_moves_shown
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.text_tables import counted

MAX_STATES = 8192
"""Positions whose results are cached."""


class FairyRules(Rules):
    """Rules of a spec as Fairy-Stockfish plays them, with the spec's end-of-game rules.

    Raises SpecError if the spec has no Fairy-Stockfish variant or does not fit to it,
    UnknownNameError if there is no variant of that name.
    """

    name = "fairy"

    def __init__(self, spec: VariantSpec) -> None:
        super().__init__(spec)
        if spec.fairy is None:
            raise SpecError(
                f"variant {spec.variant!r} has no `fairy:` name, so the rules engine 'fairy' "
                "cannot play it; name a variant of Fairy-Stockfish, built-in or of a `fairy_ini:`, or "
                "use the engine 'kernel'"
            )
        # move counts are in the record: a FEN does not have the checks given
        self._fairy = FairyVariant.of_spec(spec, spec_settings(spec, move_count=False, chase=True))
        self._without_chase = FairyVariant.of_spec(
            spec, spec_settings(spec, move_count=False, chase=False)
        )
        self._moves = FairyMoves(self.types)
        self._states: RecentCache[tuple[str, tuple[str, ...]], State] = RecentCache(MAX_STATES)
        self._found: RecentCache[bytes, State] = RecentCache(MAX_STATES)
        """States of positions made from a FEN, by the fingerprints of their records."""
        self._cycles = lru_cache(maxsize=4096)(self._judge)

    def position(self, fen: str | None = None) -> Position:
        text = self.spec.rules.start if fen is None else fen
        position, state = self._read(text)
        if fen is not None:
            self._reject_unplayable(position, state, text)
        self._found.put(fingerprint(position), state)
        return with_state(position, state)

    def fen(self, position: Position) -> str:
        state = self._state(position)
        if not state.hidden:
            return format_fen(self.types, position)
        counters = format_fen(self.types, position).split()[-2:]
        return " ".join([*state.fen.split()[:-2], *counters])

    def legal_moves(self, position: Position) -> NDArray[np.int32]:
        return self._legal(position, self._state(position)).copy()

    def _legal(self, position: Position, state: State) -> NDArray[np.int32]:
        if state.legal is None:
            texts = self._fairy.legal_moves(state.base, state.moves)
            state.legal = np.array([self._moves.read(position, text) for text in texts], np.int32)
        return state.legal

    def play(self, position: Position, move: int) -> Position:
        state = self._state(position)
        try:
            text = self.uci(int(move))
        except IndexError as error:
            message = f"{move} is not a move integer of the variant (FEN {self.fen(position)})"
            raise MoveError(message) from error
        try:
            next_state = self._after(state, text)
        except MoveError as error:
            written = self._in_full(position, state, text, int(move))
            if written is None:
                message = f"{text} is not a legal move (FEN {self.fen(position)})"
                raise MoveError(message) from error
            next_state = self._after(state, written)
        after = self._record(next_state, text)
        # counters and side follow the spec: those of the FEN follow Fairy-Stockfish
        mover = int(position["side"][0])
        after["side"] = 1 - mover
        after["ply"] = position["ply"] + 1
        if after["count_limit"][0]:
            pass  # the clock counts up to the limit, as in the FEN
        elif self._resets_clock(position, int(move)):
            after["clock"] = 0
            after["checks"] = 0
        else:
            after["clock"] = min(int(position["clock"][0]) + 1, MAX_CLOCK)
            after["checks"] = position["checks"]
        add_last_move(after, position, int(move), last_moves_shown(self.spec))
        self._sign(after, next_state)
        carrier = with_state(after, next_state)
        counts = self.spec.rules.no_progress.checks_counted != "all"
        if counts and after["clock"][0] and not after["count_limit"][0] and self.in_check(carrier):
            carrier["checks"][0, mover] += 1
        return carrier

    def in_check(self, position: Position) -> bool:
        return self._in_check(self._state(position))

    def _in_check(self, state: State) -> bool:
        if state.check is None:
            state.check = self._fairy.in_check(state.base, state.moves)
        return state.check

    def outcome(self, position: Position) -> Outcome | None:
        rules, state = self.spec.rules, self._state(position)
        if state.outcome is UNKNOWN:
            state.outcome = self._end(position, state)
        ended: Outcome | None = state.outcome
        if ended is not None:
            return ended
        if counted_out := move_count_end(self.types, position):
            return counted_out
        limit = int(position["count_limit"][0])
        if limit and self._fairy.optional_end(state.base, state.moves) is not None:
            return Outcome(
                None, "move count", f"{rules.counting} counting, limit {counted(limit, 'ply')}"
            )
        if rules.insufficient_material:
            if state.drawn is None:
                state.drawn = all(self._fairy.insufficient_material(state.fen))
            if state.drawn:
                return Outcome(None, "insufficient material")
        return None

    def _end(self, position: Position, state: State) -> Outcome | None:
        """Return the outcome by mate, stalemate or variant rules. After each of these
        Fairy-Stockfish has no legal move, so the reason is found only if there is none."""
        if len(self._legal(position, state)):
            return None
        rules, side = self.spec.rules, int(position["side"][0])
        value = self._fairy.immediate_end(state.base, state.moves)
        codes = position["board"][0]
        own = ((codes - 1) >> 5 == side) & (codes != 0)
        # a side without pieces has lost or won by the stalemate rule; nothing else is known
        if value is None or not (own.any() or rules.wins):
            mated = self._fairy.mated_value(state.base, state.moves)
            if self._in_check(state):
                return Outcome(_winner(mated, side), "checkmate", checkmate_detail(self.spec))
            return Outcome(_winner(mated, side), "stalemate", stalemate_detail(self.spec))
        return Outcome(_winner(value, side), "variant win", f"by the rules of {self.spec.fairy}")

    def memory(self, position: Position) -> int:
        """Return 1 after a pass, since another one may end the game; see `Rules.memory`."""
        state = self._state(position)
        return int(bool(state.moves) and is_pass(state.moves[-1]))

    # --- states --------------------------------------------------------------

    def _state(self, position: Position) -> State:
        """Return the state of a position: the one it carries, that of a position made from a FEN
        with this fingerprint, or one of the FEN written from the record."""
        state = state_of(position) or self._found.get(fingerprint(position))
        return state or self._state_of_fen(format_fen(self.types, position), False)

    def _state_of_fen(self, fen: str, hidden: bool) -> State:
        state = self._states.get((fen, ()))
        if state is None:
            state = State(fen, (), fen, "", hidden)
            self._states.put((fen, ()), state)
        return state

    def _after(self, state: State, text: str) -> State:
        """Return the state after a move. Raises MoveError."""
        base, last = state.next_base()
        moves = (*last, text)
        known = self._states.get((base, moves))
        if known is None:
            fen = self._fairy.fen_after(base, moves)
            known = State(base, moves, fen, state.fen, False)
            known.hidden = self._has_more(fen, self._record(known, text))
            self._states.put((base, moves), known)
        return known

    def _read(self, text: str) -> tuple[Position, State]:
        """Return record and state of a FEN. Raises FenError."""
        loose = self.spec.rules.engine == self.name
        valid = loose and self._fairy.is_valid(text)
        try:
            position = parse_fen(self.types, text)
        except FenError:
            if not valid:
                raise
            position = parse_fen(self.types, text, lenient=True)
        ours = format_fen(self.types, position)
        fen, hidden = ours, False
        if valid:
            written = self._fairy.fen_after(text, [])
            if (
                written.split("[")[0].split()[0]
                == text.split("[", maxsplit=1)[0].split(maxsplit=1)[0]
            ):
                hidden = self._has_more(written, position)
                fen = written if hidden else ours
        elif loose and not self._fairy.is_valid(ours):
            raise FenError(
                f"Fairy-Stockfish cannot play {self.spec.fairy} from {shorten(text)}: pieces, "
                "royal ones above all, are missing, too many or out of place"
            )
        state = self._state_of_fen(fen, hidden)
        self._sign(position, state)
        return position, state

    def _has_more(self, fen: str, position: Position) -> bool:
        """Return True if a FEN of Fairy-Stockfish has more than the record that was read from
        it."""
        return self._identity(fen) != self._identity(format_fen(self.types, position))

    def _identity(self, fen: str) -> tuple[str, ...]:
        """Identity of a FEN without captured kings in the pocket, which cannot be dropped."""
        board, pocket, *rest = identity(fen)
        if self.spec.hands:
            royal = self.types.all[self.types.royal].symbol if self.types.royal >= 0 else ""
            if royal not in self.spec.hands.order:
                pocket = "".join(c for c in pocket if c.upper() != royal)
        return (board, pocket, *rest)

    def _sign(self, position: Position, state: State) -> None:
        position["key"] = 0
        position["key"] = position_key(position, self._identity(state.fen) if state.hidden else ())

    def _record(self, state: State, move: str) -> Position:
        """Return the record of a state's FEN. Raises SpecError for a piece that is not in the
        spec."""
        try:
            return parse_fen(self.types, state.fen, lenient=True)
        except FenError as error:
            raise SpecError(
                f"variant {self.spec.variant!r}: after {move} Fairy-Stockfish's {self.spec.fairy!r} "
                f"is in a position that records of this spec cannot hold: {error}"
            ) from error

    def _in_full(self, position: Position, state: State, text: str, move: int) -> str | None:
        """Return the legal move whose text begins with that of an integer that was decoded from a
        move code: a demotion, a wall on the origin of the piece, a pass on another square."""
        legal = [self.uci(int(m)) for m in self._legal(position, state)]
        fits = [written for written in legal if written.startswith(text)]
        if move_kind(move) == PASS:
            fits = fits or [written for written in legal if is_pass(written)]
        return fits[0] if len(fits) == 1 else None

    def judge_cycle(self, fen: str, moves: list[str]) -> Outcome | None:
        """Return the outcome if `moves` (UCI) from `fen` repeat the position often enough and are a
        perpetual chase.

        `fen` should be the first occurrence. If there is a move before it, Fairy-Stockfish (0.0.90)
        requires that this move, too, chased what the cycle chases, so that a chase entered by a
        quiet move is a draw, and a chase only a ply later. Cached. Raises FenError, MoveError.
        """
        start, state = self._read(fen)
        start["ply"] = start["side"]
        start["clock"] = 0
        for move in moves:
            if not is_move_text(move):
                raise MoveError(f"{move!r} is not a UCI move (FEN {fen})")
        first = int(start["side"][0])
        return self._cycles(self.fen(with_state(start, state)), tuple(moves), first)

    def _judge(self, fen: str, moves: Sequence[str], first: int) -> Outcome | None:
        value = self._fairy.optional_end(fen, moves)
        if not value or value == self._without_chase.optional_end(fen, moves):
            return None
        rule, side = self.spec.rules.repetition, first ^ (len(moves) & 1)
        winner = side if value > 0 else 1 - side
        chases = f"the {PLAYERS[1 - winner]} chases ({rule.perpetual_chase})"
        return Outcome(winner, "perpetual chase", f"{ordinal(rule.fold)} occurrence, {chases}")

    def _resets_clock(self, position: Position, move: int) -> bool:
        counts = "captures" in self.spec.rules.no_progress.reset and is_capture(position, move)
        return counts or mover_resets(self.types, position, move)

    def _reject_unplayable(self, position: Position, state: State, text: str) -> None:
        """Raise FenError if the side that has just moved is in check, or if kings face each other, which
        Fairy-Stockfish accepts."""
        if kings_on_open_file(self.spec, position):
            raise FenError(f"the royal pieces face each other on an open line: {text!r}")
        turned = position.copy()
        turned["side"] = 1 - position["side"]
        turned["ep"] = -1
        fen = format_fen(self.types, turned)
        if state.hidden:
            fields = state.fen.split()
            fen = " ".join([fields[0], fen.split()[1], *fields[2:]])
        if self._fairy.in_check(fen):
            player = PLAYERS[1 - int(position["side"][0])]
            raise FenError(f"the {player} is in check, but it is the other's move: {text!r}")


def identity(fen: str) -> tuple[str, ...]:
    """Parts of a FEN that identify the position: board, sorted pocket, and all other fields except
    counters and empty ones."""
    fields = fen.split()
    board, _, pocket = fields[0].partition("[") if fields else ("", "", "")
    rest = (field for field in fields[1:-2] if field != "-")
    return (board, "".join(sorted(pocket.strip("]-"))), *rest)


def _winner(value: int, side: int) -> int | None:
    """Winner by a value for the side to move."""
    return None if value == 0 else (side if value > 0 else 1 - side)
