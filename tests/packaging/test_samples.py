"""The games that come with the variants: whole, legal, small, and made as their note says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from variant_ai.cli.main import cli
from variant_ai.core.arena.programs.engine_process import engine_command
from variant_ai.core.arena.programs.uci_client import UciClient
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game
from variant_ai.plugins import VariantEntry, registry

SAMPLES = {name: entry for name, entry in registry().variants.items() if entry.sample}
LEAST_GAMES = 400
MOST_BYTES = 1_000_000
REPLAYED = 25


@pytest.fixture(params=sorted(SAMPLES))
def entry(request: pytest.FixtureRequest) -> VariantEntry:
    return SAMPLES[request.param]


def sample(entry: VariantEntry) -> Path:
    assert entry.sample is not None
    return entry.sample


def test_every_plugin_of_ours_has_one() -> None:
    own = {info.name for info in registry().plugins if info.own} - {"specs", "user-specs"}
    assert set(SAMPLES) >= own
    assert sum(sample(entry).stat().st_size for entry in SAMPLES.values()) < MOST_BYTES


def test_it_is_whole_and_of_this_spec(entry: VariantEntry) -> None:
    spec = registry().variant(entry.name)
    store = Store(sample(entry), spec)
    store.verify()
    store.require(spec)
    assert len(store) >= LEAST_GAMES
    assert not store.info.unfinished


def test_games_are_legal_and_end_as_recorded(entry: VariantEntry) -> None:
    spec = registry().variant(entry.name)
    rules = registry().rules(spec)
    store = Store(sample(entry), spec)
    for index in range(0, len(store), len(store) // REPLAYED):
        record = store.game(index)
        game = Game(rules, record.start_fen)
        for move in record.moves:
            assert move in game.legal_moves()
            game.push(move)
        outcome = game.outcome()
        if not record.termination.startswith("adjudicated"):
            assert outcome is not None
            assert (outcome.result, outcome.reason) == (record.result, record.termination)


@pytest.mark.peer
def test_the_command_of_its_note_makes_its_games(entry: VariantEntry, tmp_path: Path) -> None:
    """The first games of it, where the same version of the same engine is installed."""
    note = sample(entry).with_name("SAMPLE.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^variant-ai generate .*$", note, re.MULTILINE)
    words = shlex.split(line)[1:]
    store = Store(sample(entry))
    try:
        with UciClient(engine_command(words[words.index("--engine") + 1])) as engine:
            here = engine.name
    except EngineError as error:
        pytest.skip(f"needs the engine that made it: {error}")
    if here != store.game(0).white:
        pytest.skip(f"made by {store.game(0).white}, here is {here}")
    for option, value in (("--games", "2"), ("-o", str(tmp_path / "games.store"))):
        words[words.index(option) + 1] = value
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    made = Store(tmp_path / "games.store")
    assert [made.game(i) for i in range(2)] == [store.game(i) for i in range(2)]
