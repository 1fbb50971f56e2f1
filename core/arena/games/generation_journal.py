"""Generated games before they are in a store: a journal beside it that outlives a kill.

The first line says what is generated; only the same command goes on with it. Every finished or
filtered game is a line, written when it has ended, whatever its number, so a kill loses the games in
progress and no other. Games that the engine failed in are none: the next run plays them again. When
the run ends the games are put into the store in the order of their numbers, those that were played
before or that the store has left out, and the journal is removed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from variant_ai.core.arena.games.generation import Dropped, Ended, Unlike, is_settled, number_of
from variant_ai.core.arena.match.journal import Journal, read_journal
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.errors import DataError

FIELDS = ("moves", "start_fen", "result", "white", "black", "event", "termination", "source")


def journal_path(store: Path) -> Path:
    return store.with_name(store.name + ".journal")


class GeneratedGames:
    """The journal of one store. A context manager; one process at a time."""

    def __init__(self, store: Path, variant: str, settings: dict[str, Any]) -> None:
        """Begin, or take up what an earlier run of the same settings left. Raises DataError where
        the journal is of other settings, or in use."""
        self.path = journal_path(store)
        self.variant = variant
        self._journal = Journal(self.path, keep=False)
        lines, self._journal.lines = self._journal.lines, []
        if not lines:
            try:
                self._journal.append({"settings": settings})
            except DataError:  # a full disk: nothing was begun
                self._journal.close()
                self.path.unlink(missing_ok=True)
                raise
        elif lines[0].get("settings") != settings:
            self._journal.close()
            raise DataError(
                f"{self.path} holds games that another command began for this store; run that one "
                "again to go on, or remove the file to begin anew"
            )
        settled = [line for line in lines[1:] if _is_settled(line)]
        self.done = {int(line["number"]) for line in settled}
        """Numbers of the games that have ended, from 0."""
        self.resumed = len(self.done)
        self._kept = any("dropped" not in line for line in settled)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._journal.close()

    def add(self, game: Ended) -> None:
        """Keep a game, for good when this returns, unless it is to be played again. Raises DataError
        on a full disk."""
        if not is_settled(game):
            return
        line: dict[str, Any] = {"number": number_of(game)}
        if isinstance(game, Dropped):
            line["dropped"] = game.reason
        else:
            line |= {name: getattr(game, name) for name in FIELDS}
            line |= {"scores": game.scores, "tags": game.tags, "comments": game.comments}
            if game.visits is not None:
                line["visits"] = game.visits
            self._kept = True
        self._journal.append(line)
        self.done.add(line["number"])

    def games(self) -> Iterator[Ended]:
        """What has ended so far, in the order of numbers."""
        said = (line for line in read_journal(self.path) if _is_settled(line))
        for line in sorted(said, key=lambda line: int(line["number"])):
            if "dropped" in line:
                yield Dropped(line["number"], line["dropped"])
                continue
            record = GameRecord(self.variant, **{name: line[name] for name in FIELDS})
            record.number = line["number"] + 1
            record.scores, record.tags = line["scores"], line["tags"]
            if "visits" in line:
                record.visits = [tuple((m, n) for m, n in pairs) for pairs in line["visits"]]
            record.comments = {int(ply): words for ply, words in line["comments"].items()}
            yield record

    def has_games(self) -> bool:
        """Whether a game has ended that was not dropped."""
        return self._kept

    def unlike(self, most: int) -> Iterator[Ended]:
        """The same, games that were played before as dropped ones, up to the `most`th that is kept.

        There are more where an engine failed in a game and those behind it took its place, and a
        later run played that one, too.
        """
        for game in map(Unlike(), self.games()):
            if most == 0:
                return
            yield game
            most -= isinstance(game, GameRecord)

    def remove(self) -> None:
        """The games are in the store."""
        self._journal.close()
        with contextlib.suppress(OSError):
            self.path.unlink()


def _is_settled(line: dict[str, Any]) -> bool:
    """Whether a line tells of a game that is not played again."""
    if "number" not in line:
        return False
    return "dropped" not in line or is_settled(Dropped(line["number"], line["dropped"]))
