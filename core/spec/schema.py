"""Vocabulary of a variant spec: the keys of its YAML file and their types.

A spec is data: it is read once, checked, frozen, and compiled into the tables that the rules
kernel, encoders, networks and search use. Piece movement is in Betza notation as Fairy-Stockfish
reads it, squares are algebraic (`e1`), directions are compass points seen from the mover, and
ranks are counted from the mover's own side.

The models describe one field each. Checks that need several fields (a piece named in a plane
exists, a zone is on the board) are in `consistency.py` and the modules it uses.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic
from pydantic import BaseModel, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from variant_ai.core.factories import DIALECTS
from variant_ai.core.renamed import moved_names
from variant_ai.core.spec.declared_setting import Setting
from variant_ai.core.spec.rule_words import (
    MAX_LAST_MOVES,
    MAX_LENGTH,
    Board,
    CastlingSide,
    Compass,
    Divisor,
    Hands,
    Model,
    Piece,
    RuleWords,
    Who,
    Zone,
)
from variant_ai.core.spec.search_settings import SEARCH_SETTINGS

_NAMED = {"enum": list(DIALECTS.builtin)}
Protocol = Annotated[str, WithJsonSchema({"anyOf": [_NAMED, {"type": "string"}]})]
"""One of `core.factories.DIALECTS`, which plugins add to."""

__getattr__ = moved_names(
    __name__,
    dict.fromkeys(
        "MAX_FILES MAX_RANKS MAX_PIECE_TYPES MAX_HAND_KINDS MAX_PLIES Promotes Repetition NoProgress Win".split(),
        "variant_ai.core.spec.rule_words",
    ),
)


# --- input planes ------------------------------------------------------------------------------


class PiecePlanes(Model):
    """A binary plane per piece type of the player."""

    pieces: Who


class AttackPlanes(Model):
    """A binary plane per piece type: the squares on which the player's pieces of that type could
    capture, or defend a piece of their own. The kernel's rules compute them."""

    attacks: Who


class CapturedCount(Model):
    by: Who
    order: tuple[str, ...]
    max: Divisor


class CapturedPlanes(Model):
    """Number of pieces of each type this player has captured: those missing from the other's start
    position."""

    captured: CapturedCount


class HandCount(Model):
    of: Who
    order: tuple[str, ...]
    max: Divisor


class HandPlanes(Model):
    hand: HandCount


class RepetitionPlanes(Model):
    """Plane k is 1 if the position occurred at least k times before."""

    repetitions: int = Field(ge=1, le=4)


class LastMovesPlanes(Model):
    """Origin and target square of each of the last moves, newest first.

    A drop has no origin. After a FEN the moves before it are unknown and their planes are empty.
    """

    last_moves: int = Field(ge=1, le=MAX_LAST_MOVES)


class PromotedPlane(Model):
    """Squares of the player's promoted pieces (for `hands: {promoted: returns as ...}`)."""

    promoted: Who


class CastlingPlanes(Model):
    """A plane per castling side, in the order of `castling`."""

    castling: Who


class Maximum(Model):
    max: Divisor


class MoveNumberPlane(Model):
    move_number: Maximum


class HalfmovePlane(Model):
    halfmove: Maximum


class ChecksCount(Model):
    of: Who
    max: Divisor


class ChecksPlane(Model):
    """Checks this player has given (three-check), divided by max."""

    checks: ChecksCount


# --- policy planes -----------------------------------------------------------------------------


class SlidePlanes(Model):
    """Distances 1 to n of each direction, in order."""

    slides: dict[Compass, Annotated[int, Field(ge=1, le=MAX_LENGTH)]]


class LeapPlanes(Model):
    """Displacements like `2N1E`: two steps north, one east."""

    leaps: tuple[str, ...]


class PromotionChoice(Model):
    to: tuple[str, ...] = Field(default=(), description="empty with `as: moves`: every choice")
    steps: tuple[str, ...] = ()
    as_: Literal["moves"] | None = Field(
        default=None, alias="as", description="a promotion twin of every displacement"
    )


