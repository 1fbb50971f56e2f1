"""Players: what a clock takes, how texts become players, how moves and faults come back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from arena_players import program

from variant_ai.core.arena.match.referee import Conduct, Referee
from variant_ai.core.arena.players.player import Allowance, Fault, PlayerClock, RandomPlayer, Turn
from variant_ai.core.arena.players.player_spec import MoveLimits, names_net, parse_player
from variant_ai.core.arena.programs.engine_process import ProgramAnswer
from variant_ai.core.arena.programs.program_player import (
    HIGHEST,
    Coordinates,
    XboardPlayer,
    last_capture,
    program_player,
    score_of,
    uci_limits,
)
from variant_ai.core.arena.programs.uci_client import CycloneClient, parse_ucci_option
from variant_ai.core.arena.programs.xboard_client import (
    _THINKING,
    _limit_lines,
    _with_thought,
)
from variant_ai.core.errors import EngineError, MoveError, SettingError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.report import MATE
from variant_ai.core.system.checked_models import checked
from variant_ai.plugins import registry

FAKE = Path(__file__).with_name("fake_engine.py")


@pytest.fixture(scope="module")
def tall() -> Rules:
    """Ten ranks, letters read besides the spec's own."""
    return make_rules(registry().variant("xiangqi"))


@pytest.fixture(scope="module")
def drops() -> Rules:
    return make_rules(registry().variant("crazyhouse"))


# --- clocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "base", "increment", "moves"),
    [
        ("60+0.25", 60_000, 250, None),
        ("15:00+5", 900_000, 5_000, None),
        ("40/300", 300_000, 0, 40),
        ("0.5", 500, 0, None),
    ],
)
def test_clocks_are_read(text: str, base: int, increment: int, moves: int | None) -> None:
    allowance = Allowance.parse(text)
    assert (allowance.base, allowance.increment, allowance.moves) == (base, increment, moves)
    assert Allowance.parse(allowance.text) == allowance


@pytest.mark.parametrize("text", ["", "x", "60+", "1:2:3", "-5", "0"])
def test_clocks_that_are_none(text: str) -> None:
    with pytest.raises(SettingError):
        Allowance.parse(text)


@pytest.mark.parametrize(
    ("seconds", "base"), [(60, 60_000), (0.5, 500), (1_234_567, 1_234_567_000)]
)
def test_a_clock_may_be_a_number(seconds: float, base: int) -> None:
    assert checked(MoveLimits, {"clock": seconds}, "m.yaml").allowance().base == base
    with pytest.raises(SettingError, match="clock"):
        checked(MoveLimits, {"clock": True}, "m.yaml")


def test_a_clock_runs() -> None:
    clock = PlayerClock(Allowance.parse("2/10+1"))
    assert clock.moves_to_go == 2
    assert clock.spend(4_000, 0) and clock.left == 7_000
    assert clock.moves_to_go == 1
    assert clock.spend(7_000, 0) and clock.left == 11_000
    assert clock.moves_to_go == 2
    # within the margin: forgiven, but not saved up
    assert clock.spend(11_040, 50) and clock.left == 1_000
    assert not clock.spend(1_051, 50)
    fixed = PlayerClock(Allowance(movetime=100))
    assert fixed.spend(130, 50) and not fixed.spend(151, 50)


def turn(first: Allowance, second: Allowance | None = None, side: int = 0) -> Turn:
    return Turn((PlayerClock(first), PlayerClock(second or first)), side, 10.0, 1.0)


def test_limits_in_the_words_of_uci() -> None:
    mixed = turn(Allowance.parse("40/60+1"), Allowance(base=5_000, nodes=100, depth=9), side=1)
    assert uci_limits(mixed) == {
        "wtime": 60_000, "btime": 5_000, "winc": 1_000, "binc": 0, "nodes": 100, "depth": 9,
    }  # fmt: skip
    assert uci_limits(turn(Allowance.parse("40/60")))["movestogo"] == 40


