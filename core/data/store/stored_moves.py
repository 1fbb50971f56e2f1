"""Games as codes and back: the one place where a store meets the rules.

A store keeps moves as 16-bit codes (`MoveCodec`); turning them into move integers means playing
the game. Everything that only moves games about (merging, filtering, splitting, statistics, the
sampler's arrays) works on codes and never asks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import MoveError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.spec.schema import VariantSpec

if TYPE_CHECKING:
    from variant_ai.core.encoding import MoveCodec

Codes = NDArray[np.uint16]
MOST_STARTS = 4096
"""Start positions kept at hand."""


class GameCodec(Protocol):
    """Moves of a whole game to codes and back."""

    def start(self, fen: str | None) -> Position:
        """The position a game begins with; None is the variant's own. Raises FenError."""

    def encode(self, fen: str | None, moves: Sequence[int]) -> Codes:
        """Codes of the moves played from `fen`. Raises MoveError naming the ply, FenError."""

    def decode(self, fen: str | None, codes: Codes) -> list[int]:
        """Move integers of the codes. Raises MoveError naming the ply, FenError."""

    def encode_choices(
        self, fen: str | None, moves: Sequence[int], choices: Sequence[Sequence[int]]
    ) -> Codes:
        """Codes of any moves of the position before each ply, ply after ply. Errors as `encode`."""

    def decode_choices(
        self, fen: str | None, codes: Codes, counts: Sequence[int], choices: Codes
    ) -> list[int]:
        """Move integers of `choices`, of which `counts` says how many each ply of the game has.
        Errors as `decode`."""


class RulesCodec:
    """The real one: plays the game with the variant's rules, compiled where they are the kernel's."""

    def __init__(self, spec: VariantSpec, rules: Rules | None = None) -> None:
        self.spec = spec
        self._rules = rules
        self._starts: dict[str | None, Position] = {}

    @cached_property
    def rules(self) -> Rules:
        if self._rules is not None:
            return self._rules
        from variant_ai.core.rules import make_rules

        return make_rules(self.spec)

    @cached_property
    def _codec(self) -> MoveCodec:
        from variant_ai.core.encoding import MoveCodec

        return MoveCodec(self.spec)

    def start(self, fen: str | None) -> Position:
        if fen not in self._starts:
            if len(self._starts) >= MOST_STARTS:
                self._starts.clear()
            self._starts[fen] = self.rules.position(fen)
        return self._starts[fen]

    def encode(self, fen: str | None, moves: Sequence[int]) -> Codes:
        return self._codec.encode_game(self.rules, self.start(fen), moves)

    def decode(self, fen: str | None, codes: Codes) -> list[int]:
        return self._codec.decode_game(self.rules, self.start(fen), codes)

    def encode_choices(
        self, fen: str | None, moves: Sequence[int], choices: Sequence[Sequence[int]]
    ) -> Codes:
        codes = [
            self._at(ply, self._codec.encode, position, move)
            for ply, position in enumerate(self._before(fen, moves))
            for move in choices[ply]
        ]
        return np.array(codes, np.uint16)

    def decode_choices(
        self, fen: str | None, codes: Codes, counts: Sequence[int], choices: Codes
    ) -> list[int]:
        rest = iter(choices.tolist())
        return [
            self._at(ply, self._codec.decode, position, code)
            for ply, position in enumerate(self._before(fen, self.decode(fen, codes)))
            for code in islice(rest, counts[ply])
        ]

    def _before(self, fen: str | None, moves: Sequence[int]) -> Iterator[Position]:
        """The position before each ply."""
        position = self.start(fen)
        for move in moves:
            yield position
            position = self.rules.play(position, move)

    def _at(
        self, ply: int, work: Callable[[Position, int], int], position: Position, n: int
    ) -> int:
        try:
            return work(position, n)
        except MoveError as error:
            raise MoveError(f"ply {ply}: a move that was searched: {error}") from None


def start_positions(codec: GameCodec, fens: Sequence[str | None]) -> Position:
    """Records of several start positions, shape (len(fens),), dtype POSITION."""
    positions = np.zeros(len(fens), POSITION)
    for i, fen in enumerate(fens):
        positions[i] = codec.start(fen)[0]
    return positions


def codes_hash(spec: VariantSpec) -> str:
    """What the codes of a variant mean, as 16 hex digits: its derived policy planes in order.

    Equal rules give equal planes as long as planes are derived in the same way; a store carries
    this hash too, so that a change in that way is noticed.
    """
    from variant_ai.core.spec.plane_layout import policy_planes

    planes = [(p.kind, p.dx, p.dy, p.piece) for p in policy_planes(spec, "derived")]
    board = (spec.board.files, spec.board.ranks, spec.board.sides)
    return hashlib.sha256(json.dumps([board, planes]).encode()).hexdigest()[:16]
