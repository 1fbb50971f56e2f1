"""Vocabulary of a variant's rules: board, pieces, castling, hands, and how games end.

Piece movement is in Betza notation as Fairy-Stockfish reads it, squares are algebraic (`e1`), and ranks
are counted from the mover's own side. `schema.py` has the other parts of a spec.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_FILES = 12
MAX_RANKS = 10
MAX_PIECE_TYPES = 24
MAX_HAND_KINDS = 16
MAX_PLIES = 30_000
"""Greatest limit of the move-count rule; the clock of a FEN ends there."""
MAX_LENGTH = 11
"""Squares of a slide from edge to edge of the longest board."""
Divisor = Annotated[float, Field(gt=0, le=1e6)]
"""Number by which a count in input planes is divided."""

Zone = str | tuple[str, ...]
"""`rank 2`, `rank 6-10`, `file a-c`, `d1-f3` (a rectangle), a zone's name, or a list of squares."""

Letters = str | tuple[str, ...]
"""A piece's letter, a list of them, or `all pieces`."""
ALL_PIECES = "all pieces"

HalfPoints = Annotated[float, Field(ge=0, le=100, multiple_of=0.5)]
Who = Literal["me", "them"]
MAX_LAST_MOVES = 8
Compass = Literal["N", "NE", "E", "SE", "S", "SW", "W", "NW"]


class Model(BaseModel):
    """Base of all models: strict and frozen, and an unknown key is an error."""

    model_config = ConfigDict(
        defer_build=True,
        strict=True,
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        ser_json_inf_nan="null",
        allow_inf_nan=False,
    )


class Board(Model):
    """Size of the board, its orientation for the second player, and named zones (as the mover sees
    them)."""

    files: int = Field(ge=1, le=MAX_FILES)
    ranks: int = Field(ge=1, le=MAX_RANKS)
    sides: Literal["mirror", "rotate"] = Field(
        default="mirror",
        description="orientation of zones and planes for the second player: ranks mirrored and files "
        "kept, or the board rotated by 180 degrees (shogi family)",
    )
    zones: dict[str, Zone] = Field(default_factory=dict)

    @property
    def squares(self) -> int:
        """Number of squares, walls among them."""
        return self.files * self.ranks


class Promotes(Model):
    """Promotion of a piece into another one."""

    at: Zone = Field(description="squares where it may promote")
    to: tuple[str, ...] | Literal["captured pieces"] = Field(
        description="choices in the order of the policy; `captured pieces`: those the mover lost"
    )
    second: tuple[str, ...] = Field(
        default=(), description="choices of the second player, if they are not those of `to`"
    )
    on: Literal["to", "from or to"] = "to"
    must: bool | Zone | Literal["where stuck"] = Field(
        default=False,
        description="promotion is forced by every move that may promote, on the squares of a smaller "
        "zone, or only on squares from which the piece could not move again",
    )

    def choices(self, colour: int) -> tuple[str, ...]:
        """Choices of a player (0 the first); none with `captured pieces`."""
        if self.to == "captured pieces":
            return ()
        return self.second if colour and self.second else self.to

    @property
    def of_both(self) -> tuple[str, ...]:
        """Choices of both players in the order of the policy; none with `captured pieces`."""
        return tuple(dict.fromkeys((*self.choices(0), *self.choices(1))))


class Piece(Model):
    """One type of piece. The order of pieces in the file is the order of planes."""

    name: str
    moves: str = Field(description="Betza notation")
    within: Zone | None = Field(default=None, description="zone it can never leave")
    from_: dict[str, str] = Field(
        default_factory=dict, alias="from", description="zone -> Betza moves ADDED in that zone"
    )
    royal: bool = False
    faces: str | None = Field(
        default=None, description="piece it may not face on an open line (flying general)"
    )
    avoids: str | None = Field(
        default=None,
        description="piece of either side that it can neither capture nor jump over as a hopper",
    )
    also: str | None = Field(
        default=None, description="second letter that is read (never written) in FEN"
    )
    passant: bool = Field(
        default=False, description="may capture on the square a lame double step jumped over"
    )
    promotes: Promotes | None = None
    drop: Zone | bool = Field(default=True, description="where it may be dropped from the hand")
    per_file: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RANKS,
        description="drops may not exceed this number of a side's pieces on one file",
    )
    drop_mate: bool = Field(default=True, description="its drop may give mate")

    @property
    def words(self) -> tuple[str, ...]:
        """All Betza words of the piece."""
        return (self.moves, *self.from_.values())


class CastlingSide(Model):
    """Squares of the first player, e.g. king `e1-g1`, rook `h1-f1`; mirrored for the second."""

    king: str
    rook: str


class Hands(Model):
    """Pieces that may be dropped."""

    order: tuple[str, ...] = Field(min_length=1, max_length=MAX_HAND_KINDS)
    captured: Literal["changes side", "leaves the game"] = "changes side"
    promoted: str = Field(
        default="reverts",
        description="a captured promoted piece `returns as P` (it is `Q~` on the board, as it stays "
        "promoted), `reverts` to the piece it promoted from, or `keeps` its type",
    )


class Repetition(Model):
    """Result of a repeated position. Checks and chases are judged by the moves of the cycle."""

    fold: int = Field(default=3, ge=2, le=100, description="occurrence at which the game ends")
    otherwise: Literal["draw", "loss of first player", "loss of mover"] = "draw"
    perpetual_check: Literal["loss", "draw"] = "draw"
    perpetual_chase: Literal["axf", "none"] = "none"

    @property
    def forbids_chases(self) -> bool:
        """True if a perpetual chase loses."""
        return self.perpetual_chase != "none"


