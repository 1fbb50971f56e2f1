"""Elo from wins, draws and losses: differences of two players, ratings of many, with their errors.

Conventions in this folder: counts are seen from the first-named player, in the order wins, draws,
losses. Elo is logistic: a difference of D Elo means an expected score of 1 / (1 + 10^(-D/400)).
Texts are wins-losses-draws, as in [Xiangqi-thesis] chapter 5 (`76-3-21`) and [CrazyAra-preprint]
(`80-20-0`).

Ratings of many players follow Bradley and Terry: i beats j with probability 1 / (1 + e^-(g_i −
g_j)), where g = Elo · ln 10 / 400; a draw counts as half a win and half a loss. The ratings
maximise the likelihood, which is concave (Newton's method). A draw is less uncertain than this
likelihood assumes, so the covariance is not the inverse information H⁻¹ but the sandwich
H⁻¹ B H⁻¹, with B the observed spread of the results ([White]). For two players this gives the Elo of `estimate`, and its error if the score is not extreme.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import DataError

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

SCALE = 400.0
"""Elo for odds of ten to one."""
QUANTILE = NormalDist().inv_cdf(0.975)
"""Standard deviations to either side that hold 95 %, the share of all intervals."""
PAIR_POINTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Mean score of a game in a pair that brought 0, 1/2, 1, 3/2, 2 points."""


def expected_score(elo: float) -> float:
    """Expected score, in (0, 1), of a player who is `elo` better."""
    return 1.0 / (1.0 + math.pow(10.0, -elo / SCALE))


def elo_of(score: float) -> float:
    """Elo difference of a score in [0, 1]; infinite at both ends."""
    if score <= 0.0:
        return -math.inf
    if score >= 1.0:
        return math.inf
    return SCALE * math.log10(score / (1.0 - score))


@dataclass(frozen=True)
class Tally:
    """Results of games, from one player's point of view."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    def __post_init__(self) -> None:
        if min(self.wins, self.draws, self.losses) < 0:
            raise DataError(f"results cannot be negative: {self.text}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse wins-losses-draws, such as `76-3-21`. Raises DataError."""
        words = text.split("-")
        if len(words) != 3 or not all(word.strip().isdigit() for word in words):
            raise DataError(f"{text!r} is not WINS-LOSSES-DRAWS, such as 76-3-21")
        wins, losses, draws = map(int, words)
        return cls(wins, draws, losses)

    @property
    def text(self) -> str:
        """`wins-losses-draws`."""
        return f"{self.wins}-{self.losses}-{self.draws}"

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        return self.wins + self.draws / 2

    @property
    def score(self) -> float:
        """Share of the points, in [0, 1]; 1/2 without games."""
        return self.points / self.games if self.games else 0.5

    @property
    def draw_ratio(self) -> float:
        """Share of the games that were drawn; 0 without games."""
        return self.draws / self.games if self.games else 0.0

    @property
    def turned(self) -> Tally:
        """The other player's view."""
        return Tally(self.losses, self.draws, self.wins)

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.wins + other.wins, self.draws + other.draws, self.losses + other.losses)


@dataclass(frozen=True)
class Estimate:
    """An Elo difference with its interval."""

    elo: float
    """Infinite if every game was won or lost."""
    error: float
    """Half the width of the interval; infinite if one of its ends is."""
    low: float
    high: float
    los: float
    """Likelihood of superiority in [0, 1]: probability that the player is the better one."""

    @property
    def text(self) -> str:
        return f"{self.elo:+.1f} ± {self.error:.1f}"


def estimate(tally: Tally) -> Estimate:
    """Estimate Elo from single games, assumed to be independent.

    The interval is that of the mean score under the normal distribution, with each end converted to
    Elo; the error is half its width, as in the tables of [CrazyAra-preprint] and [Xiangqi-thesis].
    Where it would leave (0, 1), since there are few games or hardly any were lost, it is the score
    interval of [Wilson], which never does if the score is not extreme itself.
    """
    mean, low, high = tally.score, 0.0, 1.0
    if tally.games:
        counts = (tally.losses, tally.draws, tally.wins)
        spread = sum(n * (x - mean) ** 2 for n, x in zip(counts, (0.0, 0.5, 1.0), strict=True))
        variance = spread / tally.games**2
        if tally.draws == tally.games:
            variance = cautious_variance(tally)
        reach = QUANTILE * math.sqrt(variance)
        low, high = mean - reach, mean + reach
        if low <= 0.0 or high >= 1.0:
            low, high = _score_interval(mean, tally.games)
    ends = elo_of(low), elo_of(high)
    error = (ends[1] - ends[0]) / 2 if all(map(math.isfinite, ends)) else math.inf
    return Estimate(elo_of(mean), error, *ends, superiority(tally))


