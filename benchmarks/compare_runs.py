"""Runs of self-play on one scale: nets of all runs meet each other, at equal nodes.

    python benchmarks/compare_runs.py runs/gumbel runs/puct --nodes 16 --games 40 --picture runs.svg

The ladder of a run measures its nets against each other, so the ladders of two runs cannot be compared.
Here nets of every run, evenly spread over its generations, play each net of all other runs with the same
search. The table has the Elo of each net above generation 0 of the first run, and what its run had spent.
"""

from __future__ import annotations

import argparse
import itertools
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from variant_ai.cli.common.console import print_table
from variant_ai.cli.common.ending import run_script
from variant_ai.core.arena.tables.elo import Tally, fit
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.games.game_supply import open_net
from variant_ai.core.reinforce.ladder.net_match import play_match
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder
from variant_ai.core.reinforce.reinforce_settings import SearchChoice
from variant_ai.core.train.pictures.canvas import new_figure, series, tidy
from variant_ai.plugins import registry


@dataclass(frozen=True)
class Entrant:
    """A net that takes part."""

    run: int
    generation: int
    evaluations: int
    """Positions that self-play of its run had evaluated."""
    cpu_minutes: float
    net: Evaluator


def entrants(run: int, folder: ReinforceFolder, count: int, opened: ExitStack) -> list[Entrant]:
    """Nets of a run, evenly spread over its generations."""
    settings, rows = folder.settings(), folder.rows()
    spec = registry().variant(settings.variant)
    chosen = np.unique(np.linspace(0, len(rows), count).round().astype(int))
    found = []
    for generation in chosen.tolist():
        net = opened.enter_context(closing(open_net(spec, folder.net(generation), settings)))
        row = rows[generation - 1] if generation else {"evaluations": 0, "cpu_minutes": 0.0}
        found.append(Entrant(run, generation, int(row["evaluations"]), row["cpu_minutes"], net))
    return found


def main() -> None:
    """Play the matches, print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--nets", type=int, default=5, help="nets of each run")
    parser.add_argument("--nodes", type=int, default=16, help="0: the raw policy")
    parser.add_argument("--games", type=int, default=40, help="of each pair")
    parser.add_argument("--opening-plies", type=int, default=4)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    folders = [ReinforceFolder(path) for path in given.runs]
    spec = registry().variant(folders[0].settings().variant)
    with ExitStack() as opened:
        nets = [
            one
            for run, folder in enumerate(folders)
            for one in entrants(run, folder, given.nets, opened)
        ]
        results = [[Tally(0, 0, 0)] * len(nets) for _ in nets]
        for (i, one), (j, other) in itertools.combinations(enumerate(nets), 2):
            if one.run != other.run:
                results[i][j] = play_match(
                    spec,
                    one.net,
                    other.net,
                    games=given.games,
                    nodes=given.nodes,
                    opening_plies=given.opening_plies,
                    max_plies=folders[0].settings().variety.max_plies,
                    seed=i * len(nets) + j,
                    search=SearchChoice(),
                ).tally
    ratings = fit(results)
    elo = [float(rating - ratings.elo[0]) for rating in ratings.elo]
    errors = [ratings.error(index) for index in range(len(nets))]
    print_table(
        ["run", "generation", "evaluations", "CPU min", "Elo", "±"],
        [
            [
                given.runs[one.run].name,
                one.generation,
                f"{one.evaluations:,}",
                f"{one.cpu_minutes:.1f}",
                f"{value:+.0f}",
                f"{error:.0f}",
            ]
            for one, value, error in zip(nets, elo, errors, strict=True)
        ],
    )
    if given.picture is not None:
        figure = new_figure(8, 5)
        axes = figure.subplots()
        for run, path in enumerate(given.runs):
            own = [index for index, one in enumerate(nets) if one.run == run]
            axes.errorbar(
                [nets[index].evaluations / 1e6 for index in own],
                [elo[index] for index in own],
                yerr=[errors[index] for index in own],
                label=path.name,
                capsize=2,
                **series(run),
            )
        axes.set_xlabel("million positions evaluated by self-play")
        axes.set_ylabel("Elo above the untrained net, with 95 % interval")
        axes.legend()
        tidy(axes)
        figure.savefig(given.picture, metadata={"Date": None})


if __name__ == "__main__":
    run_script(main)
