"""Where training runs and in which number format."""

from __future__ import annotations

from typing import Literal

import torch

from variant_ai.core.errors import UnknownNameError, VariantAIError

Precision = Literal["fp32", "bf16"]
DEVICES = ("auto", "cpu", "cuda")


def choose_device(name: str = "auto") -> torch.device:
    """The device of that name; `auto`: CUDA where there is one, else the CPU.

    Raises UnknownNameError for a name that is none, VariantAIError for one this machine has not.
    """
    base, _, index = name.partition(":")
    if base not in DEVICES or (index and (base != "cuda" or not index.isdigit())):
        raise UnknownNameError("device", name, (*DEVICES, "cuda:N"))
    available = torch.cuda.is_available()
    if base == "auto":
        return torch.device("cuda" if available else "cpu")
    if base == "cuda" and not available:
        reason = "this torch was built without CUDA" if not torch.version.cuda else "no GPU is seen"
        raise VariantAIError(f"device {name!r} is not available here: {reason}; use cpu or auto")
    if index and int(index) >= torch.cuda.device_count():
        raise VariantAIError(f"device {name!r}: there are {torch.cuda.device_count()} GPUs")
    return torch.device(name)


def has_fast_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bf16 matrices in hardware: elsewhere autocast is slower."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("amx_bf16") or capabilities.get("avx512_bf16"))


def choose_precision(name: str, device: torch.device) -> Precision:
    """`auto`: bf16 where the device has it in hardware. Raises UnknownNameError."""
    match name:
        case "auto":
            return "bf16" if has_fast_bf16(device) else "fp32"
        case "fp32":
            return "fp32"
        case "bf16":
            return "bf16"
    raise UnknownNameError("precision", name, ("auto", "fp32", "bf16"))
