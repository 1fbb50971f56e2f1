"""Perpetual chases in the search: Fairy-Stockfish judges each cycle once, and the verdict is stored.

Compiled code can detect checks but not chases. A descent that closes a cycle without a verdict ends with
NEEDS_JUDGE, if the cycle matters (`verdict_on_cycle` in `descent.py`: from the root, or often); the verdict is
stored here, and the next descent finds it.
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.rules.chase_judge import chase_judge
from variant_ai.core.rules.interface import Rules, value_of
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.rules.verdicts import idle_winner
from variant_ai.core.search.tree.edges import edge_arrays
from variant_ai.core.search.tree.nodes import REPEATS, Arrays
from variant_ai.core.search.tree.repetition import cycle_key, new_verdicts, verdict_index
from variant_ai.core.search.tree.working_memory import Descent


class Chases:
    """Verdicts on the cycles in a tree."""

    compiled = (cycle_key, verdict_index)

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.verdicts = new_verdicts()
        """Table that descents read, by `cycle_key`."""

    def forget(self) -> None:
        """Remove all verdicts."""
        self.verdicts[:] = new_verdicts()

    def judge(self, descent: Descent, g: Arrays, paths: np.ndarray, moves: list[int]) -> None:
        """Judge the cycle that a descent has closed, and store the verdict, also in the edge that
        closes the cycle. `moves` lead to the root; the path is the descent's row of `paths`."""
        info = descent.path_info[0]
        first, last, row = int(info["cycle"]), int(info["cycle_end"]), int(info["row"])
        for depth in range(int(info["length"]) + 1):
            node, edge = paths[row, :, depth].tolist()
            moves.append(int(edge_arrays(g, node)[0][edge]))
        spec, types = self.rules.spec, self.rules.types
        cycle = [uci(types, spec.board.files, move) for move in moves[first:last]]
        if first >= int(info["root_at"]):  # the second occurrence: repeat it to the fold
            cycle *= spec.rules.repetition.fold - 1
        fen = self.rules.fen(descent.line[first : first + 1].copy())
        verdict = chase_judge(self.rules).judge_cycle(fen, cycle)
        side = int(descent.line[last]["side"])
        winner = idle_winner(types, descent.line[last : last + 1])
        if verdict is not None and verdict.reason == "perpetual chase":
            winner = verdict.winner
        value = value_of(winner, side)
        slot = g.slots[int(g.nodes[node]["slots"]) + edge]
        if int(slot["flags"]) & REPEATS:
            g.repeats[int(slot["repeat"])]["verdict"] = value
        self._keep(np.uint64(cycle_key(descent.line, np.int64(first), np.int64(last))), value)

    def _keep(self, key: np.uint64, value: int) -> None:
        if 2 * np.count_nonzero(self.verdicts["used"]) >= len(self.verdicts):
            self.forget()
        index = int(verdict_index(self.verdicts, key))
        self.verdicts[index]["key"] = key
        self.verdicts[index]["used"] = 1
        self.verdicts[index]["value"] = value
