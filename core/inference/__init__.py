"""Evaluators: run a net, or stand in for one, behind one interface.

In reading order:

    interface.py               Evaluator, Evaluation, ModelInfo
    model_file.py              ONNX files, which one belongs to a precision; the net of a checkpoint
    packaged_nets.py           paths of the nets that come with a variant
    int8_check.py              known answers that expose processors with wrong int8 results
    backends/                  padding; material, uniform and random; onnx, openvino and torch; composites
    layer_outputs.py           outputs of all layers of a net
    widened_net.py             a net given more input planes
    choosing/                  evaluator_factory (`make_evaluator`), evaluator_timing,
                               saved_choices, fastest_evaluator (`auto`)

Adding a backend:

    1. a subclass of `Evaluator` in backends/
    2. choosing/evaluator_factory.py: its maker in `_MAKERS`
    3. choosing/fastest_evaluator.py: `_contenders`, if `auto` should measure it too
    4. core/reinforce/games/game_supply.py: `open_net`, if `auto` should choose it for self-play
    5. its name in the help of `--evaluator` (cli/common/search_options.py) and of the option
       `Evaluator` (core/engine/protocols/engine_options.py), then `python docs/tables.py`

A plugin needs none of this: it has the hook `register_evaluators` (plugins/hookspecs.py).

This file imports neither torch nor OpenVINO.
"""

from variant_ai.core.inference.backends.composite_backends import CheckEvaluator, ParallelEvaluator
from variant_ai.core.inference.backends.netless_backends import RandomEvaluator, UniformEvaluator
from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
from variant_ai.core.inference.choosing.evaluator_factory import (
    EvaluatorRequest,
    make_evaluator,
)
from variant_ai.core.inference.interface import Evaluation, Evaluator, ModelInfo

__all__ = [
    "CheckEvaluator",
    "Evaluation",
    "Evaluator",
    "EvaluatorRequest",
    "ModelInfo",
    "OnnxEvaluator",
    "ParallelEvaluator",
    "RandomEvaluator",
    "UniformEvaluator",
    "make_evaluator",
]
