"""A plugin that does not work is reported with its name and mistake, and nothing else breaks: in commands,
in programs, and in the engine, which answers a GUI whatever is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import variant_ai
from variant_ai.cli.main import cli
from variant_ai.core.errors import PluginError, UnknownNameError
from variant_ai.core.factories import (
    INPUT_ENCODERS,
    LABEL_ENCODERS,
    RULES_ENGINES,
    SEARCHES,
    TRAINERS,
    Factories,
)
from variant_ai.core.inference import EvaluatorRequest
from variant_ai.plugins import (
    API_VERSION,
    CommandEntry,
    EvaluatorEntry,
    NotationEntry,
    ReaderEntry,
    Registry,
    hookimpl,
)

HEAD = f"""
from variant_ai.plugins import *
variant_ai_api = {API_VERSION}
"""
BROKEN = {
    "cannot be imported": "import no_such_module_at_all",
    "has no attribute variant_ai_api": "print('hello')",
    "expected VariantEntry, got str": HEAD + "@hookimpl\ndef register_variants(): return ['mine']",
    "register_variants failed: RuntimeError": HEAD
    + "@hookimpl\ndef register_variants(): raise RuntimeError('no way')",
    "specs/minixiangqi.yaml counts": HEAD
    + "@hookimpl\ndef register_variants(): return [VariantEntry('minixiangqi', __file__)]",
    "given twice": HEAD
    + "entry = ReaderEntry('r', 'json:loads')\n@hookimpl\ndef register_readers(): return [entry, entry]",
    "register_commands failed: ZeroDivisionError": HEAD
    + "@hookimpl\ndef register_commands(): print('dividing'); return [1 / 0]",
}
"""Mistake -> code of the plugin."""


def installed(folder: Path, name: str, code: str) -> None:
    """Install a package into a folder as pip does: a module, and the metadata beside it."""
    module = f"{name}_for_test"
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[variant_ai]\n{name} = {module}\n")


def environ(folder: Path) -> dict[str, str]:
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "XDG_DATA_HOME": str(folder),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All broken plugins together, one that works, and one whose spec is no spec."""
    folder = tmp_path_factory.mktemp("site")
    for number, code in enumerate(BROKEN.values()):
        installed(folder, f"broken{number}", code)
    good = HEAD + (
        "from pathlib import Path\n@hookimpl\ndef register_variants():\n"
        "    here = Path(__file__)\n"
        "    return [VariantEntry('good', here.with_name('good.yaml')),\n"
        "            VariantEntry('gone', here.with_name('gone.yaml')),\n"
        "            VariantEntry('garbled', here.with_name('garbled.yaml'))]"
    )
    installed(folder, "good", good)
    (folder / "good.yaml").write_text("extends: minixiangqi\nvariant: good\n")
    (folder / "garbled.yaml").write_text("{{{ \0")
    return folder


def test_commands_name_the_plugins_and_work(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "variant_ai.cli.main", "plugins", "--json"],
        env=environ(folder), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = {plugin["name"]: plugin for plugin in json.loads(done.stdout)["plugins"]}
    for number, mistake in enumerate(BROKEN):
        assert mistake in found[f"broken{number}"]["problem"]
        assert f"plugin 'broken{number}'" in done.stderr
    assert found["good"]["problem"] is None
    assert found["good"]["registers"] == {"variants": ["good", "gone", "garbled"]}
    assert "hello" in done.stderr and "dividing" in done.stderr


