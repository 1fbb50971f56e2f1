"""Judges of perpetual chases: Fairy-Stockfish, loaded at the first question, one for each rules object.

The rule itself is Fairy-Stockfish's `chasingRule`, which a spec sets by `perpetual_chase:`
(`core/rules/fairy/fairy_stockfish.py:spec_settings`).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary

from variant_ai.core.errors import VariantAIError
from variant_ai.core.rules.interface import Outcome, Rules
from variant_ai.core.spec.schema import VariantSpec


class CycleJudge(Protocol):
    """Object that can judge a perpetual chase, as `Rules.judge_cycle` does."""

    def judge_cycle(self, fen: str, moves: list[str]) -> Outcome | None: ...


class ChaseJudge:
    """Fairy-Stockfish as judge of a spec's chases.

    It cannot judge every spec: the variant that `fairy:` names may have another board. A game or a search
    must not fail because of that: one warning is given, and every chase counts as an ordinary repetition.
    """

    def __init__(self, spec: VariantSpec) -> None:
        self._spec = spec
        self._fairy: CycleJudge | None = None
        self._is_tried = False
        self._lock = threading.Lock()

    def load(self, warn: Callable[[str], object] = warnings.warn) -> bool:
        """Load Fairy-Stockfish, at the first call; return False if it cannot judge this spec, after
        one warning. Loading takes most of a second and blocks all threads."""
        with self._lock:
            if not self._is_tried:
                self._is_tried = True
                try:
                    from variant_ai.core.rules.fairy.fairy_rules import FairyRules

                    self._fairy = FairyRules(self._spec)
                except VariantAIError as error:
                    warn(f"{error}; perpetual chases count as other repetitions")
        return self._fairy is not None

    def judge_cycle(self, fen: str, moves: list[str]) -> Outcome | None:
        return self._fairy.judge_cycle(fen, moves) if self.load() and self._fairy else None


_judges: WeakKeyDictionary[Rules, ChaseJudge] = WeakKeyDictionary()


def chase_judge(rules: Rules) -> ChaseJudge:
    """Return the judge that all games and searches with these rules share."""
    return _judges.setdefault(rules, ChaseJudge(rules.spec))


def load_judge(rules: Rules) -> None:
    """Load the judge if the spec forbids chases, before a clock runs."""
    if rules.spec.rules.repetition.forbids_chases and rules.spec.fairy is not None:
        chase_judge(rules).load()
