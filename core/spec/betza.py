"""Betza notation: the movement of a piece as a word, as Fairy-Stockfish reads it.

A word is a sequence of atoms with modifiers before them: `mRcpR` moves as a rook (`mR`) and
captures as a rook over one piece (`cpR`). Tokens that Fairy-Stockfish does not support, or reads
differently from the notation, are rejected: such a movement could not be checked against it.

    leapers    W 0:1  F 1:1  D 0:2  N 1:2  A 2:2  H 0:3  C 1:3  Z 2:3  G 3:3
    compounds  K = WF   R = WW   B = FF   Q = RB
    riders     WW W0 unlimited, W3 at most three steps; likewise F, N, K (R3, B3, Q3 also)
    modes      m only without capture, c only with capture
    hoppers    p jumps one piece, any distance before and after it; g lands just behind it
               (of W and F riders; limited ones with p only. Fairy-Stockfish reads `pB2` in another
               way; it plays its own variant and never reads the words of a spec)
    lame       n the leg must be empty (N, A, D, and Z with two legs: janggi's elephant)
    directions f b l r s v, in pairs fl, fs, ..., and with h (half: all four) where eight exist

Directions are the mover's: `f` is away from the own side. For the second player everything is
rotated by 180 degrees, left and right too.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from variant_ai.core.errors import SpecError
from variant_ai.core.spec.rule_words import Board, Piece

Step = tuple[int, int]
Hop = Literal["", "over", "behind"]

LEAPS: dict[str, Step] = {
    "W": (0, 1),
    "F": (1, 1),
    "D": (0, 2),
    "N": (1, 2),
    "A": (2, 2),
    "H": (0, 3),
    "C": (1, 3),
    "Z": (2, 3),
    "G": (3, 3),
}
COMPOUNDS = {"K": "WF", "R": "W", "B": "F", "Q": "WF"}
RIDERS = "RBQ"
"""Compounds that slide without being doubled."""
MAY_RIDE = "WFNKRBQ"
LAME = "NADZ"
DIRECTIONS = "fblrsvh"
VERTICAL, HORIZONTAL = "fbv", "lrs"
_MODIFIER = re.compile(r"[mcpgn]|([fblrsvh])\1|[fbv][lrsh]|[lrs][fbvh]|[fblrsvh]")
"""A flag, or a group of direction letters."""

UNSUPPORTED = {
    "i": "use `from:` for the moves in a zone",
    "O": "use `castling:`",
    "e": "use `passant: true` for en passant",
    "j": "Fairy-Stockfish has no such modifier",
    "o": "Fairy-Stockfish has no such modifier",
    "z": "Fairy-Stockfish has no such modifier",
}
"""Letters of other dialects, and the words to use instead."""


class Movement(NamedTuple):
    """One direction of one atom, in the mover's view (dy > 0 is forward)."""

    dx: int
    dy: int
    reach: int
    """Maximum number of steps; 0 is unlimited."""
    quiet: bool
    """May end on an empty square."""
    capture: bool
    """May end on an enemy piece."""
    lame: bool = False
    """The squares of `legs` must be empty."""
    hop: Hop = ""
    """`over`: must jump exactly one piece; `behind`: and must land on the next square."""

    @property
    def is_double_step(self) -> bool:
        """True for a lame, quiet step of two squares straight ahead."""
        return self.lame and self.quiet and (self.dx, self.dy) == (0, 2)

    @property
    def legs(self) -> tuple[Step, ...]:
        """Displacements of the squares that must be empty for a lame leap, straight ones first."""
        if not self.lame:
            return ()
        legs: list[Step] = []
        x = y = 0
        while True:
            left_x, left_y = self.dx - x, self.dy - y
            x += _sign(left_x) if abs(left_x) >= abs(left_y) else 0
            y += _sign(left_y) if abs(left_y) >= abs(left_x) else 0
            if (x, y) == (self.dx, self.dy):
                return tuple(legs)
            legs.append((x, y))


@functools.cache
def parse_betza(text: str) -> tuple[Movement, ...]:
    """Parse a Betza word into movements, in the order written, directions clockwise from north.

    Raises SpecError for an unknown or unsupported token.
    """
    if not text:
        raise _error(text, 0, "the word is empty; it needs at least one atom such as K")
    return tuple(movement for atom in _atoms(text) for movement in atom)


def is_asymmetric(word: str) -> bool:
    """Return True if a word moves differently to the left and to the right."""
    moves = set(parse_betza(word))
    return moves != {move._replace(dx=-move.dx) for move in moves}


def displacements(piece: Piece, board: Board) -> set[Step]:
    """Every (dx, dy) by which a piece can move somewhere on the board; see `word_displacements`."""
    return {step for word in piece.words for step in word_displacements(word, board)}


def word_displacements(word: str, board: Board) -> set[Step]:
    """Every (dx, dy) of a Betza word on the board, as the mover sees it; dy > 0 is forward.

    Zones and castling are not considered. If the second player's board is mirrored, not rotated,
    left and right of an asymmetric piece are exchanged in the view, so both are listed.
    """
    found: set[Step] = set()
    for move in parse_betza(word):
        for n in range(1, (move.reach or max(board.files, board.ranks)) + 1):
            dx, dy = n * move.dx, n * move.dy
            if abs(dx) >= board.files or abs(dy) >= board.ranks:
                break
            found.add((dx, dy))
            if board.sides == "mirror":
                found.add((-dx, dy))
    return found


def _error(text: str, position: int, message: str) -> SpecError:
    """Error for an unsupported token of a word, with the token's position."""
    return SpecError(f"Betza {text!r}, character {position + 1}: {message}")


def _sign(n: int) -> int:
    return (n > 0) - (n < 0)


