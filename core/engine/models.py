"""Where nets of a variant are looked for when nobody names one."""

from __future__ import annotations

import os
from pathlib import Path

from variant_ai.specs.index import home_path


def model_places(variant: str, spec_file: Path | None) -> list[Path]:
    """In this order: the user's folder, beside the spec, in the package; not all of them exist."""
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    own = home_path(data) / "variant-ai" / "models"
    packaged = Path(__file__).resolve().parents[2] / "variants"
    beside = spec_file.with_suffix(".onnx") if spec_file is not None else None
    found = [own / f"{variant}.onnx", beside, packaged / variant / "model.onnx"]
    return [path for path in found if path is not None]
