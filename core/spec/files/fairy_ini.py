"""Files in the format of Fairy-Stockfish's `variants.ini`: sections of keys and values.

    [mychess:chess]           a variant, and the one that it is like
    customPiece1 = a:NA       its differences

Fairy-Stockfish ignores unknown names, keys and values without an error, so they are checked here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from variant_ai.core.errors import SpecError, unknown
from variant_ai.core.spec.catalogue import similar_names
from variant_ai.specs.names import FAIRY_NAMES

MAX_SIZE = 1_000_000
"""Greatest number of characters of a file."""
_SECTION = re.compile(r"\[\s*([^\s:\[\]]+)\s*(?::\s*([^\s:\[\]]+)\s*)?\]")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*\Z")
_PIECES = (
    "pawn knight bishop rook queen fers alfil fersAlfil silver aiwok bers archbishop chancellor "
    "amazon knibis biskni kniroo rookni shogiPawn lance shogiKnight gold dragonHorse clobber "
    "breakthrough immobile cannon janggiCannon soldier horse elephant janggiElephant banner wazir "
    "commoner centaur king "
) + " ".join(f"customPiece{n}" for n in range(1, 26))
_RULES = """
    maxRank maxFile pieceValueMg pieceValueEg promotionRank doubleStepRank doubleStepRankMin whiteFlag
    blackFlag castlingRookPiece dropOnTop pawnTypes variantTemplate pieceToCharTable pocketSize
    chess960 twoBoards startFen promotionRegion promotionPawnTypes promotionPieceTypes
    sittuyinPromotion promotionLimit promotedPieceType piecePromotionOnCapture
    mandatoryPawnPromotion mandatoryPiecePromotion pieceDemotion blastOnCapture blastImmuneTypes
    mutuallyImmuneTypes petrifyOnCapture petrifyOnCaptureTypes petrifyBlastPieces doubleStep
    doubleStepRegion tripleStepRegion enPassantRegion enPassantTypes castling
    castlingDroppedPiece castlingKingsideFile castlingQueensideFile castlingRank castlingKingFile
    castlingKingPiece castlingRookKingsideFile castlingRookQueensideFile castlingRookPieces
    oppositeCastling checking dropChecks mustCapture mustDrop mustDropType pieceDrops dropLoop
    capturesToHand firstRankPawnDrops promotionZonePawnDrops enclosingDrop enclosingDropStart
    whiteDropRegion blackDropRegion sittuyinRookDrop dropOppositeColoredBishop dropPromoted
    dropNoDoubled dropNoDoubledCount immobilityIllegal gating arrowGating duckGating staticGating
    staticGatingRegion pastGating wallingRule wallingRegion seirawanGating cambodianMoves
    diagonalLines pass passOnStalemate makpongRule flyingGeneral soldierPromotionRank
    flipEnclosedPieces nMoveRuleTypes nMoveRule nFoldRule nFoldValue nFoldValueAbsolute
    perpetualCheckIllegal moveRepetitionIllegal chasingRule stalemateValue stalematePieceCount
    checkmateValue shogiPawnDropMateIllegal shatarMateRule bikjangRule extinctionValue
    extinctionClaim extinctionPseudoRoyal dupleCheck extinctionPieceTypes extinctionPieceCount
    extinctionOpponentPieceCount flagPiece flagRegion flagPieceCount flagPieceBlockedWin flagMove
    flagPieceSafe checkCounting connectN connectHorizontal connectVertical connectDiagonal
    connectRegion1White connectRegion2White connectRegion1Black connectRegion2Black connectNxN
    materialCounting countingRule castlingWins
"""
_OF_COLOURS = (
    "promotionRegion promotionPawnTypes promotionPieceTypes doubleStepRegion tripleStepRegion "
    "enPassantTypes castlingKingPiece castlingRookPieces wallingRegion nMoveRuleTypes flagPiece "
    "flagRegion"
)
PIECES = frozenset(_PIECES.split())
KEYS = frozenset(
    [
        *PIECES,
        *_RULES.split(),
        *(f"{key}{colour}" for key in _OF_COLOURS.split() for colour in ("White", "Black")),
        *(
            f"mobilityRegion{colour}{piece[0].upper()}{piece[1:]}"
            for piece in PIECES
            for colour in ("White", "Black")
        ),
    ]
)
"""Every key that Fairy-Stockfish reads."""
_SWITCHES = """
    twoBoards sittuyinPromotion piecePromotionOnCapture mandatoryPawnPromotion mandatoryPiecePromotion
    pieceDemotion blastOnCapture petrifyOnCapture doubleStep castling oppositeCastling checking dropChecks
    mustCapture mustDrop pieceDrops dropLoop capturesToHand firstRankPawnDrops promotionZonePawnDrops
    sittuyinRookDrop dropOppositeColoredBishop dropPromoted immobilityIllegal gating seirawanGating
    cambodianMoves pass passOnStalemate makpongRule flyingGeneral nFoldValueAbsolute
    perpetualCheckIllegal moveRepetitionIllegal stalematePieceCount shogiPawnDropMateIllegal
    shatarMateRule bikjangRule extinctionClaim extinctionPseudoRoyal dupleCheck flagPieceBlockedWin
    flagMove flagPieceSafe checkCounting connectHorizontal connectVertical connectDiagonal
