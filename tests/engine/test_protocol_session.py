"""Whole sessions: exact lines, commands in any order, and races."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from protocol_client import Client, FakeBuilder, best, hello, last_search

from variant_ai.core.encoding import Encoder
from variant_ai.core.engine import loading
from variant_ai.core.engine import running_search as searcher_module
from variant_ai.core.engine import session as session_module
from variant_ai.core.engine.line_io import InputLine, LineWriter
from variant_ai.core.engine.protocols.engine_options import Option
from variant_ai.core.engine.protocols.uci import Dialect, Identity
from variant_ai.core.engine.session import Session
from variant_ai.core.errors import MoveError
from variant_ai.core.factories import DIALECTS
from variant_ai.core.inference.interface import Evaluation, Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import UciNotation, uci
from variant_ai.core.search.interface import BaseSearch
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system import compilation_progress as compilation
from variant_ai.plugins import registry

STALEMATE = "4k4/9/4P4/9/9/9/9/9/4p4/3K5 w"
MATED = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR[] w KQkq - 1 3"


def test_a_game_as_match_runners_play_it() -> None:
    """Everything again for every game, UCI_Variant after the first readyok."""
    with hello() as client:
        assert client.ask("setoption name Hash value 64") == []
        for _ in range(2):
            assert client.ask(
                "setoption name UCI_Variant value crazyhouse",
                "ucinewgame",
                "setoption name Ponder value false",
                "position startpos",
            ) == [
                "info string variant crazyhouse files 8 ranks 8 pocket 5 template crazyhouse "
                "startpos rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR[] w KQkq - 0 1"
            ]
            lines = client.ask("go wtime 1050 btime 1050 winc 50 binc 50", until="bestmove")
            assert lines[-1] == "bestmove a2a3 ponder a7a5"
            assert client.ask("position startpos moves a2a3 a7a5") == []
            assert best(client.ask("go movetime 30", until="bestmove")) == "a1a2"


class Spoken(Dialect):
    """A protocol of a plugin: UCI with a handshake of its own."""

    name = first_word = "spoken"


def failing_dialect() -> Dialect:
    raise ValueError("no voice")


def test_a_protocol_of_a_plugin_is_chosen_by_its_first_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that cannot be made is reported, and the others still work."""
    monkeypatch.setattr(DIALECTS, "_targets", dict(DIALECTS._targets))
    DIALECTS.register("broken", "no_such_module:Broken")
    DIALECTS.register("failing", failing_dialect)
    DIALECTS.register("spoken", Spoken)
    with Client() as client:
        assert client.ask("spoken", until="spokenok")[-1] == "spokenok"
        client.ask("setoption name UCI_Variant value crazyhouse", "position startpos")
        assert best(client.ask("go movetime 30", until="bestmove")) == "a2a3"
    told = capsys.readouterr().err
    assert "No module named 'no_such_module'" in told
    assert "cannot be made: ValueError: no voice" in told


def test_a_named_set_of_search_settings_is_played_with() -> None:
    with hello() as client:
        client.ask("setoption name UCI_Variant value crazyhouse")
        client.ask("setoption name Search_Settings value paper", "position startpos")
        params = last_search(client).params
        assert params.enhance_checks and params.u_divisor == "adaptive"
        client.ask("setoption name Enhance_Checks value false")
        params = last_search(client).params
        assert not params.enhance_checks and params.virtual_loss == 3


def test_nodestime_spends_time_as_nodes() -> None:
    with hello() as client:
        client.ask("setoption name nodestime value 2", "position startpos")
        client.ask("go wtime 5000 btime 5000", until="bestmove")
        (limits,) = last_search(client).limits
        assert limits.movetime is None
        assert limits.nodes is not None and 250 <= limits.nodes <= 320, (
            "1.6 · 5 s / 50 moves, 2 a ms"
        )


def test_nodestime_counts_after_a_ponder_hit() -> None:
    with hello() as client:
        client.ask("setoption name nodestime value 10000", "position startpos")
        client.send("go ponder wtime 100 btime 100")
        assert client.silent(0.1)
        client.send("ponderhit")
        assert client.silent(0.5)  # by the clock, the time would be over
        client.ask("stop", until="bestmove")
        client.ask("setoption name nodestime value 1", "position startpos")
        client.send("go ponder wtime 5000 btime 5000")
        assert client.silent(0.2)
        client.ask("ponderhit", until="bestmove")


def test_an_unknown_set_of_search_settings_costs_no_move() -> None:
    with hello() as client:
        lines = client.ask("setoption name Search_Settings value papr", "position startpos")
        lines += client.ask("go nodes 5", until="bestmove")
        assert any("error: " in line and "'papr'" in line and "paper" in line for line in lines)
        assert best(lines) == "a2a3"


def test_an_unknown_search_costs_no_move() -> None:
    with hello() as client:
        said = client.ask("setoption name Search_Algorithm value foo", "position startpos")
        for _ in range(2):
            lines = client.ask("go nodes 5", until="bestmove")
            assert best(lines) == "a2a3" and any("nodes 5" in line for line in lines)
            said += lines
        assert sum("error: unknown search 'foo'" in line for line in said) == 1


def test_exact_lines_of_a_search() -> None:
    with hello() as client:
        client.ask("setoption name MultiPV value 2", "setoption name UCI_ShowWDL value true")
        assert client.ask("position startpos", "go nodes 20", until="bestmove") == [
            "info depth 3 seldepth 2 multipv 1 score cp 75 wdl 565 0 435 nodes 20 nps 20000 "
            "hashfull 0 time 0 pv a2a3 a7a5",
            "info depth 3 seldepth 2 multipv 2 score cp 75 wdl 565 0 435 nodes 20 nps 20000 "
            "hashfull 0 time 0 pv a2a4 a7a5",
            "bestmove a2a3 ponder a7a5",
        ]


