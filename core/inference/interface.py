"""The Evaluator interface: planes in, value and policy logits out.

Symbols: B batch, C input planes, H ranks, W files, A actions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.specs import VariantSpec, encoding_hash
from variant_ai.specs.errors import DataError


class Evaluation(NamedTuple):
    """What a net says of B positions, each from the point of view of its side to move."""

    value: NDArray[np.float32]
    """[B], in [-1, 1]: 1 is a win for the side to move."""
    policy: NDArray[np.float32]
    """[B, A], logits; the softmax is taken over the legal moves."""
    wdl: NDArray[np.float32] | None = None
    """[B, 3], probabilities of win, draw, loss."""
    plies_left: NDArray[np.float32] | None = None
    """[B], expected plies to the end of the game."""


@dataclass(frozen=True)
class ModelInfo:
    """What a model file says of itself."""

    source: str
    """The file, for messages."""
    variant: str = ""
    encoding_hash: str = ""
    net: str = ""
    head: str = "map"
    """`map`: A actions of the policy map; `flat`: the list of labels."""

    @classmethod
    def of(cls, metadata: Mapping[str, str], source: str) -> ModelInfo:
        known = {name: metadata[name] for name in cls.__dataclass_fields__ if name in metadata}
        return cls(**{**known, "source": source})

    def require(self, spec: VariantSpec) -> None:
        """Raises DataError where the model was made for another variant or another encoding."""
        if not self.variant:
            raise DataError(
                f"{self.source}: carries no metadata of variant-ai; export it with "
                "`variant-ai export`"
            )
        if self.variant != spec.variant:
            raise DataError(f"{self.source}: is a net for {self.variant}, not for {spec.variant}")
        mine = encoding_hash(spec)
        if self.encoding_hash != mine:
            raise DataError(
                f"{self.source}: was trained for another version of the {spec.variant} spec "
                f"(encoding {self.encoding_hash}, the spec now has {mine}); train it again, or "
                "use the spec it was trained with"
            )


class Evaluator(ABC):
    """Evaluates batches. Called from one thread at a time; releases the GIL while it works."""

    name: str
    planes_shape: tuple[int, int, int]
    """(C, H, W)."""
    actions: int
    """A."""
    info: ModelInfo

    @abstractmethod
    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        """Planes float32 [B, C, H, W], normalised, in the mover's view -> Evaluation of B."""
