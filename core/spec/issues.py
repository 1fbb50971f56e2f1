"""Issues of a spec, and the small checks that several others share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from variant_ai.core.errors import SpecError, unknown
from variant_ai.core.spec.betza import parse_betza
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import zone_squares

Path = tuple[str | int, ...]
"""YAML keys and list indices that lead to a word."""


Issue = tuple[Path, str]
"""Path of the wrong word in a spec, and a message."""
Issues = Iterator[Issue]
_OTHER_WORDS: dict[object, str] = {
    "must": "true, false or `where stuck`",
    "drop": "true or false",
}
"""Accepted words besides zones, by key."""


def zone_issues(spec: VariantSpec, path: Path, zone: object) -> Issues:
    """Check that a word is a zone of the board; other words than texts and lists pass."""
    if isinstance(zone, str | tuple):
        try:
            zone_squares(zone, spec.board)
        except SpecError as error:
            others = _OTHER_WORDS.get(path[-1])
            yield path, f"{error}; or {others}" if others else str(error)


def betza_issues(path: Path, moves: str) -> Issues:
    """Check a word in Betza notation."""
    try:
        parse_betza(moves)
    except SpecError as error:
        yield path, str(error)


def unknown_words(path: Path, kind: str, words: Iterable[str], known: Iterable[str]) -> Issues:
    """Check that all words of a list are known."""
    known = list(known)
    for i, word in enumerate(words):
        if word not in known:
            yield (*path, i), unknown(kind, word, known)


def unknown_pieces(spec: VariantSpec, path: Path, letters: Iterable[str]) -> Issues:
    """Check that all letters of a list are pieces of the spec."""
    return unknown_words(path, "piece", letters, spec.pieces)


def unknown_keys(spec: VariantSpec, path: Path, letters: Iterable[str]) -> Issues:
    """Check that all letters of a mapping are pieces of the spec."""
    for letter in letters:
        if letter not in spec.pieces:
            yield (*path, letter), unknown("piece", letter, list(spec.pieces))


def not_in_hand(spec: VariantSpec, path: Path, letters: Iterable[str]) -> Issues:
    """Check that all letters of a list are pieces that may be in hand."""
    return unknown_words(path, "piece in hand", letters, spec.hand_order)


def listed_twice(path: Path, words: Sequence[str], kind: str = "piece") -> Issues:
    """Check that no word of a list occurs twice."""
    for i, word in enumerate(words):
        if word in words[:i]:
            yield (*path, i), f"{word} is listed already; accepted: each {kind} once"