def test_the_engine_answers_and_plays(folder: Path) -> None:
    """Nothing of the plugins reaches stdout, which belongs to the protocol."""
    engine = subprocess.Popen(
        [sys.executable, "-m", "variant_ai.cli.main", "engine", "-V", "good"],
        env=environ(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert engine.stdin is not None and engine.stdout is not None and engine.stderr is not None
    with engine:
        engine.stdin.write("uci\nsetoption name UCI_Variant value garbled\n")
        engine.stdin.write("setoption name UCI_Variant value good\nposition startpos\ngo nodes 5\n")
        engine.stdin.flush()
        lines = []
        for line in engine.stdout:
            lines.append(line.rstrip())
            if line.startswith("bestmove"):
                break
        engine.stdin.write("quit\n")
        engine.stdin.flush()
        errors = engine.stderr.read()
    assert "uciok" in lines and "(none)" not in lines[-1]
    words = {"id", "option", "uciok", "info", "bestmove"}
    assert {line.split()[0] for line in lines if line} <= words
    assert any("garbled.yaml" in line for line in lines)
    for number, mistake in enumerate(BROKEN):
        if "given twice" not in mistake and "commands" not in mistake:  # not needed to play
            assert f"broken{number}" in errors


# --- objects of a wrong type ---------------------------------------------------------------------


class Plugin:
    """A plugin of readers, notations and evaluators that are none."""

    variant_ai_api = API_VERSION

    @hookimpl
    def register_readers(self) -> list[ReaderEntry]:
        return [
            ReaderEntry("wrong-reader", "types:SimpleNamespace"),
            ReaderEntry("absent-reader", "no_such_module_at_all:x"),
        ]

    @hookimpl
    def register_notations(self) -> list[NotationEntry]:
        return [NotationEntry("wrong-notation", "types:SimpleNamespace")]

    @hookimpl
    def register_evaluators(self) -> list[EvaluatorEntry]:
        return [EvaluatorEntry("wrong-evaluator", "builtins:str")]

    @hookimpl
    def register_commands(self) -> list[CommandEntry]:
        return [CommandEntry("wrong-command", "json:loads", "nothing")]


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Registry:
    found = Registry(entry_points=[], environ={"VARIANT_AI_SPECS": ""})
    assert found.register(Plugin(), "outside")
    for module in ("variant_ai.plugins", "variant_ai.api"):
        monkeypatch.setattr(f"{module}.registry", lambda: found)
    return found


def problem(found: Registry) -> str:
    return next(info.problem for info in found.plugins if info.name == "outside")


def test_imports_go_on_without_the_readers(outside: Registry, tmp_path: Path) -> None:
    games = tmp_path / "games.txt"
    games.write_text(f"{variant_ai.Position('dobutsu').legal_moves()[0]}\n")
    words = ["import", str(games), "-V", "dobutsu", "-o", str(tmp_path / "games.store")]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    told = problem(outside)
    assert "readers 'wrong-reader' was left out: 'types:SimpleNamespace' of the reader" in told
    assert "is a SimpleNamespace, not a GameReader" in told
    assert "readers 'absent-reader' was left out: cannot load" in told


def test_a_notation_is_an_error_only_if_it_is_asked_for(outside: Registry) -> None:
    spec = outside.variant("dobutsu")
    position = variant_ai.Position(spec)
    move = position.legal_moves()[0]
    assert position.written(move, "san")
    with pytest.raises(PluginError, match=r"'outside': .* is a SimpleNamespace, not a Notation"):
        position.written(move, "wrong-notation")
    with pytest.raises(UnknownNameError, match=r"accepted: .*san"):
        position.written(move, "sam")
    words = ["analyse", "startpos", "-V", "dobutsu", "--nodes", "2", "--notation"]
    done = CliRunner().invoke(cli, [*words, "wrong-notation"])
    assert done.exit_code == 1 and "not a Notation" in " ".join(done.output.split())


def test_an_evaluator_of_a_wrong_type_is_named(outside: Registry) -> None:
    spec = outside.variant("dobutsu")
    with pytest.raises(PluginError, match=r"'outside': .* is a str, not an Evaluator"):
        outside.evaluators["wrong-evaluator"].make(EvaluatorRequest(spec))


def test_a_command_of_a_wrong_type_is_named(outside: Registry) -> None:
    with pytest.raises(
        PluginError, match=r"plugin 'outside': 'json:loads' .* is a function, not a click"
    ):
        outside.commands["wrong-command"].load()


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        (RULES_ENGINES, "Rules"),
        (INPUT_ENCODERS, "InputEncoder"),
        (LABEL_ENCODERS, "LabelEncoder"),
        (SEARCHES, "BaseSearch"),
        (TRAINERS, "BaseTrainer"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize(
    ("target", "mistake"),
    [
        ("types:SimpleNamespace", "is the class SimpleNamespace, not a {} class"),
        ("json:__name__", "is a str, not a {} class"),
        (dict.fromkeys, "made a dict, not a {}"),
    ],
    ids=["class", "object", "function"],
)
def test_what_is_chosen_by_name_is_of_its_type(
    table: Factories[Any],
    wanted: str,
    target: str | Callable[..., Any],
    mistake: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table, "_targets", dict(table._targets))
    table.register("wrong", target)
    with pytest.raises(
        PluginError, match=f"the {table.kind} 'wrong' of .* {mistake.format(wanted)}"
    ):
        table.load("wrong")([])
