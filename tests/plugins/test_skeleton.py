"""`variant-ai plugin new`: the package installs, passes its tests, trains and plays, untouched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.core.errors import SettingError
from variant_ai.plugins import registry, skeleton
from variant_ai.plugins.hookspecs import API_VERSION


def new(*args: str) -> Result:
    return CliRunner().invoke(cli, ["plugin", "new", *args])


def test_all_files_are_listed_and_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = new("my-game", "--json")
    assert done.exit_code == 0, done.output
    listed = json.loads(done.output)
    assert listed["folder"] == "variant-ai-my-game"
    folder = tmp_path / listed["folder"]
    assert sorted(listed["files"]) == [
        ".gitignore",
        "README.md",
        "pyproject.toml",
        "tests/test_my_game.py",
        "variant_ai_my_game/__init__.py",
        "variant_ai_my_game/my-game.yaml",
        "variant_ai_my_game/plugin.py",
    ]
    for file in listed["files"]:
        text = (folder / file).read_text(encoding="utf-8")
        assert text.endswith("\n") and not text.endswith("\n\n"), file
        assert "{{" not in text and "{%" not in text
    assert f"variant_ai_api = {API_VERSION}" in (folder / listed["files"][-1]).read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["variant-ai-my-game"]


def test_what_to_do_next_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = new("mygame", "--reader", "--notation", "-o", "own/my folder")
    assert done.exit_code == 0, done.output
    assert "pip install -e 'own/my folder[testing]'" in done.output
    assert (tmp_path / "own" / "my folder" / "variant_ai_mygame" / "reader.py").is_file()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("My Game", "did you mean 'my-game'? accepted: at most 40 lower-case letters"),
        ("5x5", "did you mean 'x'? accepted"),
        ("-", "no such option|'-' is not a name"),
        ("a" * 41, "accepted: at most 40 lower-case letters"),
        ("chess", "'chess' is a variant already, of the plugin 'specs'"),
        ("specs", "'specs' is an installed plugin already"),
        ("variant-ai-mine", "give 'mine'"),
        ("../mine", "did you mean 'mine'?"),
    ],
)
def test_a_name_that_cannot_be_used(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = new(name)
    assert done.exit_code == 1, done.output
    assert any(part in done.output for part in message.split("|")), done.output
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert new("mine", "-o", "empty").exit_code == 0
    done = new("mine", "-o", "empty")
    assert done.exit_code == 1 and "empty already exists; name another folder" in done.output
    (tmp_path / "file").write_text("x")
    done = new("mine", "-o", "file")
    assert done.exit_code != 0 and (tmp_path / "file").read_text() == "x"
    done = new("mine", "-o", "file/inside")
    assert done.exit_code == 1 and "file/inside cannot be written" in done.output


def test_the_folder_may_be_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert new("mine", "-o", ".").exit_code == 0
    assert Path("variant_ai_mine/mine.yaml").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_nothing_is_left_of_a_package_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(name: str, reader: bool, notation: bool) -> object:
        yield "pyproject.toml", "x"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(skeleton, "_files", full)
    with pytest.raises(SettingError, match="mine cannot be written: No space left"):
        skeleton.write_skeleton("mine", tmp_path / "mine")
    assert list(tmp_path.iterdir()) == []


def test_a_new_name_is_accepted() -> None:
    skeleton.check_name("my-game-2", registry())


PROGRAM = [sys.executable, "-m", "variant_ai.cli.main"]
ENGINE = """\
uci
setoption name UCI_Variant value skeleton-game
isready
position startpos moves a2a3
go nodes 20
"""


@pytest.mark.slow
def test_the_package_works_untouched(tmp_path: Path) -> None:
    """As its README says, with less self-play."""
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}

    def run(*command: str, text: str = "") -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=env, input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    run(*PROGRAM, "plugin", "new", "skeleton-game", "--reader", "--notation", "-o", "package")
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation")
    run(*pip, "--disable-pip-version-check", "--target", "site", "./package")
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "site"), env.get("PYTHONPATH", "")])
    assert "5 passed" in run(sys.executable, "-m", "pytest", "-q", "package")
    variant = ("-V", "skeleton-game")
    run(*PROGRAM, "import", "package/tests/example.games", *variant, "-o", "example.store")
    run(
        *PROGRAM, "reinforce", *variant, "--generations", "1", "--positions", "60", "--games", "8",
        "--nodes", "4", "--run", "run", "--set", "ladder.games=0",
    )  # fmt: skip
    engine = subprocess.Popen(
        [*PROGRAM, "engine", *variant, "--model", "run/model.onnx"],
        cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert engine.stdin is not None and engine.stdout is not None
    with engine:
        engine.stdin.write(ENGINE)
        engine.stdin.flush()
        answers = []
        for line in engine.stdout:
            answers.append(line)
            if line.startswith("bestmove"):
                break
        engine.stdin.write("quit\n")
    assert answers[-1].startswith("bestmove ") and "(none)" not in answers[-1], answers
