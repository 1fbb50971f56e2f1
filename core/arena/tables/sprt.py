"""Sequential probability ratio test, which ends a match when one hypothesis is accepted.

H0: the first player is `elo0` better; H1: `elo1` better. After every game the
log-likelihood ratio of H1 to H0 is computed from the complete pairs up to the first missing one; the
match ends when it leaves (lower, upper), with

    lower = ln(β / (1 − α))      H0 accepted; wrong with probability β if H1 is true
    upper = ln((1 − β) / α)      H1 accepted; wrong with probability α if H0 is true

The hypotheses give only the mean of the outcome distribution, so the ratio is the generalised one:
for each hypothesis, the distribution with its mean score s that fits the results best. That is p_i
= p̂_i / (1 + θ (x_i − s)), x_i the points of outcome i, with θ such that Σ p_i (x_i − s) = 0
([Empirical-likelihood] section 2.9).

Outcomes are those of pairs of games with colours exchanged (five: pentanomial). All functions
accept a leading axis of matches, so that one call can simulate many of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from variant_ai.core.arena.tables.elo import PAIR_POINTS, expected_score
from variant_ai.core.errors import SettingError

Floats = NDArray[np.float64]

POINTS = np.array(PAIR_POINTS)
"""Mean score a game of each outcome."""
UNSEEN = 1e-3
"""Count of an outcome that has not occurred, so that no hypothesis is impossible."""
GREATEST = 1000
"""Elo of a hypothesis, at most: those of scores near 0 and 1 leave no other outcome possible."""
STEPS = 60
"""Bisections, each of which halves the error."""

Verdict = Literal["H0", "H1"]


@dataclass(frozen=True)
class SprtStatus:
    """State of a test."""

    llr: float
    lower: float
    upper: float
    verdict: Verdict | None
    """Accepted hypothesis; None if there is none yet."""

    @property
    def text(self) -> str:
        verdict = f", {self.verdict} accepted" if self.verdict else ""
        return f"LLR {self.llr:+.2f} ({self.lower:.2f}, {self.upper:.2f}){verdict}"


@dataclass(frozen=True)
class Sprt:
    """A test. Raises SettingError if it could not end, or if its error rates are impossible."""

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not (abs(self.elo0) <= GREATEST and abs(self.elo1) <= GREATEST):
            raise SettingError(
                f"sprt: elo0 {self.elo0:g} and elo1 {self.elo1:g} must be from -{GREATEST} to {GREATEST}"
            )
        if not self.elo0 < self.elo1:
            raise SettingError(f"sprt: elo0 {self.elo0:g} must be less than elo1 {self.elo1:g}")
        if not (self.alpha > 0 and self.beta > 0 and self.alpha + self.beta < 1):
            raise SettingError(
                f"sprt: alpha {self.alpha:g} and beta {self.beta:g} must be above 0, their sum "
                "below 1"
            )

    @property
    def lower(self) -> float:
        return math.log(self.beta / (1 - self.alpha))

    @property
    def upper(self) -> float:
        return math.log((1 - self.beta) / self.alpha)

    def llr(self, counts: ArrayLike) -> Floats:
        """Log-likelihood ratio of counts of pairs of 0, 1/2, 1, 3/2, 2 points [..., 5]; shape
        [...]."""
        seen = np.asarray(counts, dtype=np.float64)
        share = np.maximum(seen, UNSEEN)
        total = share.sum(axis=-1, keepdims=True)
        share /= total
        logs = [
            np.log1p(_tilt(share, POINTS - expected_score(elo)) * (POINTS - expected_score(elo)))
            for elo in (self.elo0, self.elo1)
        ]
        ratio: Floats = (total * share * (logs[0] - logs[1])).sum(axis=-1)
        return np.where(seen.sum(axis=-1) > 0, ratio, 0.0)

    def status(self, counts: Sequence[int]) -> SprtStatus:
        """State of the test. counts: of pairs, see `llr`."""
        llr = float(self.llr(counts))
        verdict: Verdict | None = None
        if llr >= self.upper:
            verdict = "H1"
        elif llr <= self.lower:
            verdict = "H0"
        return SprtStatus(llr, self.lower, self.upper, verdict)


def _tilt(share: Floats, distance: Floats) -> Floats:
    """Find θ [..., 1] with Σ p̂_i d_i / (1 + θ d_i) = 0. The sum decreases in θ between the poles
    −1/max d and −1/min d."""
    shape = (*share.shape[:-1], 1)
    low = np.full(shape, -1.0 / distance.max())
    high = np.full(shape, -1.0 / distance.min())
    for _ in range(STEPS):
        theta = (low + high) / 2
        is_low = (share * distance / (1.0 + theta * distance)).sum(axis=-1, keepdims=True) > 0
        low, high = np.where(is_low, theta, low), np.where(is_low, high, theta)
    return theta


def pair_counts(points: Sequence[float]) -> tuple[int, ...]:
    """Numbers of pairs with 0, 1/2, 1, 3/2, 2 points. points: of each pair."""
    counts = [0] * 5
    for pair in points:
        counts[round(2 * pair)] += 1
    return tuple(counts)
