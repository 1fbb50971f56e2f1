"""Protocols: parsing lines and formatting answers."""

from __future__ import annotations

import pytest

from variant_ai.core.engine.commands import (
    BanMoves,
    Debug,
    Go,
    PonderHit,
    Probe,
    SetOption,
    SetPosition,
    Unreadable,
)
from variant_ai.core.engine.protocols.engine_options import UCCI_OPTIONS, Option
from variant_ai.core.engine.protocols.ucci import Ucci
from variant_ai.core.engine.protocols.uci import (
    Cyclone,
    Dialect,
    Identity,
    Info,
    Uci,
)

WHO = Identity("Engine 1", "Somebody")
INFO = Info(7, 9, 1, 34, None, (500, 400, 100), 1234, 5000, 12, 247, ("h3e3", "h10g8"))


def parse(text: str, dialect: Dialect | None = None) -> object:
    return (dialect or Uci()).parse(text)


@pytest.mark.parametrize(
    ("text", "go"),
    [
        ("go", Go()),
        ("go infinite", Go(infinite=True)),
        ("go ponder wtime 1000 btime 2000", Go(times=(1.0, 2.0), ponder=True)),
        (
            "go wtime 1050 btime 990 winc 50 binc 60",
            Go(times=(1.05, 0.99), increments=(0.05, 0.06)),
        ),
        ("go wtime -20 btime 100", Go(times=(-0.02, 0.1))),
        ("go movestogo 40 wtime 60000 btime 60000", Go(times=(60.0, 60.0), moves_to_go=40)),
        ("go depth 5 nodes 100 movetime 20 mate 3", Go(depth=5, nodes=100, movetime=0.02, mate=3)),
        ("go perft 3", Go(perft=3)),
        ("GO Nodes 5", Go(nodes=5)),
        ("go nodes 5.7", Go(nodes=5)),
        (
            "go searchmoves e2e4 d2d4 nodes 7",
            Go(nodes=7, search_moves=("e2e4", "d2d4")),
        ),
        ("go searchmoves P@e4", Go(search_moves=("P@e4",))),
    ],
)
def test_limits_of_uci(text: str, go: Go) -> None:
    parsed = parse(text)
    assert isinstance(parsed, Go)
    assert (
        parsed._replace(
            times=tuple(None if t is None else round(t, 9) for t in parsed.times),
            increments=tuple(None if t is None else round(t, 9) for t in parsed.increments),
        )
        == go
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("go nodes", "go: nothing where the number of nodes is expected"),
        ("go wtime x btime 5", "go: 'x' where the number of wtime is expected"),
        ("go fast", "go: unknown word 'fast'"),
        ("go nodes 9" + 40 * "9", "where the number of nodes is expected"),
        ("go nodes nan", "go: 'nan' where the number of nodes is expected"),
    ],
)
def test_unknown_words_of_go_are_reported(text: str, problem: str) -> None:
    parsed = parse(text)
    assert isinstance(parsed, Go)
    assert any(problem in found for found in parsed.problems)


def test_huge_limits_are_limits() -> None:
    """Some clients write the greatest number of 64 bits for "no limit"."""
    parsed = parse("go nodes 18446744073709551615 movetime 99999999999999999999")
    assert isinstance(parsed, Go)
    assert parsed.nodes == 10**15 and parsed.movetime == 1e12 and not parsed.problems


@pytest.mark.parametrize(
    "text", ["go depth x", "go nodes", "go fast", "go searchmoves a2a3 mate ?"]
)
@pytest.mark.parametrize("dialect", [Dialect, Ucci])
def test_limits_that_cannot_be_read_are_reported(text: str, dialect: type[Dialect]) -> None:
    parsed = dialect().parse(text)
    assert isinstance(parsed, Go) and parsed.problems


@pytest.mark.parametrize(
    "text",
    [
        "go",
        "go infinite x",
        "go ponder x",
        "go depth 3 x",
        "go wtime 9 depth x",
        "go movetime -5 x",
    ],
)
def test_a_go_with_another_limit_keeps_it(text: str) -> None:
    parsed = Dialect().parse(text)
    assert isinstance(parsed, Go) and parsed.nodes is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("position startpos", SetPosition(None)),
        ("position startpos moves", SetPosition(None)),
        ("position startpos moves e2e4 e7e5", SetPosition(None, ("e2e4", "e7e5"))),
        ("position fen 8/8[Pp] w - - 0 1 moves a1a2", SetPosition("8/8[Pp] w - - 0 1", ("a1a2",))),
        ("fen 9/9 r moves a0a1", SetPosition("9/9 r", ("a0a1",), bare=True)),
        ("startpos moves a0a1", SetPosition(None, ("a0a1",), bare=True)),
        ("startpos", SetPosition(None, bare=True)),
    ],
)
def test_positions(text: str, expected: SetPosition) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("position", "nothing where `startpos` or `fen` is expected"),
        ("position fen", "no FEN after the word `fen`"),
        ("position fen moves e2e4", "no FEN after the word `fen`"),
        ("position e2e4", "'e2e4' where `startpos` or `fen` is expected"),
        ("position startpos e2e4", "'e2e4' after startpos"),
        ("setoption", "the name of the option is missing"),
        ("setoption name", "no name after the word `name`"),
        ("setoption name value 3", "no name after the word `name`"),
        ("xboard", "unknown command 'xboard'"),
        ("x" * 500, "unknown command '" + "x" * 60 + "...'"),
    ],
)
def test_errors_in_lines_are_reported(text: str, problem: str) -> None:
    parsed = parse(text)
    assert isinstance(parsed, Unreadable)
    assert problem in parsed.problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("setoption name Hash value 64", SetOption("Hash", "64")),
        ("setoption name clear hash value true", SetOption("clear hash", "true")),
        ("setoption name Clear Hash", SetOption("Clear Hash", None)),
        ("setoption name Move Overhead value 100", SetOption("Move Overhead", "100")),
        ("setoption name Model value /a b/c.onnx", SetOption("Model", "/a b/c.onnx")),
        ("setoption NAME hash VALUE 64", SetOption("hash", "64")),
        ("setoption name Model value", SetOption("Model", "")),
        ("setoption usemillisec true", SetOption("usemillisec", "true")),
        ("setoption newgame", SetOption("newgame", None)),
        ("debug on", Debug(True)),
        ("debug off", Debug(False)),
        ("ponderhit", PonderHit()),
        ("ponderhit draw", PonderHit(True)),
        ("banmoves h2e2 b2e2", BanMoves(("h2e2", "b2e2"))),
        ("probe startpos moves h2e2", Probe(SetPosition(None, ("h2e2",)))),
    ],
)
def test_other_commands(text: str, expected: object) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["", "   ", "\t"])
def test_empty_lines_mean_nothing(text: str) -> None:
    assert parse(text) is None


