"""The OpenVINO evaluator, for processors: fp32, int8, and bf16 if the hardware supports it.

OpenVINO is installed with variant-ai on platforms for which it has wheels. Compiled nets are kept
in the user's cache folder, so that a net opens quickly the second time.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import DataError, UnknownNameError, VariantAIError
from variant_ai.core.inference.backends.padding import Padding, fixed_sizes
from variant_ai.core.inference.int8_check import checked_precision
from variant_ai.core.inference.interface import Evaluation, Evaluator, evaluation_of, outputs_read
from variant_ai.core.inference.model_file import ModelFile, read_model_file
from variant_ai.core.spec import VariantSpec
from variant_ai.core.system.folders import cache_folder, keep_newest

KEPT_BLOBS = 48
"""Compiled nets kept in the cache folder; each net needs a few batch sizes."""
_CONVERTER = "openvino.tools.ovc"
_HINTS = {"fp32": "f32", "bf16": "bf16", "int8": "f32"}
"""Operations of an int8 file that are not int8 run in fp32, as in onnxruntime."""


class OpenVinoEvaluator(Evaluator):
    """Runs an ONNX file written by `variant-ai export` on the CPU."""

    name = "openvino"

    def __init__(
        self,
        path: str | os.PathLike[str] | ModelFile,
        spec: VariantSpec | None = None,
        *,
        precision: str | None = None,
        threads: int | None = None,
        batch: int = 16,
    ) -> None:
        """Load and compile the file; `spec`, if given, must be the one that the net was made for.

        Args:
            precision: None, that of the file; or bf16 for an fp32 file, if the processor has bf16
                in hardware. OpenVINO's own default, bf16 if possible, is used on request only,
                because it rounds.
            threads: of one evaluation; None: every core.
            batch: positions usually evaluated at once. Batches are padded to it or to a power of
                four below it, larger ones are cut. The net is compiled for each of these sizes:
                one compiled for any size is slower by up to a fifth, and some of its fp32 layers
                then run on one thread only.

        Raises VariantAIError (OpenVINO is not installed), DataError (no such file, not a model,
        another variant or encoding), UnknownNameError (precision not supported here).
        """
        try:
            self._core = openvino_core()
        except ImportError as error:
            raise VariantAIError(
                "evaluator 'openvino' needs the package openvino: pip install "
                f"'variant-ai[openvino]' ({error})"
            ) from None
        file = path if isinstance(path, ModelFile) else read_model_file(path)
        self.info = file.info
        if spec is not None:
            self.info.require(spec)
        self.precision = self.info.precision if precision is None else precision
        self._check_precision()
        self.threads = threads
        self._batch = batch
        self._open(file)
        self.precision, self.notes = checked_precision(self, file, self._open)

    def _check_precision(self) -> None:
        own = self.info.precision
        accepted = [own]
        if own == "fp32" and has_bf16():
            accepted.append("bf16")
        if own == "fp16":
            raise DataError(
                f"{self.info.source}: fp16 files are for GPUs; OpenVINO runs fp32 and int8 ones"
            )
        if self.precision not in accepted:
            raise UnknownNameError(
                f"precision of OpenVINO for {self.info.source} here", self.precision, accepted
            )

    def _open(self, file: ModelFile, content: bytes | None = None) -> None:
        """Compile the file, or in its place the bytes of an fp32 model."""
        sizes = fixed_sizes(self._batch, 4)
        if content is not None:
            self.precision = "fp32"
        try:
            model = self._core.read_model(content or os.fspath(file.path))
            planes = model.inputs[0].partial_shape
            ports = {name: k for k, port in enumerate(model.outputs) for name in port.get_names()}
            names = outputs_read(file.path, planes, ports)
            self.planes_shape = tuple(planes[i].get_length() for i in (1, 2, 3))
            compiled = {size: self._compiled(model, size) for size in sizes}
        except RuntimeError as error:
            reason = next((line for line in reversed(str(error).splitlines()) if line), "")
            raise DataError(f"{file.path}: is not a usable ONNX model: {reason}") from None
        self._requests = {size: each.create_infer_request() for size, each in compiled.items()}
        self._outputs = {name: ports[name] for name in names}
        self.actions = int(compiled[sizes[-1]].outputs[ports["policy"]].shape[1])
        self._padding = Padding(sizes, self.planes_shape)
        self._padding.warm_up(self._run)
        if (folder := cache_folder("openvino")) is not None:
            keep_newest(folder, KEPT_BLOBS)

    def _compiled(self, model: Any, size: int) -> Any:
        """The model compiled for batches of one size."""
        fixed = model.clone()
        fixed.reshape({fixed.inputs[0]: [size, *self.planes_shape]})
        return self._core.compile_model(fixed, "CPU", self._settings())

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": _HINTS[self.precision],
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
            # Several searches may run at once: pinned threads would share the same cores.
            "ENABLE_CPU_PINNING": False,
        }
        if self.threads is not None:
            settings["INFERENCE_NUM_THREADS"] = self.threads
        if (folder := cache_folder("openvino")) is not None:
            settings["CACHE_DIR"] = str(folder)
        return settings

    def _run(self, planes: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        # Copy the outputs: the next call overwrites them.
        request = self._requests[len(planes)]
        found = request.infer([planes], share_inputs=True, share_outputs=False)
        return {name: found[k] for name, k in self._outputs.items()}

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        outputs = self._padding.run(self._run, np.ascontiguousarray(planes))
        return evaluation_of(outputs, self.info.source)

    def evaluate_in_pieces(self, piece: int | None) -> None:
        """Use the greatest compiled size up to `piece`."""
        self._padding.cut(piece)

    def close(self) -> None:
        """Free the compiled net."""
        with contextlib.suppress(AttributeError):
            del self._requests, self._outputs


def import_openvino() -> Any:
    """Import OpenVINO without its model converter, which is not needed: importing that takes longer
    than all the rest and reports the import to the makers of OpenVINO.

    A program that needs `openvino.convert_model` must import OpenVINO first. Raises ImportError.
    """
    if "openvino" in sys.modules or _CONVERTER in sys.modules:
        return importlib.import_module("openvino")
    blocked: dict[str, Any] = {_CONVERTER: None}
    sys.modules.update(blocked)
    try:
        return importlib.import_module("openvino")
    finally:
        del sys.modules[_CONVERTER]


@functools.cache
def openvino_core() -> Any:
    """Make OpenVINO's runtime, one for the whole process. Raises ImportError.

    The plugin of each runtime gives the thread that loads it another stack for signal handlers, and the
    previous one back when it ends. With several, that previous stack may be gone, and the next Ctrl-C
    is a segmentation fault.

    Its cache of compiled nets is read, not mapped into memory: another process that compiles the same net
    for the first time writes the same file, and a mapped file that shrinks is a bus error.
    """
    core = import_openvino().Core()
    core.set_property({"ENABLE_MMAP": False})
    return core


def available() -> bool:
    """Return True if OpenVINO is installed; it is not imported."""
    from importlib.util import find_spec

    return find_spec("openvino") is not None


def has_bf16() -> bool:
    """Return True if, according to OpenVINO, the processor multiplies bf16 matrices in hardware."""
    return "BF16" in openvino_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
