"""Tree for rules that are not compiled: the same search, with the descent in Python.

Variants that the rules kernel does not support run on Fairy-Stockfish, at two milliseconds per query.
Graph, selection, backup and expansion are the compiled ones. Only the descent, which queries the rules,
is written in Python. It stores each node's position, because playing a path again would cost one query
per move.

When a descent reaches a move that has not been played yet, the next descents are predicted: as many as
the batch has free rows, with virtual loss for the earlier ones, and without queries. Worker processes
(`core/rules/fairy/fairy_workers.py`) then play all the new moves at the same time. A wrong prediction
costs time and changes nothing: the tree is the same with and without workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.rules.fairy.fairy_workers import Lookahead, workers_of
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules, value_of
from variant_ai.core.rules.kernel.table_layout import TABLES
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.verdicts import idle_winner, winner_of_draw
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.backup import apply_virtual_loss, back_up
from variant_ai.core.search.tree.descent import (
    COLLISION,
    DONE,
    FULL,
    LEAF,
    STUCK,
    correction,
    stops_at,
    visit_cycle,
)
from variant_ai.core.search.tree.edges import edge_arrays
from variant_ai.core.search.tree.game_tree import Tree
from variant_ai.core.search.tree.growth import finish, link
from variant_ai.core.search.tree.leaf_batch import DONE_AT_ONCE, ENOUGH, LeafBatch
from variant_ai.core.search.tree.nodes import (
    END,
    FRESH,
    IDLE,
    OPEN,
    SORTED,
    UNPROVEN,
    WAITING,
    allocate_node,
    first_move,
    open_edge,
)
from variant_ai.core.search.tree.reuse import SLICE
from variant_ai.core.search.tree.selection import NO_EDGE, select_edge
from variant_ai.core.search.tree.transpositions import READS_PLY, find, insert

MAX_PREDICTED = 256
"""Maximum number of descents predicted at once."""
MAX_AHEAD = 4096
"""Maximum number of workers' results that are kept until they are used."""


