"""The registry: finds plugins, checks them, and answers what they registered.

Order decides who wins a name: plugins that come with the project, outside plugins by name, specs
without a plugin, the user's folder. A plugin that cannot be loaded, speaks another version of the
API or fails in a hook is reported by name and skipped; everything else works.

    VARIANT_AI_PLUGINS   comma-separated names: load only these outside plugins (empty: none)
    VARIANT_AI_SPECS     folders with YAML specs of one's own, instead of ~/.config/variant-ai/specs
    VARIANT_AI_TRACE     1: write every hook call to stderr
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from variant_ai import __version__
from variant_ai.core.errors import PluginError, SpecError, UnknownNameError, VariantAIError
from variant_ai.core.factories import (
    INPUT_ENCODERS,
    LABEL_ENCODERS,
    RULES_ENGINES,
    SEARCHES,
    TRAINERS,
    Factories,
)
from variant_ai.core.spec.catalogue import SPEC_SUFFIXES, home_path, user_spec_folders
from variant_ai.plugins.builtin import FolderPlugin, SpecsPlugin
from variant_ai.plugins.entry_checks import checked
from variant_ai.plugins.hookspecs import (
    ACCEPTED_VERSIONS,
    API_VERSION,
    GROUP,
    HOOKS,
    CommandEntry,
    EncoderEntry,
    Entry,
    EvaluatorEntry,
    Hooks,
    LazyEntry,
    NetworkEntry,
    NotationEntry,
    ReaderEntry,
    RulesEntry,
    SearchEntry,
    TrainerEntry,
    VariantEntry,
)

if TYPE_CHECKING:
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.nets import NetworkBuilder
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec

OWN_DISTRIBUTION = "variant-ai"
FACTORIES: dict[str, dict[str, Factories[Any]]] = {
    "register_rules": {"": RULES_ENGINES},
    "register_encoders": {"input": INPUT_ENCODERS, "labels": LABEL_ENCODERS},
    "register_searches": {"": SEARCHES},
    "register_trainers": {"": TRAINERS},
}
"""Tables of the core that entries of a hook are registered in, by the entry's kind."""
E = TypeVar("E", bound=Entry)
SPEC_PATH = "or a YAML spec by its path, such as ./mine.yaml"
_log = logging.getLogger("variant_ai.plugins")


@dataclasses.dataclass(frozen=True)
class PluginInfo:
    """A plugin that was found, loaded or not."""

    name: str
    version: str
    """Of the distribution it comes in; empty if unknown."""
    distribution: str
    """Where it comes from, e.g. `variant-ai-shogi`; `(given)` for objects passed in a program."""
    problem: str = ""
    """Why it, or part of it, was skipped; empty if all is well."""

    @property
    def own(self) -> bool:
        """Whether it comes with the project."""
        return self.distribution == OWN_DISTRIBUTION