class PromotionPlanes(Model):
    """A plane per step (a compass point, or a leap) for each piece in `to`."""

    promotions: PromotionChoice


class DropPlanes(Model):
    drops: tuple[str, ...]


def _kind(value: Any) -> str | None:
    """Return the tag of a plane item: the word itself, or the only key of a mapping."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return next(iter(value)) if len(value) == 1 else None
    fields = type(value).model_fields if isinstance(value, BaseModel) else {}
    return next(iter(fields), None)


InputItem = Annotated[
    Annotated[PiecePlanes, Tag("pieces")]
    | Annotated[AttackPlanes, Tag("attacks")]
    | Annotated[CapturedPlanes, Tag("captured")]
    | Annotated[HandPlanes, Tag("hand")]
    | Annotated[RepetitionPlanes, Tag("repetitions")]
    | Annotated[LastMovesPlanes, Tag("last_moves")]
    | Annotated[PromotedPlane, Tag("promoted")]
    | Annotated[CastlingPlanes, Tag("castling")]
    | Annotated[MoveNumberPlane, Tag("move_number")]
    | Annotated[HalfmovePlane, Tag("halfmove")]
    | Annotated[ChecksPlane, Tag("checks")]
    | Annotated[Literal["colour"], Tag("colour")]
    | Annotated[Literal["en_passant"], Tag("en_passant")],
    Discriminator(_kind),
]
PolicyItem = Annotated[
    Annotated[SlidePlanes, Tag("slides")]
    | Annotated[LeapPlanes, Tag("leaps")]
    | Annotated[PromotionPlanes, Tag("promotions")]
    | Annotated[DropPlanes, Tag("drops")]
    | Annotated[Literal["pass"], Tag("pass")]
    | Annotated[Literal["derived"], Tag("derived")],
    Discriminator(_kind),
]


def _search_field(row: Setting) -> Any:
    """Type and default of a setting of the search, as pydantic reads them."""
    kind: Any = bool
    if row.kind == "choice":
        kind = Literal[row.choices]
    elif row.kind == "name":
        kind = str
    elif row.kind != "bool":
        number = int if row.kind == "int" else float
        kind = Annotated[number, Field(ge=row.low, le=row.high)]
        if row.choices:
            kind = kind | Literal[row.choices]
    return kind, Field(default=row.default, description=row.meaning)


GREATEST_GAIN = 5
"""Of a captured piece, in units of atanh(value)."""


class SearchWords(
    pydantic.create_model(  # type: ignore[misc]
        "SearchWords",
        __base__=Model,
        **{row.name: _search_field(row) for row in SEARCH_SETTINGS.values() if row.spec},
    )
):
    """Search settings of the variant; docs/search.md has a table of them, and a
    section about `piece_gains`."""

    piece_gains: dict[str, Annotated[float, Field(ge=0, le=GREATEST_GAIN)]] = Field(
        default_factory=dict,
        description="piece -> what its capture adds to the value of a leaf, in units of atanh(value), for "
        "look_for_material; benchmarks/piece_gains.py fits them",
    )


class Drawing(Model):
    """Drawing of the board; play, storage and training do not depend on it."""

    board: Literal["chequered", "plain", "lines"] = Field(
        default="chequered",
        description="squares of two colours or of one, or lines with the pieces on their crossings",
    )
    river: int | None = Field(
        default=None, ge=1, description="rank above which inner lines are interrupted"
    )
    palace: Zone | None = Field(
        default=None, description="rectangle with diagonals, on both players' sides"
    )
    marks: tuple[str, ...] = Field(
        default=(), description="crossings marked by corners, on both players' sides"
    )
    pieces: Literal["figures", "discs", "wedges"] = Field(
        default="figures",
        description="figures if the glyph has one, else discs with its sign; always discs; or wedges "
        "that point ahead (shogi family)",
    )
    glyphs: dict[str, str | tuple[str, str]] = Field(
        default_factory=dict,
        description="sign of a piece, or of the first player's and the second's; by default it "
        "follows from the piece's name (king, queen, rook, bishop, knight, pawn), or is its letter",
    )
    figures: dict[str, str] = Field(
        default_factory=dict,
        description="piece -> own figure, an SVG path in a box of 100 by 100",
    )
    squares: dict[str, str] = Field(
        default_factory=dict,
        description="zone -> colour (`#rrggbb`) of its squares, for both players",
    )
    inks: tuple[str, str] | None = Field(
        default=None, description="colours (`#rrggbb`) of the two players' signs on discs"
    )


SPEC_PLANES = "planes"
"""Name of the encoder of the list `input:`."""


class Encoders(Model):
    """Encoders by their names; those of plugins are registered by `register_encoders`."""

    input: str = Field(
        default=SPEC_PLANES,
        description="what makes the input planes; `planes` follows the list `input:` of the spec",
    )
    labels: str = Field(
        default="moves",
        description="what numbers the actions of flat policies; `moves` has one for every move",
    )


def _named_encoder(given: Any) -> Any:
    return {"input": given} if isinstance(given, str) else given


def _not_true(given: Any) -> Any:
    """Reject true, which equals 1."""
    if isinstance(given, bool):
        raise PydanticCustomError("literal_error", "not true", {"expected": "1"})
    return given


class Training(Model):
    """Published training settings of the variant: [CrazyAra-preprint] and [CrazyAra] section 8
    (`value_weight` is α of section 3.1), [Xiangqi-thesis] section 4.7. The defaults are those of
    the thesis."""

    lr_max: float = Field(default=0.175, gt=0, le=1000)
    lr_min: float = Field(default=1e-5, gt=0)
    momentum: tuple[float, float] = (0.8, 0.95)
    batch: int = Field(default=512, ge=1, le=1_000_000)
    epochs: int = Field(default=7, ge=1, le=1_000_000)
    value_weight: float = Field(default=0.01, ge=0, le=1)
    weight_decay: float = Field(default=1e-4, ge=0, le=1)


class VariantSpec(Model):
    """A whole variant; `variant_ai.core.spec.load_spec` reads, checks and returns one."""

    spec: Annotated[Literal[1], BeforeValidator(_not_true)]
    variant: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    fairy: str | None = Field(
        default=None,
        description="Fairy-Stockfish's name of the variant, with which its rules are compared",
    )
    fairy_ini: str | None = Field(
        default=None,
        description="file in the format of Fairy-Stockfish's variants.ini that has the variant "
        "`fairy`, relative to the spec; a spec that was read holds the text of the file",
    )
    names: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="names of the variant on game sites, if they differ: site -> names, the first is "
        "that of its files",
    )
    players: tuple[Literal["White", "Red"], Literal["Black"]] = Field(
        default=("White", "Black"),
        description="first and second player, as in the headers of games",
    )
    board: Board
    pieces: dict[str, Piece]
    castling: dict[str, CastlingSide] = Field(default_factory=dict)
    hands: Hands | None = None
    rules: RuleWords
    input: tuple[InputItem, ...]
    policy: tuple[PolicyItem, ...] | Literal["derived"] = "derived"
    encoder: Annotated[
        Encoders, BeforeValidator(_named_encoder, json_schema_input_type=Encoders | str)
    ] = Field(
        default=Encoders(),
        description="encoders by name; a name alone is that of the input planes",
    )
    symmetry: tuple[Literal["files"], ...] = ()
    search: SearchWords = SearchWords()
    settings: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")], SearchWords] = Field(
        default_factory=dict,
        description="complete sets of search settings by name: `paper` has those of the publication",
    )
    drawing: Drawing = Drawing()
    training: Training = Training()
    protocols: tuple[Protocol, ...] = Field(default=("uci",), min_length=1)

    @property
    def hand_order(self) -> tuple[str, ...]:
        """Letters of the pieces that may be in hand; none without `hands:`."""
        return self.hands.order if self.hands else ()
