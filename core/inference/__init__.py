"""Evaluators: what runs a net, or stands in for one, behind one interface.

From lowest to highest: `interface`, `baseline` (uniform, random), `model_file`, `folders`,
`padding`, `known_answers`, `saturation`, the libraries (`onnx`, `openvino`, `torch`), wrappers
(`parallel`, `check`), `measure`, `choose` (by name), `auto`. This file imports neither
torch nor OpenVINO.
"""

from variant_ai.core.inference.backends.backend_comparison import CheckEvaluator
from variant_ai.core.inference.backends.netless import RandomEvaluator, UniformEvaluator
from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
from variant_ai.core.inference.backends.parallel_backends import ParallelEvaluator
from variant_ai.core.inference.choosing.evaluator_choice import (
    EvaluatorMaker,
    EvaluatorRequest,
    make_evaluator,
)
from variant_ai.core.inference.interface import Evaluation, Evaluator, ModelInfo

__all__ = [
    "CheckEvaluator",
    "Evaluation",
    "Evaluator",
    "EvaluatorMaker",
    "EvaluatorRequest",
    "ModelInfo",
    "OnnxEvaluator",
    "ParallelEvaluator",
    "RandomEvaluator",
    "UniformEvaluator",
    "make_evaluator",
]
