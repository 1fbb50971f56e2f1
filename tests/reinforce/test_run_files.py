"""Journal, folder and settings of a run: what is damaged, foreign or wrong is named."""

from __future__ import annotations

import errno
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_runs import VARIANT, small_settings

from variant_ai.core.data.game_record import FULL_WEIGHT, GameRecord
from variant_ai.core.errors import DataError, SettingError
from variant_ai.core.reinforce.games.game_journal import PLAYER, GameJournal
from variant_ai.core.reinforce.games.game_supply import GameSupply, LocalGames
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder, RunState
from variant_ai.core.reinforce.reinforce_settings import Learning
from variant_ai.core.reinforce.reinforcement import Reinforcement
from variant_ai.core.reinforce.settings_file import (
    changed,
    make_settings,
    new_settings,
    parse_word,
    read_settings,
    read_words,
    set_word,
    settings_text,
)
from variant_ai.plugins import registry

# --- journal -----------------------------------------------------------------------------------


def game(number: int) -> GameRecord:
    """A game as a journal gives it back; its moves are not checked there."""
    return GameRecord(
        VARIANT,
        moves=[5, 6, 7],
        start_fen=None,
        result="1-0",
        white=PLAYER,
        black=PLAYER,
        event="generation 3",
        termination="checkmate",
        number=number,
        visits=[(), ((6, FULL_WEIGHT),), ((7, 60000), (8, 5535))],
        root_values=[None, 0.25, -0.5],
        trains=[0, 3, 2],
        generation=3,
        tags={"OpeningPlies": "1"},
    )


def written(path: Path, count: int) -> list[GameRecord]:
    games = [game(number) for number in range(1, count + 1)]
    with GameJournal(path, VARIANT) as journal:
        for record in games:
            journal.add(record)
    return games


def read(path: Path) -> list[GameRecord]:
    with GameJournal(path, VARIANT) as journal:
        return journal.games


