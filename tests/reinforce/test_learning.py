"""A net learns a variant from nothing, judged by its raw policy: one evaluation a move, no search.

Through a search an untrained net already beats random moves, so a test with a search would prove nothing
about learning.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from variant_ai.core.reinforce.games.game_supply import open_net
from variant_ai.core.reinforce.ladder.net_match import play_match
from variant_ai.core.reinforce.reinforcement import Reinforcement
from variant_ai.core.reinforce.settings_file import make_settings
from variant_ai.plugins import registry

GENERATIONS = 6
SETTINGS = {
    "variant": "dobutsu",
    "generations": GENERATIONS,
    "positions": 4000,
    "threads": 1,
    "precision": "fp32",
    "search": {"nodes": 16, "considered": 8},
    "variety": {"max_plies": 100},
    "learning": {
        "size": {"blocks": 2, "channels": 24, "value_channels": 4, "value_hidden": 32},
        "lr": 4e-3,
        "lr_end": 1e-3,
        "ema_steps": 50,
        "precision": "fp32",
    },
    "ladder": {"games": 0},
}


def test_a_net_learns_from_nothing(tmp_path: Path) -> None:
    settings = make_settings(SETTINGS)
    spec = registry().variant("dobutsu")
    run = Reinforcement(settings, spec, tmp_path)
    assert run.run()
    newest = open_net(spec, run.folder.net(GENERATIONS), settings)
    untrained = open_net(spec, run.folder.net(0), settings)
    words = {"opening_plies": 2, "max_plies": 100, "seed": 1, "search": settings.search}
    with closing(newest), closing(untrained):
        against_random = play_match(spec, newest, None, games=100, nodes=0, **words)
        against_start = play_match(spec, newest, untrained, games=100, nodes=16, **words)
    assert against_random.wins >= 90
    assert against_start.tally.score >= 0.65
