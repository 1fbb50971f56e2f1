"""The kernel: rules of the variants seen one by one, ends, keys, and its contract as Rules."""

from __future__ import annotations

import pickle
import random
import threading
from functools import cache
from typing import Any

import numpy as np
import pytest

from variant_ai.core.errors import FenError, SpecError
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.kernel.movegen import legal_captures_into, legal_moves_into, new_work
from variant_ai.core.rules.kernel.play_move import full_key, is_in_check, play_into, replay_into
from variant_ai.core.rules.kernel.rule_tables import compile_tables
from variant_ai.core.rules.kernel.table_layout import new_moves
from variant_ai.core.rules.position import (
    DROP,
    EN_PASSANT,
    Position,
    move_kind,
    move_origin,
    move_target,
    new_position,
    same_position,
)
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec

KERNEL_SPECS = tuple(
    name for name, path in builtin_specs().items() if load_spec(path).rules.engine == "kernel"
)


@cache
def rules_of(variant: str) -> KernelRules:
    return KernelRules(load_spec(builtin_specs()[variant]))


def moves(rules: KernelRules, fen: str, filter: str = "") -> set[str]:
    """Legal moves of a FEN in UCI, those that contain a text."""
    files = rules.spec.board.files
    texts = (uci(rules.types, files, int(m)) for m in rules.legal_moves(rules.position(fen)))
    return {text for text in texts if filter in text}


def after(rules: KernelRules, fen: str, *line: str) -> Position:
    position = rules.position(fen)
    for text in line:
        files = rules.spec.board.files
        found = {uci(rules.types, files, int(m)): int(m) for m in rules.legal_moves(position)}
        position = rules.play(position, found[text])
    return position


def changed(spec: VariantSpec, **rules: Any) -> VariantSpec:
    return spec.model_copy(update={"rules": spec.rules.model_copy(update=rules)})


# --- crazyhouse --------------------------------------------------------------------------------


def test_a_captured_promoted_piece_comes_back_as_a_pawn() -> None:
    rules = rules_of("crazyhouse")
    fen = rules.fen(after(rules, "8/6P1/7r/8/8/k7/8/K7[] w - - 0 1", "g7g8q", "h6h8", "g8h8"))
    assert fen == "7Q~/8/8/8/8/k7/8/K7[R] b - - 0 2"
    taken = after(rules, "7r/6P1/8/8/8/k7/8/K7[] w - - 0 1", "g7g8q", "h8g8")
    assert rules.fen(taken) == "6r1/8/8/8/8/k7/8/K7[p] w - - 0 2"
    full = after(rules, "6Qr/8/8/8/8/k7/8/K7[] b - - 0 1", "h8g8")
    assert rules.fen(full) == "6r1/8/8/8/8/k7/8/K7[q] w - - 0 2"


def test_pawns_are_dropped_on_ranks_two_to_seven_and_may_then_double_step() -> None:
    rules = rules_of("crazyhouse")
    fen = "4k3/8/8/8/1p6/8/8/4K3[P] w - - 0 1"
    assert {m[3] for m in moves(rules, fen, "P@")} == set("234567")
    position = after(rules, fen, "P@c2", "e8e7", "c2c4")
    assert rules.fen(position).split()[3] == "c3"
    captured = after(rules, fen, "P@c2", "e8e7", "c2c4", "b4c3")
    assert rules.fen(captured) == "8/4k3/8/8/8/2p5/8/4K3[p] w - - 0 3"


def test_drops_block_checks_and_may_mate() -> None:
    rules = rules_of("crazyhouse")
    blocked = moves(rules, "4k3/8/8/8/8/8/8/r3K3[N] w - - 0 1", "N@")
    assert blocked == {"N@b1", "N@c1", "N@d1"}
    mated = after(rules, "7k/6pp/8/8/8/8/8/K7[R] w - - 0 1", "R@e8")
    outcome = rules.outcome(mated)
    assert outcome is not None
    assert (outcome.winner, outcome.reason) == (0, "checkmate")


