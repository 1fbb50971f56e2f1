"""Input planes: where the pieces stand, and how often each side attacks each square."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from variant_ai.core.encoding.interface import InputEncoder, Planes
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import (
    DROP,
    Position,
    move_kind,
    move_target,
    piece_colour,
    piece_type,
)
from variant_ai.core.spec.zones import seen_by

MOST_ATTACKS = 4.0
"""Attacks of one square that fill its plane."""


class AttackMaps(InputEncoder):
    """A plane for each kind of piece of either side, then one of legal moves' targets per side."""

    name = "attack-maps"

    @cached_property
    def types(self) -> PieceTypes:
        return PieceTypes(self.spec)

    @cached_property
    def rules(self) -> Rules:
        return make_rules(self.spec)

    @property
    def planes(self) -> tuple[str, ...]:
        names = [kind.symbol for kind in self.types.all]
        pieces = [f"{who} {name}" for who in ("my", "their") for name in names]
        return (*pieces, "squares I attack", "squares they attack")

    def encode(
        self, positions: Position, out: Planes, *, mirrored: bool = False, raw: bool = False
    ) -> None:
        out[:] = 0
        for k in range(len(positions)):
            self._encode_one(positions[k : k + 1], out[k], raw)
        if mirrored:
            out[:] = out[..., ::-1].copy()

    def _encode_one(self, position: Position, planes: Planes, raw: bool) -> None:
        board, kinds = self.spec.board, len(self.types.all)
        mover = int(position[0]["side"])

        def place(square: int) -> tuple[int, int]:
            """(row, column) of a square as the side to move sees it."""
            return divmod(seen_by(square, mover, board), board.files)

        squares = board.files * board.ranks
        for square, code in enumerate(position[0]["board"][:squares].tolist()):
            if code:
                theirs = piece_colour(code) != mover
                planes[(theirs * kinds + piece_type(code), *place(square))] = 1
        for plane, side in ((2 * kinds, mover), (2 * kinds + 1, 1 - mover)):
            seen = position.copy()
            seen["side"] = side
            for move in self.rules.legal_moves(seen).tolist():
                if move_kind(move) != DROP:
                    planes[(plane, *place(move_target(move)))] += 1
        if not raw:
            planes[2 * kinds :] /= MOST_ATTACKS

    @property
    def scale(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        scale = np.ones(len(self.planes))
        scale[-2:] = MOST_ATTACKS
        return scale
