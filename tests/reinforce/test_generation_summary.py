"""Advice on a run whose games are hardly ever won."""

from __future__ import annotations

import pytest

from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.reinforce.report.generation_statistics import advice_on


@pytest.mark.parametrize(
    ("generation", "draws", "share", "advised"),
    [(3, 0.99, 0.0, True), (2, 0.99, 0.0, False), (3, 0.5, 0.0, False), (3, 0.99, 0.5, False)],
)
def test_scattered_pieces_are_advised_where_nothing_is_won(
    generation: int, draws: float, share: float, advised: bool
) -> None:
    advice = advice_on({"generation": generation, "draws": draws}, share)
    assert bool(advice) is advised
    if advised:
        assert "99 % of the games" in advice and "variety.scattered_share" in advice
        ReinforceSettings.model_validate(
            {"variant": "racingkings", "variety": {"scattered_share": 0.5}}
        )
