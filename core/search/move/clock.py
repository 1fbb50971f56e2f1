"""How long to think: time for a move from what the clock shows (000 section 9.2.4).

    sudden death   remaining / (50 - own moves played) + 0.7 · increment
                   from 40 own moves on: 0.05 · remaining + 0.7 · increment
    moves to go    an equal share of the remaining time + 0.7 · increment

All times are seconds. A `TimeManager` serves one player; it knows no board and no engine: whoever
runs the search tells it what the search has found (`Progress`) and asks `verdict`.

The papers' rules hold while a move's lag (`Lag`) is small against its time. Where hardly any time is
left, the clock is worth more kept than spent (`TimeManager.pace`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from variant_ai.core.search.move.lag import Lag

GAME_LENGTH = 50
PROPORTIONAL_FROM = 40
PROPORTION = 0.05
INCREMENT_SHARE = 0.7
EASY_PRIOR = 0.9
EASY_SHARE = 0.5
CRITICAL_DROP = 0.1
CRITICAL_SHARE = 1.5
JITTER = 0.1

TARGET_CAP = 0.5
"""Of the time left, without moves to go: an increment that comes after the move cannot be spent
before it."""
LEAST = 0.001
"""Seconds given where nothing is left, or less than nothing: some clients show negative times."""

NO_TIME, LITTLE_TIME = 3.0, 6.0
"""How often the reserve, by which the greatest lag is above the usual cost of a move, must fit into the
time left when that cost is taken off. Below the first nothing is begun, unless the increment pays for
it; below the second a move that has less than SCARCE for itself is played after one question to the
net. Lags come in rows, and the time is worth more kept for them than spent on a few simulations."""
SCARCE = 0.02
"""Seconds."""
SMALLEST_RESERVE = 0.02
"""Seconds, however even the lags were."""

Verdict = Literal["one move", "easy", "early stop", "time"]
Pace = Literal["search", "look", "at once"]


@dataclass(frozen=True)
class Clock:
    """What the player's clock shows, in seconds."""

    remaining: float
    increment: float = 0.0
    moves_to_go: int | None = None
    """Own moves to the next time control, this one included; None: sudden death."""


@dataclass(frozen=True)
class Budget:
    """Time for one move, in seconds from when the clock started to run."""

    target: float
    """For a usual position."""
    maximum: float
    """For a critical one; never later than this."""


@dataclass(frozen=True)
class Progress:
    """What the search knows by now of the move it would play (the candidate)."""

    elapsed: float
    """Seconds since the clock started to run."""
    q: float
    """The candidate's value for the mover, in [-1, 1]."""
    top_prior: float = 0.0
    """Greatest prior of all moves."""
    top_prior_leads: bool = False
    """Whether the move with the greatest prior is the one with the best Q."""
    leader_visits: int = 0
    second_visits: int = 0
    """Visits of the most visited move and of the next."""
    leader_chosen: bool = True
    """Whether the most visited move is the candidate; with Q in the final choice it need not be."""
    visits_per_second: float = 0.0


class TimeManager:
    """Gives a budget for each move, and says when to stop within it.

    overhead: seconds between the engine's move and the clock that stops (thesis: 20 ms); the usual
        lag is taken for it where it is seen to be more.
    jitter: 0.1 varies the time by up to 10 % either way, for games with people (000 eq. 9).
    speed: factor of the time for each move, within what the clock allows (Slow Mover of Stockfish).
    early_stop: whether a search ends once its leader cannot be overtaken any more.
    """

    def __init__(
        self,
        *,
        overhead: float = 0.02,
        jitter: float = 0.0,
        early_stop: bool = True,
        speed: float = 1.0,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.lag = Lag()
        """What moves took beyond what they should have; whoever sees a client's clock tells it."""
        self.overhead = overhead
        self.jitter = jitter
        self.early_stop = early_stop
        self.speed = speed
        self.last_q: float | None = None
        """Value of the move played last, for the player; None before the first."""
        self._rng = rng or np.random.default_rng()

    def budget(self, clock: Clock, own_moves: int) -> Budget:
        """own_moves: moves the player has made in the game, those of an opening book included."""
        cost = self._cost
        left = max(clock.remaining - cost, LEAST)
        if clock.moves_to_go:
            moves = clock.moves_to_go
            # each of the moves costs it once
            share = max(clock.remaining - moves * cost, LEAST) / moves
            target = min(self.speed * (share + INCREMENT_SHARE * clock.increment), left)
            cap = left - self._reserve if moves == 1 else left * CRITICAL_SHARE * TARGET_CAP
        else:
            if own_moves < PROPORTIONAL_FROM:
                share = clock.remaining / (GAME_LENGTH - own_moves)
            else:
                share = PROPORTION * clock.remaining
            target = self.speed * (share + INCREMENT_SHARE * clock.increment)
            target = min(target - cost, TARGET_CAP * left)
            cap = left * CRITICAL_SHARE * TARGET_CAP
        if self.jitter > 0:
            target *= 1.0 + self._rng.uniform(-self.jitter, self.jitter)
        target = max(min(target, cap), LEAST)
        return Budget(target, max(min(CRITICAL_SHARE * target, cap), LEAST))

    def pace(self, clock: Clock, own_moves: int) -> Pace:
        """Whether there is time to search at all: "look" is one question to the net, "at once" not
        even that."""
        cost = self._cost
        left, reserve = clock.remaining - cost, self._reserve
        paid = clock.moves_to_go == 1 or clock.increment >= cost + SCARCE
        if left < NO_TIME * reserve and not (paid and left >= reserve + SCARCE):
            return "at once"
        scarce = self.budget(clock, own_moves).maximum < SCARCE
        return "look" if scarce and left < LITTLE_TIME * reserve else "search"

    @property
    def _cost(self) -> float:
        """Seconds that a move takes beside the search."""
        return max(self.overhead, self.lag.usual)

    @property
    def _reserve(self) -> float:
        """Seconds by which a move may cost more than usual."""
        return max(self.lag.worst - self._cost, SMALLEST_RESERVE)

    def is_critical(self, q: float) -> bool:
        """Whether the candidate is 0.1 worse than the last move played was."""
        return self.last_q is not None and self.last_q - q >= CRITICAL_DROP

    def verdict(self, budget: Budget, progress: Progress, legal_moves: int) -> Verdict | None:
        """Why to stop now, None to go on. Cheap: asked as often as the search can tell."""
        if legal_moves <= 1:
            return "one move"
        critical = self.is_critical(progress.q)
        end = budget.maximum if critical else budget.target
        if progress.elapsed >= end:
            return "time"
        easy = progress.top_prior > EASY_PRIOR and progress.top_prior_leads
        if easy and not critical and progress.elapsed >= EASY_SHARE * budget.target:
            return "easy"
        if self.early_stop and self._decided(progress, end):
            return "early stop"
        return None

    def played(self, q: float) -> None:
        """Tell the value of the move that was played, for the next move's `is_critical`."""
        self.last_q = q

    def forget(self) -> None:
        """A new game."""
        self.last_q = None
        self.lag.forget_last()

    def _decided(self, progress: Progress, end: float) -> bool:
        """Whether all visits to come would not bring the second move past the first."""
        if progress.visits_per_second <= 0 or not progress.leader_chosen:
            return False
        to_come = (end - progress.elapsed) * progress.visits_per_second
        return progress.leader_visits - progress.second_visits > to_come
