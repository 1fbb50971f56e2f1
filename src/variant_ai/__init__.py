"""variant-ai: neural engines for any chess variant that a YAML spec can describe.

Names are imported when they are first used, so `import variant_ai` takes no time.
"""

from __future__ import annotations

import os
import sys

from variant_ai.core.renamed import RenamedModules

TYPE_CHECKING = False  # importing it from typing would take longer than all the rest here
if TYPE_CHECKING:
    from typing import Any

    from variant_ai.api import Analysis, Engine, Position, Variation, load_variant
    from variant_ai.core.data.game_record import GameRecord
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.errors import VariantAIError
    from variant_ai.core.inference.choosing.evaluator_factory import make_evaluator
    from variant_ai.core.rules import make_rules
    from variant_ai.core.rules.game import Game
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.report import Report
    from variant_ai.core.search.search import Search
    from variant_ai.core.search.settings import SearchParams
    from variant_ai.core.spec.schema import VariantSpec
    from variant_ai.plugins import registry

__version__ = "0.1.0"

# The onnxruntime packages for Linux and macOS send telemetry to their maker unless it is disabled.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

sys.meta_path.append(RenamedModules())

_HOME = {
    "Analysis": "api",
    "Encoder": "core.encoding",
    "Engine": "api",
    "Game": "core.rules.game",
    "GameRecord": "core.data.game_record",
    "Limits": "core.search.move.limits",
    "Position": "api",
    "Report": "core.search.report",
    "Search": "core.search.search",
    "SearchParams": "core.search.settings",
    "Variation": "api",
    "VariantAIError": "core.errors",
    "VariantSpec": "core.spec.schema",
    "load_variant": "api",
    "make_evaluator": "core.inference.choosing.evaluator_factory",
    "make_rules": "core.rules",
    "registry": "plugins",
}

__all__ = [
    "Analysis",
    "Encoder",
    "Engine",
    "Game",
    "GameRecord",
    "Limits",
    "Position",
    "Report",
    "Search",
    "SearchParams",
    "VariantAIError",
    "VariantSpec",
    "Variation",
    "__version__",
    "load_variant",
    "make_evaluator",
    "make_rules",
    "registry",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
