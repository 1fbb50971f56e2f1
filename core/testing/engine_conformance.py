"""Conformance of a rules engine with the interface `Rules`, without a judge.

`check_rules` compares an engine with Fairy-Stockfish. This check needs nothing but the engine, and finds
mistakes that would break search, stores or training. That the rules are those of the game must be
tested by the plugin itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from variant_ai.core.errors import FenError
from variant_ai.core.rules.interface import END_REASONS, Outcome, Rules
from variant_ai.core.rules.position import (
    NOT_IN_FEN,
    POSITION,
    Position,
    piece_type,
    same_position,
)
from variant_ai.core.rules.text.notation import UciNotation
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.testing.random_games import STYLES, random_move

DAMAGED = 40
"""Damaged FENs that are read."""
PLIES = 120


def check_rules_engine(
    make: Callable[[VariantSpec], Rules], spec: VariantSpec, *, games: int = 8, seed: int = 0
) -> None:
    """Positions are records that FENs preserve, moves are distinct and can be written, keys are equal
    for equal positions only, nothing that is given is changed, and ends have reasons.

    make: the `Rules` class, or a function of the spec. Plays random games, of 120 plies at most.
    Raises an AssertionError that describes the mistake and has the FEN.
    """
    rules = make(spec)
    assert isinstance(rules, Rules), f"made a {type(rules).__name__}, not Rules"
    assert getattr(rules, "name", ""), "the engine has no name"
    assert rules.spec is spec, "rules.spec is not the spec that was given"
    check = _Check(rules)
    rng = random.Random(seed)
    for _ in range(games):
        check.play_game(rng)
    check.start()
    check.damaged_fens(rng)
    check.threads()


class _Check:
    """The engine, and the positions seen."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.spec = rules, rules.spec
        self.squares = self.spec.board.squares
        self.keys: dict[str, int] = {}
        """Keys by FEN without counters."""
        self.owners: dict[int, tuple[bytes, int]] = {}
        """(board, side to move) by key."""
        self.seen: list[Position] = []

    def play_game(self, rng: random.Random) -> None:
        rules = self.rules
        position = rules.position()
        for _ in range(PLIES):
            legal = self.position(position)
            if rules.outcome(position) is not None:
                return
            move = random_move(rules, position, legal, rng.choice(STYLES), rng)
            position = self.move(position, move)

    def position(self, position: Position) -> list[int]:
        """Check a position that was reached; return its legal moves."""
        rules = self.rules
        assert getattr(position, "shape", None) == (1,), "a position is not of shape (1,)"
        assert position.dtype == POSITION, f"a position has the type {position.dtype}"
        fen = rules.fen(position)
        board = position["board"][0]
        assert not board[self.squares :].any(), f"pieces beyond the board (FEN {fen})"
        types = len(rules.types)
        wrong = [int(c) for c in board[board != 0] if c < 0 or piece_type(int(c)) >= types]
        assert not wrong, f"{wrong[0]} is not the code of a piece (FEN {fen})"
        before = position.copy()
        legal = rules.legal_moves(position)
        kind = getattr(legal, "dtype", None), getattr(legal, "ndim", None)
        assert kind == (np.int32, 1), f"legal_moves must be an int32 array, shape (n,) (FEN {fen})"
        moves: list[int] = legal.tolist()
        assert rules.legal_moves(position).tolist() == moves, f"another order of moves (FEN {fen})"
        self._texts(position, moves, fen)
        check = rules.in_check(position)
        assert isinstance(check, (bool, np.bool_)), f"in_check gives {check!r}, not a bool"
        self._outcome(position, moves, fen)
        self._fen(position, moves, fen)
        assert same_position(before, position), f"looking at a position changed it (FEN {fen})"
        self.seen.append(position)
        return moves

    def _texts(self, position: Position, moves: list[int], fen: str) -> None:
        texts: dict[str, int] = {}
        for move in moves:
            text = self.rules.uci(move)
            assert text not in texts, f"two moves are written {text} (FEN {fen})"
            texts[text] = move
        for text, move in texts.items():
            read = UciNotation().read(self.rules, position, text)
            assert read == move, f"{text} is read back as {self.rules.uci(read)} (FEN {fen})"

    def _outcome(self, position: Position, moves: list[int], fen: str) -> None:
        outcome = self.rules.outcome(position)
        if outcome is None:
            assert moves, f"there is no legal move, but no outcome either (FEN {fen})"
            return
        assert isinstance(outcome, Outcome), f"outcome gives a {type(outcome).__name__}"
        assert outcome.winner in (None, 0, 1), f"winner {outcome.winner!r} (FEN {fen})"
        assert outcome.reason in END_REASONS, (
            f"an outcome's reason is {outcome.reason!r}; accepted: {', '.join(END_REASONS)}"
        )
        assert self.rules.outcome(position) == outcome, f"two outcomes (FEN {fen})"

    def _fen(self, position: Position, moves: list[int], fen: str) -> None:
        try:
            again = self.rules.position(fen)
        except FenError as error:
            # a position in which the game is over may be one that nobody can play from
            assert self.rules.outcome(position) is not None, f"the engine rejects its FEN: {error}"
            return
        assert self.rules.fen(again) == fen, f"{fen} is written back as {self.rules.fen(again)}"
        for name in POSITION.names or ():
            if name not in NOT_IN_FEN:
                here, there = position[0][name], again[0][name]
                assert np.array_equal(here, there), (
                    f"{name}: {here} after the moves, {there} by FEN"
                )
        if position[0]["passes"] > 1:
            return  # two passes have ended the game, which a FEN does not show
        assert sorted(self.rules.legal_moves(again).tolist()) == sorted(moves), (
            f"other legal moves after reading the FEN {fen}"
        )
        key = int(position["key"][0])
        text = " ".join(fen.split()[:-2])
        assert self.keys.setdefault(text, key) == key, f"two keys of one position (FEN {fen})"
        owner = (position["board"][0].tobytes(), int(position["side"][0]))
        assert self.owners.setdefault(key, owner) == owner, f"one key of two positions (FEN {fen})"

    def move(self, position: Position, move: int) -> Position:
        """Play a move and check the position after it."""
        fen, text = self.rules.fen(position), self.rules.uci(move)
        before = position.copy()
        after = self.rules.play(position, move)
        where = f"after {text} (FEN {fen})"
        assert same_position(before, position), f"play changed the position it was given, {where}"
        assert int(after["side"][0]) == 1 - int(before["side"][0]), f"the same side moves, {where}"
        assert int(after["ply"][0]) == int(before["ply"][0]) + 1, f"ply is not one more, {where}"
        assert int(after["repetitions"][0]) == 0, f"repetitions is not 0, {where}"
        again = self.rules.play(position, move)
        assert same_position(after, again), f"played again, another position, {where}"
        return after

    def start(self) -> None:
        """The start position is the spec's, and nobody can change it."""
        start = self.rules.position()
        given = self.rules.position(self.spec.rules.start)
        assert same_position(start, given), "position() and that of `rules.start` differ"
        start["board"] = 0
        assert same_position(self.rules.position(), given), "the start position can be changed"

    def damaged_fens(self, rng: random.Random) -> None:
        """A damaged FEN is a position or a FenError, and nothing else."""
        fen = self.rules.fen(rng.choice(self.seen))
        for _ in range(DAMAGED):
            at = rng.randrange(len(fen))
            text = fen[:at] + rng.choice(["", "/", "9", "K", "x", "\0", "é", " "]) + fen[at + 1 :]
            self._read(text)
        for text in ("", " ", "w", "8/8", "x" * 5000, fen.replace(" w ", " q ")):
            self._read(text)

    def _read(self, text: str) -> None:
        try:
            self.rules.position(text)
        except FenError:
            pass
        except Exception as error:
            raise AssertionError(
                f"a damaged FEN raises {type(error).__name__}, not FenError: {text[:200]!r}"
            ) from error

    def threads(self) -> None:
        """Several threads get the same moves as one."""
        some = self.seen[:64]
        alone = [self.rules.legal_moves(position).tolist() for position in some]
        with ThreadPoolExecutor(4) as pool:
            together = [m.tolist() for m in pool.map(self.rules.legal_moves, some)]
        assert together == alone, "threads that share the rules get other moves"