def test_nothing_is_printed_before_uciok_but_id_and_option_lines() -> None:
    with Client() as client:
        client.send("hello", "setoption name nonsense value 1", "position fen x", "uci")
        lines = client.until("uciok")
        assert all(line.split()[0] in ("id", "option", "uciok") for line in lines)
        assert lines[0] == "id name Test 1"


def test_readyok_means_ready_and_progress_is_printed_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loading, "PROGRESS_EVERY", 0.05)
    monkeypatch.setattr(compilation._state, "latest", None)

    class SlowBuilder(FakeBuilder):
        loading = threading.Event()

        def spec(self, name: str) -> VariantSpec:
            self.loading.wait(60)
            return super().spec(name)

    builder = SlowBuilder()
    with hello(builder=builder) as client:
        client.send("isready")
        assert client.line() == "info string still loading"
        monkeypatch.setattr(compilation._state, "latest", compilation.Progress(7, 93, 20.4))
        expected = "compiling for this machine, once: 7 of 93 functions; about 20 s left"
        assert client.line() == f"info string {expected}"
        assert client.silent(0.2), "the same line is not repeated"
        monkeypatch.setattr(compilation._state, "latest", compilation.Progress(93, 93, 0.0))
        assert client.line() == "info string still loading"
        builder.loading.set()
        assert client.until("readyok")
        assert client.silent(0.2), "nothing is loading any more"
        client.send("position startpos")
        assert best(client.ask("go nodes 3", until="bestmove")) == "a2a3"


def test_progress_is_printed_at_the_same_pace_for_several_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Callable[[], None]] = []

    class Timer:
        def __init__(self, seconds: float, call: Callable[[], None]) -> None:
            self.call = call

        def start(self) -> None:
            started.append(self.call)

    monkeypatch.setattr(loading.threading, "Timer", Timer)
    printed: list[str] = []
    progress = loading.LoadingProgress(lambda: False, printed.append)
    for _ in range(3):
        progress.begin()
    for _ in range(2):
        assert len(started) == 1
        started.pop()()
    for _ in range(3):
        progress.end()
    started.pop()()
    assert not started and len(printed) == 1
    progress.begin()
    assert len(started) == 1


def test_a_go_that_waits_for_loading_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "PROGRESS_EVERY", 0.05)
    monkeypatch.setattr(compilation._state, "latest", None)
    builder = LoadingBuilder()
    with hello(builder=builder) as client:
        client.send("position startpos", "go nodes 3")
        assert client.line() == "info string still loading"
        builder.may_load.set()
        assert best(client.until("bestmove")) == "a2a3"
        client.send("go infinite")
        assert not any("loading" in line for line in client.ask("stop", until="bestmove"))


def test_rules_are_made_before_the_evaluator() -> None:
    """Their compilation is shared with other processes, and `auto` does not measure meanwhile."""
    calls: list[str] = []

    class RecordingBuilder(FakeBuilder):
        def rules(self, spec: VariantSpec) -> Rules:
            calls.append("rules")
            return super().rules(spec)

        def evaluator(self, *given: Any) -> Evaluator:
            calls.append("evaluator")
            return super().evaluator(*given)

    with hello(builder=RecordingBuilder()) as client:
        client.ask("isready")
    assert calls == ["rules", "evaluator"]


class LoadingBuilder(FakeBuilder):
    """Makes no search before it is allowed to; its net prefers the last legal move."""

    def __init__(self, default: str = "crazyhouse", *, has_net: bool = True) -> None:
        super().__init__(default)
        self.may_load = threading.Event()
        self.has_net = has_net

    def evaluator(
        self, spec: VariantSpec, settings: Mapping[str, Any], say: Callable[[str], None]
    ) -> Evaluator:
        if not self.has_net:
            self.may_load.wait(60)
        return PrefersLastMove(super().evaluator(spec, settings, say))

    def compile_search(self) -> None:
        self.may_load.wait(60)


class PrefersLastMove(Evaluator):
    """A net whose policy grows with the number of the action."""

    name = "last"

    def __init__(self, like: Evaluator) -> None:
        self.info = like.info
        self.planes_shape, self.actions = like.planes_shape, like.actions

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        ramp = np.tile(np.arange(self.actions, dtype=np.float32), (len(planes), 1))
        return Evaluation(np.zeros(len(planes), np.float32), ramp)


class CountingNet(PrefersLastMove):
    """The same, which takes some seconds for each evaluation and counts them."""

    seconds = 0.0
    evaluations = 0

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        self.evaluations += 1
        time.sleep(self.seconds)
        return super().evaluate(planes)


@pytest.mark.parametrize(
    ("seconds", "go", "looks"),
    [
        (0.0, "wtime 100 btime 100", True),
        (0.05, "wtime 100 btime 100", False),
        (0.05, "movetime 0", True),
    ],
)
def test_a_slow_net_is_not_asked_when_a_clock_has_no_time_for_it(
    seconds: float, go: str, looks: bool
) -> None:
    class CountingBuilder(FakeBuilder):
        def evaluator(
            self, spec: VariantSpec, settings: Mapping[str, Any], say: Callable[[str], None]
        ) -> Evaluator:
            net = CountingNet(super().evaluator(spec, settings, say))
            net.seconds = seconds
            nets.append(net)
            return net

    nets: list[CountingNet] = []
    with hello(builder=CountingBuilder()) as client:
        client.ask("position startpos")
        client.ask("position startpos moves e2e4 e7e5")
        (net,) = nets
        before = net.evaluations
        client.ask(f"go {go}", until="bestmove")
        assert net.evaluations - before == looks


