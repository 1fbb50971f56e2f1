"""USI: moves, positions, and whole conversations."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest
from protocol_client import Client, best, hello

from variant_ai.core.engine.commands import Go, NewGame, Respond, SetOption, SetPosition
from variant_ai.core.engine.protocols.uci import Info
from variant_ai.core.engine.protocols.usi import Usi
from variant_ai.core.errors import FenError, MoveError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.text.usi_notation import UsiNotation, fen_of_sfen, usi
from variant_ai.plugins import registry

START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL"
SHOGI = ("shogi", "minishogi")


def random_game(variant: str, plies: int, seed: int) -> Game:
    game = Game(registry().rules(registry().variant(variant)))
    chance = random.Random(seed)
    for _ in range(plies):
        if game.outcome() is not None:
            break
        game.push(chance.choice(game.legal_moves().tolist()))
    return game


def test_words_of_usi_end_a_list_of_moves() -> None:
    parsed = Usi().parse("go searchmoves 7g7f 2g2f byoyomi 300")
    assert parsed == Go(times=(0.0, 0.0), byoyomi=0.3, search_moves=("7g7f", "2g2f"))


@pytest.mark.parametrize("variant", SHOGI)
def test_every_move_is_written_and_read(variant: str) -> None:
    notation = UsiNotation()
    for seed in range(5):
        game = random_game(variant, 80, seed)
        for position in game.positions:
            for move in game.rules.legal_moves(position).tolist():
                text = notation.write(game.rules, position, move)
                assert notation.read(game.rules, position, text) == move


def test_squares_count_from_the_right_and_the_top() -> None:
    assert usi("g3g4", 9, 9) == "3g3f"
    assert usi("b2h8+", 9, 9) == "8h2b+"
    assert usi("P@e5", 9, 9) == "P*5e"
    game = Game(registry().rules(registry().variant("shogi")))
    for text in ("7g7f", "3c3d", "8h2b+", "3a2b", "B*5e"):
        game.push(UsiNotation().read(game.rules, game.position, text))
    assert game.fen().startswith("lnsgkg1nl/1r5s1/pppppp1pp/6p2/4B4/2P6/PP1PPPPPP/7R1/LNSGKGSNL[b]")
    for wrong in ("0a1a", "7j7i", "7g7e", "10a1a", "g7g6", "*5e"):
        with pytest.raises(MoveError, match="usi move"):
            UsiNotation().read(game.rules, game.position, wrong)


@pytest.mark.parametrize(
    ("sfen", "fen"),
    [
        (f"{START} b - 1", f"{START}[-] w 0 1"),
        (f"{START} w - 2", f"{START}[-] b 0 1"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 2Pb3l 11", "4k4/9/9/9/9/9/9/9/4K4[PPblll] w 0 6"),
        (f"{START} b -", f"{START}[-] w 0 1"),
    ],
)
def test_positions(sfen: str, fen: str) -> None:
    assert fen_of_sfen(sfen) == fen
    registry().rules(registry().variant("shogi")).position(fen)


@pytest.mark.parametrize(
    ("sfen", "problem"),
    [
        ("", "0 fields"),
        (f"{START} x - 1", "'x' in .* is no side"),
        (f"{START} b 2 1", "'2' in .* are no hands"),
        (f"{START} b - first", "'first' in .* is not the number"),
    ],
)
def test_wrong_positions_say_what_is_wrong(sfen: str, problem: str) -> None:
    with pytest.raises(FenError, match=problem):
        fen_of_sfen(sfen)


def test_commands() -> None:
    parse = Usi().parse
    assert parse("position startpos moves 7g7f") == SetPosition(None, ("7g7f",))
    assert parse(f"position sfen {START} w - 2 moves 3c3d") == SetPosition(
        f"{START}[-] b 0 1", ("3c3d",)
    )
    assert parse("go btime 60000 wtime 50000 byoyomi 10000") == Go(times=(60.0, 50.0), byoyomi=10.0)
    assert parse("go byoyomi 1000") == Go(times=(0.0, 0.0), byoyomi=1.0)
    assert parse("go btime 1000 wtime 2000 binc 100 winc 200") == Go(
        times=(1.0, 2.0), increments=(0.1, 0.2)
    )
    assert parse("go mate 5000") == Respond("checkmate notimplemented")
    assert parse("setoption name USI_Hash value 64") == SetOption("Hash", "64")
    assert parse("setoption name Move_Overhead value 64") == SetOption("Move_Overhead", "64")
    assert isinstance(parse("usinewgame"), NewGame)
    for line, problem in (
        ("position fen x", "'fen' where `startpos` or `sfen` is expected"),
        ("position sfen x", "1 fields"),
        ("position", "nothing where"),
    ):
        assert problem in parse(line).problem  # type: ignore[union-attr]


def test_answers() -> None:
    dialect = Usi()
    dialect.board = 5, 5
    info = Info(3, 4, 1, 25, None, (500, 400, 100), 10, 20, 30, 40, ("a1a2", "P@c3"))
    assert dialect.info(info) == [
        "info depth 3 seldepth 4 multipv 1 score cp 25 nodes 10 nps 20 hashfull 30 time 40 "
        "pv 5e5d P*3c"
    ]
    for mate, plies in ((1, 1), (3, 5), (-1, -2)):
        assert f" score mate {plies} " in dialect.info(Info(3, mate=mate))[0]
    assert dialect.best("e5e4+", "a1a2") == ["bestmove 1a1b+ ponder 5e5d"]
    assert dialect.no_move(-1) == dialect.no_move(0) == ["bestmove resign"]


def test_a_shogi_gui_plays_shogi_without_choosing_it() -> None:
    with Client() as client:
        client.send("usi")
        greeting = client.until("usiok")
        assert not any(" " in line.split(" type ")[0].removeprefix("option name ") for line in greeting
                       if line.startswith("option"))  # fmt: skip
        variants = next(line for line in greeting if line.startswith("option name UCI_Variant "))
        assert " default shogi " in variants
        offered = variants.split(" var ")[1:]
        assert {"shogi", "minishogi"} <= set(offered) and not {"chess", "xiangqi"} & set(offered)
        client.ask("setoption name USI_Hash value 32", "usinewgame", "position startpos moves 7g7f")
        move = best(client.ask("go btime 0 wtime 0 byoyomi 50", until="bestmove"))
        game = Game(registry().rules(registry().variant("shogi")))
        game.push(UsiNotation().read(game.rules, game.position, "7g7f"))
        UsiNotation().read(game.rules, game.position, move)
        client.send("go mate infinite")
        assert client.line() == "checkmate notimplemented"


def test_the_end_of_a_game_ends_the_search_on_the_opponents_time() -> None:
    with hello("usi") as client:
        client.send("position startpos moves 7g7f", "go ponder btime 60000 wtime 60000")
        client.ask("gameover win", until="bestmove")
        client.send("gameover draw", "isready")  # without a search there is nothing to answer
        assert client.line() == "readyok"


def test_minishogi_is_chosen_by_its_option_and_chess_is_not_offered() -> None:
    with hello("usi") as client:
        said = client.ask("setoption name UCI_Variant value minishogi")
        assert said[-1].startswith("info string variant minishogi files 5 ranks 5")
        said = client.ask("setoption name UCI_Variant value chess")
        assert "error: 'chess' cannot be played in usi; still playing minishogi" in said[-1]
        client.ask("position startpos moves 1e1d 5a5b")
        move = best(client.ask("go nodes 3", until="bestmove"))
        assert move[0] in "12345RBSGP" and move[-1] in "abcde+"


@pytest.mark.parametrize("variant", SHOGI)
def test_fairy_stockfish_reads_our_moves_and_we_its_positions(variant: str) -> None:
    program = shutil.which("fairy-stockfish", path="/usr/games:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("needs fairy-stockfish")
    notation = UsiNotation()
    for seed in range(3):
        game = random_game(variant, 60, seed)
        words = [
            notation.write(game.rules, game.positions[ply], move)
            for ply, move in enumerate(game.moves)
        ]
        lines = ["usi", f"setoption name UCI_Variant value {variant}", "usinewgame"]
        lines += [f"position startpos moves {' '.join(words)}", "d", "quit"]
        said = subprocess.run(
            [program],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        sfen = next(line for line in said.splitlines() if line.startswith("Sfen: "))
        theirs = game.rules.position(fen_of_sfen(sfen.removeprefix("Sfen: ")))
        assert theirs["key"][0] == game.position["key"][0]
