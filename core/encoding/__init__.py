"""Positions to network input, moves to network output and back. In reading order:

    interface           `InputEncoder`, `LabelEncoder`: the interfaces of encoders
    encoder             `Encoder`: everything for one variant
    input_planes        compiles a spec's input planes into a program
    policy_planes       compiles a spec's policy planes into tables; mirroring
    move_labels         labels of the papers' flat (one-hot) policy heads
    encoding_kernels    compiled functions (planes, action of a move, move of an action) and their records
    move_codes          moves as 16-bit codes in game stores

To add a kind of input plane, see "To add something" in docs/map.md: the word is in `core/spec`, the
operation in `encoding_kernels.py`, its compilation in `input_planes.py`, its values in `encode_into`
there, and planes that show history also change the key of nodes.
"""

from variant_ai.core.encoding.encoder import ENCODER_VERSION, Encoder
from variant_ai.core.encoding.input_planes import compile_input
from variant_ai.core.encoding.move_codes import Codes, MoveCodec
from variant_ai.core.encoding.move_labels import FlatLabels
from variant_ai.core.encoding.policy_planes import PolicyMap
from variant_ai.core.spec.plane_layout import Head

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
