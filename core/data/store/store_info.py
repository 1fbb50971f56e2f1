"""Contents and history of a store: its shards, and the origin of its games."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from variant_ai.core.data.store.blocks import Block


@dataclass(frozen=True, slots=True)
class Shard:
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
    sources: tuple[str, ...] = ()
    conditions: dict[str, Any] = field(default_factory=dict)
    """Conditions of the games (`GameFilter.as_dict`, or those of a split)."""
    parents: tuple[Parent, ...] = ()
    """Stores that the games were copied from."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Games of the sources that were left out, by reason; from the END block, if there is one."""
    interrupted: bool = False
    """True if the command ended before its sources; from the END block too."""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON of a run, without empty values, and without sources, which are written once
        for the whole store."""
        data = {
            "conditions": self.conditions,
            "parents": [parent.as_dict() for parent in self.parents],
            "dropped": self.dropped,
            "interrupted": self.interrupted,
        }
        return {"tool": self.tool} | {name: value for name, value in data.items() if value}


@dataclass(frozen=True, slots=True)
class Parent:
    """State of a store when games were copied from it."""

    content_hash: str
    games: int
    runs: tuple[Run, ...]

    def as_dict(self) -> dict[str, Any]:
        runs = [run.as_dict() for run in self.runs]
        return {"content_hash": self.content_hash, "games": self.games, "runs": runs}


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
