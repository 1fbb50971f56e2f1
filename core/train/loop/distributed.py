"""The processes that train one net together: one alone, or as many as torchrun started.

    torchrun --nproc-per-node 2 -m variant_ai.cli.main -- train -V NAME ...

Processes talk through gloo on the CPU and through nccl between GPUs. Numbers that decide what
happens next (a stop, a NaN) go through gloo in any case, so that no GPU is waited for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from variant_ai.core.errors import VariantAIError
from variant_ai.core.system.child_processes import SAVING, end_with_parent

T = TypeVar("T")

PATIENCE = timedelta(hours=2)
"""How long a process waits for the others: the first one measures and writes while they wait."""

LETTING_GO = 0.2
"""Seconds in which gloo's threads let go of the last tensors. They need the interpreter for it, and
outlive their group: one that asks while the interpreter ends aborts the process."""


@dataclass(frozen=True)
class Workers:
    """W processes, of which this is number `rank`."""

    rank: int = 0
    world: int = 1
    """W."""
    local_rank: int = 0
    """Number among those of this machine: which of its GPUs is this one's."""

    @property
    def first(self) -> bool:
        """Whether this is the one that writes files and speaks to the user."""
        return self.rank == 0

    def device(self, device: torch.device) -> torch.device:
        """The device of this process, where `device` may name no certain GPU. Raises
        VariantAIError where there are fewer GPUs than processes."""
        if self.world == 1 or device.type != "cuda":
            return device
        number = _own_gpu(self.local_rank)
        if number is None:
            raise VariantAIError(
                f"process {self.local_rank} of this machine has no GPU: there are "
                f"{torch.cuda.device_count()}; start at most as many processes as there are GPUs "
                "(torchrun --nproc-per-node), or train with --device cpu"
            )
        return torch.device("cuda", number)

    def any(self, *facts: bool) -> tuple[bool, ...]:
        """Each fact: whether it is true of any process. All must ask at the same point."""
        if self.world == 1:
            return facts
        told = torch.tensor(facts, dtype=torch.int32)
        dist.all_reduce(told, dist.ReduceOp.MAX)
        return tuple(bool(value) for value in told.tolist())

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replaces each tensor by the sum of all processes' own. They travel together: many small
        messages take longer than one."""
        if self.world == 1:
            return
        alike: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
        for tensor in tensors:
            alike.setdefault((tensor.dtype, tensor.device), []).append(tensor)
        for group in alike.values():
            flat = torch.cat([tensor.reshape(-1) for tensor in group])
            dist.all_reduce(flat)
            sums = torch.split(flat, [tensor.numel() for tensor in group])
            for tensor, total in zip(group, sums, strict=True):
                tensor.copy_(total.view(tensor.shape))

    def add_arrays(self, *arrays: NDArray[Any]) -> None:
        """The same of arrays, in place."""
        self.add([torch.from_numpy(array) for array in arrays])

    def spread(self, tensors: Sequence[Tensor]) -> None:
        """Gives every process the first one's numbers."""
        if self.world == 1:
            return
        for tensor in tensors:
            plain = tensor.contiguous()
            dist.broadcast(plain, 0)
            tensor.copy_(plain)

    def share(self, thing: T) -> T:
        """The first process's thing (anything that can be pickled), for every process."""
        if self.world == 1:
            return thing
        box = [thing]
        dist.broadcast_object_list(box, 0)
        return box[0]

    def interleave(self, array: NDArray[Any], part: int) -> NDArray[Any]:
        """Arrays of all processes, [n] each, as one [W * n]: `part` numbers of each in turn."""
        if self.world == 1:
            return array
        own = torch.from_numpy(np.ascontiguousarray(array))
        every = [torch.empty_like(own) for _ in range(self.world)]
        dist.all_gather(every, own)
        stacked = np.stack([each.numpy().reshape(-1, part) for each in every], axis=1)
        return stacked.reshape(-1)

    def wait(self) -> None:
        """Until every process is here."""
        if self.world > 1:
            self.any(False)


ALONE = Workers()


@contextmanager
def open_workers() -> Iterator[Workers]:
    """The processes torchrun started, as it told them through the environment; else one alone."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield ALONE
        return
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun, killed, leaves its processes behind
        end_with_parent(grace=SAVING)
    backend = "gloo"
    if torch.cuda.is_available() and (own := _own_gpu(local)) is not None:
        torch.cuda.set_device(own)
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Workers(dist.get_rank(), world, local)
    finally:
        dist.destroy_process_group()
        time.sleep(LETTING_GO)


def _own_gpu(local_rank: int) -> int | None:
    """Number of the GPU of a process, None where there is none for it. Launchers that show each
    process one GPU of its own number the processes all the same."""
    count = torch.cuda.device_count()
    if local_rank < count:
        return local_rank
    return 0 if count == 1 and "SLURM_PROCID" in os.environ else None
