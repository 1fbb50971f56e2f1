"""Experiments as files: what is accepted, the errors and their places, and comparisons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from variant_ai.core.errors import SpecError
from variant_ai_experiments.comparison import (
    MATE_IN_ONE,
    METRICS,
    ArmRuns,
    compare,
    data_of,
    machine_of,
    mates_of,
)
from variant_ai_experiments.experiment_file import (
    Experiment,
    arm_folder,
    load_experiment,
    stores_of,
)

TEXT = """\
experiment: 1
title: Two nets
source: nowhere
question: Which?
variant: xiangqi
stores: {games: "make -o {store}"}
options: {data: [games], batch: 16}
scales:
  small: {about: a minute, options: {steps: 2}, arms: {b: {blocks: 2}}, seeds: 2}
  full: {about: a day, options: {steps: 2000, batch: 1024}}
arms:
  a: {blocks: 1}
  b: {blocks: 1, batch: 8}
metrics: [policy_accuracy, minutes]
measure: {others: sample}
"""


def check(command: str, options: Mapping[str, Any]) -> list[tuple[str, str]]:
    assert command == "train"
    known = ("data", "batch", "steps", "blocks", "from")
    return [(name, f"unknown option {name!r}") for name in options if name not in known]


def loaded(tmp_path: Path, text: str = TEXT) -> Experiment:
    path = tmp_path / "two.yaml"
    path.write_text(text)
    return load_experiment(path, check)


def test_the_strongest_option_counts(tmp_path: Path) -> None:
    experiment = loaded(tmp_path)
    data = {"data": ["games"]}
    assert experiment.arm_options("small", "a") == data | {"batch": 16, "steps": 2, "blocks": 1}
    assert experiment.arm_options("small", "b") == data | {"batch": 8, "steps": 2, "blocks": 2}
    assert experiment.arm_options("full", "a")["batch"] == 1024
    assert experiment.arm_options("full", "b")["batch"] == 8
    assert experiment.scales["small"].seeds == 2


def test_an_arm_that_keeps_the_net_of_another_ignores_options_of_nets(tmp_path: Path) -> None:
    text = TEXT.replace("steps: 2000", "steps: 2000, blocks: 3").replace(
        "b: {blocks: 1, batch: 8}", "b: {from: a}"
    )
    experiment = loaded(tmp_path, text.replace("arms: {b: {blocks: 2}}, ", ""))
    expected = {"data": ["games"], "batch": 1024, "steps": 2000, "from": "a"}
    assert experiment.arm_options("full", "b") == expected


@pytest.mark.parametrize(
    ("before", "after", "line", "column", "message"),
    [
        ("title: Two nets\n", "", 1, 1, "the key 'title' is missing"),
        ("question:", "qestion:", 4, 1, "did you mean 'question'?"),
        ("experiment: 1", "experiment: 2", 1, 1, "accepted: 1"),
        ("minutes]", "minuts]", 14, 28, "did you mean 'minutes'?"),
        ("b: {blocks: 1,", "A: {blocks: 1,", 13, 3, "has the same letters and digits as 'a'"),
        ("arms: {b: {", "arms: {c: {", 9, 56, "unknown arm 'c'"),
        ("-o {store}", "-o there", 6, 10, "{store}, the path of the store, is missing"),
        ("data: [games]", "data: [gomes]", 7, 11, "did you mean 'games'?"),
        ("others: sample", "others: simple", 15, 11, "did you mean 'sample'?"),
        ("a: {blocks: 1}", "a: {blocks: 1, lr: 2}", 12, 18, "unknown option 'lr'"),
        ("a: {blocks: 1}", "a: {blocks: 1, from: b}", 12, 18, "unknown arm before this one 'b'"),
        ("b: {blocks: 1,", "b: {from: a,", 9, 60, "keeps the net of 'a': leave 'blocks' out"),
        ("{steps: 2}", "{stebs: 2}", 9, 38, "unknown option 'stebs'"),
        ("seeds: 2", "seeds: 2, mates: gomes", 9, 83, "did you mean 'games'?"),
        ('{games: "make -o {store}"}', "{games: {from: x}}", 6, 10, "the key 'make' is missing"),
        ("seeds: 2", "seeds: 0", 9, 73, "greater than or equal to 1"),
        ("full: {", "huge: {", 10, 3, "accepted: 'small' or 'full'"),
        ("arms:\n  a: {blocks: 1}\n  b:", "arms: {}\nb:", 11, 1, "at least 1 item"),
    ],
)
def test_mistakes_are_reported_with_their_place(
    tmp_path: Path, before: str, after: str, line: int, column: int, message: str
) -> None:
    assert before in TEXT
    with pytest.raises(SpecError) as raised:
        loaded(tmp_path, TEXT.replace(before, after, 1))
    place = f"{tmp_path / 'two.yaml'}:{line}:{column}:"
    lines = [text for text in str(raised.value).splitlines() if text.startswith(place)]
    assert lines, str(raised.value)
    assert message in lines[0]


def test_stores_may_have_weights(tmp_path: Path) -> None:
    experiment = loaded(tmp_path, TEXT.replace("data: [games]", "data: [games:2, sample:0.5]"))
    options = experiment.arm_options("small", "a")
    assert list(stores_of(options)) == [("data", "games"), ("data", "sample")]
    assert list(stores_of({"data": "games"})) == [("data", "games")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: a match\nplayers: []\n", "is a match, not an experiment of trainings"),
        (
            "title: a variant\npieces: {}\n",
            "is not an experiment of trainings: `experiment: 1` is missing",
        ),
    ],
)
def test_other_files_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=rf"two\.yaml: {message}"):
        loaded(tmp_path, text)


def test_folders_of_arms() -> None:
    assert arm_folder("RISEv2, 5 x 64") == "risev2-5-x-64"
    assert arm_folder("α = 0.01", 2) == "α-0.01-seed2"
    assert arm_folder("→") == "arm"


def run_of(folder: Path, accuracy: float, **more: object) -> Path:
    folder.mkdir()
    results = {"validation": {"policy_accuracy": accuracy, "policy_loss": 2.5}, "seconds": 90}
    (folder / "results.json").write_text(json.dumps({**results, **more}))
    config = {
        "device": "cpu",
        "precision": "fp32",
        "threads": 1,
        "data": {
            "stores": ["/far/away/games.store"],
            "hashes": ["0123456789abcdef"],
            "train_games": 1000,
            "split": "group:0.05",
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    environment = {"python": "3.11", "cpu": {"name": "a chip", "cores": 2}, "gpus": []}
    (folder / "environment.json").write_text(json.dumps(environment))
    return folder


def test_tables(tmp_path: Path) -> None:
    first = ArmRuns("one", (run_of(tmp_path / "1", 0.25),), ("train",))
    pair = (run_of(tmp_path / "2", 0.5, recoveries=1), run_of(tmp_path / "3", 0.25))
    second = ArmRuns("two | more", pair, ("train",), measured={"x": [{"policy_accuracy": 0.125}]})
    none = ArmRuns("three", (), ("train",), failures=("the loss is not a number",))
    metrics = ["policy_accuracy", "policy_loss", "minutes", "recoveries"]
    table = compare([first, second, none], metrics, ["x"])
    assert table.columns == [
        "arm",
        "policy accuracy",
        "policy loss",
        "minutes",
        "returns to a checkpoint",
        "policy accuracy on x",
        "value accuracy sign on x",
    ]
    assert table.rows == [
        ["one", "25.00 %", "2.5000", "1.5", "-", "-", "-"],
        ["two | more", "37.50 ± 17.68 %", "2.5000 ± 0.0000", "1.5 ± 0.0", "1", "12.50 %", "-"],
        ["three", "- (failed: the loss is not a number)", *["-"] * 5],
    ]
    assert table.markdown().splitlines()[:4] == [
        "| arm | policy accuracy | policy loss | minutes | returns to a checkpoint "
        "| policy accuracy on x | value accuracy sign on x |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| one | 25.00 % | 2.5000 | 1.5 | - | - | - |",
        "| two \\| more | 37.50 ± 17.68 % | 2.5000 ± 0.0000 | 1.5 ± 0.0 | 1 | 12.50 % | - |",
    ]
    (machine,) = machine_of([first, second, none])
    assert machine.startswith("2 cores of a chip; cpu in fp32, 1 threads; Python 3.11")
    (data,) = data_of([first, second])
    assert data.startswith("games.store (0123456789ab): 1,000 games")
    assert "far" not in data


def test_mates_in_one_are_columns_of_their_own(tmp_path: Path) -> None:
    found = {"positions": 1000, "legal_moves": 115.817, "mating_moves": 1.623}
    found |= {"accuracy": 0.955, "top5_accuracy": 0.999, "value_loss": 0.056}
    measured = {MATE_IN_ONE: [{"policy_accuracy": 0.5, "mates": found}]}
    arm = ArmRuns("net", (run_of(tmp_path / "1", 0.25),), ("train",), measured=measured)
    other = ArmRuns("none", (), ("train",))
    table = compare([arm, other], ["policy_accuracy"])
    assert table.columns[2:] == [
        "mate-in-one accuracy",
        "mate-in-one top-5 accuracy",
        "mate-in-one value loss",
    ]
    assert table.rows == [
        ["net", "25.00 %", "95.50 %", "99.90 %", "0.0560"],
        ["none", *["-"] * 4],
    ]
    assert mates_of([arm, other]) == [
        "1,000 positions with 115.8 legal moves on average, of which 1.62 mate"
    ]


def test_every_metric_has_a_form() -> None:
    forms = {"share", "loss", "count", "minutes", "milliseconds"}
    assert {metric.form for metric in METRICS.values()} == forms
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)
