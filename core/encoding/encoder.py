"""Encoder of a variant: positions to network input, moves to network output and back.

N positions, C input planes, P policy planes, H ranks, W files, A actions. In input and policy, row 0
is always the mover's own first rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding import encoding_kernels as kernels
from variant_ai.core.encoding.encoding_kernels import InputTables, PolicyTables
from variant_ai.core.encoding.input_planes import SpecPlanes
from variant_ai.core.encoding.interface import InputEncoder, Ints, LabelEncoder, Planes
from variant_ai.core.encoding.move_codes import describe
from variant_ai.core.encoding.policy_planes import PolicyMap
from variant_ai.core.errors import MoveError, SpecError
from variant_ai.core.factories import INPUT_ENCODERS, LABEL_ENCODERS
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.spec.hashing import encoding_hash
from variant_ai.core.spec.plane_layout import Head, InputPlane
from variant_ai.core.spec.schema import VariantSpec

ENCODER_VERSION = 1
"""Increased when the encoder of an unchanged spec starts to return other planes or actions."""


class Encoder:
    """Compiled input planes and policy of one spec. It has no state, so any thread may use it."""

    def __init__(self, spec: VariantSpec, head: Head = "map") -> None:
        """head: an action is an index of the policy map ("map", P * H * W) or a label ("flat").

        Raises SpecError if there are too many planes or actions.
        """
        self.spec = spec
        self.head: Head = head
        self.hash = encoding_hash(spec)
        self.input: InputEncoder = INPUT_ENCODERS.load(spec.encoder.input)(spec)
        self.compiled = isinstance(self.input, SpecPlanes)
        """True if compiled code makes the planes; otherwise `planes` makes them, a batch at a time."""
        self.plane_names = self.input.planes
        self.shape = (len(self.plane_names), spec.board.ranks, spec.board.files)
        """(C, H, W)"""
        self.policy = PolicyMap(spec)
        self.policy_shape = self.policy.shape
        """(P, H, W)"""
        own = self.input if isinstance(self.input, SpecPlanes) else SpecPlanes(spec)
        self.input_planes: tuple[InputPlane, ...] = own.described
        """The planes of the spec's list `input:`, which another encoder may not use."""
        self.input_record: InputTables = own.record
        self.policy_record: PolicyTables = self.policy.record
        self.actions = self.policy.size if head == "map" else self.labels.size
        """A: length of the network's policy output."""

    @cached_property
    def labels(self) -> LabelEncoder:
        """Labels of the flat head."""
        return LABEL_ENCODERS.load(self.spec.encoder.labels)(self.spec)

    @cached_property
    def action_table(self) -> Ints:
        """Action of each index of the policy map, -1 if this head has none, int32 [P*H*W]."""
        if self.head == "map":
            return np.arange(self.policy.size, dtype=np.int32)
        return self.labels.of_map

    # --- input ---------------------------------------------------------------------------------

    def planes(
        self,
        positions: Position,
        out: Planes | None = None,
        *,
        mirrored: bool = False,
        raw: bool = False,
    ) -> Planes:
        """Return the input planes, float32 [N, C, H, W], of POSITION records, shape (N,).

        Counts are divided by the spec's maxima; with `raw` they are not. If `out` is given, it is
        filled: float32, C-contiguous, of that shape. `mirrored` exchanges left and right, and raises
        SpecError for a spec without `symmetry: [files]`.
        """
        if positions.dtype != POSITION or positions.ndim != 1:
            raise TypeError("positions must be an array of shape (n,) and dtype POSITION")
        shape = (len(positions), *self.shape)
        if out is None:
            out = np.empty(shape, np.float32)
        elif out.shape != shape or out.dtype != np.float32 or not out.flags.c_contiguous:
            raise TypeError(f"out must be float32, C-contiguous, of shape {shape}")
        if mirrored:
            self._require_symmetry()
        self.input.encode(positions, out, mirrored=mirrored, raw=raw)
        return out

    # --- policy --------------------------------------------------------------------------------

    def action(self, position: Position, move: int) -> int:
        """Return the action of a legal move. Raises MoveError if this policy has none."""
        index = int(kernels.action_of(self.policy_record, position, 0, int(move)))
        action = int(self.action_table[index]) if index >= 0 else -1
        if action < 0:
            raise MoveError(
                f"{describe(move, self.spec)} has no index in the {self.head} policy "
                f"of {self.spec.variant}"
            )
        return action

    def action_indices(self, position: Position, moves: Sequence[int]) -> NDArray[np.int64]:
        """Return the actions of legal moves, int64 [n]. Raises MoveError as `action` does."""
        listed = np.ascontiguousarray(moves, np.int32)
        indices = np.empty(len(listed), np.int64)
        kernels.actions_into(self.policy_record, position, 0, listed, len(listed), indices)
        if self.head == "flat":
            indices = np.where(indices < 0, -1, self.action_table[indices]).astype(np.int64)
        if len(indices) and indices.min() < 0:
            self.action(position, int(listed[int(indices.argmin())]))
        return indices

    def move(self, position: Position, action: int) -> int:
        """Return the move of an action. Legality is not checked. Raises MoveError if the mover has
        no piece for it."""
        if not 0 <= action < self.actions:
            raise MoveError(f"action {action} does not exist; use 0 to {self.actions - 1}")
        index = int(action) if self.head == "map" else int(self.labels.to_map[action])
        move = int(kernels.move_of(self.policy_record, position, 0, index))
        if move < 0:
            raise MoveError(f"action {action} is not a move of a piece in this position")
        return move

    @cached_property
    def mirror_actions(self) -> Ints:
        """Action of the left-right mirrored move for each action, int32 [A]; its own inverse.

        Raises SpecError for a spec without `symmetry: [files]`.
        """
        self._require_symmetry()
        return self.policy.mirrored() if self.head == "map" else self.labels.mirrored()

    @property
    def symmetric(self) -> bool:
        """True if mirroring left and right can be used to augment the data of this variant."""
        return "files" in self.spec.symmetry

    def _require_symmetry(self) -> None:
        if not self.symmetric:
            raise SpecError(
                f"{self.spec.variant} has no left-right symmetry; mirroring needs a spec "
                "with `symmetry: [files]`"
            )