class Registry:
    """Everything that plugins registered, typed. Hooks are called when first asked for."""

    def __init__(
        self,
        entry_points: Iterable[importlib.metadata.EntryPoint] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Entry points and environment are those of the installation unless given."""
        environ = os.environ if environ is None else environ
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(Hooks)
        if environ.get("VARIANT_AI_TRACE", "0") not in ("", "0"):
            self._manager.trace.root.setwriter(_write_trace)
            self._manager.enable_tracing()
        self._infos: dict[str, PluginInfo] = {}
        self._specs: dict[Path, VariantSpec] = {}
        self._collected: dict[str, list[Entry]] = {}
        self._reserved: dict[str, frozenset[str]] = {}
        if entry_points is None:
            entry_points = importlib.metadata.entry_points(group=GROUP)
        self._load(_ordered(entry_points), environ)
        self.register(SpecsPlugin(), "specs", __version__, OWN_DISTRIBUTION)
        folders = user_spec_folders(environ)
        self.register(FolderPlugin(folders), "user-specs", __version__, OWN_DISTRIBUTION)

    # --- plugins -------------------------------------------------------------------------------

    def _load(
        self,
        entry_points: list[importlib.metadata.EntryPoint],
        environ: Mapping[str, str],
    ) -> None:
        listed = environ.get("VARIANT_AI_PLUGINS")
        wanted = (
            None if listed is None else {name.strip() for name in listed.split(",") if name.strip()}
        )
        for point in entry_points:
            distribution = point.dist.name if point.dist else "(given)"
            version = point.dist.version if point.dist else ""
            own = distribution == OWN_DISTRIBUTION
            if not own and wanted is not None and point.name not in wanted:
                continue
            try:
                plugin = point.load()
            except (Exception, SystemExit) as error:
                self._infos[point.name] = PluginInfo(point.name, version, distribution)
                self._report(point.name, f"cannot be imported: {_in_words(error)}")
                continue
            self.register(plugin, point.name, version, distribution)
        found = {point.name for point in entry_points}
        for name in sorted((wanted or set()) - found):
            self._infos[name] = PluginInfo(name, "", "")
            self._report(name, "is named in VARIANT_AI_PLUGINS but not installed")

    def register(
        self,
        plugin: object,
        name: str,
        version: str = "",
        distribution: str = "(given)",
    ) -> bool:
        """Add a plugin object; False if it was refused, with the reason in `plugins`.

        A program may register plugins of its own this way, before it asks for anything else.
        """
        if self._infos.get(name) is not None:
            self._report(
                name,
                f"a second plugin of this name, from {distribution}, was not loaded",
            )
            return False
        self._infos[name] = PluginInfo(name, version, distribution)
        spoken = getattr(plugin, "variant_ai_api", None)
        if spoken not in ACCEPTED_VERSIONS:
            says = "has no attribute variant_ai_api" if spoken is None else f"says {spoken!r}"
            self._report(
                name,
                f"was written for another plugin API: it {says}, this is version {API_VERSION}",
            )
            return False
        try:
            hash(plugin)  # pluggy keeps plugins in sets
            self._manager.register(plugin, name)
            self._manager.check_pending()
        except (pluggy.PluginValidationError, TypeError, ValueError) as error:
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            self._report(name, f"does not fit the hooks: {_in_words(error)}")
            return False
        self._collected.clear()
        for hook in HOOKS:
            if (
                callable(getattr(plugin, hook, None))
                and self._manager.parse_hookimpl_opts(plugin, hook) is None
            ):
                self._report(name, f"{hook} is not marked with @hookimpl and is not called")
        return True

    def _report(self, name: str, problem: str, *, spoken: str = "plugin {!r} skipped: {}") -> None:
        """Keep a plugin's problem and tell it once, as `spoken` says it of name and problem."""
        info = self._infos[name]
        if problem in info.problem:
            return
        told = f"{info.problem}; {problem}" if info.problem else problem
        self._infos[name] = dataclasses.replace(info, problem=told)
        _log.warning("%s", spoken.format(name, problem))

    @property
    def plugins(self) -> tuple[PluginInfo, ...]:
        """Plugins in the order in which they were found, those that failed included.

        All hooks are called and the nets of plugins made, so that what fails there is known.
        """
        self.registered()
        if self.networks:
            self.builders()
        return tuple(self._infos.values())

    def registered(self) -> dict[str, dict[str, list[str]]]:
        """Plugin name -> hook's noun (`variants`, `readers`, …) -> names that it registered."""
        table: dict[str, dict[str, list[str]]] = {name: {} for name in self._infos}
        for hook, kind in HOOKS.items():
            noun = hook.removeprefix("register_")
            for entry in self._entries(hook, kind):
                table[entry.plugin].setdefault(noun, []).append(entry.name)
        return {name: table.get(name, {}) for name in self._infos}

    # --- entries -------------------------------------------------------------------------------

    def _entries(self, hook: str, kind: type[E]) -> list[E]:
        """Entries of one hook, every name once. A plugin that fails is reported, not raised."""
        cached = self._collected.get(hook)
        if cached is None:
            cached = self._collected[hook] = self._collect(hook, kind)
        return [entry for entry in cached if isinstance(entry, kind)]

    def _collect(self, hook: str, kind: type[Entry]) -> list[Entry]:
        entries: dict[str, Entry] = {}
        paths: set[Path] = set()
        noun = hook.removeprefix("register_")
        plugins = self._manager.list_name_plugin()
        implementers = {
            impl.plugin_name for impl in getattr(self._manager.hook, hook).get_hookimpls()
        }
        for name in [name for name in self._infos if name in implementers]:
            others = [plugin for other, plugin in plugins if other != name and plugin is not None]
            caller = self._manager.subset_hook_caller(hook, others)
            try:
                # One plugin is left, so the call returns a list of at most one list.
                answered = [entry for given in caller() for entry in (given or ())]
                wrong = next((e for e in answered if not isinstance(e, kind)), None)
                if wrong is not None:
                    raise TypeError(f"expected {kind.__name__}, got {type(wrong).__name__}")
            except (Exception, SystemExit) as error:
                self._report(name, f"{hook} failed: {_in_words(error)}")
                continue
            own = self._own_names(hook) if answered else frozenset()
            for given in answered:
                try:
                    entry = checked(given)
                    path = entry.path.resolve() if isinstance(entry, VariantEntry) else None
                except (TypeError, ValueError, OSError, RuntimeError) as error:
                    self._report(name, f"{noun} {given.name!r} was left out: {error}")
                    continue
                if path is not None:
                    # A spec with a plugin of its own is not registered again by its folder.
                    if path in paths:
                        continue
                    paths.add(path)
                first = entries.get(entry.name)
                if entry.name in own:
                    self._report(name, f"{noun} {entry.name!r} is the project's own already")
                elif first is None:
                    entries[entry.name] = dataclasses.replace(entry, plugin=name)
                elif isinstance(entry, VariantEntry) and isinstance(first, VariantEntry):
                    # two files: what is wanted is to know which, not that a plugin found them
                    told = f"variant {entry.name!r}: {entry.path} was left out; {first.path} counts"
                    self._report(name, told, spoken="{1}")
                elif first.plugin == name:
                    self._report(name, f"{noun} {entry.name!r} is given twice; the first counts")
                else:
                    told = f"{noun} {entry.name!r} is plugin {first.plugin!r}'s already"
                    self._report(name, told)
        return list(entries.values())

    def reserve(self, hook: str, names: Iterable[str]) -> None:
        """Names of this hook's kind that no plugin may take: the program has them itself."""
        self._reserved[hook] = frozenset(names)
        self._collected.pop(hook, None)

    def _own_names(self, hook: str) -> frozenset[str]:
        """Names of this hook's kind that the project has without registering them."""
        if hook in FACTORIES:
            return frozenset(n for table in FACTORIES[hook].values() for n in table.builtin)
        if hook == "register_networks":
            from variant_ai.core.nets import core_networks

            return frozenset(core_networks())
        if hook == "register_evaluators":
            from variant_ai.core.inference.choosing.evaluator_factory import CHECK, NAMES

            return frozenset({CHECK, *NAMES})
        return self._reserved.get(hook, frozenset())

    @property
    def variants(self) -> dict[str, VariantEntry]:
        """By name, sorted; nothing is read yet."""
        entries = self._entries("register_variants", VariantEntry)
        return {entry.name: entry for entry in sorted(entries, key=lambda e: e.name)}

    @property
    def rules_engines(self) -> dict[str, RulesEntry]:
        """Engines beside the project's own, by name."""
        return {e.name: e for e in self._entries("register_rules", RulesEntry)}

    @property
    def networks(self) -> dict[str, NetworkEntry]:
        """Architectures that plugins add, by name."""
        return {e.name: e for e in self._entries("register_networks", NetworkEntry)}

    @property
    def evaluators(self) -> dict[str, EvaluatorEntry]:
        """Evaluators that plugins add, by name."""
        return {e.name: e for e in self._entries("register_evaluators", EvaluatorEntry)}

    @property
    def encoders(self) -> dict[str, EncoderEntry]:
        """Encoders that plugins add, by name."""
        return {e.name: e for e in self._entries("register_encoders", EncoderEntry)}

    @property
    def searches(self) -> dict[str, SearchEntry]:
        """Searches that plugins add, by name."""
        return {e.name: e for e in self._entries("register_searches", SearchEntry)}

    @property
    def trainers(self) -> dict[str, TrainerEntry]:
        """Trainers that plugins add, by name."""
        return {e.name: e for e in self._entries("register_trainers", TrainerEntry)}

    @property
    def commands(self) -> dict[str, CommandEntry]:
        """Commands that plugins add, by name."""
        return {e.name: e for e in self._entries("register_commands", CommandEntry)}

    def readers(self, spec: VariantSpec) -> tuple[ReaderEntry, ...]:
        """Readers that plugins add for this variant."""
        entries = self._entries("register_readers", ReaderEntry)
        return tuple(e for e in entries if e.serves(spec.variant))

    def notations(self, spec: VariantSpec) -> tuple[NotationEntry, ...]:
        """Notations that plugins add for this variant."""
        entries = self._entries("register_notations", NotationEntry)
        return tuple(e for e in entries if e.serves(spec.variant))

    # --- variants and their rules --------------------------------------------------------------

    def variant(self, name: str) -> VariantSpec:
        """The spec of a registered name or of a YAML file.

        Raises UnknownNameError (says which there are, and which is closest), SpecError.
        """
        return self._read(self.path(name), expected=name if name in self.variants else "")

    def path(self, name: str) -> Path:
        """The YAML file of a registered name, or the file itself."""
        entry = self.variants.get(name)
        if entry is not None:
            return entry.path
        path = home_path(name)
        if path.suffix in SPEC_SUFFIXES or len(path.parts) > 1:
            if not path.is_file():
                raise SpecError("there is no such file", str(path))
            return path
        raise UnknownNameError("variant", name, self.variants, SPEC_PATH)

    def entry_of(self, spec: VariantSpec) -> VariantEntry | None:
        """The registered entry of a spec's name, None for a spec that is only a file."""
        return self.variants.get(spec.variant)

    def _read(self, path: Path, expected: str) -> VariantSpec:
        from variant_ai.core.spec import load_spec

        spec = self._specs.get(path)
        if spec is None:
            self._offer()
            spec = self._specs[path] = load_spec(path, known=_registered_names())
        if expected and spec.variant != expected:
            raise SpecError(
                f"the spec says `variant: {spec.variant}` but is registered as {expected!r}; "
                "name and file must agree",
                str(path),
            )
        return spec

    def rules(self, spec: VariantSpec, engine: str | None = None) -> Rules:
        """Rules of a variant by the named engine, ours or a plugin's (None: the spec's choice)."""
        from variant_ai.core.rules import make_rules
        from variant_ai.core.spec.loader import in_file

        self._offer()
        entry = self.rules_engines.get(spec.rules.engine if engine is None else engine)
        try:
            return make_rules(spec, engine) if entry is None else entry.make(spec)
        except SpecError as error:
            path = next((path for path, read in self._specs.items() if read is spec), None)
            raise error if path is None else in_file(error, path) from error

    def _offer(self) -> None:
        """Register in the core, which looks for no plugins, what can be chosen by name."""
        for hook, kinds in FACTORIES.items():
            for entry in self._entries(hook, LazyEntry):
                kind = entry.kind if isinstance(entry, EncoderEntry) else ""
                try:
                    kinds[kind].register(entry.name, entry.target)
                except PluginError as error:
                    self._report(entry.plugin, str(error))

    # --- nets and evaluators -------------------------------------------------------------------

    def evaluator(
        self,
        spec: VariantSpec,
        model: Path | None,
        *,
        evaluator: str = "auto",
        batch: int = 16,
        threads: int | None = None,
        device: str = "cpu",
        precision: str | None = None,
        log: Callable[[str], None] | None = None,
    ) -> Evaluator:
        """Evaluator of `make_evaluator` (arguments and errors stand there), with the evaluators and
        nets of plugins, and with `packaged` for the net that comes with the variant."""
        from variant_ai.core.inference.choosing.evaluator_factory import make_evaluator

        model = None if model is None else self.net(spec, model)
        return make_evaluator(
            spec,
            model,
            evaluator=evaluator,
            batch=batch,
            threads=threads,
            device=device,
            precision=precision,
            log=log,
            plugins=self.evaluators,
            # Only the nets of checkpoints are built, and those are folders.
            builders=self.builders() if model is not None and model.is_dir() else None,
        )

    def net(self, spec: VariantSpec, named: Path) -> Path:
        """The net that is named; `packaged` is the one that comes with the variant. Raises DataError
        if none does."""
        from variant_ai.core.engine.packaged_nets import named_net

        return named_net(named, spec.variant, self._spec_file(spec))

    def _spec_file(self, spec: VariantSpec) -> Path | None:
        entry = self.entry_of(spec)
        return None if entry is None else entry.path

    def usual_evaluator(
        self,
        spec: VariantSpec,
        *,
        evaluator: str = "auto",
        warn: Callable[[str], None],
        **settings: Any,
    ) -> Evaluator:
        """`evaluator` with the net that comes with the variant. If there is none, `auto` is the
        uniform evaluator, and `warn` gets a sentence."""
        from variant_ai.core.engine.packaged_nets import packaged_net_paths
        from variant_ai.core.inference.choosing.evaluator_factory import AUTO, UNIFORM, WITHOUT_NET

        if evaluator in WITHOUT_NET:
            return self.evaluator(spec, None, evaluator=evaluator, **settings)
        looked = packaged_net_paths(spec.variant, self._spec_file(spec))
        model = next((path for path in looked if path.is_file()), None)
        if model is None and evaluator == AUTO:
            places = ", ".join(map(str, looked))
            warn(f"no net for {spec.variant} was found ({places}): every move counts alike")
            evaluator = UNIFORM
        return self.evaluator(spec, model, evaluator=evaluator, **settings)

    def builders(self) -> dict[str, NetworkBuilder]:
        """Network builders by name, the project's own and those of plugins.

        A plugin's builder that cannot be made is reported and is not among them; asking for it by
        its name raises PluginError with the reason.
        """
        from variant_ai.core.nets import core_networks

        builders = Builders(core_networks())
        for name, entry in self.networks.items():
            try:
                builders[name] = entry.make()
            except VariantAIError as error:
                builders.broken[name] = str(error)
                told = str(error).removeprefix(f"plugin {entry.plugin!r}: ")
                self._report(entry.plugin, f"networks {name!r} was left out: {told}")
        return builders


class Builders(dict[str, "NetworkBuilder"]):
    """Network builders by name; looking up one that could not be made raises its PluginError."""

    def __init__(self, builders: Mapping[str, NetworkBuilder]) -> None:
        super().__init__(builders)
        self.broken: dict[str, str] = {}
        """Name -> why it could not be made."""

    def __missing__(self, name: str) -> NetworkBuilder:
        if name in self.broken:
            raise PluginError(self.broken[name])
        raise KeyError(name)


def _registered_names() -> dict[tuple[str, ...], tuple[str, tuple[str, ...]]]:
    """Words of a spec that name something registered -> what it is, and the names that exist."""
    return {
        ("rules", "engine"): (RULES_ENGINES.kind, RULES_ENGINES.names),
        ("encoder", "input"): (INPUT_ENCODERS.kind, INPUT_ENCODERS.names),
        ("encoder", "labels"): (LABEL_ENCODERS.kind, LABEL_ENCODERS.names),
    }


def _ordered(
    points: Iterable[importlib.metadata.EntryPoint],
) -> list[importlib.metadata.EntryPoint]:
    """The project's own first, then by name, so that who wins a name never depends on luck."""
    return sorted(
        points,
        key=lambda p: (p.dist is None or p.dist.name != OWN_DISTRIBUTION, p.name),
    )


def _in_words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _write_trace(text: str) -> None:
    sys.stderr.write(text)


@cache
def registry() -> Registry:
    """The registry of this process. `registry.cache_clear()` looks for plugins again."""
    return Registry()


__all__ = ["PluginInfo", "Registry", "registry"]
