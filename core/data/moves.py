"""Games as codes and back: the one place where a store meets the rules.

A store keeps moves as 16-bit codes (`MoveCodec`); turning them into move integers means playing
the game. Everything that only moves games about (merging, filtering, splitting, statistics, the
sampler's arrays) works on codes and never asks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.specs.schema import VariantSpec

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
    from variant_ai.specs.planes import policy_planes

    planes = [(p.kind, p.dx, p.dy, p.piece) for p in policy_planes(spec, "derived")]
    board = (spec.board.files, spec.board.ranks, spec.board.sides)
    return hashlib.sha256(json.dumps([board, planes]).encode()).hexdigest()[:16]
