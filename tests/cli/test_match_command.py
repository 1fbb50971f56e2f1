"""`variant-ai match` and `solve` from outside."""

from __future__ import annotations

import gzip
import json
import lzma
import shlex
import shutil
import sys
from pathlib import Path

import onnx
import pytest
import zstandard
from click.testing import CliRunner, Result

from variant_ai.cli.common.player_options import file_openings, net_digest
from variant_ai.cli.main import cli
from variant_ai.core.arena.players.player import RandomPlayer, Reply, Turn
from variant_ai.core.arena.players.player_spec import parse_player
from variant_ai.core.arena.programs.engine_process import GAMES_FOLDERS
from variant_ai.core.rules.game import Game
from variant_ai.plugins import registry

FAKE = Path(__file__).parent.parent / "arena" / "fake_engine.py"
LINE = "h3e3 h10g8 h1g3 i10h10 i1h1 g7g6 c4c5 b10c8"
QUICK = ["-V", "xiangqi", "--nodes", "1", "--max-plies", "6"]


@pytest.fixture(autouse=True)
def known_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LINE", LINE)


def engine(mode: str = "good", *words: str) -> str:
    return shlex.join([sys.executable, str(FAKE), mode, *words])


def match(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["match", *words, *QUICK, "-o", str(folder)])


def test_a_match_with_faults_goes_on_and_says_why(tmp_path: Path) -> None:
    # it plays its first game, and dies in every later one
    bad = f"{engine('dies-from', '2', str(tmp_path / 'counter'))};name=bad"
    players = (f"{engine()};name=good", bad, "--games", "4")
    done = match(tmp_path / "m", *players, "--json")
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["reasons"] == {"crash": 3, "adjudicated: move limit": 1}
    assert said["complete"] is True
    assert [player["name"] for player in said["players"]] == ["good", "bad"]
    assert said["players"][0]["against"] == {"bad": "3-0-1"}
    again = match(tmp_path / "m", *players)
    assert again.exit_code == 0 and "good against bad: 3-0-1" in again.stdout
    assert "game 5" not in again.stderr


def test_games_that_repeat_others_are_told_and_count_once(tmp_path: Path) -> None:
    same = "net:-;evaluator=uniform;search.memory_mb=16;search.deterministic=true"
    words = (f"{same};name=a", f"{same};name=b", "--games", "8", "--sprt", "0", "20")
    done = match(tmp_path / "m", *words, "--json")
    assert done.exit_code == 0, done.stderr
    assert "6 of 8 games repeat another move for move" in done.stderr
    pair = match(tmp_path / "p", *words[:2], "--games", "2", "--sprt", "0", "20", "--json")
    assert json.loads(done.stdout)["sprt"] == json.loads(pair.stdout)["sprt"]
    drawn = match(tmp_path / "r", "random;name=a", "random;name=b", "--games", "8")
    assert drawn.exit_code == 0 and "repeat" not in drawn.stderr


def test_openings_that_end_the_game_are_left_out(tmp_path: Path) -> None:
    games = tmp_path / "games.pgn"
    mate = "1. f3 e5 2. g4 Qh4# 0-1"
    games.write_text(
        f'[Variant "Crazyhouse"]\n\n{mate}\n\n[Variant "Crazyhouse"]\n\n1. e4 e5 2. Nf3 Nc6 *\n'
    )
    words = ["match", "random;name=a", "random;name=b", "-V", "crazyhouse", "--nodes", "1"]
    words += ["--max-plies", "8", "--openings", str(games), "--opening-plies", "4", "--games", "2"]
    done = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "m")])
    assert done.exit_code == 0, done.stderr
    assert "openings left out because the game is over at their end: 1 (checkmate)" in done.stderr
    words[words.index("--max-plies") + 1] = "4"  # then the other opening is a whole game, too
    long = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "long")])
    assert long.exit_code == 1
    assert "over at the end of every opening: 1 (checkmate), 2 (4 plies, at most 4)" in long.stderr
    words[words.index("--max-plies") + 1] = "8"
    games.write_text(f'[Variant "Crazyhouse"]\n\n{mate}\n')
    none = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "n")])
    assert none.exit_code == 1
    assert "over at the end of every opening: 1 (checkmate)" in none.stderr


def test_a_match_from_a_file(tmp_path: Path) -> None:
    config = tmp_path / "m.yaml"
    config.write_text(
        "variant: xiangqi\ntitle: Two\nnodes: 5\ngames: 2\nmax_plies: 4\n"
        "players: [random;name=a, {name: b, random: true}]\n"
        "openings: {lines: [h3e3 h10g8]}\n"
    )
    words = ["match", "--config", str(config), "-o", str(tmp_path / "m")]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("Two\n")
    assert (tmp_path / "m" / "games.pgn").read_text().count("{book}") == 4
    other = CliRunner().invoke(cli, [*words, "--nodes", "6"])
    assert other.exit_code == 1 and "nodes" in other.stderr


