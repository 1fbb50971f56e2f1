"""Ctrl-C and SIGTERM as a wish to stop, not as an exception in the middle of a step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Within, the first SIGINT or SIGTERM only asks to stop; a second interrupts at once."""
    asked = False

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, handler) for number in signals]
    try:
        yield lambda: asked
    finally:
        for number, old in zip(signals, before, strict=True):
            signal.signal(number, old)
