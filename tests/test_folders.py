"""Temporary folders go with their process, also if it is killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from variant_ai.core.system.folders import temporary_folder

pytest.importorskip("fcntl", reason="this system has no locks of files")
HOLDER = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from variant_ai.core.system.folders import temporary_folder
print(temporary_folder("ours-"), flush=True)
sys.stdin.readline()
"""


def test_what_a_killed_process_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    words = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        mine = temporary_folder("ours-")
        assert {*tmp_path.iterdir()} == {theirs, mine}, "both are in use"
        other.kill()
    assert theirs.is_dir()
    newest = temporary_folder("ours-")
    assert {*tmp_path.iterdir()} == {mine, newest}


def test_a_process_that_ends_removes_its_folder(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDER, str(tmp_path)]
    subprocess.run(words, input="\n", text=True, check=True, stdout=subprocess.DEVNULL)
    assert list(tmp_path.iterdir()) == []
