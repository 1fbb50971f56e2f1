"""The onnxruntime evaluator, which needs no torch.

It uses a GPU through the CUDA or TensorRT provider, if the installed onnxruntime has it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import DataError, UnknownNameError, VariantAIError
from variant_ai.core.inference.backends.padding import Padding, fixed_sizes
from variant_ai.core.inference.int8_check import checked_precision
from variant_ai.core.inference.interface import Evaluation, Evaluator, evaluation_of, outputs_read
from variant_ai.core.inference.model_file import ModelFile, read_model_file
from variant_ai.core.spec import VariantSpec
from variant_ai.core.system.folders import cache_folder

if TYPE_CHECKING:
    import onnxruntime

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}


class OnnxEvaluator(Evaluator):
    """Runs an ONNX file written by `variant-ai export`, in the precision of the file."""

    name = "onnx"

    def __init__(
        self,
        path: str | os.PathLike[str] | ModelFile,
        spec: VariantSpec | None = None,
        *,
        device: str = "cpu",
        threads: int | None = None,
        spin: bool = True,
        batch: int = 16,
        precision: str | None = None,
    ) -> None:
        """Load the file; `spec`, if given, must be the one that the net was made for.

        Args:
            device: `cpu`, `cuda`, `tensorrt`, the latter two with `:N` for one GPU of several.
            threads: of one evaluation; None: every core.
            spin: let threads wait in a busy loop: faster on idle cores, very slow on shared ones.
            batch: positions usually evaluated at once; GPUs are warmed up for it.
            precision: None, that of the file, or fp16 for an fp32 file on TensorRT.

        Raises DataError (no such file, not a model, cut off, another variant, encoding or
        precision), UnknownNameError (no such device) and VariantAIError (the installed onnxruntime
        does not have the device, or it does not work).
        """
        kind, _, index = device.partition(":")
        available = devices()
        if kind in PROVIDERS and kind not in available:
            raise VariantAIError(
                f"device {device!r}: the installed onnxruntime has {', '.join(available)} only; use "
                "the evaluator torch, or install onnxruntime-gpu in its place"
            )
        if kind not in available or (index and not index.isdigit()):
            raise UnknownNameError("device of onnxruntime", device, available)
        file = path if isinstance(path, ModelFile) else read_model_file(path)
        self.info = file.info
        self.metadata = file.metadata
        if spec is not None:
            self.info.require(spec)
        self.threads = threads
        self.precision = self.info.precision if precision is None else precision
        if self.precision != self.info.precision and (kind, self.precision) != ("tensorrt", "fp16"):
            raise DataError(
                f"{file.path}: onnxruntime computes in the precision of the file, {self.info.precision}, "
                f"not in {self.precision}"
            )
        if (kind, self.precision) == ("tensorrt", "int8"):
            raise DataError(
                f"{file.path}: TensorRT runs fp32 files, also in fp16 (precision fp16); int8 files are for "
                "processors"
            )
        self._device, self._index, self._spin = kind, int(index or 0), spin
        self._padding: Padding | None = None
        self._piece: int | None = None
        self._open(file)
        if kind != "cpu":  # GPU libraries compile or search again for each size
            self._padding = Padding(fixed_sizes(batch), self.planes_shape)
            try:
                self._padding.warm_up(self._run)
            except Exception as error:
                raise self._unusable(file, error) from None
        self.precision, self.notes = checked_precision(self, file, self._open)

    def _open(self, file: ModelFile, content: bytes | None = None) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        if self.threads is not None:
            options.intra_op_num_threads = self.threads
        options.add_session_config_entry("session.intra_op.allow_spinning", str(int(self._spin)))
        given = os.fspath(file.path) if content is None else content
        if self._device != "cpu":
            _load_libraries()
        try:
            # By default onnxruntime falls back to the CPU and only prints a warning.
            self._session: onnxruntime.InferenceSession = onnxruntime.InferenceSession(
                given, options, providers=self._providers(file, content), enable_fallback=0
            )
        except Exception as error:  # onnxruntime raises a class of its own per status code
            if self._device != "cpu":
                raise self._unusable(file, error) from None
            reason = str(error).splitlines()[0]
            raise DataError(f"{file.path}: is not a usable ONNX model: {reason}") from None
        if PROVIDERS[self._device] not in self._session.get_providers():
            raise self._unusable(file, f"its {PROVIDERS[self._device]} could not be loaded")
        planes = self._session.get_inputs()[0]
        outputs = {output.name: output for output in self._session.get_outputs()}
        self._input = planes.name
        self._outputs = outputs_read(file.path, planes.shape, outputs)
        self.planes_shape = (planes.shape[1], planes.shape[2], planes.shape[3])
        self.actions = int(outputs["policy"].shape[1])

    def _unusable(self, file: ModelFile, why: object) -> VariantAIError:
        """The error for a device that does not work, or not with this net."""
        reason = (str(why).splitlines() or [type(why).__name__])[0]
        return VariantAIError(
            f"{file.path}: onnxruntime does not run it on {self._device}:{self._index}: {reason}; "
            "are CUDA and cuDNN of the version it was built for installed?"
        )

    def _providers(
        self, file: ModelFile, content: bytes | None
    ) -> list[str | tuple[str, dict[str, Any]]]:
        """The requested provider, and those that may run single operations for it."""
        if self._device == "cpu":
            return [PROVIDERS["cpu"]]
        own: dict[str, Any] = {"device_id": self._index}
        # An exhaustive search takes half a second for each size of batch.
        cuda = (PROVIDERS["cuda"], {**own, "cudnn_conv_algo_search": "HEURISTIC"})
        if self._device == "cuda":
            return [cuda, PROVIDERS["cpu"]]
        options = {**own, "trt_fp16_enable": self.precision == "fp16"}
        if (folder := cache_folder("tensorrt")) is not None:
            # TensorRT identifies compiled nets by the names in them, not by their weights.
            made = file.digest() if content is None else hashlib.sha256(content).hexdigest()
            options |= {
                "trt_engine_cache_enable": True,
                "trt_engine_cache_path": str(folder),
                "trt_engine_cache_prefix": made[:16],
            }
        return [(PROVIDERS["tensorrt"], options), cuda, PROVIDERS["cpu"]]

    def _run(self, planes: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        run: Any = self._session.run(self._outputs, {self._input: planes})
        return dict(zip(self._outputs, run, strict=True))

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        padding, piece = self._padding, self._piece
        if padding is not None:
            return evaluation_of(padding.run(self._run, planes), self.info.source)
        if piece is None or len(planes) <= piece:
            return evaluation_of(self._run(planes), self.info.source)
        parts = [self._run(planes[k : k + piece]) for k in range(0, len(planes), piece)]
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return evaluation_of(joined, self.info.source)

    def evaluate_in_pieces(self, piece: int | None) -> None:
        self._piece = piece
        if self._padding is not None:
            self._padding.cut(piece)

    def describe(self) -> str:
        where = "" if self._device == "cpu" else f" on {self._device}:{self._index}"
        calm = "" if self._spin or self.threads == 1 else " that do not spin"
        return super().describe() + calm + where

    def close(self) -> None:
        """Free the session and its threads."""
        if hasattr(self, "_session"):
            del self._session


def _load_libraries() -> None:
    """Load CUDA libraries installed as Python packages, which the system's loader does not find."""
    import onnxruntime

    load = getattr(onnxruntime, "preload_dlls", None)  # from 1.21 on
    if load is not None:
        # It prints missing libraries, and stdout may belong to a protocol.
        with contextlib.redirect_stdout(sys.stderr):
            load()


def devices() -> list[str]:
    """Return the devices that the installed onnxruntime supports, of cpu, cuda and tensorrt."""
    import onnxruntime

    present = onnxruntime.get_available_providers()
    return [name for name, provider in PROVIDERS.items() if provider in present]