@pytest.mark.parametrize("limit", ["movetime 150", "wtime 600 btime 600"])
def test_a_go_while_the_search_is_loading_is_answered_in_time_by_the_policy(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # on a busy machine even the policy comes late, and any legal move would be played
    monkeypatch.setattr(loading, "LATE_FOR_POLICY", 30.0)
    monkeypatch.setattr(loading, "LOADING_SHARE", 50.0)
    builder = LoadingBuilder()
    with hello(builder=builder) as client:
        client.send("position startpos")
        began = time.monotonic()
        lines = client.ask(f"go {limit}", until="bestmove")
        assert time.monotonic() - began < 20.0, "loading would take 60"
        assert "playing the net's first choice" in lines[0]
        first = best(lines)
        game = Game(registry().rules(registry().variant("crazyhouse")))
        encoder = Encoder(game.rules.spec)
        moves = game.legal_moves().tolist()
        likeliest = moves[int(encoder.action_indices(game.position, moves).argmax())]
        assert first == uci(game.rules.types, 8, likeliest)
        # the next move, too, and a stop ends the waiting
        client.send(f"position startpos moves {first}", "go movetime 50000")
        time.sleep(0.1)
        assert "first choice" in client.ask("stop", until="bestmove")[0]
        builder.may_load.set()
        client.send("position startpos")
        assert best(client.ask("go nodes 3", until="bestmove")) == "a2a3"
        assert len(builder.searches) == 1


def test_without_a_net_in_time_any_legal_move_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "LATE_FOR_POLICY", 0.2)
    builder = LoadingBuilder(has_net=False)
    with hello(builder=builder) as client:
        client.send("position startpos")
        lines = client.ask("go movetime 100", until="bestmove")
        assert "playing any legal move" in lines[0]
        builder.may_load.set()
        client.send("ucinewgame", "setoption name MultiPV value 2", "position startpos")
        assert best(client.ask("go nodes 3", until="bestmove")) == "a2a3"


def test_a_client_that_waits_gets_a_search_however_long_it_loads() -> None:
    builder = LoadingBuilder()
    with hello(builder=builder) as client:
        client.send("position startpos", "go nodes 3")
        assert client.silent(0.4)
        builder.may_load.set()
        assert best(client.until("bestmove")) == "a2a3"


@pytest.mark.parametrize("go", ["infinite", "depth 30", "nodes 100000", "ponder movetime 60000"])
def test_a_stop_while_the_search_is_loading_is_answered_at_once(go: str) -> None:
    builder = LoadingBuilder()
    with hello(builder=builder) as client:
        client.send("position startpos", f"go {go}")
        assert client.silent(0.3)
        began = time.monotonic()
        lines = client.ask("stop", until="bestmove")
        assert time.monotonic() - began < 20.0, "loading would take 60"
        assert "the search is still loading" in lines[0]
        builder.may_load.set()


def test_a_position_that_comes_while_the_net_looks_does_not_end_the_loading() -> None:
    """Otherwise the next `go` would load without a look at its clock or at `stop`."""
    looks, may_answer = threading.Event(), threading.Event()

    class SlowNet(PrefersLastMove):
        def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
            looks.set()
            may_answer.wait(60)
            return super().evaluate(planes)

    class SlowBuilder(LoadingBuilder):
        def evaluator(
            self, spec: VariantSpec, settings: Mapping[str, Any], say: Callable[[str], None]
        ) -> Evaluator:
            return SlowNet(super().evaluator(spec, settings, say))

    builder = SlowBuilder()
    with hello(builder=builder) as client:
        client.send("position startpos", "go infinite")
        assert looks.wait(60)
        client.ask("stop", until="bestmove")
        client.send("position startpos moves e2e4")
        client.send("d")
        while not client.line().startswith("info string fen"):
            pass  # once it comes, the position is set
        may_answer.set()
        time.sleep(0.2)
        client.send("go infinite")
        time.sleep(0.1)
        began = time.monotonic()
        client.ask("stop", until="bestmove")
        assert time.monotonic() - began < 20.0, "loading would take 60"
        builder.may_load.set()


def test_a_ponder_hit_while_the_search_is_loading_starts_the_clock() -> None:
    builder = LoadingBuilder()
    with hello(builder=builder) as client:
        client.send("position startpos", "go ponder movetime 200")
        assert client.silent(0.5)
        began = time.monotonic()
        client.ask("ponderhit", until="bestmove")
        assert 0.1 < time.monotonic() - began < 20.0
        builder.may_load.set()


def test_a_net_that_is_replaced_is_closed() -> None:
    class ClosedNet(PrefersLastMove):
        is_closed = False

        def close(self) -> None:
            assert not self.is_closed
            self.is_closed = True

    class ClosingBuilder(FakeBuilder):
        def evaluator(
            self, spec: VariantSpec, settings: Mapping[str, Any], say: Callable[[str], None]
        ) -> Evaluator:
            assert all(net.is_closed for net in nets)
            nets.append(ClosedNet(super().evaluator(spec, settings, say)))
            return nets[-1]

    nets: list[ClosedNet] = []
    with hello(builder=ClosingBuilder()) as client:
        client.ask("isready")
        client.ask("setoption name Batch_Size value 3")
        client.ask("isready")
        assert [net.is_closed for net in nets] == [True, False]
    assert all(net.is_closed for net in nets)


def test_the_handshake_may_come_twice() -> None:
    with hello() as client:
        client.send("uci")
        assert client.until("uciok")[-1] == "uciok"


