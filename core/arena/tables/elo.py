"""Elo from wins, draws and losses: how much better one player is, and how sure that is.

Conventions of the whole room: counts are seen from the first-named player and come as wins, draws,
losses; Elo is logistic, a difference of D Elo means an expected score of 1 / (1 + 10^(-D/400)).
The papers print their results as wins-losses-draws (thesis chapter 5: `76-3-21`; paper 000:
`80-20-0`); `Tally.parse` reads that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

from variant_ai.core.errors import DataError

SCALE = 400.0
"""Elo for odds of ten to one."""
CONFIDENCE = 0.95
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
    """Results of games, from one player's view."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    def __post_init__(self) -> None:
        if min(self.wins, self.draws, self.losses) < 0:
            raise DataError(f"results cannot be negative: {self.text}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """`76-3-21` as the papers print it: wins, losses, draws. Raises DataError."""
        words = text.split("-")
        if len(words) != 3 or not all(word.strip().isdigit() for word in words):
            raise DataError(f"{text!r} is not WINS-LOSSES-DRAWS, such as 76-3-21")
        wins, losses, draws = map(int, words)
        return cls(wins, draws, losses)

    @property
    def text(self) -> str:
        """As the papers print it: `wins-losses-draws`."""
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
    """Infinite where every game was won or lost."""
    error: float
    """Half the width of the interval; infinite where an end of it is."""
    low: float
    high: float
    los: float
    """Likelihood of superiority, in [0, 1]: that the player is the better one at all."""

    @property
    def text(self) -> str:
        return f"{self.elo:+.1f} ± {self.error:.1f}"


def estimate(tally: Tally, confidence: float = CONFIDENCE) -> Estimate:
    """Elo of single games taken as independent.

    The interval is that of the mean score under the normal distribution, each end turned into Elo;
    the error is half its width, as the papers' tables have it.
    """
    counts = (tally.losses, tally.draws, tally.wins)
    low, middle, high = _interval(counts, (0.0, 0.5, 1.0), confidence)
    return _estimate(low, middle, high, superiority(tally))


def estimate_pairs(pairs: Sequence[int], confidence: float = CONFIDENCE) -> Estimate:
    """Elo of pairs of games that share an opening with colours exchanged.

    pairs: how many pairs brought 0, 1/2, 1, 3/2, 2 points (pentanomial). An opening that favours a
    colour adds no spread within its pair, so the interval is narrower than that of single games.
    """
    low, middle, high = _interval(pairs, PAIR_POINTS, confidence)
    games = sum(pairs)
    spread = (high - low) / 2 / _normal_quantile(confidence) if games else 0.0
    if spread > 0:
        los = NormalDist().cdf((middle - 0.5) / spread)
    else:
        los = 0.5 if middle == 0.5 else float(middle > 0.5)
    return _estimate(low, middle, high, los)


def superiority(tally: Tally) -> float:
    """Likelihood of superiority: Φ((W − L) / √(W + L)), 1/2 without decisive games.

    Draws say nothing about who is better.
    """
    decisive = tally.wins + tally.losses
    if not decisive:
        return 0.5
    return NormalDist().cdf((tally.wins - tally.losses) / math.sqrt(decisive))


def _estimate(low: float, middle: float, high: float, los: float) -> Estimate:
    ends = elo_of(low), elo_of(high)
    error = (ends[1] - ends[0]) / 2 if all(map(math.isfinite, ends)) else math.inf
    return Estimate(elo_of(middle), error, *ends, los)


def _interval(
    counts: Sequence[int], points: Sequence[float], confidence: float
) -> tuple[float, float, float]:
    """Low end, mean and high end of the score of `counts[i]` results worth `points[i]`."""
    total = sum(counts)
    if not total:
        return 0.0, 0.5, 1.0
    mean = sum(n * x for n, x in zip(counts, points, strict=True)) / total
    variance = sum(n * (x - mean) ** 2 for n, x in zip(counts, points, strict=True)) / total
    reach = _normal_quantile(confidence) * math.sqrt(variance / total)
    return mean - reach, mean, mean + reach


def _normal_quantile(confidence: float) -> float:
    """Standard deviations to either side that hold the share `confidence`."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)
