"""What a net learns from: the replay window, the schedules, the numbers of a generation."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import VARIANT, small_run, small_settings

from variant_ai.core.data.game_record import FULL_WEIGHT, GameRecord
from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.store_writer import StoreWriter
from variant_ai.core.encoding import Encoder
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder
from variant_ai.core.reinforce.reinforce_settings import Learning, Window
from variant_ai.core.reinforce.report.generation_statistics import summarise_games
from variant_ai.core.reinforce.window_training import (
    WindowTraining,
    learning_rate,
    newest_games,
    root_value_share,
    window_size,
)
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.train.interface import TrainResult
from variant_ai.plugins import registry

# --- window ------------------------------------------------------------------------------------


def test_the_window_grows_as_in_the_paper() -> None:
    """Numbers of the formula, computed by hand with KataGo's constants."""
    paper = Window(size=250_000, alpha=0.75, beta=0.4)
    assert window_size(100_000, paper) == 100_000
    assert window_size(250_000, paper) == 250_000
    # 250,000 (1 + 0.4 (16^0.75 - 1) / 0.75) = 250,000 (1 + 0.4 * 7 / 0.75)
    assert window_size(4_000_000, paper) == 1_183_333
    sizes = [window_size(total, paper) for total in range(0, 5_000_000, 10_000)]
    assert sizes == sorted(sizes)


def test_the_window_is_never_larger_than_what_there_is() -> None:
    steep = Window(size=10, alpha=1.0, beta=50.0)
    assert [window_size(total, steep) for total in (0, 5, 10, 11, 100)] == [0, 5, 10, 11, 100]
    assert window_size(1000, Window(size=10, beta=0.0)) == 10


def random_game(number: int, plies: int, opening: int) -> GameRecord:
    rules = make_rules(registry().variant(VARIANT))
    rng = np.random.default_rng(number)
    while True:
        game = Game(rules)
        while game.ply < plies and game.outcome() is None:
            game.push(int(rng.choice(game.legal_moves())))
        if game.ply == plies and game.outcome() is None:
            break
    searched = plies - opening
    return GameRecord(
        VARIANT,
        moves=list(game.moves),
        result="1/2-1/2",
        termination="max plies",
        number=number,
        visits=[()] * opening + [((move, FULL_WEIGHT),) for move in game.moves[opening:]],
        root_values=[None] * opening + [0.5] * searched,
        trains=[0] * opening + [3] * searched,
        generation=1,
        tags={"OpeningPlies": str(opening)},
    )


def stores(folder: Path, generations: list[list[tuple[int, int]]]) -> dict[int, Store]:
    """Stores of games, each (plies, opening plies)."""
    spec = registry().variant(VARIANT)
    number, found = 0, {}
    for generation, games in enumerate(generations, 1):
        path = folder / f"{generation}.store"
        with StoreWriter(path, spec) as writer:
            for plies, opening in games:
                number += 1
                writer.add(random_game(number, plies, opening))
        found[generation] = Store(path, spec)
    return found


@pytest.mark.parametrize(
    ("wanted", "expected", "positions"),
    [
        (1, {3: [1]}, 4),
        (4, {3: [1]}, 4),
        (5, {3: [0, 1]}, 7),
        (7, {3: [0, 1]}, 7),
        (8, {1: [2], 3: [0, 1]}, 10),
        (11, {1: [1, 2], 3: [0, 1]}, 14),
        (100, {1: [0, 1, 2], 3: [0, 1]}, 16),
        (0, {}, 0),
    ],
)
def test_the_newest_games_are_taken_until_there_are_enough(
    tmp_path: Path, wanted: int, expected: dict[int, list[int]], positions: int
) -> None:
    opened = stores(tmp_path, [[(4, 2), (4, 0), (5, 2)], [], [(3, 0), (5, 1)]])
    window = newest_games([1, 2, 3], opened.__getitem__, wanted)
    assert window.positions == positions
    names = [int(store.path.stem) for store in window.stores]
    games = dict(zip(names, [part.tolist() for part in window.games], strict=True))
    assert games == expected and names == sorted(names)


def test_positions_that_teach_nothing_are_not_counted_in_the_window(tmp_path: Path) -> None:
    """Fast moves of a game that was ended at its greatest length have neither policy nor value."""
    spec = registry().variant(VARIANT)
    opened = {}
    for generation in (1, 2):
        path = tmp_path / f"{generation}.store"
        with StoreWriter(path, spec) as writer:
            for number in (1, 2):
                record = random_game(2 * generation + number, 8, 2)
                record.trains = [0, 0, 1, 0, 0, 0, 1, 0]
                writer.add(record)
        opened[generation] = Store(path, spec)
    window = newest_games([1, 2], opened.__getitem__, 8)
    assert window.positions == 8
    assert [part.tolist() for part in window.games] == [[0, 1], [0, 1]]
    sampled = Sampler(window.stores, Encoder(spec), batch=4, games=window.games, labels="visits")
    assert sampled.positions == window.positions
    assert [part.tolist() for part in newest_games([1, 2], opened.__getitem__, 3).games] == [[0, 1]]


# --- schedules ---------------------------------------------------------------------------------