def test_an_optional_player_is_left_out_if_it_is_missing(tmp_path: Path) -> None:
    """Also if it is a text, as on the command line."""
    config = tmp_path / "m.yaml"
    config.write_text(
        "variant: xiangqi\nnodes: 5\nmax_plies: 4\nplayers:\n  - no-such-engine;optional=true;name=x\n"
        "  - {command: no-such-engine, optional: true}\n  - random;name=a\n  - random;name=b\n"
    )
    listed = CliRunner().invoke(cli, ["match", "--config", str(config), "-o", str(tmp_path / "m")])
    assert listed.exit_code == 0 and "a against b" in listed.stdout
    assert "left out: x" in listed.stderr and "left out: no-such-engine" in listed.stderr
    given = match(tmp_path / "n", "no-such-engine;optional=true", "random", "random")
    assert given.exit_code == 0 and "left out: no-such-engine" in given.stderr
    only = match(tmp_path / "o", "no-such-engine;optional=true", "random")
    assert only.exit_code == 1 and "a match needs two players, not 1" in only.stderr


def opponents(folder: Path, settings: str, *words: str) -> dict[str, set[str]]:
    """Opponents of each player in a short match of a file with these settings and words."""
    config = folder / "m.yaml"
    config.write_text(f"variant: xiangqi\nnodes: 5\ngames: 2\nmax_plies: 4\n{settings}\n")
    given = ["match", "--config", str(config), "-o", str(folder / "m"), "--json", *words]
    done = CliRunner().invoke(cli, given)
    assert done.exit_code == 0, done.stderr
    return {p["name"]: set(p["against"]) for p in json.loads(done.stdout)["players"]}


def test_a_player_takes_the_first_place_of_a_gauntlet(tmp_path: Path) -> None:
    settings = "kind: gauntlet\nplayers: [random;name=old, random;name=b, random;name=c]"
    players = opponents(tmp_path, settings, "random;name=new")
    assert players == {"new": {"b", "c"}, "b": {"new"}, "c": {"new"}}


def test_a_gauntlet_of_the_command_line_replaces_the_pairs_of_a_file(tmp_path: Path) -> None:
    settings = "kind: pairs\npairs: [[a, b], [b, c]]\nplayers: [random;name=a, random;name=b, random;name=c]"
    players = opponents(tmp_path, settings, "--gauntlet", "1")
    assert players == {"a": {"b", "c"}, "b": {"a"}, "c": {"a"}}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("random",), "players"),
        (("no-such-engine", "random"), "not a program"),
        (("random", "net:no-such.onnx"), "no-such.onnx"),
        (("xboard:sjeng-of-nowhere", "random"), "not a program"),
        (("random", "random;sede=3"), "unknown key"),
    ],
)
def test_wrong_input_is_one_sentence(tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    done = match(tmp_path / "m", *words)
    assert done.exit_code == 1
    assert reason in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("openings: lines.pgn", "6:1: openings: a mapping of words is expected, given 'lines.pgn'"),
        ("openings:\n  lins: [e2e4]", "7:3: openings: unknown key 'lins'; did you mean 'lines'?"),
        ("nods: 10", "6:1: unknown key 'nods'; did you mean 'nodes'?"),
        ("sprt: [0, 5, 0.05]", "6:1: sprt: a list of at most 2 is expected, given [0, 5, 0.05]"),
        ("    threads: 0", "6:5: player 2: threads: at least 1 is expected, given 0"),
        ("    nodes: true", "6:5: player 2: nodes: a number is expected, given True"),
        ("seed: true", "6:1: seed: a number is expected, given True"),
        ("margin: true", "6:1: margin: a number is expected, given True"),
    ],
)
def test_wrong_values_of_a_file_have_its_line(tmp_path: Path, text: str, message: str) -> None:
    config = tmp_path / "m.yaml"
    config.write_text(f"variant: chess\ngames: 2\nplayers:\n  - random\n  - random: true\n{text}\n")
    words = ["match", "--config", str(config), "-o", str(tmp_path / "m")]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 1
    assert f"m.yaml:{message}" in done.stderr


def test_puzzles(tmp_path: Path) -> None:
    suite = tmp_path / "s.jsonl"
    suite.write_text('{"fen": "3k5/9/9/9/9/9/9/9/4R4/4K4 w - - 0 1", "pv": "e2d2"}\n')
    words = ["solve", f"{engine()}", str(suite), "-V", "xiangqi", "--nodes", "1", "--nodes", "2"]
    for line, share in (("e2d2", 1), ("e2e3", 0)):
        runner = CliRunner(env={"FAKE_LINE": line})
        done = runner.invoke(cli, [*words, "--json"])
        assert done.exit_code == 0, done.stderr
        assert [run["share"] for run in json.loads(done.stdout)["runs"]] == [share] * 2


