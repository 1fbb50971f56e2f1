"""Game ends against Fairy-Stockfish: does a `Game` stop where, and for whom, the judge stops?

Random games are steered to where ends live, since blind play hardly meets them: shuffling back and
forth (repetition), checking (perpetual check, checks that do not count), trading down (long
endgames, mates), keeping quiet without repeating (move count), and cycles of four plies from
endgames made up at random (chases of every kind, after a move that leads in).

One difference is known and counted apart. Asked with the whole game, Fairy-Stockfish also wants
the move that entered a cycle to have chased what the cycle chases, so a chase entered by a quiet
move is a draw at the third occurrence and a loss one ply later. A `Game` judges the moves of the
cycle; where the judge, given just these, says the same, the difference is one of `entered quietly`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from variant_ai.core.errors import FenError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant, spec_settings
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Outcome, Rules
from variant_ai.core.rules.position import (
    DROP,
    NORMAL,
    PASS,
    Position,
    move_kind,
    move_origin,
    move_target,
    piece_colour,
    piece_type,
    view,
)
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import zone_squares
from variant_ai.core.testing.rules_conformance import judge_of

STYLES = ("wander", "trade", "shuffle", "check", "quiet", "cycle")


@dataclass
class GameEndsReport:
    """What `check_game_ends` found."""

    variant: str
    engine: str
    games: int = 0
    positions: int = 0
    """Positions at which both were asked."""
    ends: Counter[str] = field(default_factory=Counter)
    """Ends both agree on, by reason and by who won: `perpetual check, first player`."""
    differences: int = 0
    first_difference: str = ""
    """Start FEN, moves, FEN reached, and both verdicts, of the first difference."""
    entered_quietly: int = 0
    """Chases that the judge misses only because of the move before the cycle."""
    first_entered_quietly: str = ""

    @property
    def agrees(self) -> bool:
        return self.differences == 0

    def add(self, other: GameEndsReport) -> None:
        """Take in the report of further games of the same variant and engine."""
        self.games += other.games
        self.positions += other.positions
        self.ends += other.ends
        self.differences += other.differences
        self.first_difference = self.first_difference or other.first_difference
        self.entered_quietly += other.entered_quietly
        self.first_entered_quietly = self.first_entered_quietly or other.first_entered_quietly


@dataclass(frozen=True)
class _Verdict:
    ended: bool
    winner: int | None = None

    def __str__(self) -> str:
        if not self.ended:
            return "the game goes on"
        return (
            "draw"
            if self.winner is None
            else ("first player wins", "second player wins")[self.winner]
        )


class _Judge:
    """Fairy-Stockfish, with the spec's parameters, asked in the order in which its answers mean
    something: variant ends, no legal move, then claims, then material."""

    def __init__(self, spec: VariantSpec) -> None:
        self.spec = spec
        self.fairy = FairyVariant(judge_of(spec), spec_settings(spec, move_count=True, chase=True))
        rules = spec.rules
        self.may_win = bool(rules.wins) or rules.explodes or rules.bare_king != "none"

    def verdict(self, fen: str, moves: Sequence[str], side: int, has_moves: bool) -> _Verdict:
        # a call costs 2 ms: where the spec knows no variant ends, every tenth ply proves as much
        value = None
        if self.may_win or len(moves) % 10 == 0 or not has_moves:
            value = self.fairy.immediate_end(fen, moves)
        if value is None and not has_moves:
            # a position that we find without moves must be so for the judge, too
            if not self.fairy.legal_moves(fen, moves):
                value = self.fairy.mated_value(fen, moves)
        elif value is None:
            value = self.fairy.optional_end(fen, moves)
            if value is None and self.spec.rules.insufficient_material:
                now = self.fairy.fen_after(fen, moves)
                value = 0 if all(self.fairy.insufficient_material(now)) else None
        if value is None:
            return _Verdict(False)
        return _Verdict(True, None if value == 0 else (side if value > 0 else 1 - side))


def check_game_ends(
    spec: VariantSpec,
    games: int,
    seed: int,
    *,
    engine: str | None = None,
    starts: Sequence[str] = (),
    max_plies: int = 400,
    stop_at_difference: bool = True,
) -> GameEndsReport:
    """Play random games and compare every position's verdict with the judge's.

    starts: FENs to begin games at (every other game); endgames are made up besides.
    Raises SpecError where the spec has no judge, or one that cannot count as the spec does.
    """
    rules = make_rules(spec, engine)
    judge = _Judge(spec)
    report = GameEndsReport(spec.variant, rules.name)
    rng = random.Random(seed)
    for number in range(games):
        fen = rng.choice(starts) if starts and number % 2 else None
        style = rng.choice(STYLES)
        if fen is None and (style == "cycle" or rng.random() < 0.3):
            fen = random_endgame(rules, rng)
        _compare_game(rules, judge, fen, style, rng, max_plies, report)
        report.games += 1
        if report.differences and stop_at_difference:
            break
    return report


def _compare_game(
    rules: Rules,
    judge: _Judge,
    fen: str | None,
    style: str,
    rng: random.Random,
    max_plies: int,
    report: GameEndsReport,
) -> None:
    game = Game(rules, fen)
    start = game.fen()
    trade_plies = rng.choice((0, 0, 40, 120)) if style != "cycle" else 0
    planned: list[int] = []
    moves: list[str] = []
    for ply in range(max_plies):
        ours = game.outcome()
        theirs = judge.verdict(start, moves, game.side, len(game.legal_moves()) > 0)
        report.positions += 1
        if theirs != _as_verdict(ours):
            if _entered_quietly(judge, game, ours, theirs):
                report.entered_quietly += 1
                if not report.first_entered_quietly:
                    report.first_entered_quietly = _describe(game, start, moves, ours, theirs)
            else:
                report.differences += 1
                if not report.first_difference:
                    report.first_difference = _describe(game, start, moves, ours, theirs)
            return
        if ours is not None:
            player = (
                "draw" if ours.winner is None else ("first player", "second player")[ours.winner]
            )
            report.ends[f"{ours.reason}, {player}"] += 1
            return
        if style == "cycle" and not planned and rng.random() < 0.6:
            planned = _cycle(game, rng)
        if planned:
            game.push(planned.pop(0))
        else:
            game.push(_choose(game, "trade" if ply < trade_plies else style, rng))
        moves = game.uci_moves()


def _as_verdict(outcome: Outcome | None) -> _Verdict:
    return _Verdict(False) if outcome is None else _Verdict(True, outcome.winner)


def _entered_quietly(judge: _Judge, game: Game, ours: Outcome | None, theirs: _Verdict) -> bool:
    """Whether the judge, given the cycle alone, says what we say."""
    rule = game.rules.spec.rules.repetition
    if ours is None or not theirs.ended or rule.perpetual_chase == "none":
        return False
    key = game.position["key"][0]
    same = [i for i, position in enumerate(game.positions) if position["key"][0] == key]
    if len(same) < rule.fold:
        return False
    first = same[-rule.fold]
    cycle = game.uci_moves()[first:]
    start = game.rules.fen(game.positions[first])
    return judge.verdict(start, cycle, game.side, True) == _as_verdict(ours)


def _describe(
    game: Game, start: str, moves: Sequence[str], ours: Outcome | None, theirs: _Verdict
) -> str:
    words = str(_as_verdict(ours)) + (f" ({ours.reason}: {ours.detail})" if ours else "")
    return (
        f"after {' '.join(moves) or 'no moves'} from {start}, reaching {game.fen()}: "
        f"ours: {words}; Fairy-Stockfish: {theirs}"
    )


def _choose(game: Game, style: str, rng: random.Random) -> int:
    """A random move in the style; three in four follow it, so that no style is pure."""
    legal = game.legal_moves()
    if rng.random() < 0.25:
        return int(rng.choice(legal))
    liked = _liked(game, style, legal)
    return int(rng.choice(liked if len(liked) else legal))


def _liked(game: Game, style: str, legal: np.ndarray[tuple[int], np.dtype[np.int32]]) -> list[int]:
    moves: list[int] = legal.tolist()
    board = game.position["board"][0]
    if style == "trade":
        return [m for m in moves if _captures(m, board)]
    if style == "shuffle":
        back = _backwards(game)
        return [m for m in moves if m == back] or [m for m in moves if not _captures(m, board)]
    if style == "quiet":
        seen = {int(p["key"][0]) for p in game.positions}
        quiet = [m for m in moves if not _captures(m, board) and move_kind(m) != DROP]
        fresh = [m for m in quiet if int(game.rules.play(game.position, m)["key"][0]) not in seen]
        return fresh or quiet
    if style == "check":
        checks = [m for m in moves if game.rules.in_check(game.rules.play(game.position, m))]
        back = _backwards(game)
        return [m for m in checks if m == back] or checks or [m for m in moves if m == back]
    return moves


def _cycle(game: Game, rng: random.Random) -> list[int]:
    """Moves that lead twice around a cycle of four plies, empty where none is found quickly."""
    rules = game.rules

    def there_and_back(position: Position) -> list[int]:
        board = position["board"][0]
        legal: list[int] = rules.legal_moves(position).tolist()
        return [m for m in legal if not _captures(m, board) and move_kind(m) == NORMAL]

    def back(move: int) -> int:
        return move_origin(move) | move_target(move) << 7

    start = game.position
    firsts = there_and_back(start)
    for first in rng.sample(firsts, min(6, len(firsts))):
        one = rules.play(start, first)
        seconds = there_and_back(one)
        for second in rng.sample(seconds, min(6, len(seconds))):
            two = rules.play(one, second)
            if back(first) not in rules.legal_moves(two):
                continue
            three = rules.play(two, back(first))
            if back(second) in rules.legal_moves(three):
                four = rules.play(three, back(second))
                if four["key"][0] == start["key"][0]:
                    return [first, second, back(first), back(second)] * 2
    return []


def random_endgame(rules: Rules, rng: random.Random) -> str | None:
    """FEN of a position with kings and two to eight more pieces of the start position on squares
    they may stand on; None where no attempt is a legal position."""
    spec, types = rules.spec, rules.types
    files, ranks = spec.board.files, spec.board.ranks
    codes = [code for code in rules.position()["board"][0].tolist() if code]
    royal = [c for c in codes if piece_type(c) == types.royal]
    others = [c for c in codes if piece_type(c) != types.royal]
    for _ in range(200):
        board: dict[int, int] = {}
        for code in royal + rng.sample(others, min(len(others), rng.randint(2, 8))):
            within = types.all[piece_type(code)].piece.within
            squares = range(files * ranks) if within is None else zone_squares(within, spec.board)
            square = rng.choice(sorted(squares))
            board[view(square, piece_colour(code), files, ranks, spec.board.sides)] = code
        position = rules.position()
        position["board"] = 0
        for square, code in board.items():
            position["board"][0, square] = code
        position["castling"] = 0
        position["side"] = rng.randrange(2)
        try:
            return rules.fen(rules.position(rules.fen(position)))
        except FenError:
            continue
    return None


def _backwards(game: Game) -> int:
    """The move that takes the mover's last move back, -1 where there is none."""
    if len(game.moves) < 2:
        return -1
    last = game.moves[-2]
    if move_kind(last) in (DROP, PASS):
        return -1
    return move_origin(last) | move_target(last) << 7


def _captures(move: int, board: np.ndarray[tuple[int], np.dtype[np.int8]]) -> bool:
    return move_kind(move) not in (DROP, PASS) and bool(board[move_target(move)])
