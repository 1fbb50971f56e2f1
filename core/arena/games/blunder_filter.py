"""What is filtered out of generated games: moves by which an engine threw away what it had.

An engine's score of its own move and the score that the other side gives to the position a ply
later are two judgements of one position. Where the second is far worse for the mover than the
first, the mover has blundered: the result of the game then says nothing of the positions before.

    drop(p) = clip(score(p)) + clip(score(p + 1)),  each from the view of who moved

Scores are clipped to ±`BOUND`, mates too, so that a won game that is won in another way is no
blunder. Moves drawn by lot have no score: they are marked in the game, and not called blunders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from variant_ai.core.arena.games.openings import Opening, played_out
from variant_ai.core.data.game_record import OPENING_TAG, GameRecord
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules

BOUND = 1000
"""Centipawns; what is better is won, whatever it is."""
SHORTEST = 10
"""Plies of a game that is worth keeping after a cut."""
CUT_TAG = "CutPlies"
"""Header of a game without its first plies: how many they were."""


@dataclass(frozen=True)
class BlunderRule:
    """Which moves are blunders, and what becomes of their games."""

    drop: int
    """Centipawns lost by one move, 1 to 2 · BOUND; more than this is a blunder. To be well above
    the noise of the search: scores of a few hundred nodes go up and down by 100 to 200."""
    action: Literal["drop", "cut"] = "drop"
    """`drop`: the game is not kept. `cut`: it is kept from the position after its last blunder on,
    where that leaves `SHORTEST` plies and ends as the whole game does."""


def last_blunder(scores: Sequence[int | None], drop: int) -> int | None:
    """Ply of the last move that lost more than `drop`, None without one. `scores`: per ply,
    centipawns of the mover, None where it has none. The last move has no answer to judge it by."""
    for ply in range(len(scores) - 2, -1, -1):
        own, answer = scores[ply], scores[ply + 1]
        if own is not None and answer is not None and _clipped(own) + _clipped(answer) > drop:
            return ply
    return None


def filtered(rules: Rules, record: GameRecord, rule: BlunderRule) -> GameRecord | None:
    """The game as the rule leaves it; None where it is not kept."""
    ply = last_blunder(record.scores or (), rule.drop)
    if ply is None:
        return record
    return None if rule.action == "drop" else _after(rules, record, ply + 1)


def _after(rules: Rules, record: GameRecord, plies: int) -> GameRecord | None:
    """The game without its first `plies`; None where too little is left of it, or where its end
    needs what came before (a repetition)."""
    if record.plies - plies < SHORTEST:
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
        comments={ply - plies: text for ply, text in record.comments.items() if ply >= plies},
        tags={
            **record.tags,
            "RandomPlies": "0",
            OPENING_TAG: str(max(0, record.opening_plies - plies)),
            CUT_TAG: str(plies),
        },
    )


def _clipped(score: int) -> int:
    return max(-BOUND, min(BOUND, score))
