"""What a store says of itself: where its shards lie, and how its games came into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from variant_ai.core.data.store.blocks import Block


@dataclass(frozen=True, slots=True)
class Shard:
    """Where the blocks of a shard lie, and its games."""

    move: Block
    fact: Block
    note: Block
    first_game: int
    root: Block | None = None
    """Visits of searches, where the shard has some. Its head counts the games and plies that do."""

    @property
    def games(self) -> int:
        return self.move.games

    @property
    def bytes(self) -> int:
        return self.note.end - self.move.offset


@dataclass(frozen=True, slots=True)
class Run:
    """One writing of shards: what a RUN block says."""

    tool: str
    sources: tuple[str, ...]
    conditions: dict[str, Any]
    """What the games were chosen by (`GameFilter.as_dict`, or words of a split)."""
    parents: tuple[Parent, ...] = ()
    """Stores the games were copied from, where they were."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Games of the sources that were left out, by reason; from the END block, if it came to it."""
    interrupted: bool = False
    """Whether it was ended before the sources were; from the END block too."""

    @staticmethod
    def from_dict(said: Mapping[str, Any]) -> Run:
        parents = tuple(
            Parent(
                parent["content_hash"],
                parent["games"],
                tuple(Run.from_dict(run) for run in parent["runs"]),
            )
            for parent in said.get("parents", ())
        )
        return Run(
            said["tool"],
            tuple(said.get("sources", ())),
            said.get("conditions", {}),
            parents,
            said.get("dropped", {}),
            said.get("interrupted", False),
        )

    def as_dict(self) -> dict[str, Any]:
        """What `from_dict` reads, without what is empty and without sources, which are told once
        for the whole store."""
        said = {
            "conditions": self.conditions,
            "parents": [parent.as_dict() for parent in self.parents],
            "dropped": self.dropped,
            "interrupted": self.interrupted,
        }
        return {"tool": self.tool} | {name: value for name, value in said.items() if value}


@dataclass(frozen=True, slots=True)
class Parent:
    """A store that games were copied from, as it was then."""

    content_hash: str
    games: int
    runs: tuple[Run, ...]

    def as_dict(self) -> dict[str, Any]:
        runs = [run.as_dict() for run in self.runs]
        return {"content_hash": self.content_hash, "games": self.games, "runs": runs}


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What a store says of itself without its games being read."""

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
    """In words, what a killed writer left; `''` for a store that was closed."""
    games_with_visits: int = 0
    plies_with_visits: int = 0
    """Plies at which visits of a search were kept."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Sources of all runs, each once, in order."""
        return tuple(dict.fromkeys(source for run in self.runs for source in run.sources))
