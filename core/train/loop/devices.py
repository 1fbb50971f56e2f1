"""The devices that a training runs on, the number format of its nets, and the processes that train one net
together: a single one, or those started by torchrun.

    torchrun --nproc-per-node 2 -m variant_ai.cli.main -- train -V NAME ...

Processes communicate through gloo on the CPU and through nccl between GPUs. Flags that decide what
happens next (a stop, a NaN) always go through gloo, so that nothing waits for a GPU.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from variant_ai.core.errors import UnknownNameError, VariantAIError
from variant_ai.core.system.child_processes import SAVING, end_with_parent

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


# --- processes that train one net --------------------------------------------------------------------

T = TypeVar("T")

TIMEOUT = timedelta(hours=2)
"""Time that a process waits for the others, while the first one measures and writes."""
RELEASE_SECONDS = 0.2
"""Time in which gloo's threads release the last tensors. They need the interpreter for that and
outlive their group: if one of them needs it while the interpreter exits, the process aborts."""


@dataclass(frozen=True)
class Workers:
    """W processes, of which this is number `rank`."""

    rank: int = 0
    world: int = 1
    """W."""
    local_rank: int = 0
    """Number among the processes of this machine: the number of its GPU."""

    @property
    def first(self) -> bool:
        """True in the process that writes files and prints."""
        return self.rank == 0

    def device(self, device: torch.device) -> torch.device:
        """Return the device of this process. Raises VariantAIError if there are fewer GPUs than
        processes."""
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

    def wrap(self, module: nn.Module, device: torch.device) -> Any:
        """The module with its gradients averaged over all processes."""
        if self.world == 1:
            return module
        parallel: Any = nn.parallel.DistributedDataParallel
        # NormStatistics takes care of the buffers; torch 2.13 renamed the option.
        names = inspect.signature(parallel).parameters
        own = "forward_sync_buffers" if "forward_sync_buffers" in names else "broadcast_buffers"
        devices = [device] if device.type == "cuda" else None
        return parallel(module, device_ids=devices, **{own: False})

    def any(self, flag: bool) -> bool:
        """True if the flag is set in any process. All processes must call this at the same point."""
        if self.world == 1:
            return flag
        tensor = torch.tensor(flag, dtype=torch.int32)
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        return bool(tensor)

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes. They are sent together, because many
        small messages take longer than one."""
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

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Copy the tensors of the first process to all."""
        if self.world == 1:
            return
        for tensor in tensors:
            plain = tensor.contiguous()
            dist.broadcast(plain, 0)
            tensor.copy_(plain)

    def broadcast_object(self, value: T) -> T:
        """Return the first process's object (anything that can be pickled) in every process."""
        if self.world == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, 0)
        return box[0]

    def interleave(self, array: NDArray[Any], part: int) -> NDArray[Any]:
        """Merge the arrays of all processes, [n] each, into [W * n]: `part` numbers of each in turn."""
        if self.world == 1:
            return array
        own = torch.from_numpy(np.ascontiguousarray(array))
        every = [torch.empty_like(own) for _ in range(self.world)]
        dist.all_gather(every, own)
        stacked = np.stack([each.numpy().reshape(-1, part) for each in every], axis=1)
        return stacked.reshape(-1)

    def barrier(self) -> None:
        """Wait until every process is here."""
        if self.world > 1:
            self.any(False)


ALONE = Workers()


@contextmanager
def open_workers() -> Iterator[Workers]:
    """The processes that torchrun started, read from the environment; otherwise this one alone."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield ALONE
        return
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun leaves its processes running if killed
        end_with_parent(grace=SAVING)
    backend = "gloo"
    if torch.cuda.is_available() and (own := _own_gpu(local)) is not None:
        torch.cuda.set_device(own)
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, timeout=TIMEOUT)
    try:
        yield Workers(dist.get_rank(), world, local)
    finally:
        dist.destroy_process_group()
        time.sleep(RELEASE_SECONDS)


def _own_gpu(local_rank: int) -> int | None:
    """Number of the GPU of a process, None if there is none for it. Launchers that show each process
    only one GPU still number the processes."""
    count = torch.cuda.device_count()
    if local_rank < count:
        return local_rank
    return 0 if count == 1 and "SLURM_PROCID" in os.environ else None
