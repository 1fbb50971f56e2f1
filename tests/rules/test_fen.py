"""FEN: everything that is read, the form that is written, and messages for invalid ones."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variant_ai.core.errors import FenError
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import same_position
from variant_ai.core.rules.text.fen import format_fen, parse_fen
from variant_ai.core.spec import builtin_specs, load_spec

RULES = {
    name: KernelRules(load_spec(builtin_specs()[name]))
    for name in (
        "crazyhouse",
        "xiangqi",
        "shogi",
        "three-check",
        "makruk",
        "grand",
        "horde",
        "dobutsu",
        "chess",
    )
}
CRAZY = RULES["crazyhouse"]
XIANGQI = RULES["xiangqi"]


def read(variant: str, fen: str) -> str:
    """The FEN as it is written again."""
    rules = RULES[variant]
    return rules.fen(rules.position(fen))


@pytest.mark.parametrize("variant", RULES)
def test_the_start_position_comes_back_as_written(variant: str) -> None:
    start = RULES[variant].spec.rules.start
    assert read(variant, start) == start


@pytest.mark.parametrize("variant", RULES)
def test_positions_of_random_games_come_back_as_the_same_record(variant: str) -> None:
    rules, rng = RULES[variant], random.Random(7)
    position = rules.position()
    for _ in range(120):
        moves = rules.legal_moves(position)
        if len(moves) == 0:
            break
        position = rules.play(position, int(rng.choice(moves)))
        again = rules.position(rules.fen(position))
        again[0]["checks"] = position[0]["checks"]
        assert same_position(again, position)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2k5/8/8/8/8/8/8/4K3[Qn] w - - 0 1", "2k5/8/8/8/8/8/8/4K3[Qn] w - - 0 1"),
        ("2k5/8/8/8/8/8/8/4K3/Qn w - - 0 1", "2k5/8/8/8/8/8/8/4K3[Qn] w - - 0 1"),
        ("2k5/8/8/8/8/8/8/4K3[-] b - - 0 1", "2k5/8/8/8/8/8/8/4K3[] b - - 0 1"),
        ("2k5/8/8/8/8/8/8/4K3 w", "2k5/8/8/8/8/8/8/4K3[] w - - 0 1"),
        ("2k5/8/8/8/8/8/8/4K3[] w - - 3", "2k5/8/8/8/8/8/8/4K3[] w - - 3 1"),
        ("2k5/8/8/8/8/8/8/4K3[] w - - 0 0", "2k5/8/8/8/8/8/8/4K3[] w - - 0 1"),
        ("1Qk5/8/8/8/8/q~7/8/4K3[pP] b - - 0 9", "1Qk5/8/8/8/8/q~7/8/4K3[Pp] b - - 0 9"),
        # rights without the king or rook at home go
        ("r3k3/8/8/8/8/8/8/R3K2R[] w KQkq - 0 1", "r3k3/8/8/8/8/8/8/R3K2R[] w KQq - 0 1"),
        ("4k3/8/8/8/8/8/8/R4K1R[] w KQ - 0 1", "4k3/8/8/8/8/8/8/R4K1R[] w - - 0 1"),
        # an e.p. square is kept only where somebody can capture on it
        ("4k3/8/8/8/3pP3/8/8/4K3[] b - e3 0 1", "4k3/8/8/8/3pP3/8/8/4K3[] b - e3 0 1"),
        ("4k3/8/8/8/4P3/8/8/4K3[] b - e3 0 1", "4k3/8/8/8/4P3/8/8/4K3[] b - - 0 1"),
        ("4k3/8/8/8/3p4/8/8/4K3[] b - e3 0 1", "4k3/8/8/8/3p4/8/8/4K3[] b - - 0 1"),
    ],
)
def test_crazyhouse_fens_are_read_generously_and_written_strictly(text: str, written: str) -> None:
    assert read("crazyhouse", text) == written


@pytest.mark.parametrize(
    ("variant", "text", "written"),
    [
        (
            "xiangqi",
            "rheakaehr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RHEAKAEHR r",
            "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1",
        ),
        ("xiangqi", "3k5/9/9/9/9/9/9/9/9/4K4[] b - - 7 4", "3k5/9/9/9/9/9/9/9/9/4K4 b - - 7 4"),
        ("shogi", "4k4/9/9/4+P4/9/9/9/9/4K4[Gp] b 0 1", "4k4/9/9/4+P4/9/9/9/9/4K4[Gp] b 0 1"),
        ("three-check", "4k3/8/8/8/8/8/8/4K3 w - - 0 1 +2+0", "4k3/8/8/8/8/8/8/4K3 w - - 1+3 0 1"),
        ("three-check", "4k3/8/8/8/8/8/8/4K3 w - - 1+3 0 1", "4k3/8/8/8/8/8/8/4K3 w - - 1+3 0 1"),
        ("makruk", "4k3/8/8/8/8/8/8/R3K3 b - 32 7 50", "4k3/8/8/8/8/8/8/R3K3 b - 32 7 50"),
        (
            "grand",
            "r8r/1nbqkcabn1/pppppppppp/10/10/10/10/PPPPPPPPPP/1NBQKCABN1/R8R w - - 0 1",
            "r8r/1nbqkcabn1/pppppppppp/10/10/10/10/PPPPPPPPPP/1NBQKCABN1/R8R w - - 0 1",
        ),
    ],
)
def test_other_families_have_their_own_fields(variant: str, text: str, written: str) -> None:
    assert read(variant, text) == written


START = CRAZY.spec.rules.start


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("garbage", "1 rank given, the board has 8"),
        ("8/8/8/8/8/8/8/8 w - - 0 1", "0 royal 'K', needs 1"),
        (START.replace("K", "Q", 1), "0 royal 'K', needs 1"),
        (START.replace("Q", "K", 1), "2 royal 'K', needs 1"),
        (START.replace("k", "q", 1), "0 royal 'k', needs 1"),
        (START.replace("8/8", "9/8"), "9' empty squares"),
        (START.replace("8/8", "7/8"), "rank 6 has 7 files, the board has 8"),
        (START.replace("/8/", "/8p/"), "rank 6 has 9 files, the board has 8"),
        (START.replace("n", "x", 1), "'x' is no piece here"),
        (START.replace("n", "n~~", 1), "'~' is neither"),
        (START.replace("n", "p~", 1), "'p~' is no piece here"),
        (START.replace(" w", ""), "side to move 'KQkq'"),
        (START.replace(" w ", " x "), "side to move 'x'"),
        ("4k3/8/8/8/8/8/8/4K3[]", "side to move is missing"),
        (START.replace("KQkq", "KQxq"), "castling 'KQxq'"),
        (START.replace("q - ", "q z9 "), "e.p. square 'z9'"),
        (START.replace("0 1", "-1 1"), "halfmove clock '-1'"),
        (START.replace("0 1", "0 x"), "move number 'x'"),
        (START.replace("0 1", "99999999 1"), "halfmove clock '99999999'"),
        (START + " 7", "nothing is expected after the move number"),
        (START.replace("[]", "[-P]"), "'-' cannot be in hand"),
        (START.replace("[]", "[K]"), "'K' cannot be in hand"),
        (START.replace("[]", "["), "not closed"),
        (START.replace("[]", "[" + 30 * "P" + "]"), "30 'P' in hand"),
        (START.replace("[]", "[" + 3 * "P" + "]"), "35 pieces on board and in hand"),
        ("4k3/8/8/8/8/8/8/4K3[" + 200 * "Q" + "] w - - 0 1", "200 'Q' in hand"),
        ("P3k3/8/8/8/8/8/8/4K3[] w - - 0 1", "'P' cannot stand on a8"),
        ("4k3/8/8/8/8/8/8/p3K3[] w - - 0 1", "'p' cannot stand on a1"),
        ("4k3/8/8/8/8/8/8/4RK2[] w - - 0 1", "side that is not to move is in check"),
        ("4k3/8/8/8/8/8/8/4K3[] w - - 0 1\x00", "'1\\x00'"),
        ("\u0661k/8/8/8/8/8/8/8 w", "neither a piece nor a number"),
    ],
)
def test_invalid_crazyhouse_positions_have_a_message(text: str, expected: str) -> None:
    with pytest.raises(FenError) as caught:
        CRAZY.position(text)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("variant", "text", "expected"),
    [
        ("xiangqi", "4k4/9/9/9/9/9/9/9/9/4K4 w - - 0 1", "the kings face each other"),
        ("xiangqi", "4k4/9/9/9/9/9/9/9/4R4/3K5 w - - 0 1", "not to move is in check"),
        ("xiangqi", "3k5/9/9/9/9/9/9/9/9/4K4[P] w - - 0 1", "no hands"),
        ("xiangqi", START, "8 ranks given"),
        ("shogi", "P3k4/9/9/9/9/9/9/9/4K4[-] w 0 1", "'P' cannot stand on a9"),
        ("shogi", "4k4/N8/9/9/9/9/9/9/4K4[-] w 0 1", "'N' cannot stand on a8"),
        ("three-check", "4k3/8/8/8/8/8/8/4K3 w - - 0 1", "checks left is missing, such as '3+3'"),
        ("three-check", "4k3/8/8/8/8/8/8/4K3 w - - 4+3 0 1", "3 checks win"),
        ("horde", "4k3/8/8/8/8/8/8/4K3 w - - 0 1", "1 royal 'K', needs 0"),
        ("makruk", "4k3/8/P7/8/8/8/8/4K3 w - - 0 1", "'P' cannot stand on a6"),
        ("xiangqi", "9/9/9/3k5/9/9/9/9/9/4K4 w - - 0 1", "'k' cannot stand on d7"),
        ("xiangqi", "3k5/9/9/9/4B4/9/9/9/9/4K4 w - - 0 1", "'B' cannot stand on e6"),
    ],
)
def test_invalid_positions_of_other_families_have_a_message(
    variant: str, text: str, expected: str
) -> None:
    with pytest.raises(FenError) as caught:
        RULES[variant].position(text)
    assert expected in str(caught.value)


def test_a_million_characters_are_rejected_and_abbreviated() -> None:
    with pytest.raises(FenError) as caught:
        CRAZY.position("k" * 1_000_000)
    assert len(str(caught.value)) < 400


def test_dropped_pieces_may_stand_where_others_had_to_promote() -> None:
    assert read("dobutsu", "gC1/le1/LEc/2G[-] b 0 4").startswith("gC1/")


@given(st.text(alphabet="rnbqkpRNBQKP12345678/[]~+- wb", max_size=80))
def test_no_text_crashes_the_reader(text: str) -> None:
    types = CRAZY.types
    try:
        position = parse_fen(types, text)
    except FenError:
        return
    assert same_position(position, parse_fen(types, format_fen(types, position)))


@given(st.data())
def test_a_damaged_fen_is_read_or_rejected(data: st.DataObject) -> None:
    fen = list("r1bqk2r/pppp1ppp/2n1p3/4P3/1b1Pn3/2NB1N2/PPP2PP1/R1BQK3[Pn] b Qkq - 0 9")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(fen) - 1))
        fen[at] = data.draw(st.sampled_from("rnbqkpRNBQKP12345678/[]~ wb-0"))
    try:
        position = CRAZY.position("".join(fen))
    except FenError:
        return
    assert len(CRAZY.legal_moves(position)) >= 0
    assert CRAZY.fen(CRAZY.position(CRAZY.fen(position))) == CRAZY.fen(position)


def test_rights_to_castle_where_nobody_castles() -> None:
    spec = load_spec(builtin_specs()["racingkings"])
    fen = spec.rules.start.replace(" - - ", " KQkq - ")
    with pytest.raises(FenError, match="'KQkq': the spec has no `castling:`; accepted: '-'"):
        parse_fen(PieceTypes(spec), fen)


def test_a_side_without_a_king_has_no_castling_rights() -> None:
    spec = load_spec(builtin_specs()["horde"])
    types = PieceTypes(spec)
    claimed = spec.rules.start.replace(" kq ", " KQkq ")
    assert claimed != spec.rules.start
    assert format_fen(types, parse_fen(types, claimed)) == spec.rules.start
