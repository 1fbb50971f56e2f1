"""`benchmarks/judgement.py`: labels, classes of values, and losses of moves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from judgement import LIMIT, Judge, Share, agree, check, lost_by, values_of  # noqa: E402

from variant_ai import Position  # noqa: E402
from variant_ai.core.errors import DataError  # noqa: E402

MATE_IN_ONE = "6k1/5ppp/8/8/8/8/5PPP/3R2K1[] w - - 0 1"


def judge(path: Path, **scores: int) -> Judge:
    made = Judge("crazyhouse", "no-such-program", 10, path)
    made.scores.update(scores)
    return made


def test_a_class_counts_right_signs_for_the_better_side() -> None:
    small, middle, large = values_of(
        [200, -200, 299, -300, 50, 600], [0.5, -0.3, -0.1, 0.2, -1, 0.9]
    )
    assert small.right == Share(2, 3) and small.mean == pytest.approx((0.5 + 0.3 - 0.1) / 3)
    assert middle.right == Share(0, 1) and middle.mean == pytest.approx(-0.2)
    assert large.right == Share(1, 1)
    assert values_of([0], [1.0])[0].right.text == "no position"


def test_a_share_of_all_has_an_error_too() -> None:
    assert Share(50, 100).text == "50.0 ± 9.8 %"
    assert Share(100, 100).text == "100.0 ± 1.0 %"


def test_a_move_loses_what_the_judge_says(tmp_path: Path) -> None:
    known = judge(tmp_path / "labels")
    known.scores[MATE_IN_ONE] = LIMIT
    assert lost_by(known, MATE_IN_ONE, "d1d8") == 0  # the end of the game needs no judge
    quiet = Position("crazyhouse", MATE_IN_ONE).push("h2h3").fen
    known.scores[quiet] = 150
    assert lost_by(known, MATE_IN_ONE, "h2h3") == LIMIT + 150
    known.scores[quiet] = -LIMIT
    assert lost_by(known, MATE_IN_ONE, "h2h3") == 0


def test_a_second_judge_is_asked_about_close_positions_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = judge(tmp_path / "labels"), judge(tmp_path / "more", a=-40, b=400)
    first.scores.update(a=200, b=350, c=700, d=20)
    first.sampled.extend("abcd")
    check(first, second)  # a program would be asked about c and d, and there is none
    assert "| 150 to 300 centipawns | 1 | 0.0 " in (shown := capsys.readouterr().out)
    assert "| 300 to 600 centipawns | 1 | 100.0 " in shown
    assert [fen for fen in "abcd" if agree(first, second, fen)] == ["b", "c", "d"]


def test_labels_are_read_again_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    row = {"variant": "crazyhouse", "judge": "no-such-program", "nodes": 10}
    lines = [
        {**row, "fen": "a", "score": 30, "sampled": True},
        {**row, "fen": "b", "score": -5, "sampled": False},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    read = judge(path)
    assert (read.scores, read.sampled) == ({"a": 30, "b": -5}, ["a"])
    path.write_text(json.dumps({**lines[0], "nodes": 11}) + "\n")
    with pytest.raises(DataError, match=r"labels:1: a label of no-such-program at 11 nodes"):
        judge(path)
    path.write_text("{}\n")
    with pytest.raises(DataError, match="labels:1"):
        judge(path)
