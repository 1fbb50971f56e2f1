"""Variants that records and move integers cannot hold alone, compared with pyffish."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from variant_ai.core.encoding import Encoder
from variant_ai.core.encoding.move_codes import MoveCodec
from variant_ai.core.errors import FenError, MoveError, SpecError
from variant_ai.core.inference import UniformEvaluator
from variant_ai.core.rules.fairy.fairy_positions import state_of
from variant_ai.core.rules.fairy.fairy_rules import FairyRules, identity
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant, pyffish
from variant_ai.core.rules.fairy.fairy_workers import RulesWorkers, look_ahead, workers_of
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.position import POSITION, PROMOTION, TURNED, move_extra, move_kind
from variant_ai.core.rules.text.notation import SanNotation, UciNotation, uci
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec import VariantSpec

pytest.importorskip("pyffish")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
fairy_agreement = pytest.importorskip(
    "fairy_agreement", reason="needs the folder benchmarks/ of the sources"
)
check_fairy_engine, probed_spec = fairy_agreement.check_fairy_engine, fairy_agreement.probed_spec


@cache
def rules_of(name: str) -> FairyRules:
    return FairyRules(probed_spec(name))


@pytest.mark.parametrize(
    "name",
    [
        "ataxx",  # squares turn over, no king
        "berolina",  # two e.p. squares
        "checkshogi",  # checks left, and a FEN that only the first move shows
        "duck",  # a wall that moves, 2,000 moves
        "isolation",  # walls
        "janggi",  # passes, facing kings
        "joust",  # walls behind the piece
        "kyotoshogi",  # pieces turn over by moving, are dropped with either side up
        "petrified",  # captured pieces become walls
        "placement",  # kings in hand
        "seirawan",  # pieces come in behind others
        "sittuyin",  # promotion in place
        "troitzky",  # walls from the start
    ],
)
def test_random_games_agree(name: str) -> None:
    found = check_fairy_engine(name, 17, seed=3)
    assert (found.verdict, found.first_difference, found.skipped) == ("agrees", "", "")


def test_a_difference_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = FairyVariant.legal_moves

    def other(self: FairyVariant, fen: str, moves: tuple[str, ...] = ()) -> list[str]:
        listed = plain(self, fen, moves)
        return listed if self.name != "gardner" or len(moves) < 2 else listed[1:]

    monkeypatch.setattr(FairyVariant, "legal_moves", other)
    monkeypatch.setattr(FairyVariant, "fen_after", FairyVariant.fen_after)
    found = check_fairy_engine("gardner", 8, seed=1)
    assert found.verdict == "differs" and "moves only ours: " in found.first_difference


def test_two_passes_end_the_game() -> None:
    rules = rules_of("janggi")
    game = Game.from_uci(rules, None, ["e2e2"])
    assert game.outcome() is None
    game.push_uci("e9e9")
    outcome = game.outcome()
    start = pyffish().start_fen("janggi")
    ended, value = pyffish().is_immediate_game_end("janggi", start, ["e2e2", "e9e9"])
    assert ended and outcome is not None
    assert np.sign(value) == outcome.value(game.side)
    # the same board and side, come to without a pass, is played on
    assert Game(rules, game.fen()).outcome() is None


def test_a_pass_is_remembered_by_the_search() -> None:
    """After one pass another ends the game; the same position without it is another node."""
    slides = dict.fromkeys(("N", "NE", "E", "SE", "S", "SW", "W", "NW"), 9)
    leaps = [f"{a}{v}{3 - a}{h}" for a in (1, 2) for v in "NS" for h in "EW"]
    leaps += [f"3{v}2{h}" for v in "NS" for h in "EW"] + [f"2{v}3{h}" for v in "NS" for h in "EW"]
    data = probed_spec("janggi").model_dump(mode="python", by_alias=True)
    policy = ({"slides": slides}, {"leaps": tuple(leaps)}, "pass")
    rules = FairyRules(VariantSpec.model_validate({**data, "policy": policy}))
    workers_of(rules, 0)
    encoder = Encoder(rules.spec)
    net = UniformEvaluator(encoder.shape, encoder.actions)
    params = SearchParams.of(rules.spec, memory_mb=16)
    with Search(rules.spec, net, params, rules=rules) as search:
        search.set_game(Game.from_uci(rules, None, ["e2e2"]))
        again = search.game.read_uci("e9e9")
        report = search.run(Limits(simulations=3), moves=[again])
        edges = search.tree.edges(search.tree.root)
        child = int(edges.children[edges.moves.tolist().index(again)])
        assert report.best == again
        assert int(search.tree.arrays.nodes[child]["count"]) == 0
    passed = Game.from_uci(rules, None, ["e2e2"]).position
    assert rules.memory(passed) != rules.memory(rules.position(rules.fen(passed)))


def test_promotion_in_place() -> None:
    rules = rules_of("sittuyin")
    position = rules.position("1n6/1nkss3/R7/4Pp2/PPP4P/2P4K/8/2R1S1F1[] b - - 0 29")
    texts = pyffish().legal_moves("sittuyin", rules.fen(position), [])
    assert "f5f5f" in texts
    assert sorted(uci(rules.types, 8, m) for m in rules.legal_moves(position)) == sorted(texts)
    move = UciNotation().read(rules, position, "f5f5f")
    assert move_kind(move) == PROMOTION
    assert rules.fen(rules.play(position, move)).startswith("1n6/1nkss3/R7/4Pf2/")


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        ("berolina", "d2b4"),
        ("petrified", "f2f4"),
        ("ataxx", "P@b7"),
        ("checkshogi", "f3f4"),
        ("duck", "e2e4,e4d5"),
        ("isolation", "c1c2,c2a1"),
        ("joust", "d4e6,e6d4"),
        (
            "duck",
            "e2e4,e4e5 f7f5,f5d5 e4f5,f5d3 g7g6,g6d5 f5g6,g6d3 a7a6,a6d5 g6h7,h7d3"
            " a6a5,a5d5 h7g8n,g8e6",
        ),
    ],
)
def test_what_a_record_cannot_hold_is_kept(name: str, moves: str) -> None:
    rules = rules_of(name)
    game = Game.from_uci(rules, None, moves.split())
    ahead = pyffish().get_fen(name, pyffish().start_fen(name), moves.split())
    assert identity(rules.fen(game.position)) == identity(ahead)
    assert game.uci_moves() == moves.split()
    again = rules.position(game.fen())
    assert again["key"][0] == game.position["key"][0]
    assert rules.legal_moves(again).tolist() == game.legal_moves().tolist()


@pytest.mark.parametrize(
    ("name", "moves"), [("duck", ""), ("duck", "e2e4,e4a5 d7d5,d5a6 e4d5,d5a5"), ("joust", "")]
)
def test_san_names_the_square_of_a_wall(name: str, moves: str) -> None:
    rules = rules_of(name)
    game, san = Game.from_uci(rules, None, moves.split()), SanNotation()
    texts = {}
    for move in game.legal_moves().tolist():
        text = san.write(rules, game.position, move)
        assert text == pyffish().get_san(name, game.fen(), rules.uci(move))
        texts[text] = move
    assert len(texts) == len(game.legal_moves())
    for text in [*texts][::7]:
        assert san.read(rules, game.position, text) == texts[text]


def test_a_copy_keeps_the_state_and_a_changed_one_does_not() -> None:
    rules = rules_of("berolina")
    position = Game.from_uci(rules, None, ["d2b4"]).position
    copy = position.copy()
    assert rules.fen(copy) == rules.fen(position)
    copy["ply"] += 2  # a counter is not what is played
    assert state_of(copy) is state_of(position)
    copy["side"] = 0
    assert state_of(copy) is None
    assert rules.fen(copy).split()[1] == "w"


def test_a_start_position_that_lost_its_state_is_found_again() -> None:
    """As the positions of a store are that lie in one array."""
    rules = rules_of("troitzky")
    line = np.zeros(3, POSITION)
    line[1] = rules.position()[0]
    found = line[1:2]
    assert rules.fen(found) == rules.fen(rules.position())
    assert rules.legal_moves(found).tolist() == rules.legal_moves(rules.position()).tolist()


def test_codes_that_say_less_than_a_move() -> None:
    joust, kyoto, duck = rules_of("joust"), rules_of("kyotoshogi"), rules_of("duck")
    for rules, plies in (
        (joust, 6),
        (kyoto, 2),
    ):  # the wall is where the knight was; the mover is turned over
        game, codec = Game(rules), MoveCodec(rules.spec)
        for _ in range(plies):
            stored = [m for m in game.legal_moves().tolist() if move_extra(m)] or [
                int(game.legal_moves()[0])
            ]
            game.push(next(m for m in stored if not uci(rules.types, 8, m).startswith("+")))
        start = game.positions[0]
        codes = codec.encode_game(rules, start, game.moves)
        position = start
        for code, there in zip(codes, game.positions[1:], strict=True):
            position = rules.play(position, codec.decode(position, int(code)))
            assert rules.fen(position) == rules.fen(there)
    game = Game(duck)
    with pytest.raises(MoveError, match="can be played but not stored"):
        MoveCodec(duck.spec).encode(game.position, game.read_uci("e2e4,e4d5"))


def test_both_sides_of_a_dropped_piece() -> None:
    rules = rules_of("kyotoshogi")
    rng = np.random.default_rng(2)
    game = Game(rules)
    for _ in range(60):
        texts = [uci(rules.types, 5, int(m)) for m in game.legal_moves()]
        turned = [text for text in texts if text.startswith("+")]
        if turned:
            move = game.read_uci(turned[0])
            assert move_extra(move) == TURNED
            assert uci(rules.types, 5, move) == turned[0]
            assert game.read_uci(turned[0][1:]) != move
            return
        game.push(int(rng.choice(game.legal_moves())))
    pytest.fail("nothing was dropped in 60 plies")


def test_workers_know_what_records_cannot_hold() -> None:
    rules = rules_of("petrified")
    position = Game.from_uci(rules, None, ["g1f3", "e7e5", "f3e5"]).position
    workers = RulesWorkers(rules.spec, 1)
    moves = rules.legal_moves(position)[:3].tolist()
    for move, ahead in zip(moves, workers.ask([(position, m) for m in moves]), strict=True):
        own = look_ahead(rules, position, move)
        assert ahead is not None
        assert ahead.position.tobytes() == own.position.tobytes()
        assert rules.fen(ahead.position) == rules.fen(own.position)
        assert "*" in rules.fen(ahead.position)
        assert ahead.moves.tolist() == own.moves.tolist()
    workers.close()


def test_results_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new position takes two calls, for its FEN and its moves; a known one takes none."""
    rules = rules_of("atomic")
    called: list[str] = []
    call = FairyVariant._call

    def counted(self: FairyVariant, function: str, *arguments: Any) -> object:
        called.append(function)
        return call(self, function, *arguments)

    monkeypatch.setattr(FairyVariant, "_call", counted)
    start = rules.position()
    rules.legal_moves(start)
    move = UciNotation().read(rules, start, "g1f3")
    called.clear()
    after = rules.play(start, move)
    assert rules.outcome(after) is None
    assert len(rules.legal_moves(after)) > 10
    assert len(called) == 2
    look_ahead(rules, start, move)
    assert len(called) == 2


def test_a_start_position_that_fairy_stockfish_cannot_play() -> None:
    data = probed_spec("chess").model_dump(mode="python", by_alias=True)
    start = "rnbq1bnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1"
    rules = {**data["rules"], "start": start}
    with pytest.raises(FenError, match=r"cannot play chess from .*royal ones"):
        FairyRules(VariantSpec.model_validate({**data, "rules": rules})).position()


def test_a_piece_that_the_spec_has_not() -> None:
    data = probed_spec("makruk").model_dump(mode="python", by_alias=True)
    start = "4k3/8/P7/8/8/8/8/4K3 w - - 0 1"
    pieces = {s: piece for s, piece in data["pieces"].items() if s in "KP"}
    spec = {**data, "pieces": pieces, "rules": {**data["rules"], "start": start}}
    rules = FairyRules(VariantSpec.model_validate(spec))
    with pytest.raises(SpecError, match=r"promotes P to M|cannot hold: rank 6: 'M~?' is no piece"):
        Game.from_uci(rules, "4k3/8/8/P7/8/8/8/4K3 w - - 0 1", ["a5a6m"])