class Plain(Dialect):
    """A protocol of a test: UCI with a handshake of its own and another last line."""

    name = "plain"
    first_word = "hello"

    def greeting(self, identity: Identity, options: Iterable[Option]) -> list[str]:
        return [f"hello {identity.name}", "hellook"]

    def best(self, move: str, ponder: str | None, verdict: str = "") -> list[str]:
        return [f"bestmove plain {move}"]


def test_a_protocol_is_added_by_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DIALECTS._targets, "plain", Plain)
    with hello("hello") as client:
        client.send("position startpos", "go nodes 5")
        assert client.until("bestmove")[-1].startswith("bestmove plain ")
    with Client(protocol="plain") as client:
        client.send("hello")
        assert client.until("hellook")[-2:] == ["hello Test 1", "hellook"]
    with hello() as client:
        client.send("position startpos", "go nodes 5")
        assert not client.until("bestmove")[-1].startswith("bestmove plain ")


class Shouted(UciNotation):
    """UCI moves in capitals, which UCI has for pieces alone."""

    name = "shouted"

    def read(self, rules: Rules, position: Position, text: str) -> int:
        if text != text.upper():
            raise MoveError(f"{text!r} is whispered")
        return super().read(rules, position, text.lower())


class Loud(Plain):
    name = "loud"
    notation = f"{__name__}:Shouted"


def test_a_protocol_brings_its_notation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DIALECTS._targets, "loud", Loud)
    with Client(protocol="loud") as client:
        client.ask("hello", until="hellook")
        client.send("position startpos moves E2E4 E7E5", "go nodes 5 searchmoves G1F3")
        assert client.until("bestmove")[-1] == "bestmove plain g1f3"
        client.send("position startpos moves e2e4", "isready")
        assert any("'e2e4' is whispered" in line for line in client.until("readyok"))


def test_isready_is_answered_during_a_search_and_stop_gives_one_move() -> None:
    with hello() as client:
        client.send("position startpos", "go infinite")
        assert client.ask() == []
        assert client.silent()
        assert best(client.ask("stop", until="bestmove")) == "a2a3"
        client.send("stop")
        assert client.silent()


def test_position_and_options_wait_for_the_end_of_the_search() -> None:
    with hello() as client:
        client.ask("position startpos")
        client.send("go infinite", "position startpos moves e2e4", "setoption name MultiPV value 3")
        assert client.silent()
        lines = client.ask("stop", until="bestmove")
        assert best(lines) == "a2a3"
        assert len(lines) <= 2  # one line of play, not three; none where the machine was too busy
        lines = client.ask("go nodes 5", until="bestmove")
        assert best(lines) == "a7a5"
        assert len(lines) == 4


def test_a_go_during_a_search_ends_the_first_with_a_move_of_its_own() -> None:
    with hello() as client:
        client.ask("isready")
        client.send("go infinite", "position startpos moves e2e4", "go nodes 5")
        assert best(client.until("bestmove")) == "a2a3"
        assert best(client.until("bestmove")) == "a7a5"
        assert client.silent()


def test_stop_racing_movetime_gives_one_move() -> None:
    with hello() as client:
        client.ask("position startpos")
        in_haste = client.session.engine.any_move()  # where the time was over before a visit
        for milliseconds in range(1, 25):
            client.send(f"go movetime {milliseconds}")
            time.sleep(0.012)
            client.send("stop", "isready")
            lines = client.until("readyok")
            if not any(line.startswith("bestmove") for line in lines):
                lines += client.until("bestmove")
            assert best(lines) in ("a2a3", in_haste)
        assert client.silent()


def test_a_stop_before_the_search_has_begun_is_not_lost() -> None:
    with hello() as client:
        client.ask("isready")
        client.send("position startpos", "go infinite", "stop")
        assert best(client.until("bestmove")) == "a2a3"


def test_nothing_is_printed_early_under_ponder_and_infinite() -> None:
    builder = FakeBuilder()
    builder.shape = {"solved": True}
    with hello(builder=builder) as client:
        client.send("position startpos", "go ponder nodes 3 wtime 100 btime 100")
        assert client.silent(0.3)
        assert best(client.ask("ponderhit", until="bestmove")) == "a2a3"
        client.send("go ponder wtime 100 btime 100")
        assert client.silent(0.2)
        assert best(client.ask("stop", until="bestmove")) == "a2a3"
        client.send("go infinite")
        assert client.silent(0.2)
        client.send("ponderhit")
        assert client.silent(0.2)
        assert best(client.ask("stop", until="bestmove")) == "a2a3"


@pytest.mark.parametrize(
    "limit",
    ["nodes 800", "depth 5", "mate 1", "movetime 3600000", "wtime 36000000 btime 36000000", ""],
)
def test_a_finished_search_answers_after_a_ponder_hit(limit: str) -> None:
    """No limit is ever met where no visit is added."""
    builder = FakeBuilder()
    builder.shape = {"solved": True}
    with hello(builder=builder) as client:
        client.send("position startpos", f"go ponder {limit}")
        assert client.silent(0.2)
        assert best(client.ask("ponderhit", until="bestmove")) == "a2a3"


def test_a_weakened_player_does_not_ponder_beyond_its_nodes() -> None:
    builder = FakeBuilder()
    with hello(builder=builder) as client:
        client.send("setoption name Nodes value 50", "position startpos")
        client.send("go ponder wtime 60000 btime 60000")
        assert client.silent(0.2)
        client.ask("ponderhit", until="bestmove")
        assert last_search(client).limits[-1] == Limits(nodes=50)


