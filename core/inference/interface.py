"""Interface of evaluators: planes in, value and policy logits out.

Symbols: B batch, C input planes, H ranks, W files, A actions.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import DataError
from variant_ai.core.spec import VariantSpec, encoding_hash, rules_hash
from variant_ai.core.spec.plane_layout import Head
from variant_ai.core.system.closing import Closing
from variant_ai.core.system.text_tables import counted

REQUIRED_OUTPUTS = ("value", "policy")
OPTIONAL_OUTPUTS = ("wdl", "plies_left")
"""Names of a net's outputs; optional ones are returned if the net has them."""


class Evaluation(NamedTuple):
    """Outputs for B positions, each from the point of view of its side to move."""

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
    """Metadata of a model file."""

    source: str
    """File name, for messages."""
    variant: str = ""
    encoding_hash: str = ""
    net: str = ""
    head: Head = "map"
    """`map`: A actions of the policy map; `flat`: the list of labels."""
    precision: str = "fp32"
    """Number format of the file: fp32, fp16 or int8."""
    encoder_version: str = ""
    """Version of the encoder that the net was trained with; empty if unknown."""
    spec: str = ""
    """JSON of the spec that the net was trained with; empty if unknown."""

    @classmethod
    def of(cls, metadata: Mapping[str, str], source: str) -> ModelInfo:
        """Make it from the metadata of a file; other entries are ignored."""
        known: dict[str, Any] = {
            name: metadata[name] for name in cls.__dataclass_fields__ if name in metadata
        }
        known["head"] = "flat" if known.get("head") == "flat" else "map"
        return cls(**{**known, "source": source})

    @property
    def carried_spec(self) -> VariantSpec | None:
        """The spec it was trained with; None if it is not stored completely."""
        own = _read_spec(self.spec) if self.spec else None
        return own if own is not None and encoding_hash(own) == self.encoding_hash else None

    def own_spec(self, spec: VariantSpec) -> VariantSpec:
        """Return the spec by which the net sees positions of `spec`: its own if that has the same
        rules and other planes or another policy, else the one given."""
        if self.variant != spec.variant or self.encoding_hash == encoding_hash(spec):
            return spec
        own = self.carried_spec
        return spec if own is None or rules_hash(own) != rules_hash(spec) else own

    def require(self, spec: VariantSpec) -> None:
        """Raise DataError if the model was made for another variant or another encoding."""
        from variant_ai.core.encoding import ENCODER_VERSION

        if not self.variant:
            raise DataError(
                f"{self.source} has no metadata of variant-ai; export it with `variant-ai export`"
            )
        if self.variant != spec.variant:
            raise DataError(f"{self.source} is a net for {self.variant}, not for {spec.variant}")
        mine = encoding_hash(spec)
        if self.encoding_hash != mine:
            raise DataError(
                f"{self.source} was trained for another version of the {spec.variant} spec "
                f"(encoding {self.encoding_hash}, the spec now has {mine}); train it again, "
                "use the spec it was trained with, or give a spec of your own a name of its own "
                "(`variant:`)"
            )
        if self.encoder_version not in ("", str(ENCODER_VERSION)):
            raise DataError(
                f"{self.source} was trained with version {self.encoder_version} of the encoder, "
                f"this program has version {ENCODER_VERSION}; train it again, or use the program "
                "it was trained with"
            )


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return probabilities over the last axis, [..., A] -> [..., A]."""
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    shares: NDArray[np.float32] = shifted / shifted.sum(-1, keepdims=True)
    return shares


class Evaluator(Closing, ABC):
    """Evaluates batches of positions.

    It is made in any thread. `evaluate` is called from one thread at a time, not always the same
    one, and releases the GIL while the net runs. The attributes are set once and may be read from
    any thread.
    """

    name: str
    planes_shape: tuple[int, int, int]
    """(C, H, W)."""
    actions: int
    """A."""
    info: ModelInfo
    precision: str = "fp32"
    """Number format: fp32, bf16, fp16 or int8."""
    threads: int | None = None
    """Threads of one evaluation; None: the library decides."""
    is_uniform: bool = False
    """True if every answer is value 0 and equal logits: a search then neither encodes positions nor
    calls `evaluate`."""
    ranks_moves: bool = True
    """False if all logits are equal, so that they cannot choose a move without a search."""
    piece_gains: Mapping[str, float] = MappingProxyType({})
    """Values of captures with which the search looks for material, if its settings have none."""
    notes: tuple[str, ...] = ()
    """Sentences about this evaluator that the user should see."""

    @abstractmethod
    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        """Evaluate planes float32 [B, C, H, W], normalised, seen by the player to move.

        The returned arrays belong to the caller. One thread at a time; without the GIL while the
        net runs. Raises DataError if the net returns a NaN or an infinity.
        """

    def evaluate_in_pieces(self, piece: int | None) -> None:
        """Evaluate larger batches in pieces of this many positions; None: as a whole."""

    def describe(self) -> str:
        """Return one line for logs: `openvino bf16, 2 threads`. From any thread."""
        threads = "" if self.threads is None else f", {counted(self.threads, 'thread')}"
        return f"{self.name} {self.precision}{threads}"

    def close(self) -> None:
        """Release threads and memory. Call it once, after the last `evaluate` has returned."""


@functools.lru_cache(maxsize=16)
def _read_spec(text: str) -> VariantSpec | None:
    """The spec of a JSON text; None if this program cannot read it."""
    try:
        return VariantSpec.model_validate_json(text)
    except ValueError:
        return None


def outputs_read(path: Path, shape: Sequence[Any], names: Collection[str]) -> list[str]:
    """Return those of a model's outputs that evaluators read. shape: of its input.

    Raises DataError for an input that is not [B, C, H, W], or without value and policy.
    """
    if len(shape) != 4 or not set(REQUIRED_OUTPUTS) <= set(names):
        raise DataError(
            f"{path}: input [B, C, H, W] and outputs `value` and `policy` are needed; it has input "
            f"{shape} and outputs {', '.join(names)}"
        )
    return [name for name in (*REQUIRED_OUTPUTS, *OPTIONAL_OUTPUTS) if name in names]


def evaluation_of(outputs: Mapping[str, NDArray[Any]], source: str) -> Evaluation:
    """Make an Evaluation of a net's outputs by name; value and plies left may be [B] or [B, 1].

    Raises DataError naming `source` if value or policy has a NaN or an infinity.
    """
    value = np.asarray(outputs["value"], np.float32).reshape(-1)
    policy = np.asarray(outputs["policy"], np.float32)
    # A sum is finite unless a summand is not: one pass without a temporary array.
    if not (np.isfinite(value.sum()) and np.isfinite(policy.sum(dtype=np.float64))):
        bad = ~(np.isfinite(value) & np.isfinite(policy).all(1))
        raise DataError(
            f"{source}: the net returned NaN or infinity for {int(bad.sum())} of "
            f"{counted(len(value), 'position')}; its weights are damaged or its training diverged"
        )
    wdl, plies = outputs.get("wdl"), outputs.get("plies_left")
    return Evaluation(
        value,
        policy,
        None if wdl is None else np.asarray(wdl, np.float32),
        None if plies is None else np.asarray(plies, np.float32).reshape(-1),
    )
