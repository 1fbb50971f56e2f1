"""Chess960 starts: their numbers, castling from any files, and games compared with Fairy-Stockfish."""

from __future__ import annotations

import random

import pyffish
import pytest

from variant_ai.core.errors import FenError, SettingError, SpecError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.kernel.perft import perft
from variant_ai.core.rules.kernel.play_move import full_key
from variant_ai.core.rules.position import CASTLING, move_kind
from variant_ai.core.rules.shuffled_starts import (
    STARTS,
    random_start,
    shuffled_start,
)
from variant_ai.core.rules.text.notation import SanNotation, UciNotation, uci
from variant_ai.core.spec import builtin_specs, load_spec, parse_spec
from variant_ai.core.spec.schema import VariantSpec

CHESS, CRAZYHOUSE = (load_spec(builtin_specs()[name]) for name in ("chess960", "crazyhouse960"))
JUDGES = {"chess960": "chess", "crazyhouse960": "crazyhouse"}


@pytest.fixture(scope="module", params=(CHESS, CRAZYHOUSE), ids=lambda spec: str(spec.variant))
def rules(request: pytest.FixtureRequest) -> KernelRules:
    made = make_rules(request.param)
    assert isinstance(made, KernelRules)
    return made


@pytest.mark.parametrize(
    ("number", "rank"),
    [(0, "BBQNNRKR"), (518, "RNBQKBNR"), (959, "RKRNNQBB"), (534, "RNBKQBNR"), (342, "NRBKQBRN")],
)
def test_numbers_are_those_of_scharnagl(number: int, rank: str) -> None:
    fen = shuffled_start(CHESS, number)
    assert fen.split()[0] == f"{rank.lower()}/pppppppp/8/8/8/8/PPPPPPPP/{rank}"


def test_all_starts_differ_and_keep_the_rules_of_the_shuffle() -> None:
    ranks = [shuffled_start(CHESS, number).split()[0].split("/")[-1] for number in range(STARTS)]
    assert len(set(ranks)) == STARTS
    for rank in ranks:
        assert rank.index("R") < rank.index("K") < rank.rindex("R")
        assert (rank.index("B") + rank.rindex("B")) % 2 == 1


def test_a_number_stands_for_its_fen(rules: KernelRules) -> None:
    assert rules.fen(rules.position("17")) == shuffled_start(rules.spec, 17)
    with pytest.raises(FenError, match=r"960.*0 to 959"):
        rules.position("960")
    with pytest.raises(SettingError, match="0 to 959"):
        shuffled_start(CHESS, 960)
    chess = load_spec(builtin_specs()["chess"])
    assert random_start(chess, random.Random(1)) is None
    with pytest.raises(SettingError, match="one start position"):
        shuffled_start(chess, 1)


@pytest.mark.parametrize(
    ("fen", "counts"),
    [  # perft of published test positions of Chess960
        ("bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9", (21, 528, 12189)),
        ("2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe - 1 9", (21, 807, 18002)),
        ("qbbnnrkr/2pp2pp/p7/1p2pp2/8/P3PP2/1PPP1KPP/QBBNNR1R w hf - 0 9", (22, 593, 13440)),
    ],
)
def test_perft(fen: str, counts: tuple[int, ...]) -> None:
    chess = make_rules(CHESS)
    position = chess.position(fen)
    assert tuple(perft(chess, position, n) for n in range(1, 4)) == counts


def test_games_agree_with_fairy_stockfish(rules: KernelRules) -> None:
    chance = random.Random(960)
    castled = 0
    name = JUDGES[rules.spec.variant]
    for _ in range(12):
        start = random_start(rules.spec, chance)
        assert start is not None
        position, moves = rules.position(start), list[str]()
        for _ in range(60):
            ours = {uci(rules.types, 8, m): m for m in rules.legal_moves(position).tolist()}
            assert set(ours) == set(pyffish.legal_moves(name, start, moves, True)), (start, moves)
            if not ours:
                break
            castles = [text for text, move in ours.items() if move_kind(move) == CASTLING]
            text = chance.choice(castles or sorted(ours))
            castled += bool(castles)
            position = rules.play(position, ours[text])
            moves.append(text)
            fen = rules.fen(position)
            assert fen.split()[:3] == pyffish.get_fen(name, start, moves, True).split()[:3]
            again = rules.position(fen)
            assert again["key"][0] == position["key"][0] == full_key(rules.tables, position, 0)
    assert castled >= 10


