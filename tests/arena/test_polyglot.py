"""Polyglot books: keys as published, weights as drawn, and who has no key."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import chess
import chess.polyglot
import pytest

from variant_ai.core.arena.games.openings import Opening, book_lines, book_moves, book_rejection
from variant_ai.core.errors import DataError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.plugins import registry

START = 0x463B96181691FC9C
"""Key of the start position, as the description of the format prints it."""


@pytest.fixture(scope="module")
def plain() -> Rules:
    return make_rules(registry().variant("chess"))


@pytest.fixture(scope="module")
def drops() -> Rules:
    return make_rules(registry().variant("crazyhouse"))


def raw(text: str) -> int:
    """A move in the bits of the format: to, from, promotion; a drop is from a square to itself."""
    move = chess.Move.from_uci(text)
    kind = move.drop or move.promotion
    start = move.to_square if move.drop else move.from_square
    return move.to_square | start << 6 | (kind - 1 if kind else 0) << 12


def book(path: Path, entries: Mapping[int, Mapping[str, int]]) -> Path:
    """A file of entries by key: moves with their weights."""
    with path.open("wb") as file:
        for key in sorted(entries):
            for text, weight in entries[key].items():
                file.write(struct.pack(">QHHI", key, raw(text), weight, 0))
    return path


def key(*moves: str) -> int:
    board = chess.Board()
    for text in moves:
        board.push_uci(text)
    return chess.polyglot.zobrist_hash(board)


def texts(rules: Rules, opening: Opening) -> list[str]:
    game = Game(rules)
    for move in opening.moves:
        game.push(move)
    return game.uci_moves()


def test_keys_are_those_of_the_format(plain: Rules, drops: Rules, tmp_path: Path) -> None:
    """Positions with castling lost and a passant square that counts or does not."""
    lines = {
        START: (),
        0x823C9B50FD114196: ("e2e4",),
        0x0756B94461C50FB0: ("e2e4", "d7d5"),
        0x662FAFB965DB29D4: ("e2e4", "d7d5", "e4e5"),
        0x22A48B5A8E47FF78: ("e2e4", "d7d5", "e4e5", "f7f5"),
        0x652A607CA3F242C1: ("e2e4", "d7d5", "e4e5", "f7f5", "e1e2"),
        0x00FDD303C946BDD9: ("e2e4", "d7d5", "e4e5", "f7f5", "e1e2", "e8f7"),
    }
    moves = {key: {"a2a3" if len(line) % 2 == 0 else "a7a6": 1} for key, line in lines.items()}
    path = book(tmp_path / "b.bin", moves)
    with chess.polyglot.open_reader(path) as reader:
        for rules in (plain, drops):
            for line in lines.values():
                assert book_moves(rules, reader, Game.from_uci(rules, None, list(line)))


def test_lines_follow_the_weights_and_end_with_the_book(plain: Rules, tmp_path: Path) -> None:
    path = book(
        tmp_path / "b.bin",
        {
            START: {"e2e4": 300, "d2d4": 100, "c2c4": 0, "e2e5": 500},
            key("e2e4"): {"e7e5": 1, "c7c5": 1},
            key("e2e4", "e7e5"): {"g1f3": 1},
            key("e2e4", "c7c5"): {"g1f3": 1},
        },
    )
    lines = {" ".join(texts(plain, line)) for line in book_lines(path, plain, 8)}
    # a weight of 0 is a move taken out of the book, an illegal one is none
    assert lines == {"d2d4", "e2e4 e7e5 g1f3", "e2e4 c7c5 g1f3"}
    short = {" ".join(texts(plain, line)) for line in book_lines(path, plain, 2)}
    assert short == {"d2d4", "e2e4 e7e5", "e2e4 c7c5"}
    firsts = Counter(
        texts(plain, book_lines(path, plain, 1, count=1, seed=seed)[0])[0] for seed in range(400)
    )
    assert set(firsts) == {"e2e4", "d2d4"} and 260 < firsts["e2e4"] < 340


def test_the_seed_decides_the_lines(plain: Rules, tmp_path: Path) -> None:
    path = book(
        tmp_path / "b.bin",
        {START: {"e2e4": 1, "d2d4": 1, "c2c4": 1, "g1f3": 1, "b1c3": 1, "g2g3": 1}},
    )
    drawn = [book_lines(path, plain, 4, count=4, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 4
    with pytest.raises(DataError, match="only 6 of 7 different lines of at most 4 plies"):
        book_lines(path, plain, 4, count=7)


def test_castling_and_promotion_are_read(plain: Rules, tmp_path: Path) -> None:
    for fen, texts_ in (
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", {"e1h1": "e1g1", "e1a1": "e1c1"}),
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", {"e8h8": "e8g8", "e8a8": "e8c8"}),
        # no king on e1: the rook's own move
        ("3k4/8/8/8/8/8/8/4R2K w - - 0 1", {"e1a1": "e1a1"}),
        ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", {"a7a8n": "a7a8n", "a7a8q": "a7a8q"}),
    ):
        position = chess.polyglot.zobrist_hash(chess.Board(fen))
        path = book(tmp_path / "b.bin", {position: dict.fromkeys(texts_, 1)})
        game = Game(plain, fen)
        with chess.polyglot.open_reader(path) as reader:
            found = {move for move, _ in book_moves(plain, reader, game)}
        copies = [Game(plain, fen) for _ in texts_]
        for copy, text in zip(copies, texts_.values(), strict=True):
            copy.push_uci(text)
        assert found == {copy.moves[0] for copy in copies}


def test_drops_are_read_and_hands_decide_what_is_legal(drops: Rules, tmp_path: Path) -> None:
    placed = "rnbqkbnr/pppp1ppp/8/8/8/8/PPPP1PPP/RNBQKBNR"
    position = chess.polyglot.zobrist_hash(chess.Board(f"{placed} w KQkq - 0 1"))
    path = book(tmp_path / "b.bin", {position: {"P@e4": 3, "N@e4": 2, "d2d4": 1}})
    with chess.polyglot.open_reader(path) as reader:
        for hand, moves in (("Pp", {"P@e4": 3, "d2d4": 1}), ("Nn", {"N@e4": 2, "d2d4": 1})):
            game = Game(drops, f"{placed}[{hand}] w KQkq - 0 1")
            found = book_moves(drops, reader, game)
            said = {}
            for move, weight in found:
                copy = Game(drops, game.fen())
                copy.push(move)
                said[copy.uci_moves()[0]] = weight
            assert said == moves


@pytest.mark.parametrize(
    ("variant", "reason"),
    [("xiangqi", "its board is 9 x 10"), ("makruk", "its pieces are not those of chess")],
)
def test_other_games_have_no_key(variant: str, reason: str, tmp_path: Path) -> None:
    rules = make_rules(registry().variant(variant))
    assert reason in book_rejection(rules)
    with pytest.raises(DataError, match=f"do not support {variant}.*{reason}"):
        book_lines(book(tmp_path / "b.bin", {START: {"e2e4": 1}}), rules, 4)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no move for the start"),
        (b"PGN?", "not a Polyglot book"),
        (bytes(16), "no move for the"),
    ],
)
def test_files_that_are_no_book(plain: Rules, tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "b.bin"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"b\.bin: .*{reason}"):
        book_lines(path, plain, 4)
