"""Flat labels: one index per possible move, without the unused entries of the policy map.

These are the papers' one-hot policies: 2272 labels in crazyhouse ([CrazyAra-preprint] section 5), 2086
in xiangqi ([Xiangqi-thesis] section 4.3). One rule gives both numbers: all moves, in UCI notation, that
any piece of either player can make on an empty board from a square that it can reach from the start
position (by moves, promotions and, if there are hands, drops). Moves are written in the mover's view,
but those of both players are listed, as in the papers; so the second player's promotions (`e2e1q`) have
labels that are never used.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from variant_ai.core.encoding import encoding_kernels as kernels
from variant_ai.core.encoding.interface import Ints, LabelEncoder
from variant_ai.core.encoding.policy_planes import PolicyMap
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import (
    DROP,
    NORMAL,
    POSITION,
    PROMOTION,
    make_move,
)
from variant_ai.core.rules.position import PASS as PASS_MOVE
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.spec.betza import parse_betza
from variant_ai.core.spec.plane_layout import castling_steps, promotion_choices
from variant_ai.core.spec.rule_words import Piece
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import start_array
from variant_ai.core.spec.zones import mirrored_square, seen_by, square_name, zone_squares

Label = tuple[int, int, int, int]
"""(class, origin, target, piece): class 0 move, 1 promotion, 2 drop, 3 pass; piece: index of the
spec's pieces for promotions and drops, otherwise 0. Labels are sorted in this order."""

PLAIN, PROMOTE, ONTO, PASS = range(4)