def test_the_learning_rate_falls_exponentially_with_the_progress() -> None:
    learning = Learning(lr=1e-2, lr_end=1e-4)
    rates = [learning_rate(learning, progress) for progress in (0.0, 0.25, 0.5, 1.0)]
    assert rates == pytest.approx([1e-2, 10**-2.5, 1e-3, 1e-4])
    assert learning_rate(Learning(lr=1e-2, lr_end=None), 0.7) == 1e-2
    # more minutes for a run that has ended: the rate stays until it is due again
    assert learning_rate(learning, 0.5, 1e-4) == 1e-4
    assert learning_rate(learning, 0.5, 5e-3) == pytest.approx(1e-3)
    assert learning_rate(Learning(lr=1e-4, lr_end=1e-3), 1.0, 1e-4) == pytest.approx(1e-3)


def test_the_share_of_the_root_value_changes_linearly() -> None:
    learning = Learning(root_value_share=0.25, root_value_share_end=0.5)
    assert [root_value_share(learning, p) for p in (0.0, 0.5, 1.0)] == [0.25, 0.375, 0.5]
    assert root_value_share(Learning(root_value_share=0.25), 1.0) == 0.25


def test_a_run_trains_with_the_rates_of_its_schedule(tmp_path: Path) -> None:
    words = {"lr": 1e-2, "lr_end": 1e-4}
    settings = small_settings(generations=2, learning=words, ladder={"games": 0})
    assert small_run(tmp_path, settings).run()
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    rates = {event["step"]: event["lr"] for event in events if event["kind"] == "train"}
    rows = ReinforceFolder(tmp_path).rows()
    assert [rates[row["steps"]] for row in rows] == pytest.approx([1e-2, 1e-3])


# --- numbers -----------------------------------------------------------------------------------


def summary(*games: GameRecord, share: float = 0.0, draw_value: float = 0.0) -> dict[str, Any]:
    return summarise_games(games, make_rules(registry().variant(VARIANT)), share, draw_value)


def game(result: str = "1-0", **words: Any) -> GameRecord:
    """A game of four plies, of which the last three are recorded."""
    record = random_game(1, 4, 1)
    record.result, record.termination = result, "checkmate"  # type: ignore[assignment]
    for name, value in words.items():
        setattr(record, name, value)
    return record


def test_the_numbers_of_a_generation() -> None:
    other = random_game(2, 6, 0)
    found = summary(game(), game("0-1"), other)
    assert (found["games"], found["positions"], found["longest"]) == (3, 12, 6)
    assert found["plies"] == pytest.approx(14 / 3)
    assert found["first_player_wins"] == found["second_player_wins"] == found["draws"]
    assert found["draws"] == pytest.approx(1 / 3)
    assert found["ends"] == {"checkmate": 2, "max plies": 1}
    assert found["policy_entropy"] == 0.0  # all weight is on one move
    assert found["zero_value_loss"] == pytest.approx(6 / 12)  # those of the draw are 0


def test_the_entropy_is_that_of_the_positions_that_train_the_policy() -> None:
    half = ((1, FULL_WEIGHT // 2), (2, FULL_WEIGHT // 2))
    visits = [(), half, half, ((1, FULL_WEIGHT),)]
    assert summary(game(visits=visits))["policy_entropy"] == pytest.approx(2 * math.log(2) / 3)
    only = summary(game(visits=visits, trains=[0, 3, 3, 2]))
    assert only["policy_entropy"] == pytest.approx(math.log(2)) and only["positions"] == 3


def test_the_loss_of_always_0_is_that_of_the_value_targets() -> None:
    """The second player moves at ply 1 and has lost: result -1, root value -0.2, and so on."""
    values = [None, -0.2, 0.4, -0.6]
    targets = [-0.5 - 0.1, 0.5 + 0.2, -0.5 - 0.3]
    found = summary(game(root_values=values), share=0.5)["zero_value_loss"]
    assert found == pytest.approx(np.mean(np.square(targets)))
    # a result that must not be learnt: the root values alone
    capped = summary(game(root_values=values, trains=[0, 1, 1, 1]), share=0.5)["zero_value_loss"]
    assert capped == pytest.approx(np.mean(np.square(values[1:])))


def test_a_draw_has_the_value_of_the_penalty() -> None:
    drawn = game("1/2-1/2", root_values=None)
    assert summary(drawn)["zero_value_loss"] == 0
    assert summary(drawn, draw_value=-0.2)["zero_value_loss"] == pytest.approx(0.04)


def test_numbers_of_no_games() -> None:
    assert summary()["positions"] == 0 and summary()["draws"] == 0.0


def test_distinct_positions_are_counted_after_the_openings() -> None:
    assert summary(game())["distinct_positions"] == 1.0
    assert summary(game(), game())["distinct_positions"] == pytest.approx(0.5)


def test_a_recovery_cuts_the_rate_of_its_own_generation_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = WindowTraining.train

    def recovered(*words: Any) -> TrainResult:
        result = train(*words)
        course = words[2]
        result.state.lr_scale = 0.5 if course.generation == 1 else 1.0
        return result

    monkeypatch.setattr(WindowTraining, "train", recovered)
    words = {"lr": 1e-2, "lr_end": 5e-3}
    settings = small_settings(generations=2, learning=words, ladder={"games": 0})
    assert small_run(tmp_path, settings).run()
    rates = [row["lr"] for row in ReinforceFolder(tmp_path).rows()]
    assert rates == pytest.approx([5e-3, 1e-2 * 0.5**0.5])
