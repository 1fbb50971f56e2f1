"""The process that searches: the JSON service of the engine, with engines for variants and nets.

A query names its engine in `variant`: the net, a tab, and the variant, as `engine_name`
joins them. Besides queries it answers, in their turn:

    {"id": 1, "action": "policy", "variant": …, "fen": …, "moves": […]}    the net without a search
    {"id": 2, "action": "planes", "variant": …, "fen": …, "moves": […]}    its input planes
    {"id": 3, "action": "layer", "variant": …, "fen": …, "moves": […], "layer": 0}   what a layer computes
    {"id": 4, "action": "tree", "variant": …, "moves": […], "search_moves": […]}
                              the tree of the last search of this position, below a line of moves
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variant_ai.core.engine.json_service import QueryAction, VariantEngine
from variant_ai.core.errors import DataError
from variant_ai.core.rules.game import Game
from variant_ai.core.search.interface import BaseSearch
from variant_ai.core.search.report import full_moves
from variant_ai.core.web import Json

if TYPE_CHECKING:
    from variant_ai.core.inference.layer_outputs import LayerOutputs

KEPT_ENGINES = 3
"""Engines of a process; the one that was used least recently goes first."""
MOST_MOVES = 40
"""Moves of a node that are shown."""
MOST_CHANNELS = 256
"""Channels of a layer that are shown."""
SEPARATOR = "\t"


def engine_name(variant: str, net: str) -> str:
    """Return the name of an engine in queries."""
    return f"{net}{SEPARATOR}{variant}"


def split_engine_name(name: str) -> tuple[str, str]:
    """Return variant and net of an engine's name."""
    net, _, variant = name.partition(SEPARATOR)
    return variant, net


def _searching(engine: VariantEngine) -> BaseSearch:
    """Return the search of an engine. Raises DataError if it is another program's."""
    if not isinstance(engine.search, BaseSearch):
        raise DataError("another program plays here; there is no net to look into")
    return engine.search


def policy(engine: VariantEngine, game: Game, query: Mapping[str, Any]) -> Json:
    """Return the net's value for the side to move and its probabilities of legal moves, best first,
    without a search."""
    from variant_ai.core.search.net_view import answer_of

    answer = answer_of(_searching(engine), game)
    best_first = sorted(answer.shares().items(), key=lambda item: -item[1])
    return {
        "value": round(answer.value, 4),
        "policy": [[game.rules.uci(move), round(share, 4)] for move, share in best_first],
    }


def planes(engine: VariantEngine, game: Game, query: Mapping[str, Any]) -> Json:
    """Return the input planes of a position as the net sees them: `names`, and `planes`, a list of
    squares from a1 for each, rounded."""
    from variant_ai.core.search.net_view import with_last_moves

    search = _searching(engine)
    game = with_last_moves(game, search.rules)
    values = search.encoder.planes(game.position)[0]
    return {
        "planes": [[round(float(v), 3) for v in plane.reshape(-1)] for plane in values],
        "ranks": values.shape[1],
        "files": values.shape[2],
        "names": list(search.encoder.plane_names),
        "flipped": game.side == 1,
    }


def layer(engine: VariantEngine, game: Game, query: Mapping[str, Any]) -> Json:
    """Return what a layer of the net computes for a position: `layers` (name and channels of each),
    `layer`, `maps`, a list of squares for each channel in the order of `planes`, and `most`, the
    greatest absolute value.

    Raises DataError if there is no such layer, or no file of a net.
    """
    from variant_ai.core.search.net_view import with_last_moves

    search = _searching(engine)
    evaluator = search.evaluators[0]
    source = Path(evaluator.info.source)
    if not source.is_file():
        raise DataError("what plays here is not the file of a net; it has no layers to show")
    game = with_last_moves(game, search.rules)
    # a run that goes on replaces its file
    net = _layer_outputs(source, source.stat().st_mtime_ns, *evaluator.planes_shape[1:])
    number = query.get("layer", 0)
    if not 0 <= number < len(net.layers):
        raise DataError(f"layer: {number}; from 0 to {len(net.layers) - 1} are accepted")
    values = net.evaluate(search.encoder.planes(game.position), number)
    return {
        "layers": [{"name": one.name, "channels": one.channels} for one in net.layers],
        "layer": number,
        "maps": [[round(float(v), 3) for v in one.reshape(-1)] for one in values[:MOST_CHANNELS]],
        "most": float(abs(values).max()),
        "ranks": values.shape[1],
        "files": values.shape[2],
    }


@lru_cache(maxsize=KEPT_ENGINES)
def _layer_outputs(source: Path, changed: int, ranks: int, files: int) -> LayerOutputs:
    from variant_ai.core.inference.layer_outputs import LayerOutputs

    return LayerOutputs(source, ranks, files)


def tree(engine: VariantEngine, game: Game, query: Mapping[str, Any]) -> Json:
    """Return `moves` below a line (`search_moves`) of the last search, the most visited first, each
    with `visits`, `prior`, `value` for its mover, `mate` in full moves, and `open`: it has moves below it.

    Raises DataError if another position was searched since.
    """
    from variant_ai.core.search.tree.game_tree import Tree

    search = engine.search
    graph = getattr(search, "tree", None)
    if not isinstance(graph, Tree):
        raise DataError("this search has no tree that can be shown")
    search.settle()
    searched = graph.game
    if searched is None or int(searched.position["key"][0]) != int(game.position["key"][0]):
        raise DataError("another position was searched since; search this one again")
    node = graph.root
    for text in query.get("search_moves", ()):
        edges = graph.edges(node)
        written = [game.rules.uci(int(move)) for move in edges.moves]
        if text not in written:
            raise DataError(f"{text!r} is not in the tree")
        node = int(edges.children[written.index(text)])
        if node == 0:
            return {"moves": []}
    if int(graph.arrays.nodes[node]["opened"]) == 0:
        return {"moves": []}
    edges = graph.edges(node)
    found: list[Json] = [
        {
            "move": game.rules.uci(int(edges.moves[edge])),
            "visits": int(edges.visits[edge]),
            "prior": round(float(edges.priors[edge]), 4),
            "value": round(float(edges.q[edge]), 4),
            "mate": full_moves(int(edges.mates[edge])),
            "open": int(edges.children[edge]) != 0,
        }
        for edge in range(len(edges.moves))
    ]
    return {"moves": sorted(found, key=lambda one: (-one["visits"], -one["prior"]))[:MOST_MOVES]}


ACTIONS: dict[str, QueryAction] = {
    "policy": policy,
    "planes": planes,
    "layer": layer,
    "tree": tree,
}
