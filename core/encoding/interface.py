"""Interfaces of encoders: positions to the planes of a net, and moves to its policy output.

A spec chooses them by name:

    encoder: attack-maps                                # input planes
    encoder: {input: attack-maps, labels: by-target}    # and the labels of flat policies

The built-in ones are `planes` (the spec's `input:`) and `moves` (a label for every move that can
occur). Plugins add others by the hook `register_encoders`. N positions, C input planes, H ranks, W
files, P policy planes, A actions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.rules.position import Position
from variant_ai.core.spec.schema import VariantSpec

Planes = NDArray[np.float32]
Ints = NDArray[np.int32]


class InputEncoder(ABC):
    """Input planes of one spec. Holds no state, so that any thread may use it.

    Row 0 is the first rank of the side to move, and the planes show its pieces and those of the
    opponent: colours appear only in planes that encode them.

    The search gives positions that differ only in counters, repetitions or last moves one node, self-play
    one evaluation, and the sampler counts no repetitions, unless the spec's list `input:` has a plane for them. An encoder
    that uses them must leave that plane in the list.
    """

    name: str
    """The word of a spec, under which the encoder is registered. An encoder whose planes change
    needs a new name: nets know their planes by it."""

    def __init__(self, spec: VariantSpec) -> None:
        self.spec = spec

    @property
    @abstractmethod
    def planes(self) -> tuple[str, ...]:
        """Names of the C planes, in order."""

    @abstractmethod
    def encode(
        self, positions: Position, out: Planes, *, mirrored: bool = False, raw: bool = False
    ) -> None:
        """Fill `out`, float32 [N, C, H, W], from POSITION records of shape (N,).

        Every element must be written. `mirrored` exchanges left and right; it is asked only of specs
        with `symmetry: [files]`. With `raw`, counts are not divided by their maxima (`scale`).
        """

    @property
    def scale(self) -> NDArray[np.float64]:
        """Divisors of the planes in `encode`, [C]; ones unless an encoder normalises."""
        return np.ones(len(self.planes))


class LabelEncoder(ABC):
    """Actions of a flat policy: a number for every move, as the encoder chooses.

    The policy map has an index for every plane and square, P * H * W of them. An encoder of labels
    names the action of each index, so that compiled code needs nothing but a table.
    """

    name: str
    """The word of a spec, under which the encoder is registered."""

    def __init__(self, spec: VariantSpec) -> None:
        self.spec = spec

    @property
    @abstractmethod
    def size(self) -> int:
        """A: length of the policy output."""

    @property
    @abstractmethod
    def of_map(self) -> Ints:
        """Action of each index of the policy map, int32 [P * H * W]; -1 for no move."""

    @property
    @abstractmethod
    def to_map(self) -> Ints:
        """An index of the policy map for each action, int32 [A]."""

    @abstractmethod
    def mirrored(self) -> Ints:
        """Action of the left-right mirrored move, int32 [A]; its own inverse. Asked only of specs
        with `symmetry: [files]`."""
