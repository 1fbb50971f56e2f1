"""The plugin host: finds plugins, checks them, and collects the entries of their hooks.

Order decides who gets a name: plugins that come with the project, outside plugins by name, specs
without a plugin, the user's folder. A plugin that cannot be loaded, was written for another version of
the API or fails in a hook is reported by name and skipped; everything else works.

    VARIANT_AI_PLUGINS   comma-separated names: load only these outside plugins (empty: none)
    VARIANT_AI_SPECS     folders with YAML specs of one's own, instead of ~/.config/variant-ai/specs
    VARIANT_AI_TRACE     1: write every hook call to stderr
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pluggy

from variant_ai import __version__
from variant_ai.core.factories import (
    DIALECTS,
    INPUT_ENCODERS,
    LABEL_ENCODERS,
    RULES_ENGINES,
    SEARCHES,
    TRAINERS,
    Factories,
)
from variant_ai.core.spec.catalogue import builtin_net, builtin_specs, user_spec_files
from variant_ai.core.system.child_processes import frames_of
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
    VariantEntry,
    VariantsEntry,
    hookimpl,
)

SKIPPED = "plugin {!r} skipped: {}"
OWN_DISTRIBUTION = "variant-ai"
SHIPPED_SPECS, USER_SPECS = "specs", "user-specs"
"""Names of the host's own plugins, for specs that no plugin claims."""
FACTORIES: dict[str, dict[str, Factories[Any]]] = {
    "register_rules": {"": RULES_ENGINES},
    "register_encoders": {"input": INPUT_ENCODERS, "labels": LABEL_ENCODERS},
    "register_searches": {"": SEARCHES},
    "register_trainers": {"": TRAINERS},
    "register_protocols": {"": DIALECTS},
}
"""Tables of the core that entries of a hook are registered in, by the entry's kind."""
E = TypeVar("E", bound=Entry)
_log = logging.getLogger("variant_ai.plugins")


@dataclasses.dataclass(frozen=True)
class PluginInfo:
    """A plugin that was found, loaded or not."""

    name: str
    version: str
    """Of the distribution it comes in; empty if unknown."""
    distribution: str
    """Its distribution, e.g. `variant-ai-shogi`; `(given)` for objects passed in a program."""
    problem: str = ""
    """Reason why it, or a part of it, was skipped; empty if all is well."""

    @property
    def own(self) -> bool:
        """True if it comes with the project."""
        return self.distribution == OWN_DISTRIBUTION


class _SpecsPlugin:
    """Plugin of the host itself, for specs that no plugin claims."""

    variant_ai_api = API_VERSION

    def __init__(self, entries: Callable[[], list[VariantEntry]]) -> None:
        """entries: called when variants are first needed; a folder that cannot be read is reported."""
        self.entries = entries

    @hookimpl
    def register_variants(self) -> list[VariantEntry]:
        return self.entries()


