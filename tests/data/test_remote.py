"""Reading a file from a server that breaks off, changes its mind, or is not there."""

from __future__ import annotations

import errno
import io
import os
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from flaky_server import FlakyServer, serving

from variant_ai.core.data.fetch import remote_file
from variant_ai.core.data.fetch.remote_file import RemoteError, fetch, fetch_text
from variant_ai.core.errors import DataError

DATA = random.Random(1).randbytes(300_000)
PATH = "/some/file"


@pytest.fixture
def server() -> Iterator[FlakyServer]:
    with serving(FlakyServer({PATH: DATA})) as running:
        yield running


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_file, "FIRST_PAUSE", 0.0)


def read(server: FlakyServer, path: str = PATH, **options: Any) -> tuple[bytes, int]:
    """The bytes of the file, and how many times the transfer was resumed."""
    file = io.BytesIO()
    resumed = fetch(server.url + path, file, **options)
    return file.getvalue(), resumed


def test_whole_file(server: FlakyServer) -> None:
    heard: list[tuple[int, int | None]] = []
    assert read(server, on_bytes=lambda *got: heard.append(got)) == (DATA, 0)
    assert heard[-1] == (300_000, 300_000)


def test_interrupted_transfers_resume_at_the_last_byte(server: FlakyServer) -> None:
    server.faults[PATH] = [50, 0, 503, 20]
    heard: list[tuple[int, int | None]] = []
    assert read(server, on_bytes=lambda *got: heard.append(got)) == (DATA, 4)
    assert server.asked(PATH) == ["", *["bytes=150000-"] * 3, "bytes=180000-"]
    assert {size for _, size in heard} == {300_000}


def test_server_without_ranges(server: FlakyServer) -> None:
    server.ranges = False
    server.faults[PATH] = [50]
    assert read(server) == (DATA, 1)


def test_file_that_changes_is_not_glued_together(server: FlakyServer) -> None:
    """The new file is requested as a whole, because the ETag is another one."""
    server.faults[PATH] = [50]
    new = DATA[:1000] * 2

    def change(reason: str) -> None:
        server.files[PATH] = new

    assert read(server, on_wait=change) == (new, 1)
    assert server.asked(PATH) == ["", "bytes=150000-"]


def test_a_part_that_was_not_requested_is_rejected(server: FlakyServer) -> None:
    server.faults[PATH] = [50]
    server.shift = 10
    with pytest.raises(RemoteError, match="sent a part that was not requested"):
        read(server, attempts=3)


def test_full_disk(server: FlakyServer) -> None:
    """It is no fault of the server, and no reason to try again."""

    class FullDisk(io.BytesIO):
        def write(self, part: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(DataError, match="cannot be kept on this disk: No space left"):
        fetch(server.url + PATH, FullDisk())
    assert server.asked(PATH) == [""]


def test_gives_up_after_tries_without_progress(server: FlakyServer) -> None:
    server.faults[PATH] = [10, *[500] * 3]
    with pytest.raises(RemoteError, match=r"after 30,000 bytes: status 500; 3 attempts failed"):
        read(server, attempts=3)


def test_a_server_without_ranges_that_always_breaks_off_is_given_up(server: FlakyServer) -> None:
    """The same bytes again are no progress."""
    server.ranges = False
    server.faults[PATH] = [30] * 50
    with pytest.raises(RemoteError, match="3 attempts failed"):
        read(server, attempts=3)
    assert len(server.asked(PATH)) == 3


def test_a_silent_server_is_reported(server: FlakyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the address and how long it was waited for; each attempt before it is reported."""
    server.silent.add(PATH)
    monkeypatch.setattr(remote_file, "TEXT_ATTEMPTS", 3)
    monkeypatch.setattr(remote_file, "TEXT_TIMEOUT", 0.2)
    heard: list[str] = []
    with pytest.raises(RemoteError) as caught:
        fetch_text(server.url + PATH, on_wait=heard.append)
    assert f"{server.url}{PATH} could not be read: no response in 0.2 s; 3 attempts failed" in str(
        caught.value
    )
    assert re.search(r"in \d+ s$", str(caught.value))
    assert [text.partition(": ")[2] for text in heard] == [
        f"no response in 0.2 s; retrying in 0 s (attempt {n} of 3 failed)" for n in (1, 2)
    ]


def test_text_that_comes_too_slowly_is_given_up(
    server: FlakyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte now and then keeps a connection alive for ever."""
    server.slow.add(PATH)
    monkeypatch.setattr(remote_file, "TEXT_SECONDS", 0.3)
    with pytest.raises(RemoteError, match=r"could not be read in 0.3 s: only \d+ bytes received"):
        fetch_text(server.url + PATH)


def test_a_missing_file_is_not_requested_again(server: FlakyServer) -> None:
    with pytest.raises(RemoteError, match="404 Not Found") as caught:
        read(server, "/other")
    assert caught.value.status == 404
    assert server.asked("/other") == [""]


def test_nobody_there() -> None:
    with pytest.raises(RemoteError, match="2 attempts failed"):
        fetch("http://127.0.0.1:9/x", io.BytesIO(), attempts=2)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a/b", "nothing", "https://"])
def test_other_addresses_are_rejected(url: str) -> None:
    with pytest.raises(DataError, match="not a web address"):
        fetch(url, io.BytesIO())


def test_text(server: FlakyServer) -> None:
    server.files["/t"] = "a\nü\n".encode()
    assert fetch_text(server.url + "/t") == "a\nü\n"
