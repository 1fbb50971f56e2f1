"""Whole conversations in UCCI and UCI-cyclone."""

from __future__ import annotations

import pytest
from protocol_client import Client, FakeBuilder, best, hello, last_search

XIANGQI = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR"


def test_a_game_as_a_ucci_bridge_plays_it() -> None:
    """Options of UCI among those of UCCI, an empty list of moves, ranks from 0."""
    with hello("ucci") as client:
        assert client.ask(
            "setoption hashsize 68",
            "setoption name UCI_Variant value chess",
            "setoption name UCI_Variant value xiangqi",
            "ucinewgame",
            "setoption usemillisec true",
            "setoption whatever 7",
            f"position fen {XIANGQI} w - - 0 1 moves",
        )[-1].startswith("info message variant xiangqi files 9 ranks 10")
        lines = client.ask("go time 9000 opptime 9000 oppincrement 0 increment 0", until="bestmove")
        assert lines[-1] == "bestmove a0a1 ponder a9a7"
        assert lines[-2].startswith("info depth") and " score 75 pv a0a1 a9a7" in lines[-2]
        assert client.ask(f"position fen {XIANGQI} w - - 0 1 moves h2e2 h9g7") == []
        assert best(client.ask("go depth 2", until="bestmove")) == "a0a1"


def test_words_of_ucci() -> None:
    with hello("ucci") as client:
        client.ask("position startpos")
        client.send("stop")
        assert client.line() == "nobestmove"
        assert client.ask("go depth 0", until="nobestmove")[-2:] == [
            "info depth 0 score 0",
            "nobestmove",
        ]
        client.send("probe startpos")
        assert client.line() == "pophash"
        client.ask("go nodes 15", until="bestmove")
        client.send("probe startpos", "probe startpos moves h2e2", "probe fen nonsense")
        assert client.line() == (
            "pophash bestmove a0a1 lowerbound 75 depth 2 upperbound 75 depth 2"
        )
        assert client.line() == "pophash"
        assert client.line().startswith("info message error: ")
        client.ask("position startpos moves h2e2")
        client.send("probe startpos moves h2e2")  # not searched, though it is on the board
        assert client.line() == "pophash"
        client.send("quit")
        assert client.line() == "bye"


def test_batch_counts_from_the_next_line_on() -> None:
    """A `go` right behind the option must not stop the search before it."""
    with hello("ucci") as client:
        client.ask("position startpos")
        client.send("setoption batch true", "go nodes 40", "go nodes 30")
        for nodes in (40, 30):
            lines = client.until("bestmove")
            assert any(f"nodes {nodes}" in line for line in lines), lines


def test_banned_moves_are_not_played() -> None:
    with hello("ucci") as client:
        client.ask("position startpos", "banmoves a0a1 a0a2")
        assert best(client.ask("go nodes 5", until="bestmove")) == "a3a4"
        client.ask("position startpos moves")
        assert best(client.ask("go nodes 5", until="bestmove")) == "a0a1"


def test_draws_are_accepted_without_winning_chances() -> None:
    builder = FakeBuilder()
    builder.shape = {"q": -0.1}
    with hello("ucci", builder=builder) as client:
        client.ask("position startpos")
        assert client.ask("go draw nodes 3", until="bestmove")[-1].endswith(" draw")
        assert not client.ask("go nodes 3", until="bestmove")[-1].endswith(" draw")
        client.send("go ponder time 10")
        assert client.silent()
        assert client.ask("ponderhit draw", until="bestmove")[-1].endswith(" draw")
        last_search(client).q = 0.1
        assert not client.ask("go draw nodes 3", until="bestmove")[-1].endswith(" draw")


def test_lost_games_are_resigned_after_three_moves() -> None:
    builder = FakeBuilder()
    builder.shape = {"q": -0.99}
    with hello("ucci", builder=builder) as client:
        client.ask("position startpos")
        ends = [client.ask("go nodes 3", until="bestmove")[-1].split()[-1] for _ in range(4)]
        assert ends[2:] == ["resign", "resign"] and "resign" not in ends[:2]
        client.ask("setoption newgame")
        assert not client.ask("go nodes 3", until="bestmove")[-1].endswith("resign")
        client.ask("setoption resign 0")
        for _ in range(4):
            assert not client.ask("go nodes 3", until="bestmove")[-1].endswith("resign")


def test_ponder_searches_without_a_hit_do_not_count_as_moves() -> None:
    builder = FakeBuilder()
    builder.shape = {"q": -0.99}
    with hello("ucci", builder=builder) as client:
        client.ask("position startpos")
        for _ in range(3):
            client.send("go ponder nodes 3")
            assert client.silent(0.1)
            client.ask("stop", until="bestmove")
        ends = [client.ask("go nodes 3", until="bestmove")[-1].split()[-1] for _ in range(3)]
        assert ends[2] == "resign" and "resign" not in ends[:2]


def test_in_batch_mode_searches_wait_for_each_other() -> None:
    with hello("ucci") as client:
        client.ask("setoption batch true", "position startpos")
        client.send("go nodes 30", "position startpos moves h2e2", "go nodes 30")
        first, second = client.until("bestmove"), client.until("bestmove")
        assert (best(first), best(second)) == ("a0a1", "a9a7")
        assert "nodes 30" in first[-3] and "nodes 30" in second[-3]


@pytest.mark.parametrize("go", ["go depth 3", "go depth 0"])
def test_stalemate_is_lost_where_the_spec_says_so(go: str) -> None:
    with hello("ucci") as client:
        lines = client.ask(
            "position fen 3k5/4P4/9/9/9/9/9/9/9/4K4 b - - 0 1", go, until="nobestmove"
        )
        assert lines == ["info depth 0 score -30000", "nobestmove"]


# --- cyclone -------------------------------------------------------------------------------------


def test_a_bare_fen_switches_to_cyclone_even_after_uci_variant() -> None:
    with hello() as client:
        client.send("uci")
        client.until("uciok")
        client.ask("setoption name UCI_Variant value xiangqi", "ucinewgame")
        assert client.ask(f"fen {XIANGQI} r moves h2e2") == []
        assert client.ask("go wtime 1000 btime 1000", until="bestmove")[-1] == (
            "bestmove a9a7 ponder a0a1"
        )


def test_a_bare_fen_alone_means_the_variant_that_speaks_cyclone() -> None:
    for line in (f"fen {XIANGQI} w - - 0 1 moves h2e2", "startpos moves h2e2"):
        with hello() as client:
            assert client.ask(line) == []
            assert best(client.ask("go nodes 4", until="bestmove")) == "a9a7"


def test_a_rejected_bare_fen_changes_neither_protocol_nor_variant() -> None:
    with hello() as client:
        client.ask("setoption name UCI_Variant value xiangqi")
        assert "error" in client.ask("fen 9/9 r moves h2e2")[0]
        assert client.ask("position startpos moves h1g3 h10g8") == []


def test_a_bare_fen_of_a_variant_without_cyclone_is_a_position() -> None:
    with hello() as client:
        client.ask("setoption name UCI_Variant value crazyhouse")
        assert client.ask("startpos moves e2e4") == []
        assert best(client.ask("go nodes 4", until="bestmove")) == "a7a5"


def test_cyclone_on_request() -> None:
    with Client(protocol="cyclone") as client:
        client.send("uci")
        assert not any("UCI_Variant" in line for line in client.until("uciok"))
        assert best(client.ask("position startpos", "go nodes 4", until="bestmove")) == "a0a1"
