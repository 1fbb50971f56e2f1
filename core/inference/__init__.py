"""Evaluators: what runs a net, or stands in for one, behind one interface. No torch here."""

from variant_ai.core.inference.baseline import RandomEvaluator, UniformEvaluator
from variant_ai.core.inference.interface import Evaluation, Evaluator, ModelInfo
from variant_ai.core.inference.onnx import OnnxEvaluator

__all__ = [
    "Evaluation",
    "Evaluator",
    "ModelInfo",
    "OnnxEvaluator",
    "RandomEvaluator",
    "UniformEvaluator",
]
