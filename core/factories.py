"""Implementations of the interfaces by name: the built-in ones, and those that plugins add.

| table | interface | chosen by |
| --- | --- | --- |
| `RULES_ENGINES` | `core/rules/interface.py` | `rules: engine:` in a spec |
| `INPUT_ENCODERS`, `LABEL_ENCODERS` | `core/encoding/interface.py` | `encoder:` in a spec |
| `SEARCHES` | `core/search/interface.py` | the search setting `algorithm`, `--search NAME` |
| `TRAINERS` | `core/train/interface.py` | `train --trainer NAME` |
| `PROGRAM_PROTOCOLS` | `ProgramPlayer` in `core/arena/programs/program_player.py` | `protocol` of a player |
| `DIALECTS` | `Dialect` in `core/engine/protocols/uci.py` | `engine --protocol`, `protocols:` in a spec |

The built-in networks have a table of their own, `core/nets/zoo.py`, because a net is known by name, size
and head. Evaluators too: `core/inference/choosing/evaluator_factory.py`, because a name may also have a
precision or combine others. Those of plugins are in `NETWORKS` and `EVALUATORS`.
Each implementation is a class or function given as `package.module:object` and imported when it is
first used: importing this module imports none of them. The core looks for no plugins; the plugin host
registers what it found here.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from variant_ai.core.errors import PluginError, UnknownNameError, VariantAIError

if TYPE_CHECKING:
    from variant_ai.core.arena.programs.program_player import ProgramPlayer
    from variant_ai.core.encoding.interface import InputEncoder, LabelEncoder
    from variant_ai.core.engine.protocols.uci import Dialect
    from variant_ai.core.inference.choosing.evaluator_factory import EvaluatorRequest
    from variant_ai.core.inference.interface import Evaluator
    from variant_ai.core.nets.interface import NetworkBuilder
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.search.interface import BaseSearch
    from variant_ai.core.train.interface import BaseTrainer

T = TypeVar("T")
Target = Callable[..., Any] | str


class Factories(Generic[T]):
    """Factories of one kind of thing. Names are unique; registering the same one again is fine."""

    def __init__(self, kind: str, builtin: Mapping[str, str], interface: str = "") -> None:
        """`kind` is what messages call the thing, such as `rules engine`. interface: the abstract
        class of the things made, as `package.module:Class`; empty: not checked."""
        self.kind = kind
        self._interface = interface
        self._targets: dict[str, Target] = dict(builtin)
        self._plugins: dict[str, str] = {}
        self.builtin = tuple(builtin)
        """Names of those that come with the project."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._targets)

    def register(self, name: str, target: Target, plugin: str = "") -> None:
        """Add one; `plugin`: whose it is, for messages. Raises PluginError if another has the name."""
        if self._targets.get(name, target) != target:
            raise PluginError(f"the {self.kind} {name!r} already exists; choose another name")
        self._targets[name] = target
        self._plugins[name] = plugin

    def added(self) -> list[tuple[str, str, str]]:
        """Name, target and plugin of those that were added as texts: another process, which looks for no
        plugins, can register them again."""
        return [
            (name, target, self._plugins.get(name, ""))
            for name, target in self._targets.items()
            if name not in self.builtin and isinstance(target, str)
        ]

    def load(self, name: str) -> Callable[..., T]:
        """Import the factory. Raises UnknownNameError, or PluginError if it cannot be imported."""
        if name not in self._targets:
            raise UnknownNameError(self.kind, name, self._targets)
        target = self._targets[name]
        if not isinstance(target, str):
            return self._checked(name, target)
        try:
            loaded: Callable[..., T] = pkgutil.resolve_name(target)
        except VariantAIError:
            raise
        except (Exception, SystemExit) as error:
            if name in self.builtin:
                raise
            raise PluginError(
                f"{self._whose(name)}cannot load the {self.kind} {name!r} from {target!r}: "
                f"{type(error).__name__}: {error}"
            ) from error
        return loaded if name in self.builtin else self._checked(name, loaded)

    def _whose(self, name: str) -> str:
        """Return the first words of a message about something of a plugin."""
        return f"plugin {self._plugins[name]!r}: " if self._plugins.get(name) else ""

    def _checked(self, name: str, factory: Callable[..., T]) -> Callable[..., T]:
        """Return the factory of a plugin, wrapped so that its errors and results are checked.
        Raises PluginError if it is no factory of this kind."""
        if not self._interface:
            return factory
        wanted = pkgutil.resolve_name(self._interface)
        start = f"{self._whose(name)}the {self.kind} {name!r} of {self._targets[name]!r}"
        if isinstance(factory, type) and not issubclass(factory, wanted):
            raise PluginError(
                f"{start} is the class {factory.__name__}, not a {wanted.__name__} class"
            )
        if not callable(factory):
            raise PluginError(
                f"{start} is a {type(factory).__name__}, not a {wanted.__name__} class"
            )

        @functools.wraps(factory)
        def make(*args: Any, **options: Any) -> T:
            try:
                made = factory(*args, **options)
            except (VariantAIError, MemoryError):
                raise
            except (Exception, SystemExit) as error:
                raise PluginError(
                    f"{start} cannot be made: {type(error).__name__}: {error}"
                ) from error
            if not isinstance(made, wanted):
                raise PluginError(f"{start} made a {type(made).__name__}, not a {wanted.__name__}")
            return made

        return make


