"""Known answers: what an int8 net says of a few positions, carried in its file.

Some processors add products of 8-bit numbers in 16 bits and saturate, so an int8 net answers
nonsense there without any error. Each int8 file carries the answers of exact arithmetic, and an
evaluator that does not come near them computes in fp32 instead.

N positions, A actions.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import Evaluation

METADATA_KEY = "known_answers"


@dataclass(frozen=True)
class KnownAnswers:
    """Planes and the right answers to them."""

    planes: NDArray[np.float32]
    """[N, C, H, W]."""
    value: NDArray[np.float32]
    """[N]."""
    policy: NDArray[np.float32]
    """[N, A] probabilities over all actions, legal or not."""
    tolerance: float
    """Greatest difference (as `difference` has it) that is rounding and no fault."""

    def difference(self, evaluate: Callable[[NDArray[np.float32]], Evaluation]) -> float:
        """The largest difference of a value, or of the probabilities of a position: half the sum
        of their differences. Infinite where the answers are no numbers."""
        try:
            said = evaluate(self.planes)
        except DataError:
            return float("inf")
        value = np.abs(said.value - self.value).max()
        policy = np.abs(softmax(said.policy) - self.policy).sum(1).max() / 2
        return float(max(value, policy))

    def encode(self) -> str:
        """As the text that a model file's metadata holds."""
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
        """Raises DataError naming the file where the text is damaged."""
        try:
            said = json.loads(text)
            return cls(
                _unpack(said["planes"]),
                _unpack(said["value"]),
                _unpack(said["policy"]),
                float(said["tolerance"]),
            )
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise DataError(f"{source}: its known answers are damaged: {error}") from None


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities over all actions, [B, A] -> [B, A]."""
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    shares: NDArray[np.float32] = shifted / shifted.sum(1, keepdims=True)
    return shares


def _pack(array: NDArray[np.float32], form: str) -> dict[str, object]:
    content = zlib.compress(np.ascontiguousarray(array, f"<{form}").tobytes(), 9)
    return {"form": form, "shape": array.shape, "content": base64.b85encode(content).decode()}


def _unpack(packed: dict[str, Any]) -> NDArray[np.float32]:
    content = zlib.decompress(base64.b85decode(packed["content"]))
    return np.frombuffer(content, f"<{packed['form']}").reshape(packed["shape"]).astype(np.float32)