def _atoms(text: str) -> Iterator[tuple[Movement, ...]]:
    """Split a word into atoms with their modifiers, and parse each."""
    at = 0
    while at < len(text):
        start = at
        while at < len(text) and text[at] in "mcpgn" + DIRECTIONS:
            at += 1
        modifiers, letter = text[start:at], text[at : at + 1]
        if not letter:
            raise _error(text, start, f"modifiers {modifiers!r} have no atom after them")
        if letter not in LEAPS and letter not in COMPOUNDS:
            known = UNSUPPORTED.get(
                letter,
                "atoms are "
                + " ".join([*LEAPS, *COMPOUNDS])
                + ", modifiers before them m c n p g "
                + " ".join(DIRECTIONS),
            )
            raise _error(text, at, f"unknown token {letter!r}; {known}")
        suffix = text[at + 1 : at + 2]
        doubled = suffix == letter
        rides = doubled or suffix in tuple("0123456789")
        if rides and (letter not in MAY_RIDE or (doubled and letter in RIDERS)):
            raise _error(
                text, at, f"{letter + suffix!r} is not supported; riders are made of {MAY_RIDE}"
            )
        reach = 0 if doubled else int(suffix) if rides else 0 if letter in RIDERS else 1
        end = at + 1 + rides
        yield _read_atom(text, start, end, modifiers, letter, reach)
        at = end


def _read_atom(
    text: str, start: int, end: int, modifiers: str, letter: str, reach: int
) -> tuple[Movement, ...]:
    flags, groups = _split(text, start, modifiers)
    quiet = "m" in flags or "c" not in flags
    capture = "c" in flags or "m" not in flags
    lame = "n" in flags
    hop: Hop = "over" if "p" in flags else "behind" if "g" in flags else ""
    token = text[start:end]
    if lame and (letter not in LAME or len(token) > len(modifiers) + 1):
        raise _error(text, start, f"{token!r} is not supported; only nN, nA, nD and nZ are")
    if hop and (letter == "N" or reach == 1 or lame or (reach and hop == "behind")):
        message = f"{token!r} is not supported; only sliders of two squares or more hop, with `g` unlimited ones"
        raise _error(text, start, message)
    movements = []
    for base in COMPOUNDS.get(letter, letter):
        leap = LEAPS[base]
        steps: set[Step] = set() if groups else set(_turns(leap))
        for position, group in groups:
            chosen = _directed(leap, group, compound=letter in "KQ")
            if not chosen:
                pairs = [a + b for a in VERTICAL for b in HORIZONTAL]
                known = [g for g in (*DIRECTIONS, *pairs) if _directed(leap, g, letter in "KQ")]
                raise _error(
                    text,
                    position,
                    f"direction {group!r} is not supported with atom {letter!r}; accepted: "
                    f"{' '.join(known)}",
                )
            steps.update(chosen)
        movements += [
            Movement(dx, dy, reach, quiet, capture, lame, hop)
            for dx, dy in _turns(leap)
            if (dx, dy) in steps
        ]
    return tuple(movements)


def _split(text: str, start: int, modifiers: str) -> tuple[set[str], list[tuple[int, str]]]:
    """Split modifiers into flags (m c p g n) and groups of direction letters with their positions.

    Two letters form a group if they are equal, or if one is vertical and the other horizontal; `h`
    belongs to the letter before it.
    """
    flags: set[str] = set()
    groups: list[tuple[int, str]] = []
    for match in _MODIFIER.finditer(modifiers):
        part, position = match[0], start + match.start()
        if part[0] in DIRECTIONS:
            groups.append((position, part))
        elif part in flags:
            raise _error(text, position, f"modifier {part!r} is given twice")
        else:
            flags.add(part)
    if {"p", "g"} <= flags:
        raise _error(text, start, "hoppers 'p' and 'g' exclude each other")
    return flags, groups


def _turns(leap: Step) -> list[Step]:
    """All displacements that a leap has by symmetry, clockwise from north."""
    quarter = [leap, leap[::-1]]
    turned: list[Step] = []
    for _ in range(4):
        turned += quarter
        quarter = [(dy, -dx) for dx, dy in quarter]
    return list(dict.fromkeys(turned))


def _directed(leap: Step, group: str, compound: bool) -> set[Step]:
    """Displacements of a leap in a direction group; empty if Fairy-Stockfish does not support
    it."""
    steps = set(_turns(leap))
    toward = {
        letter: {step for step in steps if step[axis] * sign > 0}
        for letter, axis, sign in (("f", 1, 1), ("b", 1, -1), ("l", 0, -1), ("r", 0, 1))
    }
    toward["s"] = toward["l"] | toward["r"]
    toward["v"] = toward["f"] | toward["b"]
    steep = {s for s in steps if abs(s[1]) > abs(s[0])}
    if len(group) == 2 and group[0] == group[1]:
        group = group[0]
    first, second = group[0], group[1:]
    if first == "h" or (second == "h" and first in "sv"):
        return set()
    if len(steps) == 8:  # oblique: single letters take the two nearest to the axis
        flat = steps - steep
        if not second:
            return toward[first] & (steep if first in VERTICAL else flat)
        if second == "h":
            return toward[first]
        if first in "fb" and second in HORIZONTAL:
            return toward[first] & toward[second] & flat
        if first in "lr" and second in VERTICAL:
            return toward[first] & toward[second] & steep
        return set()
    if not second:
        return toward[first]
    if compound or second == "h":  # the halves of K and Q are ambiguous
        return set()
    if steep:  # orthogonal: `fs` is forward or sideways
        return toward[first] | toward[second]
    return toward[first] & toward[second] if {first, second} <= set("fblr") else set()
