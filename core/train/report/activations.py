"""What happens inside a net on one position: its activation maps (paper 000, figure 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from variant_ai.core.errors import VariantAIError
from variant_ai.core.nets.network import outputs_of

Maps = NDArray[np.float32]
PARTS = ("stem", "tower", "value.stem", "policy.stem")


@dataclass(frozen=True)
class Activations:
    """Of one position, in the mover's view."""

    stem: Maps
    """[K, H, W] after the first convolution."""
    tower: Maps
    """[K, H, W] after the last block."""
    value_map: Maps
    """[k, H, W] the last spatial maps of the value head."""
    policy_map: Maps
    """[k, H, W] the last spatial maps of the policy head before its output layer."""
    value: float


def activations(net: nn.Module, planes: NDArray[np.float32]) -> Activations:
    """Runs the net on planes [1, C, H, W] and keeps what its parts give.

    Raises VariantAIError where the net is not made of a stem, a tower and two heads whose stems
    keep the board.
    """
    kept: dict[str, Maps] = {}
    hooks = []
    for name in PARTS:
        try:
            module = net.get_submodule(name)
        except AttributeError:
            raise VariantAIError(
                f"this net ({type(net).__name__}) has no part {name!r} to look into; known are "
                "nets of a stem, a tower and two heads"
            ) from None

        def keep(_: nn.Module, __: Any, output: Any, name: str = name) -> None:
            # A following ReLU may write over the output in place.
            kept[name] = output.detach().float().cpu().numpy().copy()

        hooks.append(module.register_forward_hook(keep))
    try:
        net.eval()
        with torch.inference_mode():
            said = outputs_of(net, torch.from_numpy(planes))
    finally:
        for hook in hooks:
            hook.remove()
    for name, maps in kept.items():
        if maps.ndim != 4:
            raise VariantAIError(f"part {name!r} of this net gives no maps but {maps.shape}")
    stem, tower, value_map, policy_map = (kept[name][0] for name in PARTS)
    return Activations(stem, tower, value_map, policy_map, float(said.value[0]))
