"""The onnxruntime evaluator: the default, and the engine's way to run a net without torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.inference.interface import Evaluation, Evaluator, ModelInfo
from variant_ai.specs import VariantSpec
from variant_ai.specs.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    import onnxruntime

METADATA_PREFIX = "variant_ai."
PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}


class OnnxEvaluator(Evaluator):
    """Runs an ONNX file written by `variant-ai export`."""

    name = "onnx"

    def __init__(
        self,
        path: str | os.PathLike[str],
        spec: VariantSpec | None = None,
        *,
        device: str = "cpu",
        threads: int | None = None,
    ) -> None:
        """Loads the file; with `spec`, refuses a net made for another one.

        Args:
            threads: of one evaluation; None lets onnxruntime take every core.

        Raises DataError (no such file, not a model, another variant or encoding) and
        UnknownNameError (a device onnxruntime has not here).
        """
        import onnxruntime

        if not Path(path).is_file():
            raise DataError(f"{path}: no such model file")
        available = {
            name: provider
            for name, provider in PROVIDERS.items()
            if provider in onnxruntime.get_available_providers()
        }
        if device not in available:
            raise UnknownNameError("device", device, available)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        if threads is not None:
            options.intra_op_num_threads = threads
        try:
            self._session: onnxruntime.InferenceSession = onnxruntime.InferenceSession(
                os.fspath(path), options, providers=[available[device]]
            )
        except Exception as error:  # onnxruntime raises a class of its own per status code
            reason = str(error).splitlines()[0]
            raise DataError(f"{path}: is not a usable ONNX model: {reason}") from None
        metadata = {
            key.removeprefix(METADATA_PREFIX): value
            for key, value in self._session.get_modelmeta().custom_metadata_map.items()
            if key.startswith(METADATA_PREFIX)
        }
        self.info = ModelInfo.of(metadata, os.fspath(path))
        if spec is not None:
            self.info.require(spec)
        self.metadata = metadata
        planes = self._session.get_inputs()[0]
        outputs = {output.name: output for output in self._session.get_outputs()}
        missing = {"value", "policy"} - set(outputs)
        if missing or len(planes.shape) != 4:
            raise DataError(
                f"{path}: input [B, C, H, W] and outputs `value` and `policy` are needed; it has "
                f"input {planes.shape} and outputs {', '.join(outputs)}"
            )
        self._input = planes.name
        self.planes_shape = (planes.shape[1], planes.shape[2], planes.shape[3])
        self.actions = int(outputs["policy"].shape[1])

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        run: Any = self._session.run(["value", "policy"], {self._input: planes})
        value, policy = run
        return Evaluation(value.reshape(-1), policy)
