"""The UCI client: what it reads, and what it does about engines that misbehave."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from variant_ai.core.arena.programs import engine_process
from variant_ai.core.arena.programs.engine_process import (
    ProgramAnswer,
    command_words,
    engine_command,
)
from variant_ai.core.arena.programs.uci_client import UciClient, parse_option
from variant_ai.core.errors import EngineError

FAKE = Path(__file__).with_name("fake_engine.py")
FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
GO = {"nodes": 10}


def fake(mode: str, timeout: float = 10.0, **options: str) -> UciClient:
    return UciClient([sys.executable, str(FAKE), mode], timeout=timeout, options=options)


def searched(engine: UciClient, timeout: float = 10, moves: Sequence[str] = ()) -> ProgramAnswer:
    engine.send(engine.position_line(FEN, moves))
    return engine.search(GO, timeout)


def alive(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text(encoding="utf-8").split()[2] != "Z"


def test_handshake_reads_name_and_options() -> None:
    with fake("good") as engine:
        assert engine.name == "Fake Engine 1.0"
        assert set(engine.options) == {"hash", "clear hash", "uci_variant"}
        choices = engine.options["uci_variant"].choices
        assert choices == ("chess", "xiangqi", "crazyhouse", "tic tac toe")


@pytest.mark.parametrize(
    ("line", "name", "kind", "default", "choices"),
    [
        ("option name Hash type spin default 16 min 1 max 9", "Hash", "spin", "16", ()),
        ("option name Clear Hash type button", "Clear Hash", "button", "", ()),
        ("option name Book File type string default a b c", "Book File", "string", "a b c", ()),
        ("option name Book type string default", "Book", "string", "", ()),
        ("option name Log file name type string default x", "Log file name", "string", "x", ()),
        ("option name max var type spin default 3", "max var", "spin", "3", ()),
        ("option name V type combo default a b var a b var c", "V", "combo", "a b", ("a b", "c")),
    ],
)
def test_option_lines(
    line: str, name: str, kind: str, default: str, choices: tuple[str, ...]
) -> None:
    option = parse_option(line)
    assert option is not None
    assert (option.name, option.kind, option.default, option.choices) == (
        name,
        kind,
        default,
        choices,
    )


@pytest.mark.parametrize("line", ["option", "option nonsense", "option name X", "option type spin"])
def test_option_lines_that_say_nothing(line: str) -> None:
    assert parse_option(line) is None


def test_a_search_gives_move_score_and_line() -> None:
    with fake("scores") as engine:
        answer = searched(engine)
    assert answer.move == "e2e4"
    # the bound at depth 3 does not replace the score before it
    assert (answer.score, answer.mate, answer.depth, answer.nodes) == (None, -3, 2, 20)
    found = [(line.move, line.score, line.mate) for line in answer.candidates]
    # the move of the bound was cut off before it had a score
    assert found == [("a2a3", 99, None), ("d2d4", 8, None)]


def test_candidates_after_an_iteration_that_was_cut_off() -> None:
    with fake("candidates") as engine:
        answer = searched(engine)
    found = [(line.move, line.score, line.depth) for line in answer.candidates]
    # d2d4 became the best, c2c4 has the score of the depth before
    assert found == [("d2d4", 15, 3), ("e2e4", 11, 3), ("c2c4", 5, 2)]
    assert (answer.move, answer.score) == ("d2d4", 15)


def test_score_and_line_may_come_apart() -> None:
    with fake("parts") as engine:
        answer = searched(engine)
    assert (answer.score, answer.depth, answer.nodes) == (-910, 6, 99)
    assert answer.candidates == ()


def test_moves_reach_the_engine() -> None:
    with fake("echo") as engine:
        assert searched(engine, moves=("e2e4", "e7e5")).move == "2"


@pytest.mark.parametrize("mode", ["no-move", "nonsense"])
def test_no_move(mode: str) -> None:
    with fake(mode) as engine:
        answer = searched(engine)
    assert answer.move is None


def test_options_in_any_case_are_set_at_the_start() -> None:
    with fake("good", hash="1", UCI_VARIANT="xiangqi") as engine:
        engine.ready()
        deadline = time.monotonic() + 5
        while len(engine._stderr) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert list(engine._stderr) == ["set Hash to 1", "set UCI_Variant to xiangqi"]


def test_options_that_only_some_engines_have() -> None:
    soft = {"Hash": "1", "No Such Option": "1"}
    with UciClient([sys.executable, str(FAKE), "good"], soft_options=soft) as engine:
        assert engine.running


OWN_VARIANTS = """
import sys
variants = "var chess"
for line in sys.stdin:
    if line == "uci\\n":
        print("option name VariantPath type string default")
        print("option name UCI_Variant type combo default chess", variants, flush=True)
        print("uciok", flush=True)
    elif "VariantPath" in line:
        variants += " var mine"
    elif line == "isready\\n":
        print("readyok", flush=True)
    elif line == "quit\\n":
        break
