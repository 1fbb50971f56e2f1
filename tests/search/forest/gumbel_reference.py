"""Gumbel AlphaZero ([Gumbel]) in plain numpy, written for reading, as a reference for the compiled search.

One tree, one simulation after the other, no rules of a game: a `World` says what a move leads to. It is
written from the paper and shares no code with `core/search`. Values are for the player to move, in
[-1, 1]; sigma is applied to q in [0, 1], so c_scale here is twice the `value_scale` that the package
mctx has for values in [-1, 1].
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class World(Protocol):
    """A game of two players, and the net that judges it. States are values that can be compared."""

    def evaluate(self, state: Hashable) -> tuple[Vector, float]:
        """Return logits of the legal moves, float64 [A], and the value for the player to move."""

    def play(self, state: Hashable, move: int) -> tuple[Hashable, float | None]:
        """Return the state after a move, and its value for the player who is then to move if the game
        is over there."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """Settings of a search."""

    simulations: int
    considered: int
    """Greatest number of root moves compared, m."""
    c_visit: float = 50.0
    c_scale: float = 1.0
    rescale: bool = False
    """Rescale the completed q of a node to [0, 1] before sigma."""


class Found(NamedTuple):
    """Result of a search; arrays are indexed by move, [A]."""

    visits: NDArray[np.int64]
    weights: Vector
    """The improved policy, a training target; the sum is 1."""
    move: int
    value: float
    """Value of the improved policy, for the player to move: the sum of its weights times the completed
    q."""
    margin: float
    """Least difference between the best and the second best score of any choice of the search: if
    it is small, rounding may decide the choice."""


@dataclass
class Node:
    state: Hashable
    logits: Vector
    value: float
    """Value of the net, or of the end of the game."""
    over: bool = False
    visits: NDArray[np.int64] = field(init=False)
    sums: Vector = field(init=False)
    """Sum of the values of each move's visits, for the player who makes it."""
    children: dict[int, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.visits = np.zeros(len(self.logits), np.int64)
        self.sums = np.zeros(len(self.logits))


def softmax(x: Vector) -> Vector:
    e = np.exp(x - x.max())
    return np.asarray(e / e.sum())


def completed_q(node: Node, rescale: bool) -> Vector:
    """q of all moves in [0, 1]; moves without visits get v_mix ([Gumbel] eq. 10 and appendix D)."""
    seen = node.visits > 0
    q = np.zeros(len(node.logits))
    q[seen] = (node.sums[seen] / node.visits[seen] + 1.0) / 2.0
    mix = (node.value + 1.0) / 2.0
    if seen.any():
        priors = softmax(node.logits)[seen]
        total = node.visits.sum()
        mix = (mix + total * (priors @ q[seen]) / priors.sum()) / (1 + total)
    q[~seen] = mix
    if rescale:
        q = (q - q.min()) / max(q.max() - q.min(), 1e-8)
    return q


def sigma(node: Node, search: Search) -> Vector:
    """sigma of the completed q of all moves ([Gumbel] eq. 8)."""
    scale = (search.c_visit + node.visits.max()) * search.c_scale
    return np.asarray(scale * completed_q(node, search.rescale))


def halving(moves: int, simulations: int) -> list[int]:
    """Number of visits that the move of each simulation has before it ([Gumbel] algorithm 2).

    Rounds, each of which gives all the moves left the same number of visits in turn.
    """
    if moves == 1:
        return list(range(simulations))
    rounds = math.ceil(math.log2(moves))
    wanted: list[int] = []
    left, held = moves, 0
    while len(wanted) < simulations:
        turns = max(1, math.floor(simulations / (rounds * left)))
        wanted += [held + turn for turn in range(turns) for _ in range(left)]
        held += turns
        left = max(2, left // 2)
    return wanted[:simulations]


class GumbelTree:
    """A search of one state."""

    def __init__(self, world: World, state: Hashable, search: Search, noise: Vector) -> None:
        """noise: a Gumbel(0) sample for each legal move, [A]."""
        self.world = world
        self.search = search
        self.noise = noise
        self.margin = math.inf
        self.root = Node(state, *world.evaluate(state))

    def run(self) -> Found:
        root = self.root
        legal = len(root.logits)
        compared = min(self.search.considered, legal)
        for wanted in halving(compared, self.search.simulations):
            self.simulate(self.best(self.root_scores(), root.visits == wanted))
        move = self.best(self.root_scores(), root.visits == root.visits.max())
        weights = softmax(root.logits + sigma(root, self.search))
        value = 2.0 * (weights @ completed_q(root, rescale=False)) - 1.0
        return Found(root.visits, weights, move, float(value), self.margin)

    def root_scores(self) -> Vector:
        """g + logits + sigma(q): the same values for all moves without visits, so the first moves
        tried are the greatest g + logits ([Gumbel] section 3.2)."""
        return np.asarray(self.noise + self.root.logits + sigma(self.root, self.search))

    def inner_move(self, node: Node) -> int:
        """argmax of pi'(a) - N(a) / (1 + sum N) ([Gumbel] eq. 14)."""
        improved = softmax(node.logits + sigma(node, self.search))
        share = node.visits / (1 + node.visits.sum())
        return self.best(improved - share, np.ones(len(share), np.bool_))

    def best(self, scores: Vector, allowed: NDArray[np.bool_]) -> int:
        order = np.argsort(-np.where(allowed, scores, -np.inf), kind="stable")
        if allowed.sum() > 1:
            self.margin = min(self.margin, float(scores[order[0]] - scores[order[1]]))
        return int(order[0])

    def simulate(self, move: int) -> None:
        path: list[tuple[Node, int]] = []
        node = self.root
        while True:
            path.append((node, move))
            if move not in node.children:
                state, end = self.world.play(node.state, move)
                child = (
                    Node(state, np.zeros(0), end, over=True)
                    if end is not None
                    else Node(state, *self.world.evaluate(state))
                )
                node.children[move] = child
                break
            child = node.children[move]
            if child.over:
                break
            node = child
            move = self.inner_move(node)
        value = child.value
        for parent, tried in reversed(path):
            value = -value
            parent.visits[tried] += 1
            parent.sums[tried] += value
