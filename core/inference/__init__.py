"""Evaluators: run a net, or stand in for one, behind one interface.

In reading order:

    interface.py               Evaluator, Evaluation, ModelInfo
    model_file.py              metadata of ONNX files; which file belongs to a precision
    int8_check.py              known answers that expose processors with wrong int8 results
    backends/                  padding; uniform and random; onnx, openvino and torch; composites
    choosing/                  evaluator_factory (`make_evaluator`), evaluator_timing,
                               saved_choices, fastest_evaluator (`auto`)

This file imports neither torch nor OpenVINO.
"""

from variant_ai.core.inference.backends.composite_backends import CheckEvaluator, ParallelEvaluator
from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
from variant_ai.core.inference.backends.uniform_backend import RandomEvaluator, UniformEvaluator
from variant_ai.core.inference.choosing.evaluator_factory import (
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
