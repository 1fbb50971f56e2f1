"""Nets for more input planes: the same numbers as before, and training that goes on from them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from click.testing import CliRunner

from variant_ai.cli.main import cli
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
from variant_ai.core.inference.widened_net import widen
from variant_ai.core.nets.restore import restore
from variant_ai.core.rules import make_rules
from variant_ai.core.spec import VariantSpec, load_spec
from variant_ai.core.spec.plane_layout import policy_planes
from variant_ai.core.train.run.initial_weights import find_start
from variant_ai.plugins import registry

MORE = """spec: 1
extends: minixiangqi
variant: minixiangqi
input: [attacks: them, inherited, attacks: me]
"""


def written(folder: Path, text: str = MORE) -> VariantSpec:
    path = folder / "more.yaml"
    path.write_text(text)
    return load_spec(path)


def packaged() -> Path:
    return registry().net(registry().variant("minixiangqi"), Path("packaged"))


@pytest.mark.parametrize("source", ["packaged", "run folder"])
def test_it_returns_the_same_numbers(tmp_path: Path, source: str) -> None:
    spec = written(tmp_path)
    wider = tmp_path / "wider.onnx"
    if source == "run folder":
        source = str(tmp_path / "run")
        Path(source).mkdir()
        shutil.copy(packaged(), Path(source) / "model.onnx")
    command = ["nets", "widen", source, "-V", str(tmp_path / "more.yaml"), "-o", str(wider)]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    rules, old = make_rules(spec), registry().variant("minixiangqi")
    positions = [rules.position()]
    for number in range(20):
        moves = rules.legal_moves(positions[-1])
        positions.append(rules.play(positions[-1], int(moves[number % len(moves)])))
    records = np.concatenate(positions)
    with OnnxEvaluator(wider, spec) as ours, OnnxEvaluator(packaged(), old) as before:
        one = ours.evaluate(Encoder(spec).planes(records))
        other = before.evaluate(Encoder(old).planes(records))
    np.testing.assert_allclose(one.value, other.value, atol=1e-6)
    np.testing.assert_allclose(one.policy, other.policy, atol=1e-4)
    assert CliRunner().invoke(cli, command).exit_code == 1  # it overwrites nothing
    facts = json.loads(CliRunner().invoke(cli, [*command, "--replace", "--json"]).stdout)
    assert facts["file"] == str(wider) and facts["left_out"] == []
    assert len(facts["new_planes"]) == Encoder(spec).shape[0] - Encoder(old).shape[0]


def test_training_goes_on_from_it(tmp_path: Path) -> None:
    spec = written(tmp_path)
    wider = tmp_path / "wider.onnx"
    wider.write_bytes(widen(packaged(), spec))
    net = restore(wider)
    first = next(p for p in net.parameters() if p.dim() == 4)
    count = len(spec.pieces)
    assert first.shape[1] == Encoder(spec).shape[0]
    assert not first[:, :count].any() and not first[:, -count:].any()
    assert first[:, count:-count].any()


def test_a_variant_starts_with_the_net_of_another(tmp_path: Path) -> None:
    """One with other rules, on the same board and with the same moves."""
    text = "spec: 1\nextends: minixiangqi\nvariant: hurried\nrules: {no_progress: {plies: 40}}\n"
    spec = written(tmp_path, text)
    words = ["nets", "widen", "minixiangqi", "-V", str(tmp_path / "more.yaml"), "-o"]
    missing = ["nets", "widen", "no-net", *words[3:], str(tmp_path / "a.onnx")]
    assert "no-net" in CliRunner().invoke(cli, missing).output
    refused = CliRunner().invoke(cli, [*words, str(tmp_path / "a.onnx")])
    assert refused.exit_code == 1 and "--other-rules" in refused.output
    done = CliRunner().invoke(cli, [*words, str(tmp_path / "a.onnx"), "--other-rules"])
    assert done.exit_code == 0, done.output
    old = registry().variant("minixiangqi")
    start = make_rules(spec).position()
    with OnnxEvaluator(tmp_path / "a.onnx", spec) as ours, OnnxEvaluator(packaged(), old) as before:
        one = ours.evaluate(Encoder(spec).planes(start))
        other = before.evaluate(Encoder(old).planes(start))
    np.testing.assert_allclose(one.policy, other.policy, atol=1e-4)
    with pytest.raises(
        DataError, match="is a net for a board of 7 x 7 squares, the spec has 3 x 4"
    ):
        widen(packaged(), registry().variant("dobutsu"), other_rules=True)


ANTICHESS = """spec: 1
extends: antichess
variant: antichess
input:
  - attacks: me
  - pieces: me
  - pieces: them
  - repetitions: 2
  - en_passant
  - colour
  - move_number: {max: 250}
  - halfmove: {max: 200}
  - attacks: them
