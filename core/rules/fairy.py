"""The rules engine `fairy`: variants as Fairy-Stockfish plays them, at 2 ms a question.

It is the reference that the kernel is judged by, and the engine of variants the kernel has no
words for. Positions are the same records and moves the same integers, so whoever plays through it
cannot tell the difference; what these cannot hold (two e.p. squares, a duck moved along) is refused
by name. pyffish sees only FENs written from a checked record.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.rules.fairy_stockfish import FairyVariant, spec_settings
from variant_ai.core.rules.fen import format_fen, parse_fen
from variant_ai.core.rules.interface import Outcome, Rules
from variant_ai.core.rules.notation import uci
from variant_ai.core.rules.position import (
    CASTLING,
    DOUBLE_STEP,
    DROP,
    EN_PASSANT,
    NORMAL,
    PASS,
    PROMOTION,
    Position,
    last_move,
    make_move,
    move_kind,
    move_origin,
    move_target,
    piece_code,
    piece_colour,
    piece_type,
    square_index,
    view,
)
from variant_ai.core.rules.verdicts import (
    PLAYERS,
    idle_winner,
    move_count_detail,
    ordinal,
    progress_plies,
    stalemate_detail,
)
from variant_ai.specs.betza import parse_betza
from variant_ai.specs.errors import FenError, MoveError, SpecError
from variant_ai.specs.planes import moves_seen
from variant_ai.specs.schema import VariantSpec
from variant_ai.specs.zones import zone_squares

MAX_CLOCK = 32_000
"""Where the clock of a record stops."""

_MOVE = re.compile(
    r"(?:(?P<drop>\+?[A-Z])@|(?P<origin>[a-l][0-9]{1,2}))(?P<target>[a-l][0-9]{1,2})"
    r"(?P<suffix>[a-z+]?)"
)
_CELLS = re.compile(r"[0-9]+|\+?[A-Za-z*]~?")


class FairyRules(Rules):
    """Rules of a spec as Fairy-Stockfish plays them, end-of-game rules as the spec says.

    Raises SpecError where the spec names no Fairy-Stockfish variant or uses words that position
    records cannot hold for it, UnknownNameError for a name that does not exist.
    """

    name = "fairy"

    def __init__(self, spec: VariantSpec) -> None:
        super().__init__(spec)
        if spec.fairy is None:
            raise SpecError(
                f"variant {spec.variant!r} has no `fairy:` name, so the rules engine 'fairy' "
                "cannot play it; use the engine 'kernel'"
            )
        # move counts are read from the record: a FEN alone does not know the checks given
        self._fairy = FairyVariant(spec.fairy, spec_settings(spec, move_count=False, chase=True))
        _require_board(spec, self._fairy.start_fen())
        self._without_chase = FairyVariant(
            spec.fairy, spec_settings(spec, move_count=False, chase=False)
        )
        self._doubles = self._double_steps()
        self._legal = lru_cache(maxsize=4096)(self._fairy.legal_moves)
        self._checks = lru_cache(maxsize=4096)(self._fairy.in_check)
        self._cycles = lru_cache(maxsize=4096)(self._judge)

    def position(self, fen: str | None = None) -> Position:
        text = self.spec.rules.start if fen is None else fen
        position = parse_fen(self.spec, self.types, text)
        self._refuse_unplayable(position, text)
        position["key"] = position_key(position)
        return position

    def fen(self, position: Position) -> str:
        return format_fen(self.spec, self.types, position)

    def legal_moves(self, position: Position) -> NDArray[np.int32]:
        texts = self._legal(self.fen(position))
        return np.array([self._move(position, text) for text in texts], np.int32)

    def play(self, position: Position, move: int) -> Position:
        fen = self.fen(position)
        try:
            text = uci(self.types, self.spec.board.files, int(move))
        except IndexError as error:
            raise MoveError(f"{move} is not a move integer of the variant (FEN {fen})") from error
        try:
            after_fen = self._fairy.fen_after(fen, [text])
        except MoveError as error:
            raise MoveError(f"{text} is not a legal move (FEN {fen})") from error
        after = self._after(after_fen, text)
        # counters and side come from the spec: FEN's own follow Fairy-Stockfish's habits
        mover = int(position["side"][0])
        after["side"] = 1 - mover
        after["ply"] = position["ply"] + 1
        if after["count_limit"][0]:
            pass  # the clock counts towards the limit, as the FEN has it
        elif self._resets_clock(position, int(move)):
            after["clock"] = 0
            after["checks"] = 0
        else:
            after["clock"] = min(int(position["clock"][0]) + 1, MAX_CLOCK)
            after["checks"] = position["checks"]
            if self.spec.rules.no_progress.checks_counted != "all" and self.in_check(after):
                after["checks"][0, mover] += 1
        kept = moves_seen(self.spec)
        if kept:
            after["last_moves"][0, 1:kept] = position["last_moves"][0, : kept - 1]
            after["last_moves"][0, 0] = last_move(int(move))
        after["key"] = position_key(after)
        return after

    def in_check(self, position: Position) -> bool:
        return self._checks(self.fen(position))

    def outcome(self, position: Position) -> Outcome | None:
        rules, side, fen = self.spec.rules, int(position["side"][0]), self.fen(position)
        value = self._fairy.immediate_end(fen)
        if not self._legal(fen):
            mated = self._fairy.mated_value(fen)
            # a side without pieces has lost or won as the stalemate rule says; no more is known
            if value is None or (value == mated and not rules.wins):
                if self._checks(fen):
                    return Outcome(_winner(mated, side), "checkmate")
                return Outcome(_winner(mated, side), "stalemate", stalemate_detail(self.spec))
        if value is not None:
            return Outcome(
                _winner(value, side), "variant win", f"by the rules of {self.spec.fairy}"
            )
        count = rules.no_progress
        if count.plies != "none" and progress_plies(self.spec, position) >= count.plies:
            return Outcome(None, "move count", move_count_detail(self.spec))
        limit = int(position["count_limit"][0])
        if limit and self._fairy.optional_end(fen) is not None:
            return Outcome(None, "move count", f"{rules.counting} counting, limit {limit} plies")
        if rules.insufficient_material and all(self._fairy.insufficient_material(fen)):
            return Outcome(None, "insufficient material")
        return None

    def judge_cycle(self, fen: str, moves: list[str]) -> Outcome | None:
        """Verdict on the last position of `moves` (UCI) played from `fen`, if it is repeated often
        enough. Cached.

        `fen` should be the first occurrence. With a move before it Fairy-Stockfish (0.0.90) asks
        that this move, too, chased what the cycle chases, and so calls a chase that was entered
        quietly a draw, and finds it a ply later.

        Raises FenError, MoveError.
        """
        start = parse_fen(self.spec, self.types, fen)
        start["ply"] = start["side"]
        start["clock"] = 0
        for move in moves:
            if not _MOVE.fullmatch(move):
                raise MoveError(f"{move!r} is not a move as UCI writes it (FEN {fen})")
        return self._cycles(self.fen(start), tuple(moves))

    def _judge(self, fen: str, moves: tuple[str, ...]) -> Outcome | None:
        value = self._fairy.optional_end(fen, moves)
        if value is None:
            return None
        rule = self.spec.rules.repetition
        occurrence = f"{ordinal(rule.fold)} occurrence"
        first = int(parse_fen(self.spec, self.types, fen)["side"][0])
        side = first ^ (len(moves) & 1)
        winner = _winner(value, side)
        if winner is not None and value != self._without_chase.optional_end(fen, moves):
            detail = f"{occurrence}, the {PLAYERS[1 - winner]} chases ({rule.perpetual_chase})"
            return Outcome(winner, "perpetual chase", detail)
        if winner != idle_winner(self.spec, side) and winner is not None:
            detail = f"{occurrence}, the {PLAYERS[1 - winner]} gives check each time"
            return Outcome(winner, "perpetual check", detail)
        return Outcome(winner, "repetition", occurrence)

    def _after(self, fen: str, move: str) -> Position:
        """The record of a FEN as Fairy-Stockfish writes it after a move: its pocket also holds
        captured kings, which nobody can drop.

        Raises SpecError where a record cannot hold the position, such as two e.p. squares.
        """
        placement, bracket, rest = fen.partition("[")
        if bracket and self.spec.hands:
            pocket, _, rest = rest.partition("]")
            kept = "".join(c for c in pocket if c.upper() in self.spec.hands.order)
            fen = f"{placement}[{kept}]{rest}"
        try:
            return parse_fen(self.spec, self.types, fen)
        except FenError as error:
            raise SpecError(
                f"variant {self.spec.variant!r}: after {move} Fairy-Stockfish's {self.spec.fairy!r} "
                f"is in a position that records of this spec cannot hold: {error}"
            ) from error

    def _move(self, position: Position, text: str) -> int:
        """Move integer of a legal move as Fairy-Stockfish writes it."""
        match = _MOVE.fullmatch(text)
        if match is None:
            raise SpecError(
                f"{self.spec.fairy} has moves like {text!r}, which move integers cannot hold"
            )
        files, ranks = self.spec.board.files, self.spec.board.ranks
        target = square_index(match["target"], files, ranks)
        assert target is not None
        if match["drop"]:
            hand = self.spec.hands.order if self.spec.hands else ()
            if match["drop"] not in hand:
                raise SpecError(f"{self.spec.fairy} drops {match['drop']!r}; hands.order lacks it")
            return make_move(0, target, DROP, hand.index(match["drop"]))
        origin = square_index(match["origin"], files, ranks)
        assert origin is not None
        if origin == target:
            return make_move(origin, target, PASS)
        board = position["board"][0]
        mover = self.types.all[piece_type(int(board[origin]))]
        if match["suffix"]:
            return make_move(origin, target, PROMOTION, self._promoted(mover.base, match["suffix"]))
        if mover.piece.royal:
            for right in self.types.castling_rights:
                held = int(position["castling"][0]) >> right.bit & 1
                if held and (right.king_from, right.king_to) == (origin, target):
                    return make_move(origin, target, CASTLING, right.bit)
        if mover.piece.passant and board[target] == 0:
            if target == int(position["ep"][0]) and origin % files != target % files:
                return make_move(origin, target, EN_PASSANT)
            if abs(target - origin) == 2 * files and (int(board[origin]), origin) in self._doubles:
                return make_move(origin, target, DOUBLE_STEP)
        return make_move(origin, target, NORMAL)

    def _double_steps(self) -> frozenset[tuple[int, int]]:
        """Piece codes and the squares from which their double step may be taken en passant."""
        board, found = self.spec.board, set()
        everywhere = frozenset(range(board.files * board.ranks))
        for kind in self.types.all:
            places = [(everywhere, kind.piece.moves)]
            places += [
                (zone_squares(zone, board), moves) for zone, moves in kind.piece.from_.items()
            ]
            for squares, moves in places:
                steps = parse_betza(moves) if kind.piece.passant else ()
                if any(m.lame and m.quiet and (m.dx, abs(m.dy)) == (0, 2) for m in steps):
                    for colour in (0, 1):
                        code = piece_code(kind.index, colour)
                        for square in squares:
                            seen = view(square, colour, board.files, board.ranks, board.sides)
                            found.add((code, seen))
        return frozenset(found)

    def _promoted(self, base: str, suffix: str) -> int:
        """Type index of a promotion written `q` or `+`."""
        symbol = f"+{base}" if suffix == "+" else suffix.upper()
        if symbol not in self.types.by_symbol:
            raise SpecError(f"{self.spec.fairy} promotes {base} to {symbol}, not in the spec")
        return self.types.promoted(symbol)

    def _resets_clock(self, position: Position, move: int) -> bool:
        reset = self.spec.rules.no_progress.reset
        kind = move_kind(move)
        if kind == DROP:
            return "drops" in reset
        if kind == PASS:
            return False
        board = position["board"][0]
        mover = int(board[move_origin(move)])
        captured = kind == EN_PASSANT or (kind != CASTLING and board[move_target(move)] != 0)
        if captured and "captures" in reset:
            return True
        return mover != 0 and self.types.all[piece_type(mover)].symbol in reset

    def _refuse_unplayable(self, position: Position, text: str) -> None:
        """Raise FenError where the side that has just moved left itself in danger."""
        if self._facing(position):
            raise FenError(f"the royal pieces face each other on an open line: {text!r}")
        turned = position.copy()
        turned["side"] = 1 - position["side"]
        turned["ep"] = -1
        if self._fairy.in_check(self.fen(turned)):
            player = PLAYERS[1 - int(position["side"][0])]
            raise FenError(f"the {player} is in check, but it is the other's move: {text!r}")

    def _facing(self, position: Position) -> bool:
        """Whether two pieces that may not face (`faces`) stand on one file with nothing between.
        Fairy-Stockfish takes such a position without a word and plays on."""
        files, board = self.spec.board.files, position["board"][0]
        for square in np.flatnonzero(board):
            piece = self.types.all[piece_type(int(board[square]))]
            if piece.piece.faces is None:
                continue
            for ahead in range(int(square) + files, files * self.spec.board.ranks, files):
                code = int(board[ahead])
                if code:
                    other = self.types.all[piece_type(code)]
                    if other.base == piece.piece.faces and piece_colour(code) != piece_colour(
                        int(board[square])
                    ):
                        return True
                    break
        return False


def _require_board(spec: VariantSpec, fen: str) -> None:
    """Raises SpecError where Fairy-Stockfish plays the variant on another board."""
    rows = fen.split(maxsplit=1)[0].split("[", maxsplit=1)[0].split("/")
    width = sum(int(cell) if cell.isdigit() else 1 for cell in _CELLS.findall(rows[0]))
    if (width, len(rows)) != (spec.board.files, spec.board.ranks):
        raise SpecError(
            f"variant {spec.variant!r} has a board of {spec.board.files} x {spec.board.ranks}, and "
            f"Fairy-Stockfish plays {spec.fairy!r} on one of {width} x {len(rows)}"
        )


def position_key(position: Position) -> np.uint64:
    """Stable 64-bit hash of what makes two positions the same: board (with promotedness), hands,
    side, castling rights, capturable en passant square, checks left to win."""
    record = position[0]
    digest = hashlib.blake2b(digest_size=8)
    for field in ("board", "hands", "side", "castling", "ep", "wins_left"):
        digest.update(record[field].tobytes())
    return np.uint64(int.from_bytes(digest.digest(), "little"))


def _winner(value: int, side: int) -> int | None:
    """Winner by a value as the side to move sees it."""
    return None if value == 0 else (side if value > 0 else 1 - side)
