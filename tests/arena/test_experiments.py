"""The matches of `experiments/`: every file can be played as it stands, given its nets."""

from __future__ import annotations

from pathlib import Path

import pytest

from variant_ai.cli.players import load_openings
from variant_ai.core.arena.match_settings import OpeningSettings, settings_of
from variant_ai.core.arena.openings import played_out
from variant_ai.core.arena.player_spec import read_yaml
from variant_ai.core.search.params import SearchParams
from variant_ai.plugins import registry

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
FILES = sorted(
    path for kind in ("table", "figure", "engines") for path in FOLDER.glob(f"{kind}-*.yaml")
)


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_an_experiment_can_be_played(file: Path) -> None:
    settings = settings_of(read_yaml(file), file.name)
    assert settings.title
    assert settings.meetings()
    assert settings.openings != OpeningSettings()
    spec = registry().variant(settings.variant)
    for player in settings.players:
        if player.net:
            SearchParams.of(spec, player.settings, **player.search)
            ours = file.stem.startswith("engines")
            assert player.settings == ("default" if ours else "paper")
    if settings.openings.lines:
        rules = registry().rules(spec)
        openings = load_openings(settings.openings, rules, 0)
        assert settings.games == 2 * len(openings)
        assert all(played_out(rules, opening).ply >= 2 for opening in openings)


def test_the_readme_lists_every_file() -> None:
    listed = (FOLDER / "README.md").read_text("utf-8")
    assert FILES and all(f"`{file.name}`" in listed for file in FILES)
