"""Programs beside the commands end as commands do."""

from __future__ import annotations

import atexit
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from variant_ai.cli.common.ending import EXIT_ERROR, EXIT_INTERRUPTED, run_script
from variant_ai.core.errors import DataError
from variant_ai.core.system import interrupts

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def own_program(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what a program does to its process: with these handlers, a signal in a later
    test would end the whole test run."""
    before = {number: signal.getsignal(number) for number in interrupts.SIGNALS}
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(interrupts, "_program", interrupts._Program())
    yield
    atexit.unregister(interrupts._ignore_signals)
    for number, handler in before.items():
        signal.signal(number, handler)


def ended(error: BaseException | None, returned: int | None = None) -> object:
    """Exit status of a program that raises or returns this."""

    def main() -> int | None:
        if error is not None:
            raise error
        return returned

    with pytest.raises(SystemExit) as end:
        run_script(main)
    return end.value.code


def test_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(None) == 0
    assert ended(None, 3) == 3
    assert ended(KeyboardInterrupt()) == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "Interrupted.\n"
    assert ended(DataError("a.store: is empty")) == EXIT_ERROR
    assert "a.store: is empty" in capsys.readouterr().err
    assert ended(FileNotFoundError(2, "No such file or directory", "b.pgn")) == EXIT_ERROR
    assert "b.pgn: No such file or directory" in capsys.readouterr().err


def test_signals_are_answered_until_the_end() -> None:
    assert ended(None) == 0
    assert signal.getsignal(signal.SIGTERM) == interrupts._program.answer
    assert interrupts._program.age == "over"


def test_errors_of_the_program_keep_their_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        run_script(lambda: 1 // 0)


def test_a_benchmark_of_no_such_variant() -> None:
    if not BENCHMARKS.is_dir():
        pytest.skip("needs the folder benchmarks/ of the sources")
    script = BENCHMARKS / "evaluators.py"
    done = subprocess.run(
        [sys.executable, script, "--variant", "nosuch"], capture_output=True, text=True, check=False
    )
    assert done.returncode == EXIT_ERROR
    assert "nosuch" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_and_ctrl_c_leave_no_traceback() -> None:
    program = (
        "import sys; from variant_ai.cli.common.ending import run_script\n"
        "def main():\n"
        "    if sys.argv[1] == 'ctrl-c': raise KeyboardInterrupt\n"
        "    sys.stdin.read()\n"
        "    print('more than fits' * 100000)\n"
        "run_script(main)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, "pipe"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdin and running.stdout and running.stderr
        running.stdout.close()
        running.stdin.close()
        said = running.stderr.read()
    assert (running.returncode, said) == (EXIT_ERROR, b"")
    done = subprocess.run(
        [sys.executable, "-c", program, "ctrl-c"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (EXIT_INTERRUPTED, "Interrupted.\n")
