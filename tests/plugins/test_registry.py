"""The registry: what it collects, whom it believes, and what it does about broken plugins."""

from __future__ import annotations

import logging
import os
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pytest

from variant_ai.core.data.read.game_reader import core_readers
from variant_ai.core.errors import DataError, PluginError, SpecError, UnknownNameError
from variant_ai.core.factories import RULES_ENGINES
from variant_ai.core.rules.text.notation import UciNotation, core_notations
from variant_ai.core.spec import builtin_specs
from variant_ai.core.spec.catalogue import user_specs
from variant_ai.plugins import (
    API_VERSION,
    CommandEntry,
    EncoderEntry,
    EvaluatorEntry,
    NetworkEntry,
    NotationEntry,
    ProtocolEntry,
    ReaderEntry,
    Registry,
    RulesEntry,
    SearchEntry,
    TrainerEntry,
    VariantEntry,
    hookimpl,
    registry,
)
from variant_ai.plugins.hookspecs import HOOKS, Hooks
from variant_ai.plugins.host import OWN_DISTRIBUTION as OWN

ENVIRON = {"VARIANT_AI_SPECS": ""}
"""No folder of the user's."""
PGN = "variant_ai.core.data.read.pgn:PgnReader"
UCI = "variant_ai.core.rules.text.notation:UciNotation"
READERS = [reader.name for reader in core_readers()]
NOTATIONS = [notation.name for notation in core_notations() if notation.name != "iccs"]
"""Of variants that are not played in UCCI."""


class Plugin:
    """A plugin object with the hooks it is given."""

    variant_ai_api = API_VERSION


def plugin(**hooks: Any) -> Plugin:
    """A plugin whose hooks return what is given."""
    made = Plugin()
    for name, entries in hooks.items():
        setattr(made, name, hookimpl(_hook(name, entries)))
    return made


def _hook(name: str, entries: Any) -> Any:
    def hook() -> Any:
        return entries

    hook.__name__ = name
    return hook


def empty(**environ: str) -> Registry:
    """A registry without any installed plugin."""
    return Registry(entry_points=[], environ={**ENVIRON, **environ})


def problem(of: Registry, name: str) -> str:
    return {info.name: info.problem for info in of.plugins}[name]


