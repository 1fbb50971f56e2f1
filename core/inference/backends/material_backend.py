"""`MaterialEvaluator`: counts the pieces, for variants that have no net."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import VariantAIError
from variant_ai.core.inference.interface import Evaluation, Evaluator, ModelInfo
from variant_ai.core.rules.piece_values import capture_gains, piece_values
from variant_ai.core.spec.plane_layout import input_planes
from variant_ai.core.spec.schema import SPEC_PLANES, VariantSpec

Floats = NDArray[np.float32]


class MaterialEvaluator(Evaluator):
    """Returns tanh of the balance of the pieces on the board and in the hands, and equal logits.

    It reads planes as a net does. The search looks for material with the same values (`piece_gains`).
    """

    name = "material"

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
        self.weights = plane_weights(spec)
        self.piece_gains = capture_gains(spec)

    def evaluate(self, planes: Floats) -> Evaluation:
        batch = planes.shape[0]
        balance = (
            planes.reshape(batch, len(self.weights), -1).sum(2, dtype=np.float32) @ self.weights
        )
        return Evaluation(np.tanh(balance), np.zeros((batch, self.actions), np.float32))


def plane_weights(spec: VariantSpec) -> Floats:
    """Return the value of each input plane for a sum over its squares, [C]; for the player to move."""
    values = piece_values(spec)
    squares = spec.board.files * spec.board.ranks
    weights = np.zeros(len(input_planes(spec)), np.float32)
    for plane in input_planes(spec):
        if plane.item in ("pieces", "hand") and plane.piece is not None:
            sign = 1 if plane.who == "me" else -1
            # a hand's count, divided by `max`, stands on every square
            share = plane.max / squares if plane.item == "hand" else 1.0
            weights[plane.index] = sign * values[plane.piece] * share
    return weights
