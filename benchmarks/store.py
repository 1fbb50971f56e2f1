"""Size and speed of a game store: bytes a ply by block, time to load, to replay, to write.

    python benchmarks/store.py games.store

Prints a table, or JSON with --json. Times are processor time, the best of several runs; the targets are those of
docs/store-format.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from variant_ai.cli.common.ending import run_script
from variant_ai.core.data.store.game_store import Store, StoreWriter

BYTES_TARGET = 1.7
LOAD_TARGET_S = 1.0


def best(runs: int, work: Callable[[], Any]) -> float:
    """Return the minimum processor time of `work` in seconds (without waiting for the disk)."""
    times = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def arrays(path: Path) -> None:
    store = Store(path)
    _ = store.codes, store.offsets, store.results, store.years, store.start_of


def measure(path: Path, runs: int, replayed: int) -> dict[str, Any]:
    store = Store(path)
    plies, games = store.plies, len(store)
    blocks = {"moves": 0, "facts": 0, "searches": 0, "notes": 0}
    for shard in store.shards:
        for name, block in zip(
            blocks, (shard.move, shard.fact, shard.root, shard.note), strict=True
        ):
            blocks[name] += 0 if block is None else block.length
    blocks["heads"] = store.info.bytes - sum(blocks.values())
    some = range(min(replayed, games))
    some_plies = int(store.offsets[len(some)])
    records = list(store.games(some))
    store.codec.encode(None, [])  # both calls compile code, or load it, once

    def copy() -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            StoreWriter(Path(folder) / "copy.store", store.spec) as writer,
        ):
            writer.copy(store)

    def add() -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            StoreWriter(Path(folder) / "new.store", store.spec, codec=store.codec) as writer,
        ):
            for record in records:
                writer.add(record)

    return {
        "store": str(path),
        "games": games,
        "plies": plies,
        "bytes": store.info.bytes,
        "bytes_per_ply": store.info.bytes / plies,
        "bytes_per_ply_by_block": {name: size / plies for name, size in blocks.items()},
        "open_s": best(runs, lambda: Store(path)),
        "arrays_s": best(runs, lambda: arrays(path)),
        "facts_s": best(runs, lambda: list(Store(path).facts())),
        "verify_s": best(1, lambda: Store(path).verify()),
        "copy_s": best(1, copy),
        "replay_us_per_ply": best(1, lambda: list(store.games(some))) / some_plies * 1e6,
        "add_us_per_ply": best(1, add) / some_plies * 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--replayed", type=int, default=1000, help="games replayed and written")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measure(given.store, given.runs, given.replayed)
    if given.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{found['store']}: {found['games']:,} games, {found['plies']:,} plies")
    rows = [
        ("bytes a ply", found["bytes_per_ply"], f"at most {BYTES_TARGET} for games without scores")
    ]
    rows += [(f"  {n}", v, "") for n, v in found["bytes_per_ply_by_block"].items()]
    rows += [
        ("open, s", found["open_s"], ""),
        ("open and read arrays, s", found["arrays_s"], f"well under {LOAD_TARGET_S}"),
        ("open and read names, s", found["facts_s"], ""),
        ("verify every byte, s", found["verify_s"], ""),
        ("copy the whole store, s", found["copy_s"], ""),
        ("replay to move integers, us a ply", found["replay_us_per_ply"], ""),
        ("encode and write games, us a ply", found["add_us_per_ply"], ""),
    ]
    for name, value, target in rows:
        print(f"{name:<36} {value:>9.4f}  {target}".rstrip())


if __name__ == "__main__":
    run_script(main)
