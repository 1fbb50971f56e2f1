"""Matches: who plays whom, what is on disk when, how a match goes on, and when it stops."""

from __future__ import annotations

import concurrent.futures
import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from arena_players import ToyPlayer, WaitingPlayer, program

from variant_ai.core.arena.games.openings import (
    Opening,
    line_openings,
    played_out,
    sampled_from_store,
)
from variant_ai.core.arena.match import player_pool
from variant_ai.core.arena.match.journal import Journal
from variant_ai.core.arena.match.match_record import GameEntry, move_remark
from variant_ai.core.arena.match.match_settings import (
    MatchSettings,
    meetings,
    opening_order,
    pairings,
    settings_of,
)
from variant_ai.core.arena.match.tournament import MatchState, Tournament
from variant_ai.core.arena.players.player import Fault, Player, Reply, Turn
from variant_ai.core.arena.programs.engine_process import EngineDiedError
from variant_ai.core.arena.tables.sprt import SprtStatus
from variant_ai.core.data.game_record import MATE, GameRecord
from variant_ai.core.data.read.importer import Importer
from variant_ai.core.data.read.pgn import PgnReader
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.errors import DataError, EngineError, SettingError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.fairy import fairy_rules as fairy
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import SanNotation, core_notations
from variant_ai.core.spec import VariantSpec
from variant_ai.plugins import registry

FAKE = Path(__file__).with_name("fake_engine.py")


@pytest.fixture(scope="module")
def rules() -> Rules:
    return make_rules(registry().variant("crazyhouse"))


# --- pairings ------------------------------------------------------------------------------------


def test_everybody_plays_every_opening_with_both_colours() -> None:
    games = list(pairings(meetings(3, "round-robin"), 4, [7, 8, 9]))
    assert len(games) == 12
    assert [game.number for game in games] == list(range(12))
    assert {(g.first, g.second, g.opening) for g in games} == {
        (a, b, opening) for a in range(3) for b in range(3) if a != b for opening in (7, 8)
    }
    # a round is whole before the next begins
    assert [game.round for game in games] == [0] * 6 + [1] * 6


def test_a_longer_match_has_the_same_first_games() -> None:
    pairs = meetings(2, "round-robin")
    assert list(pairings(pairs, 9, [0, 1]))[:4] == list(pairings(pairs, 4, [0, 1]))
    assert len(list(pairings(pairs, 3, [0]))) == 3


def test_a_gauntlet() -> None:
    assert meetings(4, "gauntlet", 1) == [(0, 1), (0, 2), (0, 3)]
    assert meetings(4, "gauntlet", 2) == [(0, 2), (0, 3), (1, 2), (1, 3)]
    for players, seeds in ((4, 4), (4, 0), (1, 1)):
        with pytest.raises(SettingError):
            meetings(players, "gauntlet", seeds)


def test_single_encounters() -> None:
    assert meetings(3, "pairs", 1, [(2, 0), (1, 2)]) == [(2, 0), (1, 2)]
    said = {"players": ["a", "b", "c;name=C"], "kind": "pairs"}
    assert settings(**said, pairs=[["a", "b"], ["C", "b"]]).meetings() == [(0, 1), (2, 1)]
    for pairs, reason in (
        ([["a", "b"]], "player 3 is in no pair"),
        ([["a", "b"], ["b", "a"]], "meet once"),
        ([["a", "b"], ["C", "C"]], "not itself"),
        ([["a", "c"], ["b", "C"]], "did you mean 'C'"),
        ([], "go together"),
    ):
        with pytest.raises(SettingError, match=reason):
            settings(**said, pairs=pairs)


def test_openings_in_random_order() -> None:
    assert opening_order(5, "sequential", 1) == [0, 1, 2, 3, 4]
    mixed = opening_order(50, "random", 1)
    assert sorted(mixed) == list(range(50)) and mixed != list(range(50))
    assert mixed == opening_order(50, "random", 1) != opening_order(50, "random", 2)


# --- the journal ---------------------------------------------------------------------------------


def contents(journal: Journal) -> list[dict[str, Any]]:
    return [line.content for line in journal.lines()]


