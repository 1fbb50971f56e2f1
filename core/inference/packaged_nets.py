"""Nets that come with a variant: where they are looked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from variant_ai.core.errors import DataError
from variant_ai.core.spec.catalogue import PACKAGED, home_path


def packaged_net_paths(
    variant: str, spec_file: Path | None, packaged: Path | None = None
) -> list[Path]:
    """Return the paths to try, in order: in the user's folder, beside the spec, the net of
    the variant's entry (`packaged`): its plugin's, or the one that ships in `variants/nets/`."""
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    own = home_path(data) / "variant-ai" / "models"
    beside = spec_file.with_suffix(".onnx") if spec_file is not None else None
    found = [own / f"{variant}.onnx", beside, packaged]
    return [path for path in found if path is not None]


def first_file(paths: Sequence[Path]) -> Path | None:
    """Return the first path that is a file; None if there is none."""
    # os.path: False too if a folder may not be read
    return next((path for path in paths if os.path.isfile(path)), None)


def named_net(name: Path, variant: str, paths: Sequence[Path]) -> Path:
    """Return the net of this name; `packaged` is the first file of `paths`.

    A file or folder called `packaged` has priority. Raises DataError if there is none.
    """
    if str(name) != PACKAGED or name.exists():
        return name
    found = first_file(paths)
    if found is None:
        tried = " or ".join(map(str, paths))
        raise DataError(f"no net comes with {variant}: there is none at {tried}")
    return found


def engine_net(
    name: Path | None, variant: str, packaged: Sequence[Path]
) -> tuple[Path | None, list[Path]]:
    """Return the net that an engine plays with, None if there is none, and the paths tried.

    name: the configured file or folder; None: the first file of `packaged`.
    """
    if name is None or (str(name) == PACKAGED and not name.exists()):
        return first_file(packaged), list(packaged)
    # a run directory stays one: its checkpoints may be newer than its export
    files = [f"{variant}.onnx"]
    if not os.path.isdir(name / "checkpoints"):
        files.append("model.onnx")
    net = first_file([name / file for file in files]) or name
    return net, [net]
