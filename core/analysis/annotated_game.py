"""A game under the search: every position is searched, every move is judged.

Values are in [-1, 1], for the player who moves; winning chances in per cent are 50·(1 + value). The
value of a move is that of the position after it, negated: the search looks at each position once,
and its tree helps the next one. Accuracy follows the curve published by lichess, and marks use its
thresholds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.game_text import Remark
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Line, Report

if TYPE_CHECKING:
    from variant_ai.core.search.interface import BaseSearch

INACCURACY, MISTAKE, BLUNDER = 0.1, 0.2, 0.3
"""Loss of value from which a move is marked."""
MARKS = {"": "", "?!": "inaccuracy", "?": "mistake", "??": "blunder"}
NAGS = {"?!": 6, "?": 2, "??": 4}
"""Numbers of the PGN specification, section 10."""
_OWN = re.compile(
    rf" ?\b(?:{'|'.join(word.capitalize() for word in MARKS.values() if word)})\. \S+ was best\."
)
"""Comment of an earlier analysis."""
LINE_PLIES = 8
"""Plies of a better line in an annotated game."""


def mark(lost: float) -> str:
    """`??`, `?`, `?!` or an empty text for a loss of value."""
    if lost >= BLUNDER:
        return "??"
    if lost >= MISTAKE:
        return "?"
    return "?!" if lost >= INACCURACY else ""


def move_accuracy(lost: float) -> float:
    """Accuracy of a move, 0 to 100: 103.1668·exp(-0.04354·Δ) - 3.1669, where Δ is the loss of
    winning chances in per cent (lichess.org/page/accuracy)."""
    points = 103.1668 * math.exp(-0.04354 * 50.0 * lost) - 3.1669
    return min(max(points, 0.0), 100.0)


def player_accuracy(losses: Iterable[float]) -> float | None:
    """Mean accuracy of a player's moves; None if there are none."""
    points = [move_accuracy(lost) for lost in losses]
    return sum(points) / len(points) if points else None


@dataclass(frozen=True)
class JudgedMove:
    """One move of a game."""

    ply: int
    """0 is the first move of the game."""
    side: int
    """Colour that moved."""
    position: Position
    """Position before the move, shape (1,)."""
    move: int
    best: Line | None
    """Best line of the search before the move; None if it has none."""
    value: float
    """Value of the best move for the mover, in [-1, 1]."""
    value_played: float
    """Value of the position after the move, for the same player."""
    score: int | None
    """Score of the move as in `GameRecord.scores`; None if it ended the game."""

    @property
    def lost(self) -> float:
        """Loss of value, 0 to 2; 0 if the move is the search's best one or turns out better."""
        if self.best is not None and self.best.move == self.move:
            return 0.0
        return max(0.0, self.value - self.value_played)

    @property
    def mark(self) -> str:
        return mark(self.lost)


@dataclass
class GameAnalysis:
    """Analysis of a game; if it was interrupted, it has fewer moves than the record."""

    record: GameRecord
    moves: list[JudgedMove] = field(default_factory=list)
    visits: int = 0
    evaluations: int = 0
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        return len(self.moves) == self.record.plies

    def accuracy(self, side: int) -> float | None:
        """Accuracy of a player, 0 to 100; None if the player made no moves."""
        return player_accuracy(judged.lost for judged in self.moves if judged.side == side)

    def marks(self, side: int) -> dict[str, int]:
        """Number of each mark of a player: `{"?!": 2, "?": 0, "??": 1}`."""
        given = [judged.mark for judged in self.moves if judged.side == side]
        return {sign: given.count(sign) for sign in NAGS}


def analyse_game(
    search: BaseSearch,
    rules: Rules,
    record: GameRecord,
    limits: Limits,
    *,
    on_ply: Callable[[int, Report | None], None] = lambda ply, report: None,
    stopped: Callable[[], bool] = lambda: False,
) -> GameAnalysis:
    """Judge every move of a game.

    on_ply: called with the number of positions searched. stopped: called between positions; if
    True, the moves judged so far are returned. Raises FenError for an invalid start position.
    """
    game = Game(rules, record.start_fen)
    analysis = GameAnalysis(record)
    before = _search(search, game, limits, analysis, goes_on=record.plies > 0)
    on_ply(1, before)
    for ply, move in enumerate(record.moves):
        if stopped():
            break
        side, position = game.side, game.position
        game.push(move)
        after = _search(search, game, limits, analysis, goes_on=ply + 1 < record.plies)
        if after is not None and stopped():  # this search was cut short
            break
        best = before.lines[0] if before is not None and before.lines else None
        outcome = game.outcome()
        if after is None and outcome is not None:
            played, score = float(outcome.value(side)), None
        else:
            reply = after.lines[0] if after is not None and after.lines else None
            played = -reply.q if reply else 0.0
            score = -reply.score if reply else None
        value = best.q if best is not None else played
        analysis.moves.append(JudgedMove(ply, side, position, move, best, value, played, score))
        on_ply(ply + 2, after)
        before = after
    return analysis


def annotated(
    analysis: GameAnalysis,
    *,
    annotator: str,
    players: tuple[str, str],
    move_text: Callable[[Position, int], str],
) -> tuple[GameRecord, dict[int, Remark]]:
    """Add scores, comments and accuracies to a game. Return it with the marks and better lines of
    moves.

    annotator: name of the program. players: names of the two sides in PGN. move_text: writes a
    move of a position. Comments of an earlier analysis are replaced.
    """
    record = analysis.record
    scores: list[int | None] = [judged.score for judged in analysis.moves]
    scores += [None] * (record.plies - len(scores))
    comments = {ply: _OWN.sub("", text).strip() for ply, text in record.comments.items()}
    remarks: dict[int, Remark] = {}
    for judged in analysis.moves:
        sign = judged.mark
        if not sign or judged.best is None:
            continue
        better = move_text(judged.position, judged.best.move)
        comment = f"{MARKS[sign].capitalize()}. {better} was best."
        old = comments.get(judged.ply, "")
        comments[judged.ply] = f"{old} {comment}" if old else comment
        remarks[judged.ply] = Remark(nag=NAGS[sign], line=judged.best.pv[:LINE_PLIES])
    tags = dict(record.tags)
    tags["Annotator"] = annotator
    for side, name in enumerate(players):
        accuracy = analysis.accuracy(side)
        if accuracy is not None:
            tags[f"{name}Accuracy"] = f"{accuracy:.1f}"
    return replace(record, scores=scores, comments=comments, tags=tags), remarks


def _search(
    search: BaseSearch, game: Game, limits: Limits, analysis: GameAnalysis, *, goes_on: bool
) -> Report | None:
    """Search the last position of a game; None if it is over. goes_on: more moves follow in the record, so
    that a draw by repetition or by the move count was not claimed."""
    if goes_on and game.outcome() is not None:
        game = game.without_history()
    if game.outcome() is not None:
        return None
    search.set_game(game)
    report = search.run(limits)
    analysis.visits += report.visits
    analysis.evaluations += report.evaluations
    analysis.seconds += report.seconds
    return report
