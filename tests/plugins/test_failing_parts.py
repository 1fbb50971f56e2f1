"""Parts of a plugin that fail when they are used: the message names the plugin, and what does not need
the part works as before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_broken_plugins import HEAD, environ, installed

from variant_ai.core.spec import builtin_specs

ENTRIES = (
    HEAD
    + """
@hookimpl
def register_notations(): return [
    NotationEntry('raises', 'failing_parts:Raises'), NotationEntry('five', 'failing_parts:Five')]
@hookimpl
def register_readers(): return [
    ReaderEntry('blind', 'failing_parts:Blind'), ReaderEntry('breaks', 'failing_parts:Breaks')]
@hookimpl
def register_networks(): return [
    NetworkEntry('unbuilt', 'failing_parts:Unbuilt'), NetworkEntry('headless', 'failing_parts:Headless')]
@hookimpl
def register_searches(): return [
    SearchEntry('unmade', 'failing_parts:Unmade'), SearchEntry('leaves', 'failing_leaves:Search')]
@hookimpl
def register_evaluators(): return [
    EvaluatorEntry('tuple', 'failing_parts:Tuple'), EvaluatorEntry('a@b', 'failing_parts:Tuple')]
@hookimpl
def register_rules(): return [RulesEntry('stumbles', 'failing_parts:Stumbles')]
@hookimpl
def register_protocols(): return [ProtocolEntry('loud', 'failing_parts:Loud')]
@hookimpl
def register_encoders(): return [
    EncoderEntry('mine', 'failing_parts:Raises'), EncoderEntry('mine', 'failing_parts:Five', kind='labels')]
"""
)
PARTS = """
import numpy as np
from variant_ai.core.data.read.game_reader import GameReader, RawGame
from variant_ai.core.engine.protocols.uci import Uci
from variant_ai.core.inference import UniformEvaluator
from variant_ai.core.nets import NetworkBuilder, NetSize
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.text.notation import Notation
from variant_ai.core.search.interface import BaseSearch

class Raises(Notation):
    name = 'raises'
    def write(self, rules, position, move): raise ValueError('a bug')
    read = write

class Five(Notation):
    name = 'five'
    def write(self, rules, position, move): return 5
    def read(self, rules, position, text): return None

class Blind(GameReader):
    name, extensions = 'blind', ('.pgn',)
    def sniff(self, head): raise ValueError('a bug in sniff')
    def read(self, stream, source): return iter(())

class Breaks(GameReader):
    name, extensions = 'breaks', ('.broken',)
    def sniff(self, head): return head.startswith(b'broken')
    def read(self, stream, source):
        yield RawGame(source, 1, 1, moves=['b1b2'])
        raise ValueError('a bug in read')

class Unbuilt(NetworkBuilder):
    name, summary, source, heads, size_type = 'unbuilt', '', '', ('map',), NetSize
    def build(self, shape, size): raise ValueError('a bug in build')

class Headless(Unbuilt):
    name, heads = 'headless', 'map'

class Unmade(BaseSearch):
    def __init__(self, *given, **options): raise ValueError('a bug in init')
    run = report = stop = set_game = close = clear = game = root_visits = None

class Tuple(UniformEvaluator):
    def __init__(self, request):
        from variant_ai.core.encoding import Encoder
        encoder = Encoder(request.spec)
        super().__init__(encoder.shape, encoder.actions)
        self.is_uniform = False
    def evaluate(self, planes): return 1, 2

class Stumbles(KernelRules):
    name = 'stumbles'
    def play(self, position, move): raise ValueError('a bug in play')

class Loud(Uci):
    name = first_word = 'loud'