def test_limits_in_the_words_of_xboard() -> None:
    assert _limit_lines(turn(Allowance.parse("40/65+1"))) == ["level 40 1:05 1"]
    both = Allowance(base=60_000, movetime=2000, depth=9)
    assert _limit_lines(turn(both)) == ["st 2", "sd 9"]


# --- descriptions --------------------------------------------------------------------------------


def test_players_in_short_texts() -> None:
    words = "xboard:sjeng -x;name=S;depth=4;option.Book File=a b;option.Net=1e5;option.Nr=007;variant=9x"
    player = parse_player(words)
    assert (player.command, player.protocol, player.name) == ("sjeng -x", "xboard", "S")
    assert player.allowance() == Allowance(depth=4)
    assert player.option_texts == {"Book File": "a b", "Net": "1e5", "Nr": "007"}  # as written
    assert player.variant == "9x"
    net = parse_player("net:m.onnx; nodes=800; search.cpuct_init=2.2; search.solver=off")
    assert (net.net, net.search) == ("m.onnx", {"cpuct_init": 2.2, "solver": False})
    assert parse_player("packaged;nodes=8") == parse_player("net:packaged;nodes=8")
    nets = ("net:runs/a", "packaged", "m.onnx;nodes=8", "net:-;evaluator=uniform")
    programs = ("lc0 --weights=x.onnx", "uci:lc0 --weights=x.onnx", "fairy-stockfish", "net")
    assert all(map(names_net, nets)) and not any(map(names_net, programs))
    assert parse_player("runs/a/model.onnx").net == "runs/a/model.onnx"
    assert parse_player("random").random
    assert parse_player("stockfish").command == "stockfish"
    assert parse_player("e;clock=40/10").allowance().moves == 40


