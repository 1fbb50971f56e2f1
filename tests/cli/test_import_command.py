"""`variant-ai import` as a person uses it, with good input and bad."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from processes import PATIENCE, children, left

from variant_ai.cli.common.options import make_resolver
from variant_ai.cli.games.import_games import SkipList
from variant_ai.cli.main import cli
from variant_ai.core.data.read.game_reader import Skip
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.errors import DataError
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.plugins import registry

GAME = """\
[Event "Evening {number}"]
[White "Ada"]
[Black "Bob"]
[Result "1-0"]

1. e4 d5 2. exd5 Qxd5 3. P@e4 Qd8 {{Black resigns}} 1-0

"""
RED = "1. 炮二平五 馬８進７ 2. 馬二進三 車９平８ 1/2-1/2\n"


def _import(*words: str | Path, variant: str = "crazyhouse") -> Result:
    return CliRunner().invoke(cli, ["import", *map(str, words), "-V", variant])


def _games(count: int) -> str:
    return "".join(GAME.format(number=i) for i in range(count))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "games.store"


def test_games_into_a_store(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_text(_games(3) + GAME.format(number=4).replace("Qxd5", "Qxd4"))
    result = _import(path, "-o", store)
    assert result.exit_code == 0, result.output
    assert "3 of 4 read" in result.stdout
    assert "1 illegal move" in result.stdout
    assert [game.event for game in Store(store).games()] == [f"Evening {i}" for i in range(3)]
    (line,) = Path(f"{store}.skipped.jsonl").read_text(encoding="utf-8").splitlines()
    output = json.loads(line)
    assert (output["reason"], output["number"], output["ply"], output["text"]) == (
        "illegal move",
        4,
        4,
        "Qxd4",
    )


def test_a_list_of_an_earlier_import_does_not_stay(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_text("1. e4 Ke5 *")
    assert _import(path, "-o", store).exit_code == 1
    assert Path(f"{store}.skipped.jsonl").exists()
    path.write_text(_games(1))
    assert _import(path, "-o", store).exit_code == 0
    assert not Path(f"{store}.skipped.jsonl").exists()


@pytest.mark.parametrize("name", ["a.pgn", "link.pgn", "games.store"])
def test_a_list_of_skips_overwrites_neither_input_nor_store(
    tmp_path: Path, store: Path, name: str
) -> None:
    path, text = tmp_path / "a.pgn", _games(1).replace("Qxd5", "Qxd4")
    path.write_text(text)
    (tmp_path / "link.pgn").symlink_to(path)
    result = _import(path, "-o", store, "--skipped", tmp_path / name)
    assert result.exit_code == 1
    assert "give the list another name" in result.output
    assert path.read_text() == text
    assert not store.exists()


def test_appending_leaves_the_list_of_what_was_skipped_before(tmp_path: Path, store: Path) -> None:
    path, listed = tmp_path / "a.pgn", Path(f"{store}.skipped.jsonl")
    path.write_text(_games(1) + "\n1. e4 Ke5 *\n")
    assert _import(path, "-o", store).exit_code == 0
    before = listed.read_text(encoding="utf-8")
    other = tmp_path / "b.pgn"
    other.write_text(_games(2))
    assert _import(other, "-o", store, "--append").exit_code == 0
    assert listed.read_text(encoding="utf-8") == before
    assert _import(path, "-o", store, "--append").exit_code == 0
    assert listed.read_text(encoding="utf-8") == before + before


def test_the_account_as_json(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_text(_games(3))
    result = _import(path, "-o", store, "--json", "--drop-duplicates", "--min-plies", "6")
    output = json.loads(result.stdout)
    assert output["games"] == 1
    assert output["dropped"] == {"duplicate": 2}
    assert output["skipped"] == {}
    assert output["skipped_list"] is None
    assert output["store"] == str(store)


def test_duplicates_are_those_of_the_store_too(tmp_path: Path, store: Path) -> None:
    one, two = tmp_path / "a.pgn", tmp_path / "b.pgn"
    one.write_text(_games(2))
    other = GAME.format(number=5).replace("Ada", "Eve")
    shorter = other.replace(" 3. P@e4 Qd8", "")
    two.write_text(other + "\n" + shorter + "\n" + shorter)
    assert _import(one, "-o", store, "--drop-duplicates").exit_code == 0
    assert len(Store(store)) == 1
    output = json.loads(_import(two, "-o", store, "--append", "--drop-duplicates", "--json").stdout)
    assert (output["games"], output["dropped"]) == (1, {"duplicate": 2})
    plies = [game.plies for game in map(Store(store).game, range(len(Store(store))))]
    assert len(plies) == 2 and plies[1] < plies[0]


def test_chinese_games(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_bytes(RED.encode("big5"))
    assert _import(path, "-o", store, variant="xiangqi").exit_code == 0
    assert Store(store).game(0).plies == 4


def test_a_rejected_import_keeps_the_list_of_skips(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "games.pgn"
    path.write_text("1. e4 e5 1-0\n\n1. e4 Ke5 1-0\n")
    listing = Path(f"{store}.skipped.jsonl")
    assert _import(path, "-o", store).exit_code == 0
    before = listing.read_text(encoding="utf-8")
    path.write_text("1. e4 e5 1-0\n")
    assert _import(path, "-o", store).exit_code == 1
    assert listing.read_text(encoding="utf-8") == before


def test_an_import_without_a_game_leaves_the_list_of_the_store(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "games.pgn"
    path.write_text("1. e4 e5 1-0\n\n1. e4 Ke5 1-0\n")
    assert _import(path, "-o", store).exit_code == 0
    path.write_text("1. e4 e5 1-0\n")
    assert _import(path, "-o", store, "--replace", "--min-plies", "50").exit_code == 1
    assert Path(f"{store}.skipped.jsonl").exists()
    assert _import(path, "-o", store, "--replace").exit_code == 0
    assert not Path(f"{store}.skipped.jsonl").exists()


def test_a_second_ctrl_c_leaves_no_whole_looking_import(tmp_path: Path) -> None:
    spec = load_spec(builtin_specs()["crazyhouse"])
    with pytest.raises(KeyboardInterrupt), StoreWriter(tmp_path / "a.store", spec):
        raise KeyboardInterrupt
    assert Store(tmp_path / "a.store").info.runs[-1].interrupted


def test_appending_no_games_changes_nothing(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "games.pgn"
    path.write_text("1. e4 e5 1-0\n")
    assert _import(path, "-o", store).exit_code == 0
    before = store.read_bytes()
    path.write_text("1. e4 Ke5 1-0\n")
    assert _import(path, "-o", store, "--append").exit_code == 1
    assert store.read_bytes() == before
    assert _import(path, "-o", tmp_path / "new.store", "--append").exit_code == 1
    assert not (tmp_path / "new.store").exists()


def test_a_store_is_only_changed_with_append_or_replace(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_text(_games(2))
    assert _import(path, "-o", store).exit_code == 0
    again = _import(path, "-o", store)
    assert again.exit_code == 1
    assert "already exists" in again.stderr
    assert _import(path, "-o", store, "--append").exit_code == 0
    assert len(Store(store)) == 4
    assert _import(path, "-o", store, "--replace").exit_code == 0
    assert len(Store(store)) == 2
    both = _import(path, "-o", store, "--append", "--replace")
    assert both.exit_code == 2


def test_a_store_among_the_files_is_named_as_one(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_text(_games(2))
    assert _import(path, "-o", store).exit_code == 0
    assert _import(store, "-o", tmp_path / "b.store").exit_code == 1
    assert "store merge" in (tmp_path / "b.store.skipped.jsonl").read_text()


def test_a_store_does_not_replace_the_games_that_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_text(_games(2))
    for mode in ((), ("--replace",), ("--append",)):
        result = _import(path, "-o", path, *mode)
        assert result.exit_code == 1 and "a.pgn is also an input" in result.stderr
    assert path.read_text() == _games(2)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"\n\n", "not a game file"),
        (b"\x7fELF\x02\x01\x01\x00\x00\x00", "not a game file"),
        (b"1. e4 d5 2. ex", "cut off"),
        (b"1. e4 {a remark without", "cut off"),
        (b"1. e4 Ke5 *", "illegal move"),
        (b"1. e4 \xff\xfe\xfd *", "unreadable move"),
        (b'[Variant "Atomic"]\n\n1. e4 *', "another variant"),
        (b'[Event "nothing"]\n', "no moves"),
        (RED.encode(), "unreadable move"),
        (b"PK\x03\x04 not a zip", "damaged file"),
    ],
)
def test_bad_files(tmp_path: Path, store: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.pgn"
    path.write_bytes(content)
    result = _import(path, "-o", store)
    assert result.exit_code == 1
    assert f"1 {reason}" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not store.exists()
    listed = json.loads(Path(f"{store}.skipped.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert listed["source"] == str(path)


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["--reader", "pgm"], "did you mean 'pgn'"),
        (["--notation", "sam"], "did you mean 'san'"),
        (["--min-plies", "9", "--max-plies", "3"], "no game fits"),
        (["--since", "soon"], "not a date"),
    ],
)
def test_wrong_options(tmp_path: Path, store: Path, words: list[str], output: str) -> None:
    path = tmp_path / "a.pgn"
    path.write_text(_games(1))
    result = _import(path, "-o", store, *words)
    assert result.exit_code == 1
    assert output in result.stderr
    assert not store.exists()


def test_files_and_variants_that_do_not_exist(tmp_path: Path, store: Path) -> None:
    assert _import(tmp_path / "none.pgn", "-o", store).exit_code == 2
    path = tmp_path / "a.pgn"
    path.write_text(_games(1))
    result = _import(path, "-o", store, variant="crazyhose")
    assert result.exit_code == 1
    assert "did you mean 'crazyhouse'" in result.stderr


def test_a_reader_and_a_notation_of_ones_choice(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "a.dat"
    path.write_text("e2e4 e7e5\n")
    assert _import(path, "-o", store, "--reader", "pgn", "--notation", "san").exit_code == 0
    assert Store(store).game(0).plies == 2


def _start(*words: str | Path) -> subprocess.Popen[str]:
    code = "from variant_ai.cli.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "import", *map(str, words)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_keeps_what_is_done(store: Path) -> None:
    process = _start("-", "-V", "crazyhouse", "-o", store, "--workers", "1")
    assert process.stdin is not None
    # More than pipe and buffers hold: once it is written, hundreds of games are read.
    process.stdin.write(_games(3000))
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(_games(20), timeout=120)
    assert process.returncode == 130, output
    assert "Interrupted" in output
    kept = Store(store)
    kept.verify()
    assert 500 < len(kept) <= 3000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_killed_import_leaves_no_process_and_resumes(
    tmp_path: Path, store: Path, name: str
) -> None:
    before, path = tmp_path / "b.pgn", tmp_path / "a.pgn"
    before.write_text(_games(2))
    assert _import(before, "-o", store).exit_code == 0
    path.write_text(_games(2500) + GAME.format(number=2500).replace("Qxd5", "Qxd4"))
    words = (path, "-V", "crazyhouse", "-o", store, "--append", "--workers", "2")
    size = store.stat().st_size
    process = _start(*words)
    deadline = time.monotonic() + PATIENCE
    while store.stat().st_size < size + 1500 and time.monotonic() < deadline:
        time.sleep(0.01)  # until the first shard is written
    workers = children(process.pid)
    process.send_signal(getattr(signal, name))
    _, output = process.communicate(timeout=PATIENCE)
    assert len(workers) >= 2
    assert left(workers) == []
    kept = len(Store(store))
    assert 1002 <= kept < 2502
    if name == "SIGKILL":
        assert (process.returncode, (kept - 2) % 1000) == (-signal.SIGKILL, 0)
    else:
        assert process.returncode == 130
        assert f"Interrupted; {kept - 2:,} games went into" in output
    result = _import(*words[:1], *words[3:])
    assert result.exit_code == 0, result.output
    assert f"resuming after {kept - 2:,} games" in result.stderr
    events = [game.event for game in Store(store).games()]
    assert events == [f"Evening {i}" for i in (0, 1, *range(2500))]
    (skip,) = Path(f"{store}.skipped.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(skip)["number"] == 2501


def test_every_finished_game_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told to stop, workers finish what they began, and all of it is added."""
    from variant_ai.core.data.read import importer
    from variant_ai.core.data.read.importer import Importer

    monkeypatch.setattr(importer, "BATCH_GAMES", 10)
    path = tmp_path / "a.pgn"
    path.write_text(_games(2000))
    spec = load_spec(builtin_specs()["crazyhouse"])
    resolved: list[int] = []
    stopped = False

    class Pool(ThreadPoolExecutor):
        def __init__(self, workers: int, begin: Callable[..., None], arguments: Any) -> None:
            super().__init__(workers)
            begin(*arguments)

        def submit(self, function: Any, batch: Any) -> Any:  # type: ignore[override]
            def work() -> Any:
                nonlocal stopped
                done = function(batch)
                resolved.extend(raw.number for raw in batch)
                stopped = stopped or len(resolved) >= 350
                return done

            return super().submit(work)

    store = tmp_path / "a.store"
    with StoreWriter(store, spec) as writer:
        report = Importer(
            readers=list(registry().readers(spec).values()),
            make_resolver=partial(make_resolver, spec, None),
            workers=2,
            make_pool=Pool,
            stop=lambda: stopped,
        ).run([path], writer)
    assert report.interrupted
    assert report.games == len(Store(store)) == len(resolved)
    assert 350 <= len(resolved) < 2000


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow."""
    resource = pytest.importorskip("resource", reason="limits of POSIX")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_no_empty_list_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "skipped.jsonl"
    listing = SkipList(str(path), is_default=True)
    with full_disk():
        listing.add(Skip("illegal move", "a.pgn"))
        with pytest.raises(DataError, match=r"skipped\.jsonl: File too large"):
            listing.size()
    assert not path.exists()


def test_a_list_resumes_with_its_store(tmp_path: Path) -> None:
    path = tmp_path / "skipped.jsonl"
    sizes = []
    with SkipList(str(path), is_default=True) as listing:
        for number in range(3):
            sizes.append(listing.size())
            listing.add(Skip("illegal move", "a.pgn", number))
    for known, kept in ((sizes[2], "aab"), (10_000, "aabb"), (sizes[1], "ab"), (0, "b")):
        with SkipList(str(path), is_default=True) as listing:
            listing.resume(known)
            listing.add(Skip("illegal move", "b.pgn"))
            listing.drop_old()
        lines = path.read_text().splitlines()
        assert [json.loads(line)["source"] for line in lines] == [f"{name}.pgn" for name in kept]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "a.pgn"
    path.write_text("1. e4 Ke5 *\n" * 3000)
    result = _import(path, "-o", store, "--skipped", "/dev/full")
    assert result.exit_code == 1
    assert "/dev/full: No space left" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not store.exists()
