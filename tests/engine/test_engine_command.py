"""The program: its start, its end, and its imports before the handshake."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import chess.engine
import chess.variant
import pytest

from variant_ai.plugins import registry

ENGINE = [sys.executable, "-m", "variant_ai.cli.play.engine"]
HEAVY = {
    "numpy",
    "torch",
    "pydantic",
    "numba",
    "onnxruntime",
    "openvino",
    "pyffish",
    "ruamel",
    "rich",
}


def start(*args: str, **environ: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*ENGINE, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "VARIANT_AI_PLUGINS": "", **environ},
    )


def talk(text: str, *args: str) -> list[str]:
    process = start(*args)
    out, _ = process.communicate(text.encode(), timeout=120)
    assert process.returncode == 0
    return out.decode().splitlines()


def test_nothing_heavy_is_imported_before_the_handshake() -> None:
    code = (
        "import os, sys\n"
        "from variant_ai.cli.play import engine\n"
        "from variant_ai.core.engine.session import Session\n"
        "greet = Session._greet\n"
        "def spy(self):\n"
        "    greet(self)\n"
        "    sys.stderr.write(' '.join(sys.modules))\n"
        "    sys.stderr.flush()\n"
        "    os._exit(0)\n"
        "Session._greet = spy\n"
        "sys.argv = ['engine']\n"
        "engine.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=b"uci\n",
        capture_output=True,
        check=True,
        env={**os.environ, "VARIANT_AI_PLUGINS": ""},
    )
    assert done.stdout.endswith(b"uciok\n")
    loaded = {name.split(".")[0] for name in done.stderr.decode().split()}
    assert not loaded & HEAVY
    assert "variant_ai.plugins" not in done.stderr.decode().split()


def test_the_first_word_chooses_the_protocol() -> None:
    assert talk("uci\nquit\n")[-1] == "uciok"
    lines = talk("ucci\nquit\n")
    assert lines[-2:] == ["ucciok", "bye"]


def test_no_argument_is_needed_and_every_variant_is_offered() -> None:
    lines = talk("uci\nquit\n")
    variants = next(line for line in lines if "UCI_Variant" in line)
    assert " var crazyhouse " in variants + " " and " var xiangqi" in variants
    assert len(variants.split(" var ")) > 2 and variants == variants.lower().replace(
        "uci_variant", "UCI_Variant"
    )


def test_a_spec_file_is_a_variant(tmp_path: Path) -> None:
    from variant_ai.core.spec.catalogue import builtin_specs

    text = (
        builtin_specs()["minixiangqi"].read_text().replace("variant: minixiangqi", "variant: mine")
    )
    path = tmp_path / "another-name.yaml"
    path.write_text(text)
    lines = talk("uci\nposition startpos\nd\nisready\nquit\n", "--variant", str(path))
    assert any("default mine " in line for line in lines)
    assert not any("var another-name" in line for line in lines)


def test_what_was_asked_before_quit_is_answered() -> None:
    lines = talk(
        "uci\nposition startpos moves e2e4\nd\nisready\ngo infinite\nquit\n", "-V", "chess"
    )
    board = lines[lines.index("uciok") + 1 :]
    assert any("4P3" in line for line in board)
    # the search may have begun before `quit` was read, and say that there is no net
    assert [line for line in board if not line.startswith("info")][-1] == "readyok"
    lines = talk("ucci\nisready\nquit\n")  # on a busy machine it adds that it will measure again
    assert [line for line in lines if not line.startswith("info")][-2:] == ["readyok", "bye"]


def test_names_that_clients_have_for_variants_are_listed() -> None:
    """python-chess sends only what a combo lists, and it calls three-check 3check."""
    board = chess.variant.ThreeCheckBoard()
    with chess.engine.SimpleEngine.popen_uci(ENGINE) as engine:
        played = engine.play(board, chess.engine.Limit(nodes=1))
    assert played.move in board.legal_moves


def test_a_protocol_of_a_plugin_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "talking.py").write_text(
        "from variant_ai.plugins import API_VERSION, ProtocolEntry, hookimpl\n"
        "variant_ai_api = API_VERSION\n"
        "@hookimpl\n"
        "def register_protocols():\n"
        "    return [ProtocolEntry('mine-talk', 'variant_ai.core.engine.protocols.uci:Uci')]\n"
    )
    info = tmp_path / "talking-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: talking\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[variant_ai]\ntalking = talking\n")
    done = subprocess.run(
        [*ENGINE, "--protocol", "mine-talk"],
        input=b"uci\nquit\n",
        capture_output=True,
        check=False,
        env={**os.environ, "VARIANT_AI_PLUGINS": "talking", "PYTHONPATH": str(tmp_path)},
    )
    assert b"uciok" in done.stdout, done.stderr.decode()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--variant", "xianqi"], "did you mean 'xiangqi'"),
        (["--variant", "none.yaml"], "there is no such file"),
        (["--protocol", "telepathy"], "telepathy"),
        (["--option", "Hash"], "is not NAME=VALUE"),
        (["--option", "Hash=lots"], "given, expected a whole number"),
        (["--log-protocol", "/nowhere/at/all.log"], "there is no folder /nowhere/at"),
    ],
)
def test_wrong_arguments_are_named(args: list[str], message: str) -> None:
    done = subprocess.run([*ENGINE, *args], input=b"", capture_output=True, check=False)
    assert done.returncode in (1, 2)
    assert message in done.stderr.decode()


@pytest.mark.skipif(os.name == "nt", reason="signals of a terminal")
def test_ctrl_c_ends_it_without_output() -> None:
    process = start()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"uci\n")
    process.stdin.flush()
    while process.stdout.readline().strip() != b"uciok":
        pass
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b"" and b"Traceback" not in err


def test_a_closed_pipe_ends_it_without_output() -> None:
    process = start()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"uci\n")
    process.stdin.flush()
    while process.stdout.readline().strip() != b"uciok":
        pass
    process.stdout.close()
    process.stdin.write(b"isready\nxyzzy\n")
    process.stdin.flush()
    process.stdin.close()
    assert process.wait(60) == 0
    assert process.stderr is not None
    with process.stderr as pipe:
        assert b"Traceback" not in pipe.read()


def test_a_log_can_be_replayed(tmp_path: Path) -> None:
    log = tmp_path / "game.log"
    first = talk("uci\nxyzzy\nquit\n", "--log-protocol", str(log))
    assert " < uci" in log.read_text()
    again = talk("", "--replay", str(log))
    assert again == first
    process, kept = start("--replay", str(log), "--log-protocol", str(log)), log.read_text()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "is the log to replay" in err.decode()
    assert log.read_text() == kept


def test_a_missing_model_ends_the_start_with_status_1(tmp_path: Path) -> None:
    missing = tmp_path / "none.onnx"
    process = start("-V", "xiangqi", "--model", str(missing))
    out, err = process.communicate(b"uci\nquit\n", timeout=60)
    assert process.returncode == 1 and out == b""
    assert f"{missing}: there is no such file" in err.decode()


def test_a_net_of_another_variant_is_reported_and_the_usual_one_plays() -> None:
    other = registry().net(registry().variant("crazyhouse"), Path("packaged"))
    text = f"uci\nsetoption name Model value {other}\nisready\nposition startpos\ngo nodes 5\n"
    lines = talk(text, "-V", "xiangqi")
    (error,) = [line for line in lines if "error: " in line]
    assert error.startswith("info string error: ") and "crazyhouse, not for xiangqi" in error
    assert any("info string playing with " in line for line in lines)
    assert lines[-1].startswith("bestmove ")