def test_castling_is_lost_with_the_rook_and_not_won_back_by_dropping_one() -> None:
    rules = rules_of("crazyhouse")
    fen = "4k3/8/8/8/8/6n1/8/R3K2R[] b KQ - 0 1"
    position = after(rules, fen, "g3h1")
    assert rules.fen(position).split()[2] == "Q"
    position = after(rules, fen, "g3h1", "a1a2", "h1g3", "a2a1")
    assert rules.fen(position).split()[2] == "-"


def test_castling_passes_no_attacked_square() -> None:
    rules = rules_of("crazyhouse")
    fen = "4k3/8/8/8/8/{}/8/R3K2R[] w KQ - 0 1"
    assert moves(rules, fen.format("8"), "e1") >= {"e1g1", "e1c1"}
    assert "e1g1" not in moves(rules, fen.format("5r2"))
    assert "e1c1" in moves(rules, fen.format("1r6"))  # the rook alone may pass b1
    assert moves(rules, fen.format("4r3"), "e1") & {"e1g1", "e1c1"} == set()


def test_en_passant_that_opens_the_rank_is_illegal() -> None:
    rules = rules_of("chess")
    fen = "8/8/8/8/k2Pp2R/8/8/4K3 b - d3 0 1"
    assert "e4d3" not in moves(rules, fen)
    assert "e4d3" in moves(rules, fen.replace("2R", "3"))


# --- xiangqi -----------------------------------------------------------------------------------


def test_kings_may_not_face_each_other() -> None:
    rules = rules_of("xiangqi")
    assert moves(rules, "4k4/9/9/9/4P4/9/9/9/9/4K4 w - - 0 1", "e6") == {"e6e7"}
    assert moves(rules, "3k5/9/9/9/9/9/9/9/9/4K4 w - - 0 1") == {"e1e2", "e1f1"}


def test_cannons_capture_over_one_piece_and_horses_need_their_leg() -> None:
    rules = rules_of("xiangqi")
    fen = "3k5/r8/9/p8/9/9/9/C8/9/1N2K4 w - - 0 1"
    assert "a3a9" in moves(rules, fen)
    assert "a3a7" not in moves(rules, fen)
    assert moves(rules, "3k5/9/9/9/9/9/9/9/1P7/1N2K4 w - - 0 1", "b1") == {"b1d2"}


def test_a_stalemated_side_loses() -> None:
    rules = rules_of("xiangqi")
    position = rules.position("3k5/2P6/9/9/9/9/9/9/9/4K4 b - - 0 1")
    assert len(rules.legal_moves(position)) == 0
    assert not rules.in_check(position)
    outcome = rules.outcome(position)
    assert outcome is not None
    assert (outcome.winner, outcome.reason) == (0, "stalemate")


def test_checks_beyond_the_tenth_prolong_the_move_count() -> None:
    rules = rules_of("xiangqi")
    position = rules.position("4k4/9/9/9/9/9/9/9/3R5/5K3 w - - 119 80")
    assert rules.outcome(position) is None
    position[0]["clock"] = 120
    ended = rules.outcome(position)
    assert ended is not None
    assert (ended.winner, ended.reason) == (None, "move count")
    position[0]["checks"] = 12, 3
    assert rules.outcome(position) is None
    position[0]["clock"] = 124
    assert rules.outcome(position) is not None


def test_checks_are_counted_by_play_until_something_is_captured() -> None:
    rules = rules_of("xiangqi")
    fen = "4k4/9/9/9/p8/9/9/9/3R5/5K3 w - - 0 1"
    line = ("d2e2", "e10d10", "e2d2", "d10e10", "d2e2")
    position = after(rules, fen, *line)
    assert position[0]["checks"].tolist() == [3, 0]
    assert int(position[0]["clock"]) == 5
    position = after(rules, fen, "d2a2", "e10d10", "a2a6")
    assert position[0]["checks"].tolist() == [0, 0]
    assert int(position[0]["clock"]) == 0


