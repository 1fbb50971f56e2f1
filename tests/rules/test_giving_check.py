"""Which moves give check, compared with playing each move and asking."""

from __future__ import annotations

import random

import numpy as np
import pytest

from variant_ai.core.rules.kernel.giving_check import checks_into, new_checks
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.position import DROP, Position, move_kind, new_position, same_position
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec

POSITIONS = 250
PLIES = 120
"""After which a random game is given up."""


def menagerie() -> VariantSpec:
    """Chess with movements that no spec of the project has: grasshoppers, nightriders, cannons on a
    chess board, elephants and horses with legs, and a scout that is a bishop in the upper half only,
    so that it may give check where it goes though it gave none on the way."""
    chess = load_spec(builtin_specs()["chess"]).model_dump(by_alias=True)
    pieces = {letter: chess["pieces"][letter] for letter in "QK"}
    words: dict[str, tuple[str, dict[str, str]]] = {
        "P": ("fmWfcF", {}),
        "G": ("gR", {}),
        "N": ("NN", {}),
        "C": ("mRcpR", {}),
        "E": ("nA", {}),
        "H": ("nN", {}),
        "R": ("R", {}),
        "S": ("mBcF", {"rank 5-8": "B"}),
    }
    for letter, (moves, zones) in words.items():
        pieces[letter] = {"name": letter, "moves": moves, "from": zones}
    start = "rcnskghe/pppppppp/8/8/8/8/PPPPPPPP/RCNSKGHE w - - 0 1"
    rules = {**chess["rules"], "start": start, "insufficient_material": False}
    data = {**chess, "variant": "menagerie", "fairy": "", "rules": rules, "pieces": pieces}
    data["castling"] = {}
    data["input"] = [{"pieces": "me"}, {"pieces": "them"}]
    return VariantSpec.model_validate(data, strict=False)


def rules_of(name: str) -> KernelRules:
    spec = menagerie() if name == "menagerie" else load_spec(builtin_specs()[name])
    return KernelRules(spec)


class Asked:
    """The compiled answer; buffers are kept from one position to the next, as in the search."""

    def __init__(self, rules: KernelRules) -> None:
        self.rules = rules
        self.checks, self.trial = new_checks(), new_position()
        self.moves = np.zeros(1024, np.int32)
        self.gives = np.full(len(self.moves), 7, np.uint8)

    def __call__(self, position: Position) -> list[int]:
        """Moves that give check. They stand behind two others in the array."""
        legal = self.rules.legal_moves(position)
        count = len(legal)
        self.moves[2 : 2 + count] = legal
        before = position.copy()
        found = checks_into(
            self.rules.tables,
            position,
            0,
            self.moves,
            np.int64(2),
            np.int64(count),
            self.checks,
            self.trial,
            self.gives,
        )
        assert same_position(before, position)
        gives = self.gives[:count].tolist()
        assert set(gives) <= {0, 1} and found == sum(gives)
        return [int(move) for move, check in zip(legal, gives, strict=True) if check]


def played(rules: KernelRules, position: Position) -> list[int]:
    """Moves that give check, by playing every one."""
    legal = map(int, rules.legal_moves(position))
    return [move for move in legal if rules.in_check(rules.play(position, move))]


def texts(rules: KernelRules, moves: list[int]) -> list[str]:
    return sorted(uci(rules.types, rules.spec.board.files, move) for move in moves)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("crazyhouse", 200),
        ("xiangqi", 50),
        ("shogi", 200),
        ("grand", 100),
        ("capablanca", 100),
        ("makruk", 50),
        ("menagerie", 100),
    ],
)
def test_random_games(name: str, least: int) -> None:
    """`least`: checks met, fewer of which would prove little."""
    rules = rules_of(name)
    asked, rng = Asked(rules), random.Random(5)
    position, ply, found, dropped = rules.position(), 0, 0, 0
    for _ in range(POSITIONS):
        legal = [int(move) for move in rules.legal_moves(position)]
        if not legal or ply == PLIES:
            position, ply = rules.position(), 0
            continue
        checks = played(rules, position)
        assert texts(rules, asked(position)) == texts(rules, checks), rules.fen(position)
        found += len(checks)
        dropped += sum(move_kind(move) == DROP for move in checks)
        # A few checks keep the king on the run and the game open.
        move = rng.choice(checks if checks and rng.random() < 0.3 else legal)
        position, ply = rules.play(position, move), ply + 1
    assert found > least
    assert (dropped > 0) == (rules.spec.hands is not None)


@pytest.mark.parametrize(
    ("name", "fen", "checks"),
    [
        ("crazyhouse", "4k3/8/8/8/4N3/8/8/K3R3[] w - - 0 1", "e4c3 e4c5 e4d2 e4d6 e4f2 e4f6 e4g3 e4g5"),
        # en passant opens the fifth rank by two pieces; with the pawn on d5 alone it would stay shut
        ("crazyhouse", "8/8/8/R2pP2k/8/8/8/K7[] w - d6 0 1", "e5d6"),
        ("crazyhouse", "5k2/8/8/8/8/8/8/4K2R[] w K - 0 1", "e1g1 h1f1 h1h8"),
        ("crazyhouse", "6k1/P7/8/8/8/8/8/K7[] w - - 0 1", "a7a8q a7a8r"),
        ("crazyhouse", "7k/8/8/8/8/8/8/K7[PN] w - - 0 1", "N@f7 N@g6 P@g7"),
        # a screen for the cannon
        ("xiangqi", "4k4/9/9/9/R8/9/9/4C4/9/3K5 w - - 0 1", "a6a10 a6e6"),
        # of two screens either goes
        ("xiangqi", "4k4/9/4N4/9/4P4/9/9/4C4/9/3K5 w - - 0 1",
         "e6d6 e6f6 e8c7 e8c9 e8d10 e8d6 e8f10 e8f6 e8g7 e8g9"),
        # the soldier leaves the horse's leg, or attacks himself
        ("xiangqi", "4k4/3P5/3N5/9/9/9/9/9/9/3K5 w - - 0 1", "d9c9 d9d10 d9e9"),
        # the elephant is the hurdle that the grasshopper jumps, next to the king only
        ("menagerie", "4k3/8/8/2E5/8/8/4G3/K7 w - - 0 1", "c5e7"),
        # the king uncovers the rook, not on its own line
        ("crazyhouse", "8/8/8/8/R1K4k/8/8/8[] w - - 0 1", "c4b3 c4b5 c4c3 c4c5 c4d3 c4d5"),
        # from d4 the scout does not reach the king, from farther on it does
        ("menagerie", "8/8/8/8/3S4/8/1k6/7K w - - 0 1", "d4c3 d4e5 d4f6 d4g7 d4h8"),
    ],
)  # fmt: skip
def test_positions(name: str, fen: str, checks: str) -> None:
    rules = rules_of(name)
    position = rules.position(fen)
    assert texts(rules, played(rules, position)) == sorted(checks.split())
    assert texts(rules, Asked(rules)(position)) == sorted(checks.split())
