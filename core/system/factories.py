"""Implementations of an interface by name: the built-in ones, and those that plugins add.

Each is a class or function given as `package.module:object`, which is imported when it is first used.
The core looks for no plugins; the plugin host offers what it found to the core here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from variant_ai.core.errors import PluginError, UnknownNameError, VariantAIError

T = TypeVar("T")
Target = Callable[..., Any] | str


class Factories(Generic[T]):
    """Factories of one kind of thing. Names are unique; registering the same one again is fine."""

    def __init__(self, kind: str, builtin: Mapping[str, str]) -> None:
        """`kind` is what messages call the thing, such as `rules engine`."""
        self.kind = kind
        self._targets: dict[str, Target] = dict(builtin)
        self.builtin = tuple(builtin)
        """Names of those that come with the project."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._targets)

    def register(self, name: str, target: Target) -> None:
        """Add one. Raises PluginError if another has the name."""
        if self._targets.get(name, target) != target:
            raise PluginError(f"the {self.kind} {name!r} exists already; choose another name")
        self._targets[name] = target

    def added(self) -> dict[str, str]:
        """Name -> target of those that were added as texts: another process, which looks for no
        plugins, can register them again."""
        return {
            name: target
            for name, target in self._targets.items()
            if name not in self.builtin and isinstance(target, str)
        }

    def load(self, name: str) -> Callable[..., T]:
        """Import the factory. Raises UnknownNameError, or PluginError if it cannot be imported."""
        if name not in self._targets:
            raise UnknownNameError(self.kind, name, self._targets)
        target = self._targets[name]
        if not isinstance(target, str):
            return target
        module, _, attribute = target.partition(":")
        try:
            loaded: Callable[..., T] = getattr(importlib.import_module(module), attribute)
        except VariantAIError:
            raise
        except Exception as error:
            if name in self.builtin:
                raise
            raise PluginError(
                f"cannot load the {self.kind} {name!r} from {target!r}: "
                f"{type(error).__name__}: {error}"
            ) from error
        return loaded