def test_players_in_files(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("command: sjeng\nprotocol: xboard\nmovetime: 2\noptions: {A: true, B: 3}\n")
    player = parse_player(str(file))
    assert player.allowance() == Allowance(movetime=2000)
    assert player.option_texts == {"A": "true", "B": "3"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "one of command, net and random"),
        ("e;nonsense", "not KEY=VALUE"),
        ("e;dept=3", "did you mean 'depth'"),
        ("e;optons.Hash=3", "unknown key 'optons.Hash'; .*accepted: clock, "),
        ("e;depth=0", "depth"),
        ("e;timeout=inf", "timeout"),
        ("e;clock=1:2:3", "clock"),
        ("net:;command=", "one of command"),
        ("net:m.onnx;search.q_weigth=1", "unknown search setting 'q_weigth'.* 'q_weight'"),
        ("net:m.onnx;search.q_weight=2", "player .*q_weight = 2.0: expected a number from 0 to 1"),
        ("no-such-file.yaml", "No such file"),
    ],
)
def test_descriptions_that_are_wrong(text: str, reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        parse_player(text)


def test_a_file_that_is_no_yaml_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("command: a\n  b: [\n")
    with pytest.raises(SettingError, match=r"p.yaml:2:\d+: not YAML"):
        parse_player(str(file))


# --- coordinates ---------------------------------------------------------------------------------


def test_ranks_from_zero_and_back(tall: Rules) -> None:
    game = Game.from_uci(tall, None, ["h3e3"])
    zero = Coordinates(tall, first_rank=0)
    assert zero.write(game.moves[0]) == "h2e2"
    assert zero.write(Game.from_uci(tall, None, ["a4a5", "a10a9"]).moves[1]) == "a9a8"
    for move in game.legal_moves().tolist():
        assert zero.read(game, zero.write(move)) == move
    with pytest.raises(MoveError, match="ranks from 0"):
        zero.read(game, "h7h20")
    with pytest.raises(MoveError):
        zero.read(game, "(none)")


def test_drops_keep_their_piece(drops: Rules) -> None:
    fen = "4k3/8/8/8/8/8/8/4K3[Qp] w - - 0 1"
    game = Game(drops, fen)
    for first_rank in (0, 1):
        engine = Coordinates(drops, first_rank=first_rank)
        texts = {engine.write(move): move for move in game.legal_moves().tolist()}
        assert f"Q@a{first_rank + 3}" in texts
        assert all(engine.read(game, text) == move for text, move in texts.items())
    assert Coordinates(drops).read(game, "q@a4") == texts["Q@a4"]


def test_letters_read_besides(tall: Rules) -> None:
    engine = Coordinates(tall, other_letters=True)
    fen = tall.fen(tall.position())
    assert engine.fen(fen).startswith("rheakaehr/") and engine.fen(fen).endswith(" w - - 0 1")
    assert tall.fen(tall.position(engine.fen(fen))) == fen
    assert Coordinates(tall).fen(fen) == fen


def test_the_last_capture(tall: Rules) -> None:
    game = Game.from_uci(tall, None, ["h3e3", "h10g8", "e3e7", "i10h10", "e7e6"])
    assert last_capture(game) == 3
    assert last_capture(Game(tall)) == 0


def test_lines_of_cyclone() -> None:
    client = CycloneClient(["x"])
    assert client.position_line(None, ["h2e2"]) == "startpos moves h2e2"
    assert client.position_line("9/9 w - - 0 1", []) == "fen 9/9 r - - 0 1"
    assert client.position_line("9/9 b - - 0 1", []) == "fen 9/9 b - - 0 1"


def test_options_of_ucci() -> None:
    option = parse_ucci_option("option style type combo var solid var risky default solid")
    assert option is not None
    assert (option.name, option.choices, option.default) == ("style", ("solid", "risky"), "solid")
    assert parse_ucci_option("option usemillisec type check") is not None
    assert parse_ucci_option("option nonsense") is None


# --- players -------------------------------------------------------------------------------------


def test_a_random_player_plays_the_same_game_again(drops: Rules) -> None:
    player, moves = RandomPlayer(seed=3), []
    for _ in range(2):
        game = Game(drops)
        player.new_game(game)
        while game.ply < 10:
            game.push(player.play(game, turn(Allowance(nodes=1))).move)
        moves.append(game.moves)
    assert moves[0] == moves[1]


def test_random_games_of_a_match_differ(drops: Rules) -> None:
    player, games = RandomPlayer(seed=3), set()
    for number in range(5):
        game = Game(drops)
        player.new_game(game, number)
        while game.ply < 10:
            game.push(player.play(game, turn(Allowance(nodes=1))).move)
        games.add(tuple(game.moves))
    assert len(games) == 5


LINE = "h3e3 h10g8 h1g3 i10h10 i1h1 g7g6 c4c5 b10c8"
"""What the fake engine plays where it is not asked to find moves itself."""
PROTOCOLS = ("uci", "ucci", "cyclone", "xboard", "xboard-old")


@pytest.fixture(autouse=True)
def known_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LINE", LINE)


def command(protocol: str, mode: str = "good", *words: str) -> list[str]:
    return [sys.executable, str(FAKE), f"{protocol}:{mode}", *words]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_plays(tall: Rules, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old = protocol == "xboard-old"
    if old:
        monkeypatch.setattr("variant_ai.core.arena.programs.xboard_client.SILENCE", 0.1)
    player = program(tall, protocol.removesuffix("-old"), command(protocol))
    second_begins = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR b - - 0 1"
    try:
        player.start()
        assert (player.name == "Fake Engine 1.0") != old
        for fen in (None,) if old else (None, second_begins):
            game = Game(tall, fen)
            player.new_game(game)
            game.push_uci(LINE.split()[game.side])
            for ply in range(1, 6):
                reply = player.play(game, turn(Allowance(depth=1), side=game.side))
                assert (reply.score, reply.depth) == (ply, 1)
                game.push(reply.move)
    finally:
        player.close()


def test_an_xboard_program_gets_limits_that_change_in_a_game(tall: Rules) -> None:
    player = program(tall, "xboard", command("xboard"))
    game = Game(tall)
    try:
        player.start()
        player.new_game(game)
        for depth in (2, 2, 3):
            reply = player.play(game, turn(Allowance(depth=depth), side=game.side))
            assert reply.depth == depth
            game.push(reply.move)
            game.push(int(game.legal_moves()[0]))
    finally:
        player.close()


FAULTS = {
    "dies": ("crash", "out of ideas"),
    "hangs": ("hang", "hangs"),
    "illegal": ("illegal move", "a1a1"),
    "no-move": ("no move", "reports no move"),
    "resigns": ("resignation", ""),
    "late": ("time forfeit", "`stop` was sent"),
}
WORDLESS = {("uci", "resigns"), ("xboard", "no-move")}
"""What a protocol has no words for."""


@pytest.mark.parametrize(
    ("protocol", "mode"),
    [(p, m) for p in ("uci", "ucci", "xboard") for m in FAULTS if (p, m) not in WORDLESS],
)
def test_faults_have_their_reason(tall: Rules, protocol: str, mode: str) -> None:
    reason, words = FAULTS[mode]
    player = program(tall, protocol, command(protocol, mode))
    game = Game(tall)
    wait, grace = (0.3 if mode in ("hangs", "late") else 20), (0.3 if mode == "hangs" else 20)
    waiting = Turn((PlayerClock(Allowance(movetime=1000)),) * 2, 0, wait, grace)
    try:
        player.start()
        player.new_game(game)
        with pytest.raises(Fault) as fault:
            player.play(game, waiting)
        assert fault.value.reason == reason
        assert words in str(fault.value)
    finally:
        player.close()


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("claims-win", "false claim"), ("claims-draw", "false claim"), ("claims-loss", "resignation"),
     ("calls-illegal", "false claim")],
)  # fmt: skip
def test_claims_are_not_believed(tall: Rules, mode: str, reason: str) -> None:
    player = program(tall, "xboard", command("xboard", mode))
    game = Game(tall)
    try:
        player.start()
        player.new_game(game)
        with pytest.raises(Fault) as fault:
            player.play(game, turn(Allowance(depth=1)))
        assert fault.value.reason == reason
    finally:
        player.close()


