"""Headers and comments of games in their many forms: names, ratings, dates, results, scores, clocks.

Scores and clocks are read from comments as lichess writes them, `[%eval 0.35]`, `[%eval #-3]` (the
first player's view) and `[%clk 0:02:59.8]`, and as cutechess does, `+0.35/12 1.2s` and `-M4/20 0.5s`
(the mover's view).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

from variant_ai.core.data.game_record import MATE, GameRecord, Result
from variant_ai.core.data.read.game_reader import MAX_CLOCK, RESULT_WORDS, RawGame

_UNKNOWN = frozenset(("", "?", "-", "??", "N/A", "n/a", "????.??.??"))
FIELDS = {
    "White": "white",
    "Red": "white",
    "Black": "black",
    "Event": "event",
    "Site": "site",
    "Round": "round",
    "ECO": "eco",
    "ECCO": "eco",
    "TimeControl": "time_control",
    "Termination": "termination",
    "Group": "group",
}
RATINGS = {
    "WhiteElo": "white_elo",
    "RedElo": "white_elo",
    "WhiteRating": "white_elo",
    "RedRating": "white_elo",
    "BlackElo": "black_elo",
    "BlackRating": "black_elo",
}
_DATES = ("Date", "UTCDate")
_OTHER_FIELDS = frozenset(
    ("Result", "FEN", "SetUp", "Variant", "Game", "Format", "PlyCount", "Year", *_DATES)
)
_BY = r"(?:checkmate|resignation|forfeit|time|disconnection|default|adjudication|abandonment)"
_TERMINATION = re.compile(
    rf"(?:(?:\S+ ){{1,3}}(?:resigns|resigned|checkmated|checkmates|mates|disconnects|disconnected|"
    rf"forfeits (?:on time|by disconnection)|(?:wins|won|loses|lost) (?:on time|by {_BY})|"
    r"ran out of time(?: and .*)?|timed? ?out)"
    r"|(?:white|black|red) (?:is (?:check|stale)?mated|(?:abandons|abandoned) the game)"
    r"|(?:game )?(?:was )?(?:aborted|abandoned|courtesyaborted|courtesyadjourned)(?: (?:on|by) .*)?"
    r"|(?:game )?drawn? (?:by|because|as) .*"
    r"|checkmate|stalemate|resignation|time ?out|time forfeit|rules infraction)"
    r"\.?(?: (?:1-0|0-1|1/2-1/2|\*))?",
    re.IGNORECASE,
)
"""Comments of FICS, lichess and related programs after the last move on how a game ended. The whole
comment must match: an annotator may use the same words, `White was in time trouble`."""

_YEAR = r"(?P<year>1[5-9]\d\d|20\d\d)"
_EVENT_YEAR = re.compile(
    r"(?:(?<![0-9A-Za-z])|(?<=[A-Za-z]{2}))(?:18[5-9]\d|19\d\d|20[0-3]\d)(?![A-Za-z])"
    r"|(?:19\d\d|20[0-3]\d)(?=[^\x00-\x7f])"
)
"""Year in the name of an event: `2001 Open`, `Linares1994` and `BGN2001世界賽` have one, `U1800 Open`
and `tournament a2017x` do not."""
_SEPARATOR = r"\s*[^\d\s]{1,2}\s*|\s+"
_DATE_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"{_YEAR}(?P<month>\d\d)(?P<day>\d\d)(?!\d)",  # 20081219
        rf"{_YEAR}(?:{_SEPARATOR})(?P<month>\d\d?)(?:{_SEPARATOR})(?P<day>\d\d?)(?!\d)",  # 1996.5.16
        rf"{_YEAR}(?:{_SEPARATOR})(?P<month>\d\d?)(?!\d)",  # 1995年9月
        rf"(?<!\d)(?P<day>\d\d?)(?:{_SEPARATOR})(?P<month>\d\d?)(?:{_SEPARATOR}){_YEAR}",  # 24-9-2009
        r"\A(?P<short>[3-9]\d)[^\d\s](?P<month>\d\d?)(?:[^\d\s](?P<day>\d\d?))?(?!\d)",  # 82-10-31
        rf"(?<!\d){_YEAR}",
    )
)


def fill(record: GameRecord, raw: RawGame, first_begins: bool) -> None:
    """Set the fields and tags of a record from headers and comments. `first_begins`: the first
    player makes the first move."""
    for name, value in raw.headers.items():
        if field := FIELDS.get(name):
            if not getattr(record, field) and value not in _UNKNOWN:
                setattr(record, field, value)
        elif field := RATINGS.get(name):
            if getattr(record, field) is None:
                setattr(record, field, rating(value))
        elif name not in _OTHER_FIELDS and value not in _UNKNOWN:
            record.tags[name] = value
    record.date = game_date(raw.headers)
    record.result = game_result(raw)
    if not record.termination:
        comment = raw.comments.get(len(raw.moves) - 1, "")
        if _TERMINATION.fullmatch(comment):
            record.termination = comment
    _fill_from_comments(record, raw, first_begins)


def rating(text: str) -> int | None:
    """Rating in `2470`, `1566?`, `2350.5`; None for `-`, `0`, `na` and every other text."""
    match = re.match(r"\s*(\d{1,4})(?:\.\d+)?\s*[?EP]?\s*\Z", text)
    value = int(match[1]) if match else 0
    return value or None


def game_result(raw: RawGame) -> Result:
    """Result of a game; `*` if the header and the end of the moves contradict each other."""
    header = RESULT_WORDS.get(raw.headers.get("Result", "").strip(), "*")
    written = RESULT_WORDS.get(raw.result, "*")
    if "*" in (header, written):
        return written if header == "*" else header
    return header if header == written else "*"


def game_date(headers: Mapping[str, str]) -> str:
    """Date as in `GameRecord.date`: from the date headers, else the year in the event's name."""
    known = headers.get("Year", "")
    if not re.fullmatch(r"[12]\d{3}", known):
        known = ""
    for name in (*_DATES, "Event"):
        text = unicodedata.normalize("NFKC", headers.get(name, ""))
        date = normal_date(text)
        if name == "Event" and date.endswith(".??.??"):  # names have other numbers as well
            year = _EVENT_YEAR.search(text)
            date = f"{year[0]}.??.??" if year else ""
        if date and (not known or date[:4] == known):
            return date
    return f"{known}.??.??" if known else ""


