"""`MaterialEvaluator`: counts the pieces, for variants that have no net."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import VariantAIError
from variant_ai.core.inference.interface import Evaluation, Evaluator, ModelInfo
from variant_ai.core.rules.piece_values import capture_gains, piece_values, square_values
from variant_ai.core.spec.plane_layout import input_planes
from variant_ai.core.spec.schema import SPEC_PLANES, VariantSpec
from variant_ai.core.spec.zones import seen_by

Floats = NDArray[np.float32]


class MaterialEvaluator(Evaluator):
    """Returns b / (1 + |b|) for the balance b of the pieces, on their squares and in the hands, and equal
    logits.

    It reads planes as a net does. The search looks for material with the same values (`piece_gains`).
    """

    name = "material"
    ranks_moves = False

    def __init__(self, spec: VariantSpec) -> None:
        """Raises VariantAIError if the spec's planes are those of a plugin's encoder, which it cannot read."""
        if spec.encoder.input != SPEC_PLANES:
            raise VariantAIError(
                f"evaluator 'material' reads the planes of `input:`, not those of the encoder "
                f"{spec.encoder.input!r}; use the evaluator 'uniform'"
            )
        encoder = Encoder(spec)
        self.planes_shape, self.actions = encoder.shape, encoder.actions
        self.info = ModelInfo(source=self.name)
        self.weights = plane_weights(spec).reshape(-1)
        self.piece_gains = capture_gains(spec)

    def evaluate(self, planes: Floats) -> Evaluation:
        batch = planes.shape[0]
        # flatter than tanh: with much more material it still matters to win more
        balance = planes.reshape(batch, len(self.weights)) @ self.weights
        return Evaluation(
            balance / (1 + np.abs(balance)), np.zeros((batch, self.actions), np.float32)
        )


def plane_weights(spec: VariantSpec) -> Floats:
    """Return the value of each square of each input plane for the player to move, [C, H, W]."""
    values, on_squares = piece_values(spec), square_values(spec)
    board = spec.board
    turned = [seen_by(square, 1, board) for square in range(board.squares)]
    planes = input_planes(spec)
    weights = np.zeros((len(planes), board.squares), np.float32)
    for plane in planes:
        if plane.piece is None or plane.item not in ("pieces", "hand"):
            continue
        sign = 1 if plane.who == "me" else -1
        if plane.item == "hand":  # the count, divided by `max`, stands on every square
            weights[plane.index] = sign * values[plane.piece] * plane.max / board.squares
        else:
            seen = on_squares[plane.piece]
            weights[plane.index] = sign * (seen if plane.who == "me" else seen[turned])
    return weights.reshape(-1, board.ranks, board.files)
