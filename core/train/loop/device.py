"""The device that training runs on, and the number format of its nets."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Literal

import torch
from torch import nn

from variant_ai.core.errors import UnknownNameError, VariantAIError

DEVICES = ("auto", "cpu", "cuda")
Precision = Literal["fp32", "bf16"]
PRECISIONS: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}
"""Number formats of a net's tower; weights and the heads' output layers are always fp32."""


def choose_device(name: str) -> torch.device:
    """Return the device of that name; `auto` is CUDA if there is a GPU, else the CPU.

    Raises UnknownNameError for an unknown name, VariantAIError if this machine has no such device.
    """
    base, _, index = name.partition(":")
    if base not in DEVICES or (index and (base != "cuda" or not index.isdigit())):
        raise UnknownNameError("device", name, (*DEVICES, "cuda:N"))
    available = torch.cuda.is_available()
    if base == "auto":
        return torch.device("cuda" if available else "cpu")
    if base == "cuda" and not available:
        reason = "this torch was built without CUDA" if not torch.version.cuda else "no GPU found"
        raise VariantAIError(f"device {name!r} is not available here: {reason}; use cpu")
    if index and int(index) >= torch.cuda.device_count():
        raise VariantAIError(f"device {name!r}: there are {torch.cuda.device_count()} GPUs")
    return torch.device(name)


def has_fast_bf16(device: torch.device) -> bool:
    """Return True if the device multiplies bf16 matrices in hardware; if not, bf16 is slower."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("amx_bf16") or capabilities.get("avx512_bf16"))


def choose_precision(name: str, device: torch.device) -> Precision:
    """Return the precision of that name; `auto` is bf16 if the hardware supports it, else fp32.

    Raises UnknownNameError.
    """
    if name == "auto":
        return "bf16" if has_fast_bf16(device) else "fp32"
    for precision in PRECISIONS:
        if precision == name:
            return precision
    raise UnknownNameError("precision", name, ("auto", *PRECISIONS))


def autocast(device: torch.device, precision: Precision) -> torch.autocast | nullcontext[None]:
    """Context in which a net computes in that precision."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, PRECISIONS[precision])


def place_net(net: nn.Module, device: torch.device) -> None:
    """Move a net to the device, in the channels-last layout of `place_batch`."""
    untyped: Any = net.to(device)  # torch's stubs do not know the keyword
    untyped.to(memory_format=torch.channels_last)
