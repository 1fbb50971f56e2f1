"""The current game: positions as clients send them."""

from __future__ import annotations

import pytest

from variant_ai.core.engine.commands import SetPosition
from variant_ai.core.engine.current_game import CurrentGame
from variant_ai.core.errors import FenError, MoveError
from variant_ai.core.rules import make_rules
from variant_ai.plugins import registry

RULES = {name: make_rules(registry().variant(name)) for name in ("crazyhouse", "xiangqi")}
START = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR"


@pytest.fixture
def house() -> CurrentGame:
    return CurrentGame(RULES["crazyhouse"])


@pytest.fixture
def palace() -> CurrentGame:
    return CurrentGame(RULES["xiangqi"])


def test_a_game_is_followed_without_being_played_again(house: CurrentGame) -> None:
    house.set(SetPosition(None, ("e2e4", "e7e5")))
    game = house.game
    house.set(SetPosition(None, ("e2e4", "e7e5", "g1f3")))
    assert house.game is game
    assert game.uci_moves() == ["e2e4", "e7e5", "g1f3"]


def test_moves_may_be_taken_back_and_others_played(house: CurrentGame) -> None:
    house.set(SetPosition(None, ("e2e4", "e7e5", "g1f3")))
    house.set(SetPosition(None, ("e2e4", "c7c5")))
    assert house.game.uci_moves() == ["e2e4", "c7c5"]
    house.set(SetPosition(None))
    assert house.game.uci_moves() == []


@pytest.mark.parametrize(
    "wanted",
    [
        SetPosition(None, ("e2e4", "e7e5", "e4e5")),
        SetPosition(None, ("e2e4", "c7c5", "nonsense")),
        SetPosition(None, ("a1a1",)),
        SetPosition("no such position", ()),
        SetPosition("4k3/8/8/8/8/8/8/4K3[] w - - 0 1", ("e1e3",)),
    ],
)
def test_a_command_with_an_error_changes_nothing(house: CurrentGame, wanted: SetPosition) -> None:
    house.set(SetPosition(None, ("e2e4", "e7e5", "g1f3")))
    before = house.game.fen()
    with pytest.raises((MoveError, FenError)):
        house.set(wanted)
    assert house.game.fen() == before
    assert house.game.uci_moves() == ["e2e4", "e7e5", "g1f3"]
    house.set(SetPosition(None, ("e2e4", "e7e5", "g1f3", "b8c6")))
    assert house.game.ply == 4


def test_an_illegal_move_is_named_with_its_ply(house: CurrentGame) -> None:
    with pytest.raises(MoveError, match="ply 3: illegal uci move 'e4e5'"):
        house.set(SetPosition(None, ("e2e4", "e7e5", "e4e5")))


@pytest.mark.parametrize("pocket", ["[Qn]", "/Qn", "[nQ]"])
def test_pockets_in_every_form(house: CurrentGame, pocket: str) -> None:
    house.set(SetPosition(f"4k3/8/8/8/8/8/8/4K3{pocket} w - - 0 1", ("Q@d8",)))
    assert house.game.ply == 1


def test_banned_moves_last_until_the_next_position(palace: CurrentGame) -> None:
    palace.banned = palace.read_moves(["h2e2", "b2e2"], "iccs")
    assert len(palace.banned) == 2
    palace.set(SetPosition(None))
    assert palace.banned == ()


# --- FENs that start anew ------------------------------------------------------------------------


def set_zero(table: CurrentGame, fen: str | None, *moves: str) -> None:
    table.set(SetPosition(fen, moves), notation="iccs", continues=True)


def test_a_fen_after_each_capture_continues_the_game(palace: CurrentGame) -> None:
    """As a UCCI bridge sends it: the FEN is the one after the last capture, counters at 0 1."""
    game = ["h2e2", "h9g7", "e2e6", "g7e6", "b2e2", "a9a8", "e2e6", "a8d8"]
    reference = CurrentGame(RULES["xiangqi"])
    fen: str | None = None
    since: list[str] = []
    for ply, move in enumerate(game, 1):
        pieces = int((reference.game.position["board"] != 0).sum())
        reference.set(SetPosition(None, tuple(game[:ply])), notation="iccs")
        since.append(move)
        if int((reference.game.position["board"] != 0).sum()) < pieces:
            board, side = reference.game.fen().split()[:2]
            fen, since = f"{board} {side} - - 0 1", []
        if ply % 2 == 0 or ply == len(game):  # the client asks on every second move only
            set_zero(palace, fen, *since)
            assert palace.game.ply == ply
            assert palace.game.fen() == reference.game.fen()
    assert palace.game.uci_moves() == reference.game.uci_moves()


def test_a_fen_of_a_repeated_position_keeps_the_repetitions(palace: CurrentGame) -> None:
    shuffle = ["h0g2", "h9g7", "g2h0", "g7h9"]
    set_zero(palace, None, *shuffle)
    set_zero(palace, f"{START} w - - 0 1", *shuffle)
    assert palace.game.ply == 8
    assert int(palace.game.position["repetitions"][0]) == 2


def test_cyclone_sends_no_counters_and_calls_red_r(palace: CurrentGame) -> None:
    set_zero(palace, f"{START} r", "h2e2")
    set_zero(palace, f"{START} r", "h2e2", "h9g7")
    assert palace.game.uci_moves() == ["h3e3", "h10g8"]


def test_a_fen_of_another_game_starts_anew(palace: CurrentGame) -> None:
    set_zero(palace, None, "h2e2", "h9g7")
    set_zero(palace, "3k5/9/9/9/9/9/9/9/9/4K4 w - - 0 1")
    assert palace.game.ply == 0


def test_in_uci_a_fen_is_what_it_says(palace: CurrentGame) -> None:
    palace.set(SetPosition(None, ("h3e3", "h10g8")))
    palace.set(SetPosition(palace.game.fen()))
    assert palace.game.ply == 0


def test_a_broken_continuation_leaves_the_game(palace: CurrentGame) -> None:
    set_zero(palace, None, "h2e2", "h9g7", "e2e6")
    fen = palace.game.fen()
    board, side = fen.split()[:2]
    with pytest.raises(MoveError):
        set_zero(palace, f"{board} {side} - - 0 1", "g7e6", "a0a9")
    assert palace.game.fen() == fen
    set_zero(palace, None, "h2e2", "h9g7", "e2e6", "g7e6")
    assert palace.game.ply == 4
