"""Objects that are context managers because they have a `close`."""

from __future__ import annotations

from typing import Self


class Closing:
    """Base of context managers that call `close` at their end."""

    def close(self) -> None:
        """Release files, processes or threads."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
