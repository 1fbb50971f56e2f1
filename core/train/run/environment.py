"""What a run was made with: versions and machine, as a run directory keeps them."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("variant-ai", "torch", "numpy", "numba", "onnx", "onnxruntime", "safetensors")


def describe_environment() -> dict[str, Any]:
    """Versions, operating system, processor, devices; nothing personal (no paths, no names)."""
    import torch

    capabilities = torch.cpu.get_capabilities()
    wanted = ("amx_bf16", "avx512_bf16", "avx512_f", "avx2")
    return {
        "python": sys.version.split()[0],
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
        "cpu": {
            "name": str(capabilities.get("cpu_name", platform.processor())),
            "cores": os.cpu_count(),
            "extensions": [name for name in wanted if capabilities.get(name)],
        },
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
        "threads": torch.get_num_threads(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