@pytest.mark.parametrize(
    ("score", "centipawns"),
    [(100_003, MATE - 3), (-100_002, -MATE + 2), (100_000, HIGHEST), (-100_000, -HIGHEST)],
)
def test_scores_of_xboard_beyond_a_hundred_thousand_are_mates(score: int, centipawns: int) -> None:
    thinking = _THINKING.fullmatch(f"9 {score} 5 7 e2e4")
    assert thinking is not None
    assert score_of(_with_thought(ProgramAnswer("e2e4"), thinking)) == centipawns


def test_an_announced_mate_reaches_the_referee(tall: Rules) -> None:
    liar, good = (
        program(tall, "cyclone", command("cyclone", mode), name=mode) for mode in ("lies", "good")
    )
    nodes = Allowance(nodes=1)
    try:
        played = Referee(Conduct()).play(Game(tall), (liar, good), (nodes, nodes))
    finally:
        liar.close()
        good.close()
    assert (played.result, played.reason, played.game.ply) == ("0-1", "false claim", 1)


def test_what_is_claimed_while_moves_are_told_is_no_hang(tall: Rules) -> None:
    """A program that has a rule of its own for draws says so, and waits for the next game."""
    player = program(tall, "xboard", command("xboard", "claims-early"))
    game = Game.from_uci(tall, None, LINE.split()[:2])
    try:
        player.start()
        for _ in range(2):
            player.new_game(game)
            with pytest.raises(Fault, match="50 move rule") as fault:
                player.play(game, turn(Allowance(depth=1)))
            assert fault.value.reason == "false claim"
    finally:
        player.close()


