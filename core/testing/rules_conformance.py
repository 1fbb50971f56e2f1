"""Move rules against Fairy-Stockfish: random games, every position asked of both.

Blind play hardly meets what goes wrong, so games are steered to captures, promotions, drops,
castling, en passant, checks, and down to endgames with few pieces. At each position both must
agree on the legal moves, on check, and, where there is no legal move, on who has won; the FEN must
come back as the same record, the judge's FEN too, and the key must equal the one computed anew.

Repetition, move counts and the ends that need history are compared in `game_conformance.py`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
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
    move_target,
    same_position,
)
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.spec.fairy_names import near
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.child_processes import WorkerPool

T = TypeVar("T")

MAX_PLIES = 300
KIND_NAMES = {
    PROMOTION: "promotions",
    DROP: "drops",
    CASTLING: "castling",
    EN_PASSANT: "en passant",
    DOUBLE_STEP: "double steps",
}
STYLES = ("captures", "special", "quiet", "checks", "blind")


@dataclass
class RulesReport:
    """What `check_rules` found."""

    variant: str
    engine: str
    judge: str
    """Fairy-Stockfish's name of the variant."""
    games: int = 0
    positions: int = 0
    moves: int = 0
    """Legal moves compared."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Of these: captures, promotions, drops, castling, en passant, double steps; and positions in
    check, and ends by reason."""
    differences: int = 0
    first_difference: str = ""
    """FEN, moves and what differs."""

    @property
    def agrees(self) -> bool:
        return self.differences == 0


def check_rules(
    spec: VariantSpec,
    positions: int,
    seed: int,
    *,
    engine: str | None = None,
    starts: Sequence[str] = (),
    isolated: bool = True,
) -> RulesReport:
    """Compare the engine's rules with Fairy-Stockfish's over so many positions of random games.

    starts: FENs to begin games at, besides the start position (every other game). isolated: in a
    child process, which Fairy-Stockfish may kill without taking this one along.

    Raises SpecError where the spec has no judge or one that does not exist, VariantAIError where
    the judge's process died.
    """
    if not isolated:
        return _compare(spec, positions, seed, engine, tuple(starts))
    try:
        return in_child(_compare, spec, positions, seed, engine, tuple(starts))
    except BrokenProcessPool as error:
        raise VariantAIError(
            f"Fairy-Stockfish's process died while judging {spec.variant!r}; "
            f"run again with seed {seed} to see it again"
        ) from error


def judge_of(spec: VariantSpec) -> str:
    """Fairy-Stockfish's name of the variant.

    Raises SpecError where the spec has none, or one that the installed Fairy-Stockfish does not
    have.
    """
    if spec.fairy is None:
        raise SpecError(f"variant {spec.variant!r} has no `fairy:` name, so there is no judge")
    known = fairy_variants()
    if spec.fairy not in known:
        raise SpecError(
            f"`fairy: {spec.fairy}`: Fairy-Stockfish has no variant of that name "
            f"({near(spec.fairy, known)})"
        )
    return spec.fairy


def in_child(function: Callable[..., T], *arguments: object) -> T:
    """The result of a function of a module, called in a fresh process.

    Raises BrokenProcessPool where that process died.
    """
    with WorkerPool(1, _know, (RULES_ENGINES.added(),)) as pool:
        return pool.submit(function, *arguments).result()


def _know(engines: dict[str, str]) -> None:
    for name, target in engines.items():
        RULES_ENGINES.register(name, target)


def _compare(
    spec: VariantSpec, positions: int, seed: int, engine: str | None, starts: tuple[str, ...]
) -> RulesReport:
    name = judge_of(spec)
    rules = make_rules(spec, engine)
    judge = FairyVariant(name, spec_settings(spec, move_count=False, chase=False))
    report = RulesReport(spec.variant, rules.name, name)
    rng = random.Random(seed)
    while report.positions < positions and not report.differences:
        fen = rng.choice(starts) if starts and report.games % 2 else None
        _Comparison(rules, judge, fen, rng, report).run(positions)
        report.games += 1
    return report


