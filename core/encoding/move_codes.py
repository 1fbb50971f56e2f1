"""Moves as 16-bit codes, as stored in game stores.

A code is the move's action in the derived policy map, as seen by the mover. This map has a plane for
every displacement of any piece, every promotion choice and every drop, and one for `pass` if the spec's
policy has it. So each legal move has exactly one code, independent of the `policy:` used in training. A
code is decoded without generating the legal moves, which makes replay seventy times faster than storing
the index of the move in the list of legal moves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding import encoding_kernels as kernels
from variant_ai.core.encoding.encoding_kernels import PolicyTables
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
    """Encodes move integers as u16 codes and decodes them."""

    def __init__(self, spec: VariantSpec) -> None:
        """Raises SpecError if the derived policy has more than 65,536 actions."""
        self.spec = spec
        self.policy = PolicyMap(spec, "derived")
        self.record: PolicyTables = self.policy.record
        """Tables for compiled code (`action_of`, `move_of`)."""

    def encode(self, position: Position, move: int) -> int:
        """Return the code of a legal move.

        Raises MoveError if no piece of the spec has such a move (rules on `fairy` may allow more than
        the spec's Betza notation), and for moves that need more than 16 bits: with a wall placed on a
        free choice of squares, or a piece dropped with its promoted side up.
        """
        extra = move_extra(move)
        if extra and (
            move_kind(move) == DROP if extra == TURNED else extra != 1 + move_origin(move)
        ):
            raise MoveError(
                f"{describe(move, self.spec)} also places a wall or drops a promoted piece, which "
                "does not fit into the 16 bits of a move in a game store; games of this variant can "
                "be played but not stored"
            )
        code = int(kernels.action_of(self.record, position, 0, int(move)))
        if code < 0:
            raise MoveError(
                f"{describe(move, self.spec)} is a displacement that no piece of "
                f"{self.spec.variant} has; add it to the piece's `moves:` in the spec"
            )
        return code

    def decode(self, position: Position, code: int) -> int:
        """Return the move of a code. Legality is not checked. Raises MoveError if the mover has no
        piece for it."""
        move = int(kernels.move_of(self.record, position, 0, int(code)))
        if move < 0:
            raise MoveError(
                f"code {code} is not a move in this position; it may belong to another game"
            )
        return move

    def encode_game(self, rules: Rules, start: Position, moves: Sequence[int]) -> Codes:
        """Encode a whole game from its start position. Raises MoveError with the ply."""
        codes = np.empty(len(moves), np.uint16)
        position, done = start.copy(), 0
        if is_compiled(rules):
            listed = np.ascontiguousarray(moves, np.int32)
            done = kernels.encode_game_into(rules.tables, self.record, position, listed, codes)
        for ply in range(int(done), len(moves)):
            try:
                codes[ply] = self.encode(position, moves[ply])
            except MoveError as error:
                raise MoveError(f"ply {ply + 1}: {error}") from None
            position = rules.play(position, moves[ply])
        return codes

    def decode_game(self, rules: Rules, start: Position, codes: Codes) -> list[int]:
        """Decode a whole game from its start position. Raises MoveError with the ply."""
        moves = np.empty(len(codes), np.int32)
        position, done = start.copy(), 0
        if is_compiled(rules):
            given = np.require(codes, np.uint16, ["C", "W", "A"])
            done = kernels.decode_game_into(rules.tables, self.record, position, given, moves)
        for ply in range(int(done), len(codes)):
            try:
                moves[ply] = self.decode(position, int(codes[ply]))
            except MoveError as error:
                raise MoveError(f"ply {ply + 1}: {error}") from None
            position = rules.play(position, int(moves[ply]))
        listed: list[int] = moves.tolist()
        return listed


def describe(move: int, spec: VariantSpec) -> str:
    """Describe a move integer in an error message, without a position."""
    files = spec.board.files
    names = ("normal", "promotion", "drop", "castling", "en passant", "double step", "pass")
    kind = names[move_kind(move)] if move_kind(move) < len(names) else f"kind {move_kind(move)}"
    origin, target = (square_name(s, files) for s in (move_origin(move), move_target(move)))
    where = target if kind == "drop" else origin + target
    argument = f" {move_argument(move)}" if move_argument(move) else ""
    return f"move {move} ({kind} {where}{argument})"
