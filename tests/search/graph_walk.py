"""Walks over the graph of a search, for tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from variant_ai.core.search.search import Search
from variant_ai.core.search.tree.nodes import REPEATS


def children(search: Search, node: int) -> Iterator[tuple[int, int]]:
    """Moves and child nodes of a node, for edges that have a child."""
    edges = search.tree.edges(node)
    for move, child in zip(edges.moves.tolist(), edges.children.tolist(), strict=True):
        if child:
            yield move, child


def reachable(search: Search) -> list[int]:
    """Nodes that the root reaches, the root first."""
    found, todo = {search.tree.root: None}, [search.tree.root]
    while todo:
        for _, child in children(search, todo.pop()):
            if child not in found:
                found[child] = None
                todo.append(child)
    return list(found)


def equation(search: Search, node: int) -> tuple[np.float32, int]:
    """Q and visits of an open, unproven node, computed from its edges."""
    g = search.tree.arrays
    record = g.nodes[node]
    total, visits = float(record["value"]), 1
    for k in range(int(record["opened"])):
        slot = g.slots[int(record["slots"]) + k]
        n = int(slot["visits"])
        visits += n
        if slot["flags"] & REPEATS:
            entry = g.repeats[int(slot["repeat"])]
            n -= int(entry["visits"])
            total += float(entry["sum"])
        if slot["child"]:
            total -= n * float(g.nodes[int(slot["child"])]["q"])
    return np.float32(total / visits), visits


def closes(search: Search, node: int, edge: int) -> bool:
    """True if at least half of the visits of an edge closed a repetition."""
    g = search.tree.arrays
    slot = g.slots[int(g.nodes[node]["slots"]) + edge]
    if edge >= g.nodes[node]["opened"] or not slot["flags"] & REPEATS:
        return False
    return bool(2 * g.repeats[int(slot["repeat"])]["visits"] >= slot["visits"])


def signature(search: Search) -> list[tuple[int, int, float]]:
    edges = search.tree.edges(search.tree.root)
    return list(zip(edges.moves.tolist(), edges.visits.tolist(), edges.q.tolist(), strict=True))
