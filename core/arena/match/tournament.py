"""A match in a folder, which can be interrupted and resumed.

    folder/match.json     settings that decide the games, and the players' names
           games.jsonl    finished games (`journal.py`); the other files are made from it
           games.pgn      the same as PGN
           table.*        text, CSV and HTML, written when the match stops

Games are numbered before they are played, so a match that was interrupted plays the missing ones.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from variant_ai.core.arena.games.openings import Opening, openings_digest, played_out
from variant_ai.core.arena.match.journal import Journal
from variant_ai.core.arena.match.match_record import (
    GameEntry,
    entry_of,
    first_ply,
    game_pgn,
    match_standings,
    tally_of,
)
from variant_ai.core.arena.match.match_settings import (
    MatchSettings,
    Pairing,
    opening_order,
    pairings,
)
from variant_ai.core.arena.match.player_pool import PlayerPool
from variant_ai.core.arena.match.referee import Referee
from variant_ai.core.arena.players.player import ACCIDENTS, FAULTS, RULE_FAULTS, Player
from variant_ai.core.arena.players.player_spec import (
    advice_on_rules,
    program_variant,
)
from variant_ai.core.arena.programs.engine_process import EngineDiedError, EngineHungError
from variant_ai.core.arena.tables.crosstable import Standings, csv_text, html, text
from variant_ai.core.arena.tables.sprt import SprtStatus, pair_counts
from variant_ai.core.errors import DataError, EngineError, SettingError
from variant_ai.core.factories import PROGRAM_PROTOCOLS
from variant_ai.core.rules.chase_judge import load_judge
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import Notation
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.files import first_settings, naming, whole
from variant_ai.core.system.text_tables import counted

SETTINGS, JOURNAL, PGN = "match.json", "games.jsonl", "games.pgn"
MOST_NO_SHOWS = 2
"""Games that one player loses without a move, in one run of a match, after which the match
stops."""

TIME_FORFEIT = "time forfeit"
LATE_SHARE = 0.1
"""Share of games lost on time above which there is a warning."""

MakePlayer = Callable[[int], Player]
"""Makes a player by its index in the settings, not yet started."""


@dataclass
class MatchState:
    """Progress of a match."""

    names: tuple[str, ...]
    entries: list[GameEntry] = field(default_factory=list)
    """In the order in which games ended."""
    scheduled: int = 0
    """Games of the whole match."""
    sprt: SprtStatus | None = None
    stopped: bool = False
    """True if games are missing and the test did not end the match."""
    spec: VariantSpec | None = None
    """The variant that is played."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """The name by which each program was asked to play it."""

    @property
    def is_decided(self) -> bool:
        """True if the sequential test has a result."""
        return self.sprt is not None and self.sprt.verdict is not None

    @property
    def endings(self) -> str:
        """Ends of games with their counts, most frequent first: `checkmate 12, repetition 3`."""
        counted = Counter(entry.reason for entry in self.entries).most_common()
        return ", ".join(f"{reason} {count}" for reason, count in counted)

    @property
    def repeated(self) -> int:
        """Number of games that repeat another one move for move, and so are no evidence."""
        return len(self.entries) - len({entry.repetition_key for entry in self.entries})

    @property
    def warning(self) -> str:
        """Reasons to doubt the table: repeated games, time forfeits, broken rules; empty if there are
        none."""
        found = []
        games = counted(len(self.entries), "game")
        if self.repeated:
            found.append(
                f"{self.repeated} of {games} repeat another move for move, but the "
                "error margins count them as evidence. Give more openings (`--openings`), or let the "
                "players sample some moves at random (`search.temperature`)."
            )
        late = sum(entry.reason == TIME_FORFEIT for entry in self.entries)
        if late > LATE_SHARE * len(self.entries):
            found.append(
                f"{late} of {games} ended by a time forfeit. If the machine is busy, play fewer games at the "
                "same time (`--concurrency`), or tolerate more (`--margin`)."
            )
        return "\n".join([*found, *self._broken_rules()])

    def _broken_rules(self) -> Iterator[str]:
        """A sentence for each program whose rules may differ from those of the spec."""
        broken = Counter(_at_fault(one) for one in self.entries if one.reason in RULE_FAULTS)
        for name, games in broken.items():
            if self.spec is not None and name in self.asked:
                yield advice_on_rules(name, self.asked[name], self.spec, games)

    def table(self, title: str = "") -> Standings:
        return match_standings(self.names, self.entries, title)


class Tournament:
    """One match in one folder. `run` once; `stop` from any thread."""

    def __init__(
        self,
        settings: MatchSettings,
        rules: Rules,
        make_player: MakePlayer,
        openings: Sequence[Opening],
        folder: Path,
        notation: Notation,
    ) -> None:
        self.settings = settings
        self.rules = rules
        self.openings = tuple(openings)
        self.folder = folder
        self.notation = notation
        self._make_player = make_player
        shared = settings.allowance()
        self.allowances = tuple(
            own if (own := player.allowance()).given else shared for player in settings.players
        )
        self._names: tuple[str, ...] = ()
        self._pool = PlayerPool(settings.concurrency, make_player)
        self._referee = Referee(settings.conduct(), self._pool.stopped)
        self._starting: Player | None = None
        """Player that is started before the first game; a hanging program would delay `stop`."""
        self._last_lines: dict[int, tuple[str, ...]] = {}
        """Last lines of players in the game that they lost, by its number."""

    def stop(self) -> None:
        """Stop soon; games in progress are discarded."""
        self._pool.stop()
        if self._starting is not None:
            self._starting.kill()

    def run(self, on_game: Callable[[MatchState, GameEntry], None]) -> MatchState:
        """Play the missing games. `on_game` is called in this thread after each.

        Raises EngineError if a player cannot play these games or lost two without a move (one that
        cannot be started loses its games), SettingError or DataError if the folder holds another
        match, KeyboardInterrupt after a `stop` before the first game.
        """
        self._names, nets = self._check_players()
        load_judge(self.rules)  # before any clock runs
        with frozen_collector():
            return self._run(nets, on_game)

    def _run(self, nets: list[str], on_game: Callable[[MatchState, GameEntry], None]) -> MatchState:
        self.folder.mkdir(parents=True, exist_ok=True)
        with Journal(self.folder / JOURNAL) as journal:
            self._check_folder(nets, journal)
            settings, spec = self.settings, self.rules.spec
            asked = {
                name: program_variant(player, spec)
                for name, player in zip(self._names, settings.players, strict=True)
                if player.command
            }
            state = MatchState(self._names, self._entries(journal), spec=spec, asked=asked)
            order = opening_order(len(self.openings), settings.openings.order, settings.seed)
            meetings = settings.meetings()
            state.scheduled = len(meetings) * settings.games
            schedule = pairings(meetings, settings.games, order)
            state.sprt = self._sprt(state)
            path = self.folder / PGN
            # all games again: a kill may have left the file incomplete
            with whole(path) as part, part.open("wb") as file:
                file.writelines(self._pgn(entry).encode() for entry in state.entries)
            earlier = len(state.entries)
            with naming(path), path.open("ab") as pgn:
                for entry in self._played(state, schedule):
                    journal.append(asdict(entry))
                    state.entries.append(entry)
                    pgn.write(self._pgn(entry).encode())
                    pgn.flush()
                    os.fsync(pgn.fileno())
                    state.sprt = self._sprt(state)
                    on_game(state, entry)
                    complaint = self._complaint(state.entries[earlier:])
                    if complaint and self.settings.stop_at_no_shows:
                        self.write_tables(state)
                        raise EngineError(complaint)
            state.stopped = len(state.entries) < state.scheduled and not state.is_decided
            self.write_tables(state)
        return state

    def write_tables(self, state: MatchState) -> None:
        table = state.table(self.settings.title)
        notes = list(self.settings.notes)
        if state.sprt is not None:
            notes.append(state.sprt.text)
        if state.warning:
            notes.append(state.warning)
        if state.entries:
            notes.append(f"Ends: {state.endings}.")
        ends = f"ends: {state.endings}\n" if state.entries else ""
        for suffix, content in (
            ("txt", text(table) + ends),
            ("csv", csv_text(table)),
            ("html", html(table, notes)),
        ):
            path = self.folder / f"table.{suffix}"
            with naming(path):
                path.write_text(content, "utf-8")

    def _entries(self, journal: Journal) -> list[GameEntry]:
        """Games of the journal. Raises DataError for a line that is no game."""
        entries = []
        for line in journal.lines():
            try:
                entries.append(GameEntry(**line.content))
            except TypeError as error:
                place = f"{self.folder / JOURNAL}:{line.number}"
                raise DataError(f"{place}: not a game: {error}") from error
        return entries

    # --- before the first game -----------------------------------------------------------------

    def _check_players(self) -> tuple[tuple[str, ...], list[str]]:
        """Start every player once. Return their names, made distinct, and the digests of their
        files. A program that dies or hangs here keeps the name of its settings, and loses its
        games."""
        names: list[str] = []
        digests: list[str] = []
        for index, spec in enumerate(self.settings.players):
            player = self._make_player(index)
            reason = player.rejection(self.allowances[index])
            if reason:
                raise SettingError(f"player {spec.label!r}: {reason}")
            self._starting = player
            try:
                with contextlib.suppress(EngineDiedError, EngineHungError):
                    player.start()
                name = spec.name or player.name or spec.label
            finally:
                self._starting = None
                player.close()
            if self._pool.stopped():  # its name may be unknown, and the folder would keep that
                raise KeyboardInterrupt
            names.append(name)
            digests.append(player.digest)
        return _distinct(names), digests

    def _check_folder(self, nets: list[str], journal: Journal) -> None:
        """Check that the folder holds this match, or write the settings of a new one."""
        now: dict[str, Any] = {
            "settings": self.settings.decisive(),
            "names": list(self._names),
            "nets": nets,
            "openings": len(self.openings),
            "openings_digest": openings_digest(self.openings),
        }
        path = self.folder / SETTINGS
        if not journal.is_empty and not path.exists():
            raise DataError(f"{self.folder}: there are games, but {SETTINGS} is missing")
        before = first_settings(path, now)
        before.setdefault("nets", now["nets"])  # missing in folders of the first version
        if before != now:
            raise SettingError(
                f"{self.folder} holds another match ({_difference(before, now)}); give another "
                "folder, or the settings it began with"
            )

    def _pgn(self, entry: GameEntry) -> str:
        first, second = (
            self.allowances[self._names.index(name)].pgn for name in (entry.first, entry.second)
        )
        return game_pgn(
            self.rules,
            self.notation,
            entry,
            event=self.settings.title or "match",
            time_control=first if first == second else "?",
        )

    # --- playing -------------------------------------------------------------------------------

    def _played(self, state: MatchState, schedule: Iterator[Pairing]) -> Iterator[GameEntry]:
        """Games as they end, until the schedule is done, the test is decided, or `stop`."""
        done = {entry.number for entry in state.entries}
        missing = (pairing for pairing in schedule if pairing.number not in done)
        games = self._pool.results(
            lambda: None if state.is_decided else next(missing, None), self._play
        )
        with contextlib.closing(games):
            for entry in games:
                if entry is not None:
                    yield entry
                    if state.is_decided:  # games that end at the same moment could undo that
                        return

    def _play(self, pairing: Pairing) -> GameEntry | None:
        """Play one game; return None if the match was stopped before its end."""
        if self._pool.stopped():
            return None
        first, second = self._pool.players((pairing.first, pairing.second))
        game = played_out(self.rules, self.openings[pairing.opening])
        allowances = (self.allowances[pairing.first], self.allowances[pairing.second])
        try:
            played = self._referee.play(game, (first, second), allowances, pairing.number)
        except EngineError:
            if self._pool.stopped():
                return None
            raise
        # What stopped the match may have ended the engine, too.
        if played.reason == "stopped" or (self._pool.stopped() and played.reason in ACCIDENTS):
            return None
        loser = {"1-0": second, "0-1": first}.get(played.result)
        if loser is not None and loser.last_lines:
            self._last_lines[pairing.number] = loser.last_lines
        return entry_of(pairing, self._names, played)

    def _complaint(self, games: Sequence[GameEntry]) -> str:
        """Message about a player that loses game after game without a move, such as a program with a
        wrong command; empty if there is none. games: of this run, the one that has just ended last.

        A player that dies, hangs or answers nonsense before its first move loses that game. After the
        second such game the match stops, before its table fills with meaningless losses.
        """
        entry = games[-1]
        name = _at_fault(entry)
        wrote = "".join(f"\n    {line}" for line in self._last_lines.pop(entry.number, ()))
        if not name:
            return ""
        own = [one for one in games if name in (one.first, one.second)]
        sides = [first_ply(one, int(name == one.second)) for one in own]
        can_play = any(set(one.times[ply::2]) - {None} for one, ply in zip(own, sides, strict=True))
        if can_play or [_at_fault(one) for one in own].count(name) != MOST_NO_SHOWS:
            return ""
        player = self.settings.players[self._names.index(name)]
        stopped = (
            f"{name} lost its first {MOST_NO_SHOWS} games without a move ({entry.reason}: {entry.detail}). "
            "The match was stopped"
        )
        if entry.reason == TIME_FORFEIT:
            return f"{stopped}: give it more time, or tolerate more (`--margin`)"
        if not player.command:
            return stopped
        protocols = ", ".join(f"{protocol}:" for protocol in PROGRAM_PROTOCOLS.names)
        return (
            f"{stopped}: the program may speak another protocol ({protocols}), or "
            f"need an argument such as -uci. Its command: {player.command}\n"
            + (f"Its last lines:{wrote}" if wrote else "It wrote nothing.")
        )

    # --- the test ------------------------------------------------------------------------------

    def _sprt(self, state: MatchState) -> SprtStatus | None:
        """Apply the test to the pairs of games up to the first missing one in the schedule, because
        short games are overrepresented among later ones. A pair that repeats another counts
        once."""
        test = self.settings.test()
        if test is None:
            return None
        entries = {entry.number: entry for entry in state.entries}
        pairs = []
        seen: set[object] = set()
        for number in range(0, state.scheduled, 2):
            if number not in entries or number + 1 not in entries:
                break
            pair = entries[number], entries[number + 1]
            keys = tuple(entry.repetition_key for entry in pair)
            if keys not in seen:
                pairs.append(tally_of(pair, state.names[0]).points)
            seen.add(keys)
        return test.status(pair_counts(pairs))


@contextlib.contextmanager
def frozen_collector() -> Iterator[None]:
    """Exclude present objects from garbage collection: with the libraries of a net, a collection
    takes a tenth of a second, in the middle of a move."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Describe which settings differ."""
    old, new = before.get("settings", {}), now["settings"]
    keys = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    if keys:
        return "settings that differ: " + ", ".join(keys)
    if before.get("names") != now["names"]:
        return f"its players were {', '.join(before.get('names', []))}"
    nets = zip(now["names"], before["nets"], now["nets"], strict=True)
    changed = [name for name, then, here in nets if then != here]
    return f"the net of {', '.join(changed)} differs" if changed else "its openings differ"


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Add numbers to names that occur more than once, so that all names differ."""
    found: list[str] = []
    for name in names:
        number = 1
        own = name if names.count(name) == 1 else f"{name} (1)"
        while own in found or (own != name and own in names):
            number += 1
            own = f"{name} ({number})"
        found.append(own)
    return tuple(found)


def _at_fault(entry: GameEntry) -> str:
    """Name of the player who lost a game by a fault; empty if nobody did."""
    if entry.reason not in FAULTS - {"resignation"}:
        return ""
    return entry.second if entry.points else entry.first