RULES_ENGINES: Factories[Rules] = Factories(
    "rules engine",
    {
        "kernel": "variant_ai.core.rules.kernel.kernel_rules:KernelRules",
        "fairy": "variant_ai.core.rules.fairy.fairy_rules:FairyRules",
    },
    "variant_ai.core.rules.interface:Rules",
)
INPUT_ENCODERS: Factories[InputEncoder] = Factories(
    "input encoder",
    {"planes": "variant_ai.core.encoding.input_planes:SpecPlanes"},
    "variant_ai.core.encoding.interface:InputEncoder",
)
LABEL_ENCODERS: Factories[LabelEncoder] = Factories(
    "label encoder",
    {"moves": "variant_ai.core.encoding.move_labels:FlatLabels"},
    "variant_ai.core.encoding.interface:LabelEncoder",
)
SEARCHES: Factories[BaseSearch] = Factories(
    "search",
    {"graph": "variant_ai.core.search.search:Search"},
    "variant_ai.core.search.interface:BaseSearch",
)
TRAINERS: Factories[BaseTrainer] = Factories(
    "trainer",
    {"standard": "variant_ai.core.train.loop.trainer:Trainer"},
    "variant_ai.core.train.interface:BaseTrainer",
)
PROGRAM_PROTOCOLS: Factories[ProgramPlayer[Any]] = Factories(
    "protocol of programs",
    {
        "uci": "variant_ai.core.arena.programs.program_player:UciPlayer",
        "ucci": "variant_ai.core.arena.programs.program_player:UcciPlayer",
        "cyclone": "variant_ai.core.arena.programs.program_player:CyclonePlayer",
        "xboard": "variant_ai.core.arena.programs.program_player:XboardPlayer",
    },
)
"""Protocols in which other programs are asked."""
DIALECTS: Factories[Dialect] = Factories(
    "protocol",
    {
        "uci": "variant_ai.core.engine.protocols.uci:Uci",
        "ucci": "variant_ai.core.engine.protocols.ucci:Ucci",
        "cyclone": "variant_ai.core.engine.protocols.uci:Cyclone",
        "usi": "variant_ai.core.engine.protocols.usi:Usi",
    },
    "variant_ai.core.engine.protocols.uci:Dialect",
)
"""Protocols that the engine answers in. If several have the same first word, the first one is chosen by
it."""
NETWORKS: dict[str, Callable[[], NetworkBuilder]] = {}
"""Makers of the builders of networks that plugins add, by name."""
EVALUATORS: dict[str, Callable[[EvaluatorRequest], Evaluator]] = {}
"""Makers of the evaluators that plugins add, by name."""
