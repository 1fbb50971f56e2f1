"""Numbers of a generation: what its games were like; and their curves over the generations of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from variant_ai.core.data.game_record import TRAINS_POLICY, TRAINS_VALUE, GameRecord
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.train.measure.metric_tables import TITLES
from variant_ai.core.train.pictures.canvas import (
    BLUE,
    GREEN,
    GREY,
    SERIES,
    VERMILION,
    Picture,
    by_thousands,
    generations_axis,
    new_figure,
    picture,
    printable,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ADVISED_GENERATION = 3
"""By this generation random weights are no longer the cause."""
MOSTLY_DRAWN = 0.95
SAMPLED_GAMES = 100
"""Games that are replayed to count distinct positions."""
Row = Mapping[str, Any]
"""Numbers of a generation."""
Points = list[tuple[float, float]]
"""(generation, number), in order."""
KINDS = 6
"""Kinds of ends that have a colour of their own; the rarer ones share grey."""


def summarise_games(
    games: Sequence[GameRecord], rules: Rules, root_value_share: float, draw_value: float = 0.0
) -> dict[str, Any]:
    """Count what happened in the games of a generation. Shares are in [0, 1].

    root_value_share: λ of the value target, for `zero_value_loss`, the mean square of the target: a
    net that always answers 0 has this loss. draw_value: target of a drawn game for both sides.
    """
    plies = [record.plies for record in games]
    results = Counter(record.result for record in games)
    ends = Counter(record.termination for record in games)
    entropy: list[float] = []
    squares: list[float] = []
    for record in games:
        outcome = float(record.value or 0)
        first = int(rules.position(record.start_fen)["side"][0])
        for ply, bits in enumerate(record.trains or ()):
            if bits & TRAINS_POLICY and record.visits and record.visits[ply]:
                weights = np.array([weight for _, weight in record.visits[ply]], np.float64)
                weights = weights[weights > 0] / weights.sum()
                entropy.append(float(-(weights * np.log(weights)).sum()))
            root = record.root_values[ply] if record.root_values else None
            mover = outcome if (ply + first) % 2 == 0 else -outcome
            if outcome == 0:
                mover = draw_value
            if root is None:
                target = mover
            elif bits & TRAINS_VALUE:
                target = (1 - root_value_share) * mover + root_value_share * root
            else:
                target = root
            if bits:
                squares.append(target * target)
    return {
        "games": len(games),
        "positions": len(squares),
        "plies": _mean(plies),
        "longest": max(plies, default=0),
        "first_player_wins": results["1-0"] / max(1, len(games)),
        "second_player_wins": results["0-1"] / max(1, len(games)),
        "draws": results["1/2-1/2"] / max(1, len(games)),
        "ends": dict(ends.most_common()),
        "policy_entropy": _mean(entropy),
        "zero_value_loss": _mean(squares),
        "distinct_positions": _distinct(games[:SAMPLED_GAMES], rules),
    }


def advice_on(row: Mapping[str, Any], scattered_share: float) -> str:
    """Return what to change if hardly a game of the first generations was won; empty if there is nothing.

    row: numbers of a generation. scattered_share: `variety.scattered_share` of the run.
    """
    if row["generation"] != ADVISED_GENERATION or row["draws"] < MOSTLY_DRAWN or scattered_share:
        return ""
    return (
        f"{100 * row['draws']:.0f} % of the games were not won, so there is hardly a result to learn from. If this goes on, "
        "begin another run with --set variety.scattered_share=0.5: half of its games start with the "
        "pieces on random squares (docs/self-play.md, If draws or repetition take over)"
    )


def _distinct(games: Sequence[GameRecord], rules: Rules) -> float:
    """Share of distinct positions after the openings of these games."""
    keys: list[int] = []
    for record in games:
        game = Game(rules, record.start_fen)
        for ply, move in enumerate(record.moves):
            if ply >= record.opening_plies:
                keys.append(int(game.positions[-1]["key"][0]))
            game.push(move)
    return len(set(keys)) / len(keys) if keys else 0.0


def _mean(numbers: Sequence[float]) -> float:
    return float(np.mean(numbers)) if len(numbers) else 0.0


def learning_picture(rows: Sequence[Row]) -> Picture:
    """Losses of the learner, each beside what it is compared with."""
    figure = new_figure(11, 3.9)
    policy, value = figure.subplots(1, 2)
    _line(policy, points(rows, _trained("policy_loss")), TITLES["policy_loss"], BLUE)
    entropy = points(rows, lambda row: row["policy_entropy"])
    _line(policy, entropy, "entropy of the targets", GREY, dashed=True)
    policy.set_ylabel("policy, nats")
    _line(value, points(rows, _trained("value_loss")), TITLES["value_loss"], VERMILION)
    zero = points(rows, lambda row: row["zero_value_loss"])
    _line(value, zero, "loss of always 0", GREY, dashed=True)
    value.set_ylabel("value, squared error")
    _finish((policy, value), rows, legends=(policy, value))
    _from_zero(policy)
    _from_zero(value)
    return picture(
        figure,
        "generations-learning",
        "Losses",
        "Left: the policy loss in the training of each generation, and the entropy of the searches' "
        "targets in its new games, which a perfect net would reach. Right: the value loss, and that "
        "of a net that always answers 0; a value that has learnt something is below.",
    )


def games_picture(rows: Sequence[Row]) -> Picture:
    """Games of each generation: results, kinds of ends, lengths, distinct positions."""
    figure = new_figure(11, 7.4)
    (results, ends), (length, distinct) = figure.subplots(2, 2)
    names = ("first_player_wins", "draws", "second_player_wins")
    shares = {name.replace("_", " "): [100 * row[name] for row in rows] for name in names}
    _stack(results, rows, shares, (BLUE, GREY, VERMILION))
    results.set_ylim(0, 100)
    results.set_ylabel("results, % of the games")
    kinds = end_shares(rows)
    others = [GREY] * ("others" in kinds)
    _stack(ends, rows, kinds, (*SERIES[: len(kinds) - len(others)], *others))
    ends.set_ylim(0, 100)
    ends.set_ylabel("ends, % of the games")
    _line(length, points(rows, lambda row: row["plies"]), "mean", BLUE)
    longest = points(rows, lambda row: row["longest"])
    _line(length, longest, "longest game", GREY, dashed=True)
    length.set_ylabel("plies of a game")
    _line(distinct, points(rows, lambda row: 100 * row["distinct_positions"]), "", GREEN)
    distinct.set_ylabel("distinct positions, %")
    distinct.set_ylim(0, 103)
    _finish((results, ends, length, distinct), rows, legends=(length,))
    _from_zero(length)
    return picture(
        figure,
        "generations-games",
        "Games",
        "Results and kinds of ends as shares of the games, the lengths of games, and the share of "
        "positions after the openings that are different from all others in a sample of the games.",
    )


def speed_picture(rows: Sequence[Row]) -> Picture:
    """Speed of self-play, CPU time of each step, memory."""
    figure = new_figure(11, 7.4)
    (games, evaluations), (cpu, memory) = figure.subplots(2, 2)
    _line(games, points(rows, lambda row: _rate(row, row["games"])), "", BLUE)
    games.set_ylabel("games a second")
    _line(evaluations, evaluation_rates(rows), "", BLUE)
    evaluations.set_ylabel("evaluations a second")
    spent = cpu_minutes(rows)
    _stack(cpu, rows, spent, (BLUE, VERMILION, GREEN))
    cpu.set_ylabel("CPU minutes of a generation")
    _line(memory, points(rows, lambda row: row.get("memory_mb")), "", GREY)
    memory.set_ylabel("memory, MB")
    _finish((games, evaluations, cpu, memory), rows)
    for axis in (games, evaluations, memory):
        _from_zero(axis)
    return picture(
        figure,
        "generations-speed",
        "Speed, CPU time and memory",
        "Games and evaluations a second while games are played, CPU time of each step of a "
        "generation, and the resident memory of the process at its end.",
    )


# --- numbers of rows -----------------------------------------------------------------------------


def points(rows: Sequence[Row], number: Callable[[Row], float | None]) -> Points:
    """Return a number over the generations, without those where it is None."""
    found = ((row["generation"], number(row)) for row in rows)
    return [(generation, value) for generation, value in found if value is not None]


def evaluation_rates(rows: Sequence[Row]) -> Points:
    """Evaluations a second of each generation. Rows count evaluations since the start of the run."""
    before = [{"evaluations": 0, "generation": 0}, *rows]
    rates = []
    for earlier, row in pairwise(before):
        if row["generation"] == earlier["generation"] + 1:
            rate = _rate(row, row["evaluations"] - earlier["evaluations"])
            if rate is not None:
                rates.append((row["generation"], rate))
    return rates


def cpu_minutes(rows: Sequence[Row]) -> dict[str, list[float]]:
    """CPU minutes of each generation: self-play, training, and the rest, mostly matches."""
    spent: dict[str, list[float]] = {"self-play": [], "training": [], "matches and the rest": []}
    before = 0.0
    for row in rows:
        play, learn = row["play_cpu"] / 60, row["learn_cpu"] / 60
        rest = max(0.0, row["cpu_minutes"] - before - play - learn)
        before = row["cpu_minutes"]
        for name, minutes in zip(spent, (play, learn, rest), strict=True):
            spent[name].append(minutes)
    return spent


def end_shares(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Share of each kind of end over the generations, in per cent, the most frequent kind first; the
    rarest ones are added up as `others`."""
    totals: dict[str, int] = {}
    for row in rows:
        for kind, count in row["ends"].items():
            totals[kind] = totals.get(kind, 0) + count
    ranked = sorted(totals, key=lambda kind: -totals[kind])
    kept = ranked if len(ranked) <= KINDS else ranked[: KINDS - 1]
    shares = {
        kind: [100 * row["ends"].get(kind, 0) / max(1, row["games"]) for row in rows]
        for kind in kept
    }
    if len(kept) < len(ranked):
        shares["others"] = [
            max(0.0, 100 - sum(series[at] for series in shares.values())) for at in range(len(rows))
        ]
    return shares


