"""Moves as 16-bit codes: how game stores write them down.

A code is the move's action in the derived policy map, seen by the mover. That map has a plane for
every displacement any piece can make, every promotion choice and every drop, and one for `pass`
where the spec's policy has it, so each legal move of each position has exactly one code, whatever
`policy:` the spec trains with; and a code is turned back into a move without generating the legal
ones, which makes replay seventy times faster than numbering moves among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding import encoding_kernels as kernels
from variant_ai.core.encoding.encoding_tables import PolicyTables
from variant_ai.core.encoding.policy_planes import PolicyMap
from variant_ai.core.errors import MoveError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.rules.position import (
    DROP,
    TURNED,
    Position,
    move_argument,
    move_extra,
    move_kind,
    move_origin,
    move_target,
)
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import square_name

Codes = NDArray[np.uint16]


class MoveCodec:
    """Move integers to u16 codes and back, for every legal move of every position."""

    def __init__(self, spec: VariantSpec) -> None:
        """Raises SpecError where the derived policy has more than 65,536 actions."""
        self.spec = spec
        self.policy = PolicyMap(spec, "derived")
        self.record: PolicyTables = self.policy.record
        """For compiled code (`action_of`, `move_of`)."""

    def encode(self, position: Position, move: int) -> int:
        """The code of a legal move. Raises MoveError where the pieces of the spec have no such
        move (rules on `fairy` may know more than the spec's Betza words), and for moves that are
        more than a piece on its way: a wall put up anywhere, a piece dropped turned over."""
        extra = move_extra(move)
        if extra and (
            move_kind(move) == DROP if extra == TURNED else extra != 1 + move_origin(move)
        ):
            raise MoveError(
                f"{describe(move, self.spec)} also says where a wall is put up or which side of a "
                "piece is up, and the 16 bits that a game store has for a move cannot hold that; "
                "games of this variant can be played, not stored"
            )
        code = int(kernels.action_of(self.record, position, 0, int(move)))
        if code < 0:
            raise MoveError(
                f"{describe(move, self.spec)} is a displacement that no piece of "
                f"{self.spec.variant} has; add it to the piece's `moves:`"
            )
        return code

    def decode(self, position: Position, code: int) -> int:
        """The move of a code. Raises MoveError where the mover has no piece that could make it;
        legality is not asked."""
        move = int(kernels.move_of(self.record, position, 0, int(code)))
        if move < 0:
            raise MoveError(f"code {code} is no move of this position; codes of another game?")
        return move

    def encode_game(self, rules: Rules, start: Position, moves: Sequence[int]) -> Codes:
        """Codes of a whole game from its start position. Raises MoveError naming the ply."""
        codes = np.empty(len(moves), np.uint16)
        position, done = start.copy(), 0
        if is_compiled(rules):
            listed = np.ascontiguousarray(moves, np.int32)
            done = kernels.encode_game_into(rules.tables, self.record, position, listed, codes)
        for ply in range(int(done), len(moves)):
            try:
                codes[ply] = self.encode(position, moves[ply])
            except MoveError as error:
                raise MoveError(f"ply {ply}: {error}") from None
            position = rules.play(position, moves[ply])
        return codes

    def decode_game(self, rules: Rules, start: Position, codes: Codes) -> list[int]:
        """Moves of a whole game from its start position. Raises MoveError naming the ply."""
        moves = np.empty(len(codes), np.int32)
        position, done = start.copy(), 0
        if is_compiled(rules):
            given = np.require(codes, np.uint16, ["C", "W", "A"])
            done = kernels.decode_game_into(rules.tables, self.record, position, given, moves)
        for ply in range(int(done), len(codes)):
            try:
                moves[ply] = self.decode(position, int(codes[ply]))
            except MoveError as error:
                raise MoveError(f"ply {ply}: {error}") from None
            position = rules.play(position, int(moves[ply]))
        listed: list[int] = moves.tolist()
        return listed


def describe(move: int, spec: VariantSpec) -> str:
    """A move integer in words for messages, read without a position."""
    files = spec.board.files
    names = ("normal", "promotion", "drop", "castling", "en passant", "double step", "pass")
    kind = names[move_kind(move)] if move_kind(move) < len(names) else f"kind {move_kind(move)}"
    origin, target = (square_name(s, files) for s in (move_origin(move), move_target(move)))
    where = target if kind == "drop" else origin + target
    argument = f" {move_argument(move)}" if move_argument(move) else ""
    return f"move {move} ({kind} {where}{argument})"