"""
_VALUES = {
    **dict.fromkeys(_SWITCHES.split(), ("true", "false")),
    **dict.fromkeys(
        ("stalemateValue", "checkmateValue", "extinctionValue", "nFoldValue"),
        ("win", "loss", "draw", "none"),
    ),
    "chasingRule": ("axf", "none"),
}
"""All values of these keys. Fairy-Stockfish takes any other for `false` or `none`."""
_COUNTS = frozenset(
    "nMoveRule nFoldRule extinctionPieceCount extinctionOpponentPieceCount connectN".split()
)
"""Keys whose values are whole numbers."""


@dataclass
class IniVariant:
    """One section."""

    name: str
    parent: str
    """Name of the variant that it is like; empty if it has none."""
    settings: dict[str, str] = field(default_factory=dict)


def read_ini(text: str, where: str = "<ini>") -> dict[str, IniVariant]:
    """Return the sections of a file by name, in its order.

    Raises SpecError with the line of an unknown key or parent, a value that Fairy-Stockfish does not
    know for its key, a name that is given twice or that Fairy-Stockfish has built in, and of a line that
    is neither a section, a setting nor a comment.
    """
    if len(text) > MAX_SIZE:
        raise SpecError(f"{len(text)} characters; accepted: at most {MAX_SIZE}", where)
    found: dict[str, IniVariant] = {}
    section: IniVariant | None = None
    for number, line in enumerate(text.splitlines(), 1):
        at = f"{where}:{number}"
        words = line.split("#", 1)[0].strip()
        if not words or words.startswith(";"):
            continue
        if words.startswith("["):
            section = _section(words, at, found)
            found[section.name] = section
            continue
        key, equals, value = (part.strip() for part in words.partition("="))
        if section is None or not equals:
            raise SpecError(
                f"{words[:40]!r}; accepted: `[name:parent]`, then `key = value`, or a comment with #",
                at,
            )
        if key not in KEYS:
            similar = similar_names(key, sorted(KEYS))
            raise SpecError(f"Fairy-Stockfish has no key {key!r} for its variants ({similar})", at)
        if key in section.settings:
            raise SpecError(f"{key!r} is given twice in [{section.name}]", at)
        if not value.isascii():
            raise SpecError(f"{value[:40]!r}; accepted: letters of ASCII", at)
        _require_value(key, value, at)
        section.settings[key] = value
    return found


def _require_value(key: str, value: str, at: str) -> None:
    """Raise SpecError for a value that Fairy-Stockfish would ignore, as far as the key is known here."""
    accepted = _VALUES.get(key)
    if accepted is not None and value not in accepted:
        raise SpecError(f"{key} = {value[:40]!r}; accepted: {', '.join(accepted)}", at)
    if key in _COUNTS and not value.isdigit():
        raise SpecError(f"{key} = {value[:40]!r}; accepted: a whole number", at)


def _section(words: str, at: str, found: Collection[str]) -> IniVariant:
    match = _SECTION.fullmatch(words)
    if match is None or not all(_NAME.match(name) for name in match.groups() if name):
        raise SpecError(f"{words[:40]!r} is not a section; accepted: [name] or [name:parent]", at)
    name, parent = match[1], match[2] or ""
    if name in found:
        raise SpecError(f"the variant {name!r} is given twice", at)
    if name in FAIRY_NAMES:
        raise SpecError(f"Fairy-Stockfish has a variant {name!r}; accepted: another name", at)
    if parent and parent not in found and parent not in FAIRY_NAMES:
        raise SpecError(unknown("parent", parent, sorted({*found, *FAIRY_NAMES})), at)
    return IniVariant(name, parent)


def own_names(text: str, name: str, prefix: str) -> tuple[str, str]:
    """Return a variant and its ancestors as a file in which they have names of their own.

    Configurations are loaded into a process and never leave it, so equal names of two files must
    not meet. Returns the new name of the variant, and the text. prefix: of new names. Raises
    SpecError.
    """
    variants = read_ini(text)
    if name not in variants:
        raise SpecError(unknown("variant of the ini file", name, list(variants)))
    chain = [variants[name]]
    while chain[-1].parent in variants:
        chain.append(variants[chain[-1].parent])
    digest = hashlib.blake2b(repr(chain).encode(), digest_size=8).hexdigest()
    names = {v.name: f"{prefix}{digest}-{number}" for number, v in enumerate(chain)}
    lines = []
    for variant in reversed(chain):
        parent = names.get(variant.parent, variant.parent)
        lines.append(f"[{names[variant.name]}{f':{parent}' if parent else ''}]")
        lines += [f"{key} = {value}" for key, value in variant.settings.items()]
    return names[name], "\n".join(lines) + "\n"
