"""The matches of `experiments/`: every file can be played as it stands, given its nets."""

from __future__ import annotations

from pathlib import Path

import pytest

from variant_ai.cli.common.player_options import load_openings
from variant_ai.core.arena.games.openings import played_out
from variant_ai.core.arena.match.match_settings import OpeningSettings, settings_of, small_scale
from variant_ai.core.arena.players.player_spec import read_yaml
from variant_ai.core.errors import SettingError
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec.catalogue import PACKAGED
from variant_ai.plugins import registry

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
FILES = sorted(
    path
    for pattern in ("table-*", "figure-*", "engines-*", "strength/*")
    for path in FOLDER.glob(f"{pattern}.yaml")
)
MATCHES = sorted(
    path
    for path in (*FOLDER.glob("*.yaml"), *FOLDER.glob("strength/*.yaml"))
    if "\nplayers:" in f"\n{path.read_text('utf-8')}"
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
            ours = file.stem.startswith("engines") or file.parent.name == "strength"
            assert player.settings == ("default" if ours else "paper")
    if settings.openings.lines:
        rules = registry().rules(spec)
        openings = load_openings(settings.openings, rules, 0)
        assert settings.games == 2 * len(openings)
        assert all(played_out(rules, opening).ply >= 2 for opening in openings)


@pytest.mark.parametrize("file", MATCHES, ids=lambda path: path.stem)
def test_an_experiment_has_a_small_scale(file: Path) -> None:
    content = read_yaml(file)
    assert isinstance(content, dict)
    whole, small = settings_of(content, file.name), settings_of(small_scale(content, ""), file.name)
    assert small.games <= whole.games
    assert [player.label for player in small.players] == [player.label for player in whole.players]
    assert not any("-full/" in player.net for player in small.players)
    assert small.games < whole.games or small.decisive() != whole.decisive()


def test_a_small_scale_changes_what_it_says() -> None:
    content = {
        "variant": "xiangqi",
        "clock": "60+1",
        "players": [{"net": "runs/full/a.onnx", "nodes": 100}, {"command": "x"}],
        "small": {"games": 4, "nodes": 7, "divide_nodes": 16, "replace": ["full", "small"]},
    }
    assert small_scale(content, "m.yaml") == {
        "variant": "xiangqi",
        "games": 4,
        "nodes": 7,
        "players": [{"net": "runs/small/a.onnx", "nodes": 6}, {"command": "x"}],
    }
    odd = {"players": [{"net": "a", "nodes": "x"}], "small": {"divide_nodes": 2}}
    assert small_scale(odd, "m.yaml")["players"] == odd["players"]
    for wrong, words in (
        ({}, "has no settings of a small run"),
        ({"divide_nodes": 0}, "must be 1 or more"),
        ({"replace": "a"}, r"must be \[OLD, NEW\]"),
    ):
        with pytest.raises(SettingError, match=words):
            small_scale({**content, "small": wrong}, "m.yaml")


def test_the_readme_lists_every_file() -> None:
    listed = (FOLDER / "README.md").read_text("utf-8")
    assert FILES and all(f"`{file.relative_to(FOLDER)}`" in listed for file in FILES)


@pytest.mark.parametrize("file", MATCHES, ids=lambda path: path.stem)
def test_nets_are_found_from_any_folder(file: Path) -> None:
    """Paths are relative to the file; a net is the variant's own or made by another experiment."""
    for player in settings_of(read_yaml(file), file.name).players:
        assert player.net in ("", "-", PACKAGED) or player.net.startswith("../runs/")
