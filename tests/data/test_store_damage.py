"""Damage is named and kills cost one shard: flipped bytes, cut tails, full disks, Ctrl-C."""

from __future__ import annotations

import errno
import io
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_fakes import CODEC, SPEC, game, read, write

from variant_ai.core.data.store import store_writer
from variant_ai.core.data.store.game_store import StoreWriter
from variant_ai.core.errors import DataError

GAMES = [
    game(i, white=f"p{i % 3}", event=f"event {i}", scores=[i, None, 3, 4, 5]) for i in range(7)
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store of three shards, written in two runs."""
    path = tmp_path_factory.mktemp("whole") / "a.store"
    write(path, GAMES[:5], shard_games=3)
    write(path, GAMES[5:], mode="append", shard_games=3)
    return path.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "b.store"


@settings(max_examples=400, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_flipped_byte_anywhere_is_found_and_placed(
    whole: bytes, scratch: Path, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(whole) - 1))
    mask = data.draw(st.integers(1, 255))
    damaged = bytearray(whole)
    damaged[at] ^= mask
    scratch.write_bytes(damaged)
    with pytest.raises(DataError) as caught:
        read(scratch).verify()
    message = str(caught.value)
    assert "b.store" in message and ("shard" in message or "block" in message)
    offset = re.search(r"offset (\d+)", message)
    assert offset is not None and int(offset[1]) <= at


def test_a_flipped_byte_in_the_moves_is_found_by_who_reads_them(
    whole: bytes, scratch: Path
) -> None:
    scratch.write_bytes(whole)
    block = read(scratch).shards[1].move
    damaged = bytearray(whole)
    damaged[block.body_offset + block.length // 2] ^= 1
    scratch.write_bytes(damaged)
    store = read(scratch)
    with pytest.raises(DataError, match=rf"shard 1 \(block \d+, MOVE\) at offset {block.offset}"):
        store.codes  # noqa: B018


def test_every_cut_keeps_the_finished_shards(whole: bytes, scratch: Path) -> None:
    scratch.write_bytes(whole)
    store = read(scratch)
    ends = [shard.note.end for shard in store.shards]
    games = [3, 5, 7]
    closed = {store.shards[2].move.offset, len(whole)}
    first, near = store.shards[0].move.offset, {at + k for at in ends for k in (-1, 0, 1, 64)}
    for cut in sorted({*range(first, len(whole), 7), *near, *closed} - {len(whole)}):
        scratch.write_bytes(whole[:cut])
        store = read(scratch)
        kept = max((n for n, end in zip(games, ends, strict=True) if end <= cut), default=0)
        assert len(store) == kept, cut
        assert store.info.unfinished or cut in closed or _ends_run(whole, cut)
    assert [g.event for g in store.games()] == [g.event for g in GAMES]


def _ends_run(whole: bytes, cut: int) -> bool:
    """True if the cut is right after an END block, where the first run closed the file."""
    return whole[:cut].rfind(b"\x89VAGEND ") > whole[:cut].rfind(b"\x89VAGNOTE") and (
        cut == whole.find(b"\x89VAGRUN ", whole.find(b"\x89VAGEND "))
    )


@pytest.mark.parametrize("tail", [b"\0" * 500, b"\x89VAGMOVE", b"\0" * 10])
def test_a_torn_tail_is_cut_off_when_appending(whole: bytes, tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "a.store"
    path.write_bytes(whole + tail)
    assert f"dropping {len(tail)} bytes" in read(path).info.unfinished
    with StoreWriter(path, SPEC, codec=CODEC, mode="append") as writer:
        assert "3 finished shards" in writer.notes[0]
        writer.add(game(99))
    store = read(path)
    assert not store.info.unfinished
    assert [g.moves for g in store.games()] == [g.moves for g in [*GAMES, game(99)]]


def test_a_tail_of_garbage_is_damage(whole: bytes, scratch: Path) -> None:
    scratch.write_bytes(whole + b"x" * 100)
    with pytest.raises(DataError, match=f"damaged at offset {len(whole)}"):
        read(scratch)


def test_a_missing_block_is_noticed(whole: bytes, scratch: Path) -> None:
    scratch.write_bytes(whole)
    shard = read(scratch).shards[0]
    scratch.write_bytes(whole[: shard.fact.offset] + whole[shard.fact.end :])
    with pytest.raises(DataError, match="part of the file is missing"):
        read(scratch)


def test_a_store_cut_in_its_header_has_nothing_to_keep(whole: bytes, scratch: Path) -> None:
    for cut in (1, 3, 63, 64, 300):
        scratch.write_bytes(whole[:cut])
        with pytest.raises(DataError, match="cut off before its first shard"):
            read(scratch)


# --- kills -------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
sys.path.insert(0, {folder!r})
from store_fakes import CODEC, SPEC, game
from variant_ai.core.data.store.game_store import StoreWriter
writer = StoreWriter({path!r}, SPEC, codec=CODEC, mode={mode!r}, shard_games=2)
for i in range(5):
    writer.add(game(100 + i))
writer._file.seek(0, 2)
writer._file.write(b"half a shard")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("mode", ["new", "append"])
def test_a_kill_keeps_finished_shards(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a.store"
    if mode == "append":
        write(path, GAMES)
    script = KILLED.format(folder=str(Path(__file__).parent), path=str(path), mode=mode)
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert done.returncode == -9
    before = GAMES if mode == "append" else []
    if mode == "new":
        with pytest.raises(
            DataError, match=r"a\.store\.partial has the finished part of an interrupted command"
        ):
            read(path)
        path = tmp_path / "a.store.partial"
    store = read(path)
    assert "using its" in store.info.unfinished and "12 bytes" in store.info.unfinished
    expected = [*before, *(game(100 + i) for i in range(4))]
    assert [g.moves for g in store.games()] == [g.moves for g in expected]
    write(path, [game(7)], mode="append")
    assert [g.moves for g in read(path).games()] == [g.moves for g in [*expected, game(7)]]


def test_control_c_keeps_what_was_added(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        StoreWriter(tmp_path / "a.store", SPEC, codec=CODEC, shard_games=2) as writer,
    ):
        for i in range(5):
            writer.add(GAMES[i])
        raise KeyboardInterrupt
    store = read(tmp_path / "a.store")
    assert list(store.games()) == GAMES[:5] and not store.info.unfinished


def test_control_c_while_a_shard_is_written_tears_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.fsync, []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        real(descriptor)
        if len(calls) == 4:  # header, run, first shard, second shard
            raise KeyboardInterrupt

    monkeypatch.setattr(store_writer.os, "fsync", fsync)
    with (
        pytest.raises(KeyboardInterrupt),
        StoreWriter(tmp_path / "a.store", SPEC, codec=CODEC, shard_games=2) as writer,
    ):
        for i in range(5):
            writer.add(GAMES[i])
    store = read(tmp_path / "a.store")
    store.verify()
    assert list(store.games()) == GAMES[:4]


@pytest.mark.parametrize("mode", ["new", "replace", "append"])
def test_an_error_leaves_everything_as_it_was(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a.store"
    before = b""
    if mode != "new":
        before = write(path, GAMES).read_bytes()
    with (
        pytest.raises(RuntimeError),
        StoreWriter(path, SPEC, codec=CODEC, mode=mode, shard_games=1) as writer,  # type: ignore[arg-type]
    ):
        writer.add(game(1))
        raise RuntimeError
    assert sorted(os.listdir(tmp_path)) == ([] if mode == "new" else ["a.store"])
    if mode != "new":
        assert path.read_bytes() == before


@pytest.mark.parametrize("mode", ["new", "append"])
def test_a_full_disk_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    path = tmp_path / "a.store"
    before = write(path, GAMES).read_bytes() if mode == "append" else b""
    written = 0

    class Full(io.FileIO):
        def write(self, data: object) -> int:
            nonlocal written
            if written > 6000:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written += super().write(bytes(data)[:1000])  # type: ignore[call-overload]
            return min(1000, len(data))  # type: ignore[arg-type]

    monkeypatch.setattr(store_writer.io, "FileIO", Full)
    kept = "it is unchanged" if mode == "append" else "nothing was written"
    with (
        pytest.raises(
            DataError, match=rf"cannot write .*a\.store: No space left on device; {kept}$"
        ),
        StoreWriter(path, SPEC, codec=CODEC, mode=mode, shard_games=1) as writer,  # type: ignore[arg-type]
    ):
        for i in range(50):
            writer.add(game(i, event="x" * i))
    monkeypatch.undo()
    if mode == "append":
        assert path.read_bytes() == before
    else:
        assert os.listdir(tmp_path) == []


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot write .*: there is no folder"):
        StoreWriter(tmp_path / "no" / "a.store", SPEC, codec=CODEC)


@pytest.mark.skipif(sys.platform == "win32", reason="needs file locks")
@pytest.mark.parametrize("mode", ["new", "append"])
def test_two_writers_do_not_mix(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a.store"
    if mode == "append":
        write(path, [])
    with StoreWriter(path, SPEC, codec=CODEC, mode=mode) as writer:  # type: ignore[arg-type]
        writer.add(GAMES[0])
        with pytest.raises(DataError, match="being written by another process"):
            StoreWriter(path, SPEC, codec=CODEC, mode=mode)  # type: ignore[arg-type]
    assert list(read(path).games()) == GAMES[:1]


def test_readers_of_a_growing_store_see_finished_shards(tmp_path: Path) -> None:
    path = write(tmp_path / "a.store", GAMES)
    with StoreWriter(path, SPEC, codec=CODEC, mode="append", shard_games=2) as writer:
        for i in range(3):
            writer.add(game(i))
        assert len(read(path)) == len(GAMES) + 2
    assert len(read(path)) == len(GAMES) + 3
