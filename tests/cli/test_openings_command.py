"""`variant-ai openings` from outside: lines of a book, and what is refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli

START = 0x463B96181691FC9C
E2E4, D2D4 = 0o1434, 0o1333
"""Squares from and to, three bits for each rank and file."""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Two first moves, one of them thrice as heavy."""
    path = tmp_path / "book.bin"
    path.write_bytes(
        b"".join(struct.pack(">QHHI", START, move, n, 0) for move, n in ((E2E4, 3), (D2D4, 1)))
    )
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)))


def test_lines_of_a_book_start_games(book: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    done = run("openings", "--from-book", book, "-V", "crazyhouse", "-o", lines, "--json")
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["openings"], said["plies"]) == (2, 1)
    moves = {word for line in lines.read_text().splitlines() for word in line.split()}
    assert {"e2e4", "d2d4"} <= moves
    firsts = []
    for openings in (book, lines):
        folder = tmp_path / f"m-{openings.suffix}"
        done = run(
            "match", "random;name=a", "random;name=b", "-V", "crazyhouse", "--nodes", 1,
            "--openings", openings, "--games", 4, "--max-plies", 3, "-o", folder,
        )  # fmt: skip
        assert done.exit_code == 0, done.stderr
        assert "ends: adjudicated: move limit 4" in done.stdout
        games = [json.loads(line) for line in (folder / "games.jsonl").read_text().splitlines()]
        firsts.append(sorted(game["moves"][0] for game in games))
        assert all(game["opening_plies"] == 1 for game in games)
    assert firsts == [["d2d4", "d2d4", "e2e4", "e2e4"]] * 2


def test_wrong_input_is_one_sentence(book: Path, tmp_path: Path) -> None:
    out = tmp_path / "lines.txt"
    cases: tuple[tuple[list[object], int, str], ...] = (
        (["-V", "crazyhouse"], 2, "either --from-model or --from-book"),
        (
            ["--from-book", book, "-V", "crazyhouse", "--temperature", 2],
            2,
            "--temperature has no effect with --from-book",
        ),
        (
            ["--from-model", "packaged", "-V", "crazyhouse", "--depth", 2],
            2,
            "--depth has no effect with --from-model",
        ),
        (["--from-book", book, "-V", "xiangqi"], 1, "its board is 9 x 10"),
        (["--from-book", book, "-V", "crazyhouse", "--count", 3], 1, "of 3 different lines"),
    )
    for words, status, reason in cases:
        done = run("openings", *words, "-o", out)
        assert done.exit_code == status and reason in done.stderr
        assert "Traceback" not in done.output and not out.exists()
    before = book.read_bytes()
    done = run("openings", "--from-book", book, "-V", "crazyhouse", "-o", book, "--replace")
    assert done.exit_code == 1 and "book.bin is also an input" in done.stderr
    assert book.read_bytes() == before
