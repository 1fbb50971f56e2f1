"""Games become codes and come back, by compiled code and by the rules alike."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import zstandard

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.data.store.stored_moves import RulesCodec, codes_hash
from variant_ai.core.encoding import MoveCodec
from variant_ai.core.errors import DataError, MoveError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.position import PASS, make_move, square_index
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.core.spec.schema import VariantSpec

BYTES_A_PLY = 1.7


@pytest.fixture(scope="module", params=["crazyhouse", "xiangqi"])
def codec(request: pytest.FixtureRequest) -> RulesCodec:
    return RulesCodec(load_spec(builtin_specs()[request.param]))


def random_game(codec: RulesCodec, seed: int, plies: int, fen: str | None = None) -> list[int]:
    dice = np.random.default_rng(seed)
    position, moves = codec.rules.position(fen), []
    for _ in range(plies):
        legal = codec.rules.legal_moves(position)
        if not len(legal):
            break
        moves.append(int(dice.choice(legal)))
        position = codec.rules.play(position, moves[-1])
    return moves


def test_random_games_come_back(codec: RulesCodec) -> None:
    slow = MoveCodec(codec.spec)
    for seed in range(12):
        moves = random_game(codec, seed, 150)
        codes = codec.encode(None, moves)
        assert codec.decode(None, codes) == moves
        assert codes.tolist() == slow.encode_game(codec.rules, codec.start(None), moves).tolist()
        assert slow.decode_game(codec.rules, codec.start(None), codes) == moves


def test_games_from_another_position_come_back(codec: RulesCodec) -> None:
    opening = random_game(codec, 99, 31)
    position = codec.rules.position()
    for move in opening:
        position = codec.rules.play(position, move)
    fen = codec.rules.fen(position)
    moves = random_game(codec, 100, 60, fen)
    assert codec.decode(fen, codec.encode(fen, moves)) == moves
    assert codec.start(fen)[0]["side"] == 1


def test_the_error_of_a_bad_code_names_its_ply(codec: RulesCodec) -> None:
    codes = codec.encode(None, random_game(codec, 3, 6))
    codes[4] = 65535
    with pytest.raises(MoveError, match="ply 5: code 65535 is not a move"):
        codec.decode(None, codes)


def test_a_move_of_no_piece_names_its_ply(codec: RulesCodec) -> None:
    moves = random_game(codec, 3, 6)
    moves[2] = make_move(0, codec.spec.board.files * codec.spec.board.ranks - 2)
    with pytest.raises(MoveError, match=r"ply 3: .*displacement that no piece"):
        codec.encode(None, moves)


def test_a_store_with_another_codes_hash_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: RulesCodec
) -> None:
    monkeypatch.setattr("variant_ai.core.data.store.store_writer.codes_hash", lambda spec: "0" * 16)
    with StoreWriter(tmp_path / "a.store", codec.spec, codec=codec):
        pass
    with pytest.raises(DataError, match="encodes its moves in another way"):
        Store(tmp_path / "a.store", codec.spec)


def test_codes_hash_follows_the_pieces() -> None:
    spec = load_spec(builtin_specs()["xiangqi"])
    data = json.loads(spec.model_dump_json(by_alias=True))
    data["pieces"]["A"]["moves"] = "FC"
    other = VariantSpec.model_validate_json(json.dumps(data))
    data["pieces"]["A"]["moves"], data["policy"] = "F", "derived"
    same = VariantSpec.model_validate_json(json.dumps(data))
    assert codes_hash(same) == codes_hash(spec) != codes_hash(other)


CODES = {
    "antichess": "375e1964d2cb4a2c",
    "atomic": "0df019c01d49b563",
    "capablanca": "afb77cf47afa41b3",
    "chess": "0df019c01d49b563",
    "chess960": "0df019c01d49b563",
    "crazyhouse960": "9f157436b423b93f",
    "crazyhouse": "9f157436b423b93f",
    "dobutsu": "041b7b044ed14972",
    "dobutsu-royal": "041b7b044ed14972",
    "grand": "49a7342b89c99f1e",
    "horde": "0df019c01d49b563",
    "janggi": "6c6e4d36377b9190",
    "kingofthehill": "0df019c01d49b563",
    "makruk": "4f7909eb8e0652bf",
    "minishogi": "a12413c5412915ce",
    "minixiangqi": "e6f25684b29a5cab",
    "racingkings": "21c5717245580fb7",
    "shogi": "07fa3202af8a4787",
    "three-check": "0df019c01d49b563",
    "xiangqi": "995b873c038294e4",
}


@pytest.mark.parametrize("variant", sorted(builtin_specs()))
def test_codes_of_the_specs_that_ship_mean_what_they_meant(variant: str) -> None:
    assert codes_hash(load_spec(builtin_specs()[variant])) == CODES[variant]


def test_passes_of_a_policy_that_has_them_come_back() -> None:
    data = load_spec(builtin_specs()["xiangqi"]).model_dump(by_alias=True)
    data["policy"] += ("pass",)
    spec = VariantSpec.model_validate(data)
    slow, without = MoveCodec(spec), MoveCodec(load_spec(builtin_specs()["xiangqi"]))
    rules = make_rules(load_spec(builtin_specs()["xiangqi"]))
    position = rules.position()
    king = square_index("e1", 9, 10)
    assert king is not None
    code = slow.encode(position, make_move(king, king, PASS))
    assert slow.decode(position, code) == make_move(king, king, PASS)
    # behind all others, whose codes stay
    assert code >= without.policy.size
    for move in rules.legal_moves(position).tolist():
        assert slow.encode(position, move) == without.encode(position, move)


@pytest.mark.data
def test_master_games_take_few_bytes(shared_data: Path, tmp_path: Path) -> None:
    """Two shards of real games, names and results included."""
    spec = load_spec(builtin_specs()["xiangqi"])
    files, ranks = spec.board.files, spec.board.ranks

    def square(text: str) -> int:
        found = square_index(text, files, ranks)
        assert found is not None
        return found

    def move(text: str) -> int:
        cut = 3 if text[2:3].isdigit() else 2
        return make_move(square(text[:cut]), square(text[cut:]))

    path = shared_data / "xiangqi" / "masters.jsonl.zst"
    codec = RulesCodec(spec, make_rules(spec))
    games = []
    with path.open("rb") as file, StoreWriter(tmp_path / "a.store", spec, codec=codec) as writer:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8")
        for _, line in zip(range(2000), lines, strict=False):
            data = json.loads(line)
            games.append(
                GameRecord(
                    spec.variant,
                    [move(text) for text in data["moves"].split()],
                    result=data["result"],
                    white=data["red"],
                    black=data["black"],
                    event=data["event"],
                    eco=data["ecco"],
                    date=data["date"],
                    group=data["opening_group"],
                    source=data["path"],
                )
            )
            writer.add(games[-1])
    store = Store(tmp_path / "a.store", spec, codec=codec)
    assert store.info.bytes <= BYTES_A_PLY * store.plies
    assert list(store.games(range(0, 2000, 7))) == games[::7]
