"""Signals at any moment: one line of output, exit status 130, and commands can save their work."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from variant_ai.core.system import interrupts
from variant_ai.core.system.interrupts import SIGNALS, TOGETHER, stop_on_signal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
NAMES = ["SIGINT", "SIGTERM", "SIGHUP"]


@pytest.fixture(autouse=True)
def forget_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals of these tests do not count for commands that later tests call in this process."""
    monkeypatch.setattr(interrupts._program, "interrupts", 0)
    monkeypatch.setattr(interrupts._program, "latest", -TOGETHER)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_signal_only_asks(name: str) -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    called = []
    with stop_on_signal() as interrupt:
        interrupt.stops.append(lambda: called.append(interrupt()))
        assert not interrupt()
        signal.raise_signal(getattr(signal, name))
        assert interrupt()
        assert called == [True]
        signal.raise_signal(getattr(signal, name))  # within a second: counts as the same signal
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_second_signal_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with stop_on_signal() as interrupt:
        signal.raise_signal(signal.SIGTERM)
        now += TOGETHER + 0.1
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert interrupt()


def test_a_request_reaches_the_outer_context_at_the_end_of_the_inner_one() -> None:
    told: list[str] = []
    with stop_on_signal() as outer:
        outer.stops.append(lambda: told.append("outer"))
        with stop_on_signal() as inner:
            signal.raise_signal(signal.SIGINT)
            assert inner() and not outer()
        assert outer() and told == ["outer"]
    with stop_on_signal() as outer:
        with stop_on_signal():
            pass
        assert not outer()


def test_other_threads_are_not_asked() -> None:
    requested = []

    def work() -> None:
        with stop_on_signal() as interrupt:
            requested.append(interrupt())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert requested == [False]


# --- programs ------------------------------------------------------------------------------------


def program(code: str) -> subprocess.Popen[str]:
    """Start a program that handles signals, and wait until it has printed a line."""
    head = (
        "import signal, sys, time\n"
        "from variant_ai.cli.common.ending import run_script\n"
        "from variant_ai.core.system.interrupts import stop_on_signal\n"
        "def main():\n"
    )
    body = "".join(f"    {line}\n" for line in code.splitlines())
    process = subprocess.Popen(
        [sys.executable, "-c", f"{head}{body}run_script(main)"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("name", NAMES)
def test_signals_do_what_ctrl_c_does(name: str) -> None:
    process = program(
        "try:\n    print('ready', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('saved'); raise"
    )
    process.send_signal(getattr(signal, name))
    assert outcome(process) == (130, "saved\n", "Interrupted.\n")


def test_two_signals_of_a_closing_terminal_are_one() -> None:
    process = program(
        "try:\n    print('ready', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    signal.raise_signal(signal.SIGHUP); print('saved'); raise"
    )
    process.send_signal(signal.SIGHUP)
    assert outcome(process) == (130, "saved\n", "Interrupted.\n")


def test_later_signals_end_what_does_not_end() -> None:
    process = program(
        "with stop_on_signal():\n"
        "    print('ready', flush=True)\n"
        "    while True:\n"
        "        try: time.sleep(60)\n"
        "        except KeyboardInterrupt: pass"
    )
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
    assert outcome(process) == (130, "", "Interrupted.\n")


def test_an_interrupt_in_the_middle_of_an_import_waits_for_its_end(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\n"
        "try:\n    print('ready', flush=True); time.sleep(0.3); print('whole', flush=True)\n"
        "except BaseException: print('broken', flush=True)\n"
    )
    process = program(f"sys.path.insert(0, {str(tmp_path)!r})\nimport slow\ntime.sleep(60)")
    process.send_signal(signal.SIGINT)
    assert outcome(process) == (130, "whole\n", "Interrupted.\n")


def test_an_interrupt_that_compiled_code_swallows_comes_again() -> None:
    process = program(
        "import ctypes\n"
        "def back(): print('ready', flush=True); time.sleep(60)\n"
        "ctypes.CFUNCTYPE(None)(back)()\n"
        "time.sleep(60)"
    )
    process.send_signal(signal.SIGINT)
    assert outcome(process) == (130, "", "Interrupted.\n")


def test_an_odd_error_that_comes_of_an_interrupt_is_one() -> None:
    process = program(
        "try:\n    print('ready', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt: raise SystemError('callback failed')"
    )
    process.send_signal(signal.SIGINT)
    assert outcome(process) == (130, "", "Interrupted.\n")


def test_nohup_keeps_its_meaning() -> None:
    code = (
        "import signal\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from variant_ai.core.system.interrupts import answer_signals\n"
        "answer_signals()\n"
        "signal.raise_signal(signal.SIGHUP)\n"
        "print('alive')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n")


def at_random_moments(words: Sequence[str], span: float, tries: int) -> None:
    """Send Ctrl-C while the command starts, after the start of the interpreter itself."""
    chance = random.Random(str(words))
    entry = "import os; os.write(1, b'.'); from variant_ai.cli.program import main; main()"
    for _ in range(tries):
        process = subprocess.Popen(
            [sys.executable, "-c", entry, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.read(1) == "."
        at = chance.uniform(0.03, span)
        time.sleep(at)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        # it may have begun to compile
        said = [line for line in err.splitlines() if line and not line.startswith("compiling")]
        assert (process.returncode, said) == (130, ["Interrupted."]), f"after {at} s"


@pytest.mark.slow
def test_ctrl_c_at_random_moments_of_the_start() -> None:
    at_random_moments(["perft", "-V", "crazyhouse", "--depth", "9"], 1.5, 6)


def test_ctrl_c_ends_a_check_in_a_child_at_once() -> None:
    """The child of `spec check` and `spec derive` does not finish its work first."""
    process = program(
        "from variant_ai.core.testing.rules_conformance import in_child\n"
        "print('ready', flush=True)\n"
        "in_child(time.sleep, 10_000)"
    )
    time.sleep(3)  # until the child sleeps
    process.send_signal(signal.SIGINT)
    assert outcome(process) == (130, "", "Interrupted.\n")
