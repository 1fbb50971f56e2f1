"""What every variant's encoding must hold to, tried on random games.

- a FEN written is read back as the same position;
- every legal move has one action in the policy map, one flat label and one code, and comes back
  from each;
- the second player sees what the first sees with colours exchanged, and chooses the same actions
  (its moves are no image of the first's where a piece is lopsided on a board with `sides: mirror`);
- where the spec says `symmetry: [files]`, mirrored positions have mirrored planes, moves, actions.

The first difference is named with the FEN and the move; the trial stops there.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.encoding.mirrored_views import (
    mirrored_move,
    mirrored_position,
    swapped_move,
    swapped_position,
)
from variant_ai.core.encoding.move_codes import MoveCodec
from variant_ai.core.errors import FenError, MoveError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import NORMAL, Position, move_kind, same_position
from variant_ai.core.rules.text.fen import start_record
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.spec.betza import is_asymmetric
from variant_ai.core.spec.schema import VariantSpec

MAX_PLIES = 200


@dataclass
class EncoderReport:
    """What `check_encoder` found."""

    variant: str
    engine: str
    games: int = 0
    positions: int = 0
    moves: int = 0
    checks: Counter[str] = field(default_factory=Counter)
    """How often each promise was tried."""
    left_out: str = ""
    """Which promise the variant does not make, and why; empty if it makes all."""
    first_difference: str = ""
    """Which promise broke, the FEN and the move; empty if none did."""

    @property
    def agrees(self) -> bool:
        return not self.first_difference


def check_encoder(
    spec: VariantSpec,
    positions: int,
    seed: int,
    *,
    engine: str | None = None,
    starts: Sequence[str] = (),
) -> EncoderReport:
    """Try the promises above on so many positions of random games.

    starts: FENs to begin games at, besides the start position (every other game). Flat labels are
    tried from the start position only: other FENs may place pieces where those never get.
    """
    rules = make_rules(spec, engine)
    report = EncoderReport(spec.variant, rules.name, left_out=_turned_over(spec))
    trial = _Trial(rules, report)
    rng = random.Random(seed)
    while report.positions < positions and report.agrees:
        fen = rng.choice(starts) if starts and report.games % 2 else None
        for position, moves in _game(rules, fen, rng):
            trial.try_position(position, moves, flat=fen is None)
            report.positions += 1
            report.moves += len(moves)
            if report.positions == positions or not report.agrees:
                break
        report.games += 1
    return report


def _turned_over(spec: VariantSpec) -> str:
    """Why the players' moves are not each other's image; empty where they are.

    Left and right are the mover's own (`core/spec/betza.py`), but a board with `sides: mirror` keeps its
    files for the second player, who then sees a lopsided piece with its sides exchanged.
    """
    if spec.board.sides == "rotate":
        return ""
    for letter, piece in spec.pieces.items():
        if any(is_asymmetric(word) for word in (piece.moves, *piece.from_.values())):
            return (
                f"moves with colours exchanged: {letter} moves differently to the left and to the "
                "right, which `sides: mirror` turns over for the second player"
            )
    return ""


def _game(
    rules: Rules, fen: str | None, rng: random.Random
) -> Iterator[tuple[Position, list[int]]]:
    """Positions of a random game that likes promotions, drops, castling and en passant."""
    position = rules.position(fen)
    for _ in range(MAX_PLIES):
        moves = rules.legal_moves(position).tolist()
        yield position, moves
        if not moves or rules.outcome(position) is not None:
            return
        special = [m for m in moves if move_kind(m) != NORMAL]
        position = rules.play(
            position, rng.choice(special if special and rng.random() < 0.4 else moves)
        )


class _Trial:
    """The promises, one method each; a broken one goes into the report."""

    def __init__(self, rules: Rules, report: EncoderReport) -> None:
        self.rules, self.spec, self.report = rules, rules.spec, report
        self.map = Encoder(self.spec)
        self.flat = Encoder(self.spec, "flat")
        self.codec = MoveCodec(self.spec)
        self.colour = [p.index for p in self.map.input_planes if p.item == "colour"]
        start = start_record(self.spec, rules.types)
        board = swapped_position(self.spec, start)[0]["board"]
        self.even = np.array_equal(board, start[0]["board"])
        """Whether both players start alike: only then do they see alike what was captured."""

    def try_position(self, position: Position, moves: list[int], *, flat: bool) -> None:
        self._fen(position)
        self._actions("policy map", self.map, position, moves)
        if flat:
            self._actions("flat labels", self.flat, position, moves)
        self._codes(position, moves)
        if self.even and self.rules.name == "kernel":
            self._other_colour(position, moves)
        if self.map.symmetric and self.rules.name == "kernel":
            self._mirrored(position, moves)

    def _broken(self, promise: str, position: Position, move: int | None, what: str) -> None:
        if self.report.agrees:
            text = (
                ""
                if move is None
                else f", move {uci(self.rules.types, self.spec.board.files, move)}"
            )
            self.report.first_difference = (
                f"{promise}: FEN {self.rules.fen(position)}{text}: {what}"
            )

    def _fen(self, position: Position) -> None:
        self.report.checks["FEN round trips"] += 1
        text = self.rules.fen(position)
        try:
            again = self.rules.position(text)
        except FenError as error:
            self._broken("FEN", position, None, f"refused when read back: {error}")
            return
        for name in ("repetitions", "checks", "last_moves"):  # no FEN has these
            again[0][name] = position[0][name]
        if not same_position(again, position):
            self._broken("FEN", position, None, f"read back it is {self.rules.fen(again)}")

    def _actions(self, name: str, encoder: Encoder, position: Position, moves: list[int]) -> None:
        self.report.checks[f"moves to {name} and back"] += len(moves)
        owner: dict[int, int] = {}
        for move in moves:
            try:
                action = encoder.action(position, move)
                back = encoder.move(position, action)
            except MoveError as error:
                self._broken(name, position, move, str(error))
                return
            if back != move:
                self._broken(
                    name, position, move, f"action {action} comes back as {self._text(back)}"
                )
            if action in owner:
                other = self._text(owner[action])
                self._broken(name, position, move, f"shares action {action} with {other}")
            owner[action] = move

    def _codes(self, position: Position, moves: list[int]) -> None:
        self.report.checks["moves to codes and back"] += len(moves)
        owner: dict[int, int] = {}
        for move in moves:
            try:
                code = self.codec.encode(position, move)
                back = self.codec.decode(position, code)
            except MoveError as error:
                self._broken("codes", position, move, str(error))
                return
            if back != move or code in owner:
                self._broken(
                    "codes", position, move, f"code {code} comes back as {self._text(back)}"
                )
            owner[code] = move

    def _other_colour(self, position: Position, moves: list[int]) -> None:
        self.report.checks["views of the other player"] += 1
        other = swapped_position(self.spec, position)
        swapped = [swapped_move(self.spec, m) for m in moves]
        if not self.report.left_out:
            self._same_moves("colours", position, moves, other, swapped)
        ours, theirs = self.map.planes(position)[0], self.map.planes(other)[0]
        unlike = set(np.flatnonzero((ours != theirs).any(axis=(1, 2))).tolist()) - set(self.colour)
        if unlike:
            self._broken("colours", position, None, f"planes {sorted(unlike)} depend on the colour")
        if not self.report.left_out:
            self._same_actions("colours", position, moves, other, swapped, None)

    def _mirrored(self, position: Position, moves: list[int]) -> None:
        self.report.checks["mirror images"] += 1
        other = mirrored_position(self.spec, position)
        turned = [mirrored_move(self.spec, m) for m in moves]
        self._same_moves("mirroring", position, moves, other, turned)
        ours, theirs = self.map.planes(position, mirrored=True), self.map.planes(other)
        if not np.array_equal(ours, theirs):
            self._broken("mirroring", position, None, "planes of the mirrored position differ")
        self._same_actions("mirroring", position, moves, other, turned, self.map.mirror_actions)

    def _same_moves(
        self, name: str, position: Position, moves: list[int], other: Position, turned: list[int]
    ) -> None:
        legal = set(self.rules.legal_moves(other).tolist())
        for move, twin in zip(moves, turned, strict=True):
            if twin not in legal:
                self._broken(name, position, move, f"{self._text(twin)} is illegal in the image")
        if len(legal) != len(moves):
            self._broken(name, position, None, f"{len(moves)} moves, {len(legal)} in the image")

    def _same_actions(
        self,
        name: str,
        position: Position,
        moves: list[int],
        other: Position,
        turned: list[int],
        mirror: np.ndarray[tuple[int], np.dtype[np.int32]] | None,
    ) -> None:
        if not self.report.agrees:
            return
        for move, twin in zip(moves, turned, strict=True):
            expected = self.map.action(position, move)
            expected = expected if mirror is None else int(mirror[expected])
            if self.map.action(other, twin) != expected:
                self._broken(name, position, move, f"{self._text(twin)} has another action")

    def _text(self, move: int) -> str:
        return uci(self.rules.types, self.spec.board.files, move)
