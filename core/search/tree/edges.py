"""Edges of a node as NumPy arrays, and the root's edges before a search (noise, allowed moves)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.nodes import (
    LOST,
    OPEN,
    REPEATS,
    SORTED,
    UNPROVEN,
    WON,
    Arrays,
    bytes_used,
    first_move,
    first_prior,
)
from variant_ai.core.search.tree.priors import decode_priors


@dataclass(frozen=True)
class Edges:
    """Edges of a node: the tried ones first, then the untried ones by prior. Arrays of shape (n,)."""

    moves: NDArray[np.int32]
    priors: NDArray[np.float64]
    visits: NDArray[np.int64]
    q: NDArray[np.float64]
    """Value for the side that makes the move; 0 without visits."""
    draws: NDArray[np.float64]
    """Probability of a draw."""
    mates: NDArray[np.int64]
    """Plies to the end of a proven game: positive if the side that makes the move wins, negative if it
    loses, 0 if nothing is proven."""
    children: NDArray[np.int32]
    """Nodes; 0: none."""

    def take(self, kept: NDArray[np.integer]) -> Edges:
        """Return the edges with these numbers."""
        return Edges(**{name: array[kept] for name, array in vars(self).items()})


def among(moves: NDArray[np.int32], allowed: Sequence[int] | None) -> NDArray[np.bool_]:
    """Mark the moves that are allowed, bool (n,). None: all are."""
    if allowed is None:
        return np.ones(len(moves), bool)
    return np.isin(moves, np.array(allowed, np.int32))


class ReadableTree(ABC):
    """Searched graph, as reports read it."""

    arrays: Arrays
    game: Game | None
    rules: Rules
    memory: int
    """Most bytes that the graph may use."""

    @property
    def root(self) -> int:
        """Node of the game's last position; 0: none."""
        return int(self.arrays.state[0]["root"])

    @abstractmethod
    def edges(self, node: int) -> Edges:
        """Return the edges of a node."""

    def after(self, position: Position, move: int, child: int) -> Position:
        """Position after a move that leads to the node `child`; 0: no node."""
        return self.rules.play(position, move)

    def counter(self, name: str) -> int:
        """Return a counter of the present search, such as visits, evaluations or collisions."""
        return int(self.arrays.state[0][name])

    @property
    def hashfull(self) -> int:
        """Share of the memory in use, per mille."""
        return min(1000, bytes_used(self.arrays) * 1000 // self.memory)


def edge_arrays(g: Arrays, node: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
    """Return views of a node's moves and encoded priors, both [n]."""
    n = int(g.nodes[node]["count"])
    move, prior = int(first_move(node, n)), int(first_prior(node))
    return g.moves[move : move + n], g.priors[prior : prior + n]


def edges_of(g: Arrays, node: int, root_priors: NDArray[np.float32]) -> Edges:
    """Return the edges of a node. `root_priors` [n] replace its own priors; empty: they do not."""
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
    nodes = g.nodes[children]
    known = children > 0
    proof = np.where(known, nodes["proof"], UNPROVEN)
    q = np.where(known, -nodes["q"].astype(np.float64), 0.0)
    draws = np.where(known, nodes["draw"].astype(np.float64), 0.0)
    repeats = np.zeros(n, np.int32)
    repeats[:opened] = np.where(slots["flags"] & REPEATS, slots["repeat"], 0)
    for e in np.flatnonzero(repeats).tolist():
        entry = g.repeats[int(repeats[e])]
        times = int(entry["visits"])
        if visits[e]:
            q[e] = ((visits[e] - times) * q[e] + float(entry["sum"])) / visits[e]
            draws[e] = ((visits[e] - times) * draws[e] + float(entry["draws"])) / visits[e]
        proof[e] = UNPROVEN
    if len(g.edge_values) > 1:
        exact = proof != UNPROVEN
        q[:opened] = np.where(exact[:opened], q[:opened], g.edge_values[slot : slot + opened])
    q = np.where((visits > 0) | (proof != UNPROVEN), q, 0.0)
    plies = nodes["distance"].astype(np.int64) + 1
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
        children=children,
    )


_NOTHING = np.zeros(0, np.float32)


def moves_to_search(game: Game) -> list[int] | None:
    """Return the moves to search by default: without those that lose at once by repetition, unless
    all do. None: all moves.

    A short search could otherwise give most visits to a lost move with a high prior.
    """
    lost = game.lost_at_once()
    kept = [int(move) for move in game.legal_moves() if move not in lost]
    return kept if lost and kept else None


def prepare_root_edges(
    g: Arrays,
    root: int,
    params: SearchParams,
    allowed: Sequence[int] | None,
    rng: np.random.Generator,
) -> tuple[int, NDArray[np.float32]]:
    """Sort the untried edges of an evaluated root, with Dirichlet noise, before a search.

    allowed: moves that may be searched; None: all. Other edges come last.

    Returns the number of edges that may be selected, which come first, and the priors that replace
    the node's own in `select_edge`: an empty array if there is neither noise nor an excluded move.
    """
    record = g.nodes[root]
    n, opened = int(record["count"]), int(record["opened"])
    moves, codes = edge_arrays(g, root)
    record["flags"] = int(record["flags"]) | SORTED
    order = opened + np.argsort(-codes[opened:].astype(np.int64), kind="stable")
    moves[opened:], codes[opened:] = moves[order].copy(), codes[order].copy()
    priors = decode_priors(codes).astype(np.float64)
    use = among(moves, allowed)
    if params.noise_epsilon == 0 and use.all():
        return n, _NOTHING
    if params.noise_epsilon > 0:
        count = int(use.sum())
        noise = np.full(count, 1.0 / count)
        if params.noise_style == "dirichlet":
            noise = rng.dirichlet(np.full(count, params.noise_alpha))
        priors[use] = (1.0 - params.noise_epsilon) * priors[use] + params.noise_epsilon * noise
    priors[~use] = -1.0
    order = opened + np.argsort(-priors[opened:], kind="stable")
    moves[opened:], codes[opened:] = moves[order].copy(), codes[order].copy()
    priors[opened:] = priors[order]
    return opened + int((priors[opened:] >= 0).sum()), priors.astype(np.float32)
