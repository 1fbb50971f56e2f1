"""`variant-ai spec`: what it shows, what it finds, and the schema it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from variant_ai.cli.main import cli
from variant_ai.cli.variants.spec_text import board_drawing, moves_in_words
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.core.spec.files.json_schema import schema_text
from variant_ai.core.testing import variant_check
from variant_ai.core.testing.random_games import Report

SCHEMA = Path(__file__).resolve().parents[2] / "specs" / "schema.json"


def run(*args: str, status: int = 0) -> str:
    result = CliRunner().invoke(cli, ["spec", *args], prog_name="variant-ai")
    assert result.exit_code == status, result.output
    return result.stdout


def no_net(spec: VariantSpec) -> Report:
    """Stand-in for the check of the net, which imports torch."""
    return Report("net", spec.variant)


@pytest.mark.parametrize("name", sorted(builtin_specs()))
def test_every_spec_is_shown(name: str) -> None:
    text = run("show", name)
    spec = load_spec(builtin_specs()[name])
    assert spec.title in text and spec.rules.start in text
    for symbol, piece in spec.pieces.items():
        assert f"   {symbol} " in text and piece.name in text
    assert "row 0" in text


def test_planes_and_actions_are_shown_with_their_indices() -> None:
    text = run("show", "crazyhouse")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "Input: 34 × 8 × 8" in lines
    assert "14 hand pawns in my hand 32" in lines
    assert "33 halfmove plies without progress 40" in lines
    assert "Policy (written): 81 × 8 × 8 = 5184 actions, or 2272 flat labels" in lines
    assert "56 3584-3647 move 2N1E 1 2 origin" in lines
    assert "64 4096-4159 promotion NW=N -1 1 origin" in lines
    assert "80 5120-5183 drop Q@ target" in lines


def test_json_has_all_that_the_tables_have() -> None:
    shown = json.loads(run("show", "xiangqi", "--json"))
    assert shown["input"]["shape"] == [28, 10, 9]
    assert [p["index"] for p in shown["input"]["planes"]] == list(range(28))
    assert (shown["policy"]["actions"], shown["policy"]["flat_labels"]) == (4500, 2086)
    assert shown["policy"]["planes"][49]["first_action"] == 49 * 90
    assert len(shown["spec_hash"]) == len(shown["rules_hash"]) == 16
    assert {p["symbol"]: p["moves"] for p in shown["pieces"]}["C"] == "mRcpR"


def test_boards_are_drawn_as_each_player_sees_them() -> None:
    shogi = board_drawing(load_spec(builtin_specs()["shogi"]), 1).splitlines()
    assert shogi[0].split() == ["1", "|", *map(str, range(72, 81)), "row", "8"]
    assert shogi[-1].split() == list("ihgfedcba")
    xiangqi = board_drawing(load_spec(builtin_specs()["xiangqi"]), 1).splitlines()
    assert xiangqi[-3].split() == ["10", "|", *map(str, range(9)), "row", "0"]
    assert xiangqi[-1].split() == list("abcdefghi")
    first = board_drawing(load_spec(builtin_specs()["xiangqi"]), 0).splitlines()
    assert first[-3].split() == ["1", "|", *map(str, range(9)), "row", "0"]


@pytest.mark.parametrize(
    ("betza", "words"),
    [
        ("K", "one step straight; one step diagonally"),
        (
            "fmWfcF",
            "one step straight (N) without capture; one step diagonally (NW, NE) to capture",
        ),
        ("nN", "a knight's leap if nothing stands in its way"),
        ("ffN", "a knight's leap (2N1W, 2N1E)"),
        (
            "mRcpR",
            "any number of steps straight without capture; "
            "any number of steps straight over exactly one piece to capture",
        ),
        ("B3", "up to 3 steps diagonally"),
    ],
)
def test_betza_is_put_into_words(betza: str, words: str) -> None:
    assert moves_in_words(betza) == words


def test_wins_and_hands_are_put_into_words() -> None:
    shown = run("show", "dobutsu")
    assert "A side wins by bringing L to rank 4 if it is not attacked there." in shown
    assert "(C E G); a promoted one reverts to what it was." in shown


def test_the_committed_schema_is_the_generated_one() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text() == run("schema")


def test_the_schema_knows_the_words_of_a_spec(tmp_path: Path) -> None:
    run("schema", "-o", str(tmp_path / "schema.json"))
    schema = json.loads((tmp_path / "schema.json").read_text(encoding="utf-8"))
    assert {"variant", "title", "board", "pieces", "rules", "input", "policy"} <= set(
        schema["properties"]
    )
    assert schema["additionalProperties"] is False
    assert "from" in schema["$defs"]["Piece"]["properties"]
    assert schema["$defs"]["Board"]["properties"]["files"]["anyOf"][0]["maximum"] == 12
    assert "extends" in schema["properties"]


def test_a_spec_that_extends_another_is_written_out_and_read_again(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: xiangqi\nvariant: mine\nrules: {stalemate: draw}\n", "utf-8")
    written = run("show", str(mine), "--resolved")
    assert "extends" not in written and "glyphs" in written
    whole = tmp_path / "whole.yaml"
    whole.write_text(written, encoding="utf-8")
    assert load_spec(whole) == load_spec(mine)
    shown = json.loads(run("show", str(mine), "--resolved", "--json"))
    assert shown["rules"]["stalemate"] == "draw"


def test_specs_are_compared_word_by_word(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: chess\nvariant: mine\npieces: {N: {moves: NW}}\n", "utf-8")
    shown = run("diff", "chess", str(mine), status=1)
    assert "pieces.N.moves\n  - N\n  + NW\n" in shown and "cannot be used with the other" in shown
    same_rules = tmp_path / "same.yaml"
    same_rules.write_text("extends: chess\nvariant: mine\ntitle: Mine\n", "utf-8")
    same = json.loads(run("diff", "chess", str(same_rules), "--json"))
    assert same["same_encoding"] is True
    assert [one["word"] for one in same["differences"]] == ["variant", "title"]
    assert "no difference" in run("diff", "chess", "chess")
    planes = run("diff", "chess", "three-check", status=1)
    assert planes.count("input (item)") == 1 and '+ {"checks": {"of": "me", "max": 3.0}}' in planes


def test_problems_of_a_spec_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "poor.yaml"
    path.write_text("variant: poor\nspec: 1\n")
    result = CliRunner().invoke(cli, ["spec", "check", str(path)])
    problems = result.stderr.strip().split("; ")
    assert len(problems) > 1
    assert all(problem.count("poor.yaml:") == 1 for problem in problems)


def test_a_good_spec_agrees_in_every_part() -> None:
    report = json.loads(run("check", "minixiangqi", "--positions", "25", "--json"))
    assert report["agrees"] is True
    assert [s["verdict"] for s in report["stages"]] == ["agrees"] * 4
    net = report["stages"][3]["compared"]
    assert net == {"map head outputs": 32 * 49, "flat head outputs": 828}


def test_numbers_that_differ_and_ends_not_met_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variant_check, "check_export", no_net)
    text = builtin_specs()["minixiangqi"].read_text(encoding="utf-8")
    assert "fold: 3" in text
    changed = tmp_path / "changed.yaml"
    changed.write_text(text.replace("fold: 3", "fold: 9"), encoding="utf-8")
    shown = run("check", str(changed), "--positions", "25")
    assert "Not met in game ends, so not compared" in shown
    assert "rules.repetition.fold is 9; Fairy-Stockfish's minixiangqi: 3" in shown
    report = json.loads(run("check", "minixiangqi", "--positions", "25", "--json"))
    assert report["differing_ends"] == []
    assert "move count" in report["stages"][1]["not_met"]


def test_the_first_difference_of_a_wrong_spec_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variant_check, "check_export", no_net)
    text = builtin_specs()["minixiangqi"].read_text(encoding="utf-8")
    assert "nN" in text
    wrong = tmp_path / "leaping-horse.yaml"
    wrong.write_text(text.replace("nN", "N"), encoding="utf-8")
    report = run("check", str(wrong), "--positions", "25", status=1)
    assert "First difference in rules:" in report
    start = load_spec(builtin_specs()["minixiangqi"]).rules.start.split()[0]
    assert start in report
    assert "the rules differ already" in report


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("w - - 0 1", "x - - 0 1", "15:3", "rules.start: side to move 'x' is neither"),
        ("  start:", "  explodes: true\n  start:", "14:1", "the kernel has no rule for `explodes"),
    ],
)
def test_what_only_the_rules_find_wrong_has_its_place_too(
    tmp_path: Path, old: str, new: str, place: str, message: str
) -> None:
    text = builtin_specs()["minixiangqi"].read_text(encoding="utf-8")
    assert old in text
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(text.replace(old, new, 1), encoding="utf-8")
    result = CliRunner().invoke(cli, ["spec", "check", str(wrong)], prog_name="variant-ai")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {wrong}:{place}: variant 'minixiangqi': ")
    assert message in result.stderr


def test_a_spec_without_a_reference_is_checked_against_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variant_check, "check_export", no_net)
    text = builtin_specs()["minixiangqi"].read_text(encoding="utf-8")
    alone = tmp_path / "alone.yaml"
    lines = [line for line in text.splitlines() if not line.startswith("fairy:")]
    alone.write_text("\n".join(lines), encoding="utf-8")
    report = json.loads(run("check", str(alone), "--positions", "10", "--json"))
    verdicts = [(s["name"], s["verdict"]) for s in report["stages"]]
    assert verdicts[:3] == [
        ("rules", "skipped"),
        ("game ends", "skipped"),
        ("encoding", "agrees"),
    ]


@pytest.mark.parametrize("command", ["show", "check"])
def test_an_unknown_variant_is_answered_with_the_closest(command: str) -> None:
    result = CliRunner().invoke(cli, ["spec", command, "xianqi"], prog_name="variant-ai")
    assert result.exit_code == 1
    assert "did you mean 'xiangqi'" in result.stderr


def test_a_start_position_where_the_game_is_over_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "over.yaml"
    path.write_text(
        "extends: makruk\nvariant: over\nfairy: null\n"
        "rules: {start: 3R3k/R7/8/8/8/8/8/K7 b - - 0 1}\n"
    )
    result = CliRunner().invoke(cli, ["spec", "check", str(path)], prog_name="variant-ai")
    assert result.exit_code == 1
    assert f"{path}:4:" in result.output
    assert "the game would be over at once: checkmate" in result.output