class SlowTree(Tree):
    """`Tree` for any `Rules`. Checks are neither enhanced nor searched for mates, because finding the
    checks among the moves would take longer than everything else."""

    compiled = (
        *Tree.shared,
        allocate_node,
        finish,
        open_edge,
        link,
        select_edge,
        stops_at,
        correction,
        visit_cycle,
        apply_virtual_loss,
        back_up,
    )

    memory_divisor = 8
    """A node takes 250 to 500 bytes of the graph. Its position, with the FENs and moves of Fairy-Stockfish,
    takes 1,800 to 3,200 elsewhere (growth of the process in minixiangqi, xiangqi and crazyhouse)."""

    def __init__(self, encoder: Encoder, rules: Rules, params: SearchParams) -> None:
        self._positions: dict[int, Position] = {}
        self._ahead: dict[tuple[int, int], Lookahead] = {}
        self._walks = np.zeros((MAX_PREDICTED, 2, params.max_depth + 1), np.int32)
        self._missing = 0
        self._line: list[Position] = []
        super().__init__(encoder, rules, params)
        workers = workers_of(rules)
        if workers is not None:
            workers.start()

    def _new_tables(self) -> np.ndarray:
        self.settings[0]["enhance_checks"] = 0
        self.settings[0]["look_for_mates"] = 0
        self.settings[0]["look_for_material"] = 0
        return np.zeros(1, TABLES)  # not used by the compiled functions that are called here

    def _key(self, position: Position) -> np.uint64:
        memory = self.rules.memory(position)
        return super()._key(position) ^ np.uint64(memory * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)

    def _make_root(self) -> None:
        assert self.game is not None
        self._positions.clear()
        self._ahead.clear()
        position = self.game.position
        node = self._make_node(position, self._key(position), None)
        self.arrays.state[0]["root"] = node

    def set_game(self, game: Game) -> bool:
        self._ahead.clear()  # nodes will be freed, and their numbers reused
        return super().set_game(game)

    def reclaim(self, steps: int = SLICE) -> bool:
        before = self.arrays.state[0]["phase"]
        goes_on = super().reclaim(steps)
        if before != IDLE and self.arrays.state[0]["phase"] == IDLE:
            self._drop_positions()
        return goes_on

    def _finish_sweep(self) -> None:
        super()._finish_sweep()
        self._drop_positions()

    def _drop_positions(self) -> None:
        """Forget the positions of nodes that were freed."""
        nodes, kept = self.arrays.nodes, {}
        for first in self.arrays.heads[self.arrays.heads != 0].tolist():
            node = first
            while node:
                if node in self._positions:
                    kept[node] = self._positions[node]
                node = int(nodes[node]["next"])
        self._positions = kept

    def _is_takeback(self, game: Game) -> bool:
        return False

    def after(self, position: Position, move: int, child: int) -> Position:
        known = self._positions.get(child) if child else None
        return super().after(position, move, child) if known is None else known

    def close(self) -> None:
        workers = workers_of(self.rules)
        if workers is not None:
            workers.close()

    def _make_node(self, position: Position, key: np.uint64, known: Lookahead | None) -> int:
        """Create a node like `growth.make_node` and insert it into the table."""
        moves: Sequence[int] | NDArray[np.int32]
        if known is not None:
            outcome, moves = known.outcome, known.moves
        else:
            outcome = self.rules.outcome(position)
            moves = () if outcome else self.rules.legal_moves(position)
        node = int(allocate_node(self.arrays, np.int64(len(moves))))
        if node == 0:
            return 0
        self.arrays.nodes[node]["key"] = key
        if outcome is None:
            first = int(first_move(node, len(moves)))
            self.arrays.moves[first : first + len(moves)] = moves
        else:
            winner = -1 if outcome.winner is None else outcome.winner
            side = int(position["side"][0])
            proves = outcome.reason != "move count"
            args = np.int64(winner), np.int64(side), np.bool_(proves)
            finish(self.settings, self.arrays, np.int64(node), *args)
        insert(self.arrays, np.int64(node), key)
        self._positions[node] = position
        return node

    def shorten(
        self, positions: int, allowed: Sequence[int] | None, goes_on: Callable[[], bool]
    ) -> None:
        """Do nothing: the search for shorter mates needs too many positions for these rules."""

    def fill(
        self,
        batch: LeafBatch,
        first: int,
        end: int,
        most: int,
        enough: int | None = None,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> tuple[int, int]:
        assert self.game is not None
        made, outcome = 0, ENOUGH
        size = len(batch.leaves)
        while True:
            row, collided, done = first, 0, 0
            while row < end and made < most and collided < size and done < DONE_AT_ONCE:
                if not goes_on():
                    break
                self._missing = min(end - row, most - made)
                outcome = self._descend(batch.paths, row)
                length = int(self.path_info["length"])
                if outcome == LEAF:
                    batch.positions[row] = self._line[-1][0]
                    batch.leaves[row] = self.path_info["leaf"]
                    batch.lengths[row] = length
                    if len(batch.planes):
                        planes = batch.planes[row : row + 1].reshape(1, *self.encoder.shape)
                        self.encoder.planes(self._line[-1], planes)
                    row += 1
                    made += 1
                elif outcome == COLLISION:
                    batch.paths[size + collided] = batch.paths[row]
                    batch.lengths[size + collided] = length
                    collided += 1
                elif outcome == DONE:
                    made += 1
                    done += 1
                    if self.solved:
                        break
                else:
                    break
                outcome = ENOUGH
            if outcome in (LEAF, COLLISION, DONE):
                outcome = ENOUGH
            for k in range(size, size + collided):
                apply_virtual_loss(
                    self.arrays, batch.paths, np.int64(k), batch.lengths[k], np.int64(-1)
                )
            if enough is None:
                return row, outcome
            zeros = np.zeros((row, self.encoder.actions), np.float32)
            self.complete(batch, row, np.zeros(row, np.float32), zeros, None)
            if outcome != ENOUGH or self.solved or made >= min(enough, most) or not goes_on():
                return 0, outcome

    def _descend(self, path: np.ndarray, row: int) -> int:
        """Descend like `descent.descend`; the position reached is the last one of the line."""
        assert self.game is not None
        g, s, state = self.arrays, self.settings, self.arrays.state[0]
        self._line = list(self.game.positions)
        node, depth = self.root, 0
        at = np.int64(row)

        def done(value: float, draw: float) -> int:
            back_up(g, s, path, at, np.int64(depth), value, draw, np.int64(0))
            return DONE

        while True:
            record = g.nodes[node]
            self.path_info["length"] = depth
            where = int(record["state"])
            if where in (FRESH, WAITING):
                apply_virtual_loss(g, path, at, np.int64(depth), np.int64(1))
                if where == WAITING:
                    state["collisions"] += 1
                    return COLLISION
                record["state"] = WAITING
                self.path_info["leaf"] = node
                return LEAF
            ended = where == END or (record["proof"] != UNPROVEN and depth > 0)
            if ended or depth >= self.params.max_depth:
                state["terminals"] += ended
                return done(float(record["q"]), float(record["draw"]))
            edge = self._select(node, is_root=depth == 0)
            if edge == NO_EDGE:
                if depth == 0:
                    return STUCK
                edge = 0
            if edge == record["opened"] and not open_edge(g, np.int64(node)):
                return FULL
            path[row, 0, depth], path[row, 1, depth] = node, edge
            slot = int(record["slots"]) + edge
            child = int(g.slots[slot]["child"])
            move = int(edge_arrays(g, node)[0][edge])
            position = self._positions.get(child) if child else None
            answer = None
            if position is None:
                answer = self._answer(node, move)
                position = answer.position if answer else self.rules.play(self._line[-1], move)
            self._line.append(position)
            depth += 1
            value = self._cycle_value(position)
            if value is not None:
                if not visit_cycle(g, np.int64(node), np.int64(slot), np.int64(value)):
                    return FULL
                state["terminals"] += 1
                return done(float(value), float(value == 0))
            if child == 0:
                key = self._key(position)
                child = int(find(g, key)) if s[0]["transpositions"] else 0
                known = child != 0
                state["merges"] += known
                child = child or self._make_node(position, key, answer)
                if child == 0:
                    return FULL
                link(g, np.int64(node), np.int64(edge), np.int64(child), np.bool_(known))
            if s[0]["transpositions"] and stops_at(g, s, np.int64(slot)):
                return done(float(correction(g, s, np.int64(slot))), float(g.nodes[child]["draw"]))
            node = child

    def _select(self, node: int, *, is_root: bool) -> int:
        """Select an edge; see `selection.select_edge`."""
        priors, end = self.descent.no_priors, int(self.arrays.nodes[node]["count"])
        if is_root:
            priors, end = self.descent.root_priors, int(self.path_info["root_end"])
        return int(select_edge(self.arrays, self.settings, np.int64(node), priors, np.int64(end)))

    def _answer(self, node: int, move: int) -> Lookahead | None:
        """Return the workers' result for a move that leads to no node yet; None without workers."""
        workers = workers_of(self.rules)
        if workers is None or not workers.count:
            return None
        if (node, move) not in self._ahead:
            if len(self._ahead) > MAX_AHEAD:
                self._ahead.clear()
            # a stopped search has to wait for the results, so there must not be too many
            count = min(max(self._missing, workers.count), workers.at_once, MAX_PREDICTED)
            new = [edge for edge in self._predict(count) if edge not in self._ahead]
            answers = workers.ask([(self._position_of(parent), move) for parent, move in new])
            self._ahead.update(
                (edge, answer)
                for edge, answer in zip(new, answers, strict=True)
                if answer is not None
            )
        return self._ahead.pop((node, move), None)

    def _position_of(self, node: int) -> Position:
        """Position of a node."""
        assert self.game is not None
        return self.game.position if node == self.root else self._positions[node]

    def _predict(self, count: int) -> list[tuple[int, int]]:
        """Predict the nodes and untried moves of the next descents, as far as possible without
        evaluations. The graph stays unchanged."""
        g = self.arrays
        found: dict[tuple[int, int], None] = {}
        ends: list[tuple[int, int]] = []
        untried: dict[int, int] = {}
        for walk in range(count):
            node, depth = self._walk(walk)
            apply_virtual_loss(g, self._walks, np.int64(walk), np.int64(depth), np.int64(1))
            g.nodes[node]["pending"] += 1
            ends.append((node, depth))
            nth = untried.get(node, 0)
            if g.nodes[node]["state"] != OPEN:
                continue
            moves, codes = edge_arrays(g, node)
            opened = int(g.nodes[node]["opened"])
            limit = int(self.path_info["root_end"]) if node == self.root else len(moves)
            if opened + nth >= limit:
                continue
            untried[node] = nth + 1
            if int(g.nodes[node]["flags"]) & SORTED:
                index = nth
            else:
                index = int(np.argsort(-codes[opened:].astype(np.int64), kind="stable")[nth])
            found[node, int(moves[opened + index])] = None
        for walk, (node, depth) in enumerate(ends):
            apply_virtual_loss(g, self._walks, np.int64(walk), np.int64(depth), np.int64(-1))
            g.nodes[node]["pending"] -= 1
        return list(found)

    def _walk(self, walk: int) -> tuple[int, int]:
        """Follow selection as far as there are nodes, into `_walks[walk]`. Returns the last node and
        its depth."""
        g = self.arrays
        node, depth = self.root, 0
        while depth < self.params.max_depth:
            record = g.nodes[node]
            if record["state"] != OPEN or (record["proof"] != UNPROVEN and depth > 0):
                break
            edge = self._select(node, is_root=depth == 0)
            if edge in (NO_EDGE, int(record["opened"])):
                break
            child = int(g.slots[int(record["slots"]) + edge]["child"])
            if child == 0:
                break
            self._walks[walk, 0, depth], self._walks[walk, 1, depth] = node, edge
            node, depth = child, depth + 1
        return node, depth

    def _cycle_value(self, position: Position) -> int | None:
        """Value of the cycle that the line's last position closes, for the side to move; None if there
        is no cycle, or the position itself ends the game."""
        assert self.game is not None
        rule = self.rules.spec.rules.repetition
        root, last = len(self.game.positions) - 1, len(self._line) - 1
        key = position["key"][0]
        earlier = [k for k in range(last - 2, -1, -2) if self._line[k]["key"][0] == key]
        before = [k for k in earlier if k <= root]
        border = root if int(self.settings[0]["read"]) & READS_PLY else root - 1
        first = next((k for k in earlier if k > border), None)
        if first is None:
            position["repetitions"] = min(len(before), 127)
            if len(before) + 1 < rule.fold:
                return None
            first = before[rule.fold - 2]
        if not len(self.rules.legal_moves(position)):
            return None  # the game is over, after two passes for example
        side, judge = int(position["side"][0]), idle_winner
        if rule.perpetual_check == "loss":
            checked = [self.rules.in_check(p) for p in self._line[first : last + 1]][::-1]
            opponent, mover = all(checked[::2]), all(checked[1::2])
            if opponent != mover:
                return int(opponent) - int(mover)
            judge = winner_of_draw if opponent else idle_winner
        return value_of(judge(self.rules.types, position), side)
