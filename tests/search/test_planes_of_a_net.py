"""Nets trained with other planes or another policy than those of the variant's spec."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import variant_ai
from variant_ai.cli.common.search_options import spec_of_model
from variant_ai.core.encoding import ENCODER_VERSION, Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.inference import OnnxEvaluator, make_evaluator
from variant_ai.core.nets import configure_for
from variant_ai.core.nets.onnx_export import export_onnx
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.position import last_move
from variant_ai.core.search.forest.position_searches import analyse_many
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec import VariantSpec, builtin_specs, encoding_hash, load_spec, parse_spec
from variant_ai.core.spec.plane_layout import policy_planes

TEXT = Path(builtin_specs()["minixiangqi"]).read_text(encoding="utf-8")
PLAIN = load_spec(builtin_specs()["minixiangqi"])
SETTINGS = {"deterministic": True, "memory_mb": 8, "batch_size": 4}


def changed(text: str) -> VariantSpec:
    return parse_spec(text, "changed.yaml")


OWN = changed(TEXT.replace("  - colour\n", "  - last_moves: 2\n  - colour\n"))


@dataclass(frozen=True)
class Net:
    path: Path
    """Run directory with a file and a checkpoint of the same step."""
    onnx: Path


def write(folder: Path, spec: VariantSpec, *, says_spec: bool = True) -> Net:
    """Net with random weights that contains the spec of its planes."""
    encoder = Encoder(spec)
    config = configure_for("alphazero-8v-map", encoder, blocks=1, channels=8)
    torch.manual_seed(1)
    net = config.build()
    metadata = {
        "variant": spec.variant,
        "encoding_hash": encoding_hash(spec),
        "encoder_version": str(ENCODER_VERSION),
        **({"spec": json.loads(spec.model_dump_json(by_alias=True))} if says_spec else {}),
    }
    path = folder / "model.onnx"
    export_onnx(net, path, {**metadata, "net": "tiny", "head": "map"}, shape=config.shape)
    checkpoint = folder / "checkpoints" / "step-00000001"
    checkpoint.mkdir(parents=True)
    (checkpoint / "config.json").write_text(
        json.dumps({**metadata, "net": config.model_dump(mode="json")})
    )
    save_file(
        {k: v.contiguous() for k, v in net.state_dict().items()}, checkpoint / "model.safetensors"
    )
    return Net(folder, path)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Net:
    return write(tmp_path_factory.mktemp("own"), OWN)


def played(spec: VariantSpec) -> Game:
    game = Game(make_rules(spec))
    for _ in range(5):
        game.push(int(game.legal_moves()[3]))
    return game


@pytest.mark.parametrize("evaluator", ["onnx", "torch"])
def test_a_search_uses_the_planes_of_the_net(net: Net, evaluator: str) -> None:
    """The game has the variant's spec, whose positions contain no last moves."""
    found = []
    for spec in (PLAIN, OWN):
        made = make_evaluator(spec, net.path, evaluator=evaluator, threads=1)
        game = played(spec)
        params = SearchParams.of(spec, **SETTINGS)
        with made, Search(spec, made, params, rules=game.rules) as search:
            search.set_game(game)
            seen = search.game.position["last_moves"][0, :2].tolist()
            assert seen == [last_move(game.moves[-1]), last_move(game.moves[-2])]
            found.append(
                [(line.move, line.visits) for line in search.run(Limits(nodes=60), multipv=9).lines]
            )
    assert found[0] == found[1]


def test_searches_of_many_positions_use_the_spec_of_the_net(net: Net) -> None:
    lines, words = [], []
    for spec in (PLAIN, OWN):
        made, game = make_evaluator(spec, net.onnx, evaluator="onnx", threads=1), played(spec)
        params = SearchParams.of(spec, **SETTINGS)
        (report,) = analyse_many(spec, made, [game], params, nodes=30, rules=game.rules)
        lines.append([(line.move, line.visits) for line in report.lines])
        words.append(made.evaluate(Encoder(OWN).planes(played(OWN).position)).value[0])
    assert lines[0] == lines[1]
    with variant_ai.Engine("minixiangqi", net.onnx, evaluator="onnx", memory_mb=8) as engine:
        position = variant_ai.Position("minixiangqi")
        for move in played(PLAIN).uci_moves():
            position.push(move)
        ((value, _),) = engine.evaluate([position])
    np.testing.assert_allclose(value, words[0], rtol=1e-5)


def test_a_net_with_other_planes_is_rejected_if_those_of_the_spec_are_needed(net: Net) -> None:
    with pytest.raises(DataError, match="another version of the minixiangqi spec"):
        OnnxEvaluator(net.onnx, PLAIN)


def test_other_rules_are_another_game(tmp_path: Path) -> None:
    words = TEXT.replace("repetition: {fold: 3", "repetition: {fold: 4")
    assert words != TEXT
    other = write(tmp_path, changed(words))
    with pytest.raises(DataError, match="another version of the minixiangqi spec"):
        make_evaluator(PLAIN, other.onnx, evaluator="onnx")


def test_a_net_without_a_spec(tmp_path: Path) -> None:
    silent = write(tmp_path, OWN, says_spec=False)
    with pytest.raises(DataError, match="use the spec it was trained with"):
        make_evaluator(PLAIN, silent.onnx, evaluator="onnx")
    make_evaluator(OWN, silent.onnx, evaluator="onnx").close()


def test_commands_use_the_spec_of_the_net(net: Net, tmp_path: Path) -> None:
    """Without the configuration of a run, and for a variant that is not installed."""
    lone = tmp_path / "lone.onnx"
    lone.write_bytes(net.onnx.read_bytes())
    assert spec_of_model(lone, None) == OWN
    unknown = changed(TEXT.replace("variant: minixiangqi", "variant: nowhere-known"))
    assert spec_of_model(write(tmp_path, unknown).onnx, None) == unknown


def test_a_net_may_number_moves_in_its_own_way(tmp_path: Path) -> None:
    text = Path(builtin_specs()["xiangqi"]).read_text(encoding="utf-8")
    words = text.replace("slides: {N: 9, E: 8, S: 9, W: 8}", "slides: {E: 8, N: 9, S: 9, W: 8}")
    plain, own = changed(text), changed(words)
    assert policy_planes(plain) != policy_planes(own)
    net, found = write(tmp_path, own), []
    for spec in (plain, own):
        made = make_evaluator(spec, net.onnx, evaluator="onnx", threads=1)
        game = played(spec)
        with (
            made,
            Search(spec, made, SearchParams.of(spec, **SETTINGS), rules=game.rules) as search,
        ):
            search.set_game(game)
            lines = search.run(Limits(nodes=40), multipv=99).lines
            found.append([(line.move, round(line.prior, 5)) for line in lines])
    assert found[0] == found[1]