def test_a_journal_is_read_again_without_its_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append({"a": 1})
        journal.append({"b": "ö"})
        with pytest.raises(DataError, match="another process"):
            Journal(path)
    whole = path.read_bytes()
    for cut in range(len(whole.splitlines(keepends=True)[0]), len(whole)):
        path.write_bytes(whole[:cut])
        with Journal(path) as journal:
            assert contents(journal) == [{"a": 1}]
            journal.append({"c": 3})
        with Journal(path) as journal:
            assert contents(journal) == [{"a": 1}, {"c": 3}]
    path.write_bytes(b'{"a":1}\n')  # of a version that wrote no checksums
    with Journal(path) as journal:
        assert contents(journal) == [{"a": 1}]
    path.write_bytes(b"nonsense\n{}\n")
    with Journal(path) as journal, pytest.raises(DataError, match="j:1: not a line"):
        contents(journal)


def test_the_end_of_a_long_journal_is_found(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(b'{"a":1}\n' + b"x" * 200_000)
    with Journal(path) as journal:
        assert path.stat().st_size == 8
        offset = journal.append({"text": "y" * 100_000})
        assert journal.read(offset) == {"text": "y" * 100_000}
        assert [(line.number, line.offset) for line in journal.lines()] == [(1, 0), (2, 8)]
    path.write_bytes(b"x" * 200_000)
    with Journal(path) as journal:
        assert journal.is_empty and path.stat().st_size == 0


def test_a_changed_line_of_a_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append({"number": 0, "result": "1-0"})
        journal.append({"number": 1, "result": "0-1", "checksum": "of another kind"})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"1-0", b"0-1"))
    damaged = r"j:1: damaged or changed: .* checksum; delete the line"
    with Journal(path) as journal, pytest.raises(DataError, match=damaged):
        contents(journal)
    second = whole.split(b"\n")[1] + b"\n"
    for at in range(len(second) - 2):
        changed = bytearray(second)
        changed[at] ^= 1
        path.write_bytes(changed)
        try:
            with Journal(path) as journal:  # only what is not the checksum's own name is found
                assert contents(journal)[0]["result"] == "0-1"
        except DataError:
            pass


# --- remarks -------------------------------------------------------------------------------------


def test_remarks_of_moves() -> None:
    scores = [None, 49, None, -1250, 0, MATE - 4, 1 - MATE]
    entry = GameEntry(
        0, 0, "a", "b", 0, None, ["x"] * 7, 1, "*", "", scores=scores,
        depths=[None, 28, 3, 1, 1, 1, 1], nodes=[None, 1, 2, 1, 1, 1, 1],
        times=[None, 118_400, *[1_234] * 5],
    )  # fmt: skip
    assert [move_remark(entry, ply) for ply in range(7)] == [
        "book", "+0.49/28 118s", "1.23s", "-12.50/1 1.23s", "+0.00/1 1.23s", "+M7/1 1.23s",
        "-M2/1 1.23s",
    ]  # fmt: skip


# --- settings ------------------------------------------------------------------------------------


