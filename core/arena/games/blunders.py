"""Blunders in generated games: found by the scores of both sides, and dropped or cut off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from variant_ai.core.arena.games.generated_games import CUT_TAG
from variant_ai.core.arena.games.openings import Opening, played_out
from variant_ai.core.data.game_record import OPENING_TAG, GameRecord
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules

BLUNDER_BOUND = 1000
"""Scores are limited to ± this many centipawns to find blunders."""
SHORTEST_CUT = 10
"""Minimum length in plies of a game of which the beginning was cut off."""


@dataclass(frozen=True)
class BlunderRule:
    """Blunders, and the treatment of games that have one.

    The score of a move and that of the reply are two evaluations of one position. If the second is
    much worse for the player who made the move, the move was a blunder, and the result of the game
    does not fit the positions before:

        drop(p) = clip(score(p)) + clip(score(p + 1)),  each from the mover's view

    Scores, mates included, are clipped to ±BLUNDER_BOUND, so that another way to win a won game is
    no blunder. Random moves have no score and are no blunders.
    """

    drop: int
    """A move that loses more centipawns is a blunder, 1 to 2 · BLUNDER_BOUND. It must be well above
    the noise of the search, which is 100 to 200 at a few hundred nodes."""
    action: Literal["drop", "cut"] = "drop"
    """`drop`: drop the game. `cut`: keep it from the position after its last blunder on, if
    SHORTEST_CUT plies are left and the rest ends like the whole game."""


def last_blunder(scores: Sequence[int | None], drop: int) -> int | None:
    """Ply of the last move that lost more than `drop`; None if there is none. scores: per ply, in
    centipawns of the mover, None if unknown. The last move has no reply to judge it by."""
    for ply in range(len(scores) - 2, -1, -1):
        own, reply = scores[ply], scores[ply + 1]
        if own is not None and reply is not None and _clipped(own) + _clipped(reply) > drop:
            return ply
    return None


def filtered(rules: Rules, record: GameRecord, rule: BlunderRule) -> GameRecord | None:
    """Apply the rule to a game; None if it is dropped."""
    ply = last_blunder(record.scores or (), rule.drop)
    if ply is None:
        return record
    return None if rule.action == "drop" else _after(rules, record, ply + 1)


def _after(rules: Rules, record: GameRecord, plies: int) -> GameRecord | None:
    """The game without its first `plies`; None if the rest is too short, or if its end depends on
    the plies before (a repetition)."""
    if record.plies - plies < SHORTEST_CUT:
        return None
    whole = played_out(rules, Opening(record.start_fen, tuple(record.moves[:plies])))
    rest = Game(rules, whole.fen())
    for move in record.moves[plies:]:
        whole.push(move)
        rest.push(move)
    if whole.outcome() != rest.outcome():
        return None
    return replace(
        record,
        start_fen=rules.fen(rest.positions[0]),
        moves=record.moves[plies:],
        scores=(record.scores or [])[plies:],
        visits=None if record.visits is None else record.visits[plies:],
        root_values=None if record.root_values is None else record.root_values[plies:],
        comments={ply - plies: text for ply, text in record.comments.items() if ply >= plies},
        tags={
            **record.tags,
            "RandomPlies": "0",
            OPENING_TAG: str(max(0, record.opening_plies - plies)),
            CUT_TAG: str(plies),
        },
    )


def _clipped(score: int) -> int:
    return max(-BLUNDER_BOUND, min(BLUNDER_BOUND, score))
