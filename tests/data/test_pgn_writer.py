"""Games written as PGN are read back unchanged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import HOUSE, RED_UCI, notation, one, resolved, rules

from variant_ai.core.data.game_record import MATE, RESULTS, GameRecord
from variant_ai.core.data.game_text import WIDTH, pgn_text
from variant_ai.core.data.read.resolve import opening_group

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=30
)
_UNKNOWN = {"?", "-", "??", "N/A", "n/a", "????.??.??"}


def _plain(text: str) -> str:
    """Value of a header after reading: white space joined, unknown values empty."""
    joined = " ".join(text.split())
    return "" if joined in _UNKNOWN else joined


@st.composite
def games(draw: st.DrawFn, variant: str) -> GameRecord:
    made = rules(variant)
    position = made.position()
    moves: list[int] = []
    for _ in range(draw(st.integers(1, 50))):
        legal = made.legal_moves(position).tolist()
        if not legal:
            break
        moves.append(draw(st.sampled_from(legal)))
        position = made.play(position, moves[-1])
    scores = draw(
        st.none()
        | st.lists(
            st.none()
            | st.integers(-5000, 5000)
            | st.integers(1, 60).map(lambda n: MATE - n)
            | st.integers(1, 60).map(lambda n: n - MATE),
            min_size=len(moves),
            max_size=len(moves),
        )
    )
    clocks = draw(
        st.none() | st.lists(st.integers(0, 10**7), min_size=len(moves), max_size=len(moves))
    )
    game = GameRecord(
        variant,
        moves,
        result=draw(st.sampled_from(RESULTS)),
        white=_plain(draw(WORDS)),
        black=_plain(draw(WORDS)),
        white_elo=draw(st.none() | st.integers(1, 3500)),
        event=_plain(draw(WORDS)),
        date=draw(st.sampled_from(("", "2008.05.31", "1955.05.??", "1996.??.??"))),
        termination="normal",
        scores=scores if scores and any(score is not None for score in scores) else None,
        clocks=clocks,
        comments={0: "a remark"} if draw(st.booleans()) else {},
        tags={"Annotator": "Ada"},
        source="test",
        number=1,
    )
    return replace(game, group=opening_group(game))


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        ("crazyhouse", "san"),
        ("crazyhouse", "uci"),
        ("xiangqi", "chinese"),
        ("xiangqi", "chinese-simplified"),
        ("xiangqi", "wxf"),
        ("xiangqi", "iccs"),
        ("xiangqi", "uci"),
        ("xiangqi", "san"),
    ],
)
@settings(max_examples=12)
@given(data=st.data())
def test_games_come_back(variant: str, name: str, data: st.DataObject) -> None:
    game = data.draw(games(variant))
    text = pgn_text(rules(variant), notation(variant, name), game)
    assert max(map(len, text.splitlines()[-20:])) <= max(WIDTH, 60)
    assert one(variant, f"{variant}-pgn", text) == game


def test_a_game_as_it_looks() -> None:
    game = one("crazyhouse", "pgn", HOUSE)
    assert pgn_text(rules("crazyhouse"), notation("crazyhouse", "san"), game) == (
        '[Event "Club evening"]\n[Site "?"]\n[Date "2016.05.01"]\n[Round "?"]\n[White "Ada"]\n'
        '[Black "Bob"]\n[Result "0-1"]\n[WhiteElo "2100"]\n[BlackElo "2050"]\n'
        '[Termination "White resigns"]\n[Variant "crazyhouse"]\n\n'
        "1. e4 d5 2. exd5 Qxd5 3. Nc3 Qa5 4. P@d5 {[%eval 0.50] [%clk 0:02:59]} 4... P@e4\n"
        "5. Nxe4 f6 6. P@d6 exd6 7. Nxd6+ Bxd6 8. Nf3 N@d3+ 9. cxd3 P@h6 {White resigns}\n"
        "0-1\n\n"
    )


def test_a_game_with_another_start_and_unusual_comments() -> None:
    game = GameRecord(
        "crazyhouse",
        event='the "big" \\ cup\nof 2001',
        start_fen="4k3/8/8/8/8/8/8/4K3[P] b - - 3 20",
        comments={-1: "before", 0: "a {brace} here"},
        tags={"not a name": "x"},
    )
    made = rules("crazyhouse")
    game.moves = [notation("crazyhouse", "uci").read(made, made.position(game.start_fen), "e8e7")]
    text = pgn_text(made, notation("crazyhouse", "san"), game)
    assert "{before} 20... Ke7 {a (brace) here} *" in text
    assert "not a name" not in text
    (back,) = resolved("crazyhouse", "pgn", text)
    assert isinstance(back, GameRecord)
    assert back.event == 'the "big" \\ cup of 2001'
    assert (back.start_fen, back.moves) == (game.start_fen, game.moves)
    assert back.comments == {-1: "before", 0: "a (brace) here"}


@pytest.mark.parametrize("words", ["60 % of the games", '[Event "x"] was it', "%", "a [White] b"])
@pytest.mark.parametrize("before", range(55, 80, 3))
def test_a_comment_never_begins_a_line_as_something_else(words: str, before: int) -> None:
    game = one("crazyhouse", "pgn", HOUSE)
    game.comments[0] = f"{'x' * before} {words}"
    text = pgn_text(rules("crazyhouse"), notation("crazyhouse", "san"), game)
    (back,) = resolved("crazyhouse", "pgn", text)
    assert isinstance(back, GameRecord)
    assert (back.moves, back.comments[0]) == (game.moves, game.comments[0])


def test_the_sides_are_called_as_the_spec_calls_them() -> None:
    game = replace(one("xiangqi", "moves", RED_UCI), white="Hu", black="Xu", white_elo=2680)
    text = pgn_text(rules("xiangqi"), notation("xiangqi", "wxf"), game)
    assert '[Red "Hu"]\n[Black "Xu"]\n' in text and '[RedElo "2680"]' in text
    assert "White" not in text
    for written in (text, text.replace("[Red", "[White")):
        back = one("xiangqi", "pgn", written)
        assert (back.white, back.black, back.white_elo) == ("Hu", "Xu", 2680)


def test_a_group_that_does_not_follow_from_the_moves_is_kept() -> None:
    game = replace(one("xiangqi", "moves", RED_UCI), group="match of 1994")
    text = pgn_text(rules("xiangqi"), notation("xiangqi", "wxf"), game)
    assert one("xiangqi", "pgn", text).group == "match of 1994"
