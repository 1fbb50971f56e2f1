"""Where nets of a variant are looked for when nobody names one."""

from __future__ import annotations

import os
from pathlib import Path

from variant_ai.core.errors import DataError
from variant_ai.core.spec.catalogue import ROOT, home_path

PACKAGED = "packaged"
"""Word for the net that comes with a variant, wherever a net is named."""


def model_places(variant: str, spec_file: Path | None) -> list[Path]:
    """In this order: the user's folder, beside the spec, in the package; not all of them exist."""
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    own = home_path(data) / "variant-ai" / "models"
    packaged = ROOT / "variants"
    beside = spec_file.with_suffix(".onnx") if spec_file is not None else None
    found = [own / f"{variant}.onnx", beside, packaged / variant / "model.onnx"]
    return [path for path in found if path is not None]


def named_net(named: Path, variant: str, spec_file: Path | None) -> Path:
    """The net that is named; `packaged` is the first that exists of `model_places`.

    A file or folder of that name comes first. Raises DataError if there is none.
    """
    if str(named) != PACKAGED or named.exists():
        return named
    places = model_places(variant, spec_file)
    for path in places:
        if path.is_file():
            return path
    looked = " or ".join(map(str, places))
    raise DataError(f"no net comes with {variant}: there is none at {looked}")
