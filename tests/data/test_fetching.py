"""`variant-ai data fetch lichess` against a server on this machine, with all that can go wrong."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flaky_server import FlakyServer, serving

from variant_ai.cli.main import cli
from variant_ai.core.data.fetch import remote_file as remote
from variant_ai.core.data.fetch.monthly_archive import Archive, check_month
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.errors import DataError

GAME = """\
[Event "Rated Crazyhouse game"]
[Site "https://lichess.org/{site}"]
[White "Ada"]
[Black "Bob"]
[Result "0-1"]
[UTCDate "{month}.05"]
[UTCTime "11:32:01"]
[WhiteElo "{elo}"]
[BlackElo "2050"]
[TimeControl "180+0"]
[Termination "{ending}"]
[Variant "Crazyhouse"]

1. e4 {{ [%clk 0:03:00] }} d5 {{ [%clk 0:03:00] }} 2. exd5 Qxd5 3. P@e4 {moves} 0-1

"""


def game(site: str, month: str, elo: int = 2100, ending: str = "Normal", moves: str = "Qd8") -> str:
    month = month.replace("-", ".")
    return GAME.format(site=site, month=month, elo=elo, ending=ending, moves=moves)


def month_of(month: str) -> str:
    """Three games to keep and three that do not fit the conditions or the rules."""
    return (
        game(f"{month}a", month)
        + game(f"{month}b", month, elo=1900)
        + game(f"{month}c", month, ending="Time forfeit")
        + game(f"{month}d", month, ending="Abandoned")
        + game(f"{month}e", month, moves="Ra4")
        + game(f"{month}f", month, moves="Qe6 4. Nc3")
    )


KEPT = "acf"
MONTHS = ("2016-01", "2016-02", "2016-03")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FlakyServer]:
    monkeypatch.setattr(remote, "FIRST_PAUSE", 0.0)
    server = FlakyServer()
    for month in MONTHS:
        server.add_month("crazyhouse", month, month_of(month))
    with serving(server) as running:
        yield running


def path_of(month: str) -> str:
    return f"/crazyhouse/lichess_db_crazyhouse_rated_{month}.pgn.zst"


def fetch(server: FlakyServer, store: Path, *words: str) -> Result:
    given = ["-V", "crazyhouse", "--min-rating", "2000", "--url", server.url, "--workers", "1"]
    return CliRunner().invoke(cli, ["data", "fetch", "lichess", *given, "-o", str(store), *words])


def sites(store: Path) -> list[str]:
    return [record.site.removeprefix("https://lichess.org/") for record in Store(store).games()]


def expected(*months: str) -> list[str]:
    return [month + letter for month in months for letter in KEPT]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "games.store"


def test_months_into_a_store(server: FlakyServer, store: Path) -> None:
    result = fetch(server, store, "--from", "2016-01", "--to", "2016-02")
    assert result.exit_code == 0, result.output
    assert sites(store) == expected("2016-01", "2016-02")
    assert "6 of 12 read" in result.stdout
    for line in ("2 rating below 2000", "2 ending: aborted", "2 illegal move"):
        assert line in result.stdout
    info = Store(store).info
    assert info.sources == tuple(path_of(m).rpartition("/")[2] for m in MONTHS[:2])
    assert info.runs[0].conditions == {"min_rating": 2000, "not_endings": ["aborted"]}
    assert info.unfinished == ""
    listed = [
        json.loads(line)
        for line in Path(f"{store}.skipped.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [(skip["source"], skip["number"]) for skip in listed] == [
        (path_of(m).rpartition("/")[2], 5) for m in MONTHS[:2]
    ]
    assert sorted(p.name for p in store.parent.iterdir()) == [
        "games.store",
        "games.store.skipped.jsonl",
    ]


def test_the_source_is_reported_at_once(server: FlakyServer, store: Path) -> None:
    result = fetch(server, store, "--from", "2016-01", "--to", "2016-02")
    assert result.stderr.splitlines()[:2] == [
        f"Fetching games of crazyhouse from {server.url}/crazyhouse",
        f"2 months, 2016-01 to 2016-02, into {store}",
    ]


def test_silent_server(server: FlakyServer, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "TEXT_TIMEOUT", 0.2)
    monkeypatch.setattr(remote, "TEXT_ATTEMPTS", 2)
    server.silent.add("/crazyhouse/sha256sums.txt")
    result = fetch(server, store)
    assert result.exit_code == 1
    first, again, error = result.stderr.splitlines()
    assert first.startswith("Fetching games of crazyhouse")
    assert "no response in 0.2 s; retrying" in again
    assert f"{server.url}/crazyhouse/sha256sums.txt could not be read" in error
    assert not store.exists()


def test_second_run_reads_only_what_is_missing(server: FlakyServer, store: Path) -> None:
    fetch(server, store, "--to", "2016-01")
    result = fetch(server, store, "--json")
    assert result.exit_code == 0, result.output
    assert sites(store) == expected(*MONTHS)
    assert server.asked(path_of("2016-01")) == [""]
    output = json.loads(result.stdout)
    assert [month["month"] for month in output["months"]] == ["2016-02", "2016-03"]
    again = fetch(server, store, "--json")
    assert (again.exit_code, json.loads(again.stdout)["months"]) == (0, [])


def test_interrupted_transfers_resume(server: FlakyServer, store: Path) -> None:
    server.faults[path_of("2016-02")] = [30, 503, 50]
    result = fetch(server, store)
    assert result.exit_code == 0, result.output
    assert sites(store) == expected(*MONTHS)
    assert [part != "" for part in server.asked(path_of("2016-02"))] == [False, True, True, True]
    assert "resumed after 3 interrupted connections" in result.stderr


def test_a_month_with_a_wrong_checksum_is_dropped(server: FlakyServer, store: Path) -> None:
    path = path_of("2016-02")
    server.files[path] = server.files[path_of("2016-01")]
    result = fetch(server, store)
    assert result.exit_code == 1
    assert "has a wrong checksum" in result.stderr
    assert "its games were not kept" in result.stderr
    assert sites(store) == expected("2016-01")
    assert len(server.asked(path)) == 2
    listed = Path(f"{store}.skipped.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(listed) == 1  # of the month that is there; read twice, the other was not kept
    assert Store(store).info.unfinished == ""


def test_damaged_file_with_a_wrong_checksum(server: FlakyServer, store: Path) -> None:
    path = path_of("2016-01")
    server.files[path] = server.files[path][:-9] + b"\0" * 9
    result = fetch(server, store)
    assert result.exit_code == 1
    assert "has a wrong checksum" in result.stderr
    assert not store.exists()
    assert list(store.parent.glob("*.partial")) == []


def test_transfer_that_stays_broken_keeps_the_months_before(
    server: FlakyServer, store: Path
) -> None:
    server.faults[path_of("2016-02")] = [40, *[500] * 50]
    result = fetch(server, store)
    assert result.exit_code == 1
    assert "status 500; 6 attempts failed" in result.stderr
    assert sites(store) == expected("2016-01")
    server.faults.clear()
    assert fetch(server, store).exit_code == 0
    assert sites(store) == expected(*MONTHS)


def test_month_that_is_not_there(server: FlakyServer, store: Path) -> None:
    result = fetch(server, store, "--to", "2016-05")
    assert result.exit_code == 1
    assert "no games of 2016-04 and 1 other months" in result.stderr
    assert "2016-01 to 2016-03" in result.stderr
    del server.files[path_of("2016-01")]
    result = fetch(server, store)
    assert result.exit_code == 1
    assert "404 Not Found" in result.stderr
    assert not store.exists()


def test_variant_that_the_site_does_not_have(server: FlakyServer, store: Path) -> None:
    result = fetch(server, store, "--site-name", "bughouse")
    assert result.exit_code == 1
    assert "the site has no variant 'bughouse'" in result.stderr


def test_without_checksums(server: FlakyServer, store: Path) -> None:
    del server.files["/crazyhouse/sha256sums.txt"]
    assert fetch(server, store, "--no-checksums").exit_code == 2
    result = fetch(server, store, "--no-checksums", "--from", "2016-01", "--to", "2016-03")
    assert result.exit_code == 0, result.output
    assert sites(store) == expected(*MONTHS)


@pytest.mark.parametrize("listed", (True, False))
def test_a_month_that_cannot_be_read_is_not_done(
    server: FlakyServer, store: Path, listed: bool
) -> None:
    whole = server.files[path_of("2016-02")]
    login = b"<html><body>Please log in</body></html>"
    words = [] if listed else ["--no-checksums", "--from", "2016-01", "--to", "2016-03"]
    for bad, reason in ((login, "not a game file"), (whole[:-30], "damaged file")):
        server.files[path_of("2016-02")] = bad
        if listed:
            sums = f"{hashlib.sha256(bad).hexdigest()}  {path_of('2016-02').rpartition('/')[2]}\n"
            kept = server.files["/crazyhouse/sha256sums.txt"].decode().splitlines(keepends=True)
            kept = [line for line in kept if "2016-02" not in line] + [sums]
            server.files["/crazyhouse/sha256sums.txt"] = "".join(sorted(kept, key=_name)).encode()
        result = fetch(server, store, *words)
        assert result.exit_code == 1
        assert reason in result.stderr and "2016-02" in result.stderr
        assert sites(store) == expected("2016-01")


def _name(line: str) -> str:
    return line.split()[1]


def test_an_incomplete_month_is_rejected(server: FlakyServer, store: Path) -> None:
    file = store.parent / path_of("2016-01").rpartition("/")[2]
    file.write_bytes(server.files[path_of("2016-01")][:-30])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(store.parent)
        done = CliRunner().invoke(
            cli,
            ["import", file.name, "-V", "crazyhouse", "-o", str(store), "--min-rating", "2000"],
        )
    assert done.exit_code == 0, done.output
    result = fetch(server, store)
    assert result.exit_code == 1
    assert "has a part of" in result.stderr


def test_other_conditions_are_rejected(server: FlakyServer, store: Path) -> None:
    fetch(server, store, "--to", "2016-01")
    result = fetch(server, store, "--min-plies", "4")
    assert result.exit_code == 1
    assert "with other conditions" in result.stderr
    assert sites(store) == expected("2016-01")


def test_month_without_games_to_keep_is_done_too(server: FlakyServer, store: Path) -> None:
    server.files.clear()
    server.add_month("crazyhouse", "2015-01", game("x", "2015-01", elo=1500))
    server.add_month("crazyhouse", "2015-02", month_of("2015-02"))
    assert fetch(server, store).exit_code == 0
    assert sites(store) == expected("2015-02")
    fetch(server, store)
    assert len(server.asked(path_of("2015-01"))) == 1


def test_killed_process_loses_no_finished_month(server: FlakyServer, store: Path) -> None:
    """Killed while the second month is read; its games so far may be there, and then go."""
    slow = "".join(game(f"s{i * i}", "2016-02") for i in range(3000))
    server.files.clear()
    server.add_month("crazyhouse", "2016-01", month_of("2016-01"))
    server.add_month("crazyhouse", "2016-02", slow + month_of("2016-02"))
    words = ["data", "fetch", "lichess", "-V", "crazyhouse", "--url", server.url, "-o", str(store)]
    process = subprocess.Popen(
        [sys.executable, "-m", "variant_ai.cli.main", *words, "--workers", "1"],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "NUMBA_NUM_THREADS": "1"},
    )
    for _ in range(3000):
        if process.poll() is not None or (store.exists() and Store(store).info.games > 1000):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    info = Store(store).info
    assert len(info.sources) == 2, "the second month was begun"
    assert info.unfinished, "it was not finished"
    assert info.games > 3, "a shard of it was written"
    given = ["-V", "crazyhouse", "--url", server.url, "-o", str(store), "--workers", "1"]
    result = CliRunner().invoke(cli, ["data", "fetch", "lichess", *given])
    assert result.exit_code == 0, result.output
    assert "removed an incomplete month" in result.stderr
    kept = sites(store)
    assert len(kept) == 4 + 3000 + 4
    assert kept[:4] == [f"2016-01{letter}" for letter in "abcf"]
    assert Store(store).info.unfinished == ""


def test_interrupt_undoes_the_month_under_way(
    server: FlakyServer, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = remote._request

    def request(url: str, *words: Any) -> Any:
        if "2016-02" in url:
            raise KeyboardInterrupt
        return asked(url, *words)

    monkeypatch.setattr(remote, "_request", request)
    result = fetch(server, store)
    assert result.exit_code == 130
    assert sites(store) == expected("2016-01")
    assert Store(store).info.unfinished == ""


@pytest.mark.parametrize("text", ["2016", "2016-13", "2016-00", "16-01", "2016-1", "x"])
def test_invalid_months(text: str) -> None:
    with pytest.raises(DataError, match="is not a month"):
        check_month(text)


def test_months_across_a_year() -> None:
    names = [file.month for file in Archive("x").unlisted("2016-11", "2017-02")]
    assert names == ["2016-11", "2016-12", "2017-01", "2017-02"]
    with pytest.raises(DataError, match="is before the first"):
        Archive("x").unlisted("2017-01", "2016-12")
