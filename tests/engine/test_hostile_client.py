"""A thousand lines and more of a client that sends anything; benchmarks/hostile_client.py sends more."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest
from protocol_client import FakeBuilder, hello

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "hostile_client.py"
LINES = 1500


@pytest.fixture(scope="module")
def hostile() -> ModuleType:
    if not SCRIPT.is_file():
        pytest.skip("needs the folder benchmarks/ of the sources")
    spec = importlib.util.spec_from_file_location("hostile_client", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hostile_client"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("first", ["uci", "ucci"])
def test_nothing_a_client_sends_ends_the_engine(hostile: ModuleType, first: str) -> None:
    draw = random.Random(7)
    wanted = 0
    client = hello(first, builder=FakeBuilder())
    for number, line in enumerate(hostile.commands(draw, long_lines=False)):
        if number == LINES:
            break
        perft = line.split()[:2] == [b"go", b"perft"]
        wanted += hostile.asks_for(line, "go") and not perft
        client.send_bytes(line + b"\n")
        if number % 250 == 249:
            client.send_bytes(b"stop\nisready\n")
    client.send("stop", "setoption name UCI_Variant value xiangqi", "position startpos")
    client.send("go nodes 5")
    client.end()
    heard = client.heard
    while not client.lines.empty():
        heard.append(client.lines.get_nowait())
    assert not [line for line in heard if "internal" in line]
    moves = [line for line in heard if line.split()[:1] in (["bestmove"], ["nobestmove"])]
    assert moves[-1].startswith("bestmove a")
    if first == "uci":  # in UCCI an idle stop is answered with nobestmove too
        assert len(moves) == wanted + 1
    assert client.session.is_done


def test_a_command_that_is_too_long_is_not_waited_for(hostile: ModuleType) -> None:
    """The engine refuses it with a message: what it would have answered never comes."""
    long = b"isready" + b" e2e4" * (1 << 18)
    assert hostile.asks_for(b"isready e2e4", "isready")
    assert not hostile.asks_for(long, "isready") and not hostile.asks_for(b"go", "isready")
    client = hello("uci", builder=FakeBuilder())
    client.send_bytes(long + b"\n")
    assert client.ask("isready") == [client.heard[-2]]
    assert "was not read" in client.heard[-2]
    client.send("quit")
    client.end()
