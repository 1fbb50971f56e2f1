"""`variant-ai nets adopt`: a net in foreign names and conventions plays as it did before."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import helper

from variant_ai.cli.main import cli
from variant_ai.core.encoding import Encoder
from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
from variant_ai.core.inference.model_file import read_model_file
from variant_ai.core.rules import make_rules
from variant_ai.core.spec import load_spec
from variant_ai.plugins import registry


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """The packaged net as CrazyAra's are: other names, one position, probabilities, no metadata. Beside
    it `own.yaml`, the spec with its planes."""
    packaged = registry().net(registry().variant("crazyhouse"), Path("packaged"))
    own = read_model_file(packaged).info.own_spec(registry().variant("crazyhouse"))
    (tmp_path / "own.yaml").write_text(own.model_dump_json(by_alias=True, exclude_defaults=True))
    model = onnx.load(packaged)
    del model.metadata_props[:]
    onnx.compose.add_prefix(model, "x/", inplace=True)
    graph = model.graph
    renamed = {"x/planes": "data", "x/value": "value_out"}
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [renamed.get(name, name) for name in names]
    graph.node.append(helper.make_node("Softmax", ["x/policy"], ["policy_out"], axis=1))
    for info in (*graph.input, *graph.output):
        info.name = renamed.get(info.name, info.name.replace("x/policy", "policy_out"))
        info.type.tensor_type.shape.dim[0].dim_value = 1
    path = tmp_path / "foreign.onnx"
    onnx.save(model, path)
    return path


def test_a_foreign_net_answers_as_before(foreign: Path) -> None:
    output = foreign.with_name("adopted.onnx")
    own = str(foreign.with_name("own.yaml"))
    command = ["nets", "adopt", str(foreign), "-V", own, "-o", str(output)]
    done = CliRunner().invoke(cli, [*command, "--layout", "crazyara-crazyhouse", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["policy"] == "probabilities" and found["legal_share"] > 0.9
    spec = load_spec(own)
    planes = Encoder(spec).planes(np.repeat(make_rules(spec).position(), 3))
    with (
        OnnxEvaluator(output, spec) as ours,
        OnnxEvaluator(registry().net(spec, Path("packaged"))) as before,
    ):
        one, other = ours.evaluate(planes), before.evaluate(planes)
    assert np.allclose(one.value, other.value, atol=1e-5)
    shares = [np.exp(e.policy - e.policy.max(1, keepdims=True)) for e in (one, other)]
    assert np.allclose(*(share / share.sum(1, keepdims=True) for share in shares), atol=1e-5)
    again = CliRunner().invoke(cli, [*command, "--layout", "crazyara-crazyhouse"])
    assert again.exit_code == 1 and "--replace" in again.output


def test_a_wrong_layout_is_noticed(foreign: Path, tmp_path: Path) -> None:
    layout = tmp_path / "upside-down.yaml"
    layout.write_text(
        "variant: crazyhouse\ninput: {first_rank: last}\npolicy: {first_rank: last}\n"
    )
    own = foreign.with_name("own.yaml")
    words = f"nets adopt {foreign} -V {own} --layout {layout} -o {tmp_path / 'adopted.onnx'}"
    done = CliRunner().invoke(cli, words.split())
    assert done.exit_code == 0, done.output
    assert "the layout is probably not that of the net" in done.output


def test_nets_without_a_command_are_listed() -> None:
    listed = CliRunner().invoke(cli, ["nets"])
    assert listed.exit_code == 0 and "risev2-mobile" in listed.output
    assert CliRunner().invoke(cli, ["nets", "list"]).output == listed.output
