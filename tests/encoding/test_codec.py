"""Move codes: complete, unique, and replayed to the same game."""

from __future__ import annotations

import random

import numpy as np
import pytest
from encoding_games import ODD_FENS, VARIANTS, codec_of, random_games, rules_of, spec_of

from variant_ai.core.errors import MoveError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.position import same_position


@pytest.mark.parametrize("name", VARIANTS)
def test_every_legal_move_has_one_code_and_comes_back(name: str) -> None:
    codec = codec_of(name)
    for position, moves in random_games(name):
        codes = [codec.encode(position, move) for move in moves]
        assert len(set(codes)) == len(moves)
        assert min(codes) >= 0 and max(codes) < 65536
        assert [codec.decode(position, code) for code in codes] == moves


@pytest.mark.parametrize("engine", ["kernel", "fairy"])
@pytest.mark.parametrize("name", VARIANTS)
def test_whole_games_are_replayed(name: str, engine: str) -> None:
    rules, codec = make_rules(spec_of(name), engine), codec_of(name)
    fast = rules_of(name)
    rng = random.Random(5)
    for fen in (None, *ODD_FENS[name]):
        start = fast.position(fen)
        position, moves = start, []
        for _ in range(60 if engine == "kernel" else 12):
            legal = fast.legal_moves(position).tolist()
            if not legal:
                break
            moves.append(rng.choice(legal))
            position = fast.play(position, moves[-1])
        before = start.copy()
        codes = codec.encode_game(rules, start, moves)
        assert codes.dtype == np.uint16
        assert codec.decode_game(rules, start, codes) == moves
        assert same_position(start, before)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_code_of_another_game_is_rejected_with_its_ply(name: str) -> None:
    rules, codec = rules_of(name), codec_of(name)
    start = rules.position()
    moves = rules.legal_moves(start).tolist()[:1]
    codes = codec.encode_game(rules, start, moves)
    twice = np.concatenate([codes, codes])  # the second player sees the same code from its side
    assert len(codec.decode_game(rules, start, twice)) == 2
    thrice = np.concatenate([twice, np.array([65535], np.uint16)])
    with pytest.raises(MoveError, match=r"ply 3: code 65535 is not a move"):
        codec.decode_game(rules, start, thrice)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_move_that_no_piece_makes_is_rejected_with_its_ply(name: str) -> None:
    rules, codec = rules_of(name), codec_of(name)
    start = rules.position()
    move = rules.legal_moves(start).tolist()[0]
    knights_dream = 60 | 1 << 7
    with pytest.raises(MoveError, match=r"ply 2: move \d+ \(normal b1"):
        codec.encode_game(rules, start, [move, knights_dream])
