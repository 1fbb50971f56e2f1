"""The hooks of a variant-ai plugin, and the entries they return.

A plugin is a module (or an object) named by an entry point of the group `variant_ai`. It states which
plugin API it was written for and implements any of the hooks below with `@hookimpl`:

    from pathlib import Path
    from variant_ai.plugins import VariantEntry, hookimpl

    variant_ai_api = 2

    @hookimpl
    def register_variants():
        return [VariantEntry("mychess", Path(__file__).with_name("mychess.yaml"))]

Plugin modules are imported before every `--help`, so they must import cheaply: give what takes time
to import as a target, `"package.module:object"`, which is imported when it is used.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import pluggy

from variant_ai.core.errors import PluginError, VariantAIError

if TYPE_CHECKING:
    import click

    from variant_ai.core.data.read.game_reader import GameReader
    from variant_ai.core.inference import Evaluator, EvaluatorRequest
    from variant_ai.core.nets import NetworkBuilder
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.rules.text.notation import Notation
    from variant_ai.core.spec.schema import VariantSpec

GROUP = "variant_ai"
API_VERSION = 2
"""Grows with every change of the hooks. 2: `register_encoders`, `register_searches`,
`register_trainers`, `register_protocols`, `VariantEntry.model`."""
ACCEPTED_VERSIONS = (1, 2)
"""Plugins written for these are loaded."""

N = TypeVar("N")

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@dataclass(frozen=True)
class Entry:
    """Something a plugin registers under a name."""

    name: str
    plugin: str = field(default="", kw_only=True)
    """Name of the plugin it came from; the registry fills it in."""


@dataclass(frozen=True)
class VariantEntry(Entry):
    """A variant: its name, which is the spec's own (`variant:`), and the YAML file of the spec."""

    path: Path
    sample: Path | None = field(default=None, kw_only=True)
    """A small game store for a first training."""
    model: Path | None = field(default=None, kw_only=True)
    """The net that comes with the variant, an ONNX file: `packaged` wherever a net is named."""


@dataclass(frozen=True)
class LazyEntry(Entry):
    """Something imported when it is used."""

    target: str
    """`package.module:object`."""
    summary: str = ""
    """One line for lists and help."""

    def load(self) -> Any:
        """The object. Raises PluginError naming plugin and target."""
        try:
            return pkgutil.resolve_name(self.target)
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"plugin {self.plugin!r}: cannot load {self.name!r} from {self.target!r}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def made(self, noun: str, kind: type, *given: object) -> Any:
        """Return the object of the type that the target makes; noun: its name in messages.

        A target that needs nothing may be the object itself. Raises PluginError naming plugin and target;
        a VariantAIError is meant for the user and passes.
        """
        made: Any = self.load()
        try:
            if given or callable(made):
                made = made(*given)
        except VariantAIError:
            raise
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"plugin {self.plugin!r}: {self.target!r} failed to make {self.name!r}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if isinstance(made, kind):
            return made
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise self.error(noun, f"is a {type(made).__name__}, not {article} {kind.__name__}")

    def _named(self, noun: str, made: N) -> N:
        """Return a thing that must have a name. Raises PluginError."""
        name = getattr(made, "name", None)
        if not (isinstance(name, str) and name):
            raise self.error(noun, f"has name = {name!r}, not a text")
        return made

    def error(self, noun: str, problem: str) -> PluginError:
        """Error about the target, which should be a `noun`."""
        return PluginError(
            f"plugin {self.plugin!r}: {self.target!r} of the {noun} {self.name!r} {problem}"
        )


@dataclass(frozen=True)
class VariantsEntry(LazyEntry):
    """Something that serves some variants, or all."""

    variants: tuple[str, ...] = ()
    """Names of the variants it serves; empty: every variant."""

    def serves(self, variant: str) -> bool:
        return not self.variants or variant in self.variants


class RulesEntry(LazyEntry):
    """A rules engine; the target is a `Rules` class, or a function `VariantSpec -> Rules`."""

    def make(self, spec: VariantSpec) -> Rules:
        """The rules of a variant. Raises PluginError if they cannot be made or are not Rules."""
        from variant_ai.core.rules.interface import Rules

        rules: Rules = self.made("rules engine", Rules, spec)
        return rules


class ReaderEntry(VariantsEntry):
    """A reader of game files; the target is a `GameReader`, or a class or function that makes one."""

    def make(self) -> GameReader:
        """The reader. Raises PluginError if it cannot be made or is not a GameReader."""
        from variant_ai.core.data.read.game_reader import GameReader, GuardedReader

        reader: GameReader = self.made("reader", GameReader)
        extensions: object = getattr(reader, "extensions", None)
        if not isinstance(extensions, (tuple, list)):
            raise self.error("reader", f"has extensions = {extensions!r}, not a tuple of texts")
        return GuardedReader(self._named("reader", reader), self.plugin)


