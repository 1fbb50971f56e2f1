"""Search parameters as compiled code reads them: one record."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import array
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.transpositions import counters_read
from variant_ai.core.spec.schema import VariantSpec

TABLED = 4096
"""Visits of a node for which its exploration factors are looked up."""

SETTINGS = np.dtype(
    [
        ("cpuct_init", "f8"),
        ("cpuct_base", "f8"),
        ("adaptive", "i1"),  # 1: the u-divisor follows eq. 11, else it is u_min
        ("u_min", "f8"),
        ("u_init", "f8"),
        ("u_base", "f8"),
        ("unvisited", "i1"),  # LOSS, DRAW, PARENT
        ("reduction", "f8"),
        ("loses", "i1"),  # 1: visits under way count as lost
        ("virtual", "f8"),  # how many visits one under way counts as
        ("temperature", "f8"),
        ("enhance", "i1"),
        ("enhance_threshold", "f8"),
        ("enhance_factor", "f8"),
        ("mate_stop", "i1"),
        ("solver", "i1"),
        ("look", "i1"),  # 1: nodes with a few visits are looked at for mate in one
        ("transpositions", "i1"),
        ("backup", "i1"),  # CATCH_UP, Q_EPSILON, PLAIN
        ("q_epsilon", "f8"),
        ("max_depth", "i8"),
        ("read", "i8"),  # counters in node keys, `table.py`
        # the repetition rule
        ("fold", "i8"),
        ("check_loses", "i1"),
        ("chase_loses", "i1"),
        ("idle", "i1"),  # IDLE_DRAW, IDLE_FIRST_LOSES, IDLE_MOVER_LOSES
        # factors of nodes with few visits, by the sum of edge visits
        ("explore", "f8", (TABLED,)),  # c(s) * sqrt(sum)
        ("divisor", "f8", (TABLED,)),
    ],
    align=True,
)
LOSS, DRAW, PARENT = range(3)
CATCH_UP, Q_EPSILON, PLAIN = range(3)
IDLE_DRAW, IDLE_FIRST_LOSES, IDLE_MOVER_LOSES = range(3)

Settings: TypeAlias = Annotated[NDArray[np.void], array(SETTINGS)]
"""Array of shape (1,), dtype SETTINGS."""


def compile_settings(spec: VariantSpec, params: SearchParams) -> Settings:
    """The record of a spec's rules of repetition and a search's parameters."""
    settings = np.zeros(1, SETTINGS)
    s = settings[0]
    adaptive = params.u_divisor == "adaptive"
    s["cpuct_init"], s["cpuct_base"] = params.cpuct_init, params.cpuct_base
    s["adaptive"] = adaptive
    s["u_min"] = params.u_min if adaptive else params.u_divisor
    s["u_init"], s["u_base"] = params.u_init, params.u_base
    s["unvisited"] = ("loss", "draw", "parent").index(params.q_unvisited)
    s["reduction"] = params.q_unvisited_reduction
    s["loses"] = params.virtual_style == "loss"
    s["virtual"] = params.virtual_loss
    s["temperature"] = params.node_temperature
    s["enhance"] = params.enhance_checks
    s["enhance_threshold"] = params.enhance_threshold
    s["enhance_factor"] = params.enhance_factor
    s["mate_stop"], s["solver"] = params.mate_stop, params.solver
    s["look"] = params.solver and params.look_for_mates
    s["transpositions"] = params.transpositions
    s["backup"] = ("catch-up", "q-epsilon", "none").index(params.backup)
    s["q_epsilon"] = params.q_epsilon
    s["max_depth"] = params.max_depth
    s["read"] = counters_read(spec)
    rule = spec.rules.repetition
    s["fold"] = rule.fold
    s["check_loses"] = rule.perpetual_check == "loss"
    s["chase_loses"] = rule.perpetual_chase != "none"
    s["idle"] = ("draw", "loss of first player", "loss of mover").index(rule.otherwise)
    total = np.arange(TABLED, dtype=np.float64)
    s["explore"] = exploration(params, total) * np.sqrt(total)
    s["divisor"] = divisor(params, total)
    return settings


def exploration(params: SearchParams, total: NDArray[np.float64]) -> NDArray[np.float64]:
    """c(s) for sums of edge visits (000 eq. 3)."""
    base = params.cpuct_base
    return np.log((total + base + 1.0) / base) + params.cpuct_init


def divisor(params: SearchParams, total: NDArray[np.float64]) -> NDArray[np.float64]:
    """u_divisor(s) for sums of edge visits (000 eq. 11), or the constant."""
    if params.u_divisor != "adaptive":
        return np.full_like(total, params.u_divisor)
    low, high = params.u_min, params.u_init
    return low - np.exp(-total / params.u_base) * (low - high)
