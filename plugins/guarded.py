"""Readers and notations of plugins: what they raise, or return of another type, becomes an error that
names the plugin, and files and notations that have nothing to do with it are read as before."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from variant_ai.core.data.read.game_reader import GameReader, RawGame
from variant_ai.core.errors import MoveError, PluginError, VariantAIError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import Notation

_log = logging.getLogger(__name__)


@dataclass
class GuardedNotation(Notation):
    """A notation of a plugin."""

    inner: Notation
    plugin: str

    def __post_init__(self) -> None:
        self.name = self.inner.name

    def write(self, rules: Rules, position: Position, move: int) -> str:
        """As the plugin's. Raises PluginError if that fails."""
        with self._guarded():
            text = self.inner.write(rules, position, move)
            _require(text, str)
        return text

    def write_line(self, rules: Rules, position: Position, moves: Iterable[int]) -> list[str]:
        """As the plugin's. Raises PluginError if that fails."""
        with self._guarded():
            texts = self.inner.write_line(rules, position, moves)
            for text in texts:
                _require(text, str)
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
        """As the plugin's. Raises MoveError if that fails: other notations may read the text."""
        try:
            move = self.inner.read(rules, position, text)
            _require(move, int)
        except VariantAIError:
            raise
        except Exception as error:
            raise MoveError(self._failed("read", error)) from error
        return move

    def _failed(self, action: str, error: Exception) -> str:
        problem = f"{type(error).__name__}: {error}"
        return f"plugin {self.plugin!r}: the notation {self.name!r} cannot {action}: {problem}"


@dataclass
class GuardedReader(GameReader):
    """A reader of a plugin."""

    inner: GameReader
    plugin: str
    reported: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.name, self.extensions = self.inner.name, self.inner.extensions

    def sniff(self, head: bytes) -> bool:
        """As the plugin's; False if that fails, which is reported once."""
        try:
            return bool(self.inner.sniff(head))
        except Exception as error:
            if not self.reported:
                _log.warning("%s", self._failed("sniff", error))
            self.reported = True
            return False

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        """As the plugin's. Where that fails, the file ends with a game that says so."""
        number = 0
        try:
            for raw in self.inner.read(stream, source):
                _require(raw, RawGame)
                for word in raw.moves:
                    _require(word, str)
                number = raw.number
                yield raw
        except (VariantAIError, OSError):
            raise
        except Exception as error:
            detail = self._failed("read", error)
            yield RawGame(source, number + 1, 0, problem="reader failed", detail=detail)

    def _failed(self, action: str, error: Exception) -> str:
        problem = f"{type(error).__name__}: {error}"
        return f"plugin {self.plugin!r}: {action} of the reader {self.name!r} failed: {problem}"


def _require(value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
