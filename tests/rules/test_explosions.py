"""Captures that explode, in the kernel, compared with pyffish in positions made for it."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from variant_ai.core.errors import FenError, SpecError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.giving_check import checks_into, new_checks
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.position import new_position
from variant_ai.core.rules.text.notation import UciNotation, uci
from variant_ai.core.spec.catalogue import builtin_specs
from variant_ai.core.spec.loader import load_spec
from variant_ai.core.spec.rule_words import Win

POSITIONS = 500


@pytest.fixture(scope="module")
def atomic() -> KernelRules:
    rules = make_rules(load_spec(builtin_specs()["atomic"]))
    assert isinstance(rules, KernelRules)
    return rules


def played(rules: Rules, fen: str, text: str) -> np.ndarray[Any, Any]:
    position = rules.position(fen)
    return rules.play(position, UciNotation().read(rules, position, text))


def random_fen(chance: random.Random) -> str:
    """Kings close to each other, often with rooks at home, and up to twelve more pieces."""
    board: dict[int, str] = {}
    king = chance.choice([4, chance.randrange(64)])
    board[king] = "K"
    if king == 4:
        board |= {rook: "R" for rook in (0, 7) if chance.random() < 0.8}
    rights = "KQ"[: 2 if {0, 7} <= board.keys() else 0] if king == 4 else ""
    reach = chance.choice([1, 2, 3, 7])
    near = [
        s for s in range(64)
        if s not in board and max(abs(s % 8 - king % 8), abs(s // 8 - king // 8)) <= reach
    ]  # fmt: skip
    board[chance.choice(near)] = "k"
    for _ in range(chance.randint(2, 12)):
        square, piece = chance.randrange(64), chance.choice("QRBNPPqrbnpp")
        if square not in board and not (piece in "Pp" and square // 8 in (0, 7)):
            board[square] = piece
    ranks = ["".join(board.get(8 * rank + file, "1") for file in range(8)) for rank in range(8)]
    rows = re.sub("1+", lambda empty: str(len(empty[0])), "/".join(reversed(ranks)))
    return f"{rows} {chance.choice('wb')} {rights or '-'} - 0 1"


@pytest.mark.slow
def test_moves_checks_and_boards_are_those_of_pyffish(atomic: KernelRules) -> None:
    pyffish = pytest.importorskip("pyffish")
    chance, compared, touching = random.Random(7), 0, 0
    for fen in (random_fen(chance) for _ in range(2 * POSITIONS)):
        try:
            position = atomic.position(fen)
        except FenError:  # the side that has moved is in check
            continue
        compared += 1
        one, other = (divmod(int(king), 8) for king in position["kings"][0])
        touching += max(abs(one[0] - other[0]), abs(one[1] - other[1])) == 1
        moves = atomic.legal_moves(position).tolist()
        texts = {move: uci(atomic.types, 8, move) for move in moves}
        assert sorted(texts.values()) == sorted(pyffish.legal_moves("atomic", fen, [])), fen
        assert atomic.in_check(position) == pyffish.gives_check("atomic", fen, []), fen
        for move in chance.sample(moves, min(3, len(moves))):
            after, text = atomic.play(position, move), texts[move]
            expected = pyffish.get_fen("atomic", fen, [text])
            assert atomic.fen(after).split()[:3] == expected.split()[:3], (fen, text)
            assert atomic.in_check(after) == pyffish.gives_check("atomic", fen, [text]), (fen, text)
    assert compared > POSITIONS and touching > POSITIONS // 20


def test_checks_of_all_moves_at_once_are_those_of_single_moves(atomic: KernelRules) -> None:
    chance, compared = random.Random(3), 0
    gives = np.zeros(2048, np.uint8)
    for _ in range(POSITIONS):
        try:
            position = atomic.position(random_fen(chance))
        except FenError:
            continue
        compared += 1
        moves = atomic.legal_moves(position)
        count = len(moves)
        trial, work = new_position(), new_checks()
        checks_into(atomic.tables, position, 0, moves, 0, count, work, trial, gives)
        after = [atomic.play(position, int(move)) for move in moves]
        side = int(position["side"][0])
        single = [atomic.in_check(one) or one["kings"][0, 1 - side] < 0 for one in after]
        assert gives[:count].tolist() == single
    assert compared > POSITIONS // 2


def test_an_explosion_spares_pawns_and_takes_castling_rights(atomic: KernelRules) -> None:
    fen = "r3k3/8/8/8/8/8/1q3P2/R3K2R b KQ - 0 1"
    after = played(
        atomic, fen, "b2f2"
    )  # the captured pawn and the queen go, and the king with them
    assert atomic.fen(after).startswith("r3k3/8/8/8/8/8/8/R6R w - ")
    outcome = atomic.outcome(after)
    assert outcome is not None and (outcome.winner, outcome.reason) == (1, "variant win")
    assert len(atomic.legal_moves(after)) == 0
    corner = played(atomic, "4k3/8/8/3b4/8/8/6PP/4K2R b K - 0 1", "d5g2")
    assert atomic.fen(corner).startswith("4k3/8/8/8/8/8/7P/4K3 w - ")


def test_a_king_beside_the_other_is_not_in_check(atomic: KernelRules) -> None:
    assert not atomic.in_check(atomic.position("8/8/8/3kK2r/8/8/8/8 w - - 0 1"))
    assert atomic.in_check(atomic.position("8/8/8/k3K2r/8/8/8/8 w - - 0 1"))


def test_positions_after_an_explosion_can_be_read_again(atomic: KernelRules) -> None:
    position = atomic.position("r3k3/8/8/8/8/8/8/R6R w - - 0 2")
    assert position["kings"][0].tolist() == [-1, 60]
    outcome = atomic.outcome(position)
    assert outcome is not None and outcome.winner == 1


def test_a_royal_king_that_explodes_can_be_read_back_too() -> None:
    """As drafts have it, which find that the king is royal."""
    spec = load_spec(builtin_specs()["chess"])
    words = {"explodes": True, "wins": (Win(extinct="K"),), "insufficient_material": False}
    rules = KernelRules(spec.model_copy(update={"rules": spec.rules.model_copy(update=words)}))
    position = rules.position("r3k3/8/8/8/8/8/8/R6R w - - 0 2")
    outcome = rules.outcome(position)
    assert outcome is not None and outcome.winner == 1
    assert rules.fen(position) == "r3k3/8/8/8/8/8/8/R6R w - - 0 2"


def test_keys_after_explosions_are_those_from_scratch(atomic: KernelRules) -> None:
    chance = random.Random(1)
    for _ in range(20):
        position = atomic.position()
        for _ in range(60):
            moves = atomic.legal_moves(position)
            if not len(moves) or atomic.outcome(position) is not None:
                break
            position = atomic.play(position, int(chance.choice(moves.tolist())))
            again = atomic.position(atomic.fen(position))
            assert position["key"] == again["key"], atomic.fen(position)


def test_explosions_need_a_king_whose_loss_loses() -> None:
    spec = load_spec(builtin_specs()["chess"])
    explodes = spec.rules.model_copy(update={"explodes": True})
    with pytest.raises(
        SpecError, match=r"no rule for `explodes: true` without `wins: \[\{extinct: K"
    ):
        KernelRules(spec.model_copy(update={"rules": explodes}))
