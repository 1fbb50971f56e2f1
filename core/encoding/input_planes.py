"""Input planes: compiles a spec's list of planes into the program that `encode_into` runs.

`core/spec/plane_layout.py` defines the planes and their order; here each becomes one operation. Counts
are divided by the spec's maximum ([CrazyAra-preprint] and [CrazyAra] section 4.1, [Xiangqi-thesis]
section 4.5). `raw=1` gives the planes without division, as in the papers' tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding import encoding_kernels as kernels
from variant_ai.core.encoding.encoding_kernels import (
    CAPTURED,
    CHECKS,
    COLOUR,
    HALFMOVE,
    HAND,
    INPUT,
    MAX_COUNTED,
    MAX_INPUT_PLANES,
    MOVE_NUMBER,
    NO_PLANE,
    REPETITIONS,
    RIGHT,
    SCATTER,
    InputTables,
)
from variant_ai.core.encoding.interface import InputEncoder, Planes
from variant_ai.core.errors import SpecError
from variant_ai.core.rules.kernel.rule_tables import compile_tables
from variant_ai.core.rules.kernel.table_layout import TABLES, Tables
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import Position, piece_code
from variant_ai.core.spec.plane_layout import InputPlane, input_planes
from variant_ai.core.spec.rule_words import Board
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import start_array
from variant_ai.core.spec.zones import mirrored_square, seen_by

_FILLED = {
    "colour": COLOUR,
    "move_number": MOVE_NUMBER,
    "halfmove": HALFMOVE,
    "repetitions": REPETITIONS,
    "hand": HAND,
    "captured": CAPTURED,
    "castling": RIGHT,
    "checks": CHECKS,
}


class SpecPlanes(InputEncoder):
    """The planes that the spec lists under `input:`, compiled."""

    name = "planes"

    def __init__(self, spec: VariantSpec) -> None:
        super().__init__(spec)
        self.described: tuple[InputPlane, ...] = input_planes(spec)
        self.record: InputTables = compile_input(spec)
        """The program that compiled code runs."""
        self.tables: Tables = (
            compile_tables(spec) if self.record[0]["attacks"] else np.zeros(1, TABLES)
        )
        """Rules tables for planes of attacks; empty if there are none."""

    @property
    def planes(self) -> tuple[str, ...]:
        return tuple(plane.name for plane in self.described)

    def encode(
        self, positions: Position, out: Planes, *, mirrored: bool = False, raw: bool = False
    ) -> None:
        positions = np.require(positions, requirements=["C", "W"])
        flat = out.reshape(len(positions), math.prod(out.shape[1:]))
        kernels.encode_all(self.tables, self.record, positions, flat, int(mirrored), int(raw))

    @property
    def scale(self) -> NDArray[np.float64]:
        normal, raw = self.record[0]["maximum"]
        scale: NDArray[np.float64] = (normal / raw)[: len(self.described)]
        return scale


def turn_table(board: Board) -> np.ndarray[tuple[int, int], np.dtype[np.int16]]:
    """Squares as seen in each of the four views (`encoding_kernels.py`), int16 [4, squares]."""
    files, squares = board.files, board.squares
    table = np.zeros((4, squares), np.int16)
    for colour in (0, 1):
        for square in range(squares):
            turned = seen_by(square, colour, board)
            table[colour, square] = turned
            table[colour + 2, square] = mirrored_square(turned, files)
    return table


def compile_input(spec: VariantSpec) -> InputTables:
    """Compile a spec's input planes into a program, shape (1,), dtype INPUT.

    Raises SpecError if there are too many planes.
    """
    planes = input_planes(spec)
    if len(planes) > MAX_INPUT_PLANES:
        raise SpecError(f"input: {len(planes)} planes; the maximum is {MAX_INPUT_PLANES}")
    program = np.zeros(1, INPUT)
    record = program[0]
    squares = spec.board.squares
    record["planes"], record["squares"] = len(planes), squares
    record["turn"][:, :squares] = turn_table(spec.board)
    record["sides"] = len(spec.castling)
    record["en_passant"] = NO_PLANE
    record["attack"] = NO_PLANE
    record["maximum"] = 1
    compiler = _Compiler(spec, record)
    for plane in planes:
        compiler.add(plane)
    record["last_moves"] //= 2  # two planes each
    scattered = [p.index for p in planes if p.item not in _FILLED]
    first = [c for c in scattered if c - 1 not in scattered]
    behind = [c + 1 for c in scattered if c + 1 not in scattered]
    record["runs"] = len(first)
    record["run"][: len(first)] = np.transpose([first, behind])
    return program


class _Compiler:
    """Adds planes to the record, one by one."""

    def __init__(self, spec: VariantSpec, record: np.void) -> None:
        self.spec, self.record = spec, record
        self.types = PieceTypes(spec)
        self.start_count = np.zeros((2, len(self.types)), np.int64)
        # a promoted twin in the start position counts as the piece that it moves like
        for colour, symbol in start_array(spec).values():
            self.start_count[colour, self.types.by_symbol[symbol].index] += 1

    def add(self, plane: InputPlane) -> None:
        record, index = self.record, plane.index
        of_them = plane.who == "them"
        record["op"][index] = _FILLED.get(plane.item, SCATTER)
        record["who"][index] = of_them
        record["maximum"][0, index] = plane.max
        record["argument"][index] = plane.number
        match plane.item:
            case "pieces":
                self._mark("piece", plane)
            case "promoted":
                record["twins"] = 1
                self._mark("twin", plane)
            case "attacks":
                record["attacks"] = 1
                for code in self._codes(plane, of_them):
                    record["attack"][code] = plane.index * int(record["squares"])
            case "captured":
                self._count(plane)
            case "hand":
                assert plane.piece is not None
                record["argument"][index] = self.spec.hand_order.index(plane.piece)
            case "checks":
                record["total"][:, index] = max(w.checks or 0 for w in self.spec.rules.wins)
            case "last_moves":
                if plane.number == 0:
                    record["last_move"] = index
                record["last_moves"] = plane.number + 1
            case "en_passant":
                record["en_passant"] = index
            case item if item not in _FILLED:
                raise AssertionError(f"no program for planes of {item!r}")

    def _codes(self, plane: InputPlane, of_them: bool) -> Iterator[tuple[int, int]]:
        """Player to move and code of each piece that the plane is about. of_them: the pieces are those
        of the opponent."""
        for kind in self.types.all:
            if kind.twin if plane.piece is None else kind.base == plane.piece:
                for side in (0, 1):
                    yield side, piece_code(kind.index, side ^ of_them)

    def _mark(self, table: str, plane: InputPlane) -> None:
        """Let the pieces of a plane set it."""
        record = self.record
        for code in self._codes(plane, plane.who == "them"):
            record[f"{table}_mark"][code] = 1
            record[table][code] = plane.index * int(record["squares"])

    def _count(self, plane: InputPlane) -> None:
        """Count the remaining pieces of a player, from which the plane of captured pieces follows."""
        record, counter = self.record, int(self.record["counting"])
        if counter == MAX_COUNTED:
            raise SpecError(f"input: more than {MAX_COUNTED} planes of captured pieces")
        record["counting"] = counter + 1
        record["argument"][plane.index] = counter
        assert plane.piece is not None
        base = self.types.by_symbol[plane.piece].index
        record["total"][:, plane.index] = self.start_count[:, base]
        for side, code in self._codes(plane, plane.who == "me"):
            record["count"][counter // 8, side, code] += 1 << (counter % 8 * 8)
