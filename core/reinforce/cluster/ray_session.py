"""Connection to a Ray cluster."""

from __future__ import annotations

import logging
from typing import Any

from variant_ai.core.errors import VariantAIError

LOCAL = "local"
"""Address of a cluster that is started on this machine and ends with the process."""


def connect(address: str) -> Any:
    """Connect this process to a cluster, and return the module `ray`.

    address: `local`, `auto`, HOST:PORT or ray://HOST:PORT. Raises VariantAIError if Ray is not
    installed or there is no cluster at the address.
    """
    try:
        import ray
    except ImportError:
        raise VariantAIError(
            "Ray is not installed; install it with: pip install 'variant-ai[ray]'"
        ) from None
    if ray.is_initialized():
        return ray
    try:
        ray.init(
            address=LOCAL if address == LOCAL else address,
            include_dashboard=False if address == LOCAL else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise VariantAIError(
            f"no Ray cluster at {address!r} ({error}); start one with `ray start --head`, or use "
            f"`{LOCAL}`"
        ) from None
    return ray
