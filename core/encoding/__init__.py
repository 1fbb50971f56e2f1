"""Positions to network input, moves to network output and back, compiled from the spec.

| module | what |
| --- | --- |
| `records` | the two records that compiled code reads |
| `kernels` | the compiled functions: planes, action of a move, move of an action |
| `planes` | input planes: spec to program |
| `policy` | policy map: spec to tables, mirroring |
| `labels` | flat labels of the papers' one-hot heads |
| `codec` | moves as 16-bit codes of the game store |
| `encoder` | all of it for one variant |
"""

from variant_ai.core.encoding.encoder import ENCODER_VERSION, Encoder, Head
from variant_ai.core.encoding.input_planes import compile_input
from variant_ai.core.encoding.move_codes import Codes, MoveCodec
from variant_ai.core.encoding.move_labels import FlatLabels
from variant_ai.core.encoding.policy_planes import PolicyMap

__all__ = [
    "ENCODER_VERSION",
    "Codes",
    "Encoder",
    "FlatLabels",
    "Head",
    "MoveCodec",
    "PolicyMap",
    "compile_input",
]