def test_a_journal_gives_its_games_back(tmp_path: Path) -> None:
    games = written(tmp_path / "a.journal", 3)
    found = read(tmp_path / "a.journal")
    assert found == games
    assert found[0].opening_plies == 1


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_torn_last_line_is_removed_and_the_journal_goes_on(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "a.journal"
    games = written(path, 2)
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    path.write_bytes(whole + last[:kept])
    with GameJournal(path, VARIANT) as journal:
        assert journal.games == games
        journal.add(game(3))
    assert read(path) == [*games, game(3)]


@pytest.mark.parametrize(
    "line",
    [b"}{", b"[]", b"7", b"{}", b'{"number": 1}', b"\xff\xfe", b'"\\ud800"', b""],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "a.journal"
    written(path, 1)
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(DataError, match=r"a\.journal:2: .*delete the line"):
        GameJournal(path, VARIANT)


@pytest.mark.parametrize("word", ["visits", "values", "trains"])
def test_a_line_with_too_few_plies_is_named(tmp_path: Path, word: str) -> None:
    path = tmp_path / "a.journal"
    written(path, 1)
    line = json.loads(path.read_bytes())
    del line["checksum"]  # as older versions wrote lines
    line[word].pop()
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match=rf"a\.journal:1: .*{word}.*delete the line"):
        GameJournal(path, VARIANT)


class FullDisk:
    """A file on a disk that takes some more bytes."""

    def __init__(self, file: Any, room: int) -> None:
        self.file, self.room = file, room

    def write(self, content: bytes) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        count: int = self.file.write(content[: self.room])
        self.room -= count
        return count

    def truncate(self, size: int) -> None:
        self.file.truncate(size)

    def seek(self, offset: int) -> None:
        self.file.seek(offset)

    def close(self) -> None:
        self.file.close()


@pytest.mark.parametrize("room", [0, 1, 100])
def test_a_full_disk_leaves_a_journal_of_whole_lines(tmp_path: Path, room: int) -> None:
    path = tmp_path / "a.journal"
    games = written(path, 2)
    with GameJournal(path, VARIANT) as journal:
        file = journal._journal._file
        journal._journal._file = FullDisk(file, room)  # type: ignore[assignment]
        with pytest.raises(DataError, match=rf"{re.escape(str(path))}: No space left"):
            journal.add(game(3))
        assert path.read_bytes().endswith(b"\n") and journal.games == games
        journal._journal._file = file
        journal.add(game(3))
    assert read(path) == [*games, game(3)]


# --- folder ------------------------------------------------------------------------------------

HOLD = """
import sys
from pathlib import Path
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder
with ReinforceFolder(Path(sys.argv[1])).locked():
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_by_the_name_of_the_first(tmp_path: Path) -> None:
    folder = ReinforceFolder(tmp_path)
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(DataError, match=f"is being run by process {process.pid}, since "):
            folder.locked().__enter__()
        process.kill()
    assert (tmp_path / "lock").read_text().startswith(f"process {process.pid},")
    with folder.locked():  # the file of a dead process is no obstacle
        assert str(process.pid) not in (tmp_path / "lock").read_text()
    with folder.locked():
        pass


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DataError, match=r"no run of self-play but other files \(config.json\)"):
        ReinforceFolder(tmp_path).locked().__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
    with pytest.raises(DataError, match="is not a folder"):
        ReinforceFolder(tmp_path / "config.json").locked().__enter__()


def test_a_run_that_was_killed_before_it_had_settings_begins_anew(tmp_path: Path) -> None:
    folder = ReinforceFolder(tmp_path)
    with folder.locked():
        folder.write(small_settings())
    folder.settings_file.rename(tmp_path / "settings.yaml.part")
    with folder.locked():
        folder.write(small_settings())
    assert folder.settings() == small_settings()


def test_a_folder_without_a_run_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no run of self-play"):
        ReinforceFolder(tmp_path).settings()
    with pytest.raises(DataError, match="there is no folder"):
        ReinforceFolder(tmp_path / "nothing").settings()


def test_the_row_of_a_generation_replaces_the_one_before_a_kill(tmp_path: Path) -> None:
    folder = ReinforceFolder(tmp_path)
    assert folder.rows() == []
    for generation, games in [(1, 10), (2, 20), (2, 21), (3, 30)]:
        folder.add_row({"generation": generation, "games": games})
    assert [(row["generation"], row["games"]) for row in folder.rows()] == [
        (1, 10),
        (2, 21),
        (3, 30),
    ]


def test_the_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = ReinforceFolder(tmp_path)
    assert folder.state() == RunState()
    state = RunState(generation=4, player=3, games=9, cpu_seconds=1.5)
    folder.write_state(state)
    assert folder.state() == state


@pytest.mark.parametrize("text", ["", "[]", '{"generation": "x"}', '{"unknown": 1}'])
def test_a_damaged_state_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(DataError, match=r"state\.json is damaged"):
        ReinforceFolder(tmp_path).state()


# --- settings ----------------------------------------------------------------------------------


def test_settings_are_read_as_they_were_written(tmp_path: Path) -> None:
    settings = small_settings(
        seed=7,
        mixture=[{"store": "a.store", "weight": 0.25}],
        variety={"resign_below": -0.9, "random_plies": [1, 3]},
        ladder={"engines": ["random"], "gate": True},
    )
    path = tmp_path / "settings.yaml"
    path.write_text(settings_text(settings))
    assert read_settings(path) == settings


WRONG: list[tuple[str, str]] = [
    ("variant: dobutsu\nnodes: 3\n", r"a\.yaml:2:\d+: nodes"),
    ("search:\n  nodes: many\n", r"a\.yaml:2:\d+: search.nodes = 'many'"),
    ("search:\n  nodes: 0\n", r"a\.yaml:2:\d+: .*at least 1 is expected"),
    ("search:\n  nodes: 16\n  fast_nodes: 32\n", r"a\.yaml:3:\d+: .*at most the 16 visits"),
    ("search:\n  kind: alphabeta\n", r"a\.yaml:2:\d+: .*'gumbel' or 'puct'"),
    ("variety:\n  random_plies: [4, 0]\n", r"a\.yaml:2:\d+: .*the least number comes first"),
    ("variety:\n  random_plies: [-1, 0]\n", r"a\.yaml:2:\d+: .*at least 0 is expected"),
    ("learning:\n  lr: .nan\n", r"a\.yaml:2:\d+: .*finite"),
    ("minutes: .inf\n", r"a\.yaml:1:\d+: .*finite"),
    ("seed: -1\n", r"a\.yaml:1:\d+: .*at least 0 is expected"),
    ("learning: 3\n", r"a\.yaml:1:\d+: learning = 3: a mapping of words"),
    (
        "mixture:\n- {store: a, weight: 0.5}\n- {store: b, weight: 0.5}\n",
        r"a\.yaml:1:\d+: .*add up to 1 or more",
    ),
    ("mixture:\n- {store: a, weight: 1.5}\n", r"a\.yaml:2:\d+: .*less than 1"),
    ("mixture:\n- {store: a}\n", r"a\.yaml:2:\d+: mixture.0.weight: a value is needed"),
    ("ladder:\n  engines: random\n", r"a\.yaml:2:\d+: ladder.engines"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_word_is_named_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(SettingError, match=message):
        read_words(path)


@pytest.mark.parametrize("text", ["", "- a\n", "a: [\n", "seed: 1\nseed: 2\n"])
def test_a_file_that_is_no_mapping_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(DataError, match=r"a\.yaml"):
        read_words(path)


def test_words_of_options_are_set_by_their_dotted_names() -> None:
    words: dict[str, Any] = {"variant": VARIANT, "search": {"kind": "puct"}}
    for text in (
        "search.nodes=32",
        "minutes=1.5",
        "learning.size.blocks=4",
        "variety.resign_below=",
    ):
        set_word(words, *parse_word(text))
    settings = make_settings(words)
    assert (settings.search.kind, settings.search.nodes) == ("puct", 32)
    assert settings.minutes == 1.5 and settings.variety.resign_below is None
    assert settings.learning.size == {"blocks": 4}


@pytest.mark.parametrize("net", ["", "risev2-mobile"])
@pytest.mark.parametrize("net_first", [True, False])
def test_a_new_run_fills_in_the_size_of_the_default_network(net: str, net_first: bool) -> None:
    words: dict[str, Any] = {"variant": VARIANT}
    options = ["learning.size.blocks=4", *([f"learning.net={net}"] if net else [])]
    for option in reversed(options) if net_first else options:
        set_word(words, *parse_word(option))
    expected = {"blocks": 4} if net else Learning().size | {"blocks": 4}
    assert new_settings(words).learning.size == expected


def test_an_option_of_the_size_that_a_run_has_changes_nothing() -> None:
    words = {"variant": VARIANT, "learning": {"size": {"blocks": 4, "channels": 48}}}
    settings = new_settings(words)
    again: dict[str, Any] = {}
    set_word(again, *parse_word("learning.size.blocks=4"))
    assert changed(settings, again, "run") == settings


@pytest.mark.parametrize("text", ["search.nodes", "=3", " =3", "a=[", ""])
def test_a_word_without_a_value_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match=r"expected WORD=VALUE|not YAML"):
        parse_word(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("search.knots=3", "search.knots"),
        ("search=3", "search"),
        ("search.nodes.x=3", "search.nodes"),
        ("seed.x=3", "seed has no words of its own"),
    ],
)
def test_a_word_that_does_not_exist_is_refused(text: str, message: str) -> None:
    words: dict[str, Any] = {"variant": VARIANT, "seed": 1}
    with pytest.raises(SettingError, match=message):
        set_word(words, *parse_word(text))
        make_settings(words)


def test_some_words_may_change_when_a_run_goes_on() -> None:
    settings = small_settings()
    more = changed(settings, {"minutes": 3.0, "ladder": {"games": 8}, "threads": 2}, "runs/a")
    assert more.minutes == 3.0 and more.ladder.games == 8 and more.threads == 2
    assert more.ladder.nodes == settings.ladder.nodes
    assert changed(settings, {"search": {"nodes": 4}}, "runs/a") == settings  # as it was


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"search": {"nodes": 5}}, "search.nodes = 4, not 5"),
        ({"variant": "minixiangqi"}, "variant = 'dobutsu', not 'minixiangqi'"),
        ({"learning": {"size": {"hidden": 3}}}, "learning.size.hidden = None, not 3"),
        ({"mixture": [{"store": "a", "weight": 0.5}]}, "mixture"),
    ],
)
def test_other_words_may_not_change(words: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as error:
        changed(small_settings(), words, "runs/a")
    assert "runs/a was begun with" in str(error.value) and message in str(error.value)


def test_evaluations_while_the_learner_trains_count(tmp_path: Path) -> None:
    """Players of a cluster go on while the learner trains."""
    settings = small_settings(ladder={"games": 0})
    spec = registry().variant(settings.variant)
    supplies: list[GameSupply] = []

    class Busy(LocalGames):
        plays_on = True
        meanwhile = 0

        @property
        def evaluations(self) -> int:
            return super().evaluations + self.meanwhile

        def use_net(self, path: Path, generation: int) -> None:
            super().use_net(path, generation)
            self.meanwhile = 1_000_000 * generation

    def make_supply(done: set[int]) -> GameSupply:
        supplies.append(Busy(spec, settings, done, rules=registry().rules(spec)))
        return supplies[-1]

    run = Reinforcement(settings, spec, tmp_path, supply=make_supply)
    assert run.run()
    (supply,) = supplies
    assert run.state.evaluations == supply.evaluations > 2_000_000
    for row in run.folder.rows():
        steps = ("play_seconds", "learn_seconds", "ladder_seconds")
        assert row["playing_seconds"] == sum(row[step] for step in steps) > row["play_seconds"]
