"""`variant-ai perft`: counts, both engines side by side, and messages for wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.cli.variants.perft import command
from variant_ai.plugins import API_VERSION, Registry, RulesEntry, hookimpl

POCKETS = "2k5/8/8/8/8/8/8/4K3[Qn] w - - 0 1"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def test_the_count_is_printed_with_its_speed() -> None:
    result = run("--variant", "crazyhouse", "--depth", "3")
    assert result.exit_code == 0
    assert "8,902" in result.output
    assert "kernel" in result.output


def test_the_start_position_may_be_named() -> None:
    words = ("-V", "crazyhouse", "--depth", "2", "--json")
    named, left_out = (json.loads(run(*words, *fen).output) for fen in (("--fen", "startpos"), ()))
    assert named["nodes"] == left_out["nodes"] == 400
    assert named["fen"] == left_out["fen"]


def test_json_has_nodes_seconds_and_divide() -> None:
    result = run("-V", "crazyhouse", "--fen", POCKETS, "--depth", "2", "--divide", "--json")
    assert result.exit_code == 0
    answer = json.loads(result.output)
    assert answer["nodes"] == 3083
    assert answer["seconds"] > 0
    assert sum(answer["divide"].values()) == 3083
    assert len(answer["divide"]) == 67
    assert answer["fen"] == POCKETS


def test_both_engines_are_compared_move_by_move() -> None:
    result = run("-V", "xiangqi", "--depth", "2", "--engine", "both", "--json")
    assert result.exit_code == 0
    answer = json.loads(result.output)
    assert answer["agree"]
    assert {name: row["nodes"] for name, row in answer["engines"].items()} == {
        "kernel": 1920,
        "fairy": 1920,
    }


def test_a_difference_between_the_engines_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from variant_ai.core.rules.fairy.fairy_rules import FairyRules

    monkeypatch.setattr(FairyRules, "legal_moves", lambda self, position: [])
    result = run("-V", "crazyhouse", "--depth", "1", "--engine", "both")
    assert result.exit_code == 1
    assert "the engines differ after a2a3: kernel 1, fairy has no such move" in result.output


def test_an_engine_of_a_plugin_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Registry()
    assert found.register(Slow(), "outside")
    monkeypatch.setattr("variant_ai.plugins.registry", lambda: found)
    result = run("-V", "xiangqi", "--depth", "1", "--engine", "slow", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.output)
    assert (answer["engine"], answer["nodes"]) == ("slow", 44)


class Slow:
    variant_ai_api = API_VERSION

    @hookimpl
    def register_rules(self) -> list[RulesEntry]:
        return [RulesEntry("slow", "variant_ai.core.rules.fairy.fairy_rules:FairyRules")]


def test_depth_zero_is_one_sequence() -> None:
    result = run("-V", "xiangqi", "--depth", "0", "--json")
    assert json.loads(result.output)["nodes"] == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--variant", "xianqi", "--depth", "1"), "did you mean 'xiangqi'"),
        (("--variant", "xiangqi", "--depth", "1", "--fen", "9/9"), "2 ranks given"),
        (("--variant", "xiangqi", "--depth", "-1"), "-1"),
        (
            ("--variant", "xiangqi", "--depth", "1", "--engine", "kernal"),
            "unknown rules engine 'kernal'; did you mean 'kernel'? accepted: both, fairy, kernel",
        ),
    ],
)
def test_wrong_input_is_one_sentence(arguments: tuple[str, ...], expected: str) -> None:
    result = CliRunner().invoke(cli, ["perft", *arguments])
    assert result.exit_code in (1, 2)
    assert expected in result.output
    assert "Traceback" not in result.output


def test_the_engine_is_the_specs_unless_one_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyffish")
    spec = tmp_path / "mine.yaml"
    words = "extends: chess\nvariant: mine\ntitle: Mine\nfairy: chess\nrules: {engine: fairy, bare_king: draw}\n"
    spec.write_text(words, encoding="utf-8")
    command = ["perft", "-V", str(spec), "--depth", "1", "--json"]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert (shown["engine"], shown["nodes"]) == ("fairy", 20)
    result = CliRunner().invoke(cli, [*command, "--engine", "kernel"])
    assert result.exit_code == 1 and "no rule for `bare_king: draw`" in result.stderr