def test_a_mate_limit_ends_a_search_after_a_ponder_hit() -> None:
    builder = FakeBuilder()
    builder.shape = {"mate": 3}
    with hello(builder=builder) as client:
        client.send("position startpos", "go ponder mate 1")
        assert client.silent(0.2)
        client.send("ponderhit")
        assert client.silent(0.2)  # a mate in two moves is not what was asked for
        client.ask("stop", until="bestmove")
        client.send("go ponder mate 2")
        assert client.silent(0.2)
        assert best(client.ask("ponderhit", until="bestmove")) == "a2a3"


def test_a_ponder_hit_between_two_checks_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It notifies nobody who waits, and there is no other notice."""
    looks = searcher_module._SearchTimer._must_stop

    def hit_after_the_look(watch: searcher_module._SearchTimer) -> bool:
        over = looks(watch)
        if watch._waiting and not over:
            watch.signals.ponder_hit(time.perf_counter(), False)
        return over

    monkeypatch.setattr(searcher_module._SearchTimer, "_must_stop", hit_after_the_look)
    with hello() as client:
        client.ask("position startpos")
        start = time.perf_counter()
        client.send("go ponder wtime 1000 btime 1000")
        assert best(client.until("bestmove")) == "a2a3"
        assert time.perf_counter() - start < 10


def test_a_fixed_time_counts_from_the_ponder_hit() -> None:
    with hello() as client:
        client.ask("setoption name Fixed_Movetime value 300", "position startpos")
        client.send("go ponder wtime 10000 btime 10000")
        assert client.silent(0.5)
        start = time.perf_counter()
        client.ask("ponderhit", until="bestmove")
        assert 0.2 < time.perf_counter() - start < 3


def test_after_a_ponder_hit_the_clock_runs() -> None:
    with hello() as client:
        client.ask("position startpos")
        client.send("go ponder wtime 2000 btime 2000")
        assert client.silent(0.2)
        start = time.perf_counter()
        client.ask("ponderhit", until="bestmove")
        assert time.perf_counter() - start < 1.5


@pytest.mark.parametrize(
    "limit",
    ["nodes 1", "nodes 0", "movetime 1", "movetime 0", "depth 1", "depth 0", "mate 1 nodes 5",
     "wtime -50 btime 100", "wtime 1 btime 1", "wtime 0 btime 0 winc 0 binc 0", "nodes x",
     "searchmoves b1c3 nodes 4", "nodes 5 foo"],
)  # fmt: skip
def test_every_limit_ends_with_a_move(limit: str) -> None:
    with hello() as client:
        client.ask("position startpos")
        lines = client.ask(f"go {limit}", until="bestmove")
        assert best(lines) == ("b1c3" if "searchmoves" in limit else "a2a3")


def test_limits_reach_the_search() -> None:
    with hello() as client:
        client.ask("position startpos")
        client.ask("go nodes 7 depth 3 mate 2", until="bestmove")
        limits = last_search(client).limits[-1]
        assert (limits.nodes, limits.depth, limits.mate) == (7, 3, 2)
        client.ask("setoption name Nodes value 4")
        client.ask("go wtime 60000 btime 60000", until="bestmove")
        assert last_search(client).limits[-1].nodes == 4
        client.ask("setoption name Nodes value 0", "setoption name Fixed_Movetime value 40")
        client.ask("go wtime 60000 btime 60000", until="bestmove")
        movetime = last_search(client).limits[-1].movetime
        assert movetime is not None and movetime <= 0.04


def test_in_the_last_moments_of_a_clock_nothing_is_begun() -> None:
    with hello() as client:
        client.ask("position startpos")
        client.ask("go wtime 120 btime 9000", until="bestmove")
        assert last_search(client).limits[-1].movetime == 0
        client.ask("go wtime 9000 btime 120", until="bestmove")
        assert last_search(client).limits[-1].movetime != 0


def test_with_less_than_half_a_second_left_there_is_one_evaluation() -> None:
    with hello() as client:
        client.ask("position startpos")
        for clock in ("wtime 400", "wtime 400 winc 10", "wtime 300 winc 20"):
            client.ask(f"go {clock} btime 9000", until="bestmove")
            limits = last_search(client).limits[-1]
            left = int(clock.split()[1]) / 1000 - 0.02
            assert limits.evaluations == 1
            assert limits.movetime == pytest.approx(left / 6)
        # what an increment pays for is searched
        client.ask("go wtime 400 winc 200 btime 9000", until="bestmove")
        assert last_search(client).limits[-1].evaluations is None


def test_the_lag_is_learnt_from_the_clock() -> None:
    with hello() as client:
        client.ask("isready", until="readyok")  # loading is no part of the first move
        client.ask("position startpos", "go wtime 901 btime 901", until="bestmove")
        assert last_search(client).limits[-1].movetime != 0
        client.ask("position startpos moves a2a3 a7a6")
        client.ask("go wtime 600 btime 900", until="bestmove")  # 0.3 s for hardly any search
        assert last_search(client).limits[-1].movetime == 0
        assert usual_lag(client) > 0
        # what was learnt is of the machine and stays
        client.ask("ucinewgame", "position startpos")
        client.ask("go wtime 500 btime 500", until="bestmove")
        assert last_search(client).limits[-1].movetime == 0
        client.ask("go wtime 5000 btime 5000", until="bestmove")
        assert last_search(client).limits[-1].movetime != 0


def usual_lag(client: Client) -> float:
    manager = client.session.engine._time_manager
    assert manager is not None
    return manager.lag.usual


def test_the_other_sides_clock_is_not_used_for_the_lag() -> None:
    """One engine for both sides: what White's clock lost since Black's move is no lag."""
    with hello() as client:
        client.ask("position startpos", "go wtime 5001 btime 4001", until="bestmove")
        client.ask("position startpos moves a2a3", "go wtime 4981 btime 4001", until="bestmove")
        client.ask("position startpos moves a2a3 a7a6")
        client.ask("go wtime 3501 btime 3981", until="bestmove")
        assert usual_lag(client) == 0


def test_pondering_is_not_used_for_the_lag() -> None:
    with hello() as client:
        client.ask("position startpos", "go wtime 2001 btime 2001", until="bestmove")
        client.ask("position startpos moves a2a3 a7a6")
        client.send("go ponder wtime 1981 btime 2001")
        client.ask("stop", until="bestmove")
        client.ask("go wtime 1501 btime 2001", until="bestmove")
        assert usual_lag(client) == 0


def test_searchmoves_that_are_illegal_are_named_and_left_out() -> None:
    with hello() as client:
        lines = client.ask("go searchmoves e2e5 d2d4 nodes 4", until="bestmove")
        assert best(lines) == "d2d4"
        assert lines[0].startswith("info string error: illegal uci move 'e2e5'")


def test_no_legal_move() -> None:
    with hello() as client:
        assert client.ask(f"position fen {MATED}", "go nodes 5", until="bestmove") == [
            "info depth 0 score mate 0",
            "bestmove (none)",
        ]
        client.send("go infinite")
        assert client.silent()
        client.ask("stop", until="bestmove")
        stalemate = "7k/8/8/8/8/1q6/8/K7[] w - - 0 1"
        assert client.ask(f"position fen {stalemate}", "go nodes 5", until="bestmove") == [
            "info depth 0 score cp 0",
            "bestmove (none)",
        ]


def test_errors_say_what_and_where_and_change_nothing() -> None:
    with hello() as client:
        client.ask("position startpos moves e2e4")
        for line, problem in [
            ("position startpos moves e2e5", "ply 1: illegal uci move 'e2e5': no legal move fits"),
            ("position fen 8/8 w", "2 ranks given, the board has 8"),
            ("position", "nothing where `startpos` or `fen` is expected"),
            (
                "setoption name Hash value lots",
                "option Hash: 'lots' given, expected a whole number",
            ),
            ("setoption name Hsh value 1", "unknown option 'Hsh'; did you mean 'Hash'?"),
            ("setoption name UCI_Variant value draughts", "option UCI_Variant: 'draughts' given"),
            ("flip", "unknown command 'flip'"),
        ]:
            answers = client.ask(line)
            assert len(answers) == 1
            assert answers[0].startswith("info string error: ") and problem in answers[0]
        assert best(client.ask("go nodes 3", until="bestmove")) == "a7a5"


def test_an_option_between_games_changes_the_search_only_where_it_must() -> None:
    with hello() as client:
        client.ask("position startpos")
        builder = client.builder
        assert isinstance(builder, FakeBuilder)
        client.ask(
            "setoption name Move Overhead value 100", "setoption name UCI_Variant value crazyhouse"
        )
        assert len(builder.searches) == 1
        client.ask("setoption name Centi_CPuct_Init value 300")
        assert len(builder.searches) == 2 and len(builder.settings) == 1
        assert builder.searches[-1].params.cpuct_init == 3.0
        client.ask("setoption name Model value other.onnx")
        assert len(builder.settings) == 2
        before = last_search(client).cleared
        client.ask("setoption name Clear Hash")
        assert last_search(client).cleared == before + 1


def test_names_of_variants_that_others_use_are_understood() -> None:
    with hello() as client:
        assert "variant three-check" in client.ask("setoption name UCI_Variant value 3check")[0]
        assert "variant crazyhouse" in client.ask("setoption name uci_variant value CrazyHouse")[0]


def test_perft() -> None:
    with hello() as client:
        lines = client.ask("position startpos", "go perft 2", until="Nodes")
        assert len(lines) == 22
        assert lines[0] == "a2a3: 20" and lines[-1] == "Nodes searched: 400"


def test_a_search_that_fails_still_answers_with_a_move() -> None:
    builder = FakeBuilder()
    builder.shape = {"fails": True}
    with hello(builder=builder) as client:
        lines = client.ask("position startpos", "go nodes 5", until="bestmove")
        assert "info string error: broken on purpose" in lines
        assert len(best(lines)) == 4
        assert client.ask() == []


@pytest.mark.parametrize(("go", "release"), [("infinite", "stop"), ("ponder", "ponderhit")])
def test_a_search_that_fails_waits_as_any_other(go: str, release: str) -> None:
    """An answer to `go infinite` or `go ponder` before the client allows it counts for another search."""
    builder = FakeBuilder()
    builder.shape = {"fails": True}
    with hello(builder=builder) as client:
        client.send("position startpos", f"go {go} wtime 1000 btime 1000")
        assert client.until("info") == ["info string error: broken on purpose"]
        assert client.silent(0.2)
        assert len(best(client.ask(release, until="bestmove"))) == 4


@pytest.mark.parametrize(
    ("moves", "go", "limited"),
    [
        ("", "wtime x", True),
        ("", "depth x", True),
        ("", "btime 1000", True),
        ("moves e2e4", "wtime 1000", True),
        ("moves e2e4", "wtime 1000 btime abc", True),
        ("moves e2e4", "wtime x btime 9000", False),
        ("", "nodes 5 foo", False),
    ],
)
def test_a_go_without_a_limit_for_the_side_to_move_is_limited(
    moves: str, go: str, limited: bool
) -> None:
    with hello() as client:
        client.ask(f"position startpos {moves}")
        lines = client.ask(f"go {go}", until="bestmove")
        reported = "info string error: go: no limit is left, so 800 nodes are searched"
        assert (reported in lines) == limited
        assert (last_search(client).limits[-1].nodes == 800) == limited


def test_pondering_without_a_clock_of_its_own_ends_after_the_ponder_hit() -> None:
    with hello() as client:
        client.send("position startpos", "go ponder btime 1000")
        assert client.until("info")[0].endswith("800 nodes are searched")
        client.ask("ponderhit", until="bestmove")


def test_a_drawn_position_has_a_score() -> None:
    """A search of it has no visits, but clients wait for an `info` line."""
    builder = FakeBuilder("chess")
    builder.shape = {"solved": True}
    with hello(builder=builder) as client:
        client.ask("position fen 8/8/8/4k3/8/8/4K3/8 w - - 0 1")
        *_, info, move = client.ask("go nodes 100", until="bestmove")
        assert "score cp 0 " in info and info.endswith(f"pv {best([move])}")


def test_scores_that_clients_trust() -> None:
    """`cp 0` with one move in the line only for a draw; mates in full moves."""
    builder = FakeBuilder()
    builder.shape = {"q": 0.0}
    with hello(builder=builder) as client:
        # after Kxg8 nothing is left to move: the line has one move, the score must not be 0
        client.ask("position fen 6rk/8/8/8/8/8/8/K7[] b - - 0 1")
        for mate, shown in ((5, "mate 3"), (-4, "mate -2"), (1, "mate 1")):
            last_search(client).mate = mate
            lines = client.ask("go nodes 3", until="bestmove")
            assert f"score {shown} " in lines[0]


def test_two_words_that_people_type() -> None:
    with hello() as client:
        drawn = client.ask("d")
        assert drawn[-1].startswith("info string fen rnbqkbnr/pppppppp")
        assert any(line.startswith("info string 1 ") for line in drawn)
        client.send("debug on", "go nodes 4")
        assert any("stopped by simulations" in line for line in client.until("bestmove"))


# --- the end -------------------------------------------------------------------------------------


def test_at_the_end_of_the_input_the_search_is_finished() -> None:
    client = Client()
    client.send("uci", "position startpos", "go nodes 50")
    client.end()
    lines = [client.lines.get_nowait() for _ in range(client.lines.qsize())]
    assert best(lines) == "a2a3"


def test_at_the_end_of_the_input_an_endless_search_is_stopped() -> None:
    for go in ("go infinite", "go", "go ponder wtime 99999 btime 99999"):
        client = Client()
        client.send("uci", "position startpos", go)
        client.end()
        lines = [client.lines.get_nowait() for _ in range(client.lines.qsize())]
        assert best(lines) == "a2a3"


def test_quit_during_a_search_prints_nothing() -> None:
    client = hello()
    client.ask("position startpos")
    client.send("go infinite")
    assert client.silent()
    client.send("quit")
    client.end()
    assert client.lines.empty()
    assert client.session.is_done


def answers_to(*given: str, cut_off: bool = False) -> list[str]:
    """Lines of a session that has read all lines of the client before it executes the first."""
    end, start = os.pipe()
    session = Session(Identity("Test 1", "Tests"), FakeBuilder(), LineWriter(start))
    for line in given:
        session.handle_line(InputLine(line, 0.0))
    if cut_off:
        session.leave()
    session.run([])
    assert session.is_done
    os.close(start)
    with os.fdopen(end) as pipe:
        found = pipe.read().splitlines()
    return found[found.index("uciok") + 1 :]


def test_quit_drops_waiting_searches_only() -> None:
    assert any("string fen" in line for line in answers_to("uci", "go nodes 5", "d"))
    waiting = ("uci", "d", "isready", "position startpos", "go nodes 5", "quit")
    answer = answers_to(*waiting)
    assert any("string fen" in line for line in answer)
    assert not any(line.startswith("bestmove") for line in answer)
    assert answers_to(*waiting, cut_off=True) == []


def test_too_much_that_waits_is_refused_but_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "MAX_WAITING", 40)
    answer = answers_to("uci", "position startpos", "position startpos moves e2e4", "go nodes 5")
    assert "too much is waiting" in answer[0]
    assert best(answer) == "a2a3"


# --- what is log of it --------------------------------------------------------------------------


def test_stalemates_of_the_module_are_positions() -> None:
    with hello("ucci") as client:
        assert client.ask(f"position fen {STALEMATE} - - 0 1") == []


@pytest.mark.parametrize("go", ["go movetime 1", "go wtime 60 btime 60"])
def test_a_move_without_time_is_the_first_choice_of_the_net(go: str) -> None:
    from variant_ai.core.engine.engine_builder import EngineBuilder
    from variant_ai.core.spec.catalogue import builtin_specs

    with hello(builder=EngineBuilder(builtin_specs(), "crazyhouse", registry)) as client:
        client.ask("isready", until="readyok")
        client.send("position startpos")
        without_time = best(client.ask(go, until="bestmove"))
        assert without_time == best(client.ask("go nodes 1", until="bestmove"))
        assert without_time == "e2e4", "and not the first of the list"


def test_a_wrong_model_gives_way_to_the_packaged_one_whatever_evaluator_was_named(
    tmp_path: Path,
) -> None:
    from variant_ai.core.engine.engine_builder import EngineBuilder
    from variant_ai.core.spec.catalogue import builtin_specs
    from variant_ai.plugins import registry

    log: list[str] = []
    builder = EngineBuilder(builtin_specs(), "crazyhouse", registry)
    settings = {
        "model": str(tmp_path / "gone.onnx"),
        "evaluator": "onnx",
        "device": "cpu",
        "precision": None,
        "threads": 1,
        "batch": 4,
    }
    evaluator = builder.evaluator(registry().variant("crazyhouse"), settings, log.append)
    assert evaluator.name != "uniform"
    assert any("crazyhouse/model.onnx instead" in text for text in log)


def test_a_model_that_cannot_be_used_is_named_and_the_game_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from protocol_client import model_file

    from variant_ai.core.engine.engine_builder import EngineBuilder
    from variant_ai.core.spec.catalogue import builtin_specs
    from variant_ai.plugins import registry

    log: list[str] = []
    monkeypatch.setattr(type(registry()), "net_paths", lambda *_: [tmp_path / "none.onnx"])
    builder = EngineBuilder(builtin_specs(), "crazyhouse", registry)
    settings = {
        "model": "",
        "evaluator": "auto",
        "device": "cpu",
        "precision": None,
        "threads": 1,
        "batch": 4,
    }
    spec = registry().variant("crazyhouse")
    evaluator = builder.evaluator(spec, settings, log.append)
    assert evaluator.name == "material"
    assert "none.onnx" in log[0] and "played without a net" in log[1]
    log.clear()
    broken = {**settings, "model": str(model_file(tmp_path))}
    assert builder.evaluator(spec, broken, log.append).name == "material"
    assert log[0].startswith("error: ") and "model.onnx" in log[0]


def test_a_variant_that_cannot_be_read_leaves_the_one_there_is(tmp_path: Path) -> None:
    builder = FakeBuilder()
    builder.files["broken"] = tmp_path / "broken.yaml"
    with hello(builder=builder) as client:
        (told,) = client.ask("setoption name UCI_Variant value broken")
        assert told.startswith("info string error: ") and "broken" in told
        client.ask("position startpos")
        assert best(client.ask("go nodes 5", until="bestmove")) == "a2a3"


def test_every_go_is_answered_even_without_a_board(tmp_path: Path) -> None:
    builder = FakeBuilder("broken")
    builder.files["broken"] = tmp_path / "broken.yaml"
    with hello(builder=builder) as client:
        assert client.ask("go nodes 5", until="bestmove")[-1] == "bestmove (none)"
        client.ask("setoption name UCI_Variant value crazyhouse", "position startpos")
        assert best(client.ask("go nodes 5", until="bestmove")) == "a2a3"


def test_presets_are_in_force_before_the_client_speaks() -> None:
    with Client() as client:
        client.session.preset("UCI_Variant", "3check")  # Fairy-Stockfish's name
        client.session.preset("usemillisec", "true")
        client.session.preset("debug", "true")
        assert client.session.options.text("UCI_Variant") == "three-check"
        assert client.session.debug
        client.send("ucci")
        client.until("ucciok")
        assert client.session.options.text("UCI_Variant") == "three-check"
        start = time.perf_counter()
        client.send("position startpos", "go time 300")
        client.until("bestmove")
        assert time.perf_counter() - start < 10


def test_a_hash_beyond_the_memory_is_made_smaller() -> None:
    class SmallMachine(FakeBuilder):
        def search(self, *given: Any) -> BaseSearch:
            if given[2].memory_mb > 3000:
                raise MemoryError("Unable to allocate")
            return super().search(*given)

    builder = SmallMachine()
    with hello(builder=builder) as client:
        told = client.ask("setoption name Hash value 1048576", "position startpos")
        told += client.ask("go nodes 5", until="bestmove")
        assert sum("memory for Hash" in line for line in told) == 1
        assert any("no memory for Hash 1048576; 2048 is used" in line for line in told)
        assert best(told) == "a2a3"
        assert builder.searches[-1].params.memory_mb == 2048


@pytest.mark.parametrize(("depth", "nodes"), [(0, 1), (1, 20), (3000, None)])
def test_perft_of_any_depth(depth: int, nodes: int | None) -> None:
    with hello() as client:
        client.ask("position startpos")
        client.send(f"go perft {depth}")
        if nodes is None:
            assert client.silent(0.3)
            client.send("stop")
            assert client.until("info") == ["info string perft was stopped"]
        else:
            assert client.until("Nodes")[-1] == f"Nodes searched: {nodes}"
        assert client.ask() == []


def test_uci_chess960_plays_the_sibling_with_shuffled_starts() -> None:
    fen = "r4k1r/8/8/8/8/8/8/R4K1R w KQkq - 0 1"
    with hello() as client:
        client.ask("setoption name UCI_Variant value chess")
        client.ask("setoption name UCI_Chess960 value true")
        assert client.ask(f"position fen {fen} moves f1h1") == []
        assert any("R4RK1 b ha - 1 1" in line for line in client.ask("d"))
        client.ask("setoption name UCI_Chess960 value false")
        refused = client.ask(f"position fen {fen} moves f1h1")
        assert any("illegal" in line for line in refused)


def test_a_spec_edited_between_games_is_played_by_its_new_rules(tmp_path: Path) -> None:
    from variant_ai.core.engine.engine_builder import EngineBuilder

    path = tmp_path / "my.yaml"

    def write(knight: str) -> None:
        path.write_text(
            f"extends: chess\nvariant: my\npieces: {{N: {{moves: {knight}}}}}\n", encoding="utf-8"
        )

    def first_moves() -> str:
        client.send("position startpos")
        return client.ask("go perft 1", until="Nodes")[-1]

    write("N")
    builder = EngineBuilder({"my": path}, "my", registry, given={"my": path})
    with hello(builder=builder) as client:
        assert first_moves() == "Nodes searched: 20"
        write("NA")
        assert first_moves() == "Nodes searched: 20", "the game goes on by its rules"
        client.send("ucinewgame")
        assert first_moves() == "Nodes searched: 22"
        write("nonsense")
        client.send("ucinewgame")
        assert first_moves() == "Nodes searched: 22", "a mistake changes nothing"
    assert "info string the spec of my was edited and read again" in client.heard
    assert any("unknown token 'o'" in line for line in client.heard)