# --- other families ----------------------------------------------------------------------------


def test_shogi_allows_one_pawn_a_file_and_no_mate_by_dropping_it() -> None:
    rules = rules_of("shogi")
    assert {m[2] for m in moves(rules, "4k4/9/9/9/9/9/P1P6/9/4K4[P] w 0 1", "P@")} == set("bdefghi")
    assert "P@i8" not in moves(rules, "7nk/9/7GG/9/9/9/9/9/4K4[P] w 0 1")
    assert "P@i8" in moves(rules, "8k/9/7GG/9/9/9/9/9/4K4[P] w 0 1")


def test_shogi_promotes_on_entering_and_leaving_and_must_where_stuck() -> None:
    rules = rules_of("shogi")
    fen = "4k4/9/1S7/P8/9/9/9/9/4K4[-] w 0 1"
    assert moves(rules, fen, "b7") >= {"b7c6", "b7c6+"}
    assert moves(rules, fen, "a6a7") == {"a6a7", "a6a7+"}
    assert moves(rules, "4k4/P8/9/9/9/9/9/9/4K4[-] w 0 1", "a8") == {"a8a9+"}
    assert moves(rules, "4k4/9/N8/9/9/9/9/9/4K4[-] w 0 1", "a7") == {"a7b9+"}


def test_a_king_on_the_hill_ends_the_game() -> None:
    rules = rules_of("kingofthehill")
    position = after(rules, "4k3/8/8/8/8/3K4/8/8 w - - 0 1", "d3d4")
    assert len(rules.legal_moves(position)) == 0
    outcome = rules.outcome(position)
    assert outcome is not None
    assert (outcome.winner, outcome.reason) == (0, "variant win")


def test_the_third_check_wins_and_checks_are_in_the_key() -> None:
    rules = rules_of("three-check")
    fen = "4k3/8/8/8/8/8/R7/K7 w - - {}+3 0 1"
    won = after(rules, fen.format(1), "a2e2")
    outcome = rules.outcome(won)
    assert outcome is not None
    assert (outcome.winner, outcome.reason) == (0, "variant win")
    assert rules.fen(won).split()[4] == "0+3"
    keys = {int(rules.position(fen.format(n))[0]["key"]) for n in (1, 2, 3)}
    assert len(keys) == 3


def test_antichess_captures_are_forced_and_no_moves_win() -> None:
    rules = rules_of("antichess")
    assert moves(rules, "4k3/8/8/8/8/5p2/4P3/4K3 w - - 0 1") == {"e2f3"}
    ended = rules.outcome(rules.position("8/8/8/8/8/8/8/4K3 b - - 0 1"))
    assert ended is not None
    assert ended.winner == 1


def test_grand_promotes_to_what_was_lost_and_waits_before_the_last_rank() -> None:
    rules = rules_of("grand")
    full = "4k5/P9/10/10/10/10/10/10/1NBQKCABN1/R8R w - - 0 1"
    assert moves(rules, full, "a9") == set()
    lost = full.replace("Q", "1")
    assert moves(rules, lost, "a9") == {"a9a10q"}


def test_makruk_counts_once_the_pawns_are_gone() -> None:
    rules = rules_of("makruk")
    position = after(rules, "4k3/8/8/8/8/8/4r3/R3K3 w - - 5 40", "e1e2")
    record = position[0]
    # one rook against a bare king: 16 moves, the three pieces on the board counted already
    assert (int(record["count_limit"]), int(record["clock"])) == (32, 6)
    record["clock"] = 32
    assert rules.outcome(position) is None
    record["clock"] = 33
    ended = rules.outcome(position)
    assert ended is not None
    assert (ended.winner, ended.reason) == (None, "move count")


