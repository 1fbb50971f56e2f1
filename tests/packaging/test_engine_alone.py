"""An installation without the packages of training plays; commands that train name the missing packages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from source_text import ROOT

from variant_ai.core.system.missing_packages import EXTRAS, TRAINING

BLOCKED = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {TRAINING!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


def run(folder: Path, *arguments: str, sent: str = "") -> subprocess.CompletedProcess[str]:
    """Run `variant-ai` where the packages of training cannot be imported."""
    (folder / "sitecustomize.py").write_text(BLOCKED)
    return subprocess.run(
        [sys.executable, "-m", "variant_ai.cli.main", *arguments],
        input=sent,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )


def test_the_engine_plays(tmp_path: Path) -> None:
    match = ("match", "net:packaged;name=a", "random", "-V", "minishogi", "--nodes", "8")
    done = run(tmp_path, *match, "--games", "2", "-o", "match")
    assert done.returncode == 0, done.stderr
    assert "2 games" in done.stdout + done.stderr


def test_a_spec_is_checked(tmp_path: Path) -> None:
    done = run(tmp_path, "spec", "check", "minishogi", "--positions", "20")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("train", "-V", "minishogi"),
        ("reinforce", "-V", "minishogi", "--minutes", "1"),
        ("analyse", "startpos", "-V", "minishogi", "--evaluator", "torch", "--model", "packaged"),
    ],
)
def test_what_needs_torch_says_so(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = run(tmp_path, *command)
    assert done.returncode == 1
    assert "install it with: pip install torch" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="needs the sources")
def test_the_packages_of_an_engine_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = re.compile(r"[\w.-]+")
    needed = [one for one in project["dependencies"] if names.match(one)[0] not in TRAINING]  # type: ignore[index]
    listed = (ROOT / "requirements-engine.txt").read_text(encoding="utf-8").splitlines()
    extras = project["optional-dependencies"]
    assert [line for line in listed if not line.startswith("#")] == needed + extras["web"]
    for extra, modules in EXTRAS.items():
        assert set(modules) <= {names.match(one)[0] for one in extras[extra]}  # type: ignore[index]
