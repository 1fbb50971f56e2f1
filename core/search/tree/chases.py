"""Perpetual chases inside the search: Fairy-Stockfish judges a cycle once, and the verdict is kept.

Compiled code knows checks and no chases. A descent that closes a cycle which nobody has judged stops
with ASK; the verdict is entered here, and the next descent finds it.
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.rules.fairy.fairy_rules import FairyRules
from variant_ai.core.rules.game import CycleJudge
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.rules.verdicts import idle_winner
from variant_ai.core.search.tree.descent import Trail
from variant_ai.core.search.tree.edges import edge_arrays
from variant_ai.core.search.tree.nodes import REPEATS, Arrays
from variant_ai.core.search.tree.repetition import cycle_key, judged_place, new_judged


class Chases:
    """Verdicts on the cycles that a tree's descents met."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.judged = new_judged()
        """What descents read, by `cycle_key`."""
        self._judge: CycleJudge | None = None

    def warm_up(self, trail: Trail) -> None:
        """Load or compile what a verdict needs, short of Fairy-Stockfish."""
        cycle_key(trail.line, np.int64(0), np.int64(0))
        judged_place(self.judged, np.uint64(0))

    def forget(self) -> None:
        self.judged[:] = new_judged()

    def ask(self, trail: Trail, g: Arrays, paths: np.ndarray, moves: list[int]) -> None:
        """Have the chase of the cycle that a descent met judged. `moves` lead to the root, the path
        is the trail's row of `paths`; the edge that closes the cycle gets the verdict too."""
        trip = trail.trip[0]
        first, last, row = int(trip["cycle"]), int(trip["cycle_end"]), int(trip["row"])
        for depth in range(int(trip["length"]) + 1):
            node, edge = paths[row, :, depth].tolist()
            moves.append(int(edge_arrays(g, node)[0][edge]))
        spec, types = self.rules.spec, self.rules.types
        cycle = [uci(types, spec.board.files, move) for move in moves[first:last]]
        if first >= int(trip["root_at"]):  # the second occurrence: it goes round to the full fold
            cycle *= spec.rules.repetition.fold - 1
        if self._judge is None:
            self._judge = FairyRules(spec)
        fen = self.rules.fen(trail.line[first : first + 1].copy())
        verdict = self._judge.judge_cycle(fen, cycle)
        side = int(trail.line[last]["side"])
        winner = idle_winner(spec, side)
        if verdict is not None and verdict.reason == "perpetual chase":
            winner = verdict.winner
        value = 0 if winner is None else (1 if winner == side else -1)
        slot = g.slots[int(g.nodes[node]["slots"]) + edge]
        if int(slot["flags"]) & REPEATS:
            g.repeats[int(slot["repeat"])]["verdict"] = value
        self._keep(np.uint64(cycle_key(trail.line, np.int64(first), np.int64(last))), value)

    def _keep(self, key: np.uint64, value: int) -> None:
        if 2 * np.count_nonzero(self.judged["used"]) >= len(self.judged):
            self.forget()
        place = int(judged_place(self.judged, key))
        self.judged[place]["key"] = key
        self.judged[place]["used"] = 1
        self.judged[place]["value"] = value
