"""The report of a run of self-play: it can be written at any time, and its numbers are those of the rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from variant_ai.cli.main import cli
from variant_ai.core.data.game_record import OPENING_TAG, GameRecord
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.store_writer import StoreWriter
from variant_ai.core.errors import DataError
from variant_ai.core.reinforce.ladder.ladder_record import LadderMatch, LadderRecord, draw_ladder
from variant_ai.core.reinforce.ladder.run_ladder import PICTURE, RECORD
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder, RunState
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.reinforce.report import reinforce_report
from variant_ai.core.reinforce.report.generation_statistics import (
    KINDS,
    cpu_minutes,
    end_shares,
    evaluation_rates,
)
from variant_ai.core.reinforce.report.reinforce_report import (
    BOARDS,
    MOST_GAMES,
    RunningReport,
    example_game,
    game_boards,
    shown_generations,
    write_reinforce_report,
)
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.plugins import registry

VARIANT = "dobutsu"
OUTSIDE = re.compile(r"""(?:src|href)\s*=\s*["'](?!data:|#)|url\(|@import|<script|<link""")
"""References to other files, which a page must not have."""


@pytest.fixture(scope="module")
def rules() -> Rules:
    return make_rules(registry().variant(VARIANT))


def random_game(rules: Rules, number: int, plies: int) -> GameRecord:
    """A game of at most so many random moves, the first one an opening."""
    rng = np.random.default_rng(number)
    game = Game(rules)
    while game.ply < plies and game.outcome() is None:
        game.push(int(rng.choice(game.legal_moves())))
    return GameRecord(
        VARIANT,
        moves=list(game.moves),
        result="1-0",
        termination="variant win",
        number=number,
        root_values=[None, *[0.25] * (game.ply - 1)],
        trains=[0, *[3] * (game.ply - 1)],
        generation=0,
        tags={OPENING_TAG: "1"},
    )


def row_of(generation: int, **words: Any) -> dict[str, Any]:
    return {
        "generation": generation,
        "net": generation - 1,
        "evaluations": 1000 * generation,
        "play_seconds": 2.0,
        "play_cpu": 30.0,
        "learn_cpu": 60.0,
        "games": 10,
        "positions": 100,
        "plies": 12.5,
        "longest": 40,
        "first_player_wins": 0.5,
        "second_player_wins": 0.3,
        "draws": 0.2,
        "ends": {"variant win": 8, "repetition": 2},
        "policy_entropy": 1.2,
        "zero_value_loss": 0.7,
        "distinct_positions": 0.8,
        "window": 100 * generation,
        "train": {"policy_loss": 2.125, "value_loss": 0.625},
        "steps": 5 * generation,
        "player": generation,
        "cpu_minutes": 2.0 * generation,
        "minutes": 3.0 * generation,
        "memory_mb": 700.0,
        **words,
    }


def write_run(path: Path, rules: Rules, generations: int, **words: Any) -> ReinforceFolder:
    """A run of so many generations of four games each, as its loop writes it."""
    folder = ReinforceFolder(path)
    settings = ReinforceSettings.model_validate(
        {"variant": VARIANT, "positions": 1234, "search": {"nodes": 24}, **words}
    )
    folder.write(settings)
    for generation in range(1, generations + 1):
        folder.store(generation).parent.mkdir(exist_ok=True)
        with StoreWriter(folder.store(generation), rules.spec, sources=["self-play"]) as writer:
            for game in range(4):
                writer.add(random_game(rules, 4 * generation + game, 12))
        folder.add_row(row_of(generation))
    if generations:
        folder.write_state(RunState(generation=generations, games=4 * generations))
    return folder


@pytest.mark.parametrize("generations", [0, 1, 2])
def test_a_run_has_a_page_from_its_beginning(
    tmp_path: Path, rules: Rules, generations: int
) -> None:
    folder = write_run(tmp_path, rules, generations)
    page, pictures = write_reinforce_report(folder.path, rules)
    text = page.read_text("utf-8")
    assert page == tmp_path / "report.html"
    assert not OUTSIDE.search(text)
    assert "<td>search.nodes</td><td>24</td><td>16</td>" in text
    assert "learning.lr</td>" not in text  # has its default
    assert ("No generation is complete yet." in text) == (generations == 0)
    assert sorted(pictures) == sorted((tmp_path / "pictures").glob("*.png"))
    assert len(pictures) == (3 if generations else 0)
    assert len(re.findall("<summary>Generation ", text)) == generations


