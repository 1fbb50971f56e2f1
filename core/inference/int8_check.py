"""Check of int8 nets: some processors compute int8 products wrongly, without any error.

They add products of 8-bit numbers in 16 bits and saturate, so an int8 net returns nonsense. Each
int8 file carries the exact answers for a few positions. An evaluator that is not close to them runs
the net in fp32 instead.

N positions, A actions.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import Evaluation, softmax

if TYPE_CHECKING:
    from variant_ai.core.inference.interface import Evaluator
    from variant_ai.core.inference.model_file import ModelFile

METADATA_KEY = "known_answers"


@dataclass(frozen=True)
class KnownAnswers:
    """Planes and the correct answers to them."""

    planes: NDArray[np.float32]
    """[N, C, H, W]."""
    value: NDArray[np.float32]
    """[N]."""
    policy: NDArray[np.float32]
    """[N, A] probabilities over all actions, legal or not."""
    tolerance: float
    """Largest `difference` that rounding can explain."""

    def difference(self, evaluate: Callable[[NDArray[np.float32]], Evaluation]) -> float:
        """Return the largest difference of a value, or of a position's probabilities (half the sum
        of the absolute differences). Infinite if the answers are not finite numbers."""
        try:
            found = evaluate(self.planes)
        except DataError:
            return float("inf")
        value = np.abs(found.value - self.value).max()
        policy = np.abs(softmax(found.policy) - self.policy).sum(1).max() / 2
        return float(max(value, policy))

    def encode(self) -> str:
        """Return the text that is stored in the metadata of a model file."""
        return json.dumps(
            {
                "planes": _pack(self.planes, "f4"),
                "value": _pack(self.value, "f4"),
                "policy": _pack(self.policy, "f2"),
                "tolerance": self.tolerance,
            }
        )

    @classmethod
    def decode(cls, text: str, source: str | os.PathLike[str]) -> KnownAnswers:
        """Read the text of `encode`. Raises DataError naming the file if it is damaged."""
        try:
            packed = json.loads(text)
            return cls(
                _unpack(packed["planes"]),
                _unpack(packed["value"]),
                _unpack(packed["policy"]),
                float(packed["tolerance"]),
            )
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise DataError(f"{source}: its known answers are damaged: {error}") from None


def checked_precision(
    evaluator: Evaluator, file: ModelFile, reopen: Callable[[ModelFile, bytes], None]
) -> tuple[str, tuple[str, ...]]:
    """Check an evaluator of an int8 file; return its final precision and its notes for the user.

    If its answers are wrong, the file is opened again as fp32: its own weights without the int8
    steps, so no other file is needed. `reopen` receives the file and that model.
    """
    text = file.metadata.get(METADATA_KEY)
    if text is None or evaluator.precision != "int8":
        return evaluator.precision, evaluator.notes
    known = KnownAnswers.decode(text, file.path)
    difference = known.difference(evaluator.evaluate)
    if difference <= known.tolerance:
        return evaluator.precision, evaluator.notes
    from variant_ai.core.nets.quantise import float_model

    reopen(file, float_model(file.path))
    note = (
        f"{file.path}: this processor computes int8 wrongly with {evaluator.name} (off by "
        f"{difference:.2f} where {known.tolerance:.2f} is allowed): running in fp32 instead"
    )
    return "fp32", (*evaluator.notes, note)


def _pack(array: NDArray[np.float32], form: str) -> dict[str, object]:
    content = zlib.compress(np.ascontiguousarray(array, f"<{form}").tobytes(), 9)
    return {"form": form, "shape": array.shape, "content": base64.b85encode(content).decode()}


def _unpack(packed: dict[str, Any]) -> NDArray[np.float32]:
    content = zlib.decompress(base64.b85decode(packed["content"]))
    return np.frombuffer(content, f"<{packed['form']}").reshape(packed["shape"]).astype(np.float32)
