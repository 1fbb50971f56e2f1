"""A match being played: workers, a journal of finished games, and when to stop.

    folder/match.json     the settings that decide the games, and the players' names
           games.jsonl    finished games; the truth (`journal.py`)
           games.pgn      the same as PGN
           table.*        text, CSV and HTML, when the match stops

Every worker is a thread with players of its own, so games at the same time share nothing. Games
are numbered before they are played: a match that was broken off plays what is missing.
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, get_args

from variant_ai.core.arena.games.openings import Opening, played_out
from variant_ai.core.arena.match.journal import GameEntry, Journal
from variant_ai.core.arena.match.match_record import entry_of, first_ply, game_pgn, match_standings
from variant_ai.core.arena.match.match_settings import MatchSettings
from variant_ai.core.arena.match.pairings import Pairing, opening_order, pairings
from variant_ai.core.arena.match.referee import Referee
from variant_ai.core.arena.match.time_control import Allowance
from variant_ai.core.arena.players.player import ACCIDENTS, Player, Reason
from variant_ai.core.arena.programs.engine_process import EngineDiedError, EngineHungError
from variant_ai.core.arena.tables.crosstable import Standings, csv_text, text
from variant_ai.core.arena.tables.crosstable_html import html
from variant_ai.core.arena.tables.sprt import SprtStatus, pair_counts
from variant_ai.core.errors import DataError, EngineError, SettingError
from variant_ai.core.rules.game import load_judge
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import Notation
from variant_ai.core.system.files import naming, write_whole

SETTINGS, JOURNAL, PGN = "match.json", "games.jsonl", "games.pgn"
MOST_NO_SHOWS = 2
"""Games lost without a move, in one run of a match, after which it stops."""
_FAULTS = set(get_args(Reason)) - {"resignation"}

MakePlayer = Callable[[int], Player]
"""Makes a player, not yet started, by its index in the settings."""


@dataclass
class MatchState:
    """How a match stands."""

    names: tuple[str, ...]
    entries: list[GameEntry] = field(default_factory=list)
    """In the order in which games ended."""
    wanted: int = 0
    """Games of the whole match."""
    sprt: SprtStatus | None = None
    stopped: bool = False
    """Whether games are missing: told to stop, not by the test."""

    @property
    def endings(self) -> str:
        """How games ended and how many, most first: `checkmate 12, repetition 3`."""
        counted = Counter(entry.reason for entry in self.entries).most_common()
        return ", ".join(f"{reason} {count}" for reason, count in counted)

    @property
    def repeated(self) -> int:
        """Games that are another one move for move: no evidence of anything."""
        return len(self.entries) - len({entry.course for entry in self.entries})

    @property
    def warning(self) -> str:
        """What is to be said of repeated games; empty where there is none."""
        if not self.repeated:
            return ""
        return (
            f"{self.repeated} of {len(self.entries)} games repeat another move for move, and the "
            "error margins take them for evidence. Give more openings (`--openings`), or let the "
            "players sample some moves at random (`search.temperature`)."
        )

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
        self._stopped = threading.Event()
        self._local = threading.local()
        self._alive: list[Player] = []
        self._last_lines: dict[int, tuple[str, ...]] = {}
        """Last lines of players in the game that they lost, by its number."""
        self._lock = threading.RLock()  # a signal may stop the match while the lock is held

    def stop(self) -> None:
        """End soon: games under way are lost."""
        self._stopped.set()
        with self._lock:
            players = list(self._alive)
        for player in players:
            player.kill()

    def run(self, on_game: Callable[[MatchState, GameEntry], None]) -> MatchState:
        """Play what is missing. `on_game` is called in this thread after every game.

        Raises EngineError where a player cannot play these games, or lost two without a move (one
        that cannot be started loses its games), SettingError or DataError where the folder holds
        another match.
        """
        names, nets = self._check_players()
        self._names = names
        load_judge(self.rules)  # on nobody's clock
        with settled_collector():
            return self._run(names, nets, on_game)

    def _run(
        self,
        names: tuple[str, ...],
        nets: Sequence[str],
        on_game: Callable[[MatchState, GameEntry], None],
    ) -> MatchState:
        self.folder.mkdir(parents=True, exist_ok=True)
        with Journal(self.folder / JOURNAL) as journal:
            self._check_folder(names, nets, journal)
            state = MatchState(names, self._entries(journal))
            schedule = self._schedule()
            state.wanted = len(schedule)
            state.sprt = self._sprt(state, schedule)
            self._write_pgn(state.entries)
            labels = [player.command or player.label for player in self.settings.players]
            no_shows = NoShows(dict(zip(names, labels, strict=True)))
            path = self.folder / PGN
            with naming(path), path.open("ab") as pgn:
                for entry in self._played(state, schedule):
                    journal.append(asdict(entry))
                    state.entries.append(entry)
                    pgn.write(self._pgn(entry).encode())
                    pgn.flush()
                    os.fsync(pgn.fileno())
                    state.sprt = self._sprt(state, schedule)
                    on_game(state, entry)
                    if not self.settings.stop_at_no_shows:
                        continue
                    try:
                        no_shows.add(entry, self._last_lines.pop(entry.number, ()))
                    except EngineError:
                        self.write_tables(state)
                        raise
            decided = state.sprt is not None and state.sprt.verdict is not None
            state.stopped = len(state.entries) < state.wanted and not decided
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
        """Raises DataError naming a line that is no game."""
        entries = []
        for number, line in enumerate(journal.lines, start=1):
            try:
                entries.append(GameEntry(**line))
            except TypeError as error:
                raise DataError(f"{self.folder / JOURNAL}:{number}: no game: {error}") from error
        return entries

    # --- before the first game -----------------------------------------------------------------

    def _check_players(self) -> tuple[tuple[str, ...], list[str]]:
        """Start every player once; their names, each once, and the digests of their files. A
        program that dies or hangs at this has the name that it was given, and loses its games."""
        names: list[str] = []
        digests: list[str] = []
        for index, spec in enumerate(self.settings.players):
            player = self._make_player(index)
            refused = player.refuse(self.allowances[index])
            if refused:
                raise SettingError(f"player {spec.label!r}: {refused}")
            try:
                with contextlib.suppress(EngineDiedError, EngineHungError):
                    player.start()
                name = spec.name or player.name or spec.label
            finally:
                player.close()
            names.append(name)
            digests.append(player.digest)
        return _distinct(names), digests

    def _time_control(self, entry: GameEntry) -> str:
        """Of both players, `?` where they have clocks of their own."""
        first, second = (
            self.allowances[self._names.index(name)].pgn for name in (entry.first, entry.second)
        )
        return first if first == second else "?"

    def _check_folder(self, names: tuple[str, ...], nets: Sequence[str], journal: Journal) -> None:
        """Take up the match that is in the folder, or begin one."""
        said: dict[str, Any] = {
            "settings": self.settings.decisive(),
            "names": list(names),
            "nets": list(nets),
            "openings": len(self.openings),
            "openings_digest": blake2b(repr(self.openings).encode(), digest_size=8).hexdigest(),
        }
        path = self.folder / SETTINGS
        if not path.exists():
            if journal.lines:
                raise DataError(f"{self.folder}: there are games, but no {SETTINGS}")
            write_whole(path, json.dumps(said, indent=2, ensure_ascii=False))
            return
        try:
            before = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise DataError(f"{path}: {error}") from error
        before.setdefault("nets", said["nets"])  # not told by the first version
        if before != said:
            raise SettingError(
                f"{self.folder} holds another match ({_difference(before, said)}); give another "
                "folder, or the settings it was begun with"
            )

    def _schedule(self) -> list[Pairing]:
        settings = self.settings
        order = opening_order(len(self.openings), settings.openings.order, settings.seed)
        return list(pairings(settings.meetings(), settings.games, order))

    def _write_pgn(self, entries: Sequence[GameEntry]) -> None:
        """PGN anew out of the journal: a kill may have come between the two."""
        path = self.folder / PGN
        partial = path.with_suffix(".partial")
        with naming(path), partial.open("wb") as file:
            for entry in entries:
                file.write(self._pgn(entry).encode())
        os.replace(partial, path)

    def _pgn(self, entry: GameEntry) -> str:
        return game_pgn(
            self.rules,
            self.notation,
            entry,
            event=self.settings.title or "match",
            time_control=self._time_control(entry),
        )

    # --- playing -------------------------------------------------------------------------------

    def _played(self, state: MatchState, schedule: Sequence[Pairing]) -> Iterator[GameEntry]:
        """Games as they end, until the schedule is done, the test is decided, or `stop`."""
        done = {entry.number for entry in state.entries}
        missing = (pairing for pairing in schedule if pairing.number not in done)
        under_way: set[Future[GameEntry | None]] = set()
        pool = ThreadPoolExecutor(self.settings.concurrency, thread_name_prefix="game")
        try:
            while not self._stopped.is_set():
                decided = state.sprt is not None and state.sprt.verdict is not None
                if decided:
                    break
                while len(under_way) < self.settings.concurrency:
                    pairing = next(missing, None)
                    if pairing is None:
                        break
                    under_way.add(pool.submit(self._play, pairing, state.names))
                if not under_way:
                    break
                # With a timeout the main thread still hears Ctrl-C on every system.
                ended, under_way = wait(under_way, timeout=0.2, return_when=FIRST_COMPLETED)
                # What failed comes last: games that ended beside it are not to be lost.
                for future in sorted(ended, key=lambda one: one.exception() is not None):
                    entry = future.result()
                    if entry is not None:
                        yield entry
        finally:
            self.stop()
            pool.shutdown(cancel_futures=True)
            for player in self._alive:
                player.close()
            self._alive.clear()

    def _play(self, pairing: Pairing, names: tuple[str, ...]) -> GameEntry | None:
        """One game; None where the match was stopped before its end."""
        if self._stopped.is_set():
            return None
        players = self._players(pairing.first, pairing.second)
        game = played_out(self.rules, self.openings[pairing.opening])
        referee = Referee(self.settings.conduct(), self._stopped.is_set)
        allowances: tuple[Allowance, Allowance] = (
            self.allowances[pairing.first],
            self.allowances[pairing.second],
        )
        try:
            played = referee.play(game, players, allowances, pairing.number)
        except EngineError:
            if self._stopped.is_set():
                return None
            raise
        stopped = self._stopped.is_set()  # whoever stopped the match may have ended the engine too
        if played.reason == "stopped" or (stopped and played.reason in ACCIDENTS):
            return None
        loser = {"1-0": players[1], "0-1": players[0]}.get(played.result)
        if loser is not None and loser.last_lines:
            self._last_lines[pairing.number] = loser.last_lines
        return entry_of(
            pairing.number,
            pairing.round,
            (names[pairing.first], names[pairing.second]),
            pairing.opening,
            played,
            datetime.date.today().strftime("%Y.%m.%d"),
        )

    def _players(self, first: int, second: int) -> tuple[Player, Player]:
        """This thread's players, started when first needed; those not of this game are closed."""
        own: dict[int, Player] | None = getattr(self._local, "players", None)
        if own is None:
            own = self._local.players = {}
        for index in [index for index in own if index not in (first, second)]:
            player = own.pop(index)
            with self._lock, contextlib.suppress(ValueError):
                self._alive.remove(player)
            player.close()
        for index in (first, second):
            if index not in own:
                player = self._make_player(index)
                with self._lock:
                    self._alive.append(player)
                own[index] = player
        return own[first], own[second]

    # --- the test ------------------------------------------------------------------------------

    def _sprt(self, state: MatchState, schedule: Sequence[Pairing]) -> SprtStatus | None:
        """The test over the pairs played without a gap, in the order of the schedule: games that
        end early are over represented among the rest. A pair that repeats another counts once."""
        test = self.settings.test()
        if test is None:
            return None
        entries = {entry.number: entry for entry in state.entries}
        points = {
            number: entry.points if entry.first == state.names[0] else 1 - entry.points
            for number, entry in entries.items()
        }
        pairs = []
        seen: set[object] = set()
        for pairing in schedule[::2]:
            one, other = pairing.number, pairing.number + 1
            if one not in points or other not in points:
                break
            courses = (entries[one].course, entries[other].course)
            if courses not in seen:
                pairs.append(points[one] + points[other])
            seen.add(courses)
        return test.status(pair_counts(pairs))


