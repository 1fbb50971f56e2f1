"""Ends of games that need the moves before: repetition, perpetual check and chase, move counts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from small_board import CYCLE, small_xiangqi

from variant_ai.core.errors import FenError, MoveError, SpecError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.chase_judge import load_judge
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant, spec_settings
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Outcome, Rules
from variant_ai.core.rules.position import move_kind
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.rules.verdicts import ordinal
from variant_ai.core.spec import VariantSpec

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "xiangqi_repetition.json").read_text(encoding="utf-8")
)


def changed(spec: VariantSpec, **rules: object) -> VariantSpec:
    """The spec with other rules, e.g. `changed(spec, repetition={"fold": 5})`."""
    data = spec.model_dump(mode="python", by_alias=True)
    for key, value in rules.items():
        data["rules"][key] = {**data["rules"][key], **value} if isinstance(value, dict) else value
    return VariantSpec.model_validate(data)


@pytest.mark.parametrize("case", GOLDEN["positions"], ids=lambda c: c["note"])
def test_repetition_verdicts(xiangqi: Rules, case: dict[str, str | None]) -> None:
    assert case["fen"] and case["moves"]
    game = Game.from_uci(xiangqi, case["fen"], case["moves"].split())
    outcome = game.outcome()
    assert outcome is not None
    assert outcome.detail.startswith("third occurrence")
    if case["side_to_move"] is not None:
        assert outcome.value(game.side) == {"win": 1, "draw": 0, "loss": -1}[case["side_to_move"]]
    for _ in range(2):
        game.pop()
        assert game.outcome() is None


def test_how_often_a_position_was_seen(xiangqi: Rules) -> None:
    game = Game(xiangqi)
    start = int(game.position["key"][0])
    for times in (1, 2):
        assert game.times_seen(start) == times
        for move in ("a1a2", "a10a9", "a2a1", "a9a10"):
            game.push_uci(move)
    assert game.times_seen(start) == 3
    game.pop()
    assert game.times_seen(start) == 2
    assert game.times_seen(start + 1) == 0


def test_repetition_words(xiangqi: Rules) -> None:
    reasons = {}
    for case in GOLDEN["positions"]:
        outcome = Game.from_uci(xiangqi, case["fen"], case["moves"].split()).outcome()
        assert outcome is not None
        reasons[case["note"]] = outcome
    assert reasons["Direct chase by cannon"] == Outcome(
        1, "perpetual chase", "third occurrence, the first player chases (axf)"
    )
    assert reasons["X-Ray protected discovered check"].reason == "perpetual chase"
    both = reasons["Mutual chase (draw)"]
    assert (both.reason, both.result) == ("repetition", "1/2-1/2")
    assert "axf" in both.detail


def test_perpetual_check_loses(xiangqi: Rules) -> None:
    checker = "3k5/9/9/9/9/9/9/9/4R4/5K3 w - - 0 1"
    cycle = ["e2d2", "d10e10", "d2e2", "e10d10"]
    game = Game.from_uci(xiangqi, checker, cycle * 2)
    assert game.outcome() == Outcome(
        1, "perpetual check", "third occurrence, the first player gives check each time: loss"
    )
    quiet = ["e2d2", "d10e10", "d2a2", "e10d10", "a2d2", "d10e10", "d2e2", "e10d10"]
    outcome = Game.from_uci(xiangqi, checker, quiet * 2).outcome()
    assert outcome is not None and (outcome.reason, outcome.winner) == ("repetition", None)


def test_perpetual_check_where_the_spec_allows_it(xiangqi: Rules, engine: str) -> None:
    spec = changed(xiangqi.spec, repetition={"perpetual_check": "draw", "perpetual_chase": "none"})
    cycle = ["e2d2", "d10e10", "d2e2", "e10d10"]
    game = Game.from_uci(make_rules(spec, engine), "3k5/9/9/9/9/9/9/9/4R4/5K3 w - - 0 1", cycle * 2)
    assert game.outcome() == Outcome(None, "repetition", "third occurrence: draw")


def test_chase_entered_by_a_quiet_move(xiangqi: Rules) -> None:
    """Asked with the whole game, Fairy-Stockfish also wants the entering move to have chased, and
    calls the third occurrence a draw; the moves of the cycle are what the verdict is about."""
    start = "9/5k3/9/9/9/9/9/9/9/3NK1cr1 b - - 0 1"
    moves = ["f9f10"] + ["d1c3", "h1h3", "c3d1", "h3h1"] * 2
    reference = FairyVariant("xiangqi", spec_settings(xiangqi.spec, move_count=True, chase=True))
    assert reference.optional_end(start, moves) == 0
    assert reference.optional_end(reference.fen_after(start, moves[:1]), moves[1:]) == 1
    outcome = Game.from_uci(xiangqi, start, moves).outcome()
    assert outcome is not None and (outcome.reason, outcome.winner) == ("perpetual chase", 0)


def test_fold_is_the_specs(crazyhouse: Rules, engine: str) -> None:
    cycle = ["g1f3", "g8f6", "f3g1", "f6g8"]
    game = Game.from_uci(crazyhouse, None, cycle)
    assert game.outcome() is None and game.position["repetitions"][0] == 1
    game = Game.from_uci(crazyhouse, None, cycle * 2)
    assert game.outcome() == Outcome(None, "repetition", "third occurrence: draw")
    assert game.position["repetitions"][0] == 2
    spec = changed(crazyhouse.spec, repetition={"fold": 5, "otherwise": "loss of first player"})
    rules = make_rules(spec, engine)
    assert Game.from_uci(rules, None, cycle * 3).outcome() is None
    outcome = Game.from_uci(rules, None, cycle * 4).outcome()
    assert outcome is not None and outcome.winner == 1 and "fifth occurrence" in outcome.detail
    mover = changed(crazyhouse.spec, repetition={"otherwise": "loss of mover"})
    game = Game.from_uci(make_rules(mover, engine), None, cycle * 2)
    outcome = game.outcome()
    assert outcome is not None and outcome.winner == game.side


def test_positions_recur_across_captures(crazyhouse: Rules) -> None:
    """Rooks are traded and dropped again: nothing but a lost castling right is irreversible."""
    cycle = ["a1a8", "b8a8", "R@a1", "a8b7", "e1e2", "b7b8", "e2e1", "R@a8"]
    start = "rk6/8/8/8/8/8/8/R3K3[] w - - 0 1"
    game = Game.from_uci(crazyhouse, start, cycle)
    assert game.outcome() is None and game.position["repetitions"][0] == 1
    game = Game.from_uci(crazyhouse, start, cycle * 2)
    outcome = game.outcome()
    assert outcome is not None and outcome.reason == "repetition"


def test_promotedness_and_rights_make_positions_different(crazyhouse: Rules) -> None:
    """A real and a promoted queen on the same square, and a king that has been away."""
    real = crazyhouse.position("4k3/8/8/8/8/8/8/Q3K3[] w - - 0 1")
    promoted = crazyhouse.position("4k3/8/8/8/8/8/8/Q~3K3[] w - - 0 1")
    assert real["key"][0] != promoted["key"][0]
    start = "4k3/8/8/8/8/8/8/R3K3[] w Q - 0 1"
    cycle = ["e1e2", "e8e7", "e2e1", "e7e8"]
    assert Game.from_uci(crazyhouse, start, cycle * 2).outcome() is None
    assert Game.from_uci(crazyhouse, start, [*cycle * 2, cycle[0]]).outcome() is not None


def quiet_game(rules: Rules, checks: int, seed: int) -> Game | None:
    """A game without captures or third occurrences in which Red gives so many checks and then
    none, and Black none; None where it runs into a dead end."""
    rng, given = random.Random(seed), 0
    game = Game(rules, "3k5/9/9/9/9/9/9/9/4R4/3AK4 w - - 0 1")
    while game.outcome() is None:
        quiet: list[int] = []
        checking: list[int] = []
        for move in game.legal_moves().tolist():
            after = rules.play(game.position, move)
            occurred = sum(p["key"][0] == after["key"][0] for p in game.positions)
            replies = rules.legal_moves(after)
            taken = game.side == 0 and after["board"][0][replies & 127].any()
            if (
                occurred < 2
                and len(replies)
                and not taken
                and not game.position["board"][0][move & 127]
            ):
                (checking if rules.in_check(after) else quiet).append(move)
        eager = game.side == 0 and given < checks and rng.random() < 0.8
        preferred = (checking if eager else quiet) or quiet
        if not preferred:
            return None
        move = rng.choice(preferred)
        given += move in checking
        game.push(move)
    return game if given == checks else None


@pytest.mark.parametrize(
    ("engine", "checks"),
    [("kernel", 0), ("kernel", 9), ("kernel", 20), ("kernel", 40), ("fairy", 20)],
    indirect=["engine"],
)
def test_checks_beyond_the_tenth_do_not_count(xiangqi: Rules, checks: int) -> None:
    """With 20 checks a limit of 100 plies is reached at 120, with 40 at 160."""
    spec = changed(xiangqi.spec, no_progress={"plies": 100})
    kernel = make_rules(spec, "kernel")
    game = next(g for seed in range(50) if (g := quiet_game(kernel, checks, seed)))
    limit = 100 + 2 * max(0, checks - 10)
    rules = make_rules(spec, xiangqi.name)
    moves = game.uci_moves()
    assert len(moves) == limit
    start = kernel.fen(game.positions[0])
    replayed = Game.from_uci(rules, start, moves)
    outcome = replayed.outcome()
    assert outcome is not None and (outcome.reason, outcome.winner) == ("move count", None)
    replayed.pop()
    assert replayed.outcome() is None
    reference = FairyVariant("xiangqi", spec_settings(spec, move_count=True, chase=True))
    assert reference.optional_end(start, moves) == 0
    assert reference.optional_end(start, moves[:-1]) is None


def test_counters_follow_the_spec(crazyhouse: Rules) -> None:
    start = "4k3/8/8/8/8/7n/4P3/R3K3[N] w Q - 7 30"
    for text, clock in (("a1b1", 8), ("N@c3", 0), ("e2e4", 0), ("e1c1", 8)):
        game = Game.from_uci(crazyhouse, start, [text])
        assert int(game.position["clock"][0]) == clock
        assert int(game.position["ply"][0]) == 59
    game = Game.from_uci(crazyhouse, start, ["a1a8", "e8e7", "e1f1"])
    assert int(game.position["clock"][0]) == 10


def test_stalemate_follows_the_spec(xiangqi: Rules, crazyhouse: Rules) -> None:
    lost = Game(xiangqi, "3k5/4P4/9/9/9/9/9/9/9/4K4 b - - 0 1").outcome()
    assert lost is not None
    assert (lost.reason, lost.winner) == ("stalemate", 0)
    assert lost.detail == "stalemate is a loss for the side without a move"
    drawn = Game(crazyhouse, "k7/2Q5/8/8/8/8/8/4K3[] b - - 0 1").outcome()
    assert drawn is not None and (drawn.reason, drawn.result) == ("stalemate", "1/2-1/2")


def test_mate_by_drop(crazyhouse: Rules) -> None:
    game = Game.from_uci(crazyhouse, "7k/6pp/8/8/8/8/8/4K3[R] w - - 0 1", ["R@a8"])
    assert game.outcome() == Outcome(0, "checkmate")
    escape = Game.from_uci(crazyhouse, "7k/6pp/8/8/8/8/8/4K3[Rn] w - - 0 1", ["R@a8"])
    assert escape.outcome() is None


def test_start_positions_go_on(rules: Rules) -> None:
    """pyffish's `game_result` calls xiangqi's start lost (-32000)."""
    assert Game(rules).outcome() is None


def test_pop_forgets_the_position(rules: Rules) -> None:
    game = Game(rules)
    rng = random.Random(3)
    for _ in range(12):
        game.push(int(rng.choice(game.legal_moves())))
    fens = [rules.fen(p) for p in game.positions]
    moves = list(game.moves)
    for number in reversed(range(12)):
        assert game.pop() == moves[number]
        assert game.fen() == fens[number]
    with pytest.raises(MoveError, match="no move to take back"):
        game.pop()
    assert list(game._seen.values()) == [[0]]
    for move in moves:
        game.push(move)
    assert [rules.fen(p) for p in game.positions] == fens
    assert [uci(rules.types, rules.spec.board.files, m) for m in moves] == game.uci_moves()


def test_a_copy_is_independent(xiangqi: Rules) -> None:
    game = Game.from_uci(xiangqi, None, ["h3e3", "h10g8", "e3h3", "g8h10"])
    copy = game.copy()
    for text in ("h3e3", "h10g8", "e3h3", "g8h10"):
        copy.push_uci(text)
    assert (copy.outcome(), game.outcome()) != (None, None) and game.outcome() is None
    assert game.times_seen(int(game.position["key"][0])) == 2
    assert copy.uci_moves()[:4] == game.uci_moves()
    copy.pop()
    assert len(game.positions) == 5 and game.copy().outcome() is None


def test_own_moves_include_those_before_the_fen(crazyhouse: Rules) -> None:
    fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR[] b KQkq - 0 12"
    game = Game.from_uci(crazyhouse, fen, ["e7e5", "e2e4"])
    assert game.own_moves == 12  # Black's twelfth was e7e5


def test_errors_name_the_ply(rules: Rules) -> None:
    with pytest.raises(MoveError, match="ply 1: illegal uci move 'a1a1'"):
        Game.from_uci(rules, None, ["a1a1"])
    with pytest.raises(FenError):
        Game(rules, "nonsense")


@pytest.mark.parametrize("engine", ["kernel"], indirect=True)
def test_chases_need_a_judge(xiangqi: Rules, engine: str) -> None:
    data = xiangqi.spec.model_dump(mode="python", by_alias=True)
    data["fairy"] = None
    rules = make_rules(VariantSpec.model_validate(data), engine)
    with pytest.raises(SpecError, match="no `fairy:` name for a judge"):
        Game(rules)


def test_a_chase_that_nobody_can_judge_is_a_repetition_after_one_warning() -> None:
    """A spec may inherit `fairy:` of another board; a match must not end by that."""
    rules = make_rules(small_xiangqi())
    game = Game.from_uci(rules, None, CYCLE * 2)
    with pytest.warns(UserWarning, match="9 x 9.*count as other repetitions"):
        outcome = game.outcome()
    assert outcome is not None and (outcome.reason, outcome.winner) == ("repetition", None)
    load_judge(rules)
    assert Game.from_uci(rules, None, CYCLE * 2).outcome() == outcome


def test_a_custom_judge(xiangqi: Rules) -> None:
    class Everything:
        def judge_cycle(self, fen: str, moves: list[str]) -> Outcome:
            assert fen.startswith("rnbakabnr") and len(moves) == 8
            return Outcome(0, "perpetual chase", "because I say so")

    cycle = ["h3h4", "h8h7", "h4h3", "h7h8"]
    game = Game(xiangqi, judge=Everything())
    for text in cycle * 2:
        game.push_uci(text)
    assert game.outcome() == Outcome(0, "perpetual chase", "because I say so")
    assert move_kind(game.moves[0]) == 0


def test_ordinals() -> None:
    words = [ordinal(n) for n in (3, 7, 11, 12, 13, 21, 22, 23, 24, 111, 121)]
    assert words == [
        "third",
        "7th",
        "11th",
        "12th",
        "13th",
        "21st",
        "22nd",
        "23rd",
        "24th",
        "111th",
        "121st",
    ]
