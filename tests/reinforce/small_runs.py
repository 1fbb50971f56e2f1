"""Runs of self-play that take a second or two a generation, and what must be true of every run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.reinforce.games.self_play import recorded_positions
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.reinforce.reinforcement import Reinforcement, Watcher
from variant_ai.plugins import registry

VARIANT = "dobutsu"
POSITIONS = 40
WORDS: dict[str, Any] = {
    "generations": 3,
    "positions": POSITIONS,
    "games_at_once": 6,
    "evaluator": "onnx",
    "threads": 1,
    "search": {"nodes": 4, "considered": 4},
    "variety": {"max_plies": 30},
    "learning": {
        "size": {"blocks": 1, "channels": 8, "value_channels": 1, "value_hidden": 8},
        "batch": 32,
        "samples_per_position": 3.0,
        "checkpoint_every": 2,
    },
    "ladder": {"games": 2, "nodes": 0, "opponents": [1], "cpu_share": 1.0},
}
"""Settings of a small run, without its variant."""


def small_settings(variant: str = VARIANT, **words: Any) -> ReinforceSettings:
    """Settings of a small run; a section is changed word by word."""
    merged = dict(WORDS)
    for name, value in words.items():
        old = merged.get(name)
        merged[name] = {**old, **value} if isinstance(old, dict) else value
    return ReinforceSettings.model_validate({"variant": variant, **merged})


def small_run(
    folder: Path, settings: ReinforceSettings | None = None, watcher: Watcher | None = None
) -> Reinforcement:
    settings = settings or small_settings()
    return Reinforcement(
        settings, registry().variant(settings.variant), folder, watcher=watcher or Watcher()
    )


def stored_games(folder: Path, generation: int, variant: str = VARIANT) -> list[GameRecord]:
    path = ReinforceFolder(folder).store(generation)
    return list(Store(path, registry().variant(variant)).games())


def check_run(
    folder: Path, generations: int, *, in_hand: int, variant: str = VARIANT
) -> ReinforceFolder:
    """Check that so many generations are complete and agree with each other, and that no game is twice
    or lost, but as many as may be in progress."""
    run = ReinforceFolder(folder)
    settings, state = run.settings(), run.state()
    assert state.generation == state.player == generations
    games = {number: stored_games(folder, number, variant) for number in range(1, generations + 1)}
    numbers = [game.number for records in games.values() for game in records]
    assert len(numbers) == len(set(numbers))
    assert max(numbers) - len(numbers) <= in_hand
    for records in games.values():
        order = [game.number for game in records]
        assert order == sorted(order)
        assert sum(map(recorded_positions, records)) >= settings.positions
    assert state.games == len(numbers)
    rows = run.rows()
    assert [row["generation"] for row in rows] == list(range(1, generations + 1))
    steps = positions = count = 0
    for row in rows:
        records = games[row["generation"]]
        count += len(records)
        positions += sum(map(recorded_positions, records))
        new = row["positions"] * settings.learning.samples_per_position / settings.learning.batch
        steps += max(1, round(new))
        assert (row["total_games"], row["total_positions"]) == (count, positions)
        assert row["steps"] == steps
        assert row["train"]["positions"] > 0
        assert run.net(row["generation"]).is_file()
    assert (state.positions, state.steps) == (positions, steps)
    assert run.newest_net.read_bytes() == run.net(generations).read_bytes()
    assert not list((folder / "games").glob("*.journal"))
    assert not list(folder.rglob("*.part")) and not list(folder.rglob("*.partial"))
    return run
