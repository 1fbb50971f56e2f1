"""Parts of an engine: variants, rules, nets and searches, loaded when they are first needed.

A session knows the names of the variants before any spec is read. Specs, rules, nets and searches
are made here, on the working thread, after the handshake has been answered. The program passes in
the variants and the plugin registry, because plugins lie above the core.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from variant_ai.core.errors import VariantAIError
from variant_ai.core.spec.catalogue import SpecNames, home_path, spec_names

if TYPE_CHECKING:
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.search.interface import BaseSearch
    from variant_ai.core.search.settings import SearchParams
    from variant_ai.core.spec.schema import VariantSpec

Log = Callable[[str], None]

IMPORTED_EARLY = (
    "variant_ai.core.spec.loader",
    "variant_ai.core.rules.kernel.kernel_rules",
    "variant_ai.core.encoding",
    "variant_ai.core.inference.choosing.evaluator_factory",
    "variant_ai.core.search.search",
)
"""Modules that every game needs, imported while the client reads the options."""


class VariantSource(Protocol):
    """The part of the plugin registry that an engine needs."""

    def variant(self, name: str) -> VariantSpec: ...

    def rules(self, spec: VariantSpec, engine: str | None = None) -> Rules: ...

    def net_paths(self, spec: VariantSpec) -> Sequence[Path]: ...

    def evaluator(
        self, spec: VariantSpec, model: Path | None, *args: Any, **settings: Any
    ) -> Evaluator: ...


class EngineBuilder:
    """Makes the parts of an engine. Used by one thread."""

    def __init__(
        self,
        files: Mapping[str, Path],
        default: str,
        source: Callable[[], VariantSource],
        *,
        given: Mapping[str, Path] = {},
        model: Path | None = None,
    ) -> None:
        """files: spec of every variant by name. default: the variant played if none is chosen.
        source: called when the first spec is read. given: those of `files` that the source knows by
        their path alone. model: the net to play with unless the client names another."""
        self.files = dict(files)
        self.given = given
        self.default = default
        self.model = model
        self._source = source

    # --- variants ------------------------------------------------------------------------------

    @functools.cached_property
    def _names(self) -> dict[str, SpecNames]:
        """Names and protocols of every variant, by name in alphabetical order."""
        return {name: spec_names(path) for name, path in sorted(self.files.items())}

    @functools.cached_property
    def _by_fairy_name(self) -> dict[str, str]:
        """Our name by Fairy-Stockfish's, in lower case."""
        found: dict[str, str] = {}
        for name in self.files:
            found.setdefault(self._names[name].fairy.lower(), name)
        found.pop("", None)
        return found

    @property
    def names_offered(self) -> tuple[str, ...]:
        """All names that `resolve_name` understands: ours and those of Fairy-Stockfish."""
        return tuple(sorted({*self.files, *self._by_fairy_name}))

    def resolve_name(self, given: str) -> str:
        """Return our name of a variant that may be called by Fairy-Stockfish's name, in any case; an
        unknown name is returned unchanged."""
        name = given.strip().lower()
        return name if name in self.files else self._by_fairy_name.get(name, given)

    def shuffled(self, name: str) -> str:
        """Return the variant with shuffled start positions that belongs to one, which has its name and
        960: `chess960`. Without it the name is returned unchanged."""
        return f"{name}960" if f"{name}960" in self.files else name

    def supports(self, name: str, protocol: str) -> bool:
        """Return True if the variant's spec lists the protocol; without a list it is UCI only."""
        return protocol in self._names.get(name, SpecNames()).protocols

    def playable(self, names: Sequence[str], protocol: str) -> tuple[str, ...]:
        """Return the names of variants that support the protocol."""
        return tuple(name for name in names if self.supports(self.resolve_name(name), protocol))

    def variant_for(self, protocol: str) -> str | None:
        """Return the default variant if it supports the protocol, else the first one that lists it as
        its first protocol, else any that supports it."""
        names = [name for name in (self.default, *self._names) if self.supports(name, protocol)]
        if self.default in names:
            return self.default
        main = [name for name in names if self._names[name].protocols[0] == protocol]
        return next(iter((*main, *names)), None)

    def spec(self, name: str) -> VariantSpec:
        """Load the spec of a variant. Raises UnknownNameError, SpecError."""
        return self._source().variant(str(self.given.get(name, name)))

    def rules(self, spec: VariantSpec) -> Rules:
        """Make the rules of a variant. Raises SpecError."""
        return self._source().rules(spec)

    # --- nets and searches ---------------------------------------------------------------------

    def evaluator(self, spec: VariantSpec, settings: Mapping[str, Any], log: Log) -> Evaluator:
        """Make an evaluator by the client's settings (`OptionSet.evaluator_settings`).

        Anything that does not work is logged and replaced by the next best: a game in progress is
        better lost with a weak net than without a move.
        """
        from variant_ai.core.inference.choosing.evaluator_factory import (
            AUTO,
            WITHOUT_NET,
            best_without_net,
        )
        from variant_ai.core.inference.packaged_nets import engine_net

        named, chosen = str(settings["model"] or ""), str(settings["evaluator"])
        how = {name: settings[name] for name in ("batch", "threads", "device", "precision")}

        make = functools.partial(self._source().evaluator, spec, log=log)
        if chosen in WITHOUT_NET:
            return make(None, evaluator=chosen, **how)
        packaged = self._source().net_paths(spec)
        model, tried = engine_net(home_path(named) if named else self.model, spec.variant, packaged)
        plain = {**how, "evaluator": AUTO, "device": "cpu", "precision": None}
        attempts: list[tuple[str, Path | None, dict[str, Any]]] = []
        if model is not None or chosen != AUTO:  # a plugin's evaluator may need no net
            attempts.append(("", model, {**how, "evaluator": chosen}))
        if model is not None:
            if attempts[0][2] != plain:
                message = "playing with the fastest evaluator of this machine's processor instead"
                attempts.append((message, model, plain))
            fallback, _ = engine_net(None, spec.variant, packaged)
            if fallback not in (None, model):
                attempts.append((f"playing with {fallback} instead", fallback, plain))
        for message, net, settings_tried in attempts:
            if message:
                log(message)
            try:
                return make(net, **settings_tried)
            except (VariantAIError, OSError, RuntimeError) as error:  # RuntimeError: of a driver
                log(f"error: {error}")
        if model is None:
            paths = ", ".join(map(str, tried)) or "nowhere: no folder is known"
            log(f"no net for {spec.variant} was found (looked for {paths})")
        without, knows = best_without_net(spec)
        log(f"{spec.variant} is played without a net, {knows}: set the option Model")
        return make(None, **{**plain, "evaluator": without})

    def search(
        self, spec: VariantSpec, evaluator: Evaluator, params: SearchParams, rules: Rules
    ) -> BaseSearch:
        """Make a search. No other search may use the evaluator at the same time."""
        from variant_ai.core.search.interface import make_search

        return make_search(spec, evaluator, params, rules=rules)

    def compile_search(self) -> None:
        """Compile the functions of a search that are not in the cache of this machine."""
        from variant_ai.core.jit.parallel_compilation import compile_all

        compile_all(["variant_ai.core.search.search"])

    def import_early(self) -> None:
        """Import what every game needs; errors are left to the code that needs the module."""
        for name in IMPORTED_EARLY:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
