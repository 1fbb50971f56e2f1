"""A net on a GPU as CUDA graphs: one recording of all its launches for each fixed batch size.

A small net is dozens of short kernels, and launching them one by one takes longer than running them. A
graph launches them at once. Planes and outputs pass through pinned memory, from which the GPU copies
several times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.inference.backends.padding import Padding

if TYPE_CHECKING:
    import torch
    from torch import Tensor

WARM_UPS = 3
"""Runs before a recording, in which libraries choose their kernels and take their memory."""


@dataclass
class Recording:
    """The graph of one batch size, with the memory that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    host_planes: Tensor
    """Pinned memory."""
    planes: Tensor
    outputs: dict[str, Tensor]
    host_outputs: dict[str, Tensor]
    """Pinned memory, of the shapes of `outputs`."""


class GraphedNet:
    """Runs a net on a GPU. For one thread at a time, not always the same one."""

    def __init__(
        self,
        run: Callable[[Tensor], dict[str, Tensor]],
        sizes: Sequence[int],
        planes_shape: tuple[int, int, int],
        device: torch.device,
        precision: Callable[[], AbstractContextManager[object]],
    ) -> None:
        """Record all batch sizes.

        Args:
            run: computes the outputs by name from planes [B, C, H, W] on the device.
            precision: makes the context in which `run` is called.

        Raises RuntimeError if the net cannot be recorded, for example because it branches on values
        that it has computed.
        """
        import torch

        self._run, self._shape, self._device, self._precision = run, planes_shape, device, precision
        self._stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._padding = Padding(sizes, planes_shape)
        self._recordings = {size: self._record(size) for size in reversed(self._padding.sizes)}

    def evaluate_in_pieces(self, piece: int | None) -> None:
        """Evaluate larger batches in pieces of this many positions; None: as a whole."""
        self._padding.cut(piece)

    def evaluate(self, planes: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Return the outputs of the net by name for planes [B, C, H, W]."""
        return self._padding.run(self._replay, planes)

    def _replay(self, planes: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        import torch

        recording = self._recordings[len(planes)]
        np.copyto(recording.host_planes.numpy(), planes)
        with torch.cuda.stream(self._stream):
            recording.planes.copy_(recording.host_planes, non_blocking=True)
            recording.graph.replay()
            for name, output in recording.outputs.items():
                recording.host_outputs[name].copy_(output, non_blocking=True)
            self._stream.synchronize()
        return {name: host.numpy().copy() for name, host in recording.host_outputs.items()}

    def _record(self, size: int) -> Recording:
        import torch

        shape = (size, *self._shape)
        planes = torch.zeros(shape, device=self._device)
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            for _ in range(WARM_UPS):
                self._compute(planes)
            self._stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            # Other threads may use the GPU while this one records.
            with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
                outputs = self._compute(planes)
        host = {
            name: torch.empty(output.shape, pin_memory=True) for name, output in outputs.items()
        }
        return Recording(graph, torch.zeros(shape, pin_memory=True), planes, outputs, host)

    def _compute(self, planes: Tensor) -> dict[str, Tensor]:
        import torch

        with self._precision():
            return self._run(planes.contiguous(memory_format=torch.channels_last))
