"""Rules engines that break a promise are found, and the project's own keep them all."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from variant_ai.core.rules.interface import Outcome
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.position import Position
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.testing import check_rules_engine

MINI = load_spec(builtin_specs()["dobutsu"])


class Unsorted(KernelRules):
    """Gives its moves in another order each time."""

    def legal_moves(self, position: Position) -> NDArray[np.int32]:
        self.turn = not getattr(self, "turn", False)
        return super().legal_moves(position)[:: 1 if self.turn else -1]


class Twice(KernelRules):
    def legal_moves(self, position: Position) -> NDArray[np.int32]:
        moves = super().legal_moves(position)
        return np.concatenate([moves, moves[:1]])


class Writing(KernelRules):
    """Plays in the position that it is given."""

    def play(self, position: Position, move: int) -> Position:
        after = super().play(position, move)
        position[0] = after[0]
        return after


class Drifting(KernelRules):
    """A key that depends on the moves played."""

    def play(self, position: Position, move: int) -> Position:
        after = super().play(position, move)
        after["key"] += np.uint64(1)
        return after


class OneKey(KernelRules):
    def position(self, fen: str | None = None) -> Position:
        position = super().position(fen)
        position["key"] = 7
        return position

    def play(self, position: Position, move: int) -> Position:
        after = super().play(position, move)
        after["key"] = 7
        return after


class Endless(KernelRules):
    def outcome(self, position: Position) -> Outcome | None:
        return None


class Talkative(KernelRules):
    def outcome(self, position: Position) -> Outcome | None:
        ended = super().outcome(position)
        return ended and Outcome(ended.winner, "the king is dead")


class Crashing(KernelRules):
    def position(self, fen: str | None = None) -> Position:
        if fen is not None and "/" not in fen:
            raise IndexError("no slash")
        return super().position(fen)


@pytest.mark.parametrize(
    ("engine", "wrong"),
    [
        (Unsorted, "another order of moves"),
        (Twice, "two moves are written"),
        (Writing, "play changed the position"),
        (Drifting, "key: |two keys of one position"),
        (OneKey, "one key of two positions"),
        (Endless, "no legal move, but no outcome"),
        (Talkative, "reason is 'the king is dead'; accepted: checkmate"),
        (Crashing, "damaged FEN raises IndexError, not FenError"),
    ],
)
def test_a_broken_promise_is_found(engine: type[KernelRules], wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        check_rules_engine(engine, MINI)


def test_the_projects_own_engines_keep_them() -> None:
    check_rules_engine(KernelRules, MINI)


def test_what_is_no_engine_is_named() -> None:
    def other(spec: VariantSpec) -> KernelRules:
        return KernelRules(spec.model_copy())

    with pytest.raises(AssertionError, match="made a list, not Rules"):
        check_rules_engine(lambda spec: [], MINI)  # type: ignore[arg-type,return-value]
    with pytest.raises(AssertionError, match="not the spec that was given"):
        check_rules_engine(other, MINI)
