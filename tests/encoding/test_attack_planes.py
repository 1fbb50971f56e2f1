"""Planes of attacks: against python-chess, the rules' own attacks, and the captures of the rules."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import chess
import chess.variant
import numpy as np
import pytest
from encoding_games import random_games, rules_of, spec_of
from numpy.typing import NDArray

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import SpecError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.kernel.attacks import attacked
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.position import (
    CASTLING,
    DROP,
    EN_PASSANT,
    PASS,
    Position,
    move_kind,
    move_origin,
    move_target,
    piece_type,
)
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.core.spec.zones import seen_by

KERNEL = [name for name in builtin_specs() if spec_of(name).rules.engine == "kernel"]


@cache
def with_attacks(name: str) -> Encoder:
    data = spec_of(name).model_dump(by_alias=True)
    planes = ({"attacks": "me"}, {"attacks": "them"})
    return Encoder(VariantSpec.model_validate({**data, "input": (*data["input"], *planes)}))


def attack_planes(name: str, position: Position) -> NDArray[np.bool_]:
    """Planes [2, types of the spec, H, W]: those of the mover, those of the opponent."""
    planes = with_attacks(name).planes(position)[0]
    count = len(spec_of(name).pieces)
    shown = planes[-2 * count :]
    assert set(np.unique(shown)) <= {0, 1}
    result: NDArray[np.bool_] = shown.reshape(2, count, *planes.shape[1:]).astype(bool)
    return result


def test_crazyhouse_equals_python_chess() -> None:
    rules, letters = rules_of("crazyhouse"), list(spec_of("crazyhouse").pieces)
    for position, _ in random_games("crazyhouse"):
        board = chess.variant.CrazyhouseBoard(rules.fen(position))
        found = attack_planes("crazyhouse", position)
        for who, colour in enumerate((board.turn, not board.turn)):
            for number, letter in enumerate(letters):
                squares = chess.SquareSet()
                for origin in board.pieces(chess.PIECE_SYMBOLS.index(letter.lower()), colour):
                    squares |= board.attacks(origin)
                seen = squares if board.turn else squares.mirror()
                expected = np.array(seen.tolist()).reshape(8, 8)
                assert np.array_equal(found[who, number], expected), (board.fen(), letter)


@pytest.mark.parametrize("name", KERNEL)
def test_planes_agree_with_the_rules(name: str) -> None:
    """All planes of a side together are the squares that it attacks by the tables of captures; and
    each legal capture is on the plane of the piece that makes it."""
    rules = make_rules(spec_of(name))
    assert isinstance(rules, KernelRules)
    spec, tables = rules.spec, rules.tables[0]
    files, ranks = spec.board.files, spec.board.ranks
    letters = list(spec.pieces)
    avoided = {piece.avoids for piece in spec.pieces.values()}
    rng, seen = random.Random(5), 0
    for _ in range(4):
        game = Game(rules)
        while game.outcome() is None and game.ply < 80:
            position, side = game.position, game.side
            found = attack_planes(name, position)
            for who, colour in enumerate((side, 1 - side)):
                union = found[who].any(axis=0)
                for square in range(files * ranks):
                    standing = int(position["board"][0, square])
                    if standing and rules.types.all[piece_type(standing)].base in avoided:
                        continue  # `attacked` does not ask what stands on the square
                    row, file = divmod(seen_by(square, side, spec.board), files)
                    by_rules = bool(attacked(tables, position[0], colour, square))
                    # the tables let generals capture along a file, so that they cannot face
                    king = int(position["kings"][0][colour])
                    faces = "xiangqi" in name and square % files == king % files
                    assert union[row, file] == by_rules or (faces and by_rules)
            for move in game.legal_moves().tolist():
                target = move_target(move)
                if move_kind(move) in (CASTLING, DROP, PASS) or (
                    not position["board"][0, target] and move_kind(move) != EN_PASSANT
                ):
                    continue
                kind = rules.types.all[piece_type(int(position["board"][0, move_origin(move)]))]
                row, file = divmod(seen_by(target, side, spec.board), files)
                assert found[0, letters.index(kind.base), row, file]
                seen += 1
            game.push(rng.choice(game.legal_moves().tolist()))
    assert seen > 0


def test_mirrored_positions_have_mirrored_attacks() -> None:
    encoder = with_attacks("xiangqi")
    for position, _ in random_games("xiangqi", games=2, plies=40):
        mirrored = encoder.planes(position, mirrored=True)
        assert np.array_equal(mirrored, encoder.planes(position)[..., ::-1])


def test_attacks_need_rules_that_are_compiled(tmp_path: Path) -> None:
    path = tmp_path / "slow.yaml"
    path.write_text(
        "spec: 1\nextends: chess\nvariant: slow\nrules: {engine: fairy}\n"
        "input: [inherited, attacks: me]\n"
    )
    with pytest.raises(SpecError, match=r"slow\.yaml:5.*attacks need the rules of the kernel"):
        load_spec(path)
