"""Readers of plugins: what one raises, or returns of another type, is reported with the name of the plugin,
and files that have nothing to do with it are read as before."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from variant_ai.core.data.read.game_reader import GameReader, RawGame
from variant_ai.core.errors import VariantAIError
from variant_ai.core.rules.text.guarded_notation import require_type

_log = logging.getLogger(__name__)


@dataclass
class GuardedReader(GameReader):
    """A reader of a plugin."""

    inner: GameReader
    plugin: str
    reported: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.name, self.extensions = self.inner.name, self.inner.extensions

    def sniff(self, head: bytes) -> bool:
        """Recognise a file as the plugin does; False if that fails, which is reported once."""
        try:
            return bool(self.inner.sniff(head))
        except Exception as error:
            if not self.reported:
                _log.warning("%s", self._failed("sniff", error))
            self.reported = True
            return False

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        """Yield the games that the plugin reads. Where that fails, the last one reports it."""
        number = 0
        try:
            for raw in self.inner.read(stream, source):
                require_type(raw, RawGame)
                for word in raw.moves:
                    require_type(word, str)
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
