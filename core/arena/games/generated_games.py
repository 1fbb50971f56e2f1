"""Generated games after their ends: filters for blunders and repeated games, a journal, and the store.

The first line of the journal, which lies beside the store, holds the settings; it is only continued
with the same ones. Every finished or filtered game is a line, written when it has ended, in any order
of numbers, so a kill loses only the games in progress. Games that the player failed in are not
written: the next run plays them again. When the run ends, the games are put into the store in the
order of their numbers, without those that repeat earlier ones or that are in the store already, and
the journal is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from variant_ai.core.arena.games.openings import Opening, played_out
from variant_ai.core.arena.match.journal import Journal
from variant_ai.core.arena.players.player import RULE_FAULTS
from variant_ai.core.data.game_record import OPENING_TAG, GameRecord
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.store_writer import Mode, StoreWriter
from variant_ai.core.errors import DataError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.closing import Closing

FIELDS = ("moves", "start_fen", "result", "white", "black", "event", "termination", "source")
BLUNDER, DUPLICATE, STOPPED = "blunder", "duplicate", "stopped"
"""Reasons to drop a game without a failure of the player."""
CUT_TAG = "CutPlies"
"""Header with the number of first plies that were cut off a game."""
BLUNDER_BOUND = 1000
"""Scores are limited to ± this many centipawns to find blunders."""
SHORTEST_CUT = 10
"""Minimum length in plies of a game of which the beginning was cut off."""


@dataclass(frozen=True)
class Dropped:
    """A game that was not finished or is not kept."""

    number: int
    """Counted from 0."""
    reason: str
    fault: str = ""
    """Kind of the player's fault, one of `player.FAULTS`, if the game ended by one."""


Ended = GameRecord | Dropped


def is_settled(game: Ended) -> bool:
    """Return True if a game need not be played again. It must be after a failure of the player,
    which may have been repaired, or after a search that was stopped."""
    return not isinstance(game, Dropped) or game.reason in (BLUNDER, DUPLICATE)


def game_number(game: Ended) -> int:
    """Number of a game, from 0."""
    return game.number if isinstance(game, Dropped) else game.number - 1


class RepetitionFilter:
    """Drops games that repeat an earlier one; called with games in the order of their numbers."""

    def __init__(self) -> None:
        self._played: set[bytes] = set()

    def __call__(self, game: Ended) -> Ended:
        if isinstance(game, Dropped):
            return game
        text = repr((game.start_fen, game.moves)).encode()
        key = hashlib.blake2b(text, digest_size=12).digest()
        if key in self._played:
            return Dropped(game_number(game), DUPLICATE)
        self._played.add(key)
        return game


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


@dataclass
class GenerationReport:
    """Counts of a run."""

    games: int = 0
    plies: int = 0
    results: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    """By reason."""
    cut: int = 0
    """Games without the plies before a blunder."""
    rule_faults: int = 0
    """Dropped games in which the player broke the rules."""
    failure: str = ""
    """Why generation ended before all games were finished."""
    interrupted: bool = False

    def count(self, game: Ended) -> None:
        if isinstance(game, Dropped):
            self.dropped[game.reason] += 1
            self.rule_faults += game.fault in RULE_FAULTS
            return
        self.games += 1
        self.plies += game.plies
        self.results[game.result] += 1
        self.endings[game.termination] += 1
        self.cut += CUT_TAG in game.tags


def journal_path(store: Path) -> Path:
    return store.with_name(store.name + ".journal")


class _GamesOnDisk(Mapping[int, Ended]):
    """Games by their numbers, each read when it is asked for."""

    def __init__(self, offsets: Mapping[int, int], read: Callable[[int], Ended]) -> None:
        self._offsets = offsets
        self._read = read

    def __getitem__(self, number: int) -> Ended:
        return self._read(self._offsets[number])

    def __contains__(self, number: object) -> bool:
        return number in self._offsets

    def __iter__(self) -> Iterator[int]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)