def broken_entry_point(tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> EntryPoint:
    (tmp_path / "broken_plugin_for_test.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    return EntryPoint("broken", "broken_plugin_for_test", "variant_ai")


# --- what is installed ---------------------------------------------------------------------------


def test_shipped_variants_come_in_through_entry_points_of_their_own() -> None:
    found = Registry(environ=ENVIRON)
    own = [p.name for p in entry_points(group="variant_ai") if p.dist and p.dist.name == OWN]
    shipped = {info.name: info for info in found.plugins if info.own}
    assert len(own) >= 2
    for name in own:
        assert found.variants[name].plugin == name
        assert shipped[name].problem == ""
        assert found.variant(name).variant == name


def test_specs_without_a_plugin_are_registered_all_the_same() -> None:
    found = empty()
    assert set(found.variants) == set(builtin_specs())
    assert {entry.plugin for entry in found.variants.values()} == {"specs"}


def test_the_registry_of_the_process_is_one() -> None:
    assert registry() is registry()


def test_own_plugins_add_no_commands() -> None:
    # `--help` does not load plugins while only the project's own are installed.
    own = {info.name for info in registry().plugins if info.own}
    assert [c.name for c in registry().commands.values() if c.plugin in own] == []


def test_every_hook_is_documented_and_known() -> None:
    declared = {name for name in vars(Hooks) if name.startswith("register_")}
    assert declared == set(HOOKS)
    page = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
    for name, entry in HOOKS.items():
        assert getattr(Hooks, name).__doc__
        assert f"`{name}` | `{entry.__name__}(" in page


# --- what plugins register -----------------------------------------------------------------------


def test_entries_carry_the_name_of_their_plugin(tmp_path: Path) -> None:
    found = empty()
    assert found.register(
        plugin(
            register_variants=[VariantEntry("mine", tmp_path / "mine.yaml")],
            register_evaluators=[EvaluatorEntry("deep", "json:loads", "a net")],
            register_commands=[CommandEntry("hello", "json:dumps", "says hello")],
        ),
        "outside",
        "1.2",
    )
    assert found.variants["mine"].plugin == "outside"
    assert found.evaluators["deep"].plugin == "outside"
    assert found.commands["hello"].summary == "says hello"
    assert found.registered()["outside"] == {
        "variants": ["mine"],
        "evaluators": ["deep"],
        "commands": ["hello"],
    }
    info = next(i for i in found.plugins if i.name == "outside")
    assert (info.version, info.problem, info.own) == ("1.2", "", False)


def test_readers_and_notations_are_those_of_the_variant() -> None:
    found = empty()
    chess, other = sorted(builtin_specs())[:2]
    found.register(
        plugin(
            register_readers=[
                ReaderEntry("all", PGN),
                ReaderEntry("one", PGN, "", (chess,)),
            ],
            register_notations=[NotationEntry("own", UCI, "", (other,))],
        ),
        "outside",
    )
    assert list(found.readers(found.variant(chess))) == ["all", "one", *READERS]
    assert list(found.readers(found.variant(other))) == ["all", *READERS]
    assert list(found.notations(found.variant(chess))) == NOTATIONS
    assert list(found.notations(found.variant(other))) == ["own", *NOTATIONS]
    assert "iccs" in found.notations(found.variant("xiangqi"))


def test_a_notation_is_known_by_its_name() -> None:
    found = empty()
    broken, own = NotationEntry("broken", "json:loads"), NotationEntry("own", UCI)
    found.register(plugin(register_notations=[broken, own]), "outside")
    chess = found.variant("chess")
    assert found.notation(chess, "own").name == UciNotation.name
    with pytest.raises(UnknownNameError, match=r"unknown notation of chess 'sann'.*'san'"):
        found.notation(chess, "sann")
    with pytest.raises(PluginError, match="'json:loads' failed to make 'broken'"):
        found.notation(chess, "broken")
    assert "notations 'broken' was left out" in problem(found, "outside")


def test_a_net_beside_a_spec_is_found_by_the_path_of_the_spec(tmp_path: Path) -> None:
    found = empty()
    path = own_spec(tmp_path, "mine")
    spec = found.variant(str(path))
    assert path.with_suffix(".onnx") in found.net_paths(spec)
    path.with_suffix(".onnx").write_bytes(b"")
    assert found.net(spec, Path("packaged")) == path.with_suffix(".onnx")


def test_a_plugin_can_bring_a_rules_engine() -> None:
    found = empty()
    found.register(plugin(register_rules=[RulesEntry("paper", "types:SimpleNamespace")]), "outside")
    assert set(found.rules_engines) == {"paper"}


def test_a_rules_engine_is_made_by_its_name() -> None:
    from variant_ai.core.rules.fairy.fairy_rules import FairyRules

    found = empty()
    entries = [
        RulesEntry("slow", "variant_ai.core.rules.fairy.fairy_rules:FairyRules"),
        RulesEntry("none", "types:SimpleNamespace"),
        RulesEntry("gone", "no_such_module_at_all:x"),
        RulesEntry("list", "builtins:list"),
    ]
    found.register(plugin(register_rules=entries), "outside")
    spec = found.variant("chess")
    assert isinstance(found.rules(spec, "slow"), FairyRules)
    assert found.rules(spec).name == "kernel"
    with pytest.raises(PluginError, match=r"'outside'.*no_such_module_at_all"):
        found.rules(spec, "gone")
    with pytest.raises(PluginError, match=r"'outside'.*engine 'list' is a list, not a Rules"):
        found.rules(spec, "list")
    with pytest.raises(PluginError, match=r"'outside'.*failed to make 'none'"):
        found.rules(spec, "none")
    with pytest.raises(UnknownNameError, match=r"accepted: .*slow"):
        found.rules(spec, "slo")


SUPPLIED = """
from variant_ai.core.rules.fairy.fairy_rules import FairyRules

class Supplied(FairyRules):
    name = "supplied"
"""


@pytest.fixture
def supplied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Registry, Path]:
    """A registry with a rules engine of a plugin, and a spec that is played by it."""
    (tmp_path / "supplied_rules.py").write_text(SUPPLIED, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(RULES_ENGINES, "_targets", dict(RULES_ENGINES._targets))
    found = empty()
    entry = RulesEntry("supplied", "supplied_rules:Supplied")
    found.register(plugin(register_rules=[entry]), "outside")
    spec = tmp_path / "mine.yaml"
    text = builtin_specs()["minixiangqi"].read_text(encoding="utf-8")
    spec.write_text(text.replace("rules:\n", "rules:\n  engine: supplied\n", 1), encoding="utf-8")
    return found, spec


def test_a_spec_is_played_by_the_engine_of_a_plugin(supplied: tuple[Registry, Path]) -> None:
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.inference.backends.netless_backends import UniformEvaluator
    from variant_ai.core.rules import make_rules
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.search import Search

    found, path = supplied
    spec = found.variant(str(path))
    assert found.rules(spec).name == "supplied"
    assert ("supplied", "supplied_rules:Supplied", "outside") in RULES_ENGINES.added()
    assert make_rules(spec).name == "supplied"  # as the core asks, which knows no registry
    encoder = Encoder(spec)
    search = Search(spec, UniformEvaluator(encoder.shape, encoder.actions))
    assert search.rules.name == "supplied"
    assert search.run(Limits(simulations=60)).visits >= 60


def test_the_judge_follows_the_engine_of_a_plugin(supplied: tuple[Registry, Path]) -> None:
    """It does so in a process of its own, which looks for no plugins."""
    from variant_ai.testing import check_rules

    found, path = supplied
    report = check_rules(found.variant(str(path)), 40, 1)
    assert report.engine == "supplied"
    assert report.positions >= 40
    assert report.agrees


def test_an_engine_that_nobody_brings_is_told_with_its_place(
    supplied: tuple[Registry, Path],
) -> None:
    found, path = supplied
    path.write_text(path.read_text(encoding="utf-8").replace("engine: supplied", "engine: supplid"))
    with pytest.raises(SpecError, match=r"mine\.yaml:\d+:\d+: .*did you mean 'supplied'\?"):
        found.variant(str(path))


def test_a_target_that_is_not_there_names_plugin_and_target() -> None:
    entry = NetworkEntry("deep", "no_such_module_at_all:x", plugin="outside")
    with pytest.raises(PluginError, match=r"'outside'.*'deep'.*no_such_module_at_all:x"):
        entry.load()


# --- broken plugins ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module_at_all", "no_such_module_at_all"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("def (", "SyntaxError"),
        ("x = 1", "has no attribute variant_ai_api"),
        (f"variant_ai_api = {API_VERSION + 1}", f"says {API_VERSION + 1}"),
        (
            "from variant_ai.plugins import hookimpl\nvariant_ai_api = 1\n"
            "@hookimpl\ndef register_varaints():\n    return []\n",
            "register_varaints",
        ),
        (
            "from variant_ai.plugins import hookimpl\nvariant_ai_api = 1\n"
            "@hookimpl\ndef register_variants(surplus):\n    return []\n",
            "surplus",
        ),
        (
            "from variant_ai.plugins import hookimpl\nvariant_ai_api = 1\n"
            "@hookimpl\ndef register_variants():\n    raise RuntimeError('no way')\n",
            "register_variants failed: RuntimeError: no way",
        ),
        (
            "from variant_ai.plugins import hookimpl\nvariant_ai_api = 1\n"
            "@hookimpl\ndef register_variants():\n    return ['mine']\n",
            "expected VariantEntry, got str",
        ),
        (
            "from variant_ai.plugins import hookimpl\nvariant_ai_api = 1\n"
            "@hookimpl\ndef register_variants():\n    return 5\n",
            "register_variants failed: TypeError",
        ),
        (
            "from variant_ai.plugins import hookimpl\nvariant_ai_api = 1\n"
            "@hookimpl\ndef register_variants():\n    raise SystemExit(3)\n",
            "register_variants failed: SystemExit: 3",
        ),
    ],
)
def test_a_broken_plugin_is_named_and_skipped(
    code: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    import sys

    point = broken_entry_point(tmp_path, code, monkeypatch)
    with caplog.at_level(logging.WARNING):
        found = Registry(entry_points=[point], environ=ENVIRON)
        variants = set(found.variants)
    sys.modules.pop("broken_plugin_for_test", None)
    assert variants == set(builtin_specs())
    assert reason in problem(found, "broken")
    assert "'broken'" in caplog.text


def test_half_a_broken_plugin_still_serves(tmp_path: Path) -> None:
    found = empty()
    outside = plugin(
        register_variants=[VariantEntry("mine", tmp_path / "mine.yaml")],
        register_networks=["not an entry"],
    )
    found.register(outside, "outside")
    assert "mine" in found.variants
    assert found.networks == {}
    assert "register_networks failed" in problem(found, "outside")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (VariantEntry("bad", 7), "'bad' was left out: path = 7; accepted: a pathlib.Path"),  # type: ignore[arg-type]
        (VariantEntry("bad", Path("a\0b")), "'bad' was left out: "),
        (VariantEntry(7, Path("x.yaml")), "variants 7 was left out: name = 7"),  # type: ignore[arg-type]
        (VariantEntry("", Path("x.yaml")), "name = ''; accepted: a text that is not empty"),
        (VariantEntry("bad", Path("x.yaml"), sample=3), "sample = 3"),  # type: ignore[arg-type]
    ],
)
def test_an_entry_with_a_wrong_field_is_named_and_left_out(
    entry: VariantEntry, reason: str, tmp_path: Path
) -> None:
    found = empty()
    good = VariantEntry("good", tmp_path / "good.yaml")
    found.register(plugin(register_variants=[entry, good]), "outside")
    assert set(found.variants) == {*builtin_specs(), "good"}
    assert reason in problem(found, "outside")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (ReaderEntry("bad", "json"), "target = 'json'; accepted: 'package.module:object'"),
        (ReaderEntry("bad", print), "target = <built-in function print>"),  # type: ignore[arg-type]
        (ReaderEntry("bad", "json:loads", None), "summary = None"),  # type: ignore[arg-type]
        (
            ReaderEntry("bad", "json:loads", "", "chess960"),
            "variants = 'chess960'; accepted: a tuple",
        ),  # type: ignore[arg-type]
    ],
)
def test_a_lazy_entry_with_a_wrong_field_is_named_and_left_out(
    entry: ReaderEntry, reason: str
) -> None:
    found = empty()
    found.register(plugin(register_readers=[entry, ReaderEntry("good", PGN)]), "outside")
    assert list(found.readers(found.variant("chess"))) == ["good", *READERS]
    assert f"readers 'bad' was left out: {reason}" in problem(found, "outside")


