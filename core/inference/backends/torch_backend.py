"""The torch evaluator: checkpoints of a training and the ONNX files made of them, on CPU or GPU.

torch is imported when an evaluator is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import DataError, UnknownNameError, VariantAIError
from variant_ai.core.inference.backends.padding import Padding, fixed_sizes
from variant_ai.core.inference.interface import Evaluation, Evaluator, ModelInfo, evaluation_of
from variant_ai.core.inference.model_file import (
    AVERAGE,
    MODEL,
    ONNX_SUFFIX,
    RUN_MODEL,
    ModelFile,
    find_checkpoint_folder,
    find_model_file,
    read_checkpoint_info,
    read_tensors,
)
from variant_ai.core.spec import VariantSpec
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

PRECISIONS = ("fp32", "bf16", "fp16")


def require_device(device: str) -> None:
    """Raise UnknownNameError for another device than `cpu`, `cuda` and `cuda:N`, VariantAIError if this
    machine does not have it."""
    import torch

    if re.fullmatch(r"cpu|cuda(:\d+)?", device) is None:
        raise UnknownNameError("device of torch", device, ("cpu", "cuda", "cuda:N"))
    if device == "cpu":
        return
    if not torch.cuda.is_available():
        raise VariantAIError(f"device {device!r} is not available here: torch sees no GPU; use cpu")
    count = torch.cuda.device_count()
    if int(device.partition(":")[2] or 0) >= count:
        raise VariantAIError(
            f"device {device!r} is not available here: torch sees {counted(count, 'GPU')}"
        )


class TorchEvaluator(Evaluator):
    """Runs a torch module: planes [B, C, H, W] -> value [B], policy logits [B, A], or any output
    that `core.nets.network.outputs_of` understands."""

    name = "torch"

    def __init__(
        self,
        net: nn.Module,
        info: ModelInfo,
        planes_shape: tuple[int, int, int],
        actions: int,
        *,
        device: str = "cpu",
        precision: str | None = None,
        threads: int | None = None,
        batch: int = 16,
    ) -> None:
        """Take ownership of the net.

        Args:
            device: `cpu`, `cuda` or `cuda:N`.
            batch: positions usually evaluated at once. A GPU evaluates these batches, and those of
                half, a quarter, ... of it, as CUDA graphs, and all others filled up to one of them.
            precision: fp32 (None), bf16, or on GPUs fp16; the heads always compute in fp32. On GPUs
                torch's fp32 uses TF32 inside convolutions if the GPU has it.
            threads: torch has one number for the whole process, which this sets.

        Raises VariantAIError (no such device), UnknownNameError (precision).
        """
        import torch

        self.precision = "fp32" if precision is None else precision
        accepted = PRECISIONS if device.startswith("cuda") else PRECISIONS[:2]
        if self.precision not in accepted:
            raise UnknownNameError(f"precision of torch on {device}", self.precision, accepted)
        require_device(device)
        if threads is not None and device == "cpu":
            torch.set_num_threads(threads)
        self.threads = torch.get_num_threads() if device == "cpu" else None
        self.info, self.planes_shape, self.actions = info, planes_shape, actions
        self._device = torch.device(device)
        try:
            placed: Any = net.to(self._device)
        except RuntimeError as error:  # no memory left, a driver that is too old
            reason = str(error).splitlines()[0]
            raise VariantAIError(
                f"{info.source}: torch does not run it on {device}: {reason}"
            ) from None
        # this use of `to` is missing in torch's type hints; weights of other ranks are unchanged.
        placed.to(memory_format=torch.channels_last)
        self._net: nn.Module = placed.eval()
        self._graphs: GraphedNet | None = None
        if device != "cpu":
            self._graphs = self._record(batch)

    @classmethod
    def load(
        cls,
        path: Path,
        spec: VariantSpec | None = None,
        *,
        device: str = "cpu",
        precision: str | None = None,
        threads: int | None = None,
        batch: int = 16,
    ) -> TorchEvaluator:
        """Load the net of an fp32 ONNX file, of a checkpoint, or of the newest one of a run directory.

        spec: of the game; the net may see it by a spec of its own (`ModelInfo.own_spec`). Raises DataError
        (no checkpoint, damaged, of another variant or encoding; an ONNX file that does not describe its
        net) and the errors of the constructor.
        """
        file, folder = _find_net(path)
        if file is None:
            info, config = read_checkpoint_info(folder)
        else:
            from variant_ai.core.nets.restore import net_config, restore

            info, config = file.info, net_config(file.metadata, file.path)
        if spec is not None:
            info.require(info.own_spec(spec))
        if file is None:
            from variant_ai.core.nets.network import load_model

            net = config.build()
            path = folder / AVERAGE
            path = path if path.is_file() else folder / MODEL
            load_model(net, read_tensors(path), path)
        else:
            net = restore(file.path)
        shape = (config.planes, *config.board)
        return cls(
            net,
            info,
            shape,
            config.actions,
            device=device,
            precision=precision,
            threads=threads,
            batch=batch,
        )

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        import torch

        if self._graphs is not None:
            return evaluation_of(self._graphs.evaluate(planes), self.info.source)
        with torch.inference_mode(), self._autocast():
            batch = torch.from_numpy(np.ascontiguousarray(planes)).to(self._device)
            outputs = self._outputs(batch.contiguous(memory_format=torch.channels_last))
            arrays = {name: tensor.cpu().numpy() for name, tensor in outputs.items()}
        return evaluation_of(arrays, self.info.source)

    def close(self) -> None:
        """Free the net and its graphs, which refer to each other. `evaluate` cannot be called any more."""
        self._graphs = None
        vars(self).pop("_net", None)

    def evaluate_in_pieces(self, piece: int | None) -> None:
        if self._graphs is not None:
            self._graphs.evaluate_in_pieces(piece)

    def _outputs(self, planes: Tensor) -> dict[str, Tensor]:
        from variant_ai.core.nets.network import outputs_of

        return outputs_of(self._net, planes).by_name()

    def _record(self, batch: int) -> GraphedNet | None:
        """Record the net's CUDA graphs; None, with a note, for a net that cannot be recorded."""
        try:
            return GraphedNet(
                self._outputs, fixed_sizes(batch), self.planes_shape, self._device, self._autocast
            )
        except RuntimeError as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            self.notes = (f"{self.info.source}: runs without CUDA graphs, slower: {reason}",)
            return None

    def _autocast(self) -> AbstractContextManager[Any]:
        import torch

        if self.precision == "fp32":
            return nullcontext()
        kind: torch.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[self.precision]
        # A cached weight would belong to the graph in which it was converted.
        return torch.autocast(self._device.type, kind, cache_enabled=self._device.type == "cpu")

    def describe(self) -> str:
        return super().describe() + ("" if self._device.type == "cpu" else f" on {self._device}")


def _find_net(path: Path) -> tuple[ModelFile | None, Path]:
    """Return the fp32 ONNX file that a path means, or None and the folder of a checkpoint, which is
    preferred. Raises DataError."""
    if path.suffix == ONNX_SUFFIX and not path.is_dir():
        return find_model_file(path, "fp32"), path
    try:
        return None, find_checkpoint_folder(path)
    except DataError:
        if (path / RUN_MODEL).is_file():
            return find_model_file(path, "fp32"), path
        raise


# --- a net on a GPU as CUDA graphs ----------------------------------------------------------------

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
    """Runs a net on a GPU: one recording of all its launches for each fixed batch size. For one thread at a
    time, not always the same one.

    A small net is dozens of short kernels, and launching them one by one takes longer than running them. A
    graph launches them at once. Planes and outputs pass through pinned memory, from which the GPU copies
    several times as fast.
    """

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
