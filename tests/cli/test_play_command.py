"""`variant-ai play` and `variant-ai serve` from the outside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli

NET = ["--evaluator", "uniform", "-n", "30"]


def play(typed: str, *args: str) -> Result:
    return CliRunner().invoke(cli, ["play", "-V", "crazyhouse", *NET, *args], input=typed)


def test_moves_hints_and_take_back() -> None:
    done = play("e2e4\nundo\nNf3\nhint\neval\nmoves\nfen\nflip\nhelp\nquit\n")
    assert done.exit_code == 0, done.output
    assert "1... " in done.output
    assert "hint: " in done.output
    assert "[N]" in done.output
    assert "/5N2/" in done.output
    assert "take back your last move" in done.output


def test_the_evaluation_of_a_weak_engine_begins_with_the_best_move() -> None:
    settings = {"temperature": 100, "temperature_moves": 1000, "quantile_clipping": 0}
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    done = play(4 * "eval\n" + "quit\n", "--evaluator", "material", *given)
    assert done.exit_code == 0, done.output
    for shown in done.output.split("eval\n")[1:]:
        assert shown.split()[1] in ("Nf3", "Nc3")


def test_illegal_moves_are_reported() -> None:
    done = play("e2e5\nxyzzy\nundo\nsave\nquit\n")
    assert "'e2e5' is no legal move here; moves are written like" in done.output
    assert "'xyzzy' is no legal move here" in done.output
    assert "you have no move to take back" in done.output
    assert "save needs a file" in done.output


@pytest.mark.parametrize("typed", ["炮二平五", "C2=5", "H2-E2", "h3e3"])
def test_every_notation_of_the_variant_is_understood(typed: str) -> None:
    done = CliRunner().invoke(
        cli, ["play", "-V", "xiangqi", *NET, "--notation", "uci"], input=f"{typed}\nfen\nquit\n"
    )
    assert done.exit_code == 0, done.output
    assert "1C2C4" in done.output, "the cannon stands in the centre"


def test_an_illegal_move_is_answered_with_legal_ones() -> None:
    done = CliRunner().invoke(cli, ["play", "-V", "xiangqi", *NET], input="e4\nquit\n")
    line = next(line for line in done.output.splitlines() if "no legal move" in line)
    assert "d1e2" in line and "仕六進五" in line


def test_the_game_is_kept_as_pgn(tmp_path: Path) -> None:
    path = tmp_path / "game.pgn"
    for _ in range(2):
        done = play("e4\nresign\n", "--save", str(path))
        assert "You resign: 0-1." in done.output
    text = path.read_text()
    assert text.count('[White "Human"]') == 2
    assert '[Result "0-1"]' in text and '[Termination "resignation"]' in text
    assert "1. e4 " in text


def test_a_file_that_cannot_be_written_does_not_end_the_game(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "game.pgn"
    done = play(f"e4\nsave {nowhere}\nmoves\nresign\n")
    assert done.exit_code == 0, done.output
    assert "No such file or directory; the game was not saved" in done.output
    assert "You resign: 0-1." in done.output
    too_long = tmp_path / f"{'x' * 300}.pgn"
    lost = play("e4\nresign\n", "--save", str(too_long))
    assert lost.exit_code == 1
    assert '[Result "0-1"]' in lost.output and "1. e4 " in lost.output


def test_a_game_ends_with_its_reason() -> None:
    fen = "6k1/5ppp/8/8/8/8/5PPP/3R2K1[] w - - 0 1"
    done = play("Rd8\n", "--fen", fen)
    assert "1-0: checkmate" in done.output


def test_the_second_player_waits_and_sees_the_board_turned() -> None:
    done = play("quit\n", "--side", "second")
    assert done.output.index("1. ") < done.output.index("1... ")
    assert "h  g  f  e  d  c  b  a" in done.output


def test_the_engines_own_first_move_is_not_taken_back() -> None:
    fen = "4k3/8/8/8/8/8/4P3/4K3 b - - 0 1"
    done = play("undo\ne4\nundo\nmoves\nquit\n", "--fen", fen, "--notation", "san")
    assert done.output.count("you have no move to take back") == 1
    assert done.output.index("no move to take back") < done.output.rindex("e4")


def test_weak_play_and_the_end_of_the_input() -> None:
    done = play("e2e4\n", "--elo", "800", "--notation", "uci")
    assert done.exit_code == 0
    assert "1... " in done.output


def test_serve_answers_queries() -> None:
    queries = [{"id": 1, "nodes": 20}, {"id": 2, "variant": "xiangqi", "moves": ["h3e3"]}, {"x": 1}]
    done = subprocess.run(
        [sys.executable, "-m", "variant_ai.cli.main", "serve", "-V", "crazyhouse", *NET[:2]],
        input="".join(f"{json.dumps(query)}\n" for query in queries).encode(),
        capture_output=True,
        check=True,
    )
    found = {one.get("id"): one for one in map(json.loads, done.stdout.splitlines())}
    assert found[1]["final"] and found[2]["best"]
    assert "unknown key 'x'" in found[None]["error"]


def test_help_shows_a_move_of_the_variant() -> None:
    done = CliRunner().invoke(cli, ["play", "-V", "xiangqi", *NET], input="help\nquit\n")
    line = next(line for line in done.output.splitlines() if "play a move" in line)
    assert "e4" not in line
    move = line.split("play a move")[0].split()[-1]
    again = CliRunner().invoke(cli, ["play", "-V", "xiangqi", *NET], input=f"{move}\nquit\n")
    assert "is no legal move" not in again.output


def test_the_range_of_strengths_is_that_of_the_engine() -> None:
    """Written in the command, which may import nothing of the engine before it runs."""
    from variant_ai.cli.play.play import command
    from variant_ai.core.engine.protocols.engine_options import LEAST_ELO, MOST_ELO

    accepted = next(one.type for one in command.params if one.name == "elo")
    assert isinstance(accepted, click.IntRange)
    assert (accepted.min, accepted.max) == (LEAST_ELO, MOST_ELO)
