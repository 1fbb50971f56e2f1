"""What headers of games say, in the many ways they say it: names, ratings, dates, results."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from variant_ai.core.data.game_record import GameRecord, Result
from variant_ai.core.data.read.game_reader import RawGame
from variant_ai.core.data.read.pgn import RESULTS

_UNKNOWN = frozenset(("", "?", "-", "??", "N/A", "n/a", "????.??.??"))
_FIELDS = {
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
_RATINGS = {
    "WhiteElo": "white_elo",
    "RedElo": "white_elo",
    "WhiteRating": "white_elo",
    "RedRating": "white_elo",
    "BlackElo": "black_elo",
    "BlackRating": "black_elo",
}
_DATES = ("Date", "UTCDate")
_SAID_ELSEWHERE = frozenset(
    ("Result", "FEN", "SetUp", "Variant", "Game", "Format", "PlyCount", "Year", *_DATES)
)
_BY = r"(?:checkmate|resignation|forfeit|time|disconnection|default|adjudication|abandonment)"
_SERVER_WORDS = re.compile(
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
"""How FICS, lichess and the programs beside them say, behind the last move, why a game ended. What
an annotator says there may have the same words: `White was in time trouble`."""

_YEAR = r"(?P<year>1[5-9]\d\d|20\d\d)"
_EVENT_YEAR = re.compile(
    r"(?:(?<![0-9A-Za-z])|(?<=[A-Za-z]{2}))(?:18[5-9]\d|19\d\d|20[0-3]\d)(?![A-Za-z])"
    r"|(?:19\d\d|20[0-3]\d)(?=[^\x00-\x7f])"
)
"""`2001 Open`, `Linares1994` and `BGN2001世界賽` have one, `U1800 Open` and `tournament a2017x` none."""
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


def fill(record: GameRecord, raw: RawGame) -> None:
    """Put what the headers and the last comment say into the record's fields and tags."""
    for name, value in raw.headers.items():
        if field := _FIELDS.get(name):
            if not getattr(record, field) and value not in _UNKNOWN:
                setattr(record, field, value)
        elif field := _RATINGS.get(name):
            if getattr(record, field) is None:
                setattr(record, field, rating(value))
        elif name not in _SAID_ELSEWHERE and value not in _UNKNOWN:
            record.tags[name] = value
    record.date = game_date(raw.headers)
    record.result = game_result(raw)
    if not record.termination:
        said = raw.comments.get(len(raw.moves) - 1, "")
        if _SERVER_WORDS.fullmatch(said):
            record.termination = said


def rating(text: str) -> int | None:
    """`2470`, `1566?`, `2350.5`; None for `-`, `0`, `na` and everything else that is no rating."""
    match = re.match(r"\s*(\d{1,4})(?:\.\d+)?\s*[?EP]?\s*\Z", text)
    value = int(match[1]) if match else 0
    return value or None


def game_result(raw: RawGame) -> Result:
    """The result; `*` where header and end of the moves contradict each other."""
    header = RESULTS.get(raw.headers.get("Result", "").strip(), "*")
    written = RESULTS.get(raw.result, "*")
    agreed = header if written in ("*", header) else written if header == "*" else "*"
    results: dict[str, Result] = {"1-0": "1-0", "0-1": "0-1", "1/2-1/2": "1/2-1/2"}
    return results.get(agreed, "*")


def game_date(headers: Mapping[str, str]) -> str:
    """As `GameRecord.date`: from the date headers, else from a year that the event's name has."""
    known = headers.get("Year", "")
    if not re.fullmatch(r"[12]\d{3}", known):
        known = ""
    for name in (*_DATES, "Event"):
        said = unicodedata.normalize("NFKC", headers.get(name, ""))
        date = normal_date(said)
        if name == "Event" and date.endswith(".??.??"):  # there are other numbers in names
            year = _EVENT_YEAR.search(said)
            date = f"{year[0]}.??.??" if year else ""
        if date and (not known or date[:4] == known):
            return date
    return f"{known}.??.??" if known else ""


def normal_date(text: str) -> str:
    """`2008.12.19` out of `2008年12月19日`, `20081219`, `19/12/2008`, `1995.9`, …; `''`: no year.

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
