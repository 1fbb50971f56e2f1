"""Chinese notation and WXF: unique, reversible, and as books and Fairy-Stockfish write them."""

from __future__ import annotations

import random
from functools import cache

import pyffish
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variant_ai.core.errors import FenError, MoveError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import UciNotation, uci
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.plugins import registry
from variant_ai.variants.xiangqi.notation import WxfNotation, chinese, chinese_simplified

CHINESE, SIMPLE, WXF = chinese(), chinese_simplified(), WxfNotation()


@cache
def rules() -> Rules:
    return make_rules(load_spec(builtin_specs()["xiangqi"]))


def _walk(seed: int, plies: int) -> Position:
    """A position that random moves lead to."""
    chosen = random.Random(seed)
    position = rules().position()
    for _ in range(plies):
        moves = rules().legal_moves(position).tolist()
        if not moves:
            break
        position = rules().play(position, chosen.choice(moves))
    return position


@st.composite
def doubled_positions(draw: st.DrawFn) -> Position | None:
    """Positions with many pieces of a kind behind each other; None where it cannot be played."""
    board = [["1"] * 9 for _ in range(10)]
    board[9][4], board[0][3] = "K", "k"
    squares = draw(st.lists(st.integers(0, 89), min_size=6, max_size=16, unique=True))
    kinds = draw(st.sampled_from(("PPPPP", "PPPPPNN", "PPPRR", "NNCC", "ppppp", "pppprrnn")))
    for square, piece in zip(squares, kinds * 3, strict=False):
        rank, file = (square // 9) % 10, square % 3 + 3 if square % 2 else square % 9
        if board[rank][file] == "1" and (
            piece not in "Pp" or (rank < 7 if piece == "P" else rank > 2)
        ):
            board[rank][file] = piece
    side = "b" if kinds[0].islower() else "w"
    fen = "/".join("".join(row) for row in board) + f" {side} - - 0 1"
    try:
        return rules().position(fen)
    except FenError:
        return None


def _check(position: Position) -> None:
    for notation in (CHINESE, SIMPLE, WXF):
        written: dict[str, int] = {}
        for move in rules().legal_moves(position).tolist():
            text = notation.write(rules(), position, move)
            assert written.setdefault(text, move) == move, (text, rules().fen(position))
            assert notation.read(rules(), position, text) == move


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(0, 160))
def test_every_legal_move_is_written_once_and_read_back(seed: int, plies: int) -> None:
    _check(_walk(seed, plies))


@settings(max_examples=150)
@given(doubled_positions())
def test_pieces_behind_each_other_are_told_apart(position: Position | None) -> None:
    if position is not None:
        _check(position)


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(0, 160))
def test_wxf_is_what_fairy_stockfish_writes(seed: int, plies: int) -> None:
    position = _walk(seed, plies)
    fen = rules().fen(position)
    for move in rules().legal_moves(position).tolist()[::3]:
        ours = WXF.write(rules(), position, move)
        theirs = pyffish.get_san(
            "xiangqi", fen, uci(rules().types, 9, move), False, pyffish.NOTATION_XIANGQI_WXF
        )
        assert WXF.read(rules(), position, theirs) == move
        # It leaves the sign away where only one of the two could move so.
        if ours != theirs:
            assert ours[1] in "+-"
            assert theirs[1].isdigit()


START = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1"
BLACK = START.replace(" w ", " b ")
FRONT_HORSE = "4k4/9/4N4/9/4N4/9/9/9/9/3K5 w - - 0 1"
TWO = "3k5/2P6/2P6/9/9/9/9/9/9/4K4 w - - 0 1"
THREE = "3k5/9/4P4/4P4/9/4P4/9/9/9/4K4 w - - 0 1"
FOUR = "3k5/2P6/2P6/2P6/2P6/9/9/9/9/4K4 w - - 0 1"
PAIRS = "3k5/9/2P1P4/2P1P4/9/9/9/9/9/4K4 w - - 0 1"
BLACK_PAIRS = "4k4/9/9/9/9/2p6/2p6/4p4/4p4/3K2p2 b - - 0 1"
GUARDS = "3ak4/9/3a5/9/9/9/9/9/9/5K3 b - - 0 1"


