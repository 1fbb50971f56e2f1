"""Finished games of a match: journal entries, PGN with scores, depths and times, numbers of
tables."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from variant_ai.core.arena.match.match_settings import Pairing
from variant_ai.core.arena.match.referee import PlayedGame
from variant_ai.core.arena.players.player import ACCIDENTS
from variant_ai.core.arena.tables.crosstable import Standings, standings
from variant_ai.core.arena.tables.elo import Tally
from variant_ai.core.data.game_record import GameRecord, Result, points_of
from variant_ai.core.data.game_text import pgn_text
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import Notation
from variant_ai.core.search.report import moves_to_mate


@dataclass
class GameEntry:
    """A finished game of a match. Lists have an entry for each ply, None in the opening."""

    number: int
    """Number of its pairing."""
    round: int
    first: str
    """Name of the player who moves first in the variant."""
    second: str
    opening: int
    start_fen: str | None
    moves: list[str]
    """UCI."""
    opening_plies: int
    result: Result
    reason: str
    detail: str = ""
    date: str = ""
    """`2026.11.22`."""
    scores: list[int | None] = field(default_factory=list)
    depths: list[int | None] = field(default_factory=list)
    nodes: list[int | None] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)
    """Milliseconds."""

    @property
    def repetition_key(self) -> tuple[object, ...]:
        """Key of players and moves, equal for games that repeat each other. A game that ended by an
        accident repeats none."""
        key = (self.first, self.second, self.start_fen, *self.moves)
        return (*key, self.number) if self.reason in ACCIDENTS else key

    @property
    def points(self) -> float:
        """Points of the first player."""
        return points_of(self.result)

    @property
    def tally(self) -> Tally:
        """The game from the first player's point of view."""
        return Tally(self.points == 1, self.points == 0.5, self.points == 0)


def game_pgn(
    rules: Rules, notation: Notation, entry: GameEntry, *, event: str, time_control: str
) -> str:
    """Write a game as PGN, with `{+0.49/28 118s}` after each move: the mover's own score in pawns
    or moves to mate (`+M4`), depth, time."""
    game = Game.from_uci(rules, entry.start_fen, entry.moves)
    record = GameRecord(
        variant=rules.spec.variant,
        moves=list(game.moves),
        start_fen=entry.start_fen,
        result=entry.result,
        white=entry.first,
        black=entry.second,
        date=entry.date,
        event=event,
        round=f"{entry.round + 1}.{entry.number + 1}",
        time_control=time_control,
        termination=entry.reason,
        comments={ply: remark for ply in range(game.ply) if (remark := move_remark(entry, ply))},
    )
    record.tags = {"PlyCount": str(game.ply), "OpeningPlies": str(entry.opening_plies)}
    if entry.detail:
        record.tags["TerminationDetails"] = entry.detail
    return pgn_text(rules, notation, record)


def move_remark(entry: GameEntry, ply: int) -> str:
    """Comment on a move: `book` in the opening, else score, depth and time."""
    milliseconds = entry.times[ply]
    if milliseconds is None:
        return "book" if ply < entry.opening_plies else ""
    time = f"{milliseconds / 1000:.2f}s" if milliseconds < 99_995 else f"{milliseconds // 1000}s"
    score = entry.scores[ply]
    if score is None:
        return time
    mate = moves_to_mate(score)
    if mate is None:
        text = f"{score / 100:+.2f}"
    else:  # in plies, as cutechess writes it
        text = f"+M{2 * mate - 1}" if mate > 0 else f"-M{-2 * mate}"
    return f"{text}/{entry.depths[ply] or 0} {time}"


def entry_of(pairing: Pairing, names: Sequence[str], played: PlayedGame) -> GameEntry:
    """Journal entry of a game that was played. names: of all players."""
    game = played.game
    return GameEntry(
        number=pairing.number,
        round=pairing.round,
        first=names[pairing.first],
        second=names[pairing.second],
        opening=pairing.opening,
        start_fen=game.start_fen,
        moves=game.uci_moves(),
        opening_plies=played.opening_plies,
        result=played.result,
        reason=played.reason,
        detail=played.detail,
        date=datetime.date.today().strftime("%Y.%m.%d"),
        scores=played.scores,
        depths=played.by_ply(lambda reply: reply.depth),
        nodes=played.by_ply(lambda reply: reply.nodes),
        times=played.by_ply(lambda reply: round(1000 * reply.seconds)),
    )


def match_standings(
    names: Sequence[str], entries: Iterable[GameEntry], title: str = ""
) -> Standings:
    """Table of the games, with nodes per second and the mean length of wins and losses."""
    index = {name: i for i, name in enumerate(names)}
    results = [[Tally()] * len(names) for _ in names]
    numbers = {name: _Numbers() for name in names}
    for entry in entries:
        i, j = index[entry.first], index[entry.second]
        results[i][j] += entry.tally
        for side, name in enumerate((entry.first, entry.second)):
            numbers[name].add(entry, side)
    return standings(
        names, results, title=title, extra={name: n.columns() for name, n in numbers.items()}
    )


def tally_of(entries: Iterable[GameEntry], name: str) -> Tally:
    """Results of a player's games, from its point of view."""
    total = Tally()
    for entry in entries:
        if name in (entry.first, entry.second):
            total += entry.tally if name == entry.first else entry.tally.turned
    return total


def first_ply(entry: GameEntry, side: int) -> int:
    """Index of a side's first ply, which depends on the side to move in the opening."""
    second_begins = entry.start_fen is not None and entry.start_fen.split()[1] != "w"
    return (side + second_begins) % 2


class _Numbers:
    """Sums over one player's games."""

    def __init__(self) -> None:
        self.nodes = self.milliseconds = 0
        self.won: list[int] = []
        self.lost: list[int] = []

    def add(self, entry: GameEntry, side: int) -> None:
        first = first_ply(entry, side)
        for nodes, time in zip(entry.nodes[first::2], entry.times[first::2], strict=True):
            if nodes and time is not None:
                self.nodes += nodes
                self.milliseconds += time
        points = entry.points if side == 0 else 1 - entry.points
        if points != 0.5:
            (self.won if points else self.lost).append(len(entry.moves))

    def columns(self) -> dict[str, str]:
        rate = f"{1000 * self.nodes / self.milliseconds:,.0f}" if self.milliseconds else ""
        return {"NPS": rate, "plies won": _mean(self.won), "plies lost": _mean(self.lost)}


def _mean(plies: Sequence[int]) -> str:
    return f"{fmean(plies):.1f}" if plies else ""
