"""A game under the search: every position looked at in order, every move judged.

The value of a move is that of the position after it, turned round: the search looks at each
position once, and the tree of one helps the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from variant_ai.core.analysis.accuracy import MARKS, loss, mark, player_accuracy
from variant_ai.core.data.game_record import MATE, GameRecord
from variant_ai.core.data.write.pgn_writer import Remark
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Line, Report

NAGS = {"?!": 6, "?": 2, "??": 4}
"""Numbers of the PGN specification, section 10."""
_OWN = re.compile(
    rf" ?\b(?:{'|'.join(word.capitalize() for word in MARKS.values() if word)})\. \S+ was best\."
)
"""What an earlier analysis has said of a move."""
LINE_PLIES = 8
"""Moves written of a better line."""


class Searching(Protocol):
    """The part of `Search` used here."""

    def set_game(self, game: Game) -> None: ...

    def run(
        self,
        limits: Limits,
        *,
        moves: Sequence[int] | None = None,
        multipv: int = 1,
        on_report: Callable[[Report], None] | None = None,
        interval: float = 1.0,
    ) -> Report: ...


@dataclass(frozen=True)
class Judged:
    """One move of a game."""

    ply: int
    """0 is the first move of the game."""
    side: int
    """Colour that moved."""
    move: int
    best: Line | None
    """What the search would have played; None where it said nothing."""
    value: float
    """Value of the best move for the mover, in [-1, 1]."""
    value_played: float
    """Value of the position after the move, for the same player."""
    score: int | None
    """Of the move, as `GameRecord.scores` has it; None where the game ended with it."""

    @property
    def lost(self) -> float:
        """Value given away, 0 where the search agrees with the move."""
        if self.best is not None and self.best.move == self.move:
            return 0.0
        return loss(self.value, self.value_played)

    @property
    def mark(self) -> str:
        return mark(self.lost)


@dataclass
class GameAnalysis:
    """What became of a game. Fewer moves than the record has where it was interrupted."""

    record: GameRecord
    moves: list[Judged] = field(default_factory=list)
    visits: int = 0
    evaluations: int = 0
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        return len(self.moves) == self.record.plies

    def accuracy(self, side: int) -> float | None:
        """Of a player's moves, 0 to 100."""
        return player_accuracy(judged.lost for judged in self.moves if judged.side == side)

    def marks(self, side: int) -> dict[str, int]:
        """How often each mark was given to a player: `{"?!": 2, "?": 0, "??": 1}`."""
        given = [judged.mark for judged in self.moves if judged.side == side]
        return {sign: given.count(sign) for sign in NAGS}


def analyse_game(
    search: Searching,
    rules: Rules,
    record: GameRecord,
    limits: Limits,
    *,
    on_ply: Callable[[int, Report | None], None] = lambda ply, report: None,
    stopped: Callable[[], bool] = lambda: False,
) -> GameAnalysis:
    """Judge every move. `on_ply` hears the number of positions done; `stopped` is asked between
    positions, and what is judged by then is returned. Raises FenError for a bad start."""
    game = Game(rules, record.start_fen)
    analysis = GameAnalysis(record)
    before = _look(search, game, limits, analysis)
    on_ply(1, before)
    for ply, move in enumerate(record.moves):
        if stopped():
            break
        side = game.side
        game.push(move)
        outcome = game.outcome()
        after = None
        if outcome is None:
            after = _look(search, game, limits, analysis)
            if stopped():  # this position was cut short: its value is not worth keeping
                break
        best = before.lines[0] if before is not None and before.lines else None
        if outcome is not None:
            played, score = float(outcome.value(side)), None
        else:
            answer = after.lines[0] if after is not None and after.lines else None
            played = -answer.q if answer else 0.0
            score = _score(answer) if answer else None
        value = best.q if best is not None else played
        analysis.moves.append(Judged(ply, side, move, best, value, played, score))
        on_ply(ply + 2, after)
        before = after
    return analysis


def annotated(
    analysis: GameAnalysis,
    *,
    annotator: str,
    players: tuple[str, str],
    moves_text: Callable[[int, int], str],
) -> tuple[GameRecord, dict[int, Remark]]:
    """The game with scores, words and accuracies, and what stands beside its moves.

    annotator: who says all this. players: what the two are called in PGN. moves_text: a move as text,
    given the ply it would have been played at and the move. What an earlier analysis said is replaced.
    """
    record = analysis.record
    scores: list[int | None] = [judged.score for judged in analysis.moves]
    scores += [None] * (record.plies - len(scores))
    comments = {ply: _OWN.sub("", said).strip() for ply, said in record.comments.items()}
    remarks: dict[int, Remark] = {}
    for judged in analysis.moves:
        sign = judged.mark
        if not sign or judged.best is None:
            continue
        better = moves_text(judged.ply, judged.best.move)
        said = f"{MARKS[sign].capitalize()}. {better} was best."
        old = comments.get(judged.ply, "")
        comments[judged.ply] = f"{old} {said}" if old else said
        remarks[judged.ply] = Remark(nag=NAGS[sign], line=judged.best.pv[:LINE_PLIES])
    tags = dict(record.tags)
    tags["Annotator"] = annotator
    for side, name in enumerate(players):
        accuracy = analysis.accuracy(side)
        if accuracy is not None:
            tags[f"{name}Accuracy"] = f"{accuracy:.1f}"
    return replace(record, scores=scores, comments=comments, tags=tags), remarks


def _look(search: Searching, game: Game, limits: Limits, analysis: GameAnalysis) -> Report | None:
    if game.outcome() is not None:
        return None
    search.set_game(game)
    report = search.run(limits)
    analysis.visits += report.visits
    analysis.evaluations += report.evaluations
    analysis.seconds += report.seconds
    return report


def _score(answer: Line) -> int:
    """Score of a move from the best answer to it, for the player who made it."""
    mate = answer.mate_in
    if mate is None:
        return -answer.cp
    return mate - MATE if mate > 0 else MATE + mate
