"""The edges of a node as arrays, for everything that is not compiled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.search.tree.nodes import (
    DRAWN,
    LOST,
    OPEN,
    REPEATS,
    SORTED,
    UNPROVEN,
    WON,
    Arrays,
    first_move,
    first_prior,
)
from variant_ai.core.search.tree.priors import decode_priors


@dataclass(frozen=True)
class Edges:
    """The edges of a node, best prior first. Arrays of shape (n,)."""

    moves: NDArray[np.int32]
    priors: NDArray[np.float64]
    visits: NDArray[np.int64]
    q: NDArray[np.float64]
    """For the side that moves; 0 without visits."""
    draws: NDArray[np.float64]
    mates: NDArray[np.int64]
    """Plies to the end of a proven game: positive won, negative lost for the side that moves."""
    drawn: NDArray[np.bool_]
    """Proven draws."""
    children: NDArray[np.int32]
    """Nodes, 0 none."""
    closes: NDArray[np.bool_]
    """Edges most of whose visits closed a repetition."""


def edge_arrays(g: Arrays, node: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
    """Moves and prior codes of a node, both [n], in place."""
    n = int(g.nodes[node]["count"])
    move, prior = int(first_move(node, n)), int(first_prior(node))
    return g.moves[move : move + n], g.priors[prior : prior + n]


def edges_of(g: Arrays, node: int, root_priors: NDArray[np.float32]) -> Edges:
    """The edges of a node. `root_priors` [n] take the place of its own priors; empty for none."""
    record = g.nodes[node]
    n, opened = int(record["count"]), int(record["opened"])
    moves, codes = edge_arrays(g, node)
    if record["state"] == OPEN and not int(record["flags"]) & SORTED:
        untried = opened + np.argsort(-codes[opened:].astype(np.int64), kind="stable")
        order = np.concatenate([np.arange(opened), untried])
        moves, codes = moves[order], codes[order]
    slot = int(record["slots"])
    slots = g.slots[slot : slot + opened]
    visits = np.zeros(n, np.int64)
    visits[:opened] = slots["visits"]
    children = np.zeros(n, np.int32)
    children[:opened] = slots["child"]
    there = g.nodes[children]
    known = children > 0
    proof = np.where(known, there["proof"], UNPROVEN)
    q = np.where(known, -there["q"].astype(np.float64), 0.0)
    draws = np.where(known, there["draw"].astype(np.float64), 0.0)
    repeats = np.zeros(n, np.int32)
    repeats[:opened] = np.where(slots["flags"] & REPEATS, slots["repeat"], 0)
    closes = np.zeros(n, bool)
    for e in np.flatnonzero(repeats).tolist():
        entry = g.repeats[int(repeats[e])]
        times = int(entry["visits"])
        if visits[e]:
            q[e] = ((visits[e] - times) * q[e] + float(entry["sum"])) / visits[e]
            draws[e] = ((visits[e] - times) * draws[e] + float(entry["draws"])) / visits[e]
        closes[e] = 2 * times >= visits[e]
        proof[e] = UNPROVEN
    if len(g.edge_values) > 1:
        exact = proof != UNPROVEN
        q[:opened] = np.where(exact[:opened], q[:opened], g.edge_values[slot : slot + opened])
    q = np.where((visits > 0) | (proof != UNPROVEN), q, 0.0)
    plies = there["distance"].astype(np.int64) + 1
    mates = np.where(proof == LOST, plies, np.where(proof == WON, -plies, 0))
    if record["state"] != OPEN:  # not evaluated yet
        priors = np.full(n, 1.0 / max(n, 1), np.float32)
    elif len(root_priors) == n:
        priors = root_priors
    else:
        priors = decode_priors(codes)
    return Edges(
        moves=moves.copy(),
        priors=np.maximum(priors.astype(np.float64), 0.0),
        visits=visits,
        q=q,
        draws=draws,
        mates=mates,
        drawn=proof == DRAWN,
        children=children,
        closes=closes,
    )