def test_the_rook_of_the_right_castles_not_another_one() -> None:
    """In crazyhouse a rook may be dropped on either side of the rook that may castle."""
    rules = make_rules(CRAZYHOUSE)
    inner = rules.position("4k3/8/8/8/8/8/8/RR2K1RR[] w GB - 0 1")
    outer = rules.position("4k3/8/8/8/8/8/8/RR2K1RR[] w KQ - 0 1")
    assert rules.fen(outer).split()[2] == "HA"
    assert inner["key"][0] != outer["key"][0]
    for position, rooks in ((inner, "bg"), (outer, "")):
        castles = {
            uci(rules.types, 8, move)[2:]
            for move in rules.legal_moves(position).tolist()
            if move_kind(move) == CASTLING
        }
        assert castles == {f"{file}1" for file in rooks}
    moved = Game(rules, rules.fen(inner))
    moved.push(UciNotation().read(rules, moved.position, "g1g2"))
    assert moved.fen().split()[2] == "B"
    moved = Game(rules, rules.fen(inner))
    moved.push(UciNotation().read(rules, moved.position, "h1h2"))
    assert moved.fen().split()[2] == "GB"


def test_castling_is_read_in_every_form() -> None:
    rules = make_rules(CHESS)
    position = rules.position("1k6/8/8/8/8/8/8/RK4R1 w GA - 0 1")
    written = {"b1g1": "O-O", "b1a1": "O-O-O"}
    for text, san in written.items():
        move = UciNotation().read(rules, position, text)
        assert move_kind(move) == CASTLING
        assert SanNotation().write(rules, position, move).rstrip("+") == san
        assert SanNotation().read(rules, position, san) == move
    # not a step to the target of the king: c1 is next to b1, and a step is meant
    assert move_kind(UciNotation().read(rules, position, "b1c1")) != CASTLING
    usual = rules.position("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1")
    for text in ("e1g1", "e1h1", "e1c1", "e1a1"):
        assert move_kind(UciNotation().read(rules, usual, text)) == CASTLING


def test_a_king_that_stays_where_it_is_castles() -> None:
    rules = make_rules(CHESS)
    game = Game(rules, "6k1/8/8/8/8/8/8/6KR w H - 0 1")
    game.push(UciNotation().read(rules, game.position, "g1h1"))
    assert game.fen() == "6k1/8/8/8/8/8/8/5RK1 b - - 1 1"


@pytest.mark.parametrize(
    ("fen", "rights"),
    [
        ("4k3/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "HA"),
        ("4k3/8/8/8/8/8/8/R3K2R w BH - 0 1", "H"),
        ("4k3/8/8/8/8/8/4K3/R6R w HA - 0 1", "-"),
    ],
)
def test_rights_without_king_and_rook_in_place_are_dropped(fen: str, rights: str) -> None:
    rules = make_rules(CHESS)
    assert rules.fen(rules.position(fen)).split()[2] == rights


def test_a_letter_that_is_no_right_is_an_error() -> None:
    for field in ("KX", "\u0130"):
        with pytest.raises(FenError, match="rights are KQkq, or files of rooks, A-H and a-h"):
            make_rules(CHESS).position(f"4k3/8/8/8/8/8/8/R3K2R w {field} - 0 1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "rules: {shuffle: chess960, engine: fairy}",
            "engine 'fairy' castles from fixed squares only",
        ),
        (
            "rules: {shuffle: chess960, start: 'rbbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RBBQKBNR w KQkq - 0 1'}",
            "R N B Q K B N R on the first rank",
        ),
        ("castling: {Q: null}\nrules: {shuffle: chess960}", "two `castling:` sides"),
    ],
)
def test_what_the_word_needs_is_said(change: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_spec(f"extends: chess\nvariant: mine\nfairy: null\n{change}\n")


def test_hashes_of_the_parents_are_not_those_of_the_children() -> None:
    from variant_ai.core.spec import rules_hash

    def hashed(name: str) -> str:
        spec: VariantSpec = load_spec(builtin_specs()[name])
        return rules_hash(spec)

    assert hashed("chess") != hashed("chess960")


def test_short_castling_is_on_the_right_in_any_order_of_the_start() -> None:
    spec = parse_spec(
        "extends: chess\nvariant: mine\nfairy: null\n"
        "castling: {K: {king: c1-g1, rook: h1-f1}, Q: {king: c1-c1, rook: a1-d1}}\n"
        "rules: {shuffle: chess960, start: 'rbknnqbr/pppppppp/8/8/8/8/PPPPPPPP/RBKNNQBR w KQkq - 0 1'}\n"
    )
    rules = make_rules(spec)
    position = rules.position("4k3/8/8/8/8/8/8/R1K4R w KQ - 0 1")
    for text, san in (("c1h1", "O-O"), ("c1a1", "O-O-O")):
        move = UciNotation().read(rules, position, text)
        assert SanNotation().write(rules, position, move).rstrip("+") == san
