"""The vocabulary of a variant spec: what a YAML file may say, and its type.

A spec is data and nothing else: it is read once, checked, frozen, and compiled into the tables
that rules kernel, encoders, networks and search run on. Terms are the field's: piece movement in
Betza notation as Fairy-Stockfish reads it, squares algebraic (`e1`), directions as compass points
seen from the mover, ranks counted from the mover's own side.

Shape of the models is what YAML shows; what needs several fields at once (a piece named in a plane
exists, a zone lies on the board) is checked in `consistency.py`, so that each error can name its line.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    create_model,
)

from variant_ai.core.spec.search_settings import SEARCH_SETTINGS, Setting

SPEC_VERSION = 1
MAX_FILES = 12
MAX_RANKS = 10
MAX_SQUARES = 120
MAX_PIECE_TYPES = 24
MAX_HAND_KINDS = 16
MAX_PLIES = 30_000
"""Of the move-count rule: the clock of a FEN ends there."""
MAX_FOLD = 100
MAX_LENGTH = 11
"""Of a slide: from edge to edge of the longest board."""
MAX_COUNT = 1e6
"""Greatest number that counts are divided by in input planes."""
PLAY_OPTIONS = ("kernel", "fairy")

Zone = str | tuple[str, ...]
"""`rank 2`, `rank 6-10`, `d1-f3` (a rectangle), a zone's name, or a list of squares."""

Who = Literal["me", "them"]
MAX_LAST_MOVES = 8
Compass = Literal["N", "NE", "E", "SE", "S", "SW", "W", "NW"]


class Model(BaseModel):
    """Strict, frozen, nothing extra: a misspelt key is an error, not a silent default."""

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
    """Size of the board, how the second player sees it, and named zones (from the mover's side)."""

    files: int = Field(ge=1, le=MAX_FILES)
    ranks: int = Field(ge=1, le=MAX_RANKS)
    sides: Literal["mirror", "rotate"] = Field(
        default="mirror",
        description="how zones and planes are turned for the second player: ranks mirrored with "
        "files kept, or the board rotated by 180 degrees (shogi family)",
    )
    zones: dict[str, Zone] = Field(default_factory=dict)


class Promotes(Model):
    """When a piece turns into another one."""

    at: Zone = Field(description="squares where it may promote")
    to: tuple[str, ...] | Literal["captured pieces"] = Field(
        description="choices in the order of the policy; `captured pieces`: those the mover lost"
    )
    on: Literal["to", "from or to"] = "to"
    must: bool | Zone | Literal["where stuck"] = Field(
        default=False,
        description="promotion is forced: by every move that may promote, on squares of a smaller "
        "zone, or only on squares without a further move",
    )


class Piece(Model):
    """One kind of piece. Order of pieces in the file is the order of planes."""

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
    also: str | None = Field(default=None, description="further letter read (never written) in FEN")
    passant: bool = Field(
        default=False, description="may capture on the square a lame double step jumped over"
    )
    promotes: Promotes | None = None
    drop: Zone | bool = Field(default=True, description="where it may be dropped from the hand")
    per_file: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RANKS,
        description="at most this many of a side on one file by drops",
    )
    drop_mate: bool = Field(default=True, description="whether its drop may give mate")


class CastlingSide(Model):
    """Squares of the first player, e.g. king `e1-g1`, rook `h1-f1`; mirrored for the second."""

    king: str
    rook: str


class Hands(Model):
    """Captured pieces change sides and may be dropped."""

    order: tuple[str, ...] = Field(max_length=MAX_HAND_KINDS)
    captured: Literal["changes side"] = "changes side"
    promoted: str = Field(
        default="reverts",
        description="a captured promoted piece: `returns as P` (until then it is shown as promoted, "
        "`Q~` in a FEN), `reverts` to what it promoted from, or `keeps` its kind",
    )


class Repetition(Model):
    """What a repeated position means. The verdict is that of the moves of the cycle."""

    fold: int = Field(default=3, ge=2, le=MAX_FOLD, description="occurrence at which the game ends")
    otherwise: Literal["draw", "loss of first player", "loss of mover"] = "draw"
    perpetual_check: Literal["loss", "draw"] = "draw"
    perpetual_chase: Literal["axf", "none"] = "none"