def _trained(name: str) -> Callable[[Row], float | None]:
    return lambda row: (row.get("train") or {}).get(name)


def _rate(row: Row, count: float) -> float | None:
    """So many a second of self-play; None for a generation that was played before a resume."""
    seconds = row.get("playing_seconds", row["play_seconds"])  # older runs have only the latter
    return count / seconds if seconds > 0.01 else None


# --- drawing -------------------------------------------------------------------------------------


def _line(axis: Axes, drawn: Points, label: str, colour: str, *, dashed: bool = False) -> None:
    if not drawn:
        return
    axis.plot(
        *zip(*drawn, strict=True),
        label=label,
        color=colour,
        linewidth=1.5,
        linestyle=(0, (4, 2)) if dashed else "solid",
        marker="o" if len(drawn) <= 30 else None,
        markersize=3.5,
    )


def _stack(
    axis: Axes, rows: Sequence[Row], parts: Mapping[str, Sequence[float]], colours: Sequence[str]
) -> None:
    """Draw parts on top of each other, a bar for each generation."""
    generations = [row["generation"] for row in rows]
    base = [0.0] * len(rows)
    for (name, heights), colour in zip(parts.items(), colours, strict=True):
        axis.bar(
            generations, heights, width=1.0, bottom=base, label=printable(name, 30),
            color=colour, alpha=0.8, linewidth=0,
        )  # fmt: skip
        base = [low + height for low, height in zip(base, heights, strict=True)]
    axis.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9,
        handlelength=1.2, columnspacing=1.2,
    )  # fmt: skip


def _finish(axes: Sequence[Axes], rows: Sequence[Row], legends: Sequence[Axes] = ()) -> None:
    """Label the axes, and show the same generations on all of them."""
    first, last = rows[0]["generation"], rows[-1]["generation"]
    for axis in axes:
        tidy(axis, "y" if axis.containers else "both")
        generations_axis(axis)
        axis.set_xlim(first - 0.5, last + 0.5)
        if axis.get_ylim()[1] >= 1000:
            by_thousands(axis.yaxis)
    for axis in legends:
        axis.legend(framealpha=0.8, edgecolor="none", fontsize=9)


def _from_zero(axis: Axes) -> None:
    """Begin the axis at 0, with some room above the greatest number."""
    greatest = float(max((np.max(line.get_ydata()) for line in axis.lines), default=0.0))
    axis.set_ylim(0, 1.12 * greatest or 1.0)
