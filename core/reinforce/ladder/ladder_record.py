"""Pairings of a run's nets, as `ladder.json` keeps them, and the Elo of its generations.

    {"pairings": [{"generation": 8, "opponent": 7, "wins": 21, ...}, ...],
     "accepted": [0, 1, 2, 4, ...]}

An opponent is a generation or, as text, an outside player. Generation 0 has 0 Elo. `draw_ladder` draws Elo
with its error over generations.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from variant_ai.core.arena.tables.elo import Tally, fit
from variant_ai.core.errors import DataError
from variant_ai.core.system.files import write_whole

Opponent = int | str
"""Generation, or the text of an outside player."""


@dataclass(frozen=True, kw_only=True)
class MatchScore:
    """Result of a match, from the point of view of the first player."""

    wins: int
    draws: int
    losses: int
    capped: int = 0
    """Of the draws, games that reached their greatest length."""
    faults: int = 0
    """Games that an outside player ended by a crash, an illegal move and the like; they are in none of
    the other counts."""
    evaluations: int = 0
    """Positions evaluated in them."""
    distinct: int = 0
    """Games that differ from all others in the position after the opening, in the colours or in a
    later move; the others are no evidence."""

    @property
    def tally(self) -> Tally:
        return Tally(self.wins, self.draws, self.losses)


@dataclass(frozen=True, kw_only=True)
class LadderMatch(MatchScore):
    """Games of a generation, the first player, against an opponent."""

    generation: int
    opponent: Opponent
    cpu_seconds: float = 0.0


@dataclass
class LadderRecord:
    """Content of a `ladder.json`."""

    pairings: list[LadderMatch] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    """Generations that may generate games, in order; empty without a gate."""

    @classmethod
    def read(cls, path: Path) -> LadderRecord:
        """Read a file; one that does not exist is an empty record. Raises DataError."""
        try:
            content = json.loads(path.read_text("utf-8"))
            return cls(
                [LadderMatch(**one) for one in content["pairings"]],
                [int(number) for number in content["accepted"]],
            )
        except FileNotFoundError:
            return cls()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: not the ladder of a run: {error}") from error

    def write(self, path: Path) -> None:
        """Write the file under another name and rename it."""
        content: dict[str, Any] = {
            "pairings": [asdict(one) for one in self.pairings],
            "accepted": self.accepted,
        }
        write_whole(path, json.dumps(content, indent=1))

    def find(self, generation: int, opponent: Opponent) -> LadderMatch | None:
        """Return the games of a generation against an opponent, if they have been played."""
        for one in self.pairings:
            if (one.generation, one.opponent) == (generation, opponent):
                return one
        return None

    @property
    def measured(self) -> list[int]:
        """Generations that have played a match, and generation 0, in order."""
        return sorted({0, *(one.generation for one in self.pairings)})

    def ratings(self) -> dict[Opponent, tuple[float, float]]:
        """Fit Elo and half the width of its 95 % interval, both relative to generation 0, for every
        generation and outside player that games connect with generation 0.

        A draw is added to a pairing in which one side has no points, so that all numbers are finite.
        """
        linked = self._linked()
        if len(linked) == 1:
            return {0: (0.0, 0.0)}
        index = {player: number for number, player in enumerate(linked)}
        results = [[Tally()] * len(linked) for _ in linked]
        for one in self.pairings:
            tally = one.tally
            if one.generation not in index or not tally.games:
                continue
            if tally.score in (0.0, 1.0):
                tally += Tally(draws=1)
            results[index[one.generation]][index[one.opponent]] += tally
        ratings = fit(results)
        return {player: ratings.difference(number, 0) for player, number in index.items()}

    def elo(self) -> dict[int, tuple[float, float]]:
        """Elo and error of the generations, as in `ratings`, in order."""
        ratings = self.ratings()
        generations = sorted(player for player in ratings if isinstance(player, int))
        return {generation: ratings[generation] for generation in generations}

    def _linked(self) -> list[Opponent]:
        """Generation 0 and all players that games connect with it."""
        linked: dict[Opponent, None] = {0: None}
        while True:
            new = {
                player: None
                for one in self.pairings
                if one.tally.games and (one.generation in linked or one.opponent in linked)
                for player in (one.generation, one.opponent)
                if player not in linked
            }
            if not new:
                return list(linked)
            linked |= new


def draw_ladder(record: LadderRecord, path: Path) -> None:
    """Draw a ladder into an SVG file. Outside players are dotted lines at their Elo."""
    import matplotlib

    from variant_ai.core.train.pictures.canvas import (
        GREY,
        generations_axis,
        new_figure,
        printable,
        series,
        tidy,
    )

    figure = new_figure(8, 5)
    axes = figure.subplots()
    look = series(0)
    measured = record.elo()
    axes.errorbar(
        list(measured),
        [elo for elo, _ in measured.values()],
        yerr=[error for _, error in measured.values()],
        linewidth=1.2,
        markersize=4,
        capsize=2,
        elinewidth=0.7,
        **look,
    )
    for player, (elo, _) in record.ratings().items():
        if isinstance(player, str):
            axes.axhline(elo, color=look["color"], linewidth=0.8, linestyle=":")
            axes.annotate(
                printable(player, 50),
                (0.01, elo),
                xycoords=axes.get_yaxis_transform(),
                va="bottom",
                fontsize=7,
                color=GREY,
            )
    generations_axis(axes)
    axes.set_ylabel("Elo above generation 0, with 95 % interval")
    tidy(axes)
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "ladder"}):  # the same picture has the same bytes
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    write_whole(path, buffer.getvalue())
