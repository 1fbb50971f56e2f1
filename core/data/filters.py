"""Conditions on games, for importing and for filtering a store.

The published data sets were selected by such conditions: both players rated at least 2000, without
aborted games, with time forfeits ([CrazyAra] section 7); both players at least 1615, and at least 20
plies ([Xiangqi-thesis] section 4.2).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from variant_ai.core.data.game_record import RESULTS, GameRecord
from variant_ai.core.errors import DataError, UnknownNameError
from variant_ai.core.system.text_tables import counted

ENDINGS = (
    "checkmate",
    "resignation",
    "time",
    "draw",
    "stalemate",
    "variant",
    "disconnection",
    "rules",
    "adjudication",
    "normal",
    "aborted",
    "unfinished",
    "other",
    "unknown",
)
"""Kinds of ending; `variant`: by another rule of the variant; `unknown` if the game has no
termination."""

_ENDING_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("adjudication", r"^adjudicated|^max plies"),
        ("variant", r"^variant (?:win|loss)"),
        ("rules", r"^illegal move|^no move|^false claim"),
        ("disconnection", r"^crash|^hang"),
        ("disconnection", r"\b(?:won|wins)\b.*\babandon"),
        ("aborted", r"\babort|\babandon|\bcancel|game courtesyadjourned"),
        ("time", r"\btime\b(?! control)|\btimeout|ran out of time|\bflag"),
        ("disconnection", r"disconnect|\blag\b|emergency|\bdeath\b"),
        ("checkmate", r"\bmate[ds]?\b|checkmate"),
        ("stalemate", r"stalemate"),
        ("resignation", r"\bresign"),
        ("rules", r"rules infraction|\bcheat|\bperpetual|\bchas(?:e|ing)\b"),
        ("draw", r"\bdraw|repetition|agreement|move count|50.?move|insufficient"),
        ("adjudication", r"adjudicat"),
        ("unfinished", r"untermin|unfinish|adjourn|in progress|interrupt"),
        ("normal", r"\bnormal\b"),
    )
)


def ending(termination: str) -> str:
    """Return the kind of ending, one of `ENDINGS`, of a termination of PGN, lichess or FICS, or of
    this program's own games.

    `Time forfeit` and `White forfeits on time` are `time`, `Abandoned` and `Game aborted` are
    `aborted`, `''` is `unknown`, all other texts are `other`.
    """
    text = termination.strip().lower()
    if not text or set(text) <= {"?", "-"}:
        return "unknown"
    return next((kind for kind, pattern in _ENDING_PATTERNS if pattern.search(text)), "other")


Date = tuple[int, int | None, int | None]
"""Year, month and day, None if unknown."""
_DATE = re.compile(r"(\d{4})(?:[.\-/](\d{1,2}|\?\?)(?:[.\-/](\d{1,2}|\?\?))?)?(?:\D.*)?\Z")


def parse_date(text: str) -> Date | None:
    """Year, month and day of `2008.05.31`, `2008-05`, `1955.05.??`; None without a year."""
    match = _DATE.match(text.strip())
    if match is None:
        return None
    month, day = (int(part) if part and part.isdigit() else 0 for part in match.groups()[1:])
    if not 1 <= month <= 12:
        return int(match[1]), None, None
    return int(match[1]), month, day if 1 <= day <= 31 else None


def _is_bound(text: str) -> bool:
    """Return True if the whole text is a date."""
    if re.fullmatch(r"\d{4}([.\-/]\d{1,2}){0,2}", text) is None:
        return False
    date = parse_date(text) or ()
    return sum(part is not None for part in date) == len(re.split(r"[.\-/]", text))


@dataclass(frozen=True)
class GameFilter:
    """Conditions that a game must meet, all of them; a default value is no condition.

    A missing rating does not meet a bound.
    """

    min_rating: int | None = None
    """Minimum for both players."""
    max_rating: int | None = None
    """Maximum for both players."""
    min_plies: int | None = None
    max_plies: int | None = None
    since: str | None = None
    """Earliest date, `2016`, `2016.01` or `2016.01.15`. A game with an incomplete date
    (`2016.??.??`) is kept if it may be in the range; without a year it is dropped."""
    until: str | None = None
    """Latest date, inclusive: `2018` includes all of 2018."""
    known_result: bool = False
    results: tuple[str, ...] = ()
    """Results kept, as in PGN; empty: all."""
    endings: tuple[str, ...] = ()
    """Kinds of ending kept (`ENDINGS`); empty: all."""
    not_endings: tuple[str, ...] = ()
    """Kinds of ending dropped."""
    players: tuple[str, ...] = ()
    """Patterns for the name of either player (`*` and `?` as in file names)."""
    not_players: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    """Patterns for the event."""
    sources: tuple[str, ...] = ()
    """Patterns for the source."""
    standard_start: bool = False
    """The game begins at the start position of the variant."""

    def __post_init__(self) -> None:
        for low, high in (("min_rating", "max_rating"), ("min_plies", "max_plies")):
            a, b = getattr(self, low), getattr(self, high)
            for name, value in ((low, a), (high, b)):
                if value is not None and value < 0:
                    raise DataError(f"{_words(name)} {value} is negative")
            if a is not None and b is not None and a > b:
                raise DataError(f"{_words(low)} {a} is above {_words(high)} {b}: no game fits")
        for name in ("since", "until"):
            value = getattr(self, name)
            if value is not None and not _is_bound(value):
                raise DataError(
                    f"{name} {value!r} is not a date; accepted: 2016, 2016.01, 2016.01.15"
                )
        if self.since and self.until and self._first > self._last:
            raise DataError(f"since {self.since} is after until {self.until}: no game fits")
        for kind in (*self.endings, *self.not_endings):
            if kind not in ENDINGS:
                raise UnknownNameError("ending", kind, ENDINGS)
        for result in self.results:
            if result not in RESULTS:
                raise UnknownNameError("result", result, RESULTS)

    @cached_property
    def _first(self) -> tuple[int, int, int]:
        return _earliest(parse_date(self.since or "") or (0, None, None))

    @cached_property
    def _last(self) -> tuple[int, int, int]:
        return _latest(parse_date(self.until or "") or (9999, None, None))

    def reason(self, game: GameRecord, plies: int | None = None) -> str | None:
        """Return a short reason why the game is dropped; None if it is kept.

        `plies` is the length of the game if the record has no moves.
        """
        return next(self._reasons(game, game.plies if plies is None else plies), None)

    def _reasons(self, game: GameRecord, plies: int) -> Iterator[str]:
        rated = self.min_rating is not None or self.max_rating is not None
        for rating in (game.white_elo, game.black_elo) if rated else ():
            if rating is None:
                yield "rating missing"
            elif self.min_rating is not None and rating < self.min_rating:
                yield f"rating below {self.min_rating}"
            elif self.max_rating is not None and rating > self.max_rating:
                yield f"rating above {self.max_rating}"
        if self.min_plies is not None and plies < self.min_plies:
            yield f"under {counted(self.min_plies, 'ply')}"
        if self.max_plies is not None and plies > self.max_plies:
            yield f"over {counted(self.max_plies, 'ply')}"
        if self.since is not None or self.until is not None:
            date = parse_date(game.date)
            if date is None:
                yield "date missing"
            elif _latest(date) < self._first:
                yield f"before {self.since}"
            elif _earliest(date) > self._last:
                yield f"after {self.until}"
        if self.known_result and game.result == "*":
            yield "result unknown"
        if self.results and game.result not in self.results:
            yield f"result {game.result}"
        if self.endings or self.not_endings:
            kind = ending(game.termination)
            if kind in self.not_endings or (self.endings and kind not in self.endings):
                yield f"ending: {kind}"
        if self.players and not _any_match(self.players, (game.white, game.black)):
            yield "other players"
        if self.not_players and _any_match(self.not_players, (game.white, game.black)):
            yield "excluded player"
        if self.events and not _any_match(self.events, (game.event,)):
            yield "other event"
        if self.sources and not _any_match(self.sources, (game.source,)):
            yield "other source"
        if self.standard_start and game.start_fen is not None:
            yield "other start position"

    def as_dict(self) -> dict[str, Any]:
        """Conditions that are set, by field name, as recorded in a store."""
        conditions: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value != item.default:
                conditions[item.name] = list(value) if isinstance(value, tuple) else value
        return conditions

    def __str__(self) -> str:
        return conditions_text(self.as_dict())


def conditions_text(conditions: Mapping[str, Any]) -> str:
    """Conditions as recorded in a store (`GameFilter.as_dict`), such as `min rating 2000, not endings
    aborted`; `none` without conditions."""
    parts = []
    for name, value in conditions.items():
        shown = " | ".join(map(str, value)) if isinstance(value, list) else value
        parts.append(_words(name) if value is True else f"{_words(name)} {shown}")
    return ", ".join(parts) or "none"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _earliest(date: Date) -> tuple[int, int, int]:
    return date[0], date[1] or 1, date[2] or 1


def _latest(date: Date) -> tuple[int, int, int]:
    return date[0], date[1] or 12, date[2] or 31


def _any_match(patterns: Iterable[str], names: Iterable[str]) -> bool:
    """Return True if a name is a pattern or matches it, ignoring case."""
    pairs = [(name.lower(), pattern.lower()) for pattern in patterns for name in names]
    return any(name == pattern or fnmatch.fnmatchcase(name, pattern) for name, pattern in pairs)
