"""Names of the variants that Fairy-Stockfish has, as pyffish 0.0.90 lists them.

A spec is read without importing pyffish, which takes half a second. A test holds the list to
`pyffish.variants()`.
"""

from __future__ import annotations

import difflib

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


def near(name: str, known: tuple[str, ...] = FAIRY_NAMES) -> str:
    """Names like a given one, as a sentence."""
    found = difflib.get_close_matches(name.lower(), known, n=5, cutoff=0.5)
    return f"near are {', '.join(found)}" if found else "no name is near"


def unknown_variant(name: str, variant: str) -> str:
    """Message for a spec of `variant` whose `fairy:` names none of them."""
    return (
        f"Fairy-Stockfish has no variant {name!r} ({near(name)}); accepted: one of its "
        f"{len(FAIRY_NAMES)} names, or no `fairy:` where it has none for {variant!r}, which then has "
        "no judge"
    )
