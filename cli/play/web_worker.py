"""A process behind the web page: `python -m variant_ai.cli.play.web_worker board|reader|search`.

It reads questions as JSON lines and ends when its input does.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variant_ai import __version__
from variant_ai.core.errors import VariantAIError

if TYPE_CHECKING:
    from variant_ai.core.engine.json_service import VariantEngine
    from variant_ai.core.spec.schema import VariantSpec
    from variant_ai.core.web import Actions, Json

TREE_MB = 192
"""Memory of each engine's tree; there are at most KEPT_ENGINES engines."""
GIVES_WAY = 5
"""Niceness of a search beside the processes that answer clicks."""


def make_engine(name: str) -> VariantEngine:
    """Make the engine of a query; see `core/web/search_service.py`."""
    from variant_ai.api import Engine
    from variant_ai.cli.common.options import load_variant
    from variant_ai.core.web.search_service import split_engine_name
    from variant_ai.core.web.work_room import NETS, PACKAGED, PLAYER

    variant, net = split_engine_name(name)
    spec = load_variant(variant)
    if net.startswith(PLAYER):
        return _make_player(spec, net.removeprefix(PLAYER))
    how: dict[str, Any] = {"memory_mb": TREE_MB, "log": _log}
    if net == PACKAGED:
        return Engine(spec, **how)
    if net in NETS:
        return Engine(spec, evaluator=net, **how)
    return Engine(spec, Path(net), **how)


def _make_player(spec: VariantSpec, text: str) -> VariantEngine:
    from variant_ai.cli.common.player_options import make_player
    from variant_ai.core.arena.players.player_spec import parse_player
    from variant_ai.core.web.player_engine import PlayerEngine
    from variant_ai.plugins import registry

    rules = registry().rules(spec)
    player = parse_player(text)
    return PlayerEngine(rules, make_player(player, rules), player.allowance())


def answer(question: Json, actions: Actions) -> Json:
    """Answer a question by its `action`: an object with `id`, and `error` if there is no answer."""
    id = question.get("id")
    try:
        return {**actions[str(question["action"])](question), "id": id}
    except VariantAIError as error:
        return {"id": id, "error": str(error)}
    except Exception as error:  # one question must not end the process
        return {"id": id, "error": f"{type(error).__name__}: {error}"}


def _log(text: str) -> None:
    print(text, file=sys.stderr)


def main(kind: str, *folders: str) -> None:
    """Answer questions until the input ends. folders: those of runs."""
    from variant_ai.core.engine.line_io import LineWriter, claim_stdout, read_lines
    from variant_ai.core.system.child_processes import leave_signals_to_parent

    leave_signals_to_parent(last_work=2.0)
    write = LineWriter(claim_stdout())
    if kind == "search":
        if hasattr(os, "nice"):
            os.nice(GIVES_WAY)
        from variant_ai.core.engine.json_service import JsonService
        from variant_ai.core.web.search_service import ACTIONS, KEPT_ENGINES

        JsonService(
            make_engine,
            write,
            default_variant=None,
            version=__version__,
            actions=ACTIONS,
            most_engines=KEPT_ENGINES,
        ).run(read_lines(0))
        return
    if kind == "reader":
        from variant_ai.core.web.run_service import RunService

        actions = RunService([Path(folder) for folder in folders]).actions
    else:
        from variant_ai.core.web.board_service import BoardService
        from variant_ai.plugins import registry

        actions = BoardService(registry()).actions
    for line in read_lines(0):
        if write.is_broken:
            return
        if line.text:
            write(json.dumps(answer(json.loads(line.text), actions), ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
