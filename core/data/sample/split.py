"""Training, validation and test sets. They consist of whole games, not of positions.

The subset of a game depends on its key and the seed alone (a hash of both, compared with the shares),
not on its index in the store: adding games, merging or filtering stores does not move a game to
another subset, and games with equal keys stay together. The shares are therefore met on average, not
exactly.

| by | key |
| --- | --- |
| game | start position and moves: copies of a game stay together |
| group | group of the game (an opening group, a match); without a group, as by game |
| year | years given by the caller |
| source | sources given by the caller, or each source as a whole by share |
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.store.columns import Longs
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.errors import DataError, UnknownNameError
from variant_ai.core.system.text_tables import counted

By = Literal["game", "group", "year", "source"]
SUBSETS = ("train", "validation", "test")
NAMED_SOURCES = 5
"""Number of sources that a message names."""
_START_BYTES = 4
"""Bytes of the start of a game in `shared_prefix`."""


@dataclass(frozen=True)
class Split:
    """Indices of the games of each subset, ascending; every game is in one subset."""

    train: Longs
    validation: Longs
    test: Longs

    def __iter__(self) -> Iterator[tuple[str, Longs]]:
        return ((name, getattr(self, name)) for name in SUBSETS)


@dataclass(frozen=True)
class SplitPlan:
    """Key of a split, and the games for validation and test."""

    by: By = "game"
    validation: float = 0.05
    """Share of the keys in [0, 1); not used if keys are named below."""
    test: float = 0.0
    validation_keys: tuple[str, ...] = ()
    """Years (`2008`, `2008-2010`, `2010-`, `-1990`, `none` for undated games) or sources (`*` and
    `?` as in file names), for `by` year or source. All other games are for training."""
    test_keys: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise UnknownNameError("way to split", self.by, get_args(By))
        if not (self.validation >= 0 and self.test >= 0 and self.validation + self.test < 1):
            raise DataError(
                f"shares of validation ({self.validation}) and test ({self.test}) must not be negative "
                "and must leave games for training"
            )
        if self.by in ("game", "group") and (self.validation_keys or self.test_keys):
            raise DataError(
                f"a split by {self.by} takes shares; to name years or sources, split by year or source"
            )
        if self.by == "year" and not (self.validation_keys or self.test_keys):
            raise DataError("a split by year requires the years for validation or test")
        if self.by == "year":
            for text in (*self.validation_keys, *self.test_keys):
                parse_years(text)

    @property
    def named(self) -> bool:
        """True if the subsets are given by names, not by shares."""
        return bool(self.validation_keys or self.test_keys)

    def __str__(self) -> str:
        if not self.named:
            shares = f"validation {self.validation:g}, test {self.test:g}"
            return f"by {self.by}, {shares}, seed {self.seed}"
        words = [f"by {self.by}"]
        for subset, keys in (("validation", self.validation_keys), ("test", self.test_keys)):
            if keys:
                words.append(f"{subset} {' '.join(keys)}")
        return ", ".join(words)


def split_games(store: Store, plan: SplitPlan) -> Split:
    """Assign every game of the store to a subset.

    Raises DataError if a requested subset has no game.
    """
    return split_stores([store], plan)[0]


def split_stores(stores: Sequence[Store], plan: SplitPlan) -> list[Split]:
    """Assign every game of the stores to a subset; copies of a game are in the same subset.

    Raises DataError if a requested subset has no game of any store.
    """
    if plan.named:
        subsets = [_named_subsets(store, plan) for store in stores]
    else:
        of_games = [points(store, plan.by, plan.seed) for store in stores]
        ends = np.cumsum([len(each) for each in of_games])[:-1]
        subsets = np.split(_shared_subsets(np.concatenate(of_games), plan), ends)
    splits = [
        Split(*(np.flatnonzero(of == subset).astype(np.int64) for subset in range(len(SUBSETS))))
        for of in subsets
    ]
    requested = {
        "train": True,
        "validation": bool(plan.validation_keys) if plan.named else plan.validation > 0,
        "test": bool(plan.test_keys) if plan.named else plan.test > 0,
    }
    for name in SUBSETS:
        if requested[name] and not any(len(getattr(split, name)) for split in splits):
            raise DataError(_no_games(stores, plan, name))
    return splits


def _no_games(stores: Sequence[Store], plan: SplitPlan, subset: str) -> str:
    """Message about a subset without games, with the keys that the games have."""
    paths = " and ".join(str(store.path) for store in stores)
    count = sum(map(len, stores))
    if not count:
        return f"{paths} {'has' if len(stores) == 1 else 'have'} no games"
    there = ""
    if plan.named:
        there = _years_there(stores) if plan.by == "year" else _sources_there(stores)
    return f"the split ({plan}) of the {counted(count, 'game')} of {paths} leaves none for {subset}{there}"


def _years_there(stores: Sequence[Store]) -> str:
    years = np.unique(np.concatenate([store.years for store in stores]))
    dated = years[years > 0]
    if not dated.size:
        return "; no game has a date"
    first, last = int(dated[0]), int(dated[-1])
    return f"; the games are of {first}" + (f" to {last}" if last > first else "")


def _sources_there(stores: Sequence[Store]) -> str:
    found = {name for store in stores for name in store.column("source")[0]} - {""}
    if not found:
        return "; no game has a source"
    named, left_out = sorted(found)[:NAMED_SOURCES], len(found) - NAMED_SOURCES
    more = f" and {counted(left_out, 'other')}" if left_out > 0 else ""
    return f"; their sources: {', '.join(named)}{more}"


# --- by shares ---------------------------------------------------------------------------------


def _keys(store: Store, by: By) -> Iterator[bytes]:
    """Yield the key of each game; games with equal keys stay together."""
    if by == "source":
        table, rows = store.column("source")
        names = [name.encode("utf-8", "surrogatepass") for name in table]
        yield from (names[row] for row in rows.tolist())
        return
    table, rows = store.column("group")
    for (start, codes), row in zip(store.starts_and_codes(), rows.tolist(), strict=True):
        if by == "group" and table[row]:
            yield b"group\0" + table[row].encode("utf-8", "surrogatepass")
        else:
            yield b"game\0" + start.encode("utf-8", "surrogatepass") + b"\0" + codes.tobytes()


def points(store: Store, by: By = "game", seed: int = 0) -> NDArray[np.uint64]:
    """Return the hash of the key of each game, uniform over keys, that depends on key and seed alone."""
    salt = hashlib.blake2b(str(seed).encode()).digest()
    hashes = (hashlib.blake2b(key, digest_size=8, key=salt).digest() for key in _keys(store, by))
    return np.frombuffer(b"".join(hashes), ">u8").astype(np.uint64)


def _shared_subsets(of_games: NDArray[np.uint64], plan: SplitPlan) -> NDArray[np.int8]:
    """Subset of each game, by its point between 0 and 2^64: first the share of test, then that of
    validation, then training.

    If a share has no key because there are few, the nearest key is used.
    """
    ascending, rows = np.unique(of_games, return_inverse=True)
    shares = ascending / 2.0**64
    test = int(np.searchsorted(shares, plan.test))
    both = int(np.searchsorted(shares, plan.test + plan.validation))
    least_test, least_validation = int(plan.test > 0), int(plan.validation > 0)
    if len(ascending) > least_test + least_validation:
        test = max(test, least_test)
        both = max(both, test + least_validation)
        both = min(both, len(ascending) - 1)
        test = min(test, both - least_validation)
    subset_of_key = np.zeros(len(ascending), np.int8)
    subset_of_key[test:both] = SUBSETS.index("validation")
    subset_of_key[:test] = SUBSETS.index("test")
    return subset_of_key[rows]


# --- by names ----------------------------------------------------------------------------------


def _named_subsets(store: Store, plan: SplitPlan) -> NDArray[np.int8]:
    matches = _year_matches if plan.by == "year" else _source_matches
    subsets = np.zeros(len(store), np.int8)
    validation = matches(store, plan.validation_keys)
    test = matches(store, plan.test_keys)
    both = np.flatnonzero(validation & test)
    if both.size:
        raise DataError(
            f"game {both[0] + 1} and {counted(both.size - 1, 'other')} are in both validation "
            f"({' '.join(plan.validation_keys)}) and test ({' '.join(plan.test_keys)})"
        )
    subsets[validation] = SUBSETS.index("validation")
    subsets[test] = SUBSETS.index("test")
    return subsets


def parse_years(text: str) -> tuple[int, int]:
    """First and last year of `2008`, `2008-2010`, `2010-` or `-1990`; (0, 0) for `none`.

    Raises DataError.
    """
    if text == "none":
        return 0, 0
    match = re.fullmatch(r"(\d{4})|(\d{4})?-(\d{4})?", text.strip())
    if match is None or text.strip() == "-":
        raise DataError(
            f"{text!r} is not a span of years; accepted: 2008, 2008-2010, 2010-, -1990, none"
        )
    if match[1]:
        return int(match[1]), int(match[1])
    first, last = int(match[2] or 1), int(match[3] or 9999)
    if first > last:
        raise DataError(f"{text!r} ends before it begins")
    return first, last


def _year_matches(store: Store, spans: Sequence[str]) -> NDArray[np.bool_]:
    found = np.zeros(len(store), np.bool_)
    for span in spans:
        first, last = parse_years(span)
        found |= (store.years >= first) & (store.years <= last)
    return found


def _source_matches(store: Store, patterns: Sequence[str]) -> NDArray[np.bool_]:
    table, rows = store.column("source")
    hit = [any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns) for name in table]
    return np.asarray(hit, np.bool_)[rows]


# --- leaks -------------------------------------------------------------------------------------


def shared_prefix(store: Store, train: Longs, games: Longs) -> Longs:
    """[len(games)] leading plies that each game shares with some game of `train`.

    The positions before these plies are in the training set with the same move, so accuracy is also
    reported without them (of the positions of xiangqi masters of 2008, 17 % are in earlier years).
    """

    def line(game: int) -> bytes:
        """Start and moves of a game, in an order in which games with long common prefixes are neighbours."""
        codes = store.codes[store.offsets[game] : store.offsets[game + 1]]
        return int(store.start_of[game]).to_bytes(_START_BYTES) + codes.astype(">u2").tobytes()

    known = sorted(map(line, np.asarray(train).tolist()))
    shared = []
    for own in map(line, np.asarray(games).tolist()):
        at = bisect(known, own)
        near = known[max(0, at - 1) : at + 1]
        common = [len(commonprefix([own, other])) for other in near]  # noqa: RUF071  (no paths)
        shared.append(max(0, (max(common, default=0) - _START_BYTES) // 2))
    return np.array(shared, np.int64)
