"""Files that are written whole, and errors that name them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from variant_ai.core.system import files
from variant_ai.core.system.files import naming, rename, whole, write_whole


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (folder, tmp_path / "missing" / "a.svg"):
        with pytest.raises(OSError) as caught:
            write_whole(path, "text")
        assert (caught.value.filename, caught.value.filename2) == (str(path), None)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_temporary_folder_is_not_named_either(tmp_path: Path) -> None:
    part = tmp_path / "step.part"
    with pytest.raises(FileNotFoundError) as caught, naming(tmp_path / "step", part):
        (part / "model").write_bytes(b"")
    assert caught.value.filename == str(tmp_path / "step")


def test_errors_of_other_files_keep_their_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, whole(tmp_path / "a") as part:
        part.write_text((tmp_path / "no such file").read_text())
    assert caught.value.filename == str(tmp_path / "no such file")
    assert list(tmp_path.iterdir()) == []


def test_an_error_without_a_name_gets_one(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught, naming(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "a")


def test_an_older_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), whole(path) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    write_whole(path, "new")
    assert path.read_text() == "new\n"


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_device_or_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "text")
    assert os.read(reading, 100) == b"text\n"
    os.close(reading)
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_on_windows_a_file_that_is_being_read_is_replaced_a_moment_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [PermissionError(errno.EACCES, "in use")] * 3
    replace = Path.replace

    def refused(self: Path, target: Path) -> Path:
        if refusals:
            raise refusals.pop()
        return replace(self, target)

    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("text")
    monkeypatch.setattr(files, "PAUSE", 0.0)
    monkeypatch.setattr(files, "WINDOWS", True)
    monkeypatch.setattr(Path, "replace", refused)
    rename(old, new)
    assert new.read_text() == "text" and not refusals

    refusals += [PermissionError(errno.EACCES, "in use")] * 2
    monkeypatch.setattr(files, "WINDOWS", False)
    with pytest.raises(PermissionError):
        rename(new, old)
    assert len(refusals) == 1, "elsewhere it is an error at once"
