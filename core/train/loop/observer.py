"""Who watches a training, step by step."""

from __future__ import annotations

from typing import Any, Protocol


class Observer(Protocol):
    """Who watches a training, e.g. a progress bar."""

    def stepped(self, step: int) -> None:
        """A step was taken; `step` were taken in all."""

    def recorded(self, kind: str, step: int, numbers: dict[str, Any]) -> None:
        """A line was added to the record."""

    def validating(self, step: int) -> None:
        """A validation begins."""


class Silent:
    """An observer that looks away."""

    def stepped(self, step: int) -> None: ...

    def recorded(self, kind: str, step: int, numbers: dict[str, Any]) -> None: ...

    def validating(self, step: int) -> None: ...