def normal_date(text: str) -> str:
    """Return `2008.12.19` for `2008年12月19日`, `20081219`, `19/12/2008`, `1995.9`, …; `''`: no year.

    Of two numbers before a year the first is the day, unless only the other order makes a date.
    """
    text = unicodedata.normalize("NFKC", text).strip()
    for form in _DATE_FORMS:
        match = form.search(text)
        if match is None:
            continue
        parts = match.groupdict()
        year = parts.get("year") or f"19{parts['short']}"
        month, day = (int(parts.get(name) or 0) for name in ("month", "day"))
        if month > 12 >= day > 0:
            month, day = day, month
        if not 1 <= month <= 12:
            month = day = 0
        if not 1 <= day <= 31:
            day = 0
        return ".".join((year, f"{month:02}" if month else "??", f"{day:02}" if day else "??"))
    return ""


# --- comments ------------------------------------------------------------------------------------

_COMMAND = re.compile(r"\[%(\w+)\s+([^\]]*)\]")
_EVAL = re.compile(r"(#?)([+-]?\d+(?:\.\d+)?)(?:,\d+)?\Z")
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)\Z")
_ENGINE = re.compile(r"\A\s*([+-]?)(M?)(\d+(?:\.\d+)?)/\d+\s+[\d.]+s\b,?")


class Annotation(NamedTuple):
    """Contents of a comment after a move."""

    score: int | None
    """Centipawns from the view of the player who made the move, see `game_record.MATE`."""
    clock: int | None
    """Milliseconds left to that player."""
    text: str
    """The rest of the comment."""


def annotation(comment: str, first_player: bool) -> Annotation:
    """Read the comment after a move of the first player, or of the second."""
    score: int | None = None
    clock: int | None = None
    match = _ENGINE.match(comment)
    if match is not None:
        number = float(match[3])
        if match[2]:  # plies
            number = (int(number) + 1) // 2
        score = _centipawns(bool(match[2]), -number if match[1] == "-" else number)
        comment = comment[match.end() :]
    for command in _COMMAND.finditer(comment):
        value = command[2].strip()
        if command[1] == "eval" and (found := _EVAL.match(value)):
            points = _centipawns(bool(found[1]), float(found[2]))
            score = points if first_player else -points
        elif command[1] == "clk" and (found := _CLOCK.match(value)):
            hours, minutes, seconds = (float(part or 0) for part in found.groups()[:3])
            milliseconds = ((hours * 60 + minutes) * 60 + seconds) * 1000
            clock = round(milliseconds) if milliseconds <= MAX_CLOCK else None
    return Annotation(score, clock, " ".join(_COMMAND.sub(" ", comment).split()))


def _centipawns(mate: bool, value: float) -> int:
    value = max(-MATE, min(MATE, value))
    if not mate:
        return max(-MATE + 1000, min(MATE - 1000, round(value * 100)))
    return -(MATE + int(value)) if value < 0 else MATE - int(value)


def _fill_from_comments(record: GameRecord, raw: RawGame, first_begins: bool) -> None:
    scores = raw.scores or [None] * record.plies
    clocks = raw.clocks or [None] * record.plies
    for ply, comment in raw.comments.items():
        if ply < 0:
            record.comments[ply] = comment
            continue
        found = annotation(comment, (ply % 2 == 0) == first_begins)
        if found.score is not None:
            scores[ply] = found.score
        if found.clock is not None:
            clocks[ply] = found.clock
        if found.text:
            record.comments[ply] = found.text
    if any(score is not None for score in scores):
        record.scores = scores
    if any(clock is not None for clock in clocks):
        record.clocks = clocks
