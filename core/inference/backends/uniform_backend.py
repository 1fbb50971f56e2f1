"""Evaluators that know nothing: uniform shows what search alone is worth, random is a floor."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.inference.interface import Evaluation, Evaluator, ModelInfo


class UniformEvaluator(Evaluator):
    """Returns value 0 and equal logits for every position."""

    name = "uniform"
    is_uniform = True
    ranks_moves = False

    def __init__(self, planes_shape: tuple[int, int, int], actions: int) -> None:
        self.planes_shape = planes_shape
        self.actions = actions
        self.info = ModelInfo(source=self.name)

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
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

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        batch = planes.shape[0]
        value = np.empty(batch, np.float32)
        policy = np.empty((batch, self.actions), np.float32)
        for i in range(batch):
            digest = hashlib.blake2b(np.ascontiguousarray(planes[i]).tobytes(), digest_size=8)
            rng = np.random.default_rng((self.seed, int.from_bytes(digest.digest(), "little")))
            value[i] = rng.uniform(-1, 1)
            policy[i] = rng.standard_normal(self.actions, np.float32)
        return Evaluation(value, policy)
