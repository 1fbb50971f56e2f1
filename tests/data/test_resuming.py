"""Imports that end early, in every way and at every game, and go on: as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from importing import HOUSE, resolver, spec

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.game_reader import Skip
from variant_ai.core.data.read.importer import Importer, ImportReport
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.data.store.store_writer import find_interruption
from variant_ai.core.errors import DataError
from variant_ai.plugins import registry

GAMES = 12
SHARD = 3


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two files of six games, one of them illegal, and one that holds none."""
    games = [HOUSE.replace("Club evening", f"Evening {i}") for i in range(GAMES)]
    games[7] = games[7].replace("Qxd5", "Qxd4")
    folder = tmp_path / "games"
    folder.mkdir()
    (folder / "a.pgn").write_text("\n".join(games[:6]))
    (folder / "b.txt").write_text("Dear reader")
    (folder / "c.pgn").write_text("\n".join(games[6:]))
    return folder


class Killed(BaseException):
    """Killed process: nothing is closed."""


class Import:
    """One process that imports, into a store or behind what is there."""

    def __init__(self, source: Path, store: Path, *, command: str = "A", append: bool = True):
        self.source = source
        self.writer = StoreWriter(
            store,
            spec("crazyhouse"),
            mode="append" if append else "new",
            sources=[str(source)],
            shard_games=SHARD,
            command=command,
        )
        self.skips: list[Skip] = []
        self.stopped = False
        self.importer = Importer(
            list(registry().readers(spec("crazyhouse")).values()),
            lambda: resolver("crazyhouse"),
            on_skip=self.skips.append,
            stop=lambda: self.stopped,
        )
        self.writer.mark = self.importer.mark

    def run(self) -> ImportReport:
        report = self.importer.run([self.source], self.writer, self.writer.resumed)
        self.writer.close(interrupted=report.interrupted)
        return report

    def run_until(self, game: int, how: str) -> None:
        """End at this game: by a kill before it or behind it, or by Ctrl-C asked for there; two
        of these break off."""
        add = self.writer.add
        added = 0

        def ending(record: GameRecord) -> bool:
            nonlocal added
            added += 1
            error: Callable[[], BaseException] = Killed if "kill" in how else KeyboardInterrupt
            if added == game and "before" in how:
                raise error()
            done = add(record)
            if added == game:
                self.stopped = True
                if "behind" in how:
                    raise error()
            return done

        self.writer.add = ending  # type: ignore[method-assign]
        try:
            self.run()
        except Killed:
            self.writer._stack.close()
        except KeyboardInterrupt:
            self.writer.close(interrupted=True)


def events(store: Path) -> list[str]:
    return [game.event for game in Store(store).games()]


WHOLE = [f"Evening {i}" for i in range(GAMES) if i != 7]
HOW = ("stop", "kill before", "kill behind", "break before", "break behind")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("append", (False, True))
@pytest.mark.parametrize("game", (1, 3, 7, 11))
def test_an_import_resumes_from_every_point(
    tmp_path: Path, source: Path, how: str, append: bool, game: int
) -> None:
    store = tmp_path / "a.store"
    first = Import(source, store, append=append)
    first.run_until(game, how)
    second = Import(source, store, append=append)
    resumed = second.writer.resumed
    in_shards = (game - ("before" in how)) // SHARD * SHARD
    if "kill" in how:
        assert (resumed["games"] if resumed else 0) == in_shards
    else:
        assert (resumed["games"] if resumed else 0) == game - ("before" in how)
    report = second.run()
    assert events(store) == WHOLE
    assert (report.games, report.read, report.sources) == (11, GAMES, 2)
    assert report.skipped == {"illegal move": 1, "not a game file": 1}
    assert Store(store).info.unfinished == ""
    assert len(Store(store).info.runs) == 1
    assert not Store(store).info.runs[0].interrupted
    Store(store).verify()
    assert find_interruption(store, "A") is None


def test_it_may_end_early_again_and_again(tmp_path: Path, source: Path) -> None:
    store = tmp_path / "a.store"
    for how in (*HOW, *HOW):
        Import(source, store).run_until(2, how)
    interruption = find_interruption(store, "A")
    assert interruption is not None
    assert interruption.mark["games"] == 10
    Import(source, store).run()
    assert events(store) == WHOLE


@pytest.mark.parametrize("how", HOW)
def test_behind_games_of_others_and_before_more_of_them(
    tmp_path: Path, source: Path, how: str
) -> None:
    other = tmp_path / "other.pgn"
    other.write_text(HOUSE)
    store = tmp_path / "a.store"
    Import(other, store, command="B").run()
    Import(source, store).run_until(4, how)
    Import(other, store, command="C").run()
    done = 3 if "kill" in how or "before" in how else 4
    assert len(Store(store)) == done + 2
    Import(source, store).run_until(2, how)
    Import(source, store).run()
    assert sorted(events(store)) == sorted([*WHOLE, "Club evening", "Club evening"])
    Import(source, store).run()  # it came to its end: this is another import
    assert len(Store(store)) == 2 * len(WHOLE) + 2


def test_changed_files_are_rejected_and_the_store_is_kept(tmp_path: Path, source: Path) -> None:
    store = tmp_path / "a.store"
    Import(source, store).run_until(4, "stop")
    before = store.read_bytes()
    changed = source / "a.pgn"
    changed.write_text(changed.read_text().replace("Evening 2", "Morning 2"))
    other = Import(source, store)
    with pytest.raises(DataError, match="files have changed since 4 games of them were imported"):
        other.run()
    other.writer.abort()
    assert store.read_bytes() == before


def test_a_stop_while_resuming_changes_nothing(tmp_path: Path, source: Path) -> None:
    store = tmp_path / "a.store"
    Import(source, store).run_until(7, "stop")
    one = Import(source, store)
    one.stopped = True
    assert one.run().games == 7
    Import(source, store).run()
    assert events(store) == WHOLE


def test_what_fails_keeps_what_an_earlier_process_did(tmp_path: Path, source: Path) -> None:
    store = tmp_path / "a.store"
    Import(source, store, append=False).run_until(8, "kill behind")
    partial = tmp_path / "a.store.partial"
    one = Import(source, store, append=False)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    one.writer._write = full  # type: ignore[method-assign]
    with pytest.raises(DataError, match=r"a\.store.*No space left.*the same command resumes"):
        one.run()
    assert partial.exists()
    Import(source, store, append=False).run()
    assert events(store) == WHOLE
    assert not partial.exists()


def test_a_store_of_another_command_is_rejected(tmp_path: Path, source: Path) -> None:
    store = tmp_path / "a.store"
    Import(source, store).run_until(4, "stop")
    with pytest.raises(DataError, match="already exists"):
        Import(source, store, command="B", append=False)
    Import(source, store, command="B").run()
    with pytest.raises(DataError, match="already exists"):  # not alone any more
        Import(source, store, append=False)
