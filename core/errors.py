"""The one exception tree of the project. Every error a user can cause is a `VariantAIError`.

It lives in the lowest room because every room above raises from it. A message says what was
given, where (file:line:column, FEN, ply), and what would be accepted; the command line prints it
as one sentence and exits with status 1.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence


class VariantAIError(Exception):
    """Base of every error that names a mistake in the user's input or environment."""


class SpecError(VariantAIError):
    """A variant spec that cannot be used: `where` is file:line:column when it came from a file;
    `keys` lead to the word that is wrong, where who raises it knows the word and not the file."""

    def __init__(self, message: str, where: str = "", keys: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where
        self.keys = keys


class UnknownNameError(VariantAIError):
    """A variant, net, device, option or notation that does not exist; says which do."""

    def __init__(self, kind: str, given: str, known: Iterable[str], also: str = "") -> None:
        """`also`: what is accepted beside the known names, in words."""
        self.kind, self.given, self.known, self.also = kind, given, sorted(known), also
        said = unknown(kind, given, self.known)
        super().__init__(f"{said}, {also}" if also else said)

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, list[str], str]]:
        # without it a process that raises one dies of being read by the process that asked
        return type(self), (self.kind, self.given, self.known, self.also)


class SettingError(VariantAIError):
    """A setting with a value it does not take; says which it does."""


class FenError(VariantAIError):
    """A FEN that is not a position of the variant."""


class MoveError(VariantAIError):
    """A move text or move integer that is not a legal move of the position; shows both."""


class DataError(VariantAIError):
    """A game file, game store or checkpoint that is damaged or does not fit."""


class PluginError(VariantAIError):
    """A plugin that cannot be loaded or speaks another version of the plugin API."""


class EngineError(VariantAIError):
    """An external engine that cannot be started, died, hung, or broke the protocol."""


def os_reason(error: OSError, path: str | os.PathLike[str]) -> str:
    """Why a file could not be opened or written, in words; of a folder that is missing, its name."""
    folder = os.path.dirname(os.path.abspath(path))
    if isinstance(error, FileNotFoundError) and not os.path.isdir(folder):
        return f"there is no folder {folder}"
    return error.strerror or str(error) or type(error).__name__


def closest(given: str, known: Sequence[str]) -> str | None:
    """The known name most like `given` (case ignored), or None where nothing is close."""
    by_lower = {name.lower(): name for name in known}
    hits = difflib.get_close_matches(given.lower(), list(by_lower), n=1, cutoff=0.5)
    return by_lower[hits[0]] if hits else None


def unknown(kind: str, given: str, known: Sequence[str]) -> str:
    """One sentence: `unknown variant 'xianqi'; did you mean 'xiangqi'? accepted: a, b`."""
    guess = closest(given, known)
    hint = f"did you mean {guess!r}? " if guess else ""
    listed = ", ".join(known) if known else "none"
    return f"unknown {kind} {given!r}; {hint}accepted: {listed}"
