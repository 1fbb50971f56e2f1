"""The registry: everything that plugins registered, typed, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from variant_ai.core.errors import PluginError, SpecError, UnknownNameError, VariantAIError
from variant_ai.core.factories import EVALUATORS, NETWORKS
from variant_ai.core.spec.catalogue import SPEC_SUFFIXES, home_path
from variant_ai.plugins.hookspecs import (
    CommandEntry,
    EncoderEntry,
    Entry,
    EvaluatorEntry,
    LazyEntry,
    NetworkEntry,
    NotationEntry,
    ReaderEntry,
    RulesEntry,
    VariantEntry,
    VariantsEntry,
)
from variant_ai.plugins.host import FACTORIES, PluginHost, PluginInfo

if TYPE_CHECKING:
    from variant_ai.core.data.read.game_reader import GameReader
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.nets import NetworkBuilder
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.rules.text.notation import Notation
    from variant_ai.core.spec.schema import VariantSpec

E = TypeVar("E", bound=Entry)
T = TypeVar("T")
SPEC_PATH = "or a YAML spec by its path, such as ./mine.yaml (`variant-ai spec derive` drafts one)"


FileState = tuple[int, int] | None
"""Time of the last change and size of a file; None if it is not there."""


class Registry(PluginHost):
    """Everything that plugins registered, typed."""

    @cached_property
    def _specs(self) -> dict[Path, tuple[VariantSpec, dict[Path, FileState]]]:
        """Specs that were read, by file, with the state at that time of each file that belongs to it."""
        return {}

    @property
    def plugins(self) -> tuple[PluginInfo, ...]:
        """Plugins in the order in which they were found, those that failed included.

        All hooks are called and the nets of plugins made, so that what fails there is known.
        """
        self.registered()
        if self.networks:
            self.builders()
        return tuple(self._infos.values())

    # --- entries by name -----------------------------------------------------------------------

    def _by_name(self, hook: str, kind: type[E]) -> dict[str, E]:
        return {entry.name: entry for entry in self._entries(hook, kind)}

    @property
    def variants(self) -> dict[str, VariantEntry]:
        """By name, sorted; no spec is read yet."""
        return dict(sorted(self._by_name("register_variants", VariantEntry).items()))

    @property
    def rules_engines(self) -> dict[str, RulesEntry]:
        """Rules engines of plugins."""
        return self._by_name("register_rules", RulesEntry)

    @property
    def networks(self) -> dict[str, NetworkEntry]:
        """Network architectures of plugins."""
        return self._by_name("register_networks", NetworkEntry)

    @property
    def evaluators(self) -> dict[str, EvaluatorEntry]:
        """Evaluators of plugins."""
        return self._by_name("register_evaluators", EvaluatorEntry)

    @property
    def commands(self) -> dict[str, CommandEntry]:
        """Commands of plugins."""
        return self._by_name("register_commands", CommandEntry)

    # --- readers and notations -----------------------------------------------------------------

    def readers(self, spec: VariantSpec) -> Made[GameReader]:
        """Readers of games by name in the order in which they are tried: those that plugins add for
        this variant, then those of every variant.

        One that cannot be made is reported and is not among them; asking for it by its name raises
        PluginError with the reason.
        """
        from variant_ai.core.data.read.game_reader import core_readers

        return self._served("readers", ReaderEntry, spec, core_readers())

    def notations(self, spec: VariantSpec) -> Made[Notation]:
        """Notations by name, like `readers`.

        ICCS, whose ranks begin with 0, only for variants whose engines use it: a move is read in any of
        these, and `e1e3` must not be taken for `e2e4`.
        """
        from variant_ai.core.rules.text.notation import core_notations

        known = core_notations()
        if not {"ucci", "cyclone"} & set(spec.protocols):
            known = tuple(one for one in known if one.name != "iccs")
        return self._served("notations", NotationEntry, spec, known)

    def notation(self, spec: VariantSpec, name: str) -> Notation:
        """A notation by its name. Raises UnknownNameError, which lists the names, and PluginError."""
        known = self.notations(spec)
        try:
            return known[name]
        except KeyError:
            raise UnknownNameError(f"notation of {spec.variant}", name, known) from None

    def _served(
        self, noun: str, kind: type[VariantsEntry], spec: VariantSpec, of_core: Iterable[Any]
    ) -> Made[Any]:
        entries = self._entries(f"register_{noun}", kind)
        made = self._made(noun, (e for e in entries if e.serves(spec.variant)))
        for one in of_core:
            made.setdefault(one.name, one)
        return made

    # --- made from entries ---------------------------------------------------------------------

    def _made(self, noun: str, entries: Iterable[Any], first: Mapping[str, Any] = {}) -> Made[Any]:
        """Objects of entries by name after those of `first`; entries that fail are reported."""
        made: Made[Any] = Made(first)
        for entry in entries:
            try:
                made[entry.name] = entry.make()
            except VariantAIError as error:
                made.broken[entry.name] = str(error)
                message = str(error).removeprefix(f"plugin {entry.plugin!r}: ")
                self._report(entry.plugin, f"{noun} {entry.name!r} was left out: {message}")
        return made

    # --- variants and their rules --------------------------------------------------------------

    def variant(self, name: str) -> VariantSpec:
        """The spec of a registered name or of a YAML file; the same object until its file changes, or one
        that it extends.

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
                problem = (
                    "is a folder, not a YAML file" if path.is_dir() else "there is no such file"
                )
                raise SpecError(problem, str(path))
            return path
        raise UnknownNameError("variant", name, self.variants, SPEC_PATH)

    def entry_of(self, spec: VariantSpec) -> VariantEntry | None:
        """The registered entry of a spec's name, None for a spec that is only a file."""
        return self.variants.get(spec.variant)

    def _read(self, path: Path, expected: str) -> VariantSpec:
        from variant_ai.core.spec import load_spec

        spec, files = self._specs.get(path, (None, {}))
        if spec is None or any(_state_of(file) != state for file, state in files.items()):
            self.offer()
            read: dict[Path, FileState] = {}
            spec = load_spec(
                path,
                check_names=True,
                on_file=lambda file: read.setdefault(file, _state_of(file)),
            )
            self._specs[path] = spec, read
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

        self.offer()
        entry = self.rules_engines.get(spec.rules.engine if engine is None else engine)
        try:
            return make_rules(spec, engine) if entry is None else entry.make(spec)
        except SpecError as error:
            path = self._file_of(spec)
            raise error if path is None else in_file(error, path) from error

    def _file_of(self, spec: VariantSpec) -> Path | None:
        """The file that a spec was read from; None if this registry did not read it."""
        return next((path for path, (read, _) in self._specs.items() if read is spec), None)

    def offer(self) -> None:
        """Register in the core, which looks for no plugins, what can be chosen by name. Everything here
        that reads a spec, or makes rules, builders or evaluators, does it first."""
        for hook, kinds in FACTORIES.items():
            for entry in self._entries(hook, LazyEntry):
                kind = entry.kind if isinstance(entry, EncoderEntry) else ""
                try:
                    kinds[kind].register(entry.name, entry.target, entry.plugin)
                except PluginError as error:
                    self._report(entry.plugin, str(error))
        NETWORKS.update({name: entry.make for name, entry in self.networks.items()})
        EVALUATORS.update({name: entry.make for name, entry in self.evaluators.items()})

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
        """Return an evaluator like `make_evaluator`, which documents arguments and errors, including the
        evaluators and nets of plugins, and `packaged` for the net of the variant."""
        from variant_ai.core.inference.choosing.evaluator_factory import make_evaluator

        self.offer()
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
        )

    def net(self, spec: VariantSpec, named: Path) -> Path:
        """The net that is named; `packaged` is the one that comes with the variant. Raises DataError
        if none does."""
        from variant_ai.core.inference.packaged_nets import named_net

        return named_net(named, spec.variant, self.net_paths(spec))

    def net_paths(self, spec: VariantSpec) -> list[Path]:
        """Paths of the net that comes with a variant; the first that exists counts."""
        from variant_ai.core.inference.packaged_nets import packaged_net_paths

        entry = self.entry_of(spec)
        if entry is None:
            return packaged_net_paths(spec.variant, self._file_of(spec))
        return packaged_net_paths(spec.variant, self._file_of(spec) or entry.path, entry.model)

    def usual_evaluator(
        self,
        spec: VariantSpec,
        model: Path | None = None,
        *,
        evaluator: str = "auto",
        warn: Callable[[str], None],
        **settings: Any,
    ) -> Evaluator:
        """`evaluator` with a net, by default the one that comes with the variant. If there is none,
        `auto` counts the pieces (`best_without_net`), and `warn` gets a sentence."""
        from variant_ai.core.inference.choosing.evaluator_factory import (
            AUTO,
            WITHOUT_NET,
            best_without_net,
        )
        from variant_ai.core.inference.packaged_nets import first_file

        if model is None and evaluator not in WITHOUT_NET:
            looked = self.net_paths(spec)
            model = first_file(looked)
            if model is None and evaluator == AUTO:
                places = ", ".join(map(str, looked))
                evaluator, how = best_without_net(spec)
                warn(f"no net for {spec.variant} was found ({places}): {how}")
        return self.evaluator(spec, model, evaluator=evaluator, **settings)

    def builders(self) -> dict[str, NetworkBuilder]:
        """Network builders by name, the project's own and those of plugins.

        A plugin's builder that cannot be made is reported and is not among them; `find_builder` raises
        PluginError with the reason.
        """
        from variant_ai.core.nets import core_networks

        self.offer()
        return self._made("networks", self.networks.values(), core_networks())


class Made(dict[str, T]):
    """Objects by name; looking up one that could not be made raises its PluginError."""

    def __init__(self, made: Mapping[str, T]) -> None:
        super().__init__(made)
        self.broken: dict[str, str] = {}
        """Name -> why it could not be made."""

    def __missing__(self, name: str) -> T:
        if name in self.broken:
            raise PluginError(self.broken[name])
        raise KeyError(name)


@cache
def registry() -> Registry:
    """The registry of this process. `registry.cache_clear()` looks for plugins again."""
    return Registry()


def _state_of(path: Path) -> FileState:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
