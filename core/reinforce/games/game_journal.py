"""Journal of self-play: a line of JSON for each game, written when the game ends.

A kill at any time loses at most the line that is being written. The store of a generation is made
from its journal, which is deleted afterwards.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from variant_ai.core.arena.match.journal import Journal, JournalLine
from variant_ai.core.data.game_record import OPENING_TAG, GameRecord
from variant_ai.core.errors import DataError
from variant_ai.core.system.closing import Closing
from variant_ai.core.system.text_tables import counted

PLAYER = "self-play"
"""Name of both players of a game of self-play."""


class GameJournal(Closing):
    """Journal of one generation, opened for reading and appending."""

    def __init__(self, path: Path, variant: str) -> None:
        """Read the games of the file; an unfinished last line is removed. Raises DataError for a line that
        cannot be read."""
        self._journal = Journal(path)
        self.games: list[GameRecord] = []
        try:
            for line in self._journal.lines():
                self.games.append(_read(line, path, variant))
        except BaseException:
            self._journal.close()
            raise

    def add(self, record: GameRecord) -> None:
        """Append a game. Raises DataError, for example for a full disk; the journal is as before
        then."""
        self._journal.append(_words(record))
        self.games.append(record)

    def close(self) -> None:
        self._journal.close()


def _read(line: JournalLine, path: Path, variant: str) -> GameRecord:
    try:
        return read_line(line.content, variant)
    except DataError as error:
        raise DataError(
            f"{path}:{line.number}: {error}; delete the line to go on without this game"
        ) from None


def game_line(record: GameRecord) -> bytes:
    """Return a game as a line, without its end."""
    return json.dumps(_words(record), separators=(",", ":")).encode()


def _words(record: GameRecord) -> dict[str, Any]:
    return {
        "number": record.number,
        "generation": record.generation,
        "start": record.start_fen,
        "opening": record.opening_plies,
        "moves": record.moves,
        "result": record.result,
        "termination": record.termination,
        "visits": [[number for pair in ply for number in pair] for ply in record.visits or ()],
        "values": [
            None if value is None else round(value, 5) for value in record.root_values or ()
        ],
        "trains": record.trains,
    }


def read_line(line: bytes | dict[str, Any], variant: str) -> GameRecord:
    """Return the game of a line, or of the words of one. Raises DataError if it is not one."""
    try:
        return _record(json.loads(line) if isinstance(line, bytes) else line, variant)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"not a game of a journal ({error})") from None


def _record(line: dict[str, Any], variant: str) -> GameRecord:
    for name in ("visits", "values", "trains"):
        if len(line[name]) != len(line["moves"]):
            raise ValueError(
                f"{counted(len(line['moves']), 'move')}, but {name} of {len(line[name])}"
            )
    return self_play_record(
        variant,
        number=line["number"],
        generation=line["generation"],
        start_fen=line["start"],
        opening_plies=line["opening"],
        moves=line["moves"],
        result=line["result"],
        termination=line["termination"],
        visits=[tuple(zip(ply[::2], ply[1::2], strict=True)) for ply in line["visits"]],
        root_values=line["values"],
        trains=line["trains"],
    )


def self_play_record(
    variant: str, *, generation: int, opening_plies: int, **fields: Any
) -> GameRecord:
    """Return a game of self-play as a record. generation: number of its net. opening_plies: first plies
    that no player chose. fields: the others of `GameRecord`."""
    return GameRecord(
        variant,
        white=PLAYER,
        black=PLAYER,
        event=f"generation {generation}",
        generation=generation,
        tags={OPENING_TAG: str(opening_plies)},
        **fields,
    )
