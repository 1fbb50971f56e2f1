"""Plain tree search, written for reading and not for speed, as a reference for the compiled one.

One class, dictionaries and lists, the rules through their interface, one simulation after the other.
It shares no code with `core/search`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.search.settings import SearchParams

UNPROVEN, WON, DRAWN, LOST = range(4)


def rounded(p: float) -> float:
    """Round a probability as the search stores it: to 11 bits of mantissa."""
    bits = int(np.float32(p).view(np.uint32))
    return float(np.uint32((bits + (1 << 11)) >> 12 << 12).view(np.float32))


@dataclass
class Node:
    position: Position
    value: float = 0.0
    q: float = 0.0
    visits: int = 0
    proof: int = UNPROVEN
    distance: int = 0
    over: bool = False
    closes: bool = False
    edges: list[Edge] = field(default_factory=list)


@dataclass
class Edge:
    move: int
    prior: float
    visits: int = 0
    child: Node | None = None
    repeats: int = 0
    repeat_sum: float = 0.0

    def q(self) -> float:
        total = self.repeat_sum
        if self.child is not None:
            total -= (self.visits - self.repeats) * self.child.q
        return total / self.visits


class PlainSearch:
    """PUCT with the solver; without transpositions, batches and noise."""

    def __init__(self, game: Game, evaluator: Evaluator, params: SearchParams) -> None:
        self.rules: Rules = game.rules
        self.game = game
        self.evaluator = evaluator
        self.encoder = Encoder(game.rules.spec)
        self.params = params
        self.root = self.new_node(game.position)
        self.expand(self.root)

    def run(self, simulations: int) -> None:
        """Make the given number of visits; the evaluation of the root is the first."""
        for _ in range(simulations - 1):
            if self.root.proof:
                return
            self.simulate()

    def new_node(self, position: Position) -> Node:
        node = Node(position)
        outcome = self.rules.outcome(position)
        if outcome is not None:
            value = outcome.value(int(position["side"][0]))
            node.over = True
            node.visits = 1
            node.q = node.value = float(value)
            if self.params.solver and outcome.reason != "move count":
                node.proof = {1: WON, 0: DRAWN, -1: LOST}[value]
        return node

    def expand(self, node: Node) -> None:
        params, position = self.params, node.position
        answer = self.evaluator.evaluate(self.encoder.planes(position))
        moves = [int(m) for m in self.rules.legal_moves(position)]
        logits = [float(answer.policy[0, self.encoder.action(position, m)]) for m in moves]
        top = max(logits)
        probabilities = [math.exp((x - top) / params.node_temperature) for x in logits]
        total = sum(probabilities)
        probabilities = [x / total for x in probabilities]
        if params.enhance_checks:
            gives = [self.rules.in_check(self.rules.play(position, m)) for m in moves]
            most = max(probabilities)
            probabilities = [
                p + params.enhance_factor * most if g and p < params.enhance_threshold else p
                for p, g in zip(probabilities, gives, strict=True)
            ]
            if any(gives):
                total = sum(probabilities)
                probabilities = [p / total for p in probabilities]
        edges = [Edge(m, rounded(p)) for m, p in zip(moves, probabilities, strict=True)]
        node.edges = sorted(edges, key=lambda e: -e.prior)  # stable
        node.value = node.q = float(np.float32(answer.value[0]))
        node.visits = 1

    def simulate(self) -> None:
        node, path = self.root, []
        line = Game(self.rules, self.rules.fen(self.game.positions[0]))
        for move in self.game.moves:
            line.push(move)
        while not (node.over or (node.proof and path)):
            edge = self.select(node)
            path.append((node, edge))
            line.push(edge.move)
            value = self.repetition(line, len(self.game.positions) - 1)
            if value is not None:
                edge.repeats += 1
                edge.repeat_sum -= value
                node.closes = True
                break
            if edge.child is None:
                position = line.position.copy()
                edge.child = self.new_node(position)
                if not edge.child.over:
                    self.expand(edge.child)
                break
            node = edge.child
        for node, edge in reversed(path):
            edge.visits += 1
            self.recompute(node)

    def repetition(self, line: Game, root: int) -> int | None:
        """Value of a closed cycle for the side to move, at the second occurrence after the root."""
        key = int(line.position["key"][0])
        after = [int(p["key"][0]) for p in line.positions[root + 1 : -1]]
        if key in after:
            start = max(i for i, k in enumerate(after) if k == key) + root + 1
            again = line.moves[start:]
            for move in again * (self.rules.spec.rules.repetition.fold - 2):
                line.push(move)
        outcome = line.outcome()
        if outcome is None or "occurrence" not in outcome.detail:
            return None
        return outcome.value(line.side)

    def select(self, node: Node) -> Edge:
        params = self.params
        total = node.visits - 1
        c = math.log((total + params.cpuct_base + 1) / params.cpuct_base) + params.cpuct_init
        divisor = params.u_divisor
        if divisor == "adaptive":
            low, high = params.u_min, params.u_init
            divisor = low - math.exp(-total / params.u_base) * (low - high)
        unvisited = {
            "loss": -1.0,
            "draw": 0.0,
            "parent": max(node.q - params.q_unvisited_reduction, -1.0),
        }[params.q_unvisited]
        best, chosen = -math.inf, node.edges[0]
        for edge in node.edges:
            refuted = edge.child is not None and edge.child.proof == WON
            if refuted and edge.repeats == 0 and params.solver:
                continue
            q = edge.q() if edge.visits else unvisited
            score = q + c * math.sqrt(total) * edge.prior / (divisor + edge.visits)
            if score > best:
                best, chosen = score, edge
        return chosen

    def recompute(self, node: Node) -> None:
        total, visits = node.value, 1
        proven = []
        open_edges = node.closes
        for edge in node.edges:
            visits += edge.visits
            if edge.visits:
                total += edge.repeat_sum
            if edge.child is None:
                open_edges = True
                continue
            total -= (edge.visits - edge.repeats) * edge.child.q
            if edge.child.proof:
                proven.append(edge.child)
            else:
                open_edges = True
        node.visits = visits
        node.q = float(np.float32(total / visits))
        if not self.params.solver:
            return
        lost = [child.distance for child in proven if child.proof == LOST]
        if lost:
            node.proof, node.distance, node.q = WON, min(lost) + 1, 1.0
        elif not open_edges:
            if any(child.proof == DRAWN for child in proven):
                node.proof, node.q = DRAWN, 0.0
            else:
                longest = max(child.distance for child in proven)
                node.proof, node.distance, node.q = LOST, longest + 1, -1.0
