"""Bytes in, lines out: line ends, marks, binary, very long lines, closed pipes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from variant_ai.core.engine import line_io as lines_module
from variant_ai.core.engine.line_io import MAX_LINE, LineWriter, read_lines
from variant_ai.core.engine.protocol_log import ProtocolLog, Replay, read_log
from variant_ai.core.errors import DataError


def read(data: bytes) -> list[str]:
    return [line.text for line in reading(data)]


def reading(data: bytes) -> list[lines_module.InputLine]:
    there, here = os.pipe()

    def feed() -> None:
        with os.fdopen(here, "wb") as pipe:
            pipe.write(data)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        return list(read_lines(there))
    finally:
        thread.join()
        os.close(there)


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"uci\nisready\n", ["uci", "isready"]),
        (b"uci\r\nisready\r\n", ["uci", "isready"]),
        (b"\xef\xbb\xbfuci\n", ["uci"]),
        (b"quit", ["quit"]),
        (b"", []),
        (b"\n\n", ["", ""]),
        (b"  go   nodes 1\t\n", ["go   nodes 1"]),
        (b"a\xff\xfeb\n", ["a\ufffd\ufffdb"]),
        (b"a\0b\n", ["a\ufffdb"]),
        ("setoption name Model value 模型\n".encode(), ["setoption name Model value 模型"]),
    ],
)
def test_lines_of_any_bytes_are_read(data: bytes, texts: list[str]) -> None:
    assert read(data) == texts


def test_a_line_may_come_in_pieces_and_a_piece_may_hold_lines() -> None:
    there, here = os.pipe()
    got = iter(read_lines(there))
    os.write(here, b"uc")
    os.write(here, b"i\nisrea")
    assert next(got).text == "uci"
    os.write(here, b"dy\nquit\n")
    assert next(got).text == "isready"
    assert next(got).text == "quit"
    os.close(here)
    assert list(got) == []
    os.close(there)


def test_a_very_long_line_is_cut_and_the_next_one_is_whole() -> None:
    got = reading(b"position " + b"x" * (3 * MAX_LINE) + b"\nisready\n")
    assert [line.cut for line in got] == [True, False]
    assert len(got[0].text) == MAX_LINE
    assert got[1].text == "isready"


def test_every_line_knows_when_it_came() -> None:
    first, second = reading(b"a\nb\n")
    assert 0 < first.at <= second.at


def test_lines_of_several_threads_do_not_mix() -> None:
    there, here = os.pipe()
    write = LineWriter(here)
    texts = [str(n) * 50 for n in range(8)]

    def many(text: str) -> None:
        for _ in range(40):
            write(text, text)

    threads = [threading.Thread(target=many, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    with os.fdopen(there, "rb") as pipe:
        got = [pipe.readline().decode().rstrip("\n") for _ in range(8 * 40 * 2)]
    for thread in threads:
        thread.join()
    os.close(here)
    assert sorted(got) == sorted(texts * 80)
    assert all(got[i] == got[i + 1] for i in range(0, len(got), 2))


def test_a_message_stays_one_line() -> None:
    there, here = os.pipe()
    LineWriter(here)("info string a\nb\rc")
    os.close(here)
    with os.fdopen(there, "rb") as pipe:
        assert pipe.read() == b"info string a b c\n"


def test_a_reader_that_went_away_is_noticed_once() -> None:
    there, here = os.pipe()
    os.close(there)
    calls: list[int] = []
    write = LineWriter(here)
    write.broken = lambda: calls.append(1)
    write("one")
    write("two")
    os.close(here)
    assert calls == [1]
    assert write.is_broken


def test_stdout_belongs_to_the_protocol() -> None:
    code = (
        "import os, sys\n"
        "from variant_ai.core.engine.line_io import LineWriter, claim_stdout\n"
        "write = LineWriter(claim_stdout())\n"
        "print('a library speaks', flush=True)\n"
        "os.write(1, b'a C library speaks\\n')\n"
        "write('uciok')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"uciok\n"
    assert b"a library speaks" in done.stderr and b"a C library speaks" in done.stderr


# --- logs ----------------------------------------------------------------------------------------


def write_log(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_log_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "game.log"
    log = ProtocolLog(path.open("w", encoding="utf-8"))
    log("<", "uci")
    log(">", "id name x", "uciok")
    log("<", "go infinite")
    log("<", "stop")
    log(">", "bestmove a2a3")
    log("<", "")
    log.close()
    log("<", "after the end")
    lines = list(read_log(path))
    assert [line.text for line in lines] == ["uci", "go infinite", "stop", ""]
    assert [line.answers for line in lines] == [0, 1, 1, 2]
    assert lines[0].pause == 0 and lines[1].pause == 0 and lines[3].pause == 0


def test_a_replay_waits_as_its_client_did(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "a.log",
        "0.0 < uci\n0.1 > uciok\n0.2 < go infinite\n0.25 < stop\n0.3 > bestmove a1a2\n0.4 < quit\n",
    )
    replay = Replay(path)
    lines = iter(replay)
    assert next(lines).text == "uci"
    replay.on_output("uciok")
    assert next(lines).text == "go infinite"
    assert next(lines).text == "stop"
    replay.on_output("bestmove a1a2")
    assert [line.text for line in lines] == ["quit"]
    assert replay.lines[2].pause == pytest.approx(0.05)


@pytest.mark.parametrize("text", ["hello\n", "0.0 uci\n", "x < uci\n"])
def test_a_broken_log_is_rejected_with_its_line(tmp_path: Path, text: str) -> None:
    path = write_log(tmp_path / "a.log", f"0.0 < uci\n{text}")
    with pytest.raises(DataError, match=r"a\.log:2: this is not a line of a protocol log"):
        list(read_log(path))


def test_a_full_disk_ends_the_log_and_not_the_game() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    log = ProtocolLog(Full())
    log("<", "uci")
    log("<", "isready")
