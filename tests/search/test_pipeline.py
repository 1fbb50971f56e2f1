"""Batches that are evaluated in threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from variant_ai.core.errors import VariantAIError
from variant_ai.core.search.pipeline import Pipeline


def test_a_pipeline_that_is_closed_while_it_starts_does_not_start() -> None:
    pipeline = Pipeline([])

    class ClosedBefore(threading.Condition):
        """Another thread closes the pipeline just before the lock is taken."""

        def __enter__(self) -> bool:
            pipeline._wake = ordinary
            pipeline.close()
            return super().__enter__()

    ordinary: Any = pipeline._wake
    pipeline._wake = ClosedBefore()
    with pytest.raises(VariantAIError, match="closed"):
        pipeline.start()
    assert pipeline.stopped
