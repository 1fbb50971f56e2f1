"""Settings of one search, made from a spec and the user's overrides.

`core/spec/search_settings.py` declares the settings and their defaults. A spec's `search:` overrides
the defaults, and the user overrides both: `SearchParams.of(spec, batch_size=32)`. A spec may have
more sets by name (`settings: {paper: …}`); each starts from the plain defaults:
`SearchParams.of(spec, "paper")`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from variant_ai.core.errors import SettingError, UnknownNameError
from variant_ai.core.spec.schema import GREATEST_GAIN, SearchWords, VariantSpec
from variant_ai.core.spec.search_settings import SEARCH_SETTINGS, SearchSettings, setting

if TYPE_CHECKING:
    from variant_ai.core.inference.interface import Evaluator

DEFAULT_SET = "default"
"""Name of the settings in a spec's `search:`, beside the names in its `settings:`."""
PAPER = "paper"
"""Set that reproduces the publication of a variant, if the spec has it."""


@dataclass(frozen=True, kw_only=True)
class SearchParams(SearchSettings):
    """Checked settings of one search. Frozen: `replace` returns changed ones.

    Numbers of numpy become Python's. Raises SettingError for a value out of range.
    """

    piece_gains: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The spec's word: piece -> what its capture adds to the value of a leaf (`look_ahead/material.py`)."""

    def __post_init__(self) -> None:
        for row in SEARCH_SETTINGS.values():
            value = getattr(self, row.name)
            if type(value) not in (int, float, bool) and isinstance(value, Real):  # numpy's
                value = int(value) if isinstance(value, Integral) else float(value)
                object.__setattr__(self, row.name, value)
            row.check(value)
            if row.kind.startswith("float") and isinstance(value, int):
                # compiled code has one signature: floats
                object.__setattr__(self, row.name, float(value))
        gains: dict[str, Any] = dict(self.piece_gains)
        for piece, gain in gains.items():
            if not isinstance(gain, (int, float)) or not 0 <= gain <= GREATEST_GAIN:
                raise SettingError(
                    f"piece_gains, {piece} = {gain!r}: expected a number from 0 to {GREATEST_GAIN}"
                )
        object.__setattr__(self, "piece_gains", gains)

    def fitted_to(self, evaluator: Evaluator, spec: VariantSpec) -> SearchParams:
        """Return these settings with the evaluator's `piece_gains`, or those by `piece_gain_share`, unless they
        have their own. If it finds all positions alike (`is_uniform`), leaves are expanded without a search
        for material. spec: by which the search plays."""
        if evaluator.is_uniform:
            return self.replace(look_for_material=False)
        if self.piece_gains:
            return self
        if evaluator.piece_gains:
            return self.replace(piece_gains=evaluator.piece_gains)
        if self.piece_gain_share and self.look_for_material:
            from variant_ai.core.rules.piece_values import capture_gains

            gains = {
                piece: min(self.piece_gain_share * gain, GREATEST_GAIN)
                for piece, gain in capture_gains(spec).items()
            }
            return self.replace(piece_gains=gains)
        return self

    @classmethod
    def of(cls, spec: VariantSpec, settings: str = DEFAULT_SET, **overrides: Any) -> SearchParams:
        """Return the spec's settings, or those of its named set, with `overrides` applied.

        Raises UnknownNameError for an unknown set or setting, SettingError for a value.
        """
        words = words_of(spec, settings)
        named = {name: getattr(words, name) for name in SearchWords.model_fields}
        return cls(**{**named, **_known(overrides)})

    def leaves_at(self, visits: int) -> int:
        """Number of leaves that a batch may hold when the root has `visits` visits: 1, 4, 16, ...,
        sizes that every evaluator is prepared for."""
        if self.batch_growth == 0:
            return self.batch_size
        share = max(1, int(visits / self.batch_growth))
        return min(self.batch_size, 1 << (share.bit_length() - 1 & ~1))

    def replace(self, **overrides: Any) -> SearchParams:
        """Return these settings with others replaced. Raises as `of` does."""
        return dataclasses.replace(self, **_known(overrides))


def self_play_settings(*, cpuct: float, reduction: float) -> dict[str, Any]:
    """Settings of self-play: the net's own logits, without temperature, checks or mates. cpuct: the
    factor of exploration at first. reduction: an unvisited move is worth its parent's value less this.
    """
    return {
        "node_temperature": 1.0,
        "enhance_checks": False,
        "look_for_mates": False,
        "mate_stop": False,
        "q_unvisited": "parent",
        "q_unvisited_reduction": reduction,
        "cpuct_init": cpuct,
        "u_divisor": 1.0,
    }


def words_of(spec: VariantSpec, settings: str = DEFAULT_SET) -> SearchWords:
    """The spec's `search:`, or its named set. Raises UnknownNameError."""
    if settings == DEFAULT_SET:
        return spec.search
    if settings not in spec.settings:
        names = (DEFAULT_SET, *spec.settings)
        raise UnknownNameError(f"set of search settings of {spec.variant}", settings, names)
    return spec.settings[settings]


def _known(overrides: dict[str, Any]) -> dict[str, Any]:
    for name in overrides:
        if name not in SearchWords.model_fields:
            setting(name)
    return overrides
