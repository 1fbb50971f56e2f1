"""Move rules against Fairy-Stockfish: random games in which every position is compared.

Games are steered towards captures, promotions, drops, castling, en passant, checks and endgames
with few pieces. At each position both must agree on the legal moves and on check, and, if there is
no legal move, on the winner. Our FEN and Fairy-Stockfish's must both be read back as the same
record, and its key must equal the one computed from scratch.

Repetition, move counts and the ends that need history are compared in `game_conformance.py`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from variant_ai.core.errors import FenError, SpecError, VariantAIError
from variant_ai.core.rules import RULES_ENGINES, make_rules
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant, fairy_variants, spec_settings
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import (
    CASTLING,
    DOUBLE_STEP,
    DROP,
    EN_PASSANT,
    PROMOTION,
    Position,
    move_kind,
    same_position,
)
from variant_ai.core.rules.shuffled_starts import random_start
from variant_ai.core.spec.catalogue import similar_names
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.child_processes import WorkerPool
from variant_ai.core.testing.random_games import (
    STYLES,
    Report,
    is_capture,
    moves_only,
    random_move,
    read_again,
)

T = TypeVar("T")
OF_THE_VARIANT = ("checkmateValue", "makpongRule")
"""Settings that make another game of a named variant: Fairy-Stockfish is asked with its own."""

MAX_PLIES = 300
KIND_NAMES = {
    PROMOTION: "promotions",
    DROP: "drops",
    CASTLING: "castling",
    EN_PASSANT: "en passant",
    DOUBLE_STEP: "double steps",
}


def check_rules(
    spec: VariantSpec,
    positions: int,
    seed: int,
    *,
    engine: str | None = None,
    starts: Sequence[str] = (),
    isolated: bool = True,
) -> Report:
    """Compare a rules engine with Fairy-Stockfish on a number of positions of random games.

    engine: name of the rules engine; None: the spec's. starts: FENs to begin every other game at.
    isolated: compare in a child process, because Fairy-Stockfish may kill its process.

    Raises SpecError if Fairy-Stockfish does not have the variant, VariantAIError if its process
    died.
    """
    if not isolated:
        return _compare(spec, positions, seed, engine, tuple(starts))
    try:
        return in_child(_compare, spec, positions, seed, engine, tuple(starts))
    except BrokenProcessPool as error:
        raise VariantAIError(
            f"Fairy-Stockfish's process died while checking {spec.variant!r}; "
            f"seed {seed} repeats it"
        ) from error


def judge(spec: VariantSpec, settings: Mapping[str, str]) -> FairyVariant:
    """Fairy-Stockfish's variant of a spec, with settings but those that no spec may choose for it.

    Raises SpecError if the spec has no such name, or the installed Fairy-Stockfish does not know
    it.
    """
    if spec.fairy is None:
        raise SpecError(
            f"variant {spec.variant!r} has no `fairy:` name, so it cannot be compared with "
            "Fairy-Stockfish"
        )
    known = fairy_variants()
    if spec.fairy_ini is None and spec.fairy not in known:
        raise SpecError(
            f"`fairy: {spec.fairy}`: Fairy-Stockfish has no variant of that name "
            f"({similar_names(spec.fairy, known)})"
        )
    named = {key: value for key, value in settings.items() if key not in OF_THE_VARIANT}
    return FairyVariant.of_spec(spec, named)


def in_child(function: Callable[..., T], *arguments: object) -> T:
    """Call a module's function in a new process and return its result.

    Raises VariantAIError if no process can be started, BrokenProcessPool if that process died. Ctrl-C
    ends it at once.
    """
    with WorkerPool(1, _register, (RULES_ENGINES.added(),)) as pool:
        try:
            pool.submit(os.getpid).result()
        except BrokenProcessPool as error:
            raise VariantAIError(
                "a process for Fairy-Stockfish cannot be started; a script that calls this must be a "
                'file, and call it under `if __name__ == "__main__":`'
            ) from error
        try:
            return pool.submit(function, *arguments).result()
        except KeyboardInterrupt:
            pool.kill()
            raise


def _register(engines: list[tuple[str, str, str]]) -> None:
    for name, target, plugin in engines:
        RULES_ENGINES.register(name, target, plugin)


def _compare(
    spec: VariantSpec, positions: int, seed: int, engine: str | None, starts: tuple[str, ...]
) -> Report:
    settings = spec_settings(spec, move_count=False, chase=False)
    reference = judge(spec, settings)
    rules = make_rules(spec, engine)
    report = Report("rules", spec.variant, rules.name)
    rng = random.Random(seed)
    while report.positions < positions and report.agrees:
        fen = rng.choice(starts) if starts and report.games % 2 else random_start(spec, rng)
        _ComparedGame(rules, reference, fen, rng, report).run(positions)
        report.games += 1
    return report


class _ComparedGame:
    """One random game."""

    def __init__(
        self,
        rules: Rules,
        reference: FairyVariant,
        fen: str | None,
        rng: random.Random,
        report: Report,
    ) -> None:
        self.rules, self.reference, self.rng, self.report = rules, reference, rng, report
        self.position = rules.position(fen)
        self.fen = rules.fen(self.position)
        self.moves: list[str] = []
        """UCI moves from `fen` to `position`."""
        self.trade_plies = rng.choice((0, 0, 30, 80))
        """Plies in which captures are preferred, so that an endgame follows."""

    def run(self, positions: int) -> None:
        for ply in range(self.rng.randint(20, MAX_PLIES)):
            legal = self._compare_moves()
            if not self.report.agrees or self.report.positions >= positions:
                return
            if not legal:
                self._compare_end()
                return
            if ply % 8 == 7:
                self._compare_fen()
            style = "captures" if ply < self.trade_plies else self.rng.choice(STYLES)
            move = random_move(self.rules, self.position, legal, style, self.rng)
            self.moves.append(self.rules.uci(move))
            self.position = self.rules.play(self.position, move)

    def _compare_moves(self) -> list[int]:
        """Compare legal moves and check; return the legal moves."""
        before = self.position.copy()
        legal: list[int] = self.rules.legal_moves(self.position).tolist()
        texts = [self.rules.uci(move) for move in legal]
        ours, theirs = set(texts), set(self.reference.legal_moves(self.fen, self.moves))
        check = self.rules.in_check(self.position)
        self.report.positions += 1
        self.report.moves += len(legal)
        self._count(legal, check)
        if len(ours) != len(texts):
            twice = next(text for text in texts if texts.count(text) > 1)
            self._differ(f"{twice} is listed twice")
            return legal
        forbidden = {move for move in theirs - ours if self._loses_by_mating(move)}
        if forbidden:
            self.report.counts["forbidden mates"] += len(forbidden)
        if ours != theirs - forbidden:
            self._differ(moves_only(ours, theirs - forbidden, "Fairy-Stockfish"))
        if legal and check != self.reference.in_check(self.fen, self.moves):
            self._differ(f"ours: {'check' if check else 'no check'}; Fairy-Stockfish: the opposite")
        if not same_position(before, self.position):
            self._differ("generating moves changed the position")
        return legal

    def _loses_by_mating(self, move: str) -> bool:
        """Return True if Fairy-Stockfish lets a drop mate, and gives the win to the mated side.

        That is how it forbids mate by a dropped pawn; here such a move is illegal.
        """
        after = [*self.moves, move]
        if "@" not in move or self.reference.legal_moves(self.fen, after):
            return False
        return self.reference.mated_value(self.fen, after) > 0

    def _count(self, legal: list[int], check: bool) -> None:
        counts = self.report.counts
        for move in legal:
            if move_kind(move) in KIND_NAMES:
                counts[KIND_NAMES[move_kind(move)]] += 1
            if is_capture(self.position, move):
                counts["captures"] += 1
        if check:
            counts["positions in check"] += 1

    def _compare_end(self) -> None:
        """Compare the winner in a position without legal moves."""
        outcome = self.rules.outcome(self.position)
        side = int(self.position[0]["side"])
        value = self.reference.immediate_end(self.fen, self.moves)
        if value is None:
            value = self.reference.mated_value(self.fen, self.moves)
        if outcome is None:
            self._differ("there is no legal move, but our game goes on")
        elif outcome.value(side) != value:
            self._differ(f"end for the side to move, ours: {outcome}; Fairy-Stockfish: {value}")
        else:
            self.report.counts[outcome.reason] += 1

    def _compare_fen(self) -> None:
        """Read our FEN and Fairy-Stockfish's back: both must give this record and its key."""
        ours, theirs = self.rules.fen(self.position), self.reference.fen_after(self.fen, self.moves)
        for whose, text in (("our", ours), ("Fairy-Stockfish's", theirs)):
            try:
                again = read_again(self.rules, self.position, text)
            except FenError as error:
                self._differ(f"{whose} FEN {text!r} is rejected when it is read: {error}")
                return
            if not _same_except_counters(again, self.position):
                self._differ(f"FEN {text!r} is read as another position")
                return
        # what Fairy-Stockfish keeps of the last two moves is not in a FEN: passes, facing kings
        kept = max(0, len(self.moves) - 2)
        self.fen = self.reference.fen_after(self.fen, self.moves[:kept])
        self.moves = self.moves[kept:]

    def _differ(self, message: str) -> None:
        here = self.rules.fen(self.position)
        played = f" (after {' '.join(self.moves)} from {self.fen})" if self.moves else ""
        self.report.differ(f"{here}{played}: {message}")


def _same_except_counters(a: Position, b: Position) -> bool:
    """Compare two records except for counters, which FENs write differently."""
    c = a.copy()
    for name in ("ply", "clock"):
        c[0][name] = b[0][name]
    return same_position(c, b)