def test_paths_may_be_given_as_text(tmp_path: Path) -> None:
    found = empty()
    path = own_spec(tmp_path, "mine")
    entry = VariantEntry("mine", str(path), sample="/a.store")  # type: ignore[arg-type]
    found.register(plugin(register_variants=[entry]), "outside")
    assert found.variants["mine"].path == path
    assert found.variants["mine"].sample == Path("/a.store")
    assert found.variant("mine").variant == "mine"
    assert problem(found, "outside") == ""


def test_a_target_that_ends_the_program_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaving_plugin_for_test.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = NetworkEntry("deep", "leaving_plugin_for_test:x", plugin="outside")
    with pytest.raises(PluginError, match="SystemExit: 3"):
        entry.load()


def test_the_first_to_register_a_name_keeps_it(tmp_path: Path) -> None:
    found = Registry(environ=ENVIRON)
    name, entry = next(iter(found.variants.items()))
    found.register(plugin(register_variants=[VariantEntry(name, tmp_path / "x.yaml")]), "thief")
    assert found.variants[name] == entry
    assert problem(found, "thief") == (
        f"variant {name!r}: {tmp_path / 'x.yaml'} was left out; {entry.path} counts"
    )


@pytest.mark.parametrize(
    ("hook", "entry"),
    [
        ("register_rules", RulesEntry("kernel", "json:loads")),
        ("register_networks", NetworkEntry("risev2-mobile", "json:loads")),
        ("register_evaluators", EvaluatorEntry("onnx", "json:loads")),
        ("register_evaluators", EvaluatorEntry("check", "json:loads")),
        ("register_commands", CommandEntry("train", "json:loads")),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_name_of_the_projects_own_is_not_given_out(hook: str, entry: Any) -> None:
    found = empty()
    found.reserve("register_commands", ["train"])
    found.register(plugin(**{hook: [entry]}), "thief")
    assert found.registered()["thief"] == {}
    noun = hook.removeprefix("register_")
    assert problem(found, "thief") == f"{noun} {entry.name!r} is the project's own already"


def test_a_second_entry_of_a_name_in_one_plugin_is_reported(tmp_path: Path) -> None:
    found = empty()
    twins = [VariantEntry("mine", tmp_path / "a.yaml"), VariantEntry("mine", tmp_path / "b.yaml")]
    found.register(plugin(register_variants=twins), "outside")
    assert found.variants["mine"].path == tmp_path / "a.yaml"
    assert problem(found, "outside") == (
        f"variant 'mine': {tmp_path / 'b.yaml'} was left out; {tmp_path / 'a.yaml'} counts"
    )


def test_a_second_reader_of_a_name_is_reported() -> None:
    found = empty()
    twins = [ReaderEntry("mine", "json:loads"), ReaderEntry("mine", "json:dumps")]
    found.register(plugin(register_readers=twins), "outside")
    assert found.registered()["outside"] == {"readers": ["mine"]}
    assert problem(found, "outside") == "readers 'mine' is given twice; the first counts"
    found.register(plugin(register_readers=twins[:1]), "thief")
    assert problem(found, "thief") == "readers 'mine' is plugin 'outside''s already"


def test_a_hook_without_its_marker_is_named() -> None:
    class Unmarked(Plugin):
        def register_variants(self) -> list[VariantEntry]:
            raise AssertionError

    found = empty()
    found.register(Unmarked(), "outside")
    assert set(found.variants) == set(builtin_specs())
    assert problem(found, "outside") == (
        "register_variants is not marked with @hookimpl and is not called"
    )


def test_a_plugin_given_late_counts(tmp_path: Path) -> None:
    found = empty()
    assert "mine" not in found.variants
    found.register(plugin(register_variants=[VariantEntry("mine", tmp_path / "m.yaml")]), "late")
    assert "mine" in found.variants


def test_two_plugins_of_one_name() -> None:
    found = empty()
    assert found.register(plugin(), "twin")
    assert not found.register(plugin(), "twin")
    assert "second plugin of this name" in problem(found, "twin")


def test_a_plugin_of_a_name_that_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither hides shipped variants nor takes the place of the first in the list."""
    (tmp_path / "other_plugin_for_test.py").write_text(GOOD)
    points = [
        broken_entry_point(tmp_path, GOOD, monkeypatch),
        EntryPoint("broken", "no_module_of_this_name", "variant_ai"),
        EntryPoint("specs", "other_plugin_for_test", "variant_ai"),
    ]
    found = Registry(entry_points=points, environ=ENVIRON)
    assert set(found.variants) == set(builtin_specs())
    assert problem(found, "specs") == problem(found, "specs of (given)") == ""
    assert "second plugin of this name" in problem(found, "broken")


# --- environment ---------------------------------------------------------------------------------

GOOD = "variant_ai_api = 1\n"


@pytest.mark.parametrize(
    ("setting", "loaded"),
    [(None, {"first", "second"}), ("second", {"second"}), ("", set()), (" first , ", {"first"})],
)
def test_only_named_plugins_are_loaded(
    setting: str | None, loaded: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "good_plugin_for_test.py").write_text(GOOD)
    (tmp_path / "other_plugin_for_test.py").write_text(GOOD)
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [
        EntryPoint("first", "good_plugin_for_test", "variant_ai"),
        EntryPoint("second", "other_plugin_for_test", "variant_ai"),
    ]
    environ = ENVIRON if setting is None else {**ENVIRON, "VARIANT_AI_PLUGINS": setting}
    found = Registry(entry_points=points, environ=environ)
    assert {i.name for i in found.plugins} - {"specs", "user-specs"} == loaded
    assert set(found.variants) == set(builtin_specs())


def test_a_named_plugin_that_is_not_installed_is_reported() -> None:
    assert "not installed" in problem(empty(VARIANT_AI_PLUGINS="ghost"), "ghost")


def test_trace_writes_hook_calls_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert empty(VARIANT_AI_TRACE="1").variants
    captured = capsys.readouterr()
    assert "register_variants" in captured.err
    assert captured.out == ""
    assert empty().variants
    assert capsys.readouterr().err == ""


# --- specs of the user's -------------------------------------------------------------------------


def own_spec(folder: Path, name: str, *, says: str = "") -> Path:
    """A copy of a shipped spec under another name."""
    shipped = builtin_specs()[min(builtin_specs())]
    text = shipped.read_text(encoding="utf-8")
    text = text.replace(f"variant: {shipped.stem}\n", f"variant: {says or name}\n")
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_specs_in_the_users_folder_can_be_named(tmp_path: Path) -> None:
    own_spec(tmp_path, "my-game")
    found = Registry(entry_points=[], environ={"VARIANT_AI_SPECS": str(tmp_path)})
    assert found.variants["my-game"].plugin == "user-specs"
    assert found.variant("my-game").variant == "my-game"


def test_the_users_folder_follows_the_desktops_convention(tmp_path: Path) -> None:
    folder = tmp_path / "variant-ai" / "specs"
    folder.mkdir(parents=True)
    own_spec(folder, "my-game")
    found = Registry(entry_points=[], environ={"XDG_CONFIG_HOME": str(tmp_path)})
    assert "my-game" in found.variants


def test_a_shipped_name_in_the_users_folder_is_told_and_the_shipped_one_kept(
    tmp_path: Path,
) -> None:
    name = min(builtin_specs())
    own_spec(tmp_path, name)
    found = Registry(entry_points=[], environ={"VARIANT_AI_SPECS": str(tmp_path)})
    assert found.variants[name].plugin == "specs"
    assert repr(name) in problem(found, "user-specs")


def test_of_two_files_of_a_variant_both_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    kept = own_spec(first, "my-game")
    left = [kept.rename(kept.with_suffix(".yml")), own_spec(second, "my-game")]
    own_spec(first, "my-game")
    environ = {"VARIANT_AI_SPECS": os.pathsep.join([str(first), str(second)])}
    found = Registry(entry_points=[], environ=environ)
    assert found.variants["my-game"].path == user_specs(environ)["my-game"] == kept
    told = [f"variant 'my-game': {path} was left out; {kept} counts" for path in left]
    assert caplog.messages == told
    assert problem(found, "user-specs") == "; ".join(told)


def test_a_spec_registered_under_another_name_is_an_error(tmp_path: Path) -> None:
    own_spec(tmp_path, "my-game", says="your-game")
    found = Registry(entry_points=[], environ={"VARIANT_AI_SPECS": str(tmp_path)})
    with pytest.raises(SpecError, match=r"your-game.*my-game"):
        found.variant("my-game")


def test_a_path_does_wherever_a_name_does(tmp_path: Path) -> None:
    path = own_spec(tmp_path, "my-game", says="your-game")
    assert empty().variant(str(path)).variant == "your-game"


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text("extends: chess\nvariant: my\n", encoding="utf-8")
    found = Registry(entry_points=[], environ=ENVIRON)
    first = found.variant(str(path))
    assert found.variant(str(path)) is first
    path.write_text("extends: chess\nvariant: my\ntitle: Other\n", encoding="utf-8")
    assert found.variant(str(path)).title == "Other"


def test_a_spec_is_read_again_if_a_file_that_it_extends_was_edited(tmp_path: Path) -> None:
    parent, ini, path = (tmp_path / name for name in ("parent.yaml", "own.ini", "my.yaml"))
    parent.write_text("extends: chess\nvariant: parent\n", encoding="utf-8")
    ini.write_text("[mine:chess]\n", encoding="utf-8")
    path.write_text(
        "extends: parent\nvariant: my\nfairy: mine\nfairy_ini: own.ini\n", encoding="utf-8"
    )
    found = Registry(entry_points=[], environ=ENVIRON)
    first = found.variant(str(path))
    assert found.variant(str(path)) is first
    parent.write_text("extends: chess\nvariant: parent\ntitle: Other\n", encoding="utf-8")
    assert found.variant(str(path)).title == "Other"
    ini.write_text("[mine:chess]\ncastling = true\n", encoding="utf-8")
    assert "castling" in str(found.variant(str(path)).fairy_ini)


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file"):
        empty().variant(str(tmp_path / "nothing.yaml"))


def test_an_unknown_name_says_which_there_are_and_which_is_closest() -> None:
    name = max(builtin_specs())
    with pytest.raises(UnknownNameError) as caught:
        empty().variant(name[:-1])
    assert f"did you mean {name!r}" in str(caught.value)
    assert all(known in str(caught.value) for known in builtin_specs())


# --- encoders, searches, trainers ----------------------------------------------------------------


def test_what_is_chosen_by_name_is_offered_to_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from variant_ai.core.factories import (
        DIALECTS,
        INPUT_ENCODERS,
        LABEL_ENCODERS,
        SEARCHES,
        TRAINERS,
    )

    tables = (INPUT_ENCODERS, LABEL_ENCODERS, SEARCHES, TRAINERS, DIALECTS)
    for table in tables:
        monkeypatch.setattr(table, "_targets", dict(table._targets))
    found = empty()
    spec = tmp_path / "mine.yaml"
    words = "encoder: mine-planes\nprotocols: [mine-talk, uci]\n"
    spec.write_text(f"extends: minixiangqi\nvariant: mine\n{words}")
    with pytest.raises(SpecError, match=r"mine.yaml:4:\d+: .*unknown protocol 'mine-talk'"):
        found.variant(str(spec))
    assert found.register(
        plugin(
            register_encoders=[
                EncoderEntry("mine-planes", "json:loads"),
                EncoderEntry("mine-labels", "json:loads", kind="labels"),
            ],
            register_searches=[SearchEntry("mine-search", "json:loads")],
            register_trainers=[TrainerEntry("mine-trainer", "json:loads")],
            register_protocols=[ProtocolEntry("mine-talk", "json:loads")],
        ),
        "outside",
    )
    assert found.variant(str(spec)).encoder.input == "mine-planes"
    added = [set(table.names) - set(table.builtin) for table in tables]
    names = ("mine-planes", "mine-labels", "mine-search", "mine-trainer", "mine-talk")
    assert added == [{name} for name in names]


def test_an_encoder_that_nobody_registers_is_an_error_with_its_line(tmp_path: Path) -> None:
    spec = tmp_path / "mine.yaml"
    spec.write_text("extends: minixiangqi\nvariant: mine\nencoder: plane\n")
    with pytest.raises(
        SpecError, match=r"mine.yaml:3:\d+: .*unknown input encoder 'plane'; did you "
    ):
        empty().variant(str(spec))


def test_plugins_of_the_first_api_are_loaded() -> None:
    class Old:
        variant_ai_api = 1

    assert empty().register(Old(), "old")


def test_the_net_of_a_variant_is_that_of_its_entry(tmp_path: Path) -> None:
    spec = tmp_path / "mine.yaml"
    spec.write_text("extends: minixiangqi\nvariant: mine\n")
    net = tmp_path / "nets" / "best.onnx"
    found = empty()
    assert found.register(
        plugin(register_variants=[VariantEntry("mine", spec, model=net)]), "outside"
    )
    with pytest.raises(DataError, match=r"no net comes with mine.*best\.onnx"):
        found.net(found.variant("mine"), Path("packaged"))
    net.parent.mkdir()
    net.touch()
    assert found.net(found.variant("mine"), Path("packaged")) == net
