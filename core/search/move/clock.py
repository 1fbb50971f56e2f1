"""Time management: the time for a move by the clock ([CrazyAra-preprint] section 9.2.4).

    sudden death   1.6 · (remaining / (50 - own moves played) + 0.7 · increment)
                   from 40 own moves on: 1.6 · (0.05 · remaining + 0.7 · increment)
    moves to go    an equal share of the remaining time + 0.7 · increment
    byoyomi        sudden death with byoyomi added to the increment; all that is left once less than
                   one byoyomi remains

`TimeManager.budget` computes these. It also subtracts the usual cost of a move (overhead or lag)
and applies limits; L is the time left after that cost, byoyomi included:

    sudden death        at most L / 2 (`TARGET_CAP`)
    critical position   1.5 times the usual time (`CRITICAL_SHARE`)
    any position        at most 0.75 · L (`CRITICAL_SHARE` · `TARGET_CAP`); L less a reserve for lag
                        on the last move before a time control, and with less than one byoyomi left

All times are in seconds. A `TimeManager` serves one player and does not depend on boards or
engines: the caller reports the state of the search (`Progress`) and calls `verdict`.

The factor 1.6 is ours (`FACTOR`); it is 1 in the paper. The papers' rules apply as long as the lag
of a move (`Lag`) is small compared with its time. If hardly any time is left, it is better to save
time than to search (`TimeManager.pace`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

FACTOR = 1.6
"""Factor of the paper's time for a move in sudden death: with 1, a third of the time was left when a
game ended (docs/tuning.md, "Time")."""
GAME_LENGTH = 50
PROPORTIONAL_FROM = 40
PROPORTION = 0.05
INCREMENT_SHARE = 0.7
EASY_PRIOR = 0.9
EASY_SHARE = 0.5
CRITICAL_DROP = 0.1
CRITICAL_SHARE = 1.5

TARGET_CAP = 0.5
"""Largest share of the remaining time for a move: an increment after the move cannot be spent before
it."""
LEAST = 0.001
"""Seconds for a move if no time, or negative time, is left: some clients show negative times."""

NO_TIME, LITTLE_TIME = 3.0, 6.0
"""Factors of the reserve, which is the difference between the largest and the usual lag, compared with the
remaining time after the usual cost of a move. Below the first one no search is started, unless the
increment pays for it. Below the second one a move with less than SCARCE seconds is played after one
evaluation. Lags occur in series, and saving time for them is worth more than a few simulations."""
SCARCE = 0.02
"""Seconds for a move below which time is scarce."""
SMALLEST_RESERVE = 0.02
"""Seconds of reserve, even if all lags were equal."""

GAIN = 1 / 8
"""Weight of the newest lag in the usual one, as for round trips in networks (RFC 6298)."""
MEMORY = 0.99
"""Factor of the largest lag after each move; half of it is left after 69 moves."""
ASSUMED_LAG = 0.1
"""Seconds assumed as the largest lag before any was seen."""
LAG_LIMIT = 0.25
"""Seconds to which larger lags are reduced: time for a pause of the whole machine or network cannot be
reserved."""

Verdict = Literal["one move", "easy", "early stop", "time"]
Pace = Literal["search", "look", "at once"]


@dataclass(frozen=True)
class Clock:
    """State of the player's clock, in seconds."""

    remaining: float
    increment: float = 0.0
    moves_to_go: int | None = None
    """Own moves until the next time control, including this one; None: sudden death."""
    byoyomi: float = 0.0
    """Seconds for each move once `remaining` is used up, as in shogi."""


@dataclass(frozen=True)
class Budget:
    """Time for one move, in seconds since the clock started."""

    target: float
    """Time for a normal position."""
    maximum: float
    """Time for a critical position; the search never takes longer."""


@dataclass(frozen=True)
class Progress:
    """State of the search; the candidate is the move it would play now."""

    elapsed: float
    """Seconds since the clock started."""
    q: float
    """Value of the candidate for the mover, in [-1, 1]."""
    top_prior: float = 0.0
    """Greatest prior of all moves."""
    top_prior_leads: bool = False
    """True if the move with the greatest prior has the best Q."""
    leader_visits: int = 0
    """Visits of the most visited move."""
    second_visits: int = 0
    """Visits of the second most visited move."""
    leader_chosen: bool = True
    """True if the most visited move is the candidate; with Q in the final choice it need not be."""
    visits_per_second: float = 0.0


