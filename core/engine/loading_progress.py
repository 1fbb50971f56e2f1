"""Messages about loading and compiling, while a client waits for an answer."""

from __future__ import annotations

import threading
from collections.abc import Callable

from variant_ai.core.system import compilation_progress as compilation

EVERY = 1.0
"""Seconds between two checks whether the progress has changed."""


class LoadingProgress:
    """Prints how far loading is, whenever that has changed and an answer waits for it."""

    def __init__(self, is_over: Callable[[], bool], write: Callable[[str], None]) -> None:
        """is_over: whether everything is loaded, or nobody wants to know. Both are called in a thread
        of their own."""
        self._is_over = is_over
        self._write = write
        self._lock = threading.Lock()
        self._waiting = 0
        """Number of answers that wait."""
        self._last = ""
        self._has_timer = False

    def begin(self) -> None:
        """Count an answer that waits from now on."""
        with self._lock:
            self._waiting += 1
            self._last = ""
            self._start_timer()

    def end(self) -> None:
        """Count an answer that has been given."""
        with self._lock:
            self._waiting -= 1

    def _start_timer(self) -> None:
        """Start the timer if there is none; the caller holds the lock."""
        if not self._has_timer and not self._is_over():
            self._has_timer = True
            timer = threading.Timer(EVERY, self._print)
            timer.daemon = True
            timer.start()

    def _print(self) -> None:
        with self._lock:
            self._has_timer = False
            if not self._waiting or self._is_over():
                return
            progress = compilation.latest()
            is_compiling = progress is not None and progress.done < progress.total
            text = str(progress) if is_compiling else "still loading"
            if text != self._last:
                self._write(text)
            self._last = text
            self._start_timer()