class NoProgress(Model):
    """Move-count rule: draw after so many plies without a resetting event."""

    plies: Annotated[int, Field(ge=1, le=MAX_PLIES)] | Literal["none"] = "none"
    reset: tuple[str, ...] = Field(
        default=("captures",), description="`captures`, `drops`, or piece letters whose move resets"
    )
    checks_counted: Annotated[int, Field(ge=0, le=MAX_PLIES)] | Literal["all"] = Field(
        default="all", description="beyond this many, a side's checking plies do not count"
    )


class Win(Model):
    """A further way to win: a piece reaches a zone, or so many checks are given."""

    piece: str | None = None
    reaches: Zone | None = None
    safe: bool = Field(default=False, description="reaching counts only where it is not attacked")
    checks: int | None = Field(default=None, ge=1, le=9)
    extinct: str | None = Field(
        default=None, description="the other side has none of this piece, or of `all pieces`"
    )


class Rules(Model):
    engine: str = Field(
        default="kernel",
        pattern=r"^[a-z][a-z0-9_-]*$",
        description="what plays the rules: kernel (compiled), fairy, or the engine of a plugin",
    )
    start: str = Field(description="FEN of the start position")
    stalemate: Literal["draw", "loss", "win"] = Field(
        default="draw", description="verdict for the side without a legal move, not in check"
    )
    repetition: Repetition = Repetition()
    no_progress: NoProgress = NoProgress()
    wins: tuple[Win, ...] = ()
    captures: Literal["may", "must"] = "may"
    explodes: bool = False
    bare_king: Literal["none", "draw", "loss"] = "none"
    counting: Literal["none", "makruk"] = Field(
        default="none", description="move counting of the makruk family, kept in the FEN"
    )
    insufficient_material: bool = Field(
        default=False, description="a position in which nobody can ever mate is a draw"
    )


# --- input planes ------------------------------------------------------------------------------


class PiecePlanes(Model):
    """A binary plane per piece kind of the player."""

    pieces: Who


class CapturedCount(Model):
    by: Who
    order: tuple[str, ...]
    max: float = Field(gt=0, le=MAX_COUNT)


class CapturedPlanes(Model):
    """How many of each kind this player has captured: missing from the other's start array."""

    captured: CapturedCount


class HandCount(Model):
    of: Who
    order: tuple[str, ...]
    max: float = Field(gt=0, le=MAX_COUNT)


class HandPlanes(Model):
    hand: HandCount


class RepetitionPlanes(Model):
    """Plane k is one where the position occurred at least k times before."""

    repetitions: int = Field(ge=1, le=4)


class LastMovesPlanes(Model):
    """For each of the last moves, the newest first, the square it came from and the one it went to.

    A drop came from nowhere. In a position that was not come to by moves, as one set up from a FEN,
    nothing is known of them and the planes are empty.
    """

    last_moves: int = Field(ge=1, le=MAX_LAST_MOVES)


class PromotedPlane(Model):
    """Squares of promoted pieces of the player (spec with `returns as`)."""

    promoted: Who


class CastlingPlanes(Model):
    """A plane per castling side in the order of `castling`."""

    castling: Who


class Maximum(Model):
    max: float = Field(gt=0, le=MAX_COUNT)


class MoveNumberPlane(Model):
    move_number: Maximum


class HalfmovePlane(Model):
    halfmove: Maximum


class ChecksCount(Model):
    of: Who
    max: float = Field(gt=0, le=MAX_COUNT)


class ChecksPlane(Model):
    """Checks this player has given (three-check), divided by max."""

    checks: ChecksCount


# --- policy planes -----------------------------------------------------------------------------


class SlidePlanes(Model):
    """For each direction in order, distances 1 to n."""

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
    """For each piece in `to`, a plane per step (a compass point, or a leap)."""

    promotions: PromotionChoice


class DropPlanes(Model):
    drops: tuple[str, ...]