class Lag:
    """Estimates the lag from the client's clock, move by move.

    The lag is the time that moves cost on the player's clock beyond the time intended for them: the way
    to the client and back, threads that wake up late on a busy machine, a slow batch. The engine cannot
    measure it itself, but the clock before the next move shows it. A large lag may occur again, so the
    largest one is forgotten slowly. Increments are assumed to be added in full after each move
    (Fischer clock).
    """

    def __init__(self) -> None:
        self.usual = 0.0
        """Seconds, smoothed over the last moves."""
        self.worst = ASSUMED_LAG
        """Seconds, the largest of the last moves."""
        self._last: tuple[int, float, float, float] | None = None
        """The move that was sent, as in `sent`."""

    def sent(self, ply: int, remaining: float, increment: float, meant: float) -> None:
        """Record a move that was sent.

        ply: ply of the game before the move. remaining, increment: state of the clock before the move.
        meant: time intended for the move. Times are in seconds.
        """
        self._last = ply, remaining, increment, meant

    def shown(self, ply: int, remaining: float) -> None:
        """Update the lag with the clock before a move.

        Ignored if this cannot be the player's next move after the one sent (takeback, time added,
        another game or side), and for clocks in whole seconds.
        """
        last = self._last
        self.forget_last()
        if last is None:
            return
        last_ply, before, increment, meant = last
        spent = before + increment - remaining
        if ply != last_ply + 2 or spent < 0 or (remaining % 1 == 0 and before % 1 == 0):
            return
        seen = min(max(spent - meant, 0.0), LAG_LIMIT)
        self.usual += GAIN * (seen - self.usual)
        self.worst = max(seen, MEMORY * self.worst)

    def forget_last(self) -> None:
        """Ignore the last move when the next clock is shown. The estimates stay."""
        self._last = None


@dataclass(kw_only=True)
class TimeManager:
    """Computes the time budget of each move and decides when to stop."""

    overhead: float = 0.02
    """Seconds between the engine's move and the stop of its clock ([Xiangqi-thesis]: 20 ms); if the usual
    lag is larger, it is used instead."""
    jitter: float = 0.0
    """0.1 varies the time randomly by up to 10 %, for games against people ([CrazyAra-preprint] eq. 9)."""
    early_stop: bool = True
    """End a search once its most visited move cannot be overtaken."""
    speed: float = 1.0
    """Factor of the time for each move, as far as the clock allows (Stockfish's Slow Mover)."""
    factor: float = FACTOR
    """Factor of the paper's time for a move in sudden death; 1: as in the paper."""
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    """Of the jitter."""
    lag: Lag = field(default_factory=Lag)
    """Lag of moves; updated by the caller with the client's clock."""
    last_q: float | None = None
    """Value of the last move played, for the player; None before the first move."""

    def budget(self, clock: Clock, own_moves: int) -> Budget:
        """Return the time for a move. own_moves: moves that the player has made in the game, including
        those from an opening book."""
        cost = self._cost
        left = max(clock.remaining + clock.byoyomi - cost, LEAST)
        if clock.remaining < clock.byoyomi:
            # one last long move; later ones use all of their byoyomi, which would be lost otherwise
            target = cap = left - self._reserve
        elif clock.moves_to_go:
            moves = clock.moves_to_go
            # every move costs this once
            share = max(clock.remaining - moves * cost, LEAST) / moves
            target = min(self.speed * (share + INCREMENT_SHARE * clock.increment), left)
            cap = left - self._reserve if moves == 1 else left * CRITICAL_SHARE * TARGET_CAP
        else:
            if own_moves < PROPORTIONAL_FROM:
                share = clock.remaining / (GAME_LENGTH - own_moves)
            else:
                share = PROPORTION * clock.remaining
            bonus = clock.increment + clock.byoyomi
            target = self.factor * self.speed * (share + INCREMENT_SHARE * bonus)
            target = min(target - cost, TARGET_CAP * left)
            cap = left * CRITICAL_SHARE * TARGET_CAP
        if self.jitter > 0:
            target *= 1.0 + self.rng.uniform(-self.jitter, self.jitter)
        target = max(min(target, cap), LEAST)
        return Budget(target, max(min(CRITICAL_SHARE * target, cap), LEAST))

    def pace(self, clock: Clock, own_moves: int) -> Pace:
        """Return whether there is time to "search"; "look" allows one evaluation only, "at once" not
        even that."""
        cost = self._cost
        left, reserve = clock.remaining + clock.byoyomi - cost, self._reserve
        paid = clock.moves_to_go == 1 or clock.increment + clock.byoyomi >= cost + SCARCE
        if left < NO_TIME * reserve and not (paid and left >= reserve + SCARCE):
            return "at once"
        scarce = self.budget(clock, own_moves).maximum < SCARCE
        return "look" if scarce and left < LITTLE_TIME * reserve else "search"

    @property
    def _cost(self) -> float:
        """Usual seconds per move in addition to the search."""
        return max(self.overhead, self.lag.usual)

    @property
    def _reserve(self) -> float:
        """Seconds by which the lag of a move may exceed the usual cost."""
        return max(self.lag.worst - self._cost, SMALLEST_RESERVE)

    def is_critical(self, q: float) -> bool:
        """Return True if the candidate is at least 0.1 worse than the last move played."""
        return self.last_q is not None and self.last_q - q >= CRITICAL_DROP

    def verdict(self, budget: Budget, progress: Progress, legal_moves: int) -> Verdict | None:
        """Return the reason to stop now; None: go on. Fast enough to be called often."""
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
        """Store the value of the move that was played, for the next move's `is_critical`."""
        self.last_q = q

    def forget(self) -> None:
        """Prepare for a new game."""
        self.last_q = None
        self.lag.forget_last()

    def _decided(self, progress: Progress, end: float) -> bool:
        """Return True if the remaining visits cannot bring the second move past the first."""
        if progress.visits_per_second <= 0 or not progress.leader_chosen:
            return False
        to_come = (end - progress.elapsed) * progress.visits_per_second
        return progress.leader_visits - progress.second_visits > to_come
