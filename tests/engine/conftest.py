"""Fixtures of the engine tests."""

from __future__ import annotations

import pytest

from variant_ai.core.engine import loading


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact lines are compared, also on a machine that is slow to load."""
    monkeypatch.setattr(loading, "PROGRESS_EVERY", 300.0)
