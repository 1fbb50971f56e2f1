"""Ratings of many players out of the games they played with each other.

The model is Bradley and Terry's: i beats j with probability 1 / (1 + e^-(g_i − g_j + a)), where
g = Elo · ln 10 / 400 and `a` is the advantage of the first player; a draw counts as half a win and
half a loss. The ratings maximise its likelihood (concave, Newton's method). A draw is less
uncertain than that likelihood believes, so the covariance is not the inverse information H⁻¹ but
the sandwich H⁻¹ B H⁻¹ with B the spread of the results as they were (White 1982). With two players
this gives the Elo of `elo.estimate`, and its error where the score is not extreme.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.arena.tables.elo import SCALE, Tally
from variant_ai.core.errors import DataError

Floats = NDArray[np.float64]

ELO = SCALE / math.log(10)
"""Elo of one unit of the logistic scale."""
STEPS = 100
PRIOR_DRAWS = 1.0
"""Draws added between all pairs where the results have no finite maximum."""
LONGEST_STEP = 2.0


@dataclass(frozen=True)
class Ratings:
    """P players: ratings with mean 0, and how they vary together."""

    elo: Floats
    """[P]."""
    covariance: Floats
    """[P, P], Elo²; singular, since only differences are known."""
    advantage: float
    """Elo of moving first; 0 where it was not fitted."""
    advantage_error: float
    """Standard deviation of it."""
    prior: bool
    """Whether draws were added because some players won or lost everything against the rest."""

    def error(self, player: int, confidence: float = 0.95) -> float:
        """Half the width of the interval of a player's rating above the mean of all."""
        return _quantile(confidence) * math.sqrt(max(0.0, float(self.covariance[player, player])))

    def difference(self, a: int, b: int, confidence: float = 0.95) -> tuple[float, float]:
        """Elo by which a is better than b, and half the width of its interval."""
        return float(self.elo[a] - self.elo[b]), _quantile(confidence) * self._deviation(a, b)

    def superiority(self, a: int, b: int) -> float:
        """Likelihood that a is better than b, in [0, 1]."""
        deviation = self._deviation(a, b)
        difference = float(self.elo[a] - self.elo[b])
        if deviation <= 0:
            return 0.5 if difference == 0 else float(difference > 0)
        return NormalDist().cdf(difference / deviation)

    def _deviation(self, a: int, b: int) -> float:
        c = self.covariance
        return math.sqrt(max(0.0, float(c[a, a] + c[b, b] - 2 * c[a, b])))


def fit(results: Sequence[Sequence[Tally]], *, advantage: bool = False) -> Ratings:
    """Ratings of P players; `results[i][j]` are the games of i, moving first, against j, as i sees
    them. `advantage`: fit the advantage of the first player too.

    Raises DataError where there are fewer than two players or no games.
    """
    counts = np.array([[(t.wins, t.draws, t.losses) for t in row] for row in results], np.float64)
    players = len(counts)
    if players < 2:
        raise DataError("ratings need two players at least")
    if not counts.sum():
        raise DataError("ratings need games")
    counts[np.arange(players), np.arange(players)] = 0
    prior = not _has_maximum(counts)
    fitted = counts.copy()
    if prior:
        fitted[..., 1] += PRIOR_DRAWS / 2 * (1 - np.eye(players))
    design = _design(players, advantage)
    games, points = fitted.sum(axis=-1).ravel(), (fitted[..., 0] + fitted[..., 1] / 2).ravel()
    parameters = _maximum(design, games, points)
    expected = 1.0 / (1.0 + np.exp(-design @ parameters))
    information = np.linalg.pinv(
        design.T @ (design * (games * expected * (1 - expected))[:, None]), hermitian=True
    )
    spread = sum(
        fitted[..., outcome].ravel() * (worth - expected) ** 2
        for outcome, worth in enumerate((1.0, 0.5, 0.0))
    )
    covariance = information @ (design.T @ (design * np.asarray(spread)[:, None])) @ information
    covariance *= ELO**2
    elo = parameters[:players] * ELO
    return Ratings(
        elo=elo - elo.mean(),
        covariance=_centred(covariance[:players, :players]),
        advantage=float(parameters[players] * ELO) if advantage else 0.0,
        advantage_error=math.sqrt(max(0.0, covariance[-1, -1])) if advantage else 0.0,
        prior=prior,
    )


def _design(players: int, advantage: bool) -> Floats:
    """A row for every ordered pair: +1 for the first player, −1 for the second, 1 for moving
    first; [P², P] or [P², P + 1]."""
    unit = np.eye(players)
    rows = (unit[:, None, :] - unit[None, :, :]).reshape(players * players, players)
    return np.hstack([rows, np.ones((len(rows), 1))]) if advantage else rows


def _maximum(design: Floats, games: Floats, points: Floats) -> Floats:
    parameters = np.zeros(design.shape[1])
    for _ in range(STEPS):
        expected = 1.0 / (1.0 + np.exp(-design @ parameters))
        gradient = design.T @ (points - games * expected)
        hessian = design.T @ (design * (games * expected * (1 - expected))[:, None])
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        size = float(np.abs(step).max())
        parameters += step * min(1.0, LONGEST_STEP / size) if size else step
        if size < 1e-10:
            break
    return parameters


def _has_maximum(counts: Floats) -> bool:
    """Whether everybody has, by way of others, scored against everybody (Ford 1957)."""
    points = counts[..., 0] + counts[..., 1] / 2
    scored = (points > 0) | ((counts[..., 2] + counts[..., 1] / 2).T > 0)
    reached = np.eye(len(counts), dtype=bool) | scored
    for _ in range(len(counts).bit_length()):
        reached = reached @ reached
    return bool(reached.all())


def _centred(covariance: Floats) -> Floats:
    """Of the ratings less their mean."""
    players = len(covariance)
    centre = np.eye(players) - 1.0 / players
    result: Floats = centre @ covariance @ centre
    return result


def _quantile(confidence: float) -> float:
    return NormalDist().inv_cdf(0.5 + confidence / 2)
