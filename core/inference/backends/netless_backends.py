"""Evaluators without a net: uniform shows what search alone is worth, random is a floor, material plays variants
that have no net.

Rules and encoders are imported when a `MaterialEvaluator` is made: they would load compiled code.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import VariantAIError
from variant_ai.core.inference.interface import Evaluation, Evaluator, ModelInfo

if TYPE_CHECKING:
    from variant_ai.core.spec.schema import VariantSpec

Floats = NDArray[np.float32]


class UniformEvaluator(Evaluator):
    """Returns value 0 and equal logits for every position."""

    name = "uniform"
    is_uniform = True
    ranks_moves = False

    def __init__(self, planes_shape: tuple[int, int, int], actions: int) -> None:
        self.planes_shape = planes_shape
        self.actions = actions
        self.info = ModelInfo(source=self.name)

    def evaluate(self, planes: Floats) -> Evaluation:
        batch = planes.shape[0]
        return Evaluation(np.zeros(batch, np.float32), np.zeros((batch, self.actions), np.float32))


class RandomEvaluator(UniformEvaluator):
    """Returns random values and logits, always the same ones for the same planes and seed."""

    name = "random"
    is_uniform = False
    ranks_moves = True

    def __init__(self, planes_shape: tuple[int, int, int], actions: int, seed: int = 0) -> None:
        super().__init__(planes_shape, actions)
        self.seed = seed

    def evaluate(self, planes: Floats) -> Evaluation:
        batch = planes.shape[0]
        value = np.empty(batch, np.float32)
        policy = np.empty((batch, self.actions), np.float32)
        for i in range(batch):
            digest = hashlib.blake2b(np.ascontiguousarray(planes[i]).tobytes(), digest_size=8)
            rng = np.random.default_rng((self.seed, int.from_bytes(digest.digest(), "little")))
            value[i] = rng.uniform(-1, 1)
            policy[i] = rng.standard_normal(self.actions, np.float32)
        return Evaluation(value, policy)


class MaterialEvaluator(Evaluator):
    """Counts the pieces: returns b / (1 + |b|) for the balance b of the pieces, on their squares and in the hands, and equal
    logits.

    It reads planes as a net does. The search looks for material with the same values (`piece_gains`).
    """

    name = "material"
    ranks_moves = False

    def __init__(self, spec: VariantSpec) -> None:
        """Raises VariantAIError if the spec's planes are those of a plugin's encoder, which it cannot read."""
        from variant_ai.core.encoding import Encoder
        from variant_ai.core.rules.piece_values import capture_gains
        from variant_ai.core.spec.schema import SPEC_PLANES

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
    from variant_ai.core.rules.piece_values import piece_values, square_values
    from variant_ai.core.spec.plane_layout import input_planes
    from variant_ai.core.spec.zones import seen_by

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