def _kind(value: Any) -> str | None:
    """Tag of a plane item: the word itself, or the only key of a mapping."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return next(iter(value)) if len(value) == 1 else None
    fields = type(value).model_fields if isinstance(value, BaseModel) else {}
    return next(iter(fields), None)


InputItem = Annotated[
    Annotated[PiecePlanes, Tag("pieces")]
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
    | Annotated[Literal["pass"], Tag("pass")],
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


class Search(
    create_model(  # type: ignore[misc]
        "Search",
        __base__=Model,
        **{row.name: _search_field(row) for row in SEARCH_SETTINGS.values() if row.spec},
    )
):
    """Search settings of the variant; docs/search.md has a table of all of them."""


class Drawing(Model):
    """How the board is drawn for people. Nothing that is played, stored or learnt depends on it."""

    board: Literal["chequered", "plain", "lines"] = Field(
        default="chequered",
        description="squares of two colours, of one, or lines on whose crossings the pieces stand",
    )
    river: int | None = Field(
        default=None, ge=1, description="rank above which the inner lines are interrupted"
    )
    palace: Zone | None = Field(
        default=None, description="rectangle with diagonals, on the mover's side and on the other"
    )
    marks: tuple[str, ...] = Field(
        default=(), description="crossings marked by corners, on the mover's side and on the other"
    )
    pieces: Literal["figures", "discs", "wedges"] = Field(
        default="figures",
        description="figures where the glyph has one and discs with its sign where not; always "
        "discs; or wedges that point ahead (shogi family)",
    )
    glyphs: dict[str, str | tuple[str, str]] = Field(
        default_factory=dict,
        description="sign of a piece, or of the first player's and the second's; left out, it "
        "follows from the piece's name (king, queen, rook, bishop, knight, pawn), else its letter",
    )
    inks: tuple[str, str] | None = Field(
        default=None, description="colours (`#rrggbb`) of the two players' signs on discs"
    )


class Encoders(Model):
    """Encoders by their names; those of plugins are registered by `register_encoders`."""

    input: str = Field(
        default="planes",
        description="what makes the input planes; `planes` follows the list `input:` of the spec",
    )
    labels: str = Field(
        default="moves",
        description="what numbers the actions of flat policies; `moves` has one for every move",
    )


def _named_encoder(given: Any) -> Any:
    return {"input": given} if isinstance(given, str) else given


class Training(Model):
    """The published recipe of the variant: papers 000/001 section 8 (α, the `value_weight`: section
    3.1), thesis section 4.7. The defaults are those of the thesis."""

    lr_max: float = Field(default=0.175, gt=0, le=1000)
    lr_min: float = Field(default=1e-5, gt=0)
    momentum: tuple[float, float] = (0.8, 0.95)
    batch: int = Field(default=512, ge=1, le=1_000_000)
    epochs: int = Field(default=7, ge=1, le=1_000_000)
    value_weight: float = Field(default=0.01, ge=0, le=1)
    weight_decay: float = Field(default=1e-4, ge=0, le=1)


class VariantSpec(Model):
    """A whole variant. `core.spec.load_spec` reads, checks and returns one."""

    spec: Literal[1]
    variant: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    fairy: str | None = Field(
        default=None, description="Fairy-Stockfish's name of the variant: the judge of its rules"
    )
    names: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="what sites of games call it where that is not its own name: site -> names, the "
        "first that of its files",
    )
    players: tuple[Literal["White", "Red"], Literal["Black"]] = Field(
        default=("White", "Black"), description="the first and the second, as headers of games say"
    )
    board: Board
    pieces: dict[str, Piece]
    castling: dict[str, CastlingSide] = Field(default_factory=dict)
    hands: Hands | None = None
    rules: Rules
    input: tuple[InputItem, ...]
    policy: tuple[PolicyItem, ...] | Literal["derived"] = "derived"
    encoder: Annotated[
        Encoders, BeforeValidator(_named_encoder, json_schema_input_type=Encoders | str)
    ] = Field(
        default=Encoders(),
        description="encoders by name; a name alone is that of the input planes",
    )
    symmetry: tuple[Literal["files"], ...] = ()
    search: Search = Search()
    settings: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")], Search] = Field(
        default_factory=dict,
        description="named sets of search settings, complete in themselves, for whoever asks for "
        "them: `paper` has those of the publication",
    )
    drawing: Drawing = Drawing()
    training: Training = Training()
    protocols: tuple[Literal["uci", "ucci", "cyclone"], ...] = ("uci",)
