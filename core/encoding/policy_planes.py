"""Policy map: every move as a plane and a square, compiled into tables.

`action = plane * squares + row * files + file`, where row 0 is the mover's own first rank. The square
is the origin of a move, the target of a drop, 0 for a pass. `core/spec/plane_layout.py` defines the
planes and their order: those listed in the spec ([CrazyAra-preprint] table 2, [Xiangqi-thesis] table
4.3), or the derived ones, which cover every displacement of any piece and are also used in game stores.
"""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoding_kernels import (
    CASTLES,
    MAX_ACTIONS,
    NO_PLANE,
    PAD,
    POLICY,
    STEP_ORIGIN,
    STEPS_SPECIALLY,
    PolicyTables,
)
from variant_ai.core.encoding.input_planes import turn_table
from variant_ai.core.errors import SpecError
from variant_ai.core.rules.geometry import Geometry
from variant_ai.core.rules.kernel.move_programs import piece_paths
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import (
    DOUBLE_STEP,
    DROP,
    EN_PASSANT,
    NORMAL,
    PASS,
    PROMOTION,
    make_move,
)
from variant_ai.core.spec.plane_layout import PolicyPlane, policy_planes
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import mirrored_square


def step_number(dx: int, dy: int) -> int:
    """Index of a displacement in the step tables."""
    return dy * PAD + dx + STEP_ORIGIN


class PolicyMap:
    """Tables of a spec's policy planes, from move to action and back."""

    def __init__(self, spec: VariantSpec, layout: Literal["derived"] | None = None) -> None:
        """layout: "derived" ignores the planes listed in the spec.

        Raises SpecError if there are more actions than fit into 16 bits.
        """
        self.spec = spec
        self.planes: tuple[PolicyPlane, ...] = policy_planes(spec, layout)
        self.squares = spec.board.squares
        self.size = len(self.planes) * self.squares
        """Number of actions A; many of them lead off the board or are never legal."""
        if self.size > MAX_ACTIONS:
            raise SpecError(
                f"policy: {len(self.planes)} planes have {self.size} actions; "
                f"the maximum is {MAX_ACTIONS}"
            )
        self.shape = (len(self.planes), spec.board.ranks, spec.board.files)
        self.types = PieceTypes(spec)
        self.record: PolicyTables = self._compile()

    def _compile(self) -> PolicyTables:
        spec, table = self.spec, np.zeros(1, POLICY)
        record = table[0]
        record["squares"], record["actions"] = self.squares, self.size
        turn = turn_table(spec.board)[:2]
        record["turn"][:, : self.squares] = turn
        record["padded"][:, : self.squares] = (
            turn // spec.board.files * PAD + turn % spec.board.files
        )
        for name in ("step_plane", "promotion_plane", "drop_plane", "pass_plane"):
            record[name] = NO_PLANE
        record["move"] = -1
        for plane in self.planes:
            self._add_plane(record, plane)
            for square in range(self.squares):
                for colour in (0, 1):
                    action = plane.index * self.squares + square
                    record["move"][colour, action] = self._move(plane, square, turn[colour])
        self._add_special_moves(record)
        return table

    def _add_plane(self, record: np.void, plane: PolicyPlane) -> None:
        step = step_number(plane.dx, plane.dy)
        match plane.kind:
            case "move":
                record["step_plane"][step] = plane.index
            case "promotion":
                record["promotion_plane"][self._promoted(plane), step] = plane.index
            case "drop":
                record["drop_plane"][self._hand(plane)] = plane.index
            case "pass":
                record["pass_plane"] = plane.index

    def _move(self, plane: PolicyPlane, square: int, turn: NDArray[np.int16]) -> int:
        """Return the move integer of a plane and a square as seen by the mover; -1 if it leads off the
        board.

        `turn` maps squares as seen to squares of the board, and back.
        """
        files, ranks = self.spec.board.files, self.spec.board.ranks
        here = int(turn[square])
        if plane.kind == "drop":
            return make_move(0, here, DROP, self._hand(plane))
        if plane.kind == "pass":
            return make_move(0, 0, PASS) if square == 0 else -1
        file, rank = square % files + plane.dx, square // files + plane.dy
        if not (0 <= file < files and 0 <= rank < ranks):
            return -1
        there = int(turn[rank * files + file])
        if plane.kind == "promotion":
            return make_move(here, there, PROMOTION, self._promoted(plane))
        return make_move(here, there, NORMAL)

    def _promoted(self, plane: PolicyPlane) -> int:
        assert plane.piece is not None
        return self.types.promoted(plane.piece)

    def _hand(self, plane: PolicyPlane) -> int:
        assert plane.piece is not None
        return self.spec.hand_order.index(plane.piece)

    def _add_special_moves(self, record: np.void) -> None:
        """Record the piece types that castle, capture en passant or make double steps: in the policy
        map these look like plain steps."""
        rights = self.types.castling_rights
        record["rights"] = len(rights)
        for right in rights:
            record["right_colour"][right.bit] = right.colour
            record["right_first"][right.bit] = self.types.first_walks[right.bit]
        for number, walk in enumerate(self.types.castling_walks):
            record["walk_from"][number] = walk.king_from
            record["walk_target"][number] = walk.target
        geometry = Geometry(self.spec)
        for kind in self.types.all:
            if kind.index in self.types.castling_types:
                record["special"][kind.index] |= CASTLES
            if not kind.piece.passant:
                continue
            record["special"][kind.index] |= STEPS_SPECIALLY
            for colour, origin in itertools.product((0, 1), range(self.squares)):
                for path in piece_paths(geometry, kind, colour, origin):
                    padded = record["padded"][colour]
                    step = int(padded[path.targets[0]]) - int(padded[origin]) + STEP_ORIGIN
                    if path.kind == DOUBLE_STEP:
                        record["step_kind"][kind.index, step] = DOUBLE_STEP
                        record["doubles"][kind.index, record["turn"][colour, origin]] = 1
                    elif path.passant and not path.quiet:
                        record["step_kind"][kind.index, step] = EN_PASSANT

    def mirrored(self) -> NDArray[np.int32]:
        """Return the action of the left-right mirrored move for each action, int32 [A]; its own
        inverse.

        Raises SpecError if the policy has no plane for a mirrored step.
        """
        files = self.spec.board.files
        by_step = {(p.kind, p.piece, p.dx, p.dy): p.index for p in self.planes}
        squares = np.arange(self.squares)
        turned = np.array([mirrored_square(square, files) for square in range(self.squares)])
        actions = np.empty(self.size, np.int32)
        for plane in self.planes:
            twin = by_step.get((plane.kind, plane.piece, -plane.dx, plane.dy))
            if twin is None:
                raise SpecError(f"policy: there is no mirrored plane for plane {plane.name}")
            first = plane.index * self.squares
            to = squares if plane.kind == "pass" else turned
            actions[first : first + self.squares] = twin * self.squares + to
        return actions
