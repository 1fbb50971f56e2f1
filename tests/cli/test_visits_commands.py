"""Visits from a net's self-play to a net that learnt them, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.core.data.store.game_store import Store, StoreWriter

VARIANT = "xiangqi"
PLAYER = (
    "net:-;evaluator=random;search.memory_mb=32;search.noise_epsilon=0.25;search.q_unvisited=parent"
)
TINY = (
    "--blocks", "1", "--channels", "8", "--size", "value_hidden=8", "--batch", "16",
    "--device", "cpu", "--threads", "1", "--no-report",
)  # fmt: skip


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def succeed(*arguments: object) -> Result:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result


def complaint(*arguments: object) -> str:
    result = call(*arguments)
    assert result.exit_code in (1, 2), result.output
    return next(line for line in result.stderr.splitlines() if line.startswith("Error:"))


def generate(*arguments: object) -> Result:
    return call(
        "generate", "-V", VARIANT, "--nodes", "20", "--max-plies", "12", "--random-plies", "2", "3",
        *arguments,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("visits")


@pytest.fixture(scope="module")
def store(folder: Path) -> Path:
    path = folder / "self.store"
    result = generate("--engine", PLAYER, "--games", "6", "-o", path)
    assert result.exit_code == 0, result.output
    return path


def searched_plies(path: Path) -> int:
    store = Store(path)
    found = sum(bool(visited) for record in store.games() for visited in record.visits or ())
    assert found == store.info.plies_with_visits
    return found


def test_self_play_keeps_visits(store: Path) -> None:
    shown = json.loads(succeed("store", "show", store, "--json").stdout)
    assert shown["games_with_visits"] == 6
    assert shown["plies_with_visits"] == searched_plies(store) > 0
    assert "visits        of" in succeed("store", "show", store).stdout
    shown = json.loads(succeed("store", "show", store, "--game", "1", "--json").stdout)
    assert len(shown["visits"]) == shown["plies"]
    assert set(shown["visits"][-1].values()) and all(len(m) >= 4 for m in shown["visits"][-1])
    assert "visits" not in succeed("store", "show", store, "--game", "1").stdout


def test_every_command_carries_visits(store: Path, folder: Path) -> None:
    whole = list(Store(store).games())
    succeed("store", "filter", store, "-o", folder / "f.store", "--min-plies", "1")
    assert list(Store(folder / "f.store").games()) == whole
    succeed("store", "merge", store, folder / "f.store", "-o", folder / "m.store")
    assert list(Store(folder / "m.store").games()) == whole * 2
    succeed("store", "split", store, "-o", folder / "split", "--by", "game", "--validation", "0.4")
    parts = [folder / "split" / f"{side}.store" for side in ("train", "validation")]
    assert sum(searched_plies(path) for path in parts) == searched_plies(store)
    checked = succeed("store", "verify", "--moves", store, folder / "m.store", *parts)
    assert checked.stdout.count("no errors") == 4
    assert generate("--engine", PLAYER, "--games", "1", "--seed", "1", "--append", "-o",
                    folder / "m.store").exit_code == 0  # fmt: skip
    assert len(Store(folder / "m.store")) == 13
    assert Store(folder / "m.store").info.games_with_visits == 13


def test_json_lines_carry_visits(store: Path, folder: Path) -> None:
    lines = folder / "games.jsonl"
    succeed("store", "export", store, "-o", lines)
    succeed("import", lines, "-V", VARIANT, "-o", folder / "again.store")
    before, after = (list(Store(p).games()) for p in (store, folder / "again.store"))
    assert [(g.moves, g.visits) for g in after] == [(g.moves, g.visits) for g in before]
    shown = json.loads(lines.read_text().splitlines()[0])
    for wrong in ([], [{"e2e4": 0}] * shown["plies"], [{"a1a9": 3}] * shown["plies"]):
        lines.write_text(json.dumps(shown | {"visits": wrong}) + "\n")
        refused = call("import", lines, "-V", VARIANT, "-o", folder / "no.store")
        assert "not a game" in refused.output or "unreadable visits" in refused.output


def test_what_a_net_is_not_told(store: Path, folder: Path) -> None:
    other = folder / "x.store"
    assert "UCI does not" in complaint(
        "generate", "-V", VARIANT, "--engine", "any", "--visits", "3", "-o", other
    )
    assert "are for programs" in generate("--engine", PLAYER, "--hash", 4, "-o", other).stderr
    assert "with --nodes" in generate("--engine", f"{PLAYER};nodes=3", "-o", other).stderr
    assert "there is no net" in generate("--engine", "net:nowhere.onnx", "-o", other).stderr
    assert not other.exists()


def test_training_on_visits(store: Path, folder: Path) -> None:
    run = folder / "run"
    trained = succeed(
        "train", "-V", VARIANT, "--data", store, "--labels", "visits", *TINY,
        "--split", "game:0.25", "--steps", 4, "--run", run,
    )  # fmt: skip
    assert "Labels: visits of a search in" in trained.stderr
    config = json.loads((run / "config.json").read_text())["data"]
    assert config["labels"] == "visits" and config["searched_positions"] > 0
    for name, net in (("folder", f"net:{run}"), ("file", str(run / "model.onnx"))):
        played = generate("--engine", net, "--games", "1", "-o", folder / f"{name}.store")
        assert played.exit_code == 0, played.output
    by_folder, by_file = (list(Store(folder / f"{n}.store").games()) for n in ("folder", "file"))
    assert [game.moves for game in by_folder] == [game.moves for game in by_file]
    assert "labels: visits of a search" in (run / "README.md").read_text()
    assert "the move visited most" in (run / "README.md").read_text()
    results = json.loads((run / "results.json").read_text())
    own = json.loads(succeed("evaluate", run, "--json").stdout)
    ((_, measured),) = own["nets"].items()
    assert measured["policy_loss"] == pytest.approx(results["validation"]["policy_loss"], rel=0.02)
    moves = json.loads(succeed("evaluate", run, "--labels", "move", "--json").stdout)
    assert next(iter(moves["nets"].values()))["policy_loss"] != measured["policy_loss"]


def test_labels_visits_for_games_without_visits(store: Path, folder: Path) -> None:
    bare = folder / "bare.store"
    assert generate("--engine", PLAYER, "--visits", 0, "--games", 2, "-o", bare).exit_code == 0
    assert Store(bare).info.games_with_visits == 0
    assert "no training game has visits" in complaint(
        "train", "-V", VARIANT, "--data", bare, "--labels", "visits", *TINY, "--steps", 1,
        "--run", folder / "never",
    )  # fmt: skip
    assert not (folder / "never").exists()
    assert "none of these positions has visits" in complaint(
        "evaluate", folder / "run", bare, "--labels", "visits"
    )


# --- value labels --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def taught(store: Path, folder: Path) -> Path:
    """The same games with root values, of which the first position of each teaches no policy."""
    path, spec = folder / "taught.store", Store(store).spec
    with StoreWriter(path, spec) as writer:
        for number, record in enumerate(Store(store).games()):
            opening = record.opening_plies
            record.root_values = [None] * opening + [0.25] * (record.plies - opening)
            record.trains = [3] * opening + [2] + [3] * (record.plies - opening - 1)
            record.generation, record.result = 4, "1-0" if number % 2 else "0-1"
            record.scores = [30 * (-1) ** (ply + number + 1) for ply in range(record.plies)]
            writer.add(record)
    return path


def test_what_self_play_records_is_shown(taught: Path) -> None:
    opened = Store(taught)
    record = opened.game(0)
    positions = sum(record.plies - record.opening_plies for record in opened.games())
    counted = json.loads(succeed("stats", taught, "--json").output)["searches"]
    assert counted["root_values"] == counted["results"] == positions
    assert counted["policies"] == positions - len(opened)
    assert "that teach a policy" in succeed("stats", taught).output
    assert f"of {positions:,} plies" in succeed("store", "show", taught).output
    shown = succeed("store", "show", taught, "--game", "1").output
    assert shown.count("+0.2500") == record.plies - record.opening_plies
    assert shown.count("no policy") == 1 and "generation" in shown
    told = json.loads(succeed("store", "show", taught, "--game", "1", "--json").output)
    assert told["root_values"] == record.root_values and told["trains"] == record.trains


def test_stores_are_merged_with_what_they_teach(taught: Path, store: Path, tmp_path: Path) -> None:
    succeed("store", "merge", taught, store, "-o", tmp_path / "both.store")
    assert list(Store(tmp_path / "both.store").games()) == [
        *Store(taught).games(),
        *Store(store).games(),
    ]


def test_a_net_learns_targets_and_scores(taught: Path, tmp_path: Path) -> None:
    result = succeed(
        "train", "-V", VARIANT, "--data", taught, "--split", "none", "--steps", "2",
        "--labels", "targets", "--value-labels", "score", *TINY, "--run", tmp_path / "run",
    )  # fmt: skip
    config = json.loads((tmp_path / "run" / "config.json").read_text())["data"]
    assert config["labels"] == "visits" and config["value_labels"].startswith("score:")
    scale = config["value_labels"].partition(":")[2]
    assert f"score / {scale} centipawns" in result.stderr
    assert f"score / {scale} centipawns" in (tmp_path / "run" / "README.md").read_text()


def test_wrong_value_labels_are_an_error(taught: Path) -> None:
    said = complaint(
        "train", "-V", VARIANT, "--data", taught, "--steps", "2", "--value-labels", "mixed:2"
    )
    assert "accepted are result, root, mixed:SHARE, score" in said