class PluginHost:
    """Plugins and the entries they registered. Hooks are called when entries are first needed."""

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
            self._manager.trace.root.setwriter(sys.stderr.write)
            self._manager.enable_tracing()
        self._infos: dict[str, PluginInfo] = {}
        self._collected: dict[str, list[Entry]] = {}
        self._reserved: dict[str, frozenset[str]] = {}
        if entry_points is None:
            entry_points = importlib.metadata.entry_points(group=GROUP)
        self._load(_ordered(entry_points), environ)

        # a spec with a plugin of its own is dropped later
        def shipped() -> list[VariantEntry]:
            specs = builtin_specs().items()
            return [VariantEntry(name, path, model=builtin_net(name)) for name, path in specs]

        def own() -> list[VariantEntry]:
            return [VariantEntry(path.stem, path) for path in user_spec_files(environ)]

        for name, entries in ((SHIPPED_SPECS, shipped), (USER_SPECS, own)):
            self.register(_SpecsPlugin(entries), name, __version__, OWN_DISTRIBUTION)

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
            name = point.name
            if name in (SHIPPED_SPECS, USER_SPECS):
                name = f"{name} of {distribution}"
            try:
                # stdout belongs to the protocol of an engine, or to the JSON of a command
                with contextlib.redirect_stdout(sys.stderr):
                    plugin = point.load()
            except (Exception, SystemExit) as error:
                if self._is_new(name, version, distribution):
                    self._report(name, f"cannot be imported: {_in_words(error)}", template=SKIPPED)
                continue
            self.register(plugin, name, version, distribution)
        found = {point.name for point in entry_points}
        for name in sorted((wanted or set()) - found):
            self._infos[name] = PluginInfo(name, "", "")
            self._report(name, "is named in VARIANT_AI_PLUGINS but not installed", template=SKIPPED)

    def register(
        self,
        plugin: object,
        name: str,
        version: str = "",
        distribution: str = "(given)",
    ) -> bool:
        """Add a plugin object; False if it was rejected, with the reason in `plugins`.

        A program may register plugins of its own this way, before it asks for anything else.
        """
        if not self._is_new(name, version, distribution):
            return False
        stated = getattr(plugin, "variant_ai_api", None)
        if stated not in ACCEPTED_VERSIONS:
            says = "has no attribute variant_ai_api" if stated is None else f"says {stated!r}"
            self._report(
                name,
                f"was written for another plugin API: it {says}, this is version {API_VERSION}",
                template=SKIPPED,
            )
            return False
        try:
            hash(plugin)  # pluggy keeps plugins in sets
            self._manager.register(plugin, name)
            self._manager.check_pending()
        except (pluggy.PluginValidationError, TypeError, ValueError) as error:
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            self._report(name, f"does not fit the hooks: {_in_words(error)}", template=SKIPPED)
            return False
        self._collected.clear()
        for hook in HOOKS:
            if (
                callable(getattr(plugin, hook, None))
                and self._manager.parse_hookimpl_opts(plugin, hook) is None
            ):
                self._report(name, f"{hook} is not marked with @hookimpl and is not called")
        return True

    def _is_new(self, name: str, version: str, distribution: str) -> bool:
        """List a plugin; if another has its name, report that and return False."""
        if name in self._infos:
            self._report(name, f"a second plugin of this name, from {distribution}, was not loaded")
            return False
        self._infos[name] = PluginInfo(name, version, distribution)
        return True

    def _report(self, name: str, problem: str, *, template: str = "plugin {!r}: {}") -> None:
        """Keep a plugin's problem and log it once; `template` is the format of the message."""
        info = self._infos[name]
        if problem in info.problem:
            return
        message = f"{info.problem}; {problem}" if info.problem else problem
        self._infos[name] = dataclasses.replace(info, problem=message)
        _log.warning("%s", template.format(name, problem))

    def blame(self, error: BaseException) -> str:
        """Return a sentence that names the plugin whose code, or a library it called, raised an error;
        empty if none did."""
        packages = {
            target.partition(".")[0].partition(":")[0]: entry.plugin
            for entries in self._collected.values()
            for entry in entries
            if (target := getattr(entry, "target", "")) and not self._infos[entry.plugin].own
        }
        for frame in reversed(frames_of(error)):
            package = frame.module.partition(".")[0]
            if package == "variant_ai":
                break
            if package in packages:
                place = f"{frame.file}:{frame.line}"
                return f"plugin {packages[package]!r} failed at {place}: {_in_words(error)}"
        return ""

    def registered(self) -> dict[str, dict[str, list[str]]]:
        """Plugin name -> hook's noun (`variants`, `readers`, …) -> names that it registered."""
        table: dict[str, dict[str, list[str]]] = {name: {} for name in self._infos}
        for hook, kind in HOOKS.items():
            noun = hook.removeprefix("register_")
            for entry in self._entries(hook, kind):
                table[entry.plugin].setdefault(noun, []).append(entry.name)
        return table

    # --- entries -------------------------------------------------------------------------------

    def _entries(self, hook: str, kind: type[E]) -> list[E]:
        """Entries of one hook, every name once. A plugin that fails is reported, not raised."""
        cached = self._collected.get(hook)
        if cached is None:
            cached = self._collected[hook] = self._collect(hook, kind)
        return [entry for entry in cached if isinstance(entry, kind)]

    def _collect(self, hook: str, kind: type[Entry]) -> list[Entry]:
        entries: dict[tuple[str, str], Entry] = {}
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
                with contextlib.redirect_stdout(sys.stderr):
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
                    entry = _checked(given)
                    path = entry.path.resolve() if isinstance(entry, VariantEntry) else None
                except (TypeError, ValueError, OSError, RuntimeError) as error:
                    self._report(name, f"{noun} {given.name!r} was left out: {error}")
                    continue
                if path is not None:
                    # A spec with a plugin of its own is not registered again by its folder.
                    if path in paths:
                        continue
                    paths.add(path)
                sort = entry.kind if isinstance(entry, EncoderEntry) else ""
                first = entries.get((sort, entry.name))
                if isinstance(entry, VariantEntry) and not self._infos[name].own:
                    shipped = builtin_specs().get(entry.name)
                    if shipped is not None and path != shipped.resolve():
                        message = f"{entry.path} was left out; {shipped} counts"
                        self._report(name, f"variant {entry.name!r}: {message}")
                        continue
                if (sort, entry.name) in own:
                    self._report(name, f"{noun} {entry.name!r} is the project's own already")
                elif first is None:
                    entries[sort, entry.name] = dataclasses.replace(entry, plugin=name)
                elif isinstance(entry, VariantEntry) and isinstance(first, VariantEntry):
                    # two files: the message names the files, not the plugin that found them
                    message = (
                        f"variant {entry.name!r}: {entry.path} was left out; {first.path} counts"
                    )
                    self._report(name, message, template="{1}")
                elif first.plugin == name:
                    self._report(name, f"{noun} {entry.name!r} is given twice; the first counts")
                else:
                    message = f"{noun} {entry.name!r} is plugin {first.plugin!r}'s already"
                    self._report(name, message)
        return list(entries.values())

    def reserve(self, hook: str, names: Iterable[str]) -> None:
        """Names of this hook's kind that no plugin may take: the program has them itself."""
        self._reserved[hook] = frozenset(names)
        self._collected.pop(hook, None)

    def _own_names(self, hook: str) -> frozenset[tuple[str, str]]:
        """(kind, name) of all that the project has built in; kind: that of an encoder, otherwise empty."""
        if hook in FACTORIES:
            return frozenset((kind, n) for kind, t in FACTORIES[hook].items() for n in t.builtin)
        names: Iterable[str] = self._reserved.get(hook, ())
        if hook == "register_networks":
            from variant_ai.core.nets import core_networks

            names = core_networks()
        elif hook == "register_evaluators":
            from variant_ai.core.inference.choosing.evaluator_factory import CHECK, NAMES

            names = (CHECK, *NAMES)
        return frozenset(("", name) for name in names)


