"""Exceptions of the project. Every error that a user can cause is a `VariantAIError`.

A message says what was given, where (file:line:column, FEN, ply), and what is accepted; the command
line prints it as one sentence and exits with status 1.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence


class VariantAIError(Exception):
    """Base of all errors caused by the user's input or environment."""


class SpecError(VariantAIError):
    """Invalid variant spec.

    where: file, or file:line:column as far as it is known; empty if the file is unknown. An error
    of several lines has a location in each line, and only the file here. keys: path of the wrong
    word, for errors that are raised without knowing the file.
    """

    def __init__(self, message: str, where: str = "", keys: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where
        self.keys = keys


class UnknownNameError(VariantAIError):
    """Unknown name of a variant, net, device, option or notation; the message lists the known
    ones."""

    def __init__(self, kind: str, given: str, known: Iterable[str], also: str = "") -> None:
        """also: description of what is accepted besides the known names."""
        self.kind, self.given, self.known, self.also = kind, given, sorted(known), also
        message = unknown(kind, given, self.known)
        super().__init__(f"{message}, {also}" if also else message)

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, list[str], str]]:
        # the default cannot be unpickled, which would kill the process that receives the error
        return type(self), (self.kind, self.given, self.known, self.also)


class SettingError(VariantAIError):
    """Invalid value of a setting; the message says which are valid."""


class FenError(VariantAIError):
    """Text that is not the FEN of a position of the variant."""


class MoveError(VariantAIError):
    """Text or integer that is not a legal move of the position; the message has both."""


class DataError(VariantAIError):
    """Damaged or unsuitable game file, game store or checkpoint."""


class PluginError(VariantAIError):
    """Plugin that cannot be loaded or uses another version of the plugin API."""


class EngineError(VariantAIError):
    """External engine that cannot be started, died, hung, or violated the protocol."""


def os_reason(error: OSError, path: str | os.PathLike[str]) -> str:
    """Describe why a file could not be opened or written; names the folder if it is missing."""
    folder = os.path.dirname(os.path.abspath(path))
    if isinstance(error, FileNotFoundError) and not os.path.isdir(folder):
        return f"there is no folder {folder}"
    return error.strerror or str(error) or type(error).__name__


def closest(given: str, known: Sequence[str]) -> str | None:
    """Return the known name most similar to `given` (ignoring case), or None if none is close."""
    by_lower = {name.lower(): name for name in known}
    hits = difflib.get_close_matches(given.lower(), list(by_lower), n=1, cutoff=0.5)
    return by_lower[hits[0]] if hits else None


def unknown(kind: str, given: str, known: Sequence[str]) -> str:
    """Return a message such as `unknown variant 'xianqi'; did you mean 'xiangqi'? accepted: a,
    b`."""
    guess = closest(given, known)
    hint = f"did you mean {guess!r}? " if guess else ""
    listed = ", ".join(known) if known else "none"
    return f"unknown {kind} {given!r}; {hint}accepted: {listed}"