"""
GAME = '[Event "a"]\n[Result "*"]\n\n1. b1a3 *\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    installed(made, "failing", ENTRIES)
    (made / "failing_parts.py").write_text(PARTS)
    (made / "failing_leaves.py").write_text("import sys; sys.exit(3)")
    (made / "one.pgn").write_text(GAME)
    (made / "one.broken").write_text("broken\n")
    spec = builtin_specs()["minixiangqi"].read_text("utf-8")
    (made / "stumbles.yaml").write_text(spec.replace("rules:\n", "rules:\n  engine: stumbles\n", 1))
    (made / "many.uci").write_text("startpos moves a2a3\n" * 400)
    return made


def run(folder: Path, *arguments: str, sent: str = "") -> tuple[int, str]:
    """Run `variant-ai` with the plugin: (status, output with errors)."""
    done = subprocess.run(
        [sys.executable, "-m", "variant_ai.cli.main", *arguments],
        input=sent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **environ(folder)},
        cwd=folder,
    )
    assert "Traceback" not in done.stdout, done.stdout
    return done.returncode, done.stdout


def test_games_are_read_beside_readers_and_notations_that_fail(folder: Path) -> None:
    status, printed = run(folder, "import", "one.pgn", "-V", "chess", "-o", "one.store")
    assert status == 0, printed
    assert (
        "plugin 'failing': sniff of the reader 'blind' failed: ValueError: a bug in sniff"
        in printed
    )
    assert (folder / "one.store").exists()


def test_a_reader_that_breaks_is_named_in_the_list_of_skipped_games(folder: Path) -> None:
    status, printed = run(folder, "import", "one.broken", "-V", "chess", "-o", "broken.store")
    assert "reader failed" in printed, (status, printed)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_rules_that_fail_are_named_in_every_process(folder: Path, workers: str) -> None:
    words = ("-V", "stumbles.yaml", "-o", f"{workers}.store", "--workers", workers)
    status, printed = run(folder, "import", "many.uci", *words)
    assert status == 1
    assert "Error: plugin 'failing' failed at " in printed
    assert "failing_parts.py" in printed and "ValueError: a bug in play" in printed


@pytest.mark.parametrize("notation", ["raises", "five"])
def test_a_notation_that_cannot_write(folder: Path, notation: str) -> None:
    uniform = ("analyse", "startpos", "-V", "minixiangqi", "--evaluator", "uniform", "--nodes", "8")
    status, printed = run(folder, *uniform, "--notation", notation)
    assert status == 1
    assert f"plugin 'failing': the notation '{notation}' cannot write" in printed


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (
            "--search",
            "unmade",
            "of 'failing_parts:Unmade' cannot be made: ValueError: a bug in init",
        ),
        ("--search", "leaves", "plugin 'failing': cannot load the search 'leaves'"),
        ("--evaluator", "tuple", "the evaluator answered with (1, 2), not with an Evaluation"),
    ],
)
def test_a_search_or_an_evaluator_that_fails(
    folder: Path, option: str, value: str, message: str
) -> None:
    given = {"--evaluator": "uniform", option: value}
    words = [word for pair in given.items() for word in pair]
    status, printed = run(
        folder, "analyse", "startpos", "-V", "minixiangqi", "--nodes", "8", *words
    )
    assert status == 1
    assert message in printed


def test_nets_are_listed_without_one_that_cannot_be_built(folder: Path) -> None:
    status, printed = run(folder, "nets", "-V", "minixiangqi")
    assert status == 0, printed
    assert "unbuilt, map: ValueError: a bug in build" in printed
    assert "'headless' has heads = 'map', not a tuple" in printed
    assert "risev2" in printed
    status, printed = run(folder, "nets", "unbuilt", "-V", "minixiangqi")
    assert status == 1
    assert "plugin 'failing' failed at" in printed and "a bug in build" in printed


def test_a_protocol_is_chosen_by_its_first_word(folder: Path) -> None:
    status, printed = run(folder, "engine", "-V", "minixiangqi", sent="loud\nquit\n")
    assert status == 0
    assert "unknown command" not in printed and "loudok" in printed


def test_what_is_registered(folder: Path) -> None:
    """Encoders of positions and of moves have names of their own; an evaluator's name is one word."""
    _, printed = run(folder, "plugins")
    assert "'mine' is given twice" not in printed
    assert (
        "evaluators 'a@b' was left out: name = 'a@b'; accepted: a name without @ : and ," in printed
    )
