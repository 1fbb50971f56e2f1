"""Moves as text: a notation writes a legal move of a position, and reads text back.

Reading is the inner loop of every import, so it costs one call of `legal_moves` and a search among
the moves to the target square. Input is accepted if only one legal move can be meant (needless or
missing disambiguation, a missing `x`, `=` or check sign); output is strict.

Notations of one variant (Chinese characters, WXF) are in the plugin of that variant.
"""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import index

from variant_ai.core.errors import MoveError, PluginError, VariantAIError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import (
    CASTLING,
    DROP,
    PASS,
    PROMOTION,
    TURNED,
    Position,
    is_capture,
    move_argument,
    move_extra,
    move_kind,
    move_origin,
    move_target,
    piece_type,
    square_index,
)
from variant_ai.core.spec.start_position import CastlingRight
from variant_ai.core.spec.zones import square_name

ORIGIN_AND_TARGET = 0x3FFF
TARGET = 0x7F
NULL_MOVES = ("0000", "--", "@@@@", "Z0", "pass")


class Notation(ABC):
    """A way to write moves."""

    name: str
    """Name in commands: `uci`, `san`, `iccs`."""

    @abstractmethod
    def write(self, rules: Rules, position: Position, move: int) -> str:
        """Return the text of a legal move of the position."""

    @abstractmethod
    def read(self, rules: Rules, position: Position, text: str) -> int:
        """Return the legal move that a text means.

        Raises MoveError if the text is not of this notation, or no legal move or several fit it;
        the message has the text and the FEN. `MoveText` helps with that.
        """

    def write_line(self, rules: Rules, position: Position, moves: Iterable[int]) -> list[str]:
        """Texts of moves that are played one after the other from the position."""
        texts = []
        for move in moves:
            texts.append(self.write(rules, position, move))
            position = rules.play(position, move)
        return texts