def test_interrupted_puzzles_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzles = tmp_path / "s.epd"
    start = registry().variant("xiangqi").rules.start
    puzzles.write_text(f"{start} bm h3e3;\n" * 3)

    class Tired(RandomPlayer):
        asked = 0

        def play(self, game: Game, turn: Turn) -> Reply:
            self.asked += 1
            if self.asked == 3:
                raise KeyboardInterrupt
            return super().play(game, turn)

    monkeypatch.setattr(
        "variant_ai.cli.common.player_options.make_player", lambda spec, rules: Tired()
    )
    words = ["solve", "random", str(puzzles), "-V", "xiangqi", "--nodes", "1", "--json"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 130
    assert "Interrupted after 2 puzzles." in done.stderr
    said = json.loads(done.stdout)
    assert (said["puzzles"], [run["puzzles"] for run in said["runs"]]) == (3, [2])
    monkeypatch.setattr(Tired, "asked", 2)
    done = CliRunner().invoke(cli, words[:-1])
    assert done.exit_code == 130 and "Interrupted after 0 puzzles." in done.stderr


def have(program: str) -> bool:
    return bool(shutil.which(program)) or any(Path(f, program).exists() for f in GAMES_FOLDERS)


@pytest.mark.peer
@pytest.mark.skipif(not have("fairy-stockfish"), reason="fairy-stockfish is not installed")
@pytest.mark.parametrize(
    ("variant", "program", "player"),
    [
        ("xiangqi", "hoixiangqi", "xboard:hoixiangqi --xboard;depth=1"),
        ("crazyhouse", "sjeng", "xboard:sjeng;depth=1"),
    ],
)
def test_real_programs(tmp_path: Path, variant: str, program: str, player: str) -> None:
    if not have(program):
        pytest.skip(f"{program} is not installed")
    words = ["match", "fairy-stockfish;option.Hash=1", player, "-V", variant, "--nodes", "40"]
    words += ["--games", "2", "--max-plies", "20", "-o", str(tmp_path / "m"), "--json"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.stderr
    reasons = json.loads(done.stdout)["reasons"]
    assert set(reasons) <= {"adjudicated: move limit", "checkmate"}


def test_players_are_looked_at_before_limits(tmp_path: Path) -> None:
    done = match(tmp_path / "m", "no-such-engine-here", "random")
    assert done.exit_code == 1
    assert "no-such-engine-here" in done.output and "limits" not in done.output
    done = match(tmp_path / "m", "net:nowhere.onnx", "random")
    assert "there is no net nowhere.onnx" in done.output


def test_a_player_that_never_moves_stops_the_match_after_two_games(tmp_path: Path) -> None:
    done = match(tmp_path / "m", engine("hangs"), "random", "--games", "10", "--think", "0.2")
    assert done.exit_code == 1, done.output
    assert "lost its first 2 games without a move (hang" in done.output
    assert "-uci" in done.output
    assert len((tmp_path / "m" / "games.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard.compress])
def test_openings_are_read_packed(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    suffix = {"gzip": ".gz", "lzma": ".xz"}.get(pack.__module__, ".zst")
    fens = [
        "rnbqkb1r/pppp1ppp/5n2/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R[] b KQkq -",
        "rnbqkb1r/pppp1Bpp/5n2/4p3/4P3/8/PPPP1PPP/RNBQK1NR[P] b KQkq -",
    ]
    path = tmp_path / f"lines.epd{suffix}"
    path.write_bytes(pack("".join(f"{fen};\n" for fen in fens).encode()))
    rules = registry().rules(registry().variant("crazyhouse"))
    assert len(file_openings(path, 16, rules)) == 2


@pytest.mark.parametrize(
    ("net", "name"),
    [
        ("net:runs/mine/model.onnx", "mine"),
        ("net:runs/mine", "mine"),
        ("net:runs/mine/checkpoints/step-00000007", "mine"),
        ("net:nets/best.onnx", "best"),
        ("net:packaged", "packaged"),
        ("net:-;evaluator=uniform", "uniform"),
    ],
)
def test_nets_are_called_by_their_run_or_file(net: str, name: str) -> None:
    assert parse_player(net).label == name


def test_a_run_that_went_on_is_another_net(tmp_path: Path) -> None:
    assert net_digest(Path("-")) == net_digest(tmp_path) == ""
    seen = set()
    for step, content in ((10, b"a"), (20, b"b"), (20, b"c")):
        weights = tmp_path / "checkpoints" / f"step-{step:08d}" / "model.safetensors"
        weights.parent.mkdir(parents=True, exist_ok=True)
        weights.write_bytes(content)
        seen.add(net_digest(tmp_path))
    (tmp_path / "model.onnx").write_bytes(b"d")
    seen.add(net_digest(tmp_path))
    assert len(seen) == 4 and "" not in seen


def test_a_net_that_was_exported_anew_is_another_player(tmp_path: Path) -> None:
    net = tmp_path / "net.onnx"
    shutil.copy(Path(__file__).parents[2] / "variants" / "xiangqi" / "model.onnx", net)
    players = (f"net:{net};name=mine;evaluator=onnx", "random", "--games", "2")
    assert match(tmp_path / "m", *players).exit_code == 0
    assert match(tmp_path / "m", *players).exit_code == 0
    model = onnx.load(str(net))
    for entry in list(model.metadata_props):
        if entry.key == "variant_ai.checksum":  # the same net in another file, as older ones are
            model.metadata_props.remove(entry)
    onnx.save(model, str(net))
    refused = match(tmp_path / "m", *players)
    assert refused.exit_code == 1 and "the net of mine differs" in refused.stderr
