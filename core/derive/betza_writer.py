"""Movements as a Betza word: the inverse of `parse_betza`.

Directions are found by reading every modifier back with the parser, so a word that is written means
exactly the movements it was written for.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable

from variant_ai.core.errors import SpecError
from variant_ai.core.spec.betza import LAME, LEAPS, Movement, Step, parse_betza

_MODIFIERS = ("", *"fblrsv", *"fs bs fl fr bl br lf rf lb rb fh bh lh rh".split())
_ATOM_OF = {tuple(sorted(leap)): atom for atom, leap in LEAPS.items()}


def write_betza(movements: Iterable[Movement]) -> str:
    """Return a word for movements, in the order of `LEAPS`.

    Raises SpecError if the notation has no word for one of them.
    """
    styles: dict[Movement, set[Step]] = defaultdict(set)
    for move in movements:
        styles[_style(move)].add((move.dx, move.dy))
    words = []
    for style, steps in sorted(styles.items(), key=lambda item: _order(item[0])):
        atoms: dict[str, set[Step]] = defaultdict(set)
        for dx, dy in steps:
            atoms[_atom(dx, dy)].add((dx, dy))
        parts = {atom: _directed(style, atom, atoms[atom]) for atom in LEAPS if atom in atoms}
        words.append(_joined(style, parts))
    return "".join(words)


def _style(move: Movement) -> Movement:
    """The movement without its direction."""
    return move._replace(dx=0, dy=0)


def _order(style: Movement) -> tuple[bool, bool, int, bool, str]:
    return not style.quiet, style.capture, style.reach, style.lame, style.hop


def _atom(dx: int, dy: int) -> str:
    short, long = sorted((abs(dx), abs(dy)))
    if (short, long) not in _ATOM_OF:
        raise SpecError(f"a leap of {short}:{long} has no letter in Betza notation")
    return _ATOM_OF[short, long]


def _directed(style: Movement, atom: str, steps: set[Step]) -> str:
    """Write an atom in some directions: with one modifier, or several atoms if needed."""
    left, words = set(steps), []
    known = _meanings(style, atom)
    while left:
        fitting = [(len(found), word) for word, found in known.items() if found <= left]
        if not fitting:
            raise SpecError(f"Betza notation has no word for {atom} in the directions {left}")
        most = max(size for size, _ in fitting)
        word = min((w for size, w in fitting if size == most), key=len)
        words.append(word)
        left -= known[word]
    return "".join(words)


@functools.cache
def _meanings(style: Movement, atom: str) -> dict[str, frozenset[Step]]:
    """Directions of an atom in a style by the word for them."""
    found: dict[str, frozenset[Step]] = {}
    for modifier in _MODIFIERS:
        word = _flags(style) + modifier + atom + _suffix(style, atom)
        try:
            moves = parse_betza(word)
        except SpecError:
            continue
        if set(map(_style, moves)) == {style}:
            found.setdefault(word, frozenset((m.dx, m.dy) for m in moves))
    return found


def _flags(style: Movement) -> str:
    mode = "" if style.quiet and style.capture else "m" if style.quiet else "c"
    return mode + {"": "", "over": "p", "behind": "g"}[style.hop] + "n" * style.lame


def _suffix(style: Movement, atom: str) -> str:
    if style.lame or style.reach == 1:
        return ""
    return atom if style.reach == 0 else str(style.reach)


def _joined(style: Movement, parts: dict[str, str]) -> str:
    """Join the atoms of a style; K, R, B and Q where they say the same."""
    flags, suffix = _flags(style), ("" if style.reach in (0, 1) else str(style.reach))
    whole = {atom: parts.get(atom) == flags + atom + _suffix(style, atom) for atom in "WF"}
    slides = style.reach != 1 and not style.lame
    if all(whole.values()) and not style.lame:
        parts = {**parts, "W": flags + ("Q" if slides else "K") + suffix, "F": ""}
    elif slides:
        for atom, letter in (("W", "R"), ("F", "B")):
            if atom in parts:
                parts[atom] = parts[atom].replace(atom + atom, letter)
    return "".join(parts.values())


def can_be_lame(dx: int, dy: int) -> bool:
    """Return True if a leap of this displacement may be blocked on its way."""
    return _ATOM_OF.get(tuple(sorted((abs(dx), abs(dy)))), "-") in LAME