@pytest.mark.parametrize("protocol", ["uci", "ucci", "cyclone", "xboard"])
def test_pondering(tall: Rules, protocol: str) -> None:
    """Depths tell which answers the engine had pondered on."""
    line = LINE.split()
    clock = turn(Allowance.parse("60+1"))
    for ponder in (True, False):
        player = program(tall, protocol, command(protocol, "ponders"), ponder=ponder)
        try:
            player.start()
            for answers, depths in (
                ((line[1], line[3], line[5]), [1, 9, 9, 9]),
                # another move than the expected one; XBoard's programs do not tell what they expect
                ((line[1], "a10a9", line[5]), [1, 9, 9 if protocol == "xboard" else 1, 9]),
            ):
                game, found = Game(tall), []
                player.new_game(game)
                for answer in (*answers, ""):
                    reply = player.play(game, clock)
                    found.append(reply.depth)
                    game.push(reply.move)
                    player.ponder(game, clock)
                    if answer:
                        game.push_uci(answer)
                assert found == (depths if ponder else [1, 1, 1, 1])
                player.game_over("1-0", "checkmate")
        finally:
            player.close()


@pytest.mark.parametrize("mode", ["san", "castles"])
def test_moves_in_san_are_read(drops: Rules, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LINE", "O-O")
    player = program(drops, "xboard", command("xboard", mode), variant="normal")
    game = Game(drops, "4k3/8/8/8/8/8/8/4K2R[] w K - 0 1")
    try:
        player.start()
        player.new_game(game)
        reply = player.play(game, turn(Allowance(depth=1)))
        assert Coordinates(drops).write(reply.move) == "e1g1"
    finally:
        player.close()


@pytest.mark.parametrize("protocol", ["xboard", "xboard-old"])
def test_late_lines_of_a_game_are_no_answers_in_the_next(
    tall: Rules, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("variant_ai.core.arena.programs.xboard_client.SILENCE", 0.1)
    player = program(tall, "xboard", command(protocol, "says-result"))
    try:
        for _ in range(3):
            game = Game(tall)
            player.new_game(game)
            reply = player.play(game, turn(Allowance(depth=1), side=0))
            assert game.rules.uci(reply.move) == "h3e3"
            player.game_over("1-0", "White wins")
    finally:
        player.close()


def test_an_old_program_cannot_take_a_position(
    tall: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("variant_ai.core.arena.programs.xboard_client.SILENCE", 0.1)
    player = program(tall, "xboard", command("xboard-old"))
    game = Game(tall, Game.from_uci(tall, None, ["h3e3"]).fen())
    try:
        player.start()
        player.new_game(game)
        with pytest.raises(EngineError, match="lines of moves"):
            player.play(game, turn(Allowance(depth=1), side=1))
    finally:
        player.close()


def test_what_a_protocol_cannot_say_is_refused(tall: Rules) -> None:
    xboard = program(tall, "xboard", [sys.executable])
    assert "node limit" in xboard.rejection(Allowance(nodes=5))
    assert "whole seconds" in xboard.rejection(Allowance(movetime=500))
    assert "not both" in xboard.rejection(Allowance(base=60_000, movetime=2000))
    assert xboard.rejection(Allowance(movetime=2000, depth=3)) == ""
    ucci = program(tall, "ucci", [sys.executable])
    assert "one limit" in ucci.rejection(Allowance(nodes=5, depth=3))
    with pytest.raises(SettingError, match="protocol"):
        parse_player("x;protocol=ucy")


def test_programs_are_told_of_shuffled_starts() -> None:
    rules = make_rules(registry().variant("chess960"))
    game = Game.from_uci(rules, "4k3/8/8/8/8/8/8/1R3KR1 w GB - 0 1", ["f1g1", "e8e7"])
    xboard = program_player(parse_player(f"xboard:{sys.executable}"), rules)
    assert isinstance(xboard, XboardPlayer) and xboard.variant == "fischerandom"
    assert xboard._moves(game) == ["O-O", "e8e7"]
    uci = program_player(parse_player(f"uci:{sys.executable}"), rules)
    assert uci.client.soft_options == {"UCI_Chess960": "true"}  # type: ignore[attr-defined]
    assert uci.coordinates.write_all(game.moves) == ["f1g1", "e8e7"]  # type: ignore[attr-defined]
    usual = make_rules(registry().variant("chess"))
    other = program_player(parse_player(f"uci:{sys.executable}"), usual)
    assert other.client.soft_options == {}  # type: ignore[attr-defined]