class GeneratedGames(Closing):
    """Journal of one store; a context manager, used by one process at a time."""

    def __init__(self, store: Path, variant: str, settings: dict[str, Any]) -> None:
        """Begin, or resume an earlier run with the same settings. Raises DataError if the journal
        has other settings, or is in use."""
        self.path = journal_path(store)
        self.variant = variant
        self._journal = Journal(self.path)
        self._offsets: dict[int, int] = {}
        """Places of games in the journal by their numbers; games are not kept in memory."""
        self.has_games = False
        """True if there is a game that was not dropped."""
        try:
            self._begin(settings)
        except BaseException:
            self._journal.close()
            raise
        self.resumed = len(self._offsets)

    def _begin(self, settings: dict[str, Any]) -> None:
        if self._journal.is_empty:
            try:
                self._journal.append({"settings": settings})
            except DataError:  # for example a full disk
                self._journal.close()
                self.path.unlink(missing_ok=True)
                raise
        for line in self._journal.lines():
            if line.number == 1 and line.content.get("settings") != settings:
                raise DataError(
                    f"{self.path} holds games that another command began for this store; run that one "
                    "again to continue, or remove the file to start again"
                )
            if _is_settled(line.content):
                self._offsets[int(line.content["number"])] = line.offset
                self.has_games |= "dropped" not in line.content

    @property
    def done(self) -> Mapping[int, Ended]:
        """The games that have ended so far, by their numbers from 0."""
        return _GamesOnDisk(dict(self._offsets), self._read)

    def close(self) -> None:
        self._journal.close()

    def add(self, game: Ended) -> None:
        """Write a game, unless it is to be played again; it is on disk when this returns. Raises
        DataError, for example on a full disk."""
        if not is_settled(game):
            return
        line: dict[str, Any] = {"number": game_number(game)}
        if isinstance(game, Dropped):
            line["dropped"] = game.reason
        else:
            line |= {name: getattr(game, name) for name in FIELDS}
            line |= {"scores": game.scores, "tags": game.tags, "comments": game.comments}
            if game.visits is not None:
                line["visits"] = game.visits
            if game.root_values is not None:
                line["root_values"] = game.root_values
            self.has_games = True
        self._offsets[line["number"]] = self._journal.append(line)

    def games(self) -> Iterator[Ended]:
        """Games so far, in the order of numbers."""
        done = self.done
        for number in sorted(done):
            yield done[number]

    def _read(self, offset: int) -> Ended:
        line = self._journal.read(offset)
        if "dropped" in line:
            return Dropped(line["number"], line["dropped"])
        record = GameRecord(self.variant, **{name: line[name] for name in FIELDS})
        record.number = line["number"] + 1
        record.scores, record.tags = line["scores"], line["tags"]
        if "visits" in line:
            record.visits = [tuple((m, n) for m, n in pairs) for pairs in line["visits"]]
        record.root_values = line.get("root_values")
        record.comments = {int(ply): text for ply, text in line["comments"].items()}
        return record

    def kept(self, most: int) -> Iterator[Ended]:
        """The same, with repeated games as dropped ones, up to the `most`th game that is kept.

        There may be more: a later run plays a game that the player failed in, after others were
        played in its place.
        """
        for game in map(RepetitionFilter(), self.games()):
            if most == 0:
                return
            yield game
            most -= isinstance(game, GameRecord)

    def write(
        self,
        store: Path,
        spec: VariantSpec,
        report: GenerationReport,
        *,
        games: int,
        mode: Mode,
        sources: list[str],
    ) -> None:
        """Put up to `games` games into the store and count them; without a finished game, no store
        is written. When appending, games that the store has already are dropped."""
        if not self.has_games:
            for game in self.games():
                report.count(game)
            return
        append = mode == "append"
        with StoreWriter(store, spec, mode=mode, sources=sources, drop_duplicates=append) as writer:
            for game in self.kept(games):
                is_new = isinstance(game, Dropped) or writer.add(game)
                report.count(game if is_new else Dropped(game_number(game), DUPLICATE))
            writer.close(dropped=report.dropped)

    def remove(self) -> None:
        """Delete the journal, when its games are in the store."""
        self._journal.close()
        with contextlib.suppress(OSError):
            self.path.unlink()


def require_own_store(store: Path, spec: VariantSpec, sources: list[str]) -> None:
    """Raises DataError if a store holds other games than those an interrupted run of the same
    command put there, since it is going to be replaced."""
    if store.exists():
        runs = Store(store, spec).info.runs
        if [list(run.sources) for run in runs] != [sources]:
            raise DataError(
                f"{store} holds games of another command, which would be replaced; give "
                "another --output, or move it away and run the same command again"
            )


def _is_settled(line: dict[str, Any]) -> bool:
    """Return True if a line holds a game that need not be played again."""
    if "number" not in line:
        return False
    return "dropped" not in line or is_settled(Dropped(line["number"], line["dropped"]))
