"""Notations of plugins: what one raises, or returns of another type, becomes an error that names the plugin."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from variant_ai.core.errors import MoveError, PluginError, VariantAIError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import Notation


@dataclass
class GuardedNotation(Notation):
    """A notation of a plugin."""

    inner: Notation
    plugin: str

    def __post_init__(self) -> None:
        self.name = self.inner.name

    def write(self, rules: Rules, position: Position, move: int) -> str:
        """Write a move as the plugin does. Raises PluginError if that fails."""
        with self._guarded():
            text = self.inner.write(rules, position, move)
            require_type(text, str)
        return text

    def write_line(self, rules: Rules, position: Position, moves: Iterable[int]) -> list[str]:
        """Write moves as the plugin does. Raises PluginError if that fails."""
        with self._guarded():
            texts = self.inner.write_line(rules, position, moves)
            for text in texts:
                require_type(text, str)
        return texts

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Context in which the plugin writes moves."""
        try:
            yield
        except VariantAIError:
            raise
        except Exception as error:
            raise PluginError(self._failed("write", error)) from error

    def read(self, rules: Rules, position: Position, text: str) -> int:
        """Read a move as the plugin does. Raises MoveError if that fails: other notations may read the text."""
        try:
            move = self.inner.read(rules, position, text)
            require_type(move, int)
        except VariantAIError:
            raise
        except Exception as error:
            raise MoveError(self._failed("read", error)) from error
        return move

    def _failed(self, action: str, error: Exception) -> str:
        problem = f"{type(error).__name__}: {error}"
        return f"plugin {self.plugin!r}: the notation {self.name!r} cannot {action}: {problem}"


def require_type(value: object, kind: type) -> None:
    """Raise TypeError if a value of a plugin is of another type."""
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
