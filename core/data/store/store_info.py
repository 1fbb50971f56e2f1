"""Contents and history of a store: its shards, and the origin of its games."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter

from variant_ai.core.data.store.blocks import Block


class Shard(NamedTuple):
    """Blocks and games of a shard."""

    move: Block
    fact: Block
    note: Block
    first_game: int
    root: Block | None = None
    """Columns of searches (`visits.py`), if there are any. Its head counts the games and plies with visits."""

    @property
    def games(self) -> int:
        return self.move.games

    @property
    def bytes(self) -> int:
        return self.note.end - self.move.offset


@dataclass(frozen=True, slots=True)
class Run:
    """Contents of a RUN block: one command that wrote shards."""

    tool: str
    sources: Annotated[tuple[str, ...], Field(exclude=True)] = ()
    """Of the store as a whole; left out where a run is written as a part of another store."""
    conditions: dict[str, Any] = field(default_factory=dict)
    """Conditions of the games (`GameFilter.as_dict`, or those of a split)."""
    parents: tuple[Parent, ...] = ()
    """Stores that the games were copied from."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Games of the sources that were left out, by reason; from the END block, if there is one."""
    interrupted: bool = False
    """True if the command ended before its sources; from the END block too."""


@dataclass(frozen=True, slots=True)
class Parent:
    """State of a store when games were copied from it."""

    content_hash: str
    games: int
    runs: tuple[Run, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return its JSON, without empty values."""
        written: dict[str, Any] = TypeAdapter(Parent).dump_python(
            self, mode="json", exclude_defaults=True
        )
        return written


RUNS = TypeAdapter(Run)
"""Reads a run from JSON. Raises ValidationError, a ValueError."""


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Properties of a store that are known without reading its games."""

    path: Path
    format: int
    variant: str
    title: str
    rules_hash: str
    spec_hash: str
    codes_hash: str
    games: int
    plies: int
    shards: int
    bytes: int
    runs: tuple[Run, ...]
    unfinished: str
    """Description of what a killed writer left; `''` for a store that was closed."""
    games_with_visits: int = 0
    plies_with_visits: int = 0
    """Plies with visits of a search."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Sources of all runs, each once, in order."""
        return tuple(dict.fromkeys(source for run in self.runs for source in run.sources))
