"""An evaluator that a plugin brings can be named wherever the project's own can."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import variant_ai
from variant_ai.cli.common.options import registered_rules
from variant_ai.cli.main import cli
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import PluginError, UnknownNameError, VariantAIError
from variant_ai.core.factories import EVALUATORS, NETWORKS
from variant_ai.core.inference import (
    Evaluator,
    EvaluatorRequest,
    UniformEvaluator,
    make_evaluator,
)
from variant_ai.core.nets import NetShape, NetSize, NetworkBuilder, find_builder
from variant_ai.core.spec import load_spec
from variant_ai.core.spec.catalogue import builtin_specs
from variant_ai.plugins import API_VERSION, EvaluatorEntry, NetworkEntry, Registry, hookimpl

WITHOUT_NET = Path(__file__).parents[2] / "benchmarks" / "gardner.yaml"
NET = ("--evaluator", "mine", "--batch", "4")
SEEN: list[EvaluatorRequest] = []


class Mine(UniformEvaluator):
    name = "mine"


def mine(request: EvaluatorRequest) -> Evaluator:
    """The target of the entry below."""
    SEEN.append(request)
    encoder = Encoder(request.spec)
    return Mine(encoder.shape, encoder.actions)


def fails(request: EvaluatorRequest) -> Evaluator:
    raise ZeroDivisionError("by nought")


def refuses(request: EvaluatorRequest) -> Evaluator:
    raise VariantAIError("no licence for mine")


def leaves(request: EvaluatorRequest) -> Evaluator:
    raise SystemExit(3)


class Deep(NetworkBuilder):
    name = "deep"
    summary = "a net of a plugin"
    source = "this file"
    heads = ("map",)
    size_type = NetSize

    def build(self, shape: NetShape, size: NetSize) -> Any:
        raise NotImplementedError


class Nameless(NetworkBuilder):
    name = "nameless"

    def build(self, shape: NetShape, size: NetSize) -> Any:
        raise NotImplementedError


class Plugin:
    variant_ai_api = API_VERSION

    @hookimpl
    def register_evaluators(self) -> list[EvaluatorEntry]:
        return [
            EvaluatorEntry(f.__name__, f"{__name__}:{f.__name__}")
            for f in (mine, fails, refuses, leaves)
        ]

    @hookimpl
    def register_networks(self) -> list[NetworkEntry]:
        return [NetworkEntry("deep", f"{__name__}:Deep")]


@pytest.fixture(autouse=True)
def with_plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Registry]:
    """The installation's registry and the plugin; nobody's nets."""
    found = Registry()
    assert found.register(Plugin(), "outside")
    for module in ("variant_ai.plugins", "variant_ai.api"):
        monkeypatch.setattr(f"{module}.registry", lambda: found)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    SEEN.clear()
    yield found
    NETWORKS.clear()
    EVALUATORS.clear()


@pytest.mark.parametrize(
    "words",
    [
        ("analyse", "startpos", "-V", "crazyhouse", *NET, "-n", "8"),
        ("bench", "-V", "crazyhouse", *NET, "-n", "50", "--rounds", "1"),
        ("play", "-V", "crazyhouse", *NET, "-n", "8"),
        ("experiment", "n-e6", "-V", "crazyhouse", *NET, "-n", "8", "--points", "2", "--only", "all"),
        ("match", "net:-;evaluator=mine", "random", "-V", "crazyhouse", "--nodes", "4", "--games",
         "1", "--max-plies", "2", "-o", "m"),
        ("solve", "net:-;evaluator=mine", "s.epd", "-V", "crazyhouse", "--nodes", "4"),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_every_command_takes_it(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    start = variant_ai.Position("crazyhouse").fen
    Path("s.epd").write_text(f"{start} bm e2e4;\n", encoding="utf-8")
    done = CliRunner().invoke(cli, list(words), input="quit\n")
    assert done.exit_code == 0, done.output
    assert SEEN and {request.spec.variant for request in SEEN} == {"crazyhouse"}


def test_programs_and_the_engine_take_it() -> None:
    with variant_ai.Engine("xiangqi", evaluator="mine") as engine:
        assert engine.evaluator.name == "mine"
    from variant_ai.cli.play.engine import _engine_builder

    settings = {"model": "", "evaluator": "mine", "device": "cpu", "precision": None}
    settings |= {"threads": 1, "batch": 4}
    said: list[str] = []
    builder, _ = _engine_builder(None, None)
    for name in ("xiangqi", str(WITHOUT_NET)):  # one with a net in the package, one without
        made = builder.evaluator(builder.spec(name), settings, said.append)
        assert made.name == "mine" and said == []
    assert [request.model is None for request in SEEN[1:]] == [False, True]


def test_a_variant_without_a_net(with_plugin: Registry) -> None:
    spec = with_plugin.variant(str(WITHOUT_NET))
    told: list[str] = []
    assert with_plugin.usual_evaluator(spec, evaluator="mine", warn=told.append).name == "mine"
    assert told == []
    assert with_plugin.usual_evaluator(spec, warn=told.append).name == "material"
    assert len(told) == 1 and "the search counts pieces" in told[0]
    with pytest.raises(UnknownNameError, match=r"accepted: .*mine"):
        with_plugin.evaluator(spec, None, evaluator="mein")


def test_nets_of_plugins_are_known_to_evaluators(with_plugin: Registry, tmp_path: Path) -> None:
    with_plugin.evaluator(load_spec(builtin_specs()["makruk"]), tmp_path, evaluator="mine")
    assert find_builder("deep").summary == "a net of a plugin"


def test_players_of_a_cluster_know_them_once_they_have_the_rules(with_plugin: Registry) -> None:
    spec = load_spec(builtin_specs()["makruk"])
    assert "mine" not in EVALUATORS and "deep" not in NETWORKS
    registered_rules(spec)
    assert find_builder("deep").name == "deep"
    assert make_evaluator(spec, None, evaluator="mine").name == "mine"


@pytest.mark.parametrize(
    ("name", "error"), [("fails", "ZeroDivisionError: by nought"), ("leaves", "SystemExit: 3")]
)
def test_an_evaluator_that_cannot_be_made_is_named(
    name: str, error: str, with_plugin: Registry
) -> None:
    spec = with_plugin.variant("makruk")
    with pytest.raises(
        PluginError, match=rf"plugin 'outside': .* failed to make '{name}': {error}"
    ):
        with_plugin.evaluator(spec, None, evaluator=name)
    done = CliRunner().invoke(
        cli, ["analyse", "startpos", "-V", "makruk", "-n", "8", "--evaluator", name]
    )
    assert done.exit_code == 1 and error in done.output


def test_what_an_evaluator_tells_the_user_is_not_dressed_up(with_plugin: Registry) -> None:
    with pytest.raises(VariantAIError, match=r"^no licence for mine$"):
        with_plugin.evaluator(with_plugin.variant("makruk"), None, evaluator="refuses")


@pytest.mark.parametrize(
    ("name", "target", "reason"),
    [
        ("hi", "nosuch:make", "cannot load 'hi' from 'nosuch:make': ModuleNotFoundError"),
        ("hi", "json:loads", "'json:loads' failed to make 'hi': TypeError"),
        ("hi", "types:SimpleNamespace", "is a SimpleNamespace, not a NetworkBuilder"),
        ("hi", f"{__name__}:Deep", "is a builder that calls itself 'deep'"),
        ("nameless", f"{__name__}:Nameless", "is a builder without summary, source, heads, size_type"),
    ],
)  # fmt: skip
def test_a_net_that_cannot_be_made_is_named_and_the_others_serve(
    name: str, target: str, reason: str, with_plugin: Registry
) -> None:
    class Other:
        variant_ai_api = API_VERSION

        @hookimpl
        def register_networks(self) -> list[NetworkEntry]:
            return [NetworkEntry(name, target, "a net")]

    assert with_plugin.register(Other(), "other")
    builders = with_plugin.builders()
    assert name not in builders and {"deep", "risev2-mobile"} <= set(builders)
    assert find_builder("risev2-mobile").name == "risev2-mobile"
    with pytest.raises(PluginError, match="plugin 'other': ") as caught:
        find_builder(name)
    assert reason in str(caught.value)
    with pytest.raises(UnknownNameError, match=r"accepted: .*deep"):
        find_builder("nobody")
    problems = {info.name: info.problem for info in with_plugin.plugins}
    assert problems["outside"] == ""
    assert f"networks {name!r} was left out: " in problems["other"] and reason in problems["other"]
    done = CliRunner().invoke(cli, ["nets"])
    assert done.exit_code == 0 and "risev2-mobile" in done.output
    done = CliRunner().invoke(cli, ["nets", name])
    assert done.exit_code == 1 and reason in " ".join(done.output.split())