class FlatLabels(LabelEncoder):
    """Flat policy of a spec: `labels[i]` is a move in UCI notation in the mover's view."""

    name = "moves"

    def __init__(self, spec: VariantSpec) -> None:
        super().__init__(spec)
        self.policy = PolicyMap(spec)
        self.types = PieceTypes(spec)
        self._letters = list(spec.pieces)
        self._keys = sorted(self._all())

    @property
    def size(self) -> int:
        return len(self._keys)

    @cached_property
    def labels(self) -> list[str]:
        """Text of each label."""
        files = self.spec.board.files
        pairs = zip(self._keys, self._moves, strict=True)
        return ["0000" if key[0] == PASS else uci(self.types, files, move) for key, move in pairs]

    # --- which moves there are -----------------------------------------------------------------

    def _all(self) -> set[Label]:
        """Labels of both players in the mover's view, and the same moves in the other's view."""
        seen = self._moves_of(0) | self._moves_of(1)
        found = seen | {self._turned(label) for label in seen}
        if "files" in self.spec.symmetry:
            found |= {self._mirrored(label) for label in found}
        if self.spec.policy != "derived" and "pass" in self.spec.policy:
            found.add((PASS, 0, 0, 0))
        return found

    def _moves_of(self, colour: int) -> set[Label]:
        """All moves of one player on an empty board, in its own view."""
        spec, board = self.spec, self.spec.board
        everywhere = frozenset(range(board.squares))
        found: set[Label] = set()
        todo = self._start_squares(colour)
        for letter in spec.hand_order:
            drop = spec.pieces[letter].drop
            zone = everywhere if drop is True else zone_squares(drop, board) if drop else ()
            todo += [(letter, square) for square in zone]
            found |= {(ONTO, square, square, self._letters.index(letter)) for square in zone}
        reached = set(todo)
        while todo:
            letter, origin = todo.pop()
            piece = spec.pieces[letter]
            for target in self._targets(piece, origin):
                for kind, becomes in self._outcomes(letter, origin, target):
                    index = self._letters.index(becomes) if kind == PROMOTE else 0
                    found.add((kind, origin, target, index))
                    if (becomes, target) not in reached:
                        reached.add((becomes, target))
                        todo.append((becomes, target))
        return found

    def _start_squares(self, colour: int) -> list[tuple[str, int]]:
        """(piece, square in its owner's view) for each piece of the start position."""
        return [
            (symbol, seen_by(square, colour, self.spec.board))
            for square, (owner, symbol) in start_array(self.spec).items()
            if owner == colour
        ]

    def _targets(self, piece: Piece, origin: int) -> set[int]:
        """Squares that the piece reaches on an empty board, including by captures."""
        board = self.spec.board
        words = [piece.moves]
        words += [w for zone, w in piece.from_.items() if origin in zone_squares(zone, board)]
        steps = castling_steps(self.spec) if self._castles_from(piece, origin) else set()
        for move in (m for word in words for m in parse_betza(word)):
            # an asymmetric move is mirrored for a second player with a mirrored board
            for sign in (1, -1) if board.sides == "mirror" else (1,):
                reach = move.reach or max(board.files, board.ranks)
                steps |= {(sign * n * move.dx, n * move.dy) for n in range(1, reach + 1)}
        within = None if piece.within is None else zone_squares(piece.within, board)
        targets: set[int] = set()
        for dx, dy in steps:
            file, rank = origin % board.files + dx, origin // board.files + dy
            square = rank * board.files + file
            on_board = 0 <= file < board.files and 0 <= rank < board.ranks
            if on_board and (within is None or square in within):
                targets.add(square)
        return targets

    def _castles_from(self, piece: Piece, origin: int) -> bool:
        files = self.spec.board.files
        if not any(piece is self.types.all[kind].piece for kind in self.types.castling_types):
            return False
        homes = {side.king.split("-")[0] for side in self.spec.castling.values()}
        if self.spec.rules.shuffle != "none":
            return origin // files in {int(home[1:]) - 1 for home in homes}
        return square_name(origin, files) in homes

    def _outcomes(self, letter: str, origin: int, target: int) -> list[tuple[int, str]]:
        """(class, piece after the move) of one step: plain, promoted, or both."""
        promotes = self.spec.pieces[letter].promotes
        if promotes is None:
            return [(PLAIN, letter)]
        board = self.spec.board
        zone = zone_squares(promotes.at, board)
        if target not in zone and not (promotes.on == "from or to" and origin in zone):
            return [(PLAIN, letter)]
        outcomes = [(PROMOTE, choice) for choice in promotion_choices(self.spec, letter)]
        must = promotes.must
        if isinstance(must, bool):
            forced = must
        elif must == "where stuck":
            forced = not self._targets(self.spec.pieces[letter], target)
        else:
            forced = target in zone_squares(must, board)
        return outcomes if forced else [*outcomes, (PLAIN, letter)]

    # --- other views of a label ----------------------------------------------------------------

    def _turned(self, label: Label) -> Label:
        kind, origin, target, piece = label
        a, b = (seen_by(s, 1, self.spec.board) for s in (origin, target))
        return kind, a, b, piece

    def _mirrored(self, label: Label) -> Label:
        files = self.spec.board.files
        kind, origin, target, piece = label
        a, b = (mirrored_square(s, files) for s in (origin, target))
        return (kind, 0, 0, 0) if kind == PASS else (kind, a, b, piece)

    # --- to and from the map -------------------------------------------------------------------

    @cached_property
    def _moves(self) -> list[int]:
        """Move integer of each label, as the first player makes it."""
        return [self._move(*key) for key in self._keys]

    def _move(self, kind: int, origin: int, target: int, piece: int) -> int:
        letter = self._letters[piece]
        if kind == PROMOTE:
            return make_move(origin, target, PROMOTION, self.types.promoted(letter))
        if kind == ONTO:
            return make_move(0, target, DROP, self.spec.hand_order.index(letter))
        return make_move(origin, target, PASS_MOVE if kind == PASS else NORMAL)

    @cached_property
    def to_map(self) -> Ints:
        """Action of the policy map for each label, -1 if the map has no plane, int32 [size]."""
        moves, actions = np.array(self._moves, np.int32), np.empty(self.size, np.int64)
        first_player = np.zeros(1, POSITION)
        kernels.actions_into(self.policy.record, first_player, 0, moves, self.size, actions)
        return actions.astype(np.int32)

    @cached_property
    def of_map(self) -> Ints:
        """Label of each action of the policy map, -1 if there is none, int32 [A]."""
        labels = np.full(self.policy.size, -1, np.int32)
        known = self.to_map >= 0
        labels[self.to_map[known]] = np.flatnonzero(known)
        return labels

    def mirrored(self) -> Ints:
        """Label of the left-right mirrored move for each label, int32 [size]; for specs with
        `symmetry: [files]`, which always have both."""
        number = {key: i for i, key in enumerate(self._keys)}
        return np.array([number[self._mirrored(key)] for key in self._keys], np.int32)
