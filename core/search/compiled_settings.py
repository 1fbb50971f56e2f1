"""Settings of the search as compiled code reads them: one record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import UnknownNameError
from variant_ai.core.jit import array
from variant_ai.core.rules.pieces import PieceType, PieceTypes
from variant_ai.core.rules.position import COLOUR_STRIDE
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.transpositions import counters_read
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.search_settings import SEARCH_SETTINGS, setting

TABLED = 4096
"""Exploration factors of nodes with fewer visits are looked up in tables."""

_CODES = {"float": "f8", "int": "i8", "bool": "i1", "choice": "i1", "float or choice": "f8"}

SETTINGS = np.dtype(
    [
        # settings of the search, by their own names
        *((row.name, _CODES[row.kind]) for row in SEARCH_SETTINGS.values() if row.compiled),
        ("read", "i8"),  # counters in node keys, `transpositions.py`
        # the repetition rule
        ("fold", "i8"),
        ("check_loses", "i1"),
        ("chase_loses", "i1"),
        ("idle", "i1"),  # IDLE_DRAW, IDLE_FIRST_LOSES, IDLE_MOVER_LOSES
        # selection by the improved policy, `tree/selection.py`; off in matches and analysis
        ("improved", "i1"),
        ("minmax", "i1"),
        ("visit_offset", "f8"),
        ("value_scale", "f8"),
        # factors of nodes with few visits, by the sum of edge visits
        ("explore", "f8", (TABLED,)),  # c(s) * sqrt(sum)
        ("divisor", "f8", (TABLED,)),
        ("piece_gain", "f8", (COLOUR_STRIDE,)),  # by piece type
    ],
    align=True,
)


def compiled_value(name: str, value: object) -> Any:
    """Value of a setting in the record: a choice is its index; a choice of a setting that is a
    number as well is -1 - index."""
    row = setting(name)
    if not isinstance(value, str):
        return value
    index = row.choices.index(value)
    return -1.0 - index if row.kind == "float or choice" else index


LOSS: int = compiled_value("q_unvisited", "loss")
DRAW: int = compiled_value("q_unvisited", "draw")
LOST_VISIT: int = compiled_value("virtual_style", "loss")
CATCH_UP: int = compiled_value("backup", "catch-up")
Q_EPSILON: int = compiled_value("backup", "q-epsilon")
ADAPTIVE: float = compiled_value("u_divisor", "adaptive")
IDLE_DRAW, IDLE_FIRST_LOSES, IDLE_MOVER_LOSES = range(3)

Settings: TypeAlias = Annotated[NDArray[np.void], array(SETTINGS)]
"""Array of shape (1,), dtype SETTINGS."""


def compile_settings(spec: VariantSpec, params: SearchParams) -> Settings:
    """Return the record of a search's parameters and a spec's rules of repetition."""
    settings = np.zeros(1, SETTINGS)
    s = settings[0]
    for row in SEARCH_SETTINGS.values():
        if row.compiled:
            s[row.name] = compiled_value(row.name, getattr(params, row.name))
    s["read"] = counters_read(spec)
    rule = spec.rules.repetition
    s["fold"] = rule.fold
    s["check_loses"] = rule.perpetual_check == "loss"
    s["chase_loses"] = rule.forbids_chases
    s["idle"] = ("draw", "loss of first player", "loss of mover").index(rule.otherwise)
    s["explore"] = [exploration(s, float(total)) for total in range(TABLED)]
    s["divisor"] = [divisor(s, float(total)) for total in range(TABLED)]
    for symbol in params.piece_gains:
        if symbol not in spec.pieces:
            raise UnknownNameError("piece", symbol, spec.pieces)
    for piece in PieceTypes(spec).all:
        s["piece_gain"][piece.index] = gain_of(spec, piece, params.piece_gains)
    s["look_for_material"] &= s["piece_gain"].any()
    return settings


def gain_of(spec: VariantSpec, piece: PieceType, gains: Mapping[str, float]) -> float:
    """Return the gain of a piece's capture. If another piece goes into the hand, half the gain is the
    loss of the owner, half the new piece of the captor."""
    gain = gains.get(piece.base, 0.0)
    if spec.hands is None or piece.hand < 0:
        return gain
    return (gain + gains.get(spec.hands.order[piece.hand], 0.0)) / 2


def exploration(s: Any, total: float) -> float:
    """c(s) sqrt(N(s)) for a sum of edge visits ([CrazyAra-preprint] eq. 2, 3). s: record SETTINGS."""
    base = s["cpuct_base"]
    return float((math.log((total + base + 1.0) / base) + s["cpuct_init"]) * math.sqrt(total))


def divisor(s: Any, total: float) -> float:
    """u_divisor(s) for a sum of edge visits ([CrazyAra-preprint] eq. 11), or the constant."""
    if s["u_divisor"] != ADAPTIVE:
        return float(s["u_divisor"])
    low = s["u_min"]
    return float(low - math.exp(-total / s["u_base"]) * (low - s["u_init"]))
