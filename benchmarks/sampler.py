"""Speed of the sampler: encoded samples a second on one core, and its share of a training step.

    python benchmarks/sampler.py                          # random games of both variants
    python benchmarks/sampler.py xiangqi.vgs house.vgs    # games of stores
    python benchmarks/sampler.py --train-step             # and against a step of a net
    python benchmarks/sampler.py --visits 20              # and with the visits of searches as labels

Prints a table, or JSON with --json. Times are processor time, the best of several runs, so that
other work on the machine changes them little (except through memory bandwidth and caches). A sample
is a position found by the seeded permutation, replayed, and encoded with its action and value into a
batch that is reused.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from variant_ai.cli.common.ending import run_script
from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.visits import Visits
from variant_ai.core.encoding import Encoder, MoveCodec
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.position import Position
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec

TARGETS = {"xiangqi": 400_000}
"""Samples a second on one core."""
VARIANTS = ("xiangqi", "crazyhouse")


@dataclass
class Games:
    """Game store in memory."""

    codes: NDArray[np.uint16]
    offsets: NDArray[np.int64]
    results: NDArray[np.int8]
    starts: Position
    start_of: NDArray[np.int32]
    opening_plies: NDArray[np.int64]
    visits: Visits | None = None
    root_values: None = None
    scores: None = None
    trains: None = None


def random_games(spec: VariantSpec, games: int, plies: int, visited: int = 0) -> Store:
    """Return games of random moves, as long as master games, so that replay takes as long.

    visited: number of legal moves with visits at every ply.
    """
    rules, codec, rng = make_rules(spec), MoveCodec(spec), random.Random(0)
    start = rules.position()
    codes: list[NDArray[np.uint16]] = []
    choices: list[list[int]] = []
    for _ in range(games):
        position, moves = start, []
        for _ in range(plies):
            legal = rules.legal_moves(position)
            if not len(legal):
                break
            moves.append(int(legal[rng.randrange(len(legal))]))
            if visited:
                choices.append([codec.encode(position, int(m)) for m in legal[:visited]])
            position = rules.play(position, moves[-1])
        codes.append(codec.encode_game(rules, start, moves))
    offsets = np.cumsum([0, *map(len, codes)]).astype(np.int64)
    visits = None
    if visited:
        flat = np.array([code for listed in choices for code in listed], np.uint16)
        ends = np.cumsum([0, *map(len, choices)]).astype(np.int64)
        weights = np.random.default_rng(0).integers(1, 200, len(flat)).astype(np.uint16)
        visits = Visits(ends, flat, weights)
    made = Games(
        np.concatenate(codes),
        offsets,
        np.resize(np.array([1, -1, 0], np.int8), games),
        start,
        np.zeros(games, np.int32),
        np.zeros(games, np.int64),
        visits,
    )
    return cast("Store", made)


def best(runs: int, work: Callable[[], Any]) -> float:
    """Return the minimum processor time of `work` in seconds."""
    times = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def measure(
    spec: VariantSpec, games: Store, source: str, batch: int, runs: int, train_step: bool
) -> dict[str, Any]:
    encoder = Encoder(spec)
    begun = time.perf_counter()
    sampler = Sampler(games, encoder, batch=batch, seed=1, mirror=encoder.symmetric)
    ready = time.perf_counter() - begun
    out = sampler.new_batch()
    sampler.batch(0, out)
    steps = max(1, 8192 // batch)
    step = iter(range(1 << 40))

    def sample() -> None:
        for _ in range(steps):
            sampler.batch(next(step), out)

    def encode() -> None:
        for _ in range(steps):
            encoder.planes(out.positions, out.planes)

    sampled, encoded = best(runs, sample), best(runs, encode)
    target = TARGETS.get(spec.variant)
    rate = steps * batch / sampled
    if getattr(games, "visits", None) is not None:
        soft = Sampler(
            games, encoder, batch=batch, seed=1, mirror=encoder.symmetric, labels="visits"
        )
        room = soft.new_batch()
        soft.batch(0, room)

        def sample_visits() -> None:
            for _ in range(steps):
                soft.batch(next(step), room)

        with_visits = round(steps * batch / best(runs, sample_visits))
    else:
        with_visits = None
    row: dict[str, Any] = {
        "variant": spec.variant,
        "source": source,
        "positions": sampler.positions,
        "batch": batch,
        "ready_s": round(ready, 2),
        "samples_per_s": round(rate),
        "with_visits_per_s": with_visits,
        "encodings_per_s": round(steps * batch / encoded),
        "target_per_s": target,
        "ratio": round(rate / target, 2) if target else None,
    }
    if train_step:
        seconds = step_seconds(encoder, batch)
        row["step_s"] = round(seconds, 3)
        row["share_of_step"] = round(sampled / steps / seconds, 5)
    return row


def step_seconds(encoder: Encoder, batch: int) -> float:
    """Return the processor time of one step (forward, backward) of RISEv2 mobile with 5 blocks."""
    import torch

    from variant_ai.core.nets import configure_for

    net = configure_for("risev2-mobile", encoder, blocks=5).build()
    inputs = torch.rand(batch, *encoder.shape)
    actions = torch.randint(encoder.actions, (batch,))

    def step() -> None:
        value, logits = net(inputs)
        loss = torch.nn.functional.cross_entropy(logits, actions) + (value**2).mean()
        loss.backward()

    return best(2, step)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stores", nargs="*", type=Path, help="game stores; default: random games")
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 512, 1024])
    parser.add_argument("--games", type=int, default=4000, help="random games of each variant")
    parser.add_argument("--plies", type=int, default=90, help="plies of a random game")
    parser.add_argument(
        "--visits", type=int, default=0, help="moves with visits at each ply of random games"
    )
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--train-step", action="store_true", help="also measure a training step")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    listed: list[tuple[VariantSpec, Store, str]]
    if options.stores:
        listed = [(store.spec, store, str(store.path)) for store in map(Store, options.stores)]
    else:
        specs = [load_spec(builtin_specs()[name]) for name in VARIANTS]
        listed = [
            (
                spec,
                random_games(spec, options.games, options.plies, options.visits),
                f"{options.games} random games",
            )
            for spec in specs
        ]
    for spec, games, source in listed:
        for batch in options.batch:
            rows.append(measure(spec, games, source, batch, options.runs, options.train_step))
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    names = list(rows[0])
    cells = [[f"{v:,}" if isinstance(v, int) else str(v or "") for v in r.values()] for r in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    for line in [names, ["-" * width for width in widths], *cells]:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))


if __name__ == "__main__":
    run_script(main)