def test_a_horde_without_pieces_has_lost() -> None:
    rules = rules_of("horde")
    position = after(rules, "4k3/8/8/8/8/8/4p3/3P4 b - - 0 1", "e2d1q")
    outcome = rules.outcome(position)
    assert outcome is not None
    assert (outcome.winner, outcome.reason) == (1, "variant win")


# --- the contract ------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", KERNEL_SPECS)
def test_keys_kept_in_play_are_those_computed_from_scratch(variant: str) -> None:
    rules, rng = rules_of(variant), random.Random(3)
    seen: dict[int, str] = {}
    for _ in range(4):
        position = rules.position()
        for _ in range(80):
            legal = rules.legal_moves(position)
            if len(legal) == 0:
                break
            position = rules.play(position, int(rng.choice(legal)))
            assert full_key(rules.tables, position, 0) == position[0]["key"]
            # counters are no part of a position; all else is
            text = " ".join(rules.fen(position).split()[:-2])
            assert seen.setdefault(int(position[0]["key"]), text) == text


@pytest.mark.parametrize("variant", KERNEL_SPECS)
def test_captures_are_the_legal_moves_that_capture(variant: str) -> None:
    rules = rules_of(variant)
    rng = random.Random(2)
    out, work = new_moves(2), new_work()
    found = 0
    for _ in range(12):
        position = rules.position()
        while rules.outcome(position) is None and int(position["ply"][0]) < 150:
            legal = rules.legal_moves(position).tolist()
            captures = [move for move in legal if captured_side(position, move) == 1]
            before = position.copy()
            count = legal_captures_into(rules.tables, position, 0, out, work)
            assert out["move"][0, :count].tolist() == captures, rules.fen(position)
            assert same_position(before, position)
            found += len(captures)
            position = rules.play(position, rng.choice(legal))
    assert found > 20


def captured_side(position: Position, move: int) -> int:
    """Return 1 if the move captures a piece of the other side, -1 if it moves onto an own one, else 0."""
    if move_kind(move) == DROP:
        return 0
    if move_kind(move) == EN_PASSANT:
        return 1
    piece = int(position["board"][0, move_target(move)])
    mover = int(position["board"][0, move_origin(move)])
    return 0 if piece == 0 else 1 if (piece - 1) // 32 != (mover - 1) // 32 else -1


@pytest.mark.parametrize("variant", KERNEL_SPECS)
def test_asking_changes_nothing(variant: str) -> None:
    rules = rules_of(variant)
    position = rules.position()
    before = position.copy()
    for move in rules.legal_moves(position):
        rules.play(position, int(move))
    rules.in_check(position)
    rules.outcome(position)
    assert same_position(before, position)
    position.flags.writeable = False
    assert len(rules.legal_moves(position)) == len(rules.legal_moves(before))
    rules.play(position, int(rules.legal_moves(position)[0]))


def test_playing_in_place_and_along_an_array_is_the_same() -> None:
    rules = rules_of("crazyhouse")
    rng = random.Random(5)
    line = new_position(41)
    line[0] = rules.position()[0]
    alone = rules.position()
    out, work = new_moves(2), new_work()
    for ply in range(40):
        count = legal_moves_into(rules.tables, line, ply, out, work)
        move = int(rng.choice(out["move"][0, :count]))
        play_into(rules.tables, line, ply, line, ply + 1, move)
        replay_into(rules.tables, alone, 0, alone, 0, move)
        assert same_position(line[ply + 1 : ply + 2], alone)
        assert is_in_check(rules.tables, alone, 0) == rules.in_check(alone)


def test_threads_share_one_rules_object() -> None:
    rules = rules_of("xiangqi")
    start = rules.position()
    counts: list[int] = []

    def ask() -> None:
        counts.extend(len(rules.legal_moves(start)) for _ in range(2000))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [44] * 8000