class _Comparison:
    """One random game."""

    def __init__(
        self,
        rules: Rules,
        judge: FairyVariant,
        fen: str | None,
        rng: random.Random,
        report: RulesReport,
    ) -> None:
        self.rules, self.judge, self.rng, self.report = rules, judge, rng, report
        self.position = rules.position(fen)
        self.fen = rules.fen(self.position)
        self.moves: list[str] = []
        """UCI moves from `fen` to `position`."""
        self.trade_plies = rng.choice((0, 0, 30, 80))
        """Captures come first until then: what follows is an endgame."""

    def run(self, positions: int) -> None:
        for ply in range(self.rng.randint(20, MAX_PLIES)):
            legal = self._compare_moves()
            if self.report.differences or self.report.positions >= positions:
                return
            if not legal:
                self._compare_end()
                return
            if ply % 8 == 7:
                self._compare_fen()
            move = self._choose(legal, ply)
            self.moves.append(self._uci(move))
            self.position = self.rules.play(self.position, move)

    def _uci(self, move: int) -> str:
        return uci(self.rules.types, self.rules.spec.board.files, move)

    def _compare_moves(self) -> list[int]:
        """Legal moves, both engines agreeing on them and on check."""
        before = self.position.copy()
        legal = [int(move) for move in self.rules.legal_moves(self.position)]
        ours = [self._uci(move) for move in legal]
        theirs = self.judge.legal_moves(self.fen, self.moves)
        check = self.rules.in_check(self.position)
        report = self.report
        report.positions += 1
        report.moves += len(legal)
        self._count(legal, check)
        if len(set(ours)) != len(ours):
            twice = next(text for text in ours if ours.count(text) > 1)
            self._differ(f"{twice} is listed twice")
            return legal
        extra, missing = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
        suicides = [move for move in missing if self._loses_by_mating(move)]
        if suicides:
            report.kinds["forbidden mates"] += len(suicides)
        missing = [move for move in missing if move not in suicides]
        if extra or missing:
            self._differ(
                f"moves only ours: {' '.join(extra) or 'none'}; "
                f"only Fairy-Stockfish's: {' '.join(missing) or 'none'}"
            )
        if check != self.judge.in_check(self.fen, self.moves) and legal:
            self._differ(f"ours: {'check' if check else 'no check'}; Fairy-Stockfish: not so")
        if not same_position(before, self.position):
            self._differ("asking for moves changed the position")
        return legal

    def _loses_by_mating(self, move: str) -> bool:
        """Whether the judge lets the move be played and gives the mated side the win.

        That is how Fairy-Stockfish forbids mate by a dropped pawn; here the move is illegal.
        """
        after = [*self.moves, move]
        if "@" not in move or self.judge.legal_moves(self.fen, after):
            return False
        return self.judge.mated_value(self.fen, after) > 0

    def _count(self, legal: list[int], check: bool) -> None:
        kinds = self.report.kinds
        board = self.position[0]["board"]
        for move in legal:
            kind = move_kind(move)
            if kind in KIND_NAMES:
                kinds[KIND_NAMES[kind]] += 1
            if board[move_target(move)] and kind not in (DROP, CASTLING):
                kinds["captures"] += 1
        if check:
            kinds["positions in check"] += 1

    def _compare_end(self) -> None:
        """Who has won where there is no legal move."""
        outcome = self.rules.outcome(self.position)
        side = int(self.position[0]["side"])
        value = self.judge.immediate_end(self.fen, self.moves)
        if value is None:
            value = self.judge.mated_value(self.fen, self.moves)
        if outcome is None:
            self._differ("no legal move, and yet no end")
        elif outcome.value(side) != value:
            self._differ(f"end for the side to move, ours: {outcome}; Fairy-Stockfish: {value}")
        else:
            self.report.kinds[outcome.reason] += 1

    def _compare_fen(self) -> None:
        """Our FEN and the judge's give the same record, and its key is the one kept in play."""
        ours, theirs = self.rules.fen(self.position), self.judge.fen_after(self.fen, self.moves)
        for whose, text in (("our", ours), ("Fairy-Stockfish's", theirs)):
            try:
                again = self.rules.position(text)
            except FenError as error:
                self._differ(f"{whose} FEN {text!r} is refused when read: {error}")
                return
            again[0]["checks"] = self.position[0]["checks"]
            if not _same_but_counters(again, self.position):
                self._differ(f"FEN {text!r} reads as another position")
                return
        self.fen, self.moves = theirs, []

    def _differ(self, message: str) -> None:
        self.report.differences += 1
        if not self.report.first_difference:
            here = self.rules.fen(self.position)
            played = f" (after {' '.join(self.moves)} from {self.fen})" if self.moves else ""
            self.report.first_difference = f"{here}{played}: {message}"

    def _choose(self, legal: list[int], ply: int) -> int:
        style = "captures" if ply < self.trade_plies else self.rng.choice(STYLES)
        board = self.position[0]["board"]
        liked: list[int] = []
        if style == "captures":
            liked = [m for m in legal if board[move_target(m)] and move_kind(m) != CASTLING]
        elif style == "special":
            kinds = {move_kind(m) for m in legal} & KIND_NAMES.keys()
            if kinds:
                kind = self.rng.choice(sorted(kinds))
                liked = [m for m in legal if move_kind(m) == kind]
        elif style == "quiet":
            liked = [m for m in legal if move_kind(m) != DROP]
        elif style == "checks":
            tried = self.rng.sample(legal, min(len(legal), 40))
            liked = [m for m in tried if self.rules.in_check(self.rules.play(self.position, m))]
        return self.rng.choice(liked or legal)


def _same_but_counters(a: Position, b: Position) -> bool:
    """Whether two records are the same position; counters follow FEN habits that differ, and no FEN
    has the last moves."""
    c = a.copy()
    for name in ("ply", "clock", "last_moves"):
        c[0][name] = b[0][name]
    return same_position(c, b)
