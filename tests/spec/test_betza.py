"""Betza words compared with Fairy-Stockfish, and every error."""

from __future__ import annotations

import pytest

from variant_ai.core.errors import SpecError
from variant_ai.core.rules.fairy.fairy_stockfish import pyffish
from variant_ai.core.spec.betza import displacements, parse_betza
from variant_ai.core.spec.rule_words import Board, Piece

DIRECTIONS = (
    "",
    *"fblrsv",
    "fl",
    "lf",
    "rf",
    "br",
    "fs",
    "bs",
    "fh",
    "lh",
    "lv",
    "rv",
    "ffr",
    "fbl",
)
ATOMS = ("W", "F", "D", "N", "A", "H", "C", "Z", "G", "K", "R", "B", "Q", "W2", "F3", "NN", "nN")
EMPTY = "k8/9/9/9/4A4/9/9/9/8K w - - 0 1"
HURDLES = "12/6k5/9p2/8p3/12/4p7/12/2p9/12/A1P2P2p2K w - - 0 1"
"""A piece on a1 with two or three others on each of its lines."""


def their_text(
    words: list[str], fen: str, board: tuple[int, int]
) -> dict[str, set[tuple[int, int]]]:
    """Displacements of piece A that Fairy-Stockfish gives each word on the board."""
    fairy = pyffish()
    files, ranks = board
    rows = fen.split(maxsplit=1)[0].split("/")
    row = next(i for i, text in enumerate(rows) if "A" in text)
    file = sum(int(c) if c.isdigit() else 1 for c in rows[row].split("A")[0])
    rank = ranks - 1 - row
    names = {word: f"betza-{files}-{i}-{word.lower()}" for i, word in enumerate(words)}
    fairy.load_variant_config(
        "".join(
            f"[{name}:chess]\ncustomPiece1 = a:{word}\nmaxFile = {files}\nmaxRank = {ranks}\n"
            f"castling = false\ndoubleStep = false\nstartFen = {fen}\n\n"
            for word, name in names.items()
        )
    )
    found: dict[str, set[tuple[int, int]]] = {}
    for word, name in names.items():
        assert name in fairy.variants()
        origin = f"{chr(97 + file)}{rank + 1}"
        moves = [m for m in fairy.legal_moves(name, fen, []) if m.startswith(origin)]
        found[word] = {(ord(m[2]) - 97 - file, int(m[3:]) - 1 - rank) for m in moves}
    return found


def test_words_mean_what_fairy_stockfish_plays() -> None:
    words = []
    for word in (d + a for a in ATOMS for d in DIRECTIONS):
        try:
            parse_betza(word)
        except SpecError:
            continue
        words.append(word)
    assert len(words) > 180
    for word, theirs in their_text(words, EMPTY, (9, 9)).items():
        ours = set()
        for move in parse_betza(word):
            for n in range(1, (move.reach or 9) + 1):
                step = n * move.dx, n * move.dy
                if max(map(abs, step)) <= 4:
                    ours.add(step)
        corners = {(-4, 4), (4, -4)}  # the squares of the kings
        assert ours - corners == theirs - corners, word


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("pB", {(3, 3), (4, 4)}),
        ("gB", {(3, 3)}),
        ("cpB", {(4, 4)}),
        ("mpB", {(3, 3)}),
        ("pR", {(3, 0), (4, 0)}),
        ("gR", {(3, 0)}),
    ],
)
def test_hoppers_need_one_hurdle(word: str, expected: set[tuple[int, int]]) -> None:
    assert their_text([word], HURDLES, (12, 10))[word] == expected
    behind = word.startswith("g")
    assert {m.hop for m in parse_betza(word)} == {"behind" if behind else "over"}


@pytest.mark.parametrize(
    ("word", "position", "message"),
    [
        ("", 1, "empty"),
        ("X", 1, "unknown token 'X'"),
        ("KX", 2, "unknown token 'X'"),
        ("iW", 1, "from:"),
        ("KO", 2, "castling:"),
        ("eF", 1, "passant:"),
        ("AA", 1, "not supported"),
        ("KD0", 2, "not supported"),
        ("H0", 1, "not supported"),
        ("nC", 1, "not supported"),
        ("nG", 1, "not supported"),
        ("nNN", 1, "not supported"),
        ("nN1", 1, "not supported"),
        ("pN", 1, "not supported"),
        ("WpD", 2, "not supported"),
        ("gW3", 1, "not supported"),
        ("hN", 1, "direction 'h'"),
        ("sfF", 1, "direction 'sf'"),
        ("fsK", 1, "direction 'fs'"),
        ("W12", 3, "unknown token '2'"),
        ("Kfm", 2, "no atom"),
        ("mmW", 2, "twice"),
        ("pgR", 1, "exclude"),
    ],
)
def test_unsupported_words_are_rejected_with_name_and_position(
    word: str, position: int, message: str
) -> None:
    with pytest.raises(SpecError) as caught:
        parse_betza(word)
    assert message in str(caught.value)
    assert f"character {position}:" in str(caught.value)
    assert repr(word) in str(caught.value)


def test_legs_go_straight_first() -> None:
    legs = {(m.dx, m.dy): m.legs for m in parse_betza("nNnZnAnD")}
    assert legs[(1, 2)] == ((0, 1),)
    assert legs[(-2, 1)] == ((-1, 0),)
    assert legs[(2, 3)] == ((0, 1), (1, 2))
    assert legs[(2, -2)] == ((1, -1),)
    assert legs[(0, 2)] == ((0, 1),)


def test_displacements_stay_on_the_board_and_point_forward() -> None:
    lance = Piece.model_validate({"name": "lance", "moves": "fR"})
    board = Board(files=3, ranks=4)
    assert displacements(lance, board) == {(0, 1), (0, 2), (0, 3)}
    soldier = Piece.model_validate({"name": "soldier", "moves": "fW", "from": {"rank 3": "lW"}})
    assert displacements(soldier, board) == {(0, 1), (-1, 0), (1, 0)}
    assert displacements(soldier, Board(files=3, ranks=4, sides="rotate")) == {(0, 1), (-1, 0)}
