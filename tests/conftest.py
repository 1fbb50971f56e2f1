"""Fixtures and settings of the whole suite."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# Children of these tests must answer them, also if the tests were started by nohup or in the background.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The same examples every time: a failure seen once is seen again.
hypothesis.settings.register_profile("variant-ai", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("variant-ai")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real games and positions; skips the test where it is missing."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the real games in {folder}")
    return folder


@pytest.fixture(autouse=True, scope="module")
def handlers_of_signals() -> Iterator[None]:
    """No module leaves handlers of signals behind."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert after == before
