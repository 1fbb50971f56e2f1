"""The encoder of a variant: positions to network input, moves to network output and back.

N positions, C input planes, P policy planes, H ranks, W files, A actions. Row 0 is always the
mover's own first rank, for input and policy alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding import encoding_kernels as kernels
from variant_ai.core.encoding.encoding_tables import InputTables, PolicyTables
from variant_ai.core.encoding.input_planes import SpecPlanes
from variant_ai.core.encoding.interface import InputEncoder, LabelEncoder
from variant_ai.core.encoding.move_codes import describe
from variant_ai.core.encoding.policy_planes import PolicyMap
from variant_ai.core.errors import MoveError, SpecError
from variant_ai.core.factories import INPUT_ENCODERS, LABEL_ENCODERS
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.spec.hashing import encoding_hash
from variant_ai.core.spec.plane_layout import InputPlane
from variant_ai.core.spec.schema import VariantSpec

Head = Literal["map", "flat"]
Planes = NDArray[np.float32]

ENCODER_VERSION = 1
"""Raised when the encoders of the same spec come to give other planes or actions."""


class Encoder:
    """Input planes and policy of one spec, compiled. Holds no state: any thread may use it."""

    def __init__(self, spec: VariantSpec, head: Head = "map") -> None:
        """`head` says what an action is: an index of the policy map (P * H * W), or a flat label.

        Raises SpecError where planes or actions are too many.
        """
        self.spec = spec
        self.head: Head = head
        self.hash = encoding_hash(spec)
        self.input: InputEncoder = INPUT_ENCODERS.load(spec.encoder.input)(spec)
        self.compiled = isinstance(self.input, SpecPlanes)
        """Whether compiled code makes the planes; if not, `planes` does, a batch at a time."""
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
        return LABEL_ENCODERS.load(self.spec.encoder.labels)(self.spec)

    @cached_property
    def action_table(self) -> NDArray[np.int32]:
        """Action for each index of the policy map, -1 where this head has none, int32 [P*H*W]."""
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
        """Input planes float32 [N, C, H, W] of POSITION records, shape (N,).

        Counts are divided by the spec's maxima; with `raw` they are left as they are. `out` is
        filled if given: float32, C-contiguous, of that shape. `mirrored` exchanges left and right.
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

    def mirror_planes(self, planes: Planes) -> Planes:
        """The same positions with left and right exchanged: a copy of planes [..., H, W].

        Raises SpecError for a spec without `symmetry: [files]`.
        """
        self._require_symmetry()
        return np.ascontiguousarray(planes[..., ::-1])

    # --- policy --------------------------------------------------------------------------------

    def action(self, position: Position, move: int) -> int:
        """The action of a legal move. Raises MoveError where this policy has none for it."""
        index = int(kernels.action_of(self.policy_record, position, 0, int(move)))
        action = int(self.action_table[index]) if index >= 0 else -1
        if action < 0:
            raise MoveError(
                f"{describe(move, self.spec)} has no index in the {self.head} policy "
                f"of {self.spec.variant}"
            )
        return action

    def action_indices(self, position: Position, moves: Sequence[int]) -> NDArray[np.int64]:
        """Actions of legal moves, int64 [n]. Raises MoveError as `action` does."""
        listed = np.ascontiguousarray(moves, np.int32)
        indices = np.empty(len(listed), np.int64)
        kernels.actions_into(self.policy_record, position, 0, listed, len(listed), indices)
        if self.head == "flat":
            indices = np.where(indices < 0, -1, self.action_table[indices]).astype(np.int64)
        if len(indices) and indices.min() < 0:
            self.action(position, int(listed[int(indices.argmin())]))
        return indices

    def move(self, position: Position, action: int) -> int:
        """The move of an action. Raises MoveError where the mover has no piece to make it;
        legality is not asked."""
        if not 0 <= action < self.actions:
            raise MoveError(f"action {action} does not exist; there are 0 to {self.actions - 1}")
        index = int(action) if self.head == "map" else int(self.labels.to_map[action])
        move = int(kernels.move_of(self.policy_record, position, 0, index))
        if move < 0:
            raise MoveError(f"action {action} is no move of a piece of this position")
        return move

    def legal_mask(self, position: Position, moves: Sequence[int]) -> NDArray[np.bool_]:
        """True at the actions of the legal moves, bool [A]."""
        mask = np.zeros(self.actions, np.bool_)
        mask[self.action_indices(position, moves)] = True
        return mask

    @cached_property
    def mirror_actions(self) -> NDArray[np.int32]:
        """Action of the left-right mirrored move, int32 [A]; its own inverse.

        Raises SpecError for a spec without `symmetry: [files]`.
        """
        self._require_symmetry()
        return self.policy.mirrored() if self.head == "map" else self.labels.mirrored()

    @property
    def symmetric(self) -> bool:
        """Whether left-right mirroring is an augmentation for this variant."""
        return "files" in self.spec.symmetry

    def _require_symmetry(self) -> None:
        if not self.symmetric:
            raise SpecError(
                f"{self.spec.variant} has no left-right symmetry; mirroring needs a spec "
                "with `symmetry: [files]`"
            )
