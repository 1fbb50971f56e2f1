"""Statistics of a set of games: the tables with which the published data sets were described.

[CrazyAra] section 7: share of games of the twenty most active players, results by side, time
controls, mean rating. [Xiangqi-thesis] section 4.2 and table 4.1: games, events, players, ratings
and the number of missing ones, results by side, plies, share of games of the most active fifth of
the players.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.filters import ending
from variant_ai.core.data.game_record import TRAINS_POLICY, TRAINS_VALUE
from variant_ai.core.data.store.columns import Floats, Longs
from variant_ai.core.data.store.game_store import NO_RATING, Store
from variant_ai.core.data.store.store_format import UNKNOWN

TOP_PLAYERS = 20
TOP_SHARE = 0.2
NAMELESS = frozenset({"", "?", "??", "-", "n.n.", "nn", "anonymous"})
"""Names of unknown players, in lower case."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Summary of a sample of numbers; None if it is empty."""

    count: int
    least: int | None = None
    mean: float | None = None
    median: float | None = None
    most: int | None = None
    deviation: float | None = None
    """Standard deviation of the sample (divided by its count)."""

    @staticmethod
    def of(values: Longs) -> Numbers:
        if not values.size:
            return Numbers(0)
        mean, median = float(values.mean()), float(np.median(values))
        least, most = int(values.min()), int(values.max())
        return Numbers(values.size, least, mean, median, most, float(values.std()))


@dataclass(frozen=True, slots=True)
class Count:
    """Number and share of games that have a property."""

    name: str
    games: int
    share: float


@dataclass(frozen=True, slots=True)
class FirstMove:
    """Games that begin with a move."""

    move: str
    uci: str
    games: int
    share: float
    """Share of the games from the start position of the variant."""
    score: float | None
    """Mean result for the first player, 1 won, 0.5 drawn, of games with a known result."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """Ratings of one side."""

    numbers: Numbers
    missing: float
    """Share of games in which this side's rating is missing."""


@dataclass(frozen=True, slots=True)
class Searches:
    """Positions, of those after the openings, with what self-play records; numbers of plies."""

    visits: int
    """With visits of a search, or a policy target."""
    root_values: int
    scores: int
    policies: int
    """Whose policy may be learnt (`GameRecord.trains`)."""
    results: int
    """Whose value may be learnt from the result of the game, if it is known."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a set of games."""

    games: int
    plies: Numbers
    plies_in_all: int
    events: int
    """Distinct events with a name."""
    players: int
    """Distinct players with a name, on either side."""
    groups: int
    """Distinct groups; a game without a group is a group by itself."""
    sources: int
    """Files; an archive counts as one."""
    copies: int
    """Games with the start position and moves of an earlier game."""
    other_starts: int
    """Games that do not begin at the start position of the variant."""
    results: tuple[Count, ...]
    """First player won, drawn, second player won, unknown; shares of all games."""
    ratings: dict[str, Ratings]
    """`first` and `second` player; `game` is the mean of the two if both are known."""
    rating_missing: float
    """Share of games in which at least one rating is missing."""
    years: tuple[Count, ...]
    """Ascending, without undated games."""
    undated: int
    time_controls: tuple[Count, ...]
    """Most common first; `''` are games without a time control."""
    endings: tuple[Count, ...]
    """Kinds of ending (`filters.ending`), most common first."""
    top_players: tuple[Count, ...]
    """Most active players; share of the games that name a player."""
    top_players_share: float
    """Share of these games in which at least one of `top_players` plays."""
    top_fifth_players: int
    top_fifth_share: float
    """Share of these games for the most active fifth of all players."""
    nameless: int
    """Games without the name of a player."""
    first_moves: tuple[FirstMove, ...]
    """Most common first."""
    searches: Searches


def statistics(
    store: Store,
    games: Sequence[int] | Longs | None = None,
    *,
    top: int = TOP_PLAYERS,
    moves: int = 10,
    write_move: Callable[[int], str] | None = None,
) -> Statistics:
    """Describe the games of the given indices, or all.

    Lists `top` players and `moves` first moves. `write_move` returns the text of a first move;
    by default UCI.
    """
    chosen = np.arange(len(store)) if games is None else np.unique(np.asarray(games, np.int64))
    selected = np.zeros(len(store), np.bool_)
    selected[chosen] = True
    counters = {name: Counter[str]() for name in ("event", "time_control", "ending", "source")}
    kind_of = cache(ending)
    pairs: list[tuple[str, str]] = []
    for game, kept in zip(store.facts(), selected.tolist(), strict=True):
        if not kept:
            continue
        counters["event"][game.event] += 1
        counters["time_control"][game.time_control] += 1
        counters["ending"][kind_of(game.termination)] += 1
        counters["source"][game.source.partition("!")[0]] += 1
        pairs.append((_name(game.white), _name(game.black)))
    n = len(chosen)
    active, top_share, fifth, fifth_share, named = _activity(pairs, top)
    years = Counter(store.years[chosen].tolist())
    undated = years.pop(0, 0)
    return Statistics(
        games=n,
        plies=Numbers.of(store.lengths[chosen]),
        plies_in_all=int(store.lengths[chosen].sum()),
        events=len(counters["event"].keys() - NAMELESS),
        players=len({name for pair in pairs for name in pair if name}),
        groups=len(np.unique(store.groups[chosen])),
        sources=len(counters["source"].keys() - {""}),
        copies=_copies(store, chosen),
        other_starts=int((~_standard(store)[chosen]).sum()),
        results=_results(store.results[chosen]),
        ratings=_ratings(store.ratings[chosen]),
        rating_missing=_share(int((store.ratings[chosen] == NO_RATING).any(1).sum()), n),
        years=tuple(Count(str(y), c, _share(c, n)) for y, c in sorted(years.items())),
        undated=undated,
        time_controls=_counts(counters["time_control"], n),
        endings=_counts(counters["ending"], n),
        top_players=active,
        top_players_share=top_share,
        top_fifth_players=fifth,
        top_fifth_share=fifth_share,
        nameless=n - named,
        first_moves=_first_moves(store, chosen, moves, write_move),
        searches=_searches(store, selected),
    )


