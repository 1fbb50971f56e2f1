"""Encoding of a variant, checked on random games:

- a FEN that is written is read back as the same position;
- every legal move has one action in the policy map, one flat label and one code, and comes back
  from each;
- the second player sees what the first sees with colours exchanged, and chooses the same actions
  (unless a piece is asymmetric on a board with `sides: mirror`);
- if the spec says `symmetry: [files]`, mirrored positions have mirrored planes, moves and actions.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.encoding.move_codes import MoveCodec
from variant_ai.core.errors import FenError, MoveError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import (
    CASTLING,
    COLOUR_STRIDE,
    DROP,
    MAX_SQUARES,
    Position,
    make_move,
    move_argument,
    move_kind,
    move_origin,
    move_target,
    same_position,
)
from variant_ai.core.rules.text.fen import start_record
from variant_ai.core.spec.betza import is_asymmetric
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import has_even_walls
from variant_ai.core.spec.zones import mirrored_square, seen_by
from variant_ai.core.system.text_tables import counted
from variant_ai.core.testing.random_games import Report, random_move, read_again

MAX_PLIES = 200
SPECIAL_SHARE = 0.4
"""Share of moves that prefer promotions, drops, castling and en passant."""


def check_encoder(
    spec: VariantSpec | Rules,
    positions: int,
    seed: int,
    *,
    engine: str | None = None,
    starts: Sequence[str] = (),
    seconds: float = float("inf"),
) -> Report:
    """Check encoder, flat labels and move codes on a number of positions of random games, or for so
    many seconds, and on one position at least.

    engine: name of the rules engine of a spec; None: the spec's. starts: FENs to begin every other
    game at. Flat labels are checked from the start position only, since other FENs may place pieces
    where they never get.
    """
    rules = spec if isinstance(spec, Rules) else make_rules(spec, engine)
    report = Report("encoding", rules.spec.variant, rules.name, left_out=_asymmetry(rules.spec))
    comparison = _Comparison(rules, report)
    rng = random.Random(seed)
    deadline = time.monotonic() + seconds

    def finished() -> bool:
        late = report.positions > 0 and time.monotonic() >= deadline
        return late or report.positions >= positions or not report.agrees

    while not finished():
        fen = rng.choice(starts) if starts and report.games % 2 else None
        position = rules.position(fen)
        for _ in range(MAX_PLIES):
            moves = rules.legal_moves(position).tolist()
            comparison.check(position, moves, flat=fen is None)
            report.positions += 1
            report.moves += len(moves)
            if finished() or not moves or rules.outcome(position) is not None:
                break
            style = "special" if rng.random() < SPECIAL_SHARE else "any"
            position = rules.play(position, random_move(rules, position, moves, style, rng))
        report.games += 1
    return report


def _asymmetry(spec: VariantSpec) -> str:
    """Explain why the players' moves are not each other's image; empty if they are.

    Walls may stand on other squares for the second player. Left and right are the mover's own (`core/spec/betza.py`), but a board with `sides: mirror`
    keeps its files for the second player, who sees an asymmetric piece with its sides exchanged.
    """
    if not has_even_walls(spec):
        return "views with colours exchanged: the second player sees the walls on other squares"
    if spec.board.sides == "rotate":
        return ""
    for letter, piece in spec.pieces.items():
        if any(is_asymmetric(word) for word in piece.words):
            return (
                f"moves with colours exchanged: {letter} moves differently to the left and to the "
                "right, and `sides: mirror` exchanges these for the second player"
            )
    return ""


class _Comparison:
    """One method per promise; the first broken one goes into the report."""

    def __init__(self, rules: Rules, report: Report) -> None:
        self.rules, self.spec, self.report = rules, rules.spec, report
        self.map = Encoder(self.spec)
        self.flat = Encoder(self.spec, "flat")
        self.codec = MoveCodec(self.spec)
        self.colour = [p.index for p in self.map.input_planes if p.item == "colour"]
        start = start_record(rules.types)
        board = swapped_position(self.spec, start)[0]["board"]
        self.even = has_even_walls(self.spec) and np.array_equal(board, start[0]["board"])
        """True if both players start alike: only then do captured pieces look the same to both."""

    def check(self, position: Position, moves: list[int], *, flat: bool) -> None:
        self._fen(position)
        self._numbers("policy map", self.map.action, self.map.move, position, moves)
        if flat:
            self._numbers("flat labels", self.flat.action, self.flat.move, position, moves)
        self._numbers("codes", self.codec.encode, self.codec.decode, position, moves)
        if self.even and self.rules.name == "kernel":
            self._other_colour(position, moves)
        if self.map.symmetric and self.rules.name == "kernel":
            self._mirrored(position, moves)

    def _differ(self, promise: str, position: Position, move: int | None, message: str) -> None:
        text = "" if move is None else f", move {self.rules.uci(move)}"
        self.report.differ(f"{promise}: FEN {self.rules.fen(position)}{text}: {message}")

    def _fen(self, position: Position) -> None:
        self.report.counts["FEN round trips"] += 1
        text = self.rules.fen(position)
        try:
            again = read_again(self.rules, position, text)
        except FenError as error:
            self._differ("FEN", position, None, f"rejected when it is read back: {error}")
            return
        if not same_position(again, position):
            self._differ("FEN", position, None, f"read back as {self.rules.fen(again)}")

    def _numbers(
        self,
        name: str,
        number_of: Callable[[Position, int], int],
        move_of: Callable[[Position, int], int],
        position: Position,
        moves: list[int],
    ) -> None:
        self.report.counts[f"moves to {name} and back"] += len(moves)
        owner: dict[int, int] = {}
        for move in moves:
            try:
                number = number_of(position, move)
                back = move_of(position, number)
            except MoveError as error:
                self._differ(name, position, move, str(error))
                return
            if back != move:
                message = f"number {number} comes back as {self.rules.uci(back)}"
                self._differ(name, position, move, message)
            if number in owner:
                other = self.rules.uci(owner[number])
                self._differ(name, position, move, f"shares number {number} with {other}")
            owner[number] = move

    def _other_colour(self, position: Position, moves: list[int]) -> None:
        self.report.counts["views of the other player"] += 1
        other = swapped_position(self.spec, position)
        ours, theirs = self.map.planes(position)[0], self.map.planes(other)[0]
        unlike = set(np.flatnonzero((ours != theirs).any(axis=(1, 2))).tolist()) - set(self.colour)
        if self.report.left_out:  # a piece that does not move alike for both attacks other squares
            unlike -= {plane.index for plane in self.map.input_planes if plane.item == "attacks"}
        if unlike:
            message = f"planes {sorted(unlike)} depend on the colour"
            self._differ("colours", position, None, message)
        if not self.report.left_out:
            swapped = [swapped_move(self.spec, m) for m in moves]
            self._images("colours", position, moves, other, swapped, None)

    def _mirrored(self, position: Position, moves: list[int]) -> None:
        self.report.counts["mirror images"] += 1
        other = mirrored_position(self.spec, position)
        ours, theirs = self.map.planes(position, mirrored=True), self.map.planes(other)
        if not np.array_equal(ours, theirs):
            self._differ("mirroring", position, None, "planes of the mirrored position differ")
        mirrored = [mirrored_move(self.spec, m) for m in moves]
        self._images("mirroring", position, moves, other, mirrored, self.map.mirror_actions)

    def _images(
        self,
        name: str,
        position: Position,
        moves: list[int],
        other: Position,
        images: list[int],
        actions: NDArray[np.int32] | None,
    ) -> None:
        """Compare moves and their actions with the images of both in another position.

        actions: action -> action of the image; None: the same.
        """
        legal = set(self.rules.legal_moves(other).tolist())
        for move, image in zip(moves, images, strict=True):
            if image not in legal:
                self._differ(
                    name, position, move, f"{self.rules.uci(image)} is illegal in the image"
                )
        if len(legal) != len(moves):
            message = f"{counted(len(moves), 'move')}, {len(legal)} in the image"
            self._differ(name, position, None, message)
        if not self.report.agrees:
            return
        for move, image in zip(moves, images, strict=True):
            expected = self.map.action(position, move)
            expected = expected if actions is None else int(actions[expected])
            if self.map.action(other, image) != expected:
                self._differ(name, position, move, f"{self.rules.uci(image)} has another action")


# --- positions and moves with colours, or left and right, exchanged -------------------------------


def swapped_position(spec: VariantSpec, position: Position) -> Position:
    """Position with the colours and sides of the board exchanged; its key is 0."""
    board = spec.board
    other = _placed(position, lambda s: seen_by(s, 1, board), board.squares)
    codes = other[0]["board"].astype(np.int64)
    swapped = np.where(codes > COLOUR_STRIDE, codes - COLOUR_STRIDE, codes + COLOUR_STRIDE)
    record = other[0]
    record["board"] = np.where(codes == 0, 0, swapped)
    for name in ("hands", "checks", "wins_left", "kings"):
        record[name] = other[0][name][::-1].copy()
    sides = len(spec.castling)
    rights = int(position[0]["castling"])
    record["castling"] = rights >> sides | (rights & (1 << sides) - 1) << sides
    homes = position[0]["homes"]
    record["homes"][: 2 * sides] = [*homes[sides : 2 * sides], *homes[:sides]]
    record["side"] = 1 - int(position[0]["side"])
    record["ply"] = int(position[0]["ply"]) // 2 * 2 + int(record["side"])
    return other


def swapped_move(spec: VariantSpec, move: int) -> int:
    """Move in the swapped position that corresponds to `move`."""
    argument = move_argument(move)
    if move_kind(move) == CASTLING:
        argument = (argument + len(spec.castling)) % (2 * len(spec.castling))
    return _moved(move, lambda s: seen_by(s, 1, spec.board), argument)


def mirrored_position(spec: VariantSpec, position: Position) -> Position:
    """Position with left and right exchanged, for variants without castling; its key is 0."""
    files = spec.board.files
    return _placed(position, lambda s: mirrored_square(s, files), spec.board.squares)


def mirrored_move(spec: VariantSpec, move: int) -> int:
    """Move in the mirrored position that corresponds to `move`."""
    files = spec.board.files
    return _moved(move, lambda s: mirrored_square(s, files), move_argument(move))


def _placed(position: Position, to: Callable[[int], int], squares: int) -> Position:
    """Copy of a position with all squares mapped by `to`."""
    other = position.copy()
    record = other[0]
    record["key"] = 0
    record["board"][[to(square) for square in range(squares)]] = position[0]["board"][:squares]
    record["kings"] = [to(int(k)) if k >= 0 else -1 for k in position[0]["kings"]]
    for k, last in enumerate(record["last_moves"].tolist()):
        if last:
            origin, target = divmod(last - 1, MAX_SQUARES)
            origin = origin if origin == MAX_SQUARES else to(origin)
            record["last_moves"][k] = 1 + to(target) + origin * MAX_SQUARES
    record["ep"] = to(int(position[0]["ep"])) if position[0]["ep"] >= 0 else -1
    return other


def _moved(move: int, to: Callable[[int], int], argument: int) -> int:
    origin = 0 if move_kind(move) == DROP else to(move_origin(move))
    return make_move(origin, to(move_target(move)), move_kind(move), argument)
