"""Budget of a run: generations and minutes of CPU time, and how much of it is used up."""

from __future__ import annotations

from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.system.text_tables import counted


def used_share(settings: ReinforceSettings, generation: int, cpu_seconds: float) -> float:
    """Share of the budget that is used up, in [0, 1]; 0 without a budget.

    generation: the last complete one. cpu_seconds: of the whole run.
    """
    shares = [0.0]
    if settings.generations is not None:
        shares.append(generation / settings.generations)
    if settings.minutes is not None:
        shares.append(cpu_seconds / 60 / settings.minutes)
    return min(1.0, max(shares))


def used_up(settings: ReinforceSettings, generation: int, cpu_seconds: float) -> str:
    """Return which budgets are used up and how to give more of them; empty if none is."""
    spent, options = [], []
    if settings.generations is not None and generation >= settings.generations:
        spent.append(f"{generation} of {counted(settings.generations, 'generation')}")
        options.append("--generations")
    if settings.minutes is not None and cpu_seconds >= 60 * settings.minutes:
        spent.append(f"{cpu_seconds / 60:.1f} of {settings.minutes:g} minutes of CPU time")
        options.append("--minutes")
    if not spent:
        return ""
    return f"the budget is used up ({', '.join(spent)}); give more with {' and '.join(options)}"
