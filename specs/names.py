"""Names of variants as plain literals, so that an engine can list them without reading a spec.

Tests compare both lists with their sources.
"""

from __future__ import annotations

_UCI = ("uci",)
SHIPPED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "antichess": ("antichess", "antichess", _UCI),
    "atomic": ("atomic", "atomic", _UCI),
    "capablanca": ("capablanca", "capablanca", _UCI),
    "chess": ("chess", "chess", _UCI),
    "chess960": ("chess960", "fischerandom", _UCI),
    "crazyhouse": ("crazyhouse", "crazyhouse", _UCI),
    "crazyhouse960": ("crazyhouse960", "crazyhouse", _UCI),
    "dobutsu": ("dobutsu", "dobutsu", _UCI),
    "dobutsu-royal": ("dobutsu-royal", "", _UCI),
    "grand": ("grand", "grand", _UCI),
    "horde": ("horde", "horde", _UCI),
    "janggi": ("janggi", "janggi", _UCI),
    "kingofthehill": ("kingofthehill", "kingofthehill", _UCI),
    "makruk": ("makruk", "makruk", _UCI),
    "minishogi": ("minishogi", "minishogi", ("uci", "usi")),
    "minixiangqi": ("minixiangqi", "minixiangqi", _UCI),
    "racingkings": ("racingkings", "racingkings", _UCI),
    "shogi": ("shogi", "shogi", ("usi", "uci")),
    "three-check": ("three-check", "3check", _UCI),
    "xiangqi": ("xiangqi", "xiangqi", ("uci", "ucci", "cyclone")),
}
"""`variant`, `fairy` and `protocols` of the specs in this folder, by file name."""

FAIRY_NAMES = tuple(
    """
    3check 5check ai-wok almost amazon amazons antichess armageddon asean ataxx atomar atomic
    berolina breakthrough bughouse cambodian capablanca capahouse caparandom centaur chancellor
    chaturanga checkshogi chess chessgi chigorin clobber clobber10 codrus coregal courier
    crazyhouse dobutsu dragon duck embassy euroshogi extinction fairy fischerandom flipello
    flipello10 flipersi fox-and-hounds gardner georgian giveaway gorogoro gothic grand grasshopper
    gustav3 hoppelpoppel horde isolation isolation7x7 janggi janggicasual janggimodern
    janggitraditional janus jesonmor joust judkins karouk kinglet kingofthehill knightmate koedem
    kyotoshogi legan loop losalamos losers makpong makruk manchu micro mini minishogi minixiangqi
    misere modern newzealand nightrider nocastle nocheckatomic normal okisakishogi omicron opulent
    paradigm pawnback pawnsideways perfect petrified placement pocketknight raazuvaa racingkings
    seirawan shako shatar shatranj shogi shoshogi shouse sittuyin snailtrail sortofalmost spartan
    suicide supply tencubed threekings torishogi torpedo troitzky wolf xiangqi yarishogi
    """.split()
)
"""Variants of Fairy-Stockfish, as pyffish 0.0.90 lists them; importing it takes half a second."""
