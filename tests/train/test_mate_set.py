"""Mate-in-one sets: finding them, comparing with Fairy-Stockfish, measuring, and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.inference import Evaluation
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.core.train.measure.mate_set import find_mates, load_mates, measure_mates, save_mates

SCHOLAR = "e2e4 e7e5 d1h5 b8c6 f1c4 g8f6 h5f7"
FOOL = "f2f3 e7e5 g2g4 d8h4"


def spec_of(name: str) -> VariantSpec:
    return load_spec(builtin_specs()[name])


def store_of(path: Path, spec: VariantSpec, games: list[tuple[str, str]]) -> Store:
    rules = make_rules(spec)
    with StoreWriter(path, spec, sources=["made"]) as writer:
        for moves, result in games:
            played = Game.from_uci(rules, None, moves.split()).moves
            writer.add(GameRecord(spec.variant, played, result=result))
    return Store(path, spec)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory):
    spec = spec_of("crazyhouse")
    path = tmp_path_factory.mktemp("mates") / "games.store"
    store = store_of(path, spec, [(SCHOLAR, "1-0"), (FOOL, "0-1"), (SCHOLAR, "1-0")])
    rules = make_rules(spec)
    return spec, rules, Sampler(store, Encoder(spec), batch=4, seed=3)


def test_known_mates_are_found_once_each(house) -> None:
    _, rules, source = house
    found = find_mates(source, rules, 100)
    said = {
        rules.fen(found.positions[k : k + 1]).split("[")[0]: moves
        for k, moves in enumerate(found.mates)
    }
    assert len(found) == 2  # the game that is there twice adds nothing
    assert found.scanned == source.positions
    game = Game.from_uci(rules, None, SCHOLAR.split()[:-1])
    assert len(said[game.fen().split("[")[0]]) == 1
    game.push_uci("h5f7")
    assert game.outcome() is not None and game.outcome().reason == "checkmate"
    assert found.legal_moves == np.mean(found.legal)
    assert find_mates(source, rules, 1).mates[0] in found.mates


def test_the_set_is_what_the_seed_makes_it(house) -> None:
    _, rules, source = house
    first, again = find_mates(source, rules, 2), find_mates(source, rules, 2)
    assert first.mates == again.mates
    assert np.array_equal(first.positions, again.positions)


def test_last_moves_are_kept_for_the_planes_that_show_them(tmp_path: Path) -> None:
    plain = spec_of("crazyhouse")
    items = [{"last_moves": 2}, *plain.model_dump(by_alias=True)["input"]]
    spec = VariantSpec.model_validate_json(
        json.dumps({**json.loads(plain.model_dump_json(by_alias=True)), "input": items})
    )
    rules = make_rules(spec)
    source = Sampler(
        store_of(tmp_path / "a.store", spec, [(SCHOLAR, "1-0"), (FOOL, "0-1")]),
        Encoder(spec),
        batch=4,
    )
    found = find_mates(source, rules, 10)
    save_mates(tmp_path / "mates.jsonl", found, rules)
    again = load_mates(tmp_path / "mates.jsonl", rules)
    encoder = Encoder(spec)
    planes = encoder.planes(found.positions)
    assert planes[:, :4].any() and np.array_equal(encoder.planes(again.positions), planes)


def test_a_pass_before_the_position_is_kept(tmp_path: Path) -> None:
    """After it, another pass wins by the extra points of the second player."""
    spec = spec_of("janggi")
    rules = make_rules(spec)
    games = [("e2e2 e9e9", "0-1")]
    source = Sampler(store_of(tmp_path / "a.store", spec, games), Encoder(spec), batch=1)
    found = find_mates(source, rules, 1)
    save_mates(tmp_path / "mates.jsonl", found, rules)
    again = load_mates(tmp_path / "mates.jsonl", rules)
    assert again.positions["passes"].tolist() == [1]
    assert again.mates == found.mates


def test_kept_and_read_again(house, tmp_path: Path) -> None:
    spec, rules, source = house
    found = find_mates(source, rules, 10)
    path = tmp_path / "mates.jsonl"
    save_mates(path, found, rules)
    again = load_mates(path, rules)
    assert again.mates == found.mates
    assert np.array_equal(again.legal, found.legal)
    encoder = Encoder(spec)
    assert np.array_equal(encoder.planes(again.positions), encoder.planes(found.positions))
    with pytest.raises(DataError, match="positions of crazyhouse, not of xiangqi"):
        load_mates(path, make_rules(spec_of("xiangqi")))
    lines = path.read_text().splitlines()
    broken = {**json.loads(lines[1]), "mates": ["a1a8"]}
    path.write_text("\n".join([lines[0], json.dumps(broken)]))
    with pytest.raises(DataError, match="line 2"):
        load_mates(path, rules)
    path.write_text("nonsense")
    with pytest.raises(DataError, match="not a mate-in-one set"):
        load_mates(path, rules)


def test_games_without_mates_are_refused(tmp_path: Path) -> None:
    spec = spec_of("crazyhouse")
    store = store_of(tmp_path / "calm.store", spec, [("e2e4 e7e5 g1f3", "1/2-1/2")])
    with pytest.raises(DataError, match="none of the 3 positions"):
        find_mates(Sampler(store, Encoder(spec), batch=2), make_rules(spec))


def test_numbers_of_a_made_up_net(house) -> None:
    """One that knows the mates, one that ranks them last, one that likes an illegal action."""
    spec, rules, source = house
    found, encoder = find_mates(source, rules, 10), Encoder(spec)
    winning = {
        encoder.planes(found.positions[k : k + 1]).tobytes(): encoder.action_indices(
            found.positions[k : k + 1], list(moves)
        )
        for k, moves in enumerate(found.mates)
    }

    def net(height: float, illegal: bool, value: float):
        def predict(planes):
            logits = np.zeros((len(planes), encoder.actions), np.float32)
            for row, one in zip(logits, planes, strict=True):
                row[winning[one[None].tobytes()]] = height
                if illegal:
                    row[encoder.actions - 1] = 99
            return Evaluation(np.full(len(planes), value, np.float32), logits)

        return measure_mates(predict, found, rules, encoder, batch=1)

    good = net(5, False, 1.0)
    assert (good.accuracy, good.top5_accuracy, good.unmasked_accuracy) == (1, 1, 1)
    assert (good.value_loss, good.positions) == (0, len(found))
    bad = net(-5, False, -1.0)
    assert (bad.accuracy, bad.top5_accuracy, bad.value_loss) == (0, 0, 4)
    odd = net(5, True, 0.5)
    assert (odd.accuracy, odd.unmasked_accuracy, odd.value_loss) == (1, 0, 0.25)


@pytest.mark.parametrize("name", ["crazyhouse", "xiangqi"])
def test_fairy_stockfish_agrees(name: str, tmp_path: Path) -> None:
    """Each position has exactly the mating moves that pyffish finds, in random games."""
    pyffish = pytest.importorskip("pyffish")
    from random_games import random_store

    spec = spec_of(name)
    path = random_store(tmp_path / "random.store", spec, 40, 160, 5)
    rules = make_rules(spec)
    fairy = make_rules(spec, "fairy")
    source = Sampler(Store(path, spec), Encoder(spec), batch=256)
    found = find_mates(source, rules, 5)
    assert pyffish.version() and len(found) == 5
    for k, moves in enumerate(found.mates):
        position = fairy.position(rules.fen(found.positions[k : k + 1]))
        side = int(position[0]["side"])
        wins = []
        for move in fairy.legal_moves(position).tolist():
            outcome = fairy.outcome(fairy.play(position, move))
            if outcome is not None and outcome.winner == side:
                wins.append(move)
        assert sorted(wins) == list(moves), rules.fen(found.positions[k : k + 1])