# --- UCCI ----------------------------------------------------------------------------------------


def ucci_go(text: str, milliseconds: bool = False) -> Go:
    dialect = Ucci()
    dialect.milliseconds = milliseconds
    parsed = dialect.parse(text)
    assert isinstance(parsed, Go)
    return parsed


def test_ucci_times_are_seconds_unless_usemillisec_is_set() -> None:
    dialect = Ucci()
    for value, seconds in (("true", 1.0), ("off", 1000.0), ("on", 1.0), ("0", 1000.0), ("1", 1.0)):
        dialect.parse(f"setoption usemillisec {value}")
        parsed = dialect.parse("go time 1000 increment 0")
        assert isinstance(parsed, Go)
        assert parsed.times == (pytest.approx(seconds), None)


def test_times_of_ucci_are_the_movers_and_the_others() -> None:
    go = ucci_go("go time 1000 opptime 2000 oppincrement 3 increment 4", milliseconds=True)
    assert go.relative
    assert go.times == (pytest.approx(1.0), pytest.approx(2.0))
    assert go.increments == (pytest.approx(0.004), pytest.approx(0.003))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("go depth infinite", Go(relative=True, infinite=True)),
        ("go infinite", Go(relative=True, infinite=True)),
        ("go depth 0", Go(relative=True, depth=0)),
        ("go ponder time 60 movestogo 20", Go((60.0, None), relative=True, moves_to_go=20,
                                              ponder=True)),
        ("go draw nodes 50", Go(relative=True, nodes=50, draw_offered=True)),
    ],
)  # fmt: skip
def test_limits_of_ucci(text: str, expected: Go) -> None:
    assert ucci_go(text) == expected


# --- writing -------------------------------------------------------------------------------------


def test_info_of_uci_has_wdl_right_after_the_score() -> None:
    assert Uci().info(INFO) == [
        "info depth 7 seldepth 9 multipv 1 score cp 34 wdl 500 400 100 nodes 1234 nps 5000 "
        "hashfull 12 time 247 pv h3e3 h10g8"
    ]
    assert "score mate -2 nodes" in Uci().info(Info(3, mate=-2))[0]


def test_cyclone_counts_ranks_from_0() -> None:
    assert Cyclone().info(INFO)[0].endswith(" pv h2e2 h9g7")
    assert Cyclone().best("h3e3", "h10g8") == ["bestmove h2e2 ponder h9g7"]
    assert Cyclone().squares("P@e4") == "P@e3"


def test_info_of_ucci_has_no_cp_and_one_line_of_play() -> None:
    assert Ucci().info(INFO) == ["info time 247 nodes 1234", "info depth 7 score 34 pv h2e2 h9g7"]
    assert Ucci().info(Info(1, rank=2)) == []
    assert Ucci().info(Info(5, mate=2))[1] == "info depth 5 score 29997"
    assert Ucci().info(Info(5, mate=-2))[1] == "info depth 5 score -29996"


def test_moves_and_endings() -> None:
    assert Uci().best("e2e4", None) == ["bestmove e2e4"]
    assert Uci().best("e2e4", "e7e5") == ["bestmove e2e4 ponder e7e5"]
    assert Uci().no_move(-1) == ["info depth 0 score mate 0", "bestmove (none)"]
    assert Uci().no_move(0) == ["info depth 0 score cp 0", "bestmove (none)"]
    assert Uci().no_move(1) == ["info depth 0 score cp 5051", "bestmove (none)"]
    assert Ucci().no_move(1) == ["info depth 0 score 30000", "nobestmove"]
    assert Ucci().best("a1a2", "b1b2", "draw") == ["bestmove a0a1 ponder b0b1 draw"]
    assert Ucci().no_move(-1) == ["info depth 0 score -30000", "nobestmove"]
    assert Ucci().farewell() == ["bye"] and Uci().farewell() == []


def test_greetings() -> None:
    options = [Option("Move Overhead", "spin", 20, 0, 99), Option("Clear Hash", "button")]
    assert Uci().greeting(WHO, options) == [
        "id name Engine 1",
        "id author Somebody",
        "option name Move Overhead type spin default 20 min 0 max 99",
        "option name Clear Hash type button",
        "uciok",
    ]
    lines = Ucci().greeting(WHO, [*UCCI_OPTIONS, *options])
    assert lines[0] == "id name Engine 1" and lines[-1] == "ucciok"
    assert "option usemillisec type check default false" in lines
    assert "option newgame type button" in lines
    assert "option move_overhead type spin default 20 min 0 max 99" in lines
    assert all(len(line.split(" type ")[0].split()) == 2 for line in lines[2:-1])
