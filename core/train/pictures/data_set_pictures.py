"""Pictures of the games in data sets, one set or several next to each other.

[CrazyAra-preprint]: figures 6 (most active players), 7 (results), 8 (ratings and time controls).
[Xiangqi-thesis]: figures 4.1 (ratings), 4.2 (share of the most active players), 5.3 and 5.4 (first
moves).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.statistics import Count, FirstMove, Statistics, statistics
from variant_ai.core.data.store.game_store import NO_RATING, Store
from variant_ai.core.draw import Arrow
from variant_ai.core.rules.interface import Rules
from variant_ai.core.train.pictures.canvas import (
    BLUE,
    GREY,
    SERIES,
    Picture,
    by_thousands,
    draw_board,
    height_of_width,
    is_printable,
    new_figure,
    picture,
    printable,
    shares_axis,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HATCHES = ("", "///", "...", "xx", "\\\\\\")
"""Patterns that distinguish the bars of several sets in addition to colour."""
MOST_NAMES = 12
"""Number of time controls or endings shown; the others are one bar."""
SHOWN_MOVES = 5
RATING_BIN = 25
LENGTH_BIN = 10


@dataclass(frozen=True)
class DataSet:
    """Data of the games to draw."""

    statistics: Statistics
    ratings: NDArray[np.int32]
    """[G, 2] NO_RATING if missing."""
    lengths: NDArray[np.int64]
    """[G] plies."""

    @staticmethod
    def of(
        store: Store,
        games: NDArray[np.int64] | None = None,
        found: Statistics | None = None,
    ) -> DataSet:
        """Data of the games with these indices, or of all; `found` are their statistics, if known."""
        chosen = np.arange(len(store)) if games is None else games
        return DataSet(
            found or statistics(store, chosen), store.ratings[chosen], store.lengths[chosen]
        )


def dataset_pictures(sets: Mapping[str, DataSet], rules: Rules) -> list[Picture]:
    """Draw all pictures for which there are data; `sets` by their names."""
    makers: Sequence[Callable[[Mapping[str, DataSet]], Picture | None]] = (
        results_picture,
        ratings_picture,
        lengths_picture,
        time_controls_picture,
        endings_picture,
        players_picture,
        activity_picture,
        years_picture,
    )
    made = [make(sets) for make in makers]
    made.append(first_moves_picture(sets, rules))
    return [found for found in made if found is not None]


def results_picture(sets: Mapping[str, DataSet]) -> Picture | None:
    """Results of the games for the first player (figure 7)."""
    counts = {
        name: [c for c in shown.statistics.results if c.name != "unknown" or c.games]
        for name, shown in sets.items()
    }
    return _bars(
        counts,
        "results",
        "Results",
        "Results of the games, in per cent of each set.",
    )


def time_controls_picture(sets: Mapping[str, DataSet]) -> Picture | None:
    """Time controls, most common first (figure 8); None if no game has one."""
    counts = {name: shown.statistics.time_controls for name, shown in sets.items()}
    if not any(c.name for found in counts.values() for c in found):
        return None
    return _bars(
        {name: _most(found) for name, found in counts.items()},
        "time-controls",
        "Time controls",
        "Time controls as written in the games (seconds + increment), in per cent of each set.",
    )


def endings_picture(sets: Mapping[str, DataSet]) -> Picture | None:
    """Reasons for the end of the games; None if no game has one."""
    counts = {name: shown.statistics.endings for name, shown in sets.items()}
    if all(c.name == "unknown" for found in counts.values() for c in found):
        return None
    return _bars(
        {name: _most(found) for name, found in counts.items()},
        "endings",
        "Endings",
        "Reasons for the end of the games, in per cent of each set.",
    )


def years_picture(sets: Mapping[str, DataSet]) -> Picture | None:
    """Games of each year; None if no game has a date."""
    by_set = {
        name: [(int(c.name), c.games) for c in shown.statistics.years]
        for name, shown in sets.items()
    }
    by_set = {name: years for name, years in by_set.items() if years}
    if not by_set:
        return None
    first = min(year for years in by_set.values() for year, _ in years)
    last = max(year for years in by_set.values() for year, _ in years)
    figure = new_figure(9, 3.6)
    axis = figure.subplots()
    width = 0.86 / len(by_set)
    for k, (name, years) in enumerate(by_set.items()):
        at = np.array([year for year, _ in years]) - 0.43 + width * (k + 0.5)
        axis.bar(
            at, [games for _, games in years], width, label=printable(name, 40),
            color=SERIES[k % len(SERIES)], hatch=HATCHES[k % len(HATCHES)], edgecolor="white",
            linewidth=0.2,
        )  # fmt: skip
    axis.set(xlabel="year", ylabel="games", xlim=(first - 0.7, last + 0.7))
    axis.locator_params(integer=True)
    by_thousands(axis.yaxis)
    tidy(axis, "y")
    _legend(axis, by_set)
    return picture(figure, "years", "Years", f"Games by year, {first} to {last}.")


def ratings_picture(sets: Mapping[str, DataSet]) -> Picture | None:
    """Ratings of the players, one entry for each player of each game ([CrazyAra-preprint] figure 8, [Xiangqi-thesis] figure 4.1)."""
    known = {name: shown.ratings[shown.ratings != NO_RATING] for name, shown in sets.items()}
    known = {name: values for name, values in known.items() if len(values)}
    if not known:
        return None
    low = min(int(v.min()) for v in known.values()) // RATING_BIN * RATING_BIN
    high = max(int(v.max()) for v in known.values()) + RATING_BIN
    descriptions = []
    for name, values in known.items():
        ratings = sets[name].statistics.ratings["game"].numbers
        missing = sets[name].statistics.rating_missing
        mean = float(values.mean()) if ratings.mean is None else ratings.mean
        descriptions.append(
            f"{name}: mean of a game {mean:,.0f}, missing in {missing:.1%} of the games"
        )
    return _histogram(
        known,
        np.arange(low, high + RATING_BIN, RATING_BIN),
        "ratings",
        "Ratings",
        "rating",
        "players of games, %",
        "Ratings of both players of each game. " + "; ".join(descriptions) + ".",
    )


def lengths_picture(sets: Mapping[str, DataSet]) -> Picture | None:
    """Length of the games in plies."""
    values = {name: shown.lengths for name, shown in sets.items() if len(shown.lengths)}
    if not values:
        return None
    longest = max(float(np.quantile(v, 0.995)) for v in values.values())
    bins = np.arange(0, longest + 2 * LENGTH_BIN, LENGTH_BIN)
    means = "; ".join(
        f"{name}: mean {v.mean():.1f}, least {v.min():,}, most {v.max():,}"
        for name, v in values.items()
    )
    return _histogram(
        values,
        bins,
        "lengths",
        "Length of games",
        "plies",
        "games, %",
        f"Plies of the games ({means}); the last bar includes all longer games.",
    )


def players_picture(sets: Mapping[str, DataSet]) -> Picture | None:
    """The most active players, with a panel for each set (figure 6)."""
    shown = {n: s.statistics for n, s in sets.items() if s.statistics.top_players}
    if not shown:
        return None
    most = max(len(found.top_players) for found in shown.values())
    figure = new_figure(5.6 * len(shown) + 1, 0.24 * most + 1.5)
    for axis, (name, found) in zip(
        figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True
    ):
        players = found.top_players
        at = np.arange(len(players))
        axis.barh(at, [p.games for p in players], color=BLUE, height=0.72)
        for k, player in enumerate(players):
            axis.text(player.games, k, f" {player.games:,}", va="center", fontsize=8, color=GREY)
        names = [
            printable(p.name, 28) if is_printable(p.name) else f"player {k + 1}"
            for k, p in enumerate(players)
        ]
        axis.set_yticks(at, names, fontsize=8)
        axis.set_ylim(most - 0.4, -0.6)  # bars as high as in the other panels
        axis.margins(x=0.14)
        axis.set_xlim(left=0)
        axis.set_xlabel("games")
        axis.locator_params("x", integer=True)
        by_thousands(axis.xaxis)
        axis.set_title(
            printable(f"{name}: in {found.top_players_share:.2%} of the games", 70),
            fontsize=10,
        )
        tidy(axis, "x")
    caption = "; ".join(
        f"{name}: the {len(found.top_players)} most active players take part in "
        f"{found.top_players_share:.2%} of the games ({', '.join(p.name for p in found.top_players)})"
        for name, found in shown.items()
    )
    return picture(figure, "players", "Most active players", caption + ".")


def activity_picture(sets: Mapping[str, DataSet]) -> Picture | None:
    """Share of games with one of the most active fifth of the players ([Xiangqi-thesis] figure 4.2)."""
    shown = {n: s.statistics for n, s in sets.items() if s.statistics.top_fifth_players}
    counts: dict[str, list[Count]] = {}
    for name, found in shown.items():
        share = found.top_fifth_share
        named = found.games - found.nameless
        games = round(share * named)
        counts[name] = [
            Count("an active player plays", games, share),
            Count("none plays", named - games, 1 - share),
        ]
    caption = "; ".join(
        f"{name}: one of the {found.top_fifth_players:,} most active players, a fifth of all, "
        f"takes part in {found.top_fifth_share:.2%} of the games"
        for name, found in shown.items()
    )
    return _bars(counts, "activity", "Activity of the players", caption + ".")


def first_moves_picture(sets: Mapping[str, DataSet], rules: Rules) -> Picture | None:
    """The most common first moves, as bars and on the board ([Xiangqi-thesis] figures 5.3 and 5.4)."""
    shown = {n: s.statistics.first_moves[:SHOWN_MOVES] for n, s in sets.items()}
    shown = {name: moves for name, moves in shown.items() if moves}
    if not shown:
        return None
    height = min(6.0, max(3.2, 4.2 * height_of_width(rules.spec)))
    figure = new_figure(9.5, height * len(shown) + 0.3)
    start = rules.position()
    for (axis, bars), (name, moves) in zip(
        figure.subplots(len(shown), 2, squeeze=False, width_ratios=[1, 1.15]),
        shown.items(),
        strict=True,
    ):
        most = max(move.share for move in moves)
        draw_board(axis, rules, start, arrows=_arrows(rules, moves, most))
        at = np.arange(len(moves))
        bars.barh(at, [100 * move.share for move in moves], color=BLUE, height=0.65)
        for k, move in enumerate(moves):
            score = "" if move.score is None else f", scores {100 * move.score:.1f} %"
            bars.text(100 * move.share, k, f" {100 * move.share:.2f} %{score}", va="center",
                      fontsize=9)  # fmt: skip
        bars.set_yticks(at, [printable(move.move) for move in moves], fontsize=10)
        bars.invert_yaxis()
        shares_axis(bars, 165 * most)
        bars.set_xlabel("games, %")
        bars.set_title(printable(name, 60), fontsize=10)
        tidy(bars, "x")
    return picture(
        figure,
        "first-moves",
        "First moves",
        f"The {SHOWN_MOVES} most common first moves and their share of the games, with the mean "
        "result for the first player (won 100 %, drawn 50 %).",
    )


def _arrows(rules: Rules, moves: Sequence[FirstMove], most: float) -> list[Arrow]:
    legal = {rules.uci(move): move for move in rules.legal_moves(rules.position()).tolist()}
    return [Arrow(legal[move.uci], move.share / most) for move in moves if move.uci in legal]


def _most(counts: Sequence[Count]) -> list[Count]:
    """The most common entries, and one entry for all others."""
    named = [c if c.name else Count("(not given)", c.games, c.share) for c in counts[:MOST_NAMES]]
    rest = counts[MOST_NAMES:]
    if rest:
        games, share = sum(c.games for c in rest), sum(c.share for c in rest)
        named.append(Count(f"{len(rest)} others", games, share))
    return named


def _bars(
    counts: Mapping[str, Sequence[Count]],
    name: str,
    title: str,
    caption: str,
) -> Picture | None:
    """Draw groups of bars from top to bottom, with a bar for each set in each group."""
    names = list(dict.fromkeys(c.name for found in counts.values() for c in found))
    if not names or not any(c.games for found in counts.values() for c in found):
        return None
    figure = new_figure(8, max(2.2, (0.24 * len(counts) + 0.16) * len(names) + 1.1))
    axis = figure.subplots()
    width = 0.8 / len(counts)
    for k, (label, found) in enumerate(counts.items()):
        shares = {c.name: c for c in found}
        at = np.arange(len(names)) - 0.4 + width * (k + 0.5)
        values = [100 * shares[n].share if n in shares else 0.0 for n in names]
        axis.barh(
            at, values, width * 0.92, label=printable(label, 40),
            color=SERIES[k % len(SERIES)], hatch=HATCHES[k % len(HATCHES)], edgecolor="white",
            linewidth=0.3,
        )  # fmt: skip
        for y, value, what in zip(at, values, names, strict=True):
            games = shares[what].games if what in shares else 0
            if games or len(counts) == 1:
                text = f" {value:.2f} %  ({games:,})"
                axis.text(value, y, text, va="center", fontsize=8, color=GREY)
    axis.set_yticks(np.arange(len(names)), [printable(n, 32) for n in names])
    axis.invert_yaxis()
    axis.set_xlabel("games, %")
    longest = max(100 * c.share for found in counts.values() for c in found)
    shares_axis(axis, 1.3 * longest)
    tidy(axis, "x")
    _legend(axis, counts)
    return picture(figure, name, title, caption)


def _histogram(
    values: Mapping[str, NDArray[Any]],
    bins: NDArray[Any],
    name: str,
    title: str,
    xlabel: str,
    ylabel: str,
    caption: str,
) -> Picture:
    """Draw one panel for each set, on the same axis of values. The last bin has all greater values."""
    figure = new_figure(8.5, 2.3 * len(values) + 0.7)
    axes = figure.subplots(len(values), 1, sharex=True, squeeze=False)[:, 0]
    for k, (axis, (label, found)) in enumerate(zip(axes, values.items(), strict=True)):
        axis.hist(
            np.minimum(found, bins[-1]), bins, weights=np.full(len(found), 100 / len(found)),
            color=SERIES[k % len(SERIES)], edgecolor="white", linewidth=0.4,
        )  # fmt: skip
        mean = float(found.mean())
        axis.axvline(mean, color="black", linewidth=1.2, linestyle="--")
        axis.text(
            0.99, 0.93, f"{printable(label, 40)}\nmean {mean:,.1f}", transform=axis.transAxes,
            ha="right", va="top", fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
        )  # fmt: skip
        axis.set_ylabel(ylabel)
        tidy(axis, "y")
    axes[-1].set_xlabel(xlabel)
    return picture(figure, name, title, caption)


def _legend(axis: Axes, sets: Mapping[str, Any]) -> None:
    if len(sets) > 1:
        axis.legend(frameon=True, framealpha=0.9, edgecolor="none", fontsize=9, loc="best")