@contextlib.contextmanager
def settled_collector() -> Iterator[None]:
    """What exists by now stays, and the garbage collector need not look at it again: with the
    libraries of a net in this process that takes a tenth of a second, in the middle of a move."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Which settings differ, in words."""
    old, new = before.get("settings", {}), now["settings"]
    keys = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    if keys:
        return "settings that differ: " + ", ".join(keys)
    if before.get("names") != now["names"]:
        return f"its players were {', '.join(before.get('names', []))}"
    nets = zip(now["names"], before["nets"], now["nets"], strict=True)
    changed = [name for name, then, here in nets if then != here]
    return f"the net of {', '.join(changed)} was another" if changed else "its openings were others"


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names that occur once as they are, the others with numbers that no other name has."""
    told: list[str] = []
    for name in names:
        number = 1
        own = name if names.count(name) == 1 else f"{name} (1)"
        while own in told or (own != name and own in names):
            number += 1
            own = f"{name} ({number})"
        told.append(own)
    return tuple(told)


class NoShows:
    """Players that lose game after game without a single move: a program that was set up wrong.

    One that dies, hangs or answers nonsense before its first move loses that game as everybody would.
    After the second game the match stops, before it fills a table with losses that say nothing.
    """

    def __init__(self, labels: dict[str, str]) -> None:
        """labels: by the name of a player, how it was given (its command)."""
        self._labels = labels
        self._lost: dict[str, list[GameEntry]] = {name: [] for name in labels}

    def add(self, entry: GameEntry, last_lines: Sequence[str] = ()) -> None:
        """Take a game that has ended. `last_lines`: the last lines that the loser wrote.

        Raises EngineError if its loser has lost `MOST_NO_SHOWS` games without having made a move in any.
        """
        for side, name in enumerate((entry.first, entry.second)):
            own = entry.times[first_ply(entry, side) :: 2]
            if any(time is not None for time in own):
                self._lost.pop(name, None)  # it has shown that it can play
            elif entry.reason in _FAULTS and entry.points == side and name in self._lost:
                self._lost[name].append(entry)
                if len(self._lost[name]) == MOST_NO_SHOWS:
                    raise EngineError(self._complaint(name, last_lines))

    def _complaint(self, name: str, last_lines: Sequence[str]) -> str:
        entry = self._lost[name][-1]
        wrote = "".join(f"\n    {line}" for line in last_lines)
        return (
            f"{name} lost its first {MOST_NO_SHOWS} games without a move ({entry.reason}: {entry.detail}). "
            "The match is stopped: it may speak another protocol (uci:, ucci:, xboard:) or need an "
            f"argument to speak it, such as -uci. Its command: {self._labels[name]}\n"
            + (f"The last lines that it wrote:{wrote}" if wrote else "It wrote nothing.")
        )
