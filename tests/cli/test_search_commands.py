"""`analyse`, `bench` and `experiment n-e6`, with the evaluator that needs no net."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.cli.play.analyse_games import GamesAnalysis
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.plugins import registry
from variant_ai_experiments.move_curve import POSITION, SETTINGS

WITHOUT_NET = Path(__file__).parents[2] / "benchmarks" / "gardner.yaml"

PGN = """[White "A"]
[Black "B"]
[Result "0-1"]

1. f3 e5 2. g4 Qh4# 0-1

[White "C"]
[Black "D"]
[Result "*"]

1. e4 e5 *
"""


def run(*args: str, ok: bool = True) -> Result:
    result = CliRunner().invoke(cli, list(args))
    assert (result.exit_code == 0) == ok, result.output
    return result


def analyse(*args: str, ok: bool = True) -> Result:
    return run("analyse", *args, "-V", "crazyhouse", "--evaluator", "uniform", ok=ok)


@pytest.fixture
def games(tmp_path: Path) -> Path:
    path = tmp_path / "games.pgn"
    path.write_text(PGN)
    return path


def test_the_games_of_a_store_have_its_variant(games: Path, tmp_path: Path) -> None:
    store = tmp_path / "games.store"
    run("import", str(games), "-V", "crazyhouse", "-o", str(store), "--min-plies", "0")
    asked = ("-n", "8", "--evaluator", "uniform", "--json")
    assert json.loads(run("analyse", str(store), *asked).stdout)
    assert "only a game store names its own" in run("analyse", str(games), *asked, ok=False).output


def test_a_position_as_json() -> None:
    said = json.loads(analyse(POSITION, "-n", "200", "--multipv", "5", "--json").stdout)
    assert said["simulations"] == 200
    assert said["stopped_by"] == "simulations"
    assert len(said["lines"]) == 5
    assert said["best"] == said["lines"][0]["move"] == said["lines"][0]["pv"][0]
    assert set(said["lines"][0]) == {
        "move", "text", "visits", "prior", "q", "cp", "mate", "wdl", "pv",
    }  # fmt: skip
    everything = json.loads(analyse(POSITION, "-n", "64", "--multipv", "0", "--json").stdout)
    assert len(everything["lines"]) == 73
    assert sum(line["prior"] for line in everything["lines"]) == pytest.approx(1, abs=0.01)


def test_a_position_as_table_and_picture(tmp_path: Path) -> None:
    picture = tmp_path / "board.svg"
    moves = "f2f3 e7e5 g2g4"
    result = analyse("startpos", "--moves", moves, "-n", "400", "--svg", str(picture))
    again = analyse("startpos", "-n", "4", "--svg", str(picture), ok=False)
    assert "board.svg already exists; use --replace" in again.output
    assert "Qh4#" in result.stdout
    assert "#1" in result.stdout
    assert "solved" in result.stdout
    assert picture.read_text().count("<polygon") == 1, "no move but the mate was visited"


def test_a_picture_shows_the_moves_that_were_searched(tmp_path: Path) -> None:
    """Of twenty legal moves, after four nodes and after none."""
    few, none = tmp_path / "few.svg", tmp_path / "none.svg"
    analyse("startpos", "-n", "4", "--arrows", "9", "--svg", str(few))
    assert few.read_text().count("<polygon") <= 4
    raw = ("--set", "use_raw_network=true", "--arrows", "2", "--svg", str(none))
    analyse("startpos", *raw)
    assert "+0.00" not in none.read_text()


def test_analyse_says_whose_view_its_scores_have(games: Path, tmp_path: Path) -> None:
    """Black mates in one: `#1` for the side to move, `#-1` for White in a PGN."""
    asked = ("startpos", "--moves", "f2f3 e7e5 g2g4", "-n", "200")
    text = analyse(*asked).stdout
    assert re.search(r"^scores +for Black, to move$", text, re.MULTILINE)
    assert "#1" in text and "#-1" not in text
    said = json.loads(analyse(*asked, "--json").stdout)
    assert (said["side_to_move"], said["scores_seen_by"]) == ("Black", "the side to move")
    assert said["lines"][0]["mate"] == 1 and said["lines"][0]["cp"] > 0
    (game, _) = json.loads(analyse(str(games), "-n", "200", "--json").stdout)
    assert game["scores_seen_by"] == "the player who made the move"
    assert game["moves"][2]["player"] == "white" and game["moves"][2]["score"] < 0
    table = analyse(str(games), "-n", "200", "--game", "1").stdout
    assert "scores are for the player who made the move" in table
    output = tmp_path / "annotated.pgn"
    assert "[%eval] is for White" in analyse(str(games), "-n", "200", "-o", str(output)).stderr
    assert "[%eval #-1]" in output.read_text()


def test_games_become_an_annotated_pgn(games: Path, tmp_path: Path) -> None:
    output = tmp_path / "annotated.pgn"
    result = analyse(str(games), "-n", "200", "-o", str(output))
    assert result.stdout.count("accuracy") == 4
    text = " ".join(output.read_text().split())
    assert "2. g4 $4 {[%eval #-1] Blunder." in text
    assert text.count("[Annotator") == 2
    assert "already exists" in analyse(str(games), "-o", str(output), ok=False).output
    again = analyse(str(output), "-n", "50", "--game", "1", "--json")
    (game,) = json.loads(again.stdout)
    twice = tmp_path / "twice.pgn"
    analyse(str(output), "-n", "200", "-o", str(twice))
    assert " ".join(twice.read_text().split()).count("Blunder.") == text.count("Blunder.")
    assert [move["text"] for move in game["moves"]] == ["f3", "e5", "g4", "Qh4#"]
    assert game["marks"]["white"]["??"] == 1
    assert game["accuracy"]["black"] > game["accuracy"]["white"]


def test_games_are_not_lost_to_their_annotation(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = games.read_text(encoding="utf-8")
    for replace in ((), ("--replace",)):
        rejected = analyse(str(games), "-o", str(games), *replace, ok=False)
        assert "is also an input" in rejected.output
    output = tmp_path / "annotated.pgn"
    output.write_text("an older one")
    empty = tmp_path / "empty.pgn"
    empty.write_text("")
    analyse(str(empty), "-n", "5", "-o", str(output), "--replace", ok=False)
    assert output.read_text() == "an older one"
    analyse(str(games), "--game", "9", "-n", "5", "-o", str(tmp_path / "new.pgn"), ok=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "annotated.pgn", "empty.pgn", "games.pgn",
    ]  # fmt: skip

    add = GamesAnalysis.add

    def interrupted(self: GamesAnalysis, record: GameRecord) -> None:
        add(self, record)
        self.interrupt.requested = True

    monkeypatch.setattr(GamesAnalysis, "add", interrupted)
    stopped = analyse(str(games), "-n", "5", "-o", str(output), "--replace", ok=False)
    assert stopped.exit_code == 130
    assert output.read_text() == "an older one"
    assert (tmp_path / "unfinished-annotated.pgn").read_text().count("[Annotator") == 1
    monkeypatch.undo()
    analyse(str(games), "-n", "5", "-o", str(output), "--replace")
    assert output.read_text().count("[Annotator") == 2
    assert games.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "words",
    [("solve", "x.epd", "-V", "chess", "--movetime", "inf"), ("match", "--movetime", "nan")],
)
def test_numbers_are_finite(words: tuple[str, ...]) -> None:
    result = run(*words, ok=False)
    assert result.exit_code == 2 and "is not a finite number" in result.output


def test_a_game_is_named_by_its_place_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "games.pgn"
    texts = (("A", "1. e4 e5 *"), ("B", "1. e4 Qh1 *"), ("C", "1. d4 d5 *"))
    path.write_text("\n".join(
        f'[Variant "Crazyhouse"]\n[White "{name}"]\n\n{moves}\n' for name, moves in texts
    ))  # fmt: skip
    (third,) = json.loads(analyse(str(path), "--game", "3", "-n", "5", "--json").stdout)
    assert (third["white"], third["number"]) == ("C", 3)
    unread = analyse(str(path), "--game", "2", "-n", "5", ok=False)
    assert "game 2 is not among those read (2 games, 1 skipped)" in unread.output


def test_a_picture_that_cannot_be_written_is_told_before_the_search(tmp_path: Path) -> None:
    asked = ("startpos", "-t", "600", "--png", str(tmp_path / "nowhere" / "x.png"))
    assert "there is no folder" in analyse(*asked, ok=False).output


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("nowhere.pgn",), "no such file"),
        (("8/8",), "FEN"),
        (("startpos", "--moves", "e2e5"), "illegal"),
        (("startpos", "--moves", "f2f3 e7e5 g2g4 d8h4"), "over: checkmate"),
        (("startpos", "-o", "x.pgn"), "need a file"),
        (("startpos", "--flip"), "--flip needs --svg or --png"),
        (("startpos", "--set", "cpuct=1"), "cpuct_init"),
        (("startpos", "--set", "cpuct_init"), "NAME=VALUE"),
        (("startpos", "--set", "threads=2"), "give it as --threads"),
        (("startpos", "--set", "cpuct_init=-1"), "from 0 to 100"),
        (("startpos", "--notation", "morse"), "morse"),
        (("startpos", "-n", "0"), "0"),
    ],
)
def test_wrong_input_is_told_in_words(args: tuple[str, ...], said: str) -> None:
    result = analyse(*args, ok=False)
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_file_without_games_and_a_number_too_high(games: Path, tmp_path: Path) -> None:
    missing = analyse(str(games), "--game", "3", "-n", "5", ok=False).output
    assert "game 3 is not among those read (2 games, 0 skipped)" in missing
    empty = tmp_path / "empty.pgn"
    empty.write_text("")
    assert "no game was read" in analyse(str(empty), ok=False).output


def test_bench_of_a_finished_game() -> None:
    words = ["bench", "-V", "crazyhouse", "--evaluator", "uniform", "-n", "10", "--fen"]
    done = run(*words, "7k/5Q2/6K1/8/8/8/8/8[] b - - 0 1", ok=False)
    assert "Error: the game is over: stalemate" in done.stderr


def test_a_search_is_known_before_a_net_is_loaded() -> None:
    for words in (["bench"], ["analyse", "startpos"]):
        search = ["-V", "crazyhouse", "--evaluator", "foo", "--search", "bar"]
        done = run(*words, *search, "-n", "10", ok=False)
        assert "Error: unknown search 'bar'; accepted: graph" in done.stderr


def test_bench_reports_every_rate() -> None:
    args = ("bench", "-V", "xiangqi", "--evaluator", "random", "-n", "300", "--seconds", "0.3")
    said = json.loads(run(*args, "--batch", "8", "--json").stdout)
    assert said["simulations"] >= 300
    assert said["batch"] == 8
    for key in ("simulations_per_second", "evaluations_per_second", "evaluator_rate", "ratio"):
        assert said[key] > 0
    assert said["ratio"] == pytest.approx(said["evaluations_per_second"] / said["evaluator_rate"])
    assert set(said["time_split"]) == {"select", "rules", "encode", "back-up", "network", "other"}
    assert sum(said["time_split"].values()) == pytest.approx(1)
    assert 64 < said["bytes_per_node"] < 1000
    free = run("bench", "-V", "xiangqi", "--evaluator", "uniform", "-n", "500")
    assert "evaluator alone" in free.stdout
    assert "network" not in free.stdout


def test_n_e6_gives_a_curve_for_every_setting(tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    args = ("experiment", "n-e6", "-V", "crazyhouse", "--evaluator", "uniform")
    result = run(*args, "-n", "200", "--points", "4", "-o", str(plot), "--json")
    said = json.loads(result.stdout)
    assert [curve["setting"] for curve in said["curves"]] == list(SETTINGS)
    for curve in said["curves"]:
        assert curve["simulations"] == [50, 100, 150, 200]
        assert curve["visits"] == sorted(curve["visits"])
    by_name = {curve["setting"]: curve for curve in said["curves"]}
    assert by_name["enhance-checks"]["prior"] > by_name["default"]["prior"]
    assert plot.exists()
    assert "did you mean" in run(*args, "--only", "defualt", ok=False).output
    assert ".png" in run(*args, "-o", "plot.gif", ok=False).output


def test_n_e6_of_another_variant_needs_a_position_and_a_move() -> None:
    args = ("experiment", "n-e6", "-V", "xiangqi", "--evaluator", "uniform", "-n", "20")
    said = run(*args, ok=False).output
    assert "figure 13 is not a position of xiangqi: give --fen FEN and --move MOVE" in said
    fen = load_spec(builtin_specs()["xiangqi"]).rules.start
    assert "give --move MOVE" in run(*args, "--fen", fen, ok=False).output
    said = json.loads(run(*args, "--fen", fen, "--move", "h3e3", "--json").stdout)
    assert said["move"] == "h3e3"


def test_what_cannot_be_written_or_read_is_told_before_the_work(tmp_path: Path) -> None:
    missing = analyse("nosuch.pgn", "-o", str(tmp_path / "a.pgn"), ok=False)
    assert "nosuch.pgn: there is no such file" in missing.output
    unsaved = run("play", "-V", "crazyhouse", "--save", str(tmp_path / "x" / "a.pgn"), ok=False)
    assert "there is no folder" in unsaved.output
    words = ("data", "fetch", "lichess", "-V", "crazyhouse", "-o", str(tmp_path / "a.store"))
    turned = run(*words, "--from", "2018-06", "--to", "2018-01", ok=False)
    assert "--from 2018-06 is after --to 2018-01" in turned.output


def test_the_games_of_a_store_are_analysed() -> None:
    sample = registry().variants["xiangqi"].sample
    assert sample is not None
    words = (str(sample), "--game", "3", "--nodes", "2", "--evaluator", "uniform", "--json")
    (analysis,) = json.loads(run("analyse", "-V", "xiangqi", *words).stdout)
    assert analysis["number"] == 3 and len(analysis["moves"]) > 10


def test_a_game_of_a_store_has_its_number_in_that_store(tmp_path: Path) -> None:
    sample = registry().variants["xiangqi"].sample
    part = tmp_path / "part.store"
    run("store", "filter", str(sample), "--min-plies", "100", "-o", str(part))
    words = ("-V", "xiangqi", "--game", "1", "--nodes", "2", "--evaluator", "uniform", "--json")
    (analysis,) = json.loads(run("analyse", str(part), *words).stdout)
    shown = json.loads(run("store", "show", str(part), "--game", "1", "--json").stdout)
    assert (analysis["number"], shown["game"], shown["number"]) == (1, 1, 2)
    assert analysis["moves"][0]["move"] == shown["moves"][0]


def test_nodes_and_simulations_are_one_limit() -> None:
    found = [
        json.loads(analyse("startpos", word, "30", "--json").stdout)["simulations"]
        for word in ("--nodes", "--simulations", "-n")
    ]
    assert found == [30, 30, 30]


def test_packaged_names_the_net_that_comes_with_the_variant() -> None:
    words = ("startpos", "-V", "xiangqi", "--nodes", "2", "--json", "--evaluator", "onnx")
    named, usual = (
        json.loads(run("analyse", *words, *more).stdout)["net"]
        for more in ((), ("--model", "packaged"))
    )
    assert named == usual and named.endswith("model.onnx")


def test_a_variant_without_a_net_says_where_it_was_looked_for() -> None:
    done = run("analyse", "startpos", "-V", WITHOUT_NET, "--model", "packaged", ok=False)
    assert done.exit_code == 1
    assert "no net comes with gardner: there is none at" in done.stderr
