"""The base of rules engines in Python does what the kernel does, where a game leaves it alone."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from variant_ai.core.errors import FenError
from variant_ai.core.rules.interface import Outcome
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.plain_rules import PlainRules
from variant_ai.core.rules.position import (
    DROP,
    Position,
    make_move,
    move_kind,
    move_origin,
    move_target,
    piece_colour,
    piece_type,
    same_position,
)
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.testing import check_rules_engine


class Borrowed(PlainRules):
    """The kernel's moves and checks; captured pieces change sides if the variant has hands."""

    name = "borrowed"

    def __init__(self, spec: VariantSpec) -> None:
        super().__init__(spec)
        self.kernel = KernelRules(spec)

    def moves_of(self, position: Position) -> Iterable[int]:
        return iter(self.kernel.legal_moves(position).tolist())

    def change(self, position: Position, move: int) -> None:
        target = int(position["board"][0, move_target(move)])
        if target and move_kind(move) != DROP:
            hand = self.types.all[piece_type(target)].hand
            if hand >= 0:
                position["hands"][0, 1 - piece_colour(target), hand] += 1
        super().change(position, move)

    def end_of(self, position: Position) -> Outcome | None:
        return None

    def in_check(self, position: Position) -> bool:
        return self.kernel.in_check(position)

    def problem(self, position: Position) -> str:
        return "too many plies" if int(position["ply"][0]) > 1000 else ""


@pytest.mark.parametrize("name", ["minixiangqi", "minishogi"])
def test_it_agrees_with_the_kernel(name: str) -> None:
    spec = load_spec(builtin_specs()[name])
    plain, kernel, rng = Borrowed(spec), KernelRules(spec), random.Random(1)
    for _ in range(6):
        one, other = plain.position(), kernel.position()
        for _ in range(120):
            one["key"], other["key"] = 0, 0
            one["checks"], other["checks"] = 0, 0
            assert same_position(one, other), (plain.fen(one), kernel.fen(other))
            ended = kernel.outcome(other)
            assert plain.outcome(one) == ended
            if ended is not None:
                break
            move = rng.choice(kernel.legal_moves(other).tolist())
            one, other = plain.play(one, move), kernel.play(other, move)


def test_it_passes_the_kit() -> None:
    check_rules_engine(Borrowed, load_spec(builtin_specs()["minishogi"]), games=2)


def test_a_problem_of_a_fen_is_shown() -> None:
    rules = Borrowed(load_spec(builtin_specs()["minixiangqi"]))
    with pytest.raises(FenError, match="too many plies, in FEN 'rcnkncr/"):
        rules.position(rules.spec.rules.start.replace("0 1", "0 900"))


def test_a_move_changes_copies_only() -> None:
    rules = Borrowed(load_spec(builtin_specs()["minixiangqi"]))
    start = rules.position()
    before = start.copy()
    move = int(rules.legal_moves(start)[0])
    after = rules.play(start, move)
    assert same_position(start, before) and after.flags.writeable
    assert after["board"][0, move_origin(move)] == 0
    assert make_move(move_origin(move), move_target(move)) == move


@pytest.mark.parametrize(
    ("words", "fen"),
    [
        ({"checkmate": "win"}, "R5k1/5ppp/8/8/8/8/8/K7 b - - 0 1"),
        ({"checkmate": "draw"}, "R5k1/5ppp/8/8/8/8/8/K7 b - - 0 1"),
        ({"stalemate": "fewer pieces win"}, "k7/2Q5/8/8/8/8/8/K7 b - - 0 1"),
        ({"stalemate": "fewer pieces win"}, "k7/p1Q5/P7/8/8/8/8/K7 b - - 0 1"),
        ({"stalemate": "fewer pieces win"}, "k7/p1Q5/Pp6/1P6/p7/P7/1p6/1K6 b - - 0 1"),
    ],
)
def test_the_value_of_having_no_move_is_that_of_the_kernel(words: dict[str, str], fen: str) -> None:
    chess = load_spec(builtin_specs()["chess"])
    rules = {**words, "insufficient_material": False}
    if words.get("checkmate") == "draw":
        rules["stalemate"] = "loss"
    spec = chess.model_copy(update={"rules": chess.rules.model_copy(update=rules)})
    plain, kernel = Borrowed(spec), KernelRules(spec)
    ended = kernel.outcome(kernel.position(fen))
    assert ended is not None and plain.outcome(plain.position(fen)) == ended
