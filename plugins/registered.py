"""The registry: everything that plugins registered, typed, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from variant_ai.core.errors import PluginError, SpecError, UnknownNameError, VariantAIError
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


class Registry(PluginHost):
    """Everything that plugins registered, typed."""

    @cached_property
    def _specs(self) -> dict[Path, VariantSpec]:
        """Specs that were read, by file."""
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

    def readers(self, spec: VariantSpec) -> tuple[ReaderEntry, ...]:
        """Readers that plugins add for this variant."""
        entries = self._entries("register_readers", ReaderEntry)
        return tuple(e for e in entries if e.serves(spec.variant))

    def notations(self, spec: VariantSpec) -> tuple[NotationEntry, ...]:
        """Notations that plugins add for this variant."""
        entries = self._entries("register_notations", NotationEntry)
        return tuple(e for e in entries if e.serves(spec.variant))

    def made_readers(self, spec: VariantSpec) -> Made[GameReader]:
        """The readers that plugins add for this variant, by name.

        One that cannot be made is reported and is not among them; asking for it by its name raises
        PluginError with the reason.
        """
        return self._made("readers", self.readers(spec))

    def made_notations(self, spec: VariantSpec) -> Made[Notation]:
        """The notations that plugins add for this variant, like `made_readers`."""
        return self._made("notations", self.notations(spec))

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
            spec = self._specs[path] = load_spec(path, check_names=True)
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
        """Return an evaluator like `make_evaluator`, which documents arguments and errors, including the
        evaluators and nets of plugins, and `packaged` for the net of the variant."""
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

        return named_net(named, spec.variant, self.net_paths(spec.variant))

    def net_paths(self, variant: str) -> list[Path]:
        """Paths of the net that comes with a variant; the first that exists counts."""
        from variant_ai.core.engine.packaged_nets import packaged_net_paths

        entry = self.variants.get(variant)
        if entry is None:
            return packaged_net_paths(variant, None)
        return packaged_net_paths(variant, entry.path, entry.model)

    def usual_evaluator(
        self,
        spec: VariantSpec,
        *,
        evaluator: str = "auto",
        warn: Callable[[str], None],
        **settings: Any,
    ) -> Evaluator:
        """`evaluator` with the net that comes with the variant. If there is none, `auto` counts the pieces
        (`best_without_net`), and `warn` gets a sentence."""
        from variant_ai.core.inference.choosing.evaluator_factory import (
            AUTO,
            WITHOUT_NET,
            best_without_net,
        )

        if evaluator in WITHOUT_NET:
            return self.evaluator(spec, None, evaluator=evaluator, **settings)
        looked = self.net_paths(spec.variant)
        model = next((path for path in looked if path.is_file()), None)
        if model is None and evaluator == AUTO:
            places = ", ".join(map(str, looked))
            evaluator, how = best_without_net(spec)
            warn(f"no net for {spec.variant} was found ({places}): {how}")
        return self.evaluator(spec, model, evaluator=evaluator, **settings)

    def builders(self) -> dict[str, NetworkBuilder]:
        """Network builders by name, the project's own and those of plugins.

        A plugin's builder that cannot be made is reported and is not among them; asking for it by
        its name raises PluginError with the reason.
        """
        from variant_ai.core.nets import core_networks

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