def test_ladder_and_resignations_are_shown(tmp_path: Path, rules: Rules) -> None:
    folder = write_run(tmp_path, rules, 2)
    ladder = LadderRecord([LadderMatch(generation=2, opponent=0, wins=15, draws=2, losses=3)])
    ladder.write(tmp_path / RECORD)
    draw_ladder(ladder, tmp_path / PICTURE)
    counts = [(10, 4, 1), (15, 4, 1), (5, 1, 1)]  # of each generation
    for generation, numbers in enumerate(counts, 1):
        played = dict(zip(("played_out", "would_resign", "wrong"), numbers, strict=True))
        folder.add_row(row_of(generation, checked_resignations=played))
    text = write_reinforce_report(tmp_path, rules).page.read_text("utf-8")
    assert '<td class="n">80.0 %</td>' in text  # the score
    assert "Elo of generation 2 above generation 0" in text
    assert 'regardless</td><td class="n">30<' in text
    assert 'resigned</td><td class="n">9<' in text
    assert '<td class="n">3 (33.3 %)</td>' in text
    assert (tmp_path / "pictures" / "ladder.png").read_bytes().startswith(b"\x89PNG")


def test_the_title_is_the_variant_also_of_a_spec_in_a_file(tmp_path: Path, rules: Rules) -> None:
    write_run(tmp_path, rules, 0, variant="specs/mine.yaml")
    text = write_reinforce_report(tmp_path, rules).page.read_text("utf-8")
    assert f"{VARIANT}: report of a run of self-play" in text


def test_a_folder_without_a_run_is_rejected(tmp_path: Path, rules: Rules) -> None:
    with pytest.raises(DataError, match=r"settings\.yaml"):
        write_reinforce_report(tmp_path, rules)


def test_shown_generations_are_few_and_have_both_ends() -> None:
    assert shown_generations([]) == []
    assert shown_generations([1]) == [1]
    assert shown_generations(range(1, 24)) == [1, 10, 20, 23]
    many = shown_generations(range(1, 1001))
    assert len(many) == MOST_GAMES and many[0] == 1 and many[-1] == 1000


def test_boards_of_a_game_end_with_its_last_position(tmp_path: Path, rules: Rules) -> None:
    folder = write_run(tmp_path, rules, 1)
    record = example_game(Store(folder.store(1), rules.spec))
    assert record is not None
    row = game_boards(1, record, rules)
    assert len(row.boards) == min(BOARDS, record.plies)  # without the start, which is random
    assert row.boards[-1].caption.startswith(f"{record.plies}. ")
    assert row.boards[-1].caption.endswith("\n+0.25")
    assert "\n" not in row.boards[0].caption  # nothing was searched for a random ply
    assert row.text.startswith("[1. ") and f" {record.plies}. " in row.text


def test_shares_of_ends_add_up() -> None:
    ends = {f"kind {number}": 10 + number for number in range(KINDS + 2)}
    rows = [row_of(1, ends=ends, games=sum(ends.values())), row_of(2, ends={"kind 7": 10})]
    shares = end_shares(rows)
    kinds = list(shares)
    assert len(kinds) == KINDS and kinds[0] == "kind 7" and kinds[-1] == "others"
    assert np.allclose([sum(parts) for parts in zip(*shares.values(), strict=True)], 100)


def test_numbers_of_rows() -> None:
    rows = [row_of(1), row_of(2, play_seconds=0.0), row_of(4)]
    assert evaluation_rates(rows) == [(1, 500.0)]  # 2: played before a resume; 3 is missing
    spent = cpu_minutes(rows)
    assert spent["self-play"] == [0.5] * 3 and spent["training"] == [1.0] * 3
    assert spent["matches and the rest"] == [0.5, 0.5, 2.5]


def test_an_error_in_the_report_is_a_warning(tmp_path: Path, rules: Rules) -> None:
    folder = write_run(tmp_path, rules, 1)
    warnings: list[str] = []
    report = RunningReport(tmp_path, rules, warnings.append)
    report.write()
    assert warnings == [] and (tmp_path / "report.html").is_file()
    folder.store(1).write_bytes(b"damaged")
    report.write()
    assert len(warnings) == 1 and "000001.store" in warnings[0]


def test_a_running_report_waits_until_it_is_cheap(
    tmp_path: Path, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path, rules, 0)
    now = 0.0
    monkeypatch.setattr(reinforce_report, "cpu_seconds", lambda: now)
    report = RunningReport(tmp_path, rules, pytest.fail)
    now = 0.9 * reinforce_report.FIRST_SECONDS / reinforce_report.CPU_SHARE
    report.after_generation()
    assert not (tmp_path / "report.html").exists()
    now *= 1.2
    report.after_generation()
    assert (tmp_path / "report.html").exists()


def test_the_command_reports_runs_of_self_play(tmp_path: Path, rules: Rules) -> None:
    run = tmp_path / "run"
    write_run(run, rules, 1)
    found = CliRunner().invoke(cli, ["report", str(run), "-o", str(tmp_path / "a.html"), "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["report"] == str(tmp_path / "a.html")
    assert "report of a run of self-play" in (tmp_path / "a.html").read_text("utf-8")
    for option in (["--measure"], ["--limit", "10"]):
        found = CliRunner().invoke(cli, ["report", str(run), *option])
        assert found.exit_code == 2 and option[0] in found.output
