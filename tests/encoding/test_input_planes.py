"""Input planes compared with the papers' tables, with python-chess and with each other."""

from __future__ import annotations

import chess
import chess.variant
import numpy as np
import pytest
from encoding_games import (
    VARIANTS,
    encoder_of,
    random_games,
    rules_of,
    spec_of,
)

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import SpecError
from variant_ai.core.rules.position import Position
from variant_ai.core.spec import VariantSpec
from variant_ai.core.testing.encoding_conformance import mirrored_position, swapped_position

FIGURE_3 = "r2q3k/ppp2p1p/2n1pN2/3pP3/3P4/4BB2/PPP2PPP/R2Q1RK1[Rbbnnp] w - - 4 22"
"""Position of [CrazyAra-preprint] figure 3, whose caption has a misprint."""


def edited(name: str, **changes: object) -> VariantSpec:
    """Built-in spec with changed words, validated again."""
    data = spec_of(name).model_dump(by_alias=True)
    return VariantSpec.model_validate({**data, **changes})


@pytest.mark.parametrize(
    ("name", "shape", "total", "weighted"),
    [("crazyhouse", (34, 8, 8), 416, 746928), ("xiangqi", (28, 10, 9), 212, 459614)],
)
def test_the_start_position_has_the_known_checksums(
    name: str, shape: tuple[int, int, int], total: int, weighted: int
) -> None:
    encoder = encoder_of(name)
    raw = encoder.planes(rules_of(name).position(), raw=True)[0].astype(np.float64).ravel()
    assert encoder.shape == shape
    assert raw.sum() == total
    assert (raw * np.arange(raw.size)).sum() == weighted


def test_move_number_zero_gives_the_other_checksum_of_xiangqi() -> None:
    start = rules_of("xiangqi").position()
    start["ply"] = -2
    raw = encoder_of("xiangqi").planes(start, raw=True)[0].astype(np.float64).ravel()
    assert (raw.sum(), (raw * np.arange(raw.size)).sum()) == (122, 236909)


def crazyhouse_planes(board: chess.variant.CrazyhouseBoard, repeated: int) -> np.ndarray:
    """[CrazyAra-preprint] table 1, computed with python-chess: raw planes [34, 8, 8]."""
    me, them = board.turn, not board.turn
    planes = np.zeros((34, 8, 8), np.float32)

    def mark(plane: int, square: int) -> None:
        rank = chess.square_rank(square)
        planes[plane, rank if me == chess.WHITE else 7 - rank, chess.square_file(square)] = 1

    for side, first in ((me, 0), (them, 6)):
        for kind in chess.PIECE_TYPES:
            for square in board.pieces(kind, side):
                mark(first + kind - 1, square)
    planes[12], planes[13] = repeated >= 1, repeated >= 2
    for side, first in ((me, 14), (them, 19)):
        for kind in chess.PIECE_TYPES[:5]:
            planes[first + kind - 1] = board.pockets[side].count(kind)
    for side, plane in ((me, 24), (them, 25)):
        for square in chess.SquareSet(board.promoted & board.occupied_co[side]):
            mark(plane, square)
    if board.has_pseudo_legal_en_passant():
        mark(26, board.ep_square)
    planes[27] = me == chess.WHITE
    planes[28] = board.fullmove_number
    for side, first in ((me, 29), (them, 31)):
        planes[first] = board.has_kingside_castling_rights(side)
        planes[first + 1] = board.has_queenside_castling_rights(side)
    planes[33] = board.halfmove_clock
    return planes


def test_crazyhouse_equals_table_1_read_by_python_chess() -> None:
    rules, encoder = rules_of("crazyhouse"), encoder_of("crazyhouse")
    maxima = np.ones(34, np.float32)
    maxima[14:24], maxima[28], maxima[33] = 32, 500, 40
    count = 0
    for number, (position, _) in enumerate(random_games("crazyhouse")):
        position = position.copy()
        position["repetitions"] = number % 3
        board = chess.variant.CrazyhouseBoard(rules.fen(position))
        expected = crazyhouse_planes(board, number % 3)
        assert np.array_equal(encoder.planes(position, raw=True)[0], expected), board.fen()
        normal = encoder.planes(position)[0]
        assert np.allclose(normal, expected / maxima[:, None, None], rtol=1e-6)
        count += 1
    assert count > 500


def test_the_papers_example_position() -> None:
    planes = encoder_of("crazyhouse").planes(rules_of("crazyhouse").position(FIGURE_3))[0]
    assert planes[0].sum() == 8 and planes[6].sum() == 7  # pawns
    assert planes[1, 5, 5] == 1  # the knight on f6
    assert planes[14:19, 0, 0].tolist() == [0, 0, 0, np.float32(1 / 32), 0]
    assert planes[19:24, 3, 3].tolist() == [np.float32(n / 32) for n in (1, 2, 2, 0, 0)]
    assert planes[28, 0, 0] == np.float32(22 / 500) and planes[33, 7, 7] == np.float32(0.1)
    assert not planes[29:33].any() and not planes[24:27].any() and planes[27].all()