@pytest.mark.parametrize(
    ("fen", "move", "traditional", "simplified", "wxf"),
    [
        (START, "h3e3", "炮二平五", "炮二平五", "C2=5"),
        (START, "b1c3", "馬八進七", "马八进七", "H8+7"),
        (START, "i1i2", "車一進一", "车一进一", "R1+1"),
        (START, "g1e3", "相三進五", "相三进五", "E3+5"),
        (START, "d1e2", "仕六進五", "仕六进五", "A6+5"),
        (START, "e1e2", "帥五進一", "帅五进一", "K5+1"),
        (START, "c4c5", "兵七進一", "兵七进一", "P7+1"),
        (BLACK, "h10g8", "馬８進７", "马８进７", "H8+7"),
        (BLACK, "b8e8", "炮２平５", "炮２平５", "C2=5"),
        (BLACK, "c10e8", "象３進５", "象３进５", "E3+5"),
        (BLACK, "e10e9", "將５進１", "将５进１", "K5+1"),
        (BLACK, "a7a6", "卒１進１", "卒１进１", "P1+1"),
        (FRONT_HORSE, "e8c7", "前馬退七", "前马退七", "H+-7"),
        (FRONT_HORSE, "e6c7", "後馬進七", "后马进七", "H-+7"),
        (TWO, "c9b9", "前兵平八", "前兵平八", "P+=8"),
        (TWO, "c8d8", "後兵平六", "后兵平六", "P-=6"),
        (THREE, "e8e9", "前兵進一", "前兵进一", "15+1"),
        (THREE, "e7d7", "中兵平六", "中兵平六", "25=6"),
        (THREE, "e5e6", "後兵進一", "后兵进一", "35+1"),
        (FOUR, "c7b7", "三兵平八", "三兵平八", "37=8"),
        (PAIRS, "e8e9", "一兵進一", "一兵进一", "15+1"),
        (PAIRS, "e7f7", "二兵平四", "二兵平四", "25=4"),
        (PAIRS, "c8c9", "三兵進一", "三兵进一", "17+1"),
        (PAIRS, "c7b7", "四兵平八", "四兵平八", "27=8"),
        (BLACK_PAIRS, "c4b4", "１卒平２", "１卒平２", "13=2"),
        (BLACK_PAIRS, "e3f3", "４卒平６", "４卒平６", "25=6"),
        (BLACK_PAIRS, "g1f1", "卒７平６", "卒７平６", "P7=6"),
        (GUARDS, "d8e9", "士４退５", "士４退５", "A4-5"),
        (GUARDS, "d10e9", "士４進５", "士４进５", "A4+5"),
    ],
)
def test_as_books_write_it(
    fen: str, move: str, traditional: str, simplified: str, wxf: str
) -> None:
    position = rules().position(fen)
    played = UciNotation().read(rules(), position, move)
    assert CHINESE.write(rules(), position, played) == traditional
    assert SIMPLE.write(rules(), position, played) == simplified
    assert WXF.write(rules(), position, played) == wxf


@pytest.mark.parametrize(
    ("fen", "text", "move"),
    [
        (START, "砲2平5", "h3e3"),
        (START, "包２平５", "h3e3"),
        (START, "傌八进七", "b1c3"),
        (START, "俥1進1", "i1i2"),
        (START, "伡一进一", "i1i2"),
        (START, "將五進一", "e1e2"),
        (START, "卒七進一", "c4c5"),
        (BLACK, "马八进七", "h10g8"),
        (BLACK, "车1进1", "a10a9"),
        (FRONT_HORSE, "馬前退七", "e8c7"),
        (FRONT_HORSE, "后馬進七", "e6c7"),
        (FRONT_HORSE, "一馬退七", "e8c7"),
        (THREE, "前五進一", "e8e9"),
        (THREE, "后五进一", "e5e6"),
        (THREE, "二兵平六", "e7d7"),
        (PAIRS, "前五平四", "e8f8"),
        (PAIRS, "前兵五平四", "e8f8"),
        (PAIRS, "後兵七平八", "c7b7"),
        (PAIRS, "后七平八", "c7b7"),
        (FOUR, "前兵進一", "c9c10"),
    ],
)
def test_other_ways_of_writing_are_read(fen: str, text: str, move: str) -> None:
    position = rules().position(fen)
    played = CHINESE.read(rules(), position, text)
    assert uci(rules().types, 9, played) == move
    assert SIMPLE.read(rules(), position, text) == played


@pytest.mark.parametrize(
    ("fen", "text", "move"),
    [
        (START, "c2.5", "h3e3"),
        (START, "N8+7", "b1c3"),
        (START, "B3+5", "g1e3"),
        (FRONT_HORSE, "+H-7", "e8c7"),
        (FRONT_HORSE, "h++6", "e8d10"),
        (TWO, "P+=8", "c9b9"),
        (TWO, "17=8", "c9b9"),
    ],
)
def test_other_ways_of_wxf_are_read(fen: str, text: str, move: str) -> None:
    position = rules().position(fen)
    assert uci(rules().types, 9, WXF.read(rules(), position, text)) == move


@pytest.mark.parametrize(
    ("fen", "text", "words"),
    [
        (START, "炮二平", "unreadable"),
        (START, "", "unreadable"),
        (START, "C2=5", "unreadable"),
        (START, "炮五平二", "illegal"),
        (START, "馬二進五", "illegal"),
        (START, "仕五進四", "illegal"),
        (START, "前車進一", "illegal"),
        (PAIRS, "前兵平六", "ambiguous"),
    ],
)
def test_errors_show_text_and_position(fen: str, text: str, words: str) -> None:
    with pytest.raises(MoveError, match=words) as error:
        CHINESE.read(rules(), rules().position(fen), text)
    assert repr(text) in str(error.value)
    assert fen.split(maxsplit=1)[0] in str(error.value)


def test_the_plugin_registers_its_notations_and_readers() -> None:
    spec = rules().spec
    notations = registry().notations(spec)
    assert list(notations)[:3] == ["chinese", "chinese-simplified", "wxf"]
    assert all(notation.name == name for name, notation in notations.items())
    readers = registry().readers(spec)
    assert list(readers)[:2] == ["xiangqi-pgn", "dhtmlxq"]
    assert all(reader.name == name for name, reader in readers.items())