def _searches(store: Store, selected: NDArray[np.bool_]) -> Searches:
    """Count the positions of the selected games, bool [G]."""
    lengths = store.lengths
    ply = np.arange(store.plies) - np.repeat(store.offsets[:-1], lengths)
    here = np.repeat(selected, lengths) & (ply >= np.repeat(store.opening_plies, lengths))
    trains, counts = store.trains, np.zeros(store.plies, np.bool_)
    visits = store.visits
    if visits is not None:
        counts = np.diff(visits.ends) > 0

    def known(values: Floats | None) -> int:
        return 0 if values is None else int((~np.isnan(values) & here).sum())

    def learnt(bit: int) -> int:
        return int(here.sum() if trains is None else ((trains & bit > 0) & here).sum())

    return Searches(
        int((counts & here).sum()),
        known(store.root_values),
        known(store.scores),
        learnt(TRAINS_POLICY),
        learnt(TRAINS_VALUE),
    )


def _name(text: str) -> str:
    """Return the name, `''` for an unknown player."""
    name = text.strip()
    return "" if name.lower() in NAMELESS else name


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _counts(counter: Counter[str], whole: int) -> tuple[Count, ...]:
    """Counts, the most common first, equal ones by name."""
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Count(name, games, _share(games, whole)) for name, games in ordered)


def _activity(
    pairs: Iterable[tuple[str, str]], top: int
) -> tuple[tuple[Count, ...], float, int, float, int]:
    """Most active players, their share, size and share of the top fifth, games with names."""
    named = [pair for pair in pairs if any(pair)]
    played = Counter(name for pair in named for name in {*pair} if name)
    ordered = _counts(played, len(named))

    def share(players: Sequence[Count]) -> float:
        names = {player.name for player in players}
        return _share(sum(1 for a, b in named if a in names or b in names), len(named))

    # A fifth of 5 players is one player; 1e-9 prevents rounding up to two.
    fifth = math.ceil(len(ordered) * TOP_SHARE - 1e-9)
    return ordered[:top], share(ordered[:top]), fifth, share(ordered[:fifth]), len(named)


def _results(results: NDArray[np.int8]) -> tuple[Count, ...]:
    names = {1: "first player won", 0: "drawn", -1: "second player won", UNKNOWN: "unknown"}
    counts = [(name, int((results == code).sum())) for code, name in names.items()]
    return tuple(Count(name, n, _share(n, len(results))) for name, n in counts)


def _ratings(ratings: NDArray[np.int32]) -> dict[str, Ratings]:
    known = ratings != NO_RATING
    of = {name: ratings[known[:, side], side] for side, name in enumerate(("first", "second"))}
    of["game"] = np.rint(ratings[known.all(1)].mean(1)).astype(np.int32)
    games = len(ratings)
    return {
        name: Ratings(Numbers.of(values.astype(np.int64)), _share(games - len(values), games))
        for name, values in of.items()
    }


def _standard(store: Store) -> NDArray[np.bool_]:
    """[G] True if the game begins at the start position of the variant."""
    own = np.asarray([fen is None for fen in store.start_fens], np.bool_)
    return own[store.start_of]


def _copies(store: Store, games: Longs) -> int:
    seen = {(start, codes.tobytes()) for start, codes in store.starts_and_codes(games.tolist())}
    return len(games) - len(seen)


def _first_moves(
    store: Store, games: Longs, limit: int, write_move: Callable[[int], str] | None
) -> tuple[FirstMove, ...]:
    from variant_ai.core.rules.pieces import PieceTypes
    from variant_ai.core.rules.text.notation import uci

    games = games[_standard(store)[games] & (store.lengths[games] > 0)]
    codes, results = store.codes[store.offsets[games]], store.results[games]
    values, counts = np.unique(codes, return_counts=True)
    types, files = PieceTypes(store.spec), store.spec.board.files
    made = []
    for at in np.lexsort((values, -counts))[:limit].tolist():
        (move,) = store.codec.decode(None, values[at : at + 1])
        in_uci = uci(types, files, move)
        known = results[(codes == values[at]) & (results != UNKNOWN)]
        made.append(
            FirstMove(
                in_uci if write_move is None else write_move(move),
                in_uci,
                int(counts[at]),
                _share(int(counts[at]), len(games)),
                float((known.mean() + 1) / 2) if known.size else None,
            )
        )
    return tuple(made)