def xiangqi_planes(fen: str) -> np.ndarray:
    """[Xiangqi-thesis] table 4.2, computed from a FEN: raw planes [28, 10, 9]."""
    board, side, _, _, _, number = fen.split()
    planes = np.zeros((28, 10, 9), np.float32)
    standing = {"w": dict.fromkeys("KABNRCP", 0), "b": dict.fromkeys("KABNRCP", 0)}
    for row, text in enumerate(board.split("/")):
        file = 0
        for letter in text:
            if letter.isdigit():
                file += int(letter)
                continue
            owner = "w" if letter.isupper() else "b"
            plane = "KABNRCP".index(letter.upper()) + (0 if owner == side else 7)
            planes[plane, 9 - row if side == "w" else row, file] = 1
            standing[owner][letter.upper()] += 1
            file += 1
    other = "b" if side == "w" else "w"
    for first, loser in ((14, other), (20, side)):
        for i, letter in enumerate("ABNRCP"):
            full = 5 if letter == "P" else 2
            planes[first + i] = max(0, full - standing[loser][letter])
    planes[26] = side == "w"
    planes[27] = int(number)
    return planes


def test_xiangqi_equals_table_4_2_read_off_the_fen() -> None:
    rules, encoder = rules_of("xiangqi"), encoder_of("xiangqi")
    maxima = np.ones(28, np.float32)
    maxima[14:26], maxima[27] = 5, 500
    for position, _ in random_games("xiangqi"):
        expected = xiangqi_planes(rules.fen(position))
        assert np.array_equal(encoder.planes(position, raw=True)[0], expected)
        normal = encoder.planes(position)[0]
        assert np.allclose(normal, expected / maxima[:, None, None], rtol=1e-6)


@pytest.mark.parametrize("name", VARIANTS)
def test_second_player_sees_what_the_first_sees_with_colours_swapped(name: str) -> None:
    encoder = encoder_of(name)
    colour = next(p.index for p in encoder.input_planes if p.item == "colour")
    for position, _ in random_games(name, games=6):
        ours, theirs = encoder.planes(
            np.concatenate([position, swapped_position(spec_of(name), position)])
        )
        assert ours[colour].all() != theirs[colour].all()
        assert np.array_equal(np.delete(ours, colour, 0), np.delete(theirs, colour, 0))


def test_mirrored_position_has_mirrored_planes() -> None:
    encoder = encoder_of("xiangqi")
    for position, _ in random_games("xiangqi", games=6):
        straight = encoder.planes(mirrored_position(spec_of("xiangqi"), position))
        assert np.array_equal(encoder.planes(position, mirrored=True), straight)
        assert np.array_equal(encoder.planes(position)[..., ::-1], straight)


def test_mirroring_is_rejected_without_the_symmetry() -> None:
    encoder = encoder_of("crazyhouse")
    start = rules_of("crazyhouse").position()
    with pytest.raises(SpecError, match="symmetry"):
        encoder.planes(start, mirrored=True)
    with pytest.raises(SpecError, match="symmetry"):
        _ = encoder.mirror_actions


@pytest.mark.parametrize("name", VARIANTS)
def test_many_positions_at_once_equal_one_at_a_time(name: str) -> None:
    encoder = encoder_of(name)
    listed: list[Position] = [position for position, _ in random_games(name, games=2)]
    every = np.concatenate(listed)
    out = np.full((len(every), *encoder.shape), np.nan, np.float32)
    assert encoder.planes(every, out) is out
    for one, planes in zip(listed, out, strict=True):
        assert np.array_equal(encoder.planes(one)[0], planes)


def test_read_only_and_strided_positions_are_read() -> None:
    encoder = encoder_of("xiangqi")
    every = np.concatenate([position for position, _ in random_games("xiangqi", games=2)])
    expected = encoder.planes(every)
    frozen = every.copy()
    frozen.flags.writeable = False
    assert np.array_equal(encoder.planes(frozen), expected)
    assert np.array_equal(encoder.planes(every[::2]), expected[::2])


def test_wrong_arrays_are_rejected() -> None:
    encoder = encoder_of("xiangqi")
    start = rules_of("xiangqi").position()
    with pytest.raises(TypeError, match="POSITION"):
        encoder.planes(np.zeros(3))
    with pytest.raises(TypeError, match="float32"):
        encoder.planes(start, np.zeros((1, *encoder.shape)))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="shape"):
        encoder.planes(start, np.zeros((2, *encoder.shape), np.float32))


def test_a_turned_board_turns_files_too() -> None:
    board = {**spec_of("xiangqi").board.model_dump(by_alias=True), "sides": "rotate"}
    encoder = Encoder(edited("xiangqi", board=board))
    start = rules_of("xiangqi").position()
    start[0]["board"][0] = 0  # the first player's chariot on a1
    start[0]["side"] = 1
    theirs = encoder.planes(start)[0][7:14]
    assert theirs[4, 9, 0] == 1 and theirs[4, 9, 8] == 0