def _score_interval(mean: float, games: int) -> tuple[float, float]:
    """Ends of the score interval ([Wilson]) of a mean in [0, 1], as if no game were drawn:
    draws make it wider than it need be."""
    shift = QUANTILE**2 / games
    centre = (mean + shift / 2) / (1 + shift)
    reach = math.sqrt(shift * (mean * (1 - mean) + shift / 4)) / (1 + shift)
    # Rounding must not move an end that is exact.
    return (
        0.0 if mean == 0.0 else centre - reach,
        1.0 if mean == 1.0 else centre + reach,
    )


def cautious_variance(tally: Tally) -> float:
    """Variance of the mean score, with one game of each result added: a few games with the same result do
    not show that all games have it."""
    more = tally + Tally(1, 1, 1)
    second = (more.wins + more.draws / 4) / more.games
    return (second - more.score**2) / max(tally.games, 1)


def superiority(tally: Tally) -> float:
    """Likelihood of superiority: Φ((W − L) / √(W + L)), 1/2 without decisive games. Draws do not
    count."""
    decisive = tally.wins + tally.losses
    if not decisive:
        return 0.5
    return NormalDist().cdf((tally.wins - tally.losses) / math.sqrt(decisive))


# --- many players ------------------------------------------------------------------------------

ELO = SCALE / math.log(10)
"""Elo of one unit of the logistic scale."""
STEPS = 100
PRIOR_DRAWS = 1.0
"""Draws added between all pairs if the likelihood has no finite maximum."""
LONGEST_STEP = 2.0


@dataclass(frozen=True)
class Ratings:
    """Ratings of P players with mean 0, and their covariance."""

    elo: Floats
    """[P]."""
    covariance: Floats
    """[P, P], Elo²; singular, because only differences are known."""
    prior: bool
    """True if draws were added because some players won all, lost all or played none of their games
    against the others."""

    def error(self, player: int) -> float:
        """Half the width of the interval of a player's rating above the mean of all."""
        return _reach(self.covariance[player, player])

    def difference(self, a: int, b: int) -> tuple[float, float]:
        """Elo by which a is better than b, and half the width of its interval."""
        c = self.covariance
        return float(self.elo[a] - self.elo[b]), _reach(c[a, a] + c[b, b] - 2 * c[a, b])


def _reach(variance: float) -> float:
    """Half the width of the interval of a normally distributed number."""
    return QUANTILE * math.sqrt(max(0.0, float(variance)))


def fit(results: Sequence[Sequence[Tally]]) -> Ratings:
    """Fit ratings of P players. results: `results[i][j]` are the games of i, moving first, against
    j, from i's point of view.

    Raises DataError if there are fewer than two players, or no games.
    """
    counts = np.array([[(t.wins, t.draws, t.losses) for t in row] for row in results], np.float64)
    players = len(counts)
    if players < 2:
        raise DataError(f"ratings need at least two players, not {players}")
    if not counts.sum():
        raise DataError("ratings need games, and there are none")
    unit = np.eye(players)
    first, second = np.triu_indices(players, 1)
    # both orders of moves together, as `estimate` counts the games of two players; shape [pairs, 3]
    counts = (counts + counts.transpose(1, 0, 2)[..., ::-1])[first, second]
    design = unit[first] - unit[second]  # a row for each pair: +1 for one player, -1 for the other
    prior = not _has_maximum(counts, first, second, players)
    fitted = counts + np.array([0, PRIOR_DRAWS if prior else 0, 0])
    games, points = fitted.sum(axis=-1), fitted[:, 0] + fitted[:, 1] / 2
    parameters = _maximum(design, games, points)
    expected = 1.0 / (1.0 + np.exp(-design @ parameters))
    information = np.linalg.pinv(
        design.T @ (design * (games * expected * (1 - expected))[:, None]), hermitian=True
    )
    spread = np.asarray(
        sum(
            fitted[:, outcome] * (worth - expected) ** 2
            for outcome, worth in enumerate((1.0, 0.5, 0.0))
        )
    )
    drawn = counts[:, 1]
    for pair in np.flatnonzero((drawn > 0) & (drawn == counts.sum(axis=-1))):
        alone = Tally(0, int(drawn[pair]), 0)
        spread[pair] = max(spread[pair], cautious_variance(alone) * alone.games**2)
    covariance = information @ (design.T @ (design * spread[:, None])) @ information
    elo = parameters * ELO
    centre = unit - 1.0 / players  # ratings minus their mean
    return Ratings(elo - elo.mean(), centre @ (covariance * ELO**2) @ centre, prior)


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


def _has_maximum(counts: Floats, first: Indices, second: Indices, players: int) -> bool:
    """Return True if every player has scored against every other, directly or by way of others
    ([Ford]). counts: wins, draws, losses of each pair."""
    scored = np.eye(players, dtype=bool)
    scored[first, second] = counts[:, 0] + counts[:, 1] > 0
    scored[second, first] = counts[:, 2] + counts[:, 1] > 0
    for _ in range(players.bit_length()):
        scored = scored @ scored
    return bool(scored.all())