class NotationEntry(VariantsEntry):
    """A way to write moves; the target is a `Notation`, or a class or function that makes one."""

    def make(self) -> Notation:
        """The notation. Raises PluginError if it cannot be made or is not a Notation."""
        from variant_ai.core.rules.text.notation import GuardedNotation, Notation

        notation: Notation = self.made("notation", Notation)
        return GuardedNotation(self._named("notation", notation), self.plugin)


class NetworkEntry(LazyEntry):
    """A network architecture; the target is a `NetworkBuilder`, or a class or function that makes one."""

    def make(self) -> NetworkBuilder:
        """The builder. Raises PluginError if it cannot be made or is not a builder."""
        from variant_ai.core.nets import NetworkBuilder
        from variant_ai.core.nets.interface import problem_of_builder

        made: NetworkBuilder = self.made("net", NetworkBuilder)
        problem = problem_of_builder(made)
        if not problem and made.name != self.name:  # checkpoints know the net by it
            problem = f"is a builder that calls itself {made.name!r}"
        if problem:
            raise self.error("net", problem)
        return made


@dataclass(frozen=True)
class EncoderEntry(LazyEntry):
    """An encoder, for the word `encoder:` of specs; the target is a class, called with the spec.

    kind `input`: an `InputEncoder`, which makes the planes; `labels`: a `LabelEncoder`, which numbers
    the actions of flat policies (both in `variant_ai.core.encoding.interface`).
    """

    kind: Literal["input", "labels"] = field(default="input", kw_only=True)


class SearchEntry(LazyEntry):
    """A search, for `--search NAME`; the target is a `BaseSearch` class
    (`variant_ai.core.search.interface`), called with (spec, evaluator, params, rules=...)."""


class TrainerEntry(LazyEntry):
    """A trainer, for `train --trainer NAME`; the target is a `BaseTrainer` class
    (`variant_ai.core.train.interface`)."""


class ProtocolEntry(LazyEntry):
    """A protocol that the engine answers in, for `engine --protocol NAME` and `protocols:` of a spec; the
    target is a `Dialect` class (`variant_ai.core.engine.protocols.uci`), called with nothing."""


class EvaluatorEntry(LazyEntry):
    """An evaluator of positions; the target is an `Evaluator` class as in
    `variant_ai.core.inference`, or a function: called with an `EvaluatorRequest` (variant, model,
    batch, threads, device, precision) it gives an `Evaluator`."""

    def make(self, request: EvaluatorRequest) -> Evaluator:
        """The evaluator. Raises PluginError if it cannot be made or is not an Evaluator."""
        from variant_ai.core.inference import Evaluator

        evaluator: Evaluator = self.made("evaluator", Evaluator, request)
        needed = ("planes_shape", "actions", "info")
        missing = [word for word in needed if not hasattr(evaluator, word)]
        if missing:
            raise self.error("evaluator", f"has no {', '.join(missing)}")
        return evaluator


class CommandEntry(LazyEntry):
    """A command of `variant-ai`; the target is a click command, `summary` its line in `--help`."""

    def load(self) -> click.Command:
        """The command. Raises PluginError if it cannot be imported or is no click command."""
        import click

        command = super().load()
        if not isinstance(command, click.Command):
            raise self.error("command", f"is a {type(command).__name__}, not a click command")
        return command


class Hooks(Protocol):
    """Every hook takes nothing and returns the entries of this plugin (any iterable, or None)."""

    @hookspec
    def register_variants(self) -> Iterable[VariantEntry]:
        """Variants, each a YAML spec."""

    @hookspec
    def register_rules(self) -> Iterable[RulesEntry]:
        """Rules engines beside `kernel` and `fairy`."""

    @hookspec
    def register_readers(self) -> Iterable[ReaderEntry]:
        """Readers of game files."""

    @hookspec
    def register_notations(self) -> Iterable[NotationEntry]:
        """Ways to write moves."""

    @hookspec
    def register_networks(self) -> Iterable[NetworkEntry]:
        """Network architectures."""

    @hookspec
    def register_encoders(self) -> Iterable[EncoderEntry]:
        """Encoders of positions and of moves."""

    @hookspec
    def register_searches(self) -> Iterable[SearchEntry]:
        """Searches."""

    @hookspec
    def register_trainers(self) -> Iterable[TrainerEntry]:
        """Trainers."""

    @hookspec
    def register_protocols(self) -> Iterable[ProtocolEntry]:
        """Protocols of the engine."""

    @hookspec
    def register_evaluators(self) -> Iterable[EvaluatorEntry]:
        """Evaluators of positions."""

    @hookspec
    def register_commands(self) -> Iterable[CommandEntry]:
        """Commands of `variant-ai`."""


HOOKS: dict[str, type[Entry]] = {
    "register_variants": VariantEntry,
    "register_rules": RulesEntry,
    "register_readers": ReaderEntry,
    "register_notations": NotationEntry,
    "register_networks": NetworkEntry,
    "register_encoders": EncoderEntry,
    "register_searches": SearchEntry,
    "register_trainers": TrainerEntry,
    "register_protocols": ProtocolEntry,
    "register_evaluators": EvaluatorEntry,
    "register_commands": CommandEntry,
}
"""Every hook and what it returns, in the order that `variant-ai plugins` shows them."""