def _checked(entry: E) -> E:
    """The entry, paths given as text made paths. Entries are written by hand, and nothing checks
    dataclasses: a field of another type would fail far from its plugin, in the first command that
    sorts, joins or opens it.

    Raises TypeError with the field, its value and the accepted type.
    """

    def require(field: str, fits: object, accepted: str) -> None:
        if not fits:
            raise TypeError(f"{field} = {getattr(entry, field)!r}; accepted: {accepted}")

    name: object = entry.name
    require("name", isinstance(name, str) and name, "a text that is not empty")
    if isinstance(entry, EvaluatorEntry):  # `NAME@PRECISION`, `check:A,B`
        require("name", not set(entry.name) & set("@:,"), "a name without @ : and ,")
    if isinstance(entry, CommandEntry):
        words = entry.name.split() == [entry.name] and not entry.name.startswith("-")
        require("name", words, "one word that does not begin with -")
    changes: dict[str, Any] = {}
    for field in ("path", "sample", "model") if isinstance(entry, VariantEntry) else ():
        value = getattr(entry, field)
        if value is not None or field == "path":
            is_path = isinstance(value, (str, Path)) and str(value)
            require(field, is_path, "a pathlib.Path, or its text")
            changes[field] = Path(value)
    if isinstance(entry, LazyEntry):
        target: object = entry.target
        module, _, attribute = target.partition(":") if isinstance(target, str) else ("", "", "")
        require("target", module and attribute, "'package.module:object'")
        require("summary", isinstance(entry.summary, str), "a text")
    if isinstance(entry, EncoderEntry):
        require("kind", entry.kind in ("input", "labels"), "'input' or 'labels'")
    if isinstance(entry, VariantsEntry):
        # A text would be taken for a set of letters, and "serve" every variant that is a part of it.
        listed = isinstance(entry.variants, (tuple, list))
        are_names = listed and all(isinstance(name, str) for name in entry.variants)
        require("variants", are_names, "a tuple of names of variants")
        changes["variants"] = tuple(entry.variants)
    return dataclasses.replace(entry, **changes)


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
