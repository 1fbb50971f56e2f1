"""Import all master games in Big5 and compare every one with another converter's moves.

    python benchmarks/import_masters.py [--workers N]

Prints wall time, processor time of all processes, and the number of equal games. Reads the archive
and `masters.jsonl.zst` from `../shared/data/xiangqi`.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import time
from functools import partial
from pathlib import Path

import zstandard

from variant_ai.cli.common.ending import run_script
from variant_ai.cli.common.options import make_resolver
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.importer import Importer
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.text.notation import uci
from variant_ai.plugins import registry

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "xiangqi"


class Moves:
    """Sink that keeps the moves of each game in UCI, by the member of the archive."""

    def __init__(self, types: PieceTypes) -> None:
        self.types = types
        self.games: dict[str, str] = {}

    def add(self, record: GameRecord) -> None:
        member = record.source.split("!", 1)[1]
        self.games[member] = " ".join(uci(self.types, 9, move) for move in record.moves)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--workers", type=int, default=2)
    chosen = options.parse_args()
    files = DATA / "masters-pgn-big5.tar.xz", DATA / "masters.jsonl.zst"
    for file in files:
        if not file.exists():
            raise SystemExit(f"{file} does not exist; docs/data.md says where the games come from")
    spec = registry().variant("xiangqi")
    moves = Moves(PieceTypes(spec))
    importer = Importer(
        list(registry().readers(spec).values()),
        partial(make_resolver, spec),
        workers=chosen.workers,
    )
    started = time.monotonic()
    report = importer.run([DATA / "masters-pgn-big5.tar.xz"], moves)
    wall = time.monotonic() - started
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(one.ru_utime + one.ru_stime for one in usage)
    print(f"{report.games:,} games, {report.plies:,} plies; skipped: {dict(report.skipped)}")
    print(f"{wall:.1f} s with {chosen.workers} workers, {processor:.1f} s of processor time")
    equal = different = 0
    with (DATA / "masters.jsonl.zst").open("rb") as packed:
        for line in io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(packed), "utf-8"):
            game = json.loads(line)
            same = moves.games.get(game["path"]) == game["moves"]
            equal, different = equal + same, different + (not same)
    print(f"{equal:,} games equal move for move, {different:,} differ")
    return 1 if different else 0


if __name__ == "__main__":
    run_script(main)
