"""Gaussian process over the results of trials: the expected score as a function of the settings.

Each trial is a point x of the unit cube and a mean score with a known variance (of its games). The
covariance of the true scores of two points is a squared exponential with one length per dimension
([Gaussian-processes] eq. 5.1). Lengths and amplitude have the greatest marginal likelihood (eq. 2.30)
among random candidates from a fixed seed: a dozen numbers fitted to a hundred noisy trials need no
better optimiser.

n trials, m points, d dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CANDIDATES = 400
AMPLITUDES = (0.02, 0.3)
"""Range of the standard deviation of true scores over the cube."""
LENGTHS = (0.15, 4.0)
"""Range of the lengths; with a length of 4 a dimension hardly matters."""


@dataclass(frozen=True)
class Surrogate:
    """Posterior of the score as a function of the settings."""

    x: Floats
    """[n, d], in the unit cube."""
    y: Floats
    """[n], mean score of each trial, in [0, 1]."""
    variance: Floats
    """[n], variance of each mean score."""
    lengths: Floats
    """[d], length of each dimension."""
    amplitude: float
    mean: float

    @classmethod
    def fit(cls, x: Floats, y: Floats, variance: Floats) -> Surrogate:
        """Fit lengths, amplitude and mean to the trials."""
        rng = np.random.default_rng(0)
        dimensions = x.shape[1]
        best: Surrogate | None = None
        most = -np.inf
        for _ in range(CANDIDATES):
            lengths = _between(rng, LENGTHS, dimensions)
            amplitude = float(_between(rng, AMPLITUDES, 1)[0])
            one = cls(x, y, variance, lengths, amplitude, 0.0)
            weights = np.linalg.solve(one._covariance, np.ones(len(x)))
            one = cls(x, y, variance, lengths, amplitude, float(weights @ y / weights.sum()))
            if one.log_likelihood > most:
                most, best = one.log_likelihood, one
        assert best is not None
        return best

    @property
    def log_likelihood(self) -> float:
        """Logarithm of the marginal likelihood of the trials (eq. 2.30), without its constant."""
        _, determinant = np.linalg.slogdet(self._covariance)
        rest = self.y - self.mean
        return float(-0.5 * rest @ np.linalg.solve(self._covariance, rest) - 0.5 * determinant)

    def predict(self, at: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation, each [m], of the true score at points [m, d]."""
        cross = self._kernel(at, self.x)
        mean = self.mean + cross @ self._weights
        solved = np.linalg.solve(self._covariance, cross.T)
        spread = self.amplitude**2 - np.einsum("mn,nm->m", cross, solved)
        return mean, np.sqrt(np.maximum(spread, 0.0))

    def _kernel(self, a: Floats, b: Floats) -> Floats:
        distance = (a[:, None, :] - b[None, :, :]) / self.lengths
        kernel: Floats = self.amplitude**2 * np.exp(-0.5 * (distance**2).sum(axis=-1))
        return kernel

    @cached_property
    def _covariance(self) -> Floats:
        return self._kernel(self.x, self.x) + np.diag(self.variance)

    @cached_property
    def _weights(self) -> Floats:
        return np.linalg.solve(self._covariance, self.y - self.mean).astype(np.float64)


def _between(rng: np.random.Generator, bounds: tuple[float, float], count: int) -> Floats:
    """[count] numbers whose logarithms are uniform between the bounds."""
    low, high = np.log(bounds[0]), np.log(bounds[1])
    return np.exp(rng.uniform(low, high, size=count))