def test_rules_can_be_sent_to_another_process() -> None:
    rules = rules_of("crazyhouse")
    again = pickle.loads(pickle.dumps(rules))
    assert np.array_equal(again.legal_moves(again.position()), rules.legal_moves(rules.position()))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"explodes": True}, "`explodes: true`"),
        ({"bare_king": "draw"}, "`bare_king: draw`"),
    ],
)
def test_words_without_a_rule_are_named(change: dict[str, Any], word: str) -> None:
    spec = changed(load_spec(builtin_specs()["chess"]), **change)
    with pytest.raises(SpecError) as caught:
        KernelRules(spec)
    assert word in str(caught.value)
    assert "engine: fairy" in str(caught.value)


def test_two_royal_pieces_are_rejected() -> None:
    spec = load_spec(builtin_specs()["chess"])
    pieces = dict(spec.pieces)
    pieces["Q"] = pieces["Q"].model_copy(update={"royal": True})
    with pytest.raises(SpecError, match="more than one royal piece"):
        KernelRules(spec.model_copy(update={"pieces": pieces}))


def test_moves_are_always_listed_in_the_same_order() -> None:
    rules = rules_of("crazyhouse")
    fen = "r1bqk2r/pppp1ppp/2n1p3/4P3/1b1Pn3/2NB1N2/PPP2PPP/R1BQK2R[] b KQkq - 0 9"
    first = rules.legal_moves(rules.position(fen))
    again = KernelRules(rules.spec).legal_moves(rules.position(fen))
    assert np.array_equal(first, again)
    assert first.dtype == np.int32


@pytest.mark.parametrize(
    ("board", "dead"),
    [
        ("4k3/8/8/8/8/8/8/4K3", True),
        ("4k3/8/8/8/8/8/8/3NK3", True),
        ("4k3/8/8/8/8/8/8/3BK3", True),
        ("4k3/8/8/8/8/4b3/8/2B1K3", True),  # both on dark squares
        ("4k3/8/8/8/8/5b2/8/2B1K3", False),
        ("4k3/8/8/8/8/8/8/2NNK3", False),
        ("4kn2/8/8/8/8/8/8/3NK3", False),
        ("4k3/8/8/8/8/8/4P3/4K3", False),
        ("4k3/8/8/8/8/8/8/3RK3", False),
    ],
)
def test_positions_in_which_nobody_can_mate_are_drawn(board: str, dead: bool) -> None:
    rules = rules_of("chess")
    outcome = rules.outcome(rules.position(f"{board} w - - 0 1"))
    assert (outcome is not None) == dead
    if outcome is not None:
        assert (outcome.winner, outcome.reason) == (None, "insufficient material")


def test_more_moves_than_the_list_holds_are_rejected_when_the_spec_is_compiled() -> None:
    spec = load_spec(builtin_specs()["grand"])
    pieces = dict(spec.pieces)
    promotes = {"promotes": pieces["P"].promotes}
    pieces["Q"] = pieces["Q"].model_copy(update=promotes)
    with pytest.raises(SpecError, match="'Q' has more than 256 moves"):
        KernelRules(spec.model_copy(update={"pieces": pieces}))


def test_positions_with_too_many_moves_for_the_list_are_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = rules_of("crazyhouse")
    monkeypatch.setattr("variant_ai.core.rules.kernel.kernel_rules._MOST_MOVES", 300)
    with pytest.raises(FenError, match="301 legal moves, more than 300"):
        rules.position("2k5/8/8/8/8/8/8/4K3[QRBNPqrbnp] w - - 0 1")


def test_tables_are_kept_and_not_shared() -> None:
    spec = load_spec(builtin_specs()["minixiangqi"])
    first = compile_tables(spec)
    first[0]["squares"] = 0
    assert compile_tables(spec)[0]["squares"] == 49
    stalemate = spec.rules.model_copy(update={"stalemate": "win"})
    other = spec.model_copy(update={"rules": stalemate})
    assert compile_tables(other).tobytes() != compile_tables(spec).tobytes()
