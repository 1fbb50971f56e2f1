"""Every packing gives the same bytes; what is damaged gives what lies before the damage."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from flaky_server import pzstd

from variant_ai.core.data.read.game_files import (
    HEAD,
    MAX_DEPTH,
    XZ_MEMORY,
    open_sources,
    total_bytes,
)
from variant_ai.core.data.read.game_reader import Skip

TEXT = "".join(f'[Event "{i}"]\n\n1. e4 e5 {i}\n\n' for i in range(3000)).encode()


def _tar(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def _zip(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


PACKINGS = {
    "plain": lambda data: data,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


def _read(path: Path) -> tuple[dict[str, bytes], list[Skip]]:
    skips: list[Skip] = []
    found = {source.name: source.stream.read() for source in open_sources([path], skips.append)}
    return found, skips


@pytest.mark.parametrize("packing", PACKINGS)
def test_compressed_files_are_recognised_by_their_bytes(tmp_path: Path, packing: str) -> None:
    path = tmp_path / "games.dat"
    path.write_bytes(PACKINGS[packing](TEXT))
    assert _read(path) == ({str(path): TEXT}, [])


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz", "zst"])
@pytest.mark.parametrize("first", [b"\n", b"\xef\xbb\xbf", b"% a comment\n"])
def test_the_first_bytes_of_a_file_may_be_packed_by_themselves(
    tmp_path: Path, packing: str, first: bytes
) -> None:
    path = tmp_path / "games.dat"
    path.write_bytes(PACKINGS[packing](first) + PACKINGS[packing](TEXT))
    for source in open_sources([path], lambda skip: pytest.fail(skip.detail)):
        assert len(source.stream.peek(HEAD)) >= HEAD
        assert source.stream.read() == first + TEXT


@pytest.mark.parametrize("packing", PACKINGS)
def test_members_of_packed_archives_come_one_by_one(tmp_path: Path, packing: str) -> None:
    path = tmp_path / "games.tar"
    path.write_bytes(PACKINGS[packing](_tar({"a/1.pgn": TEXT, "b/2.pgn": b"x"})))
    assert _read(path) == ({f"{path}!a/1.pgn": TEXT, f"{path}!b/2.pgn": b"x"}, [])


@pytest.mark.parametrize("packing", ("gz", "bz2", "xz", "zst"))
def test_several_compressed_streams_in_a_row_are_one_file(tmp_path: Path, packing: str) -> None:
    path = tmp_path / "games"
    path.write_bytes(PACKINGS[packing](TEXT) + PACKINGS[packing](b"more"))
    assert _read(path) == ({str(path): TEXT + b"more"}, [])


def test_frames_to_be_skipped_are(tmp_path: Path) -> None:
    """pzstd, which packs the monthly files of lichess, begins with one."""
    path = tmp_path / "games"
    path.write_bytes(pzstd(TEXT))
    assert _read(path) == ({str(path): TEXT}, [])


def test_zip_and_archives_in_archives(tmp_path: Path) -> None:
    inner = _zip({"games.pgn": TEXT})
    path = tmp_path / "games.tar.xz"
    path.write_bytes(lzma.compress(_tar({"inner.zip": inner, "one.gz": gzip.compress(b"1")})))
    assert _read(path) == ({f"{path}!inner.zip!games.pgn": TEXT, f"{path}!one.gz": b"1"}, [])


def test_archives_are_not_opened_without_end(tmp_path: Path) -> None:
    data = b"games"
    for _ in range(MAX_DEPTH + 1):
        data = gzip.compress(data)
    path = tmp_path / "deep.gz"
    path.write_bytes(data)
    found, skips = _read(path)
    assert not found
    assert [skip.reason for skip in skips] == ["archives too deep"]


@pytest.mark.parametrize("packing", ("gz", "bz2", "xz", "zst"))
def test_the_beginning_of_a_cut_file_is_read_and_the_damage_reported(
    tmp_path: Path, packing: str
) -> None:
    noise = random.Random(1).randbytes(2_000_000)  # bzip2 packs 900,000 bytes at once
    path = tmp_path / "games"
    path.write_bytes(PACKINGS[packing](noise)[:-200])
    found, skips = _read(path)
    assert noise.startswith(found[str(path)])
    assert len(found[str(path)]) > len(noise) // 4
    assert [(skip.reason, skip.source) for skip in skips] == [("damaged file", str(path))]
    assert skips[0].detail


def test_a_cut_archive_gives_the_members_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "games.tar"
    path.write_bytes(_tar({"1.pgn": TEXT, "2.pgn": TEXT})[: len(TEXT) + 3000])
    found, skips = _read(path)
    assert found[f"{path}!1.pgn"] == TEXT
    assert {skip.reason for skip in skips} == {"damaged file"}


def test_a_flipped_byte_in_a_zip_damages_one_member(tmp_path: Path) -> None:
    data = bytearray(_zip({"1.pgn": TEXT, "2.pgn": TEXT}))
    data[200] ^= 0x55
    path = tmp_path / "games.zip"
    path.write_bytes(data)
    found, skips = _read(path)
    assert found[f"{path}!2.pgn"] == TEXT
    assert [skip.source for skip in skips] == [f"{path}!1.pgn"]


def test_an_encrypted_member_is_reported(tmp_path: Path) -> None:
    data = bytearray(_zip({"1.pgn": b"x"}))
    data[6] |= 1  # the flag in the member's header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # and in the list at the end
    path = tmp_path / "games.zip"
    path.write_bytes(data)
    found, skips = _read(path)
    assert not found
    assert "encrypted" in skips[0].detail


@pytest.mark.parametrize(
    ("magic", "name"), ((b"Rar!\x1a\x07\x00", "rar"), (b"7z\xbc\xaf\x27\x1c", "7z"))
)
def test_archives_that_are_not_read_are_named(tmp_path: Path, magic: bytes, name: str) -> None:
    path = tmp_path / "games"
    path.write_bytes(magic + bytes(100))
    found, skips = _read(path)
    assert not found
    assert name in skips[0].detail
    assert ".zst" in skips[0].detail


def test_an_xz_file_may_not_ask_for_much_memory(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2 * XZ_MEMORY}]
    path = tmp_path / "games.xz"
    path.write_bytes(lzma.compress(b"x", filters=filters))
    found, skips = _read(path)
    assert found == {str(path): b""}
    assert [skip.reason for skip in skips] == ["damaged file"]


@pytest.mark.parametrize("codec", ("utf-8", "big5", "gb18030"))
def test_names_in_archives_may_be_in_any_encoding(tmp_path: Path, codec: str) -> None:
    name = "象棋大師對局.pgn"
    info = tarfile.TarInfo(name.encode(codec).decode("utf-8", "surrogateescape"))
    info.size = 1
    path = tmp_path / "games.tar"
    with tarfile.open(path, "w", encoding="utf-8", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(b"x"))
    assert _read(path)[0] == {f"{path}!{name}": b"x"}


def test_folders_are_walked_in_order_and_missing_files_reported(tmp_path: Path) -> None:
    for name in ("b/2.pgn", "a/1.pgn", "a/0.pgn"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    found, skips = _read(tmp_path)
    assert list(found.values()) == [b"a/0.pgn", b"a/1.pgn", b"b/2.pgn"]
    assert not skips
    assert total_bytes([tmp_path]) == 21
    found, skips = _read(tmp_path / "none.pgn")
    assert not found
    assert skips[0].reason == "cannot be opened"


def test_bytes_read_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "games.gz"
    path.write_bytes(gzip.compress(TEXT))
    seen: list[int] = []
    for source in open_sources([path], print, seen.append):
        source.stream.read()
    assert sum(seen) == total_bytes([path]) == path.stat().st_size
