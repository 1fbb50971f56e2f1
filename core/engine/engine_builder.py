"""What a session plays with: variants, rules and nets, loaded when they are first needed.

The session knows variants by name before anything is read; specs, rules, nets and the search come
from here, on the working thread, while the client's handshake has long been answered. Which
variants there are, and where their nets lie, is told by the program: plugins live above the core.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from variant_ai.core.engine.packaged_nets import PACKAGED
from variant_ai.core.errors import VariantAIError
from variant_ai.core.spec.catalogue import home_path, spec_words

if TYPE_CHECKING:
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.report import Report
    from variant_ai.core.search.settings import SearchParams
    from variant_ai.core.spec.schema import VariantSpec

Say = Callable[[str], None]

WARM = (
    "variant_ai.core.spec.loader",
    "variant_ai.core.rules.kernel.kernel_rules",
    "variant_ai.core.encoding",
    "variant_ai.core.inference.choosing.evaluator_choice",
    "variant_ai.core.search.search",
)
"""Modules every game needs, imported while the client reads the options."""


class VariantSource(Protocol):
    """The part of the plugin registry that an engine needs."""

    def variant(self, name: str) -> VariantSpec: ...

    def rules(self, spec: VariantSpec, engine: str | None = None) -> Rules: ...

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
        say: Say | None = None,
    ) -> Evaluator: ...


class Searching(Protocol):
    """The part of `Search` that a session uses; tests put their own in its place."""

    def set_game(self, game: Game) -> None: ...

    def run(
        self,
        limits: Limits,
        *,
        moves: Sequence[int] | None = None,
        multipv: int = 1,
        on_report: Callable[[Report], None] | None = None,
        interval: float = 1.0,
    ) -> Report: ...

    def stop(self) -> None: ...

    def report(self, multipv: int = 1, *, pv: bool = True) -> Report: ...

    def clear(self) -> None: ...

    def warm_up(self) -> None: ...

    def judge_chases(self, on: bool) -> None: ...

    def settle(self) -> None: ...

    def close(self) -> None: ...


class Workshop:
    """Makes what a session asks for. Used by one thread."""

    def __init__(
        self,
        files: Mapping[str, Path],
        default: str,
        source: Callable[[], VariantSource],
        *,
        model: Path | None = None,
        models_of: Callable[[str], Sequence[Path]] = lambda name: (),
    ) -> None:
        """files: the spec of every variant by name. default: the one played where nobody says.
        source: called when the first spec is read. model: the net to play with unless a client
        names another. models_of: where nets of a variant are looked for, the first that exists is
        taken."""
        self.files = dict(files)
        self.default = default
        self.model = model
        self._source = source
        self._models_of = models_of

    # --- variants ------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.files))

    @property
    def names_offered(self) -> tuple[str, ...]:
        """Our names, and those of Fairy-Stockfish that differ: what `named` understands."""
        others = {spec_words(path).fairy.lower() for path in self.files.values()}
        return tuple(sorted({*self.files, *others} - {""}))

    def named(self, given: str) -> str:
        """Our name for a variant that a client calls by Fairy-Stockfish's, in any case; what is
        unknown stays as it is."""
        wanted = given.strip().lower()
        if wanted in self.files:
            return wanted
        for name, path in self.files.items():
            if spec_words(path).fairy.lower() == wanted and wanted:
                return name
        return given

    def speaks(self, name: str, protocol: str) -> bool:
        """Whether the variant's spec lists the protocol; one that lists none speaks UCI."""
        path = self.files.get(name)
        return protocol in (spec_words(path).protocols if path else ("uci",))

    def speaking(self, protocol: str) -> str | None:
        """The default variant if it speaks the protocol, else the first that does."""
        for name in (self.default, *self.names):
            if self.speaks(name, protocol):
                return name
        return None

    def spec(self, name: str) -> VariantSpec:
        """Raises UnknownNameError, SpecError."""
        return self._source().variant(name)

    def rules(self, spec: VariantSpec) -> Rules:
        """Raises SpecError."""
        return self._source().rules(spec)

    # --- nets and searches ---------------------------------------------------------------------

    def evaluator(self, spec: VariantSpec, settings: Mapping[str, Any], say: Say) -> Evaluator:
        """An evaluator by the client's settings (`OptionSet.evaluator_settings`).

        What cannot be had is told by `say`, and play goes on with what can: a game under way is
        better lost with a weak net than without a move.
        """
        from variant_ai.core.inference.choosing.evaluator_choice import AUTO, UNIFORM, WITHOUT_NET

        named, wanted = str(settings["model"] or ""), str(settings["evaluator"])
        how = {name: settings[name] for name in ("batch", "threads", "device", "precision")}

        def made(model: Path | None, evaluator: str) -> Evaluator:
            return self._source().evaluator(spec, model, evaluator=evaluator, say=say, **how)

        def tried(model: Path | None, evaluator: str) -> Evaluator | None:
            try:
                return made(model, evaluator)
            except (VariantAIError, OSError, RuntimeError) as error:  # the last of a driver
                say(f"error: {error}")
                return None

        if wanted in WITHOUT_NET:
            return made(None, wanted)
        model, looked = self.find_model(spec, named)
        evaluator = None
        if model is not None or wanted != AUTO:  # a plugin's may need no net
            evaluator = tried(model, wanted)
        if evaluator is None and model is None:
            places = ", ".join(map(str, looked)) or "nowhere: no folder is known"
            say(f"no net for {spec.variant} was found (looked for {places})")
        elif evaluator is None and (
            wanted != AUTO or how["device"] != "cpu" or how["precision"] is not None
        ):
            say("playing with the fastest evaluator of this machine's processor instead")
            how = {**how, "device": "cpu", "precision": None}
            evaluator = tried(model, AUTO)
        if evaluator is None and model is not None and (named or self.model):
            fallback, _ = self.packaged(spec)
            if fallback is not None and fallback != model:
                say(f"playing with {fallback} instead")
                evaluator = tried(fallback, AUTO)
        if evaluator is None:
            say(f"{spec.variant} is played without a net, by search alone: set the option Model")
            evaluator = made(None, UNIFORM)
        return evaluator

    def find_model(self, spec: VariantSpec, given: str) -> tuple[Path | None, list[Path]]:
        """The net to play with, None without one, and where it was looked for."""
        chosen = home_path(given) if given else self.model
        if chosen is None or (str(chosen) == PACKAGED and not chosen.exists()):
            return self.packaged(spec)
        # a run directory stays one: its checkpoints may be newer, and torch runs nothing else
        own = () if os.path.isdir(chosen / "checkpoints") else ("model.onnx",)
        for name in (f"{spec.variant}.onnx", *own):
            if os.path.isfile(chosen / name):  # False too where one may not look
                chosen = chosen / name
                break
        return chosen, [chosen]

    def packaged(self, spec: VariantSpec) -> tuple[Path | None, list[Path]]:
        """The net that comes with the variant or lies in the user's folder."""
        looked = list(self._models_of(spec.variant))
        return next((path for path in looked if os.path.isfile(path)), None), looked

    def search(
        self, spec: VariantSpec, evaluator: Evaluator, params: SearchParams, rules: Rules
    ) -> Searching:
        """A search of the variant. The evaluator is shared with none at the same time."""
        from variant_ai.core.search.search import Search

        return Search(spec, evaluator, params, rules=rules)

    def compile_search(self) -> None:
        """Compile what a search runs, if that has not been done on this machine."""
        from variant_ai.core.jit.parallel_compilation import compile_all

        compile_all(["variant_ai.core.search.search"])

    def warm(self) -> None:
        """Import what every game needs; what cannot be imported is told by whoever needs it."""
        for name in WARM:
            try:
                importlib.import_module(name)
            except ImportError:
                continue
