"""Nets that the page offers under a name, and the variants that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from variant_ai.core.errors import DataError


@dataclass(frozen=True)
class OfferedNet:
    """A net that the page offers under a name."""

    path: Path
    """Of a file, or of a folder with files or a run."""
    variants: Sequence[str] = ()
    """Names of the variants that it is of; empty: unknown."""

    @classmethod
    def read(cls, path: Path) -> OfferedNet:
        """Return a net with the variants that its files name, none if they cannot be read: then the
        search reports the mistake."""
        try:
            return cls(path, sorted(_variants(path)))
        except (DataError, OSError):
            return cls(path)

    def require(self, name: str, variant: str) -> None:
        """Raise DataError if the net is of other variants. name: of the net, for the message."""
        if self.variants and variant not in self.variants:
            known = " and ".join(self.variants)
            raise DataError(f"net: {name} is a net for {known}, not for {variant}")


def _variants(path: Path) -> set[str]:
    """Return the variants of a net's files. Raises DataError, OSError."""
    # here, since a server without such nets does without numpy
    from variant_ai.core.inference.model_file import read_model_file
    from variant_ai.core.train.run.run_folder import CONFIG, run_config

    if (path / CONFIG).is_file():
        return {run_config(path).variant}
    files = sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    found = {read_model_file(file).info.variant for file in files}
    return set() if "" in found else found  # "": a file without metadata of ours