"""


def test_moves_and_counts_of_another_variant(tmp_path: Path) -> None:
    """Antichess has fewer input planes than atomic chess, which has castling, and promotions to kings.
    Counts are divided by other maxima, which changes the weights."""
    spec, old = written(tmp_path, ANTICHESS), registry().variant("atomic")
    net, start = registry().net(old, Path("packaged")), tmp_path / "start.onnx"
    with pytest.raises(DataError, match="other rules"):
        widen(net, spec)
    start.write_bytes(widen(net, spec, other_rules=True))
    fen = "k7/3P4/8/8/2n5/8/5B2/K7 w - - 30 200"
    with OnnxEvaluator(net) as evaluator:
        seen = evaluator.info.own_spec(old)
        before = evaluator.evaluate(Encoder(seen).planes(make_rules(seen).position(fen)))
    with OnnxEvaluator(start, spec) as evaluator:
        after = evaluator.evaluate(Encoder(spec).planes(make_rules(spec).position(fen)))
    np.testing.assert_allclose(after.value, before.value, atol=1e-6)
    ours, theirs = after.policy[0].reshape(-1, 64), before.policy[0].reshape(-1, 64)
    places = {plane.name: plane.index for plane in policy_planes(seen)}
    for plane in policy_planes(spec):
        place = places[plane.name.replace("=K", "=N")]
        np.testing.assert_allclose(ours[plane.index], theirs[place], atol=1e-4)
    assert policy_planes(spec) != policy_planes(seen)
    assert restore(start)(torch.zeros(1, *Encoder(spec).shape))  # its configuration fits its layers


def test_a_training_names_the_command_for_another_variant() -> None:
    """Only where the boards have the same size."""
    start = find_start(registry().net(registry().variant("atomic"), Path("packaged")))
    with pytest.raises(
        DataError, match=r"for atomic, not for chess; `variant-ai nets widen --other"
    ):
        start.net(registry().variant("chess"))
    with pytest.raises(DataError, match=r"for atomic, not for xiangqi$"):
        start.net(registry().variant("xiangqi"))


def test_planes_that_do_not_fit(tmp_path: Path) -> None:
    fewer = written(
        tmp_path, "spec: 1\nextends: minixiangqi\nvariant: minixiangqi\ninput: [colour]\n"
    )
    with pytest.raises(DataError, match=r"a plane 'my generals' .* the spec does not have"):
        widen(packaged(), fewer)
    with pytest.raises(DataError, match="is a net for minixiangqi with other rules than dobutsu"):
        widen(packaged(), registry().variant("dobutsu"))
    model = onnx.load(packaged())
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "bare.onnx")
    with pytest.raises(DataError, match="does not contain the spec"):
        widen(tmp_path / "bare.onnx", written(tmp_path))
    model = onnx.load(packaged())
    del model.metadata_props[-1]  # its checksum
    model.graph.node.insert(0, onnx.helper.make_node("Identity", ["planes"], ["same"]))
    model.graph.node[1].input[0] = "same"
    onnx.save(model, tmp_path / "odd.onnx")
    with pytest.raises(DataError, match="first layer is not a convolution"):
        widen(tmp_path / "odd.onnx", written(tmp_path))