"""


def test_variants_of_a_file_can_be_chosen() -> None:
    """As with Fairy-Stockfish, which names them in the answer to a second `uci`."""
    command = [sys.executable, "-c", OWN_VARIANTS]
    with UciClient(command, options={"variantpath": "variants.ini"}) as engine:
        engine.set_variant("mine")
    with UciClient(command) as engine, pytest.raises(EngineError, match="'mine'"):
        engine.set_variant("mine")


def test_unknown_options_and_values_say_what_there_is() -> None:
    with fake("good") as engine:
        with pytest.raises(EngineError, match="did you mean 'Hash'"):
            engine.set_option("Hush", "1")
        with pytest.raises(EngineError, match="did you mean 'xiangqi'"):
            engine.set_variant("xianqi")


def test_an_engine_of_one_variant_is_believed() -> None:
    with fake("one-variant") as engine:
        engine.set_variant("xiangqi")
        assert searched(engine).move is not None


# --- misbehaviour --------------------------------------------------------------------------------


def test_death_is_told_with_status_and_last_words() -> None:
    with fake("dies") as engine:
        with pytest.raises(EngineError, match=r"Fake Engine 1.0 died \(exit status 7\).*of ideas"):
            searched(engine)
        assert not engine.running
        engine.start()
        assert engine.running


def test_death_at_the_start() -> None:
    with pytest.raises(EngineError, match="died"):
        fake("dead").start()


def test_a_hanging_engine_is_killed_in_time() -> None:
    with fake("hangs") as engine:
        pid = engine.pid
        with pytest.raises(EngineError, match="hangs: no 'bestmove'"):
            searched(engine, 0.3)
        assert not engine.running
        assert pid is not None and not alive(pid)


def test_an_engine_that_never_says_uciok() -> None:
    engine = fake("mute", timeout=0.3)
    with pytest.raises(EngineError, match="hangs: no 'uciok'"):
        engine.start()
    assert not engine.running


def test_an_engine_that_writes_without_end_is_killed_in_time() -> None:
    with fake("floods") as engine:
        began = time.monotonic()
        with pytest.raises(EngineError, match="hangs: no 'bestmove'"):
            engine.search(GO, 0.2, 0.2)
        assert time.monotonic() - began < 10
    with pytest.raises(EngineError, match="hangs: no 'uciok'"):
        fake("babbles", timeout=0.3).start()


def test_lines_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "MOST_LINES", 500)
    with fake("floods") as engine:
        engine.send("go")  # and nobody reads, as in the other side's turn
        time.sleep(0.3)
        assert engine._lines.qsize() == 500


def test_a_search_that_has_to_hurry() -> None:
    with fake("late", timeout=30) as engine:
        engine.send(engine.position_line(FEN, ()))
        threading.Timer(0.2, engine.hurried.set).start()
        answer = engine.search(GO, 30, 3)
    assert answer.move is not None
    assert not answer.late


def test_an_engine_that_does_not_quit_is_ended() -> None:
    engine = fake("stubborn")
    engine.start()
    pid = engine.pid
    engine.close()
    assert pid is not None and not alive(pid)


def test_kill_while_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another thread does that has seen a game fail."""
    client = fake("good")
    begin = threading.Thread.start

    def killed_first(thread: threading.Thread) -> None:
        client.kill()
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", killed_first)
    with pytest.raises(EngineError):
        client.start()
    assert not client.running


def test_kill_from_another_thread_ends_a_search() -> None:
    with fake("hangs") as engine:
        threading.Timer(0.2, engine.kill).start()
        with pytest.raises(EngineError):
            searched(engine, 30)


def test_a_closed_engine_cannot_be_asked() -> None:
    engine = fake("good")
    with pytest.raises(EngineError, match="not running"):
        engine.new_game()


@pytest.mark.skipif(os.name == "nt", reason="shell scripts of POSIX")
def test_children_of_a_wrapper_script_end_with_it(tmp_path: Path) -> None:
    script = tmp_path / "wrapper"
    script.write_text(
        f"#!/bin/sh\n{sys.executable} {FAKE} hangs & echo $! > {tmp_path}/pid\nwait\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    engine = UciClient([str(script)], timeout=0.5)
    # a background process of a shell has no standard input, so the engine says nothing
    with pytest.raises(EngineError):
        engine.start()
    child = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(child)


# --- finding engines -----------------------------------------------------------------------------


def test_a_command_may_have_arguments() -> None:
    command = engine_command(f"{sys.executable} -u 'a file'")
    assert command == [sys.executable, "-u", "a file"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("'unclosed", "cannot parse"),
        ("no-such-engine-at-all", "'no-such-engine-at-all' is not a program"),
        ("/no/such/file", "'/no/such/file' is not a program"),
    ],
)
def test_commands_that_cannot_be_run(text: str, reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        engine_command(text)


@pytest.mark.parametrize(
    ("text", "windows", "words"),
    [
        ('"C:\\Program Files\\sf.exe" --x="a b"', True, ["C:\\Program Files\\sf.exe", "--x=a b"]),
        ("C:\\sf.exe 'a b' #1", True, ["C:\\sf.exe", "a b", "#1"]),
        ("sjaakii -uci 'a b' c\\ d", False, ["sjaakii", "-uci", "a b", "c d"]),
    ],
)
def test_commands_are_split_into_words(text: str, windows: bool, words: list[str]) -> None:
    assert command_words(text, windows=windows) == words


@pytest.mark.skipif(os.name == "nt", reason="its program is a shell script")
def test_engines_in_the_games_folder_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "my-engine"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(
        "variant_ai.core.arena.programs.engine_process.GAMES_FOLDERS",
        (str(tmp_path),),
        raising=True,
    )
    assert engine_command("my-engine") == [str(program)]


def test_a_program_that_is_none(tmp_path: Path) -> None:
    program = tmp_path / "text"
    program.write_text("not a program")
    program.chmod(0o755)
    with pytest.raises(EngineError, match="cannot be started"):
        UciClient([str(program)]).start()