class NoProgress(Model):
    """Move-count rule: draw after a number of plies without a resetting event."""

    plies: Annotated[int, Field(ge=1, le=MAX_PLIES)] | Literal["none"] = "none"
    reset: tuple[str, ...] = Field(
        default=("captures",),
        description="`captures`, `drops`, `promotions`, or piece letters whose move resets",
    )
    checks_counted: Annotated[int, Field(ge=0, le=MAX_PLIES)] | Literal["all"] = Field(
        default="all", description="beyond this many, a side's checking plies do not count"
    )


class Win(Model):
    """Another way to win: a piece reaches a zone, a number of checks is given, or pieces are
    gone."""

    piece: Letters | None = Field(
        default=None, description="piece that reaches the zone, any of a list, or `all pieces`"
    )
    reaches: Zone | None = None
    safe: bool = Field(
        default=False, description="reaching counts only if the piece is not attacked there"
    )
    held: bool = Field(
        default=False,
        description="reaching counts only if the piece is still there after the other player's reply",
    )
    race: bool = Field(
        default=False,
        description="both players go to the same squares, and if the second can follow the first there "
        "in the next move, that draws",
    )
    checks: int | None = Field(default=None, ge=1, le=9)
    extinct: Letters | None = Field(
        default=None,
        description="the other side has lost all pieces of this type, of all types of a list, or `all "
        "pieces`",
    )
    lost: Letters | None = Field(
        default=None,
        description="this side has lost all its own pieces of this type, of all types of a list, or `all "
        "pieces`",
    )
    left: int = Field(
        default=0,
        ge=0,
        le=99,
        description="number of pieces left with which `extinct` and `lost` already count",
    )


class Points(Model):
    """Points of the pieces on the board. They decide a game after two passes, the move count, a
    repetition or perpetual checks of both sides, which would otherwise be a draw. Stalemate is not
    decided by points."""

    pieces: dict[str, HalfPoints] = Field(
        min_length=1, description="points of each letter; others have none"
    )
    second: HalfPoints = Field(default=0, description="extra points of the second player")


class RuleWords(Model):
    engine: str = Field(
        default="kernel",
        pattern=r"^[a-z][a-z0-9_-]*$",
        description="rules engine: kernel (compiled), fairy, or one of a plugin",
    )
    start: str = Field(description="FEN of the start position")
    shuffle: Literal["none", "chess960", "as in the FEN"] = Field(
        default="none",
        description="first ranks of new games: as in `start` (`none` and `as in the FEN`), or one of the "
        "960 of Fischer random chess; with that and `as in the FEN`, king and rook castle from any files "
        "to the squares of `castling:`",
    )
    checkmate: Literal["loss", "draw", "win"] = Field(
        default="loss", description="result for the side that has no legal move and is in check"
    )
    stalemate: Literal["draw", "loss", "win", "fewer pieces win"] = Field(
        default="draw",
        description="result for the side that has no legal move and is not in check; or the side with "
        "fewer pieces on the board wins, and equal numbers draw",
    )
    pass_: Literal["never", "may"] = Field(
        default="never",
        alias="pass",
        description="`may`: a player who is not in check may pass, and two passes in a row end the game: "
        "a draw, or by `points`",
    )
    facing_kings: Literal["may stay", "must part"] = Field(
        default="may stay",
        description="`must part`: the player to move between kings that face each other on an open line "
        "must part them, or pass, which ends the game as two passes do",
    )
    points: Points | None = Field(
        default=None,
        description="points decide games that passes, the move count, repetitions or perpetual checks "
        "of both sides would draw",
    )
    repetition: Repetition = Repetition()
    no_progress: NoProgress = NoProgress()
    wins: tuple[Win, ...] = ()
    captures: Literal["may", "must"] = "may"
    checks: Literal["may", "never", "ignored"] = Field(
        default="may",
        description="`never`: a move that gives check is not legal; `ignored`: there are no checks, and a "
        "king may be left to be captured or exploded",
    )
    checked_king: Literal["may move", "only captures"] = Field(
        default="may move",
        description="`only captures`: a king in check moves only to capture the one piece that gives it",
    )
    explodes: bool = False
    bare_king: Literal["none", "draw", "loss"] = "none"
    counting: Literal["none", "makruk", "asean", "cambodian"] = Field(
        default="none", description="move counting of the makruk family, kept in the FEN"
    )
    insufficient_material: bool = Field(
        default=False, description="a position in which neither side can ever mate is a draw"
    )


def may_win_otherwise(rules: RuleWords) -> bool:
    """Return True if a game can be won without a mate and without `wins`."""
    ends = rules.stalemate != "draw" or rules.repetition.otherwise != "draw"
    return ends or rules.points is not None


def letters_of(word: Letters | None, pieces: Iterable[str]) -> tuple[str, ...]:
    """Letters that a word of a win names. pieces: those of the spec."""
    if word is None:
        return ()
    if word == ALL_PIECES:
        return tuple(pieces)
    return (word,) if isinstance(word, str) else word


def letters_in_words(word: Letters, link: str) -> str:
    """Text of letters: `K`, or with the link `or`: `K, N or R`."""
    if isinstance(word, str):
        return word
    *others, last = word
    return f"{', '.join(others)} {link} {last}" if others else last