def settings(**said: Any) -> MatchSettings:
    base = {"variant": "crazyhouse", "players": ["a", "b"], "nodes": 1, "max_plies": 8}
    return settings_of({**base, **said}, "match")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"nodes": None}, "player a has no limit"),
        ({"players": ["a"]}, "a match needs two players, not 1"),
        ({"resign": "x"}, "MOVES:CENTIPAWNS"),
        ({"draw": "1:2"}, "FIRST_MOVE"),
        ({"sprt": [0, 5], "players": ["a", "b", "c"]}, "two players"),
        ({"sprt": [5, 5]}, "less than"),
        ({"clock": "1:2:3"}, "clock"),
        ({"think": float("inf")}, "think"),
        ({"game": 3}, "did you mean 'games'"),
        ({"openings": {"lins": []}}, "openings: unknown key 'lins'; did you mean 'lines'"),
        ({"players": ["a", {"command": "b", "dept": 3}]}, "player 2.*did you mean 'depth'"),
    ],
)
def test_settings_that_are_wrong(said: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        settings(**said)


# --- matches -------------------------------------------------------------------------------------


class Match:
    """A match of toy players in a folder."""

    def __init__(
        self,
        rules: Rules,
        folder: Path,
        players: list[Player],
        lines: tuple[Opening, ...] = (Opening(),),
        **said: Any,
    ) -> None:
        self.entries: list[GameEntry] = []
        self.tournament = Tournament(
            settings(players=[player.name for player in players], **said),
            rules,
            lambda index: players[index],
            lines,
            folder,
            SanNotation(),
        )
        self.stop_after = 0

    def run(self) -> MatchState:
        return self.tournament.run(self._on_game)

    def _on_game(self, state: MatchState, entry: GameEntry) -> None:
        self.entries.append(entry)
        if len(self.entries) == self.stop_after:
            self.tournament.stop()


def toys(*names: str) -> list[Player]:
    return [ToyPlayer(name, greatest=bool(i % 2)) for i, name in enumerate(names)]


def records(path: Path, rules: Rules) -> list[GameRecord]:
    found: list[GameRecord] = []

    class Sink:
        def add(self, record: GameRecord) -> None:
            found.append(record)

    Importer([PgnReader()], lambda: Resolver(rules, core_notations())).run([path], Sink())
    return found


def test_a_match_from_start_to_table(rules: Rules, tmp_path: Path) -> None:
    match = Match(rules, tmp_path / "m", toys("a", "b", "c"), games=2, title="Three")
    state = match.run()
    assert (len(state.entries), state.scheduled, state.stopped) == (6, 6, False)
    assert {path.name for path in (tmp_path / "m").iterdir()} == {
        "match.json", "games.jsonl", "games.pgn", "table.txt", "table.csv", "table.html",
    }  # fmt: skip
    assert (tmp_path / "m" / "table.txt").read_text().startswith("Three\n")
    games = records(tmp_path / "m" / "games.pgn", rules)
    assert [(g.white, g.black) for g in games] == [
        ("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b"),
    ]  # fmt: skip
    for game, entry in zip(games, match.entries, strict=True):
        assert game.plies == 8 and game.termination == "adjudicated: move limit"
        assert game.scores == [0] * 8
        assert Game.from_uci(rules, None, entry.moves).moves == game.moves
    assert state.table().lines[0].extra["NPS"] == "1,000"


def test_the_judge_of_chases_is_loaded_on_nobodys_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    players = toys("a", "b")
    games_before: list[int] = []

    class Watched(fairy.FairyRules):
        def __init__(self, spec: VariantSpec) -> None:
            games_before.append(sum(player.games for player in players))  # type: ignore[attr-defined]
            super().__init__(spec)

    monkeypatch.setattr(fairy, "FairyRules", Watched)
    rules = make_rules(registry().variant("xiangqi"))
    match = Match(rules, tmp_path / "m", players, games=2)
    match.run()
    assert games_before == [0]
    crazyhouse = make_rules(registry().variant("crazyhouse"))  # which knows no chases
    Match(crazyhouse, tmp_path / "other", players, games=2).run()
    assert games_before == [0]


def test_the_collector_leaves_alone_what_a_match_found(rules: Rules, tmp_path: Path) -> None:
    """A look at all the objects of torch and numba takes longer than a short move."""
    crowd = [[n] for n in range(10_000)]
    frozen = []

    class Watching(ToyPlayer):
        def play(self, game: Game, turn: Turn) -> Reply:
            frozen.append(gc.get_freeze_count())
            return super().play(game, turn)

    Match(rules, tmp_path / "m", [Watching("a"), *toys("b")], games=2).run()
    assert min(frozen) > len(crowd)
    assert gc.get_freeze_count() == 0


def test_a_player_that_cannot_start_takes_no_game_with_it(
    rules: Rules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Absent(ToyPlayer):
        def new_game(self, game: Game, number: int = 0) -> None:
            super().new_game(game, number)
            if number == 0:
                raise EngineError("there is no such program")

    match = Match(rules, tmp_path / "m", [Absent("a"), *toys("b")], games=12, concurrency=12)
    # all of them have ended when the first is looked at
    monkeypatch.setattr(player_pool, "wait", lambda futures, **_: concurrent.futures.wait(futures))
    with pytest.raises(EngineError, match="no such program"):
        match.run()
    assert len(match.entries) == 11


@pytest.mark.parametrize(
    ("mode", "reason", "wrote"),
    [
        ("dead", "crash", "    fatal: out of ideas"),
        ("mute", "hang", "It wrote nothing"),
        ("illegal", "illegal move", "    bestmove a1a1"),
        ("dies", "crash", "    fatal: out of ideas"),
        ("no-move", "no move", "    bestmove \\(none\\)"),
    ],
)
def test_a_program_without_a_move_stops_the_match_after_two_games(
    rules: Rules, tmp_path: Path, mode: str, reason: str, wrote: str
) -> None:
    command = [sys.executable, str(FAKE), mode]
    bad = program(rules, "uci", command, timeout=0.5)
    assert bad.name == "fake_engine.py"
    match = Match(rules, tmp_path / "m", [bad, *toys("b")], games=10)
    with pytest.raises(
        EngineError, match=rf"lost its first 2 games without a move \({reason}: "
    ) as e:
        match.run()
    assert re.search(wrote, str(e.value))
    assert [entry.reason for entry in match.entries] == [reason] * 2
    assert [entry.points for entry in match.entries] == [0, 1]
    name = "fake_engine.py" if mode in ("dead", "mute") else "Fake Engine 1.0"
    assert {match.entries[0].first, match.entries[0].second} == {name, "b"}
    assert name in (tmp_path / "m" / "table.txt").read_text()


@pytest.mark.parametrize(
    ("player", "reason", "end"),
    [
        ("slow", "time forfeit", r"\(`--margin`\)$"),
        ("net:-;evaluator=material", "no move", "The match was stopped$"),
    ],
)
def test_only_a_program_that_did_not_answer_may_speak_another_protocol(
    rules: Rules, tmp_path: Path, player: str, reason: Any, end: str
) -> None:
    bad = ToyPlayer(player, fault=Fault(reason, "x"), at=0)
    with pytest.raises(EngineError, match=f"without a move \\({reason}: x\\).*{end}"):
        Match(rules, tmp_path / "m", [bad, *toys("b")], games=10).run()


def test_a_match_may_go_on_without_a_move(rules: Rules, tmp_path: Path) -> None:
    bad = program(rules, "uci", [sys.executable, str(FAKE), "dies"], timeout=0.5)
    match = Match(rules, tmp_path / "m", [bad, *toys("b")], games=4, stop_at_no_shows=False)
    match.run()
    assert [entry.reason for entry in match.entries] == ["crash"] * 4


def test_a_start_that_fails_now_and_then_is_a_game_lost(rules: Rules, tmp_path: Path) -> None:
    class Moody(ToyPlayer):
        def start(self) -> None:
            super().start()
            if self.games == 0:
                raise EngineDiedError("engine moody died")

        def new_game(self, game: Game, number: int = 0) -> None:
            self.games += 1
            if number % 3 == 0:
                raise Fault("crash", "engine moody died")
            super().start()
            self.made = 0

    match = Match(rules, tmp_path / "m", [Moody("moody"), *toys("b")], games=8)
    state = match.run()
    assert not state.stopped and len(match.entries) == 8
    lost = [entry.number for entry in match.entries if entry.reason == "crash"]
    assert lost == [0, 3, 6]


def test_openings_are_played_with_both_colours(rules: Rules, tmp_path: Path) -> None:
    lines = line_openings(["1.e4 e5 2. Nf3", "d2d4"], Resolver(rules, core_notations()))
    entries = Match(rules, tmp_path / "m", toys("a", "b"), lines, games=4).run().entries
    assert [entry.moves[:1] for entry in entries] == [["e2e4"]] * 2 + [["d2d4"]] * 2
    assert [entry.first for entry in entries] == ["a", "b", "a", "b"]
    assert entries[0].scores == [None] * 3 + [0] * 5
    assert "{book}" in (tmp_path / "m" / "games.pgn").read_text()


def test_a_stopped_match_goes_on(rules: Rules, tmp_path: Path) -> None:
    whole = Match(rules, tmp_path / "whole", toys("a", "b"), games=6)
    whole.run()
    match = Match(rules, tmp_path / "m", toys("a", "b"), games=6)
    match.stop_after = 2
    state = match.run()
    assert state.stopped and len(state.entries) == 2
    # a kill between journal and PGN, and in the middle of a line
    with (tmp_path / "m" / "games.jsonl").open("a") as journal:
        journal.write('{"number": 2, "rou')
    (tmp_path / "m" / "games.pgn").write_text("")
    again = Match(rules, tmp_path / "m", toys("a", "b"), games=6, concurrency=2)
    state = again.run()
    assert not state.stopped and len(again.entries) == 4
    by_number = sorted(state.entries, key=lambda entry: entry.number)
    assert by_number == sorted(whole.entries, key=lambda entry: entry.number)
    assert len(records(tmp_path / "m" / "games.pgn", rules)) == 6
    # and once more there is nothing to do, but a longer match is the same match
    assert len(Match(rules, tmp_path / "m", toys("a", "b"), games=6).run().entries) == 6
    assert len(Match(rules, tmp_path / "m", toys("a", "b"), games=8).run().entries) == 8


def test_another_match_is_not_mixed_in(rules: Rules, tmp_path: Path) -> None:
    Match(rules, tmp_path / "m", toys("a", "b")).run()
    with pytest.raises(SettingError, match="settings that differ: nodes"):
        Match(rules, tmp_path / "m", toys("a", "b"), nodes=2).run()
    with pytest.raises(SettingError, match="players"):
        Match(rules, tmp_path / "m", toys("a", "c")).run()
    other = (Opening(moves=(int(rules.legal_moves(rules.position())[0]),)),)
    with pytest.raises(SettingError, match="openings"):
        Match(rules, tmp_path / "m", toys("a", "b"), other).run()
    trained_on = toys("a", "b")
    trained_on[1].digest = "5eed"
    with pytest.raises(SettingError, match="the net of b differs"):
        Match(rules, tmp_path / "m", trained_on).run()
    begun = tmp_path / "m" / "match.json"
    before = json.loads(begun.read_text())
    del before["nets"]  # as it was written before nets were told apart
    begun.write_text(json.dumps(before))
    assert Match(rules, tmp_path / "m", toys("a", "b")).run().stopped is False
    with (tmp_path / "m" / "games.jsonl").open("a") as journal:
        journal.write('{"a": 1}\n')
    with pytest.raises(DataError, match=r"games.jsonl:\d+: not a game: .*'a'"):
        Match(rules, tmp_path / "m", toys("a", "b")).run()
    (tmp_path / "m" / "match.json").unlink()
    with pytest.raises(DataError, match=r"match\.json is missing"):
        Match(rules, tmp_path / "m", toys("a", "b")).run()


def test_players_of_one_name_are_told_apart(rules: Rules, tmp_path: Path) -> None:
    assert Match(rules, tmp_path / "m", toys("a", "a")).run().names == ("a (1)", "a (2)")
    others = Match(rules, tmp_path / "n", toys("a", "a", "a (2)")).run()
    assert others.names == ("a (1)", "a (3)", "a (2)")
    assert len(others.table().lines) == 3


def test_an_erring_player_loses_and_the_match_goes_on(rules: Rules, tmp_path: Path) -> None:
    bad = ToyPlayer("bad", fault=Fault("crash", "bad died"), at=1)
    state = Match(rules, tmp_path / "m", [ToyPlayer("good"), bad], games=10).run()
    assert [entry.reason for entry in state.entries] == ["crash"] * 10
    assert state.table().lines[0].name == "good"
    assert state.table().lines[0].tally.text == "10-0-0"
    assert "bad died" in (tmp_path / "m" / "games.pgn").read_text()


def test_stop_does_not_wait_for_who_thinks(rules: Rules, tmp_path: Path) -> None:
    waiting = WaitingPlayer("w")
    match = Match(rules, tmp_path / "m", [ToyPlayer("a"), waiting], games=2)

    def stop() -> None:
        assert waiting.waiting.wait(30)
        match.tournament.stop()

    stopper = threading.Thread(target=stop)
    stopper.start()
    state = match.run()
    stopper.join()
    assert state.stopped and state.entries == []


def test_the_sequential_test_ends_a_match(rules: Rules, tmp_path: Path) -> None:
    bad = ToyPlayer("bad", fault=Fault("crash", "x"), at=1)
    state = Match(
        rules, tmp_path / "m", [ToyPlayer("good"), bad], games=1000, sprt=[0, 100], max_plies=4
    ).run()
    assert state.sprt is not None and state.sprt.verdict == "H1"
    assert len(state.entries) < 60 and not state.stopped
    lost = Match(
        rules, tmp_path / "n", [bad, ToyPlayer("good")], games=1000, sprt=[0, 100], max_plies=4
    ).run()
    assert lost.sprt is not None and lost.sprt.verdict == "H0"


def test_a_test_may_have_any_number_of_games(rules: Rules, tmp_path: Path) -> None:
    """The schedule is not made in advance."""
    match = Match(rules, tmp_path / "m", toys("a", "b"), games=10**12, sprt=[0, 100], max_plies=4)
    match.stop_after = 2
    state = match.run()
    assert state.stopped and state.scheduled == 10**12 and len(state.entries) == 2


def test_games_that_end_together_do_not_undo_a_verdict(
    rules: Rules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict falls after the first of two games whose results are read at the same time."""
    monkeypatch.setattr(player_pool, "wait", lambda running, **_: concurrent.futures.wait(running))
    match = Match(
        rules, tmp_path / "m", [ToyPlayer("a"), ToyPlayer("b")], games=1000, concurrency=2,
        sprt=[0, 100], max_plies=4,
    )  # fmt: skip
    verdicts = iter([None, SprtStatus(3.0, -2.9, 2.9, "H1"), SprtStatus(2.0, -2.9, 2.9, None)])
    monkeypatch.setattr(match.tournament, "_sprt", lambda state: next(verdicts))
    state = match.run()
    assert state.sprt is not None and state.sprt.verdict == "H1" and not state.stopped
    assert len(state.entries) == 1


def test_limits_of_a_players_own(rules: Rules, tmp_path: Path) -> None:
    a, b = ToyPlayer("a"), ToyPlayer("b")
    match = Match(rules, tmp_path / "m", [a, b])
    made = settings_of(
        {**match.tournament.settings.model_dump(), "players": ["a", "b;depth=3"]}, "match"
    )
    Tournament(made, rules, lambda i: (a, b)[i], [Opening()], tmp_path / "m", SanNotation()).run(
        lambda state, entry: None
    )
    assert {(t.allowance.nodes, t.allowance.depth) for t in a.turns} == {(1, None)}
    assert {(t.allowance.nodes, t.allowance.depth) for t in b.turns} == {(None, 3)}


@pytest.mark.parametrize(
    ("clocks", "written"), [(("5+1", "5+1"), "5+1"), (("5+1", "10"), "?"), (("", ""), "-")]
)
def test_the_time_control_is_that_of_both(
    rules: Rules, tmp_path: Path, clocks: tuple[str, str], written: str
) -> None:
    players = [ToyPlayer("a"), ToyPlayer("b")]
    match = Match(rules, tmp_path / "m", players)
    said = [f"{n};clock={c}" if c else n for n, c in zip("ab", clocks, strict=True)]
    made = settings_of({**match.tournament.settings.model_dump(), "players": said}, "match")
    own = Tournament(made, rules, lambda i: players[i], [Opening()], tmp_path / "m", SanNotation())
    own.run(lambda state, entry: None)
    headers = (tmp_path / "m" / "games.pgn").read_text().splitlines()
    assert {line for line in headers if line.startswith("[TimeControl")} == {
        f'[TimeControl "{written}"]'
    }


# --- openings of games ---------------------------------------------------------------------------


def test_lines_that_are_not_legal_are_named(rules: Rules) -> None:
    with pytest.raises(DataError, match=r"opening 2 \('1.e4 e4'\)"):
        line_openings(["1.e4 e5", "1.e4 e4"], Resolver(rules, core_notations()))


def test_positions_drawn_from_a_store(rules: Rules, tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "s", rules.spec) as writer:
        for first in range(10):
            game = Game(rules)
            while game.ply < 30:
                moves = game.legal_moves()
                game.push(int(moves[(first + 7 * game.ply) % len(moves)]))
            writer.add(GameRecord(rules.spec.variant, list(game.moves), result="1-0"))
    store = Store(tmp_path / "s", rules.spec)
    drawn = sampled_from_store(store, rules, 8, (5, 12), seed=1)
    assert drawn == sampled_from_store(store, rules, 8, (5, 12), seed=1)
    assert drawn != sampled_from_store(store, rules, 8, (5, 12), seed=2)
    assert all(5 <= len(opening.moves) <= 12 for opening in drawn)
    assert len({played_out(rules, opening).fen() for opening in drawn}) == 8
    with pytest.raises(DataError, match="of 11 different positions"):
        sampled_from_store(store, rules, 11, (5, 12), seed=1)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_program_that_hangs_at_its_start_does_not_delay_a_signal(tmp_path: Path) -> None:
    program = tmp_path / "hangs.py"
    program.write_text(
        "import pathlib, time\npathlib.Path(__file__).with_name('begun').touch()\ntime.sleep(300)\n"
    )
    hanging = f"{sys.executable} {program};timeout=300"
    words = [
        sys.executable, "-m", "variant_ai.cli.main", "match", hanging, "random",
        "-V", "crazyhouse", "--games", "2", "--nodes", "1", "-o", str(tmp_path / "m"),
    ]  # fmt: skip
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not (tmp_path / "begun").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(60) == 130
    finally:
        process.kill()
    assert not (tmp_path / "m" / "match.json").exists()


# --- a kill --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_kill_loses_the_games_in_progress_alone(tmp_path: Path) -> None:
    """SIGKILL while games end quickly, again and again: every finished game is there once."""
    words = [
        sys.executable, "-m", "variant_ai.cli.main", "match", "random;name=a", "random;name=b",
        "-V", "crazyhouse", "--games", "400", "--max-plies", "6", "--concurrency", "2",
        "-o", str(tmp_path / "m"),
    ]  # fmt: skip
    journal = tmp_path / "m" / "games.jsonl"
    counts = []
    for wanted in (3, 9):
        process = subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            if journal.exists() and journal.read_bytes().count(b"\n") >= wanted:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        counts.append(journal.read_bytes().count(b"\n"))
    assert counts[0] >= 3 and counts[1] >= max(9, counts[0])
    with Journal(journal) as opened:
        numbers = [line["number"] for line in contents(opened)]
    assert len(set(numbers)) == len(numbers)
    assert json.loads((tmp_path / "m" / "match.json").read_text())["names"] == ["a", "b"]


def test_games_lost_on_time_are_a_warning() -> None:
    """On a busy machine nearly all games are: that is no measure of strength."""
    entry = GameEntry(0, 1, "a", "b", 0, None, ["e2e4"], 0, "1-0", "checkmate")
    late = [replace(entry, number=n, moves=[], reason="time forfeit") for n in range(1, 4)]
    others = [replace(entry, number=n, moves=[f"move {n}"]) for n in range(10)]
    state = MatchState(("a", "b"), entries=[*late, *others])
    assert state.warning.startswith("3 of 13 games ended by a time forfeit.")
    assert MatchState(("a", "b"), entries=[late[0], *others]).warning == ""


def test_a_program_that_may_know_other_rules_is_named() -> None:
    """With the variant that it was asked to play; a crash is no sign of that, and a player of this process
    has the rules of the spec."""
    spec = registry().variant("dobutsu")
    entry = GameEntry(0, 1, "a", "b", 0, None, [], 0, "1-0", "illegal move")
    reasons = ("illegal move", "no move", "false claim", "crash")
    games = [replace(entry, number=n, reason=reason) for n, reason in enumerate(reasons)]
    asked = {"b": "dobutsu-of-b"}
    said = MatchState(("a", "b"), games, spec=spec, asked=asked).warning
    assert "b broke the rules of dobutsu in 3 games" in said
    assert "it was asked to play 'dobutsu-of-b'" in said and "VariantPath" in said
    assert "broke" not in MatchState(("a", "b"), games, spec=spec).warning
    assert "broke" not in MatchState(("a", "b"), games[3:], spec=spec, asked=asked).warning


def test_a_match_knows_which_variant_its_programs_play(rules: Rules, tmp_path: Path) -> None:
    players = [{"command": "b", "variant": "zh"}, {"command": "c"}, {"random": True}]
    made = [ToyPlayer("a"), ToyPlayer("b"), ToyPlayer("c")]
    chosen = settings(players=players)
    one = Tournament(chosen, rules, made.__getitem__, [Opening()], tmp_path, SanNotation())
    state = one.run(lambda state, entry: None)
    assert state.asked == {"a": "zh", "b": "crazyhouse"} and state.spec is rules.spec
