"""The option `--ray`, and what commands send to the machines of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.options import F

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec


def ray_option(work: str) -> Callable[[F], F]:
    """Add `--ray ADDRESS`, passed to the command as `cluster: str | None`. work: done there."""
    return click.option(
        "--ray",
        "cluster",
        metavar="local|ADDRESS",
        help=f"{work} on a Ray cluster: one on this machine, or the one at an address (see "
        "docs/cluster.md).",
    )


def cluster_pools(
    address: str, processes: int | None
) -> tuple[int, Callable[[int, Callable[..., None], tuple[Any, ...]], Executor]]:
    """Connect to a cluster. Returns a number of processes, by default that of its processors, and a
    function that makes a pool of them as `WorkerPool` does. Raises VariantAIError."""
    from variant_ai.core.system.ray_cluster import ClusterPool, connect, processors_of

    ray = connect(address)
    wanted = processes or max(2, int(processors_of(ray)))
    return wanted, lambda count, *start: ClusterPool(ray, *start)


def registered_rules(spec: VariantSpec) -> Rules:
    """Make the rules of a spec, those of plugins included."""
    from variant_ai.plugins import registry

    return registry().rules(spec)
