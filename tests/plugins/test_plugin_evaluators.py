"""An evaluator that a plugin brings can be named wherever the project's own can."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import variant_ai
from variant_ai.cli.main import cli
from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import Evaluator, EvaluatorRequest, UniformEvaluator
from variant_ai.plugins import API_VERSION, EvaluatorEntry, NetworkEntry, Registry, hookimpl
from variant_ai.specs.errors import UnknownNameError

NET = ("--evaluator", "mine", "--batch", "4")
SEEN: list[EvaluatorRequest] = []


class Mine(UniformEvaluator):
    name = "mine"


def mine(request: EvaluatorRequest) -> Evaluator:
    """The target of the entry below."""
    SEEN.append(request)
    encoder = Encoder(request.spec)
    return Mine(encoder.shape, encoder.actions)


class Plugin:
    variant_ai_api = API_VERSION

    @hookimpl
    def register_evaluators(self) -> list[EvaluatorEntry]:
        return [EvaluatorEntry("mine", f"{__name__}:mine")]

    @hookimpl
    def register_networks(self) -> list[NetworkEntry]:
        return [NetworkEntry("deep", "types:SimpleNamespace")]


@pytest.fixture(autouse=True)
def with_plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Registry:
    """The installation's registry and the plugin; nobody's nets."""
    found = Registry()
    assert found.register(Plugin(), "outside")
    for module in ("variant_ai.plugins", "variant_ai.api"):
        monkeypatch.setattr(f"{module}.registry", lambda: found)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    SEEN.clear()
    return found


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
    Path("s.epd").write_text(f"{start} bm e2e4;\n")
    done = CliRunner().invoke(cli, list(words), input="quit\n")
    assert done.exit_code == 0, done.output
    assert SEEN and {request.spec.variant for request in SEEN} == {"crazyhouse"}


def test_programs_and_the_engine_take_it() -> None:
    with variant_ai.Engine("xiangqi", evaluator="mine") as engine:
        assert engine.evaluator.name == "mine"
    from variant_ai.cli.engine import _workshop

    settings = {"model": "", "evaluator": "mine", "device": "cpu", "precision": None}
    settings |= {"threads": 1, "batch": 4}
    said: list[str] = []
    workshop, _ = _workshop(None, None)
    for name in ("xiangqi", "makruk"):  # one with a net in the package, one without
        made = workshop.evaluator(workshop.spec(name), settings, said.append)
        assert made.name == "mine" and said == []
    assert [request.model is None for request in SEEN[1:]] == [False, True]


def test_a_variant_without_a_net(with_plugin: Registry) -> None:
    spec = with_plugin.variant("makruk")
    told: list[str] = []
    assert with_plugin.usual_evaluator(spec, evaluator="mine", warn=told.append).name == "mine"
    assert told == []
    assert with_plugin.usual_evaluator(spec, warn=told.append).name == "uniform"
    assert len(told) == 1 and "every move counts alike" in told[0]
    with pytest.raises(UnknownNameError, match=r"accepted: .*mine"):
        with_plugin.evaluator(spec, None, evaluator="mein")


def test_nets_of_plugins_are_known_to_evaluators(with_plugin: Registry, tmp_path: Path) -> None:
    spec = with_plugin.variant("makruk")
    with_plugin.evaluator(spec, tmp_path, evaluator="mine")
    builders = SEEN[-1].builders
    assert builders is not None and {"deep", "risev2-mobile"} <= set(builders)