@dataclass
class GuardedNotation(Notation):
    """A notation of a plugin. Its errors and values of a wrong type become errors that name the plugin."""

    inner: Notation
    plugin: str

    def __post_init__(self) -> None:
        self.name = self.inner.name

    def write(self, rules: Rules, position: Position, move: int) -> str:
        """Write a move as the plugin does. Raises PluginError if that fails."""
        with self._guarded():
            text = self.inner.write(rules, position, move)
            _require_text(text)
        return text

    def write_line(self, rules: Rules, position: Position, moves: Iterable[int]) -> list[str]:
        """Write moves as the plugin does. Raises PluginError if that fails."""
        with self._guarded():
            texts = self.inner.write_line(rules, position, moves)
            for text in texts:
                _require_text(text)
        return texts

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Context in which the plugin writes moves."""
        try:
            yield
        except VariantAIError:
            raise
        except Exception as error:
            raise PluginError(self._failed("write", error)) from error

    def read(self, rules: Rules, position: Position, text: str) -> int:
        """Read a move as the plugin does. Raises MoveError if that fails: other notations may read the text."""
        try:
            return index(self.inner.read(rules, position, text))
        except VariantAIError:
            raise
        except Exception as error:
            raise MoveError(self._failed("read", error)) from error

    def _failed(self, action: str, error: Exception) -> str:
        problem = f"{type(error).__name__}: {error}"
        return f"plugin {self.plugin!r}: the notation {self.name!r} cannot {action}: {problem}"


def _require_text(text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"expected a text, got {text!r}")


class UciNotation(Notation):
    """Notation of engines: `e2e4`, `e1g1` (castling), `a7a8q`, `a7a8+`, `P@e4`; ranks from 1.

    A pass is written as the king's square twice; `0000` is read too, and so is castling given as the
    king taking its rook.
    """

    name = "uci"

    def write(self, rules: Rules, position: Position, move: int) -> str:
        return rules.uci(move)

    def read(self, rules: Rules, position: Position, text: str) -> int:
        found, token = MoveText(self.name, rules, position, text), text.strip()
        if token in NULL_MOVES:
            return found.passing()
        drop = _DROP.fullmatch(token)
        if drop is not None:
            return found.drop(drop["piece"], drop["target"])
        match = _FROM_TO.fullmatch(token.lower())
        if match is None:
            raise found.unreadable("squares like e2e4, or P@e4")
        wall = match["wall"] or ""
        return found.from_to(match["origin"], match["target"], match["promoted"], wall)


class IccsNotation(Notation):
    """Squares with ranks from 0 and a hyphen: `H2-E2`; `h2e2` is read too (ten ranks at most)."""

    name = "iccs"

    def write(self, rules: Rules, position: Position, move: int) -> str:
        files = rules.spec.board.files
        target = _iccs_square(move_target(move), files)
        if move_kind(move) == DROP:
            return f"{_dropped(rules.types, move)}@{target}"
        text = f"{_iccs_square(move_origin(move), files)}-{target}"
        return text + promotion_suffix(rules.types, move).upper()

    def read(self, rules: Rules, position: Position, text: str) -> int:
        found, match = (
            MoveText(self.name, rules, position, text),
            _ICCS.fullmatch(text.strip().lower()),
        )
        if match is None:
            raise found.unreadable("squares like H2-E2, ranks from 0")
        target = _one_based(match["target"])
        if match["piece"]:
            return found.drop(match["piece"], target)
        return found.from_to(_one_based(match["origin"]), target, match["promoted"])


class SanNotation(Notation):
    """Standard algebraic notation with the spec's letters; the piece `P` has no letter.

    `Nf3`, `exd5`, `R1e2`, `O-O`, `e8=Q`, `N@g5`, `P@h6`; `e4,d5` places a wall on d5; `+` check, `#` mate,
    `--` pass. Also
    read: `@h6`, `0-0`, `e8Q`, `Ng1-f3`, `e2e4`, comment signs such as `!?`, and pieces with too
    much disambiguation, or none if one move fits.
    """

    name = "san"

    def write(self, rules: Rules, position: Position, move: int) -> str:
        wall = wall_square(move, rules.spec.board.files)
        body = self._body(rules, position, move) + (f",{wall}" if wall else "")
        return body + self._check_sign(rules, position, move)

    def read(self, rules: Rules, position: Position, text: str) -> int:
        found = MoveText(self.name, rules, position, text)
        token, _, wall = text.strip().removesuffix("e.p.").rstrip("+#!?= ").partition(",")
        if token[:1] in "O0o" and token[1:2] in ("-", "O", "0", "o"):
            return self._read_castling(found, token, wall)
        if token in NULL_MOVES:
            return found.passing()
        lexicon = _lexicon(rules.types)
        match = lexicon.pattern.fullmatch(token)
        if match is None:
            raise found.unreadable("moves like Nf3, exd5, O-O, P@e4")
        if match["drop"] is not None:
            return found.drop(match["drop"], match["onto"])
        target = found.square(match["target"])
        if target is None:
            raise found.illegal()
        files = rules.spec.board.files
        file = ord(match["file"]) - 97 if match["file"] else -1
        rank = int(match["rank"]) - 1 if match["rank"] else -1
        # engines write e2e4: with the whole origin square the letter is not needed
        base = match["piece"] or ("" if file >= 0 and rank >= 0 else lexicon.pawn)
        board = position["board"][0]
        fits = []
        moves = rules.legal_moves(position)
        for move in moves[(moves & TARGET) == target].tolist():
            origin, kind = move_origin(move), move_kind(move)
            if kind in (DROP, PASS):
                continue
            if base and rules.types.all[piece_type(int(board[origin]))].base != base:
                continue
            if (file < 0 or origin % files == file) and (rank < 0 or origin // files == rank):
                fits.append(move)
        return found.choose(found.placing(wall, fits), match["promoted"])

    def _body(self, rules: Rules, position: Position, move: int) -> str:
        types, files, board = rules.types, rules.spec.board.files, position["board"][0]
        kind, target = move_kind(move), square_name(move_target(move), files)
        if kind == PASS:
            return "--"
        if kind == DROP:
            return f"{_dropped(types, move)}@{target}"
        lexicon = _lexicon(types)
        if kind == CASTLING:
            return lexicon.castling[move_argument(move)]
        origin = move_origin(move)
        base = types.all[piece_type(int(board[origin]))].base
        rivals = []
        for other in rules.legal_moves(position).tolist():
            if (
                move_target(other) == move_target(move)
                and move_kind(other) not in (DROP, CASTLING, PASS)
                and move_origin(other) != origin
                and types.all[piece_type(int(board[move_origin(other)]))].base == base
            ):
                rivals.append(move_origin(other))
        captures = is_capture(position, move)
        is_pawn = base == lexicon.pawn
        same_file = any(rival % files == origin % files for rival in rivals)
        same_rank = any(rival // files == origin // files for rival in rivals)
        by_file = bool(rivals) and (same_rank or not same_file)
        name = square_name(origin, files)
        return "".join(
            (
                "" if is_pawn else base,
                name[0] if by_file or (is_pawn and captures) else "",
                name[1:] if same_file else "",
                "x" if captures else "",
                target,
                f"={types.all[move_argument(move)].base}" if kind == PROMOTION else "",
            )
        )

    def _check_sign(self, rules: Rules, position: Position, move: int) -> str:
        after = rules.play(position, move)
        if not rules.in_check(after):
            return ""
        return "+" if len(rules.legal_moves(after)) else "#"

    def _read_castling(self, found: MoveText, token: str, wall: str) -> int:
        written = token.upper().replace("0", "O")
        rules, lexicon = found.rules, _lexicon(found.rules.types)
        fits = [
            move
            for move in rules.legal_moves(found.position).tolist()
            if move_kind(move) == CASTLING and lexicon.castling[move_argument(move)] == written
        ]
        if fits:
            return found.choose(found.placing(wall, fits))
        if written not in ("O-O", "O-O-O"):
            raise found.unreadable("castling as O-O or O-O-O")
        raise found.illegal()


def core_notations() -> tuple[Notation, ...]:
    """Notations of every variant; plugins add others."""
    return (UciNotation(), SanNotation(), IccsNotation())


def uci(types: PieceTypes, files: int, move: int) -> str:
    """UCI text of a move: `e2e4`, `a7a8q`, `c3c4+` (shogi promotion), `c4c5-` (demotion), `P@e4`,
    `+P@e4`, `a9a10`, `e2e4,e4d5` (a wall is placed on d5)."""
    target = square_name(move_target(move), files)
    if move_kind(move) == DROP:
        return f"{_dropped(types, move)}@{target}"
    text = square_name(move_origin(move), files) + target + promotion_suffix(types, move)
    wall = wall_square(move, files)
    return f"{text},{target}{wall}" if wall else text


def wall_square(move: int, files: int) -> str:
    """Name of the square on which a move places a wall, or an empty string."""
    extra = move_extra(move)
    return "" if extra in (0, TURNED) else square_name(extra - 1, files)


_SQUARE = re.compile(r"([a-l])([0-9]{1,2})")


def shifted_ranks(text: str, by: int) -> str:
    """Shift the ranks of all squares in a UCI move; `by` -1: ranks from 0."""
    return _SQUARE.sub(lambda square: f"{square[1]}{int(square[2]) + by}", text)


def promotion_suffix(types: PieceTypes, move: int) -> str:
    """`q`, `+`, `-` for a demotion, or nothing if the piece stays the same."""
    if move_kind(move) != PROMOTION:
        return "-" if move_extra(move) == TURNED else ""
    symbol = types.all[move_argument(move)].base
    return "+" if symbol.startswith("+") else symbol.lower()


# --- reading -----------------------------------------------------------------------------------

_DROP = re.compile(r"(?P<piece>\+?[A-Za-z])[@*](?P<target>[a-l][0-9]{1,2})")
_FROM_TO = re.compile(
    r"(?P<origin>[a-l][0-9]{1,2})(?P<target>[a-l][0-9]{1,2})=?(?P<promoted>[a-z+-]?)"
    r"(?:,[a-l][0-9]{1,2}?(?P<wall>[a-l][0-9]{1,2}))?"
)
_ICCS = re.compile(
    r"(?:(?P<piece>[a-z])@|(?P<origin>[a-l][0-9])-?)(?P<target>[a-l][0-9])(?P<promoted>[a-z+]?)"
)


class _Lexicon:
    """Letters, pawn, castling texts and pattern of SAN for one variant."""

    def __init__(self, types: PieceTypes) -> None:
        symbols = sorted(types.spec.pieces, key=lambda s: (-len(s), s))
        letters = "|".join(re.escape(s) for s in symbols)
        self.pawn = "P" if "P" in types.spec.pieces else ""
        # dropped and promoted letters in either case; a bare @ drops the pawn
        either = "|".join([letters, "|".join(re.escape(s.lower()) for s in symbols)])
        self.pattern = re.compile(
            rf"(?P<drop>(?:{either})?)@(?P<onto>[a-l][0-9]{{1,2}})"
            rf"|(?P<piece>{letters})?(?P<file>[a-l])?(?P<rank>[0-9]{{1,2}}?)?[x:\-]?"
            rf"(?P<target>[a-l][0-9]{{1,2}})(?:[=/(]?(?P<promoted>{either})\)?)?"
        )
        self.castling: dict[int, str] = {}
        for colour in (0, 1):
            # the nearer rook castles short; with `shuffle:` that on the right
            rights = sorted(
                (r for r in types.castling_rights if r.colour == colour),
                key=lambda right: (
                    not right.is_right_of_king if right.takes_rook else _rook_distance(right)
                ),
            )
            for number, right in enumerate(rights):
                self.castling[right.bit] = "-".join("O" * (2 + number))


def _rook_distance(right: CastlingRight) -> int:
    return abs(right.rook_from - right.king_from)


@lru_cache(maxsize=64)
def _lexicon(types: PieceTypes) -> _Lexicon:
    return _Lexicon(types)


@dataclass(slots=True)
class MoveText:
    """A text that is read as a legal move: searches and error messages that notations share."""

    notation: str
    """Name of the notation, for messages."""
    rules: Rules
    position: Position
    text: str

    def square(self, name: str) -> int | None:
        """Square number of `e4`, None if it is not on the board."""
        board = self.rules.spec.board
        return square_index(name, board.files, board.ranks)

    def from_to(self, start: str, end: str, promoted: str = "", wall: str = "") -> int:
        """Find the move between two squares. wall: the square of a wall that it places."""
        origin, target = self.square(start), self.square(end)
        if origin is None or target is None:
            raise self.illegal()
        moves = self.rules.legal_moves(self.position)
        fits = [
            move
            for move in moves[(moves & ORIGIN_AND_TARGET) == (target | origin << 7)].tolist()
            if move_kind(move) != DROP
        ]
        if not fits:  # castling, written in the other way
            fits = [
                move
                for move in moves.tolist()
                if move_kind(move) == CASTLING
                and move_origin(move) == origin
                and target in self._ends(move_argument(move))
            ]
        return self.choose(self.placing(wall, fits), promoted)

    def placing(self, wall: str, moves: list[int]) -> list[int]:
        """Return the moves that place a wall on the square of this name; all moves if it is empty."""
        if not wall:
            return moves
        square = self.square(wall)
        return [move for move in moves if square is not None and move_extra(move) == 1 + square]

    def _ends(self, right: int) -> tuple[int, int]:
        """Squares to which a castling king may be written to go: its own target, and the rook."""
        walk = self.rules.types.castling_walk(self.position, right)
        return walk.king_to, walk.rook_from

    def drop(self, piece: str, square: str) -> int:
        """Find the drop of a piece (either case; empty: the pawn) on a square."""
        order = self.rules.spec.hand_order
        symbol = piece.upper() or "P"
        target = self.square(square)
        turned = symbol not in order and symbol[1:] in order
        if target is None or not (turned or symbol in order):
            raise self.illegal()
        index = order.index(symbol[1:] if turned else symbol)
        moves = self.rules.legal_moves(self.position)
        for move in moves[(moves & TARGET) == target].tolist():
            found = move_kind(move), move_argument(move), move_extra(move) == TURNED
            if found == (DROP, index, turned):
                return int(move)
        raise self.illegal()

    def passing(self) -> int:
        """Find the pass."""
        for move in self.rules.legal_moves(self.position).tolist():
            if move_kind(move) == PASS:
                return int(move)
        raise self.illegal()

    def choose(self, fits: Sequence[int], promoted: str | None = "") -> int:
        """Return the one move that fits. Raises MoveError if there is none, or several.

        promoted: sign of the promotion; without it moves that neither promote nor castle are
        preferred.
        """
        types = self.rules.types
        if promoted:
            suffix = "+" if promoted.startswith("+") else promoted.lower()
            fits = [m for m in fits if promotion_suffix(types, m) == suffix]
        elif len(fits) > 1:
            fits = [m for m in fits if move_kind(m) not in (PROMOTION, CASTLING)] or fits
        if len(fits) == 1:
            return int(fits[0])
        if not fits:
            raise self.illegal()
        listed = ", ".join(self.rules.uci(move) for move in fits)
        raise self._error("ambiguous", f"it could be {listed}")

    def illegal(self) -> MoveError:
        """Error for a text that no legal move fits."""
        return self._error("illegal", "no legal move fits it")

    def unreadable(self, accepted: str) -> MoveError:
        """Error for a text that is not of the notation. accepted: description of what is."""
        return self._error("unreadable", f"expected {accepted}")

    def _error(self, kind: str, reason: str) -> MoveError:
        shown = repr(self.text if len(self.text) <= 40 else self.text[:40] + "...")
        fen = self.rules.fen(self.position)
        return MoveError(f"{kind} {self.notation} move {shown}: {reason} (FEN {fen})")


def _dropped(types: PieceTypes, move: int) -> str:
    symbol = types.all[types.hand_types[move_argument(move)]].symbol
    return f"+{symbol}" if move_extra(move) == TURNED else symbol


def _iccs_square(square: int, files: int) -> str:
    return f"{chr(65 + square % files)}{square // files}"


def _one_based(name: str) -> str:
    return f"{name[0]}{int(name[1:]) + 1}"
