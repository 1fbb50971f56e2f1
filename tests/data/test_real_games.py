"""Real games: read completely, and move for move as somebody else's converter read them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import zstandard
from importing import fresh_resolver, moves, spec

from variant_ai.cli.common.options import make_resolver
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.importer import Importer
from variant_ai.plugins import registry

MASTERS = 2000
"""Games of the archive compared; `benchmarks/import_masters.py` compares all."""


class Kept(list[GameRecord]):
    add = list.append


def _master_resolver() -> object:
    return make_resolver(spec("xiangqi"))


def _imported(variant: str, path: Path, limit: int = 10**9) -> tuple[Kept, dict[str, int]]:
    kept = Kept()
    made = Importer(
        list(registry().readers(spec(variant)).values()),
        fresh_resolver if variant == "crazyhouse" else _master_resolver,  # type: ignore[arg-type]
        stop=lambda: len(kept) >= limit,
    )
    report = made.run([path], kept)
    return kept, dict(report.skipped)


def test_crazyhouse_games_of_strong_players(shared_data: Path) -> None:
    games, skipped = _imported("crazyhouse", shared_data / "crazyhouse" / "human-2200plus.pgn")
    assert len(games) == 1291
    assert not skipped
    assert min(min(game.white_elo or 0, game.black_elo or 0) for game in games) >= 2200


def test_xiangqi_games_with_iccs_digits(shared_data: Path) -> None:
    games, skipped = _imported("xiangqi", shared_data / "xiangqi" / "hu-ronghua-iccs.pgn.zip")
    assert len(games) == 1391
    assert not skipped


def _converted(path: Path) -> Iterator[dict[str, object]]:
    with path.open("rb") as packed:
        lines = zstandard.ZstdDecompressor().stream_reader(packed)
        for line in io.TextIOWrapper(lines, "utf-8"):
            yield json.loads(line)


def test_chinese_notation_in_big5(shared_data: Path) -> None:
    folder = shared_data / "xiangqi"
    games, skipped = _imported("xiangqi", folder / "masters-pgn-big5.tar.xz", MASTERS)
    assert not skipped
    wanted = {game.source.split("!", 1)[1]: game for game in games}
    same = [
        moves(wanted[path]) == game["moves"] and wanted[path].result in (game["result"], "*")
        for game in _converted(folder / "masters.jsonl.zst")
        if (path := str(game["path"])) in wanted
    ]
    assert len(same) == MASTERS
    assert all(same)
