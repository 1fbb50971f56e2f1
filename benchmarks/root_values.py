"""Values of self-play's searches, compared with a search of many more visits.

    python benchmarks/root_values.py -V crazyhouse --nodes 16 64

Positions are sampled from a store of games. For each of them the value that self-play stores (for the
side to move, by a Gumbel search with noise) is compared with the value of the best move after `--deep`
visits, and so is the net's value without a search. Printed are the mean difference and the root of the
mean square difference. Proven positions are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from variant_ai.cli.common.console import note
from variant_ai.cli.common.ending import run_script
from variant_ai.core.arena.games.openings import played_out, sampled_from_store
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.errors import DataError, SettingError
from variant_ai.core.inference.packaged_nets import first_file
from variant_ai.core.search.forest.forest_arrays import SEARCHING
from variant_ai.core.search.forest.forest_search import ForestSearch, ForestSettings
from variant_ai.core.search.forest.position_searches import analyse_many
from variant_ai.core.search.net_view import encoder_and_rules, with_last_moves
from variant_ai.core.search.settings import SearchParams
from variant_ai.plugins import registry

AT_ONCE = 64
"""Positions that are searched at once."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-V", "--variant", required=True)
    parser.add_argument("--store", type=Path, help="games; by default the variant's sample")
    parser.add_argument("--model", type=Path, help="net; by default the packaged one")
    parser.add_argument("--positions", type=int, default=512)
    parser.add_argument("--nodes", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--deep", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if min(given.positions, given.deep, *given.nodes) < 1:
        raise SettingError("--positions, --nodes and --deep must be 1 or more")
    spec = registry().variant(given.variant)
    rules = registry().rules(spec)
    entry = registry().entry_of(spec)
    store = given.store or (entry.sample if entry else None)
    model = given.model or first_file(registry().net_paths(spec))
    if store is None or model is None:
        raise DataError(f"{spec.variant} has no sample games or no net; give --store and --model")
    evaluator = registry().evaluator(spec, model, batch=AT_ONCE, log=note)
    chosen = sampled_from_store(Store(store, spec), rules, given.positions, (8, 150), given.seed)
    games = [played_out(rules, opening) for opening in chosen]
    encoder, seen = encoder_and_rules(evaluator, spec)
    positions = np.concatenate([with_last_moves(game, seen).position for game in games])
    raw = np.concatenate(
        [
            evaluator.evaluate(encoder.planes(positions[first : first + AT_ONCE])).value
            for first in range(0, len(games), AT_ONCE)
        ]
    )
    params = SearchParams.of(spec, look_for_mates=False)
    reports = list(analyse_many(spec, evaluator, games, params, nodes=given.deep))
    lines = [report.lines[0] for report in reports]
    deep = np.array([line.q for line in lines])
    open_ones = np.array([line.mate is None for line in lines])
    print(
        f"| value | positions | mean difference | root mean square |\n|{' --- |' + 3 * ' ---: |'}"
    )
    show("net, 1 visit", (raw - deep)[open_ones])
    for nodes in given.nodes:
        found = np.full(len(games), np.nan)
        searches = ForestSearch(spec, evaluator, ForestSettings(nodes=nodes), AT_ONCE)
        for first in range(0, len(games), AT_ONCE):
            for tree, game in enumerate(games[first : first + AT_ONCE]):
                searches.start(tree, game, first + tree, first + tree, moves=1)
            while (searches.states == SEARCHING).any():
                searches.step()
            for one in searches.entries():
                found[one.game] = one.root_value
        usable = open_ones & (np.abs(found) < 1)
        show(f"self-play, {nodes} visits", (found - deep)[usable])


def show(name: str, differences: np.ndarray) -> None:
    """Print a row."""
    spread = float(np.sqrt((differences**2).mean()))
    print(f"| {name} | {len(differences)} | {differences.mean():+.3f} | {spread:.3f} |", flush=True)


if __name__ == "__main__":
    run_script(main)
