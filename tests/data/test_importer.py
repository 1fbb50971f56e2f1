"""Importing as a whole: what is kept, what is dropped, in which order, and how it ends."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from importing import HOUSE, HOUSE_UCI, fresh_resolver, moves, resolver, spec

from variant_ai.core.data.filters import GameFilter
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read import importer as importer_module
from variant_ai.core.data.read.game_reader import Skip
from variant_ai.core.data.read.importer import Importer, ImportReport
from variant_ai.core.errors import DataError, MoveError
from variant_ai.plugins import registry


class Sink:
    """A store that keeps games in a list; `reject` may raise."""

    def __init__(self, reject: Callable[[GameRecord], None] = lambda game: None) -> None:
        self.games: list[GameRecord] = []
        self.reject = reject

    def add(self, record: GameRecord) -> bool | None:
        self.reject(record)
        self.games.append(record)


def _importer(**options: Any) -> Importer:
    options.setdefault("make_resolver", lambda: resolver("crazyhouse"))
    return Importer(list(registry().readers(spec("crazyhouse")).values()), **options)


def _run(paths: list[Path], **options: Any) -> tuple[list[GameRecord], ImportReport, list[Skip]]:
    skips: list[Skip] = []
    sink = Sink()
    report = _importer(on_skip=skips.append, **options).run(paths, sink)
    return sink.games, report, skips


def _numbered(count: int) -> str:
    return "\n".join(HOUSE.replace("Club evening", f"Evening {i}") for i in range(count))


def test_files_in_order_and_an_account_of_the_rest(tmp_path: Path) -> None:
    (tmp_path / "a.pgn").write_text(HOUSE + "\n" + HOUSE.replace("Qxd5", "Qxd4"))
    (tmp_path / "b.pgn.gz").write_bytes(gzip.compress(HOUSE.encode()))
    (tmp_path / "c.uci").write_text(HOUSE_UCI + "\n")
    (tmp_path / "d.pgn").write_text("")
    (tmp_path / "e.txt").write_text("Dear reader")
    (tmp_path / "f.pgn").write_text('[Variant "Atomic"]\n' + HOUSE)
    games, report, skips = _run([tmp_path])
    assert [Path(game.source).name for game in games] == ["a.pgn", "b.pgn.gz", "c.uci"]
    assert [moves(game) for game in games] == [HOUSE_UCI] * 3
    assert (report.sources, report.read, report.games, report.plies) == (4, 5, 3, 54)
    assert report.skipped == {
        "illegal move": 1,
        "empty file": 1,
        "not a game file": 1,
        "another variant": 1,
    }
    assert [skip.reason for skip in skips] == [
        "illegal move",
        "empty file",
        "not a game file",
        "another variant",
    ]
    assert skips[0].as_json() == {
        "reason": "illegal move",
        "source": str(tmp_path / "a.pgn"),
        "number": 2,
        "line": 20,
        "ply": 4,
        "text": "Qxd4",
        "detail": skips[0].detail,
    }


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        (GameFilter(min_rating=2060), "rating below 2060"),
        (GameFilter(min_plies=19), "under 19 plies"),
        (GameFilter(since="2017"), "before 2017"),
        (GameFilter(until="2016.04"), "after 2016.04"),
        (GameFilter(not_endings=("resignation",)), "ending: resignation"),
        (GameFilter(min_rating=2050, min_plies=18, since="2016.05"), None),
    ],
)
def test_conditions(tmp_path: Path, conditions: GameFilter, reason: str | None) -> None:
    path = tmp_path / "a.pgn"
    path.write_text(HOUSE)
    games, report, skips = _run([path], conditions=conditions)
    assert report.dropped == ({reason: 1} if reason else {})
    assert len(games) == (0 if reason else 1)
    assert not skips


def test_time_forfeits_and_aborted_games(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    endings = ("Bob forfeits on time", "Game aborted on move 1", "Black checkmated")
    path.write_text("\n".join(HOUSE.replace("White resigns", words) for words in endings))
    games, report, _ = _run([path], conditions=GameFilter(not_endings=("aborted",)))
    assert [game.termination for game in games] == [endings[0], endings[2]]
    games, report, _ = _run([path], conditions=GameFilter(not_endings=("aborted", "time")))
    assert [game.termination for game in games] == [endings[2]]
    assert report.dropped == {"ending: time": 1, "ending: aborted": 1}


def test_games_that_the_sink_has_are_counted_as_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_text("\n".join((HOUSE, HOUSE.replace("Ada", "Eve"))))

    class OfAda(Sink):
        def add(self, record: GameRecord) -> bool | None:
            return super().add(record) if record.white == "Ada" else False

    sink = OfAda()
    report = _importer().run([path], sink)
    assert [game.white for game in sink.games] == ["Ada"]
    assert (report.games, report.dropped) == (1, {"duplicate": 1})


def test_the_number_of_processes_does_not_change_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer_module, "MIN_GAMES_FOR_POOL", 4)
    monkeypatch.setattr(importer_module, "BATCH_GAMES", 3)
    path = tmp_path / "a.pgn"
    text = _numbered(20).split("\n\n\n")
    path.write_text("\n".join([*text, HOUSE.replace("Qxd5", "Qxd4"), _numbered(3)]))
    alone = _run([path], make_resolver=fresh_resolver)
    together = _run([path], make_resolver=fresh_resolver, workers=2)
    assert alone[0] == together[0]
    assert alone[2] == together[2]
    assert alone[1].games == together[1].games == 23


def test_stopping_keeps_what_is_done(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_text(_numbered(30))
    sink = Sink()
    report = _importer(stop=lambda: len(sink.games) >= 7).run([path], sink)
    assert report.interrupted
    assert report.games == len(sink.games) == 7
    assert report.seconds > 0


def test_games_that_do_not_fit_the_store_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_text(_numbered(3))

    def reject(error: Exception) -> Callable[[GameRecord], None]:
        def check(game: GameRecord) -> None:
            if game.event == "Evening 1":
                raise error

        return check

    sink = Sink(reject(MoveError("no code")))
    report = _importer().run([path], sink)
    assert [game.event for game in sink.games] == ["Evening 0", "Evening 2"]
    assert report.skipped == {"does not fit the store": 1}
    with pytest.raises(DataError, match="No space left"):
        _importer().run([path], Sink(reject(DataError("cannot write x: No space left"))))


def test_a_damaged_archive_keeps_the_games_before_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn.gz"
    data = gzip.compress(_numbered(200).encode(), 1)
    path.write_bytes(data[: len(data) // 2])
    games, report, skips = _run([path])
    assert 10 < len(games) < 200
    assert [game.event for game in games] == [f"Evening {i}" for i in range(len(games))]
    assert skips[-1].reason == "damaged file"
    assert set(report.skipped) <= {"damaged file", "cut off", "no moves"}


@pytest.mark.parametrize("name", ["nuls.pgn.gz", "nuls.jsonl.gz", "nuls.uci.gz"])
def test_endless_words_need_no_memory_and_are_listed(tmp_path: Path, name: str) -> None:
    """A few kilobytes that unpack to 160 MiB of NULs, between two games (in PGN)."""
    begin = {
        "pgn": HOUSE.encode() + b'\n[Event "endless"]\n\n1. e4 ',
        "jsonl": b'{"moves": "e2e4", "event": "',
        "uci": b"e2e4 ",
    }[name.split(".")[1]]
    end = b"\n\n" + HOUSE.encode() if "pgn" in name else b"\n"
    with gzip.open(tmp_path / name, "wb", 1) as file:
        file.write(begin)
        for _ in range(160):
            file.write(bytes(1 << 20))
        file.write(end)
    tracemalloc.start()
    games, report, skips = _run([tmp_path / name])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 120 << 20
    assert len(games) == (2 if "pgn" in name else 0)
    assert dict(report.skipped) == {"too long": 1}
    (skip,) = skips
    assert skip.source == str(tmp_path / name)
    assert "at most 256" in skip.detail or "is longer than" in skip.detail


def test_headers_without_end(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_text(f'[Event "{"x" * 5000}"]\n\n1. e4 *\n\n{HOUSE}')
    games, _, skips = _run([path])
    assert len(games) == 1
    assert [skip.reason for skip in skips] == ["too long"]
    assert "a header has 4,001 characters, at most 4,000 are accepted" in skips[0].detail
