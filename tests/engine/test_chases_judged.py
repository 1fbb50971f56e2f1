"""When the judge of chases is loaded: not while a client waits, nor with seconds left."""

from __future__ import annotations

import pytest
from protocol_client import FakeWorkshop, hello


@pytest.mark.parametrize(
    ("go", "loaded"),
    [
        ("go wtime 60000 btime 60000", True),
        ("go nodes 20", True),
        ("go wtime 1000 btime 60000 winc 10 binc 10", False),
        ("go movetime 20", False),
    ],
)
def test_the_judge_comes_after_the_first_move_if_there_is_time(go: str, loaded: bool) -> None:
    workshop = FakeWorkshop("xiangqi")
    with hello("uci", workshop) as client:
        client.ask("setoption name UCI_Variant value xiangqi")
        assert not workshop.searches[-1].judges_chases
        client.ask("position startpos", go, until="bestmove")
        client.ask("isready")
        assert workshop.searches[-1].judges_chases == loaded
