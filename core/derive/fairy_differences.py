"""Rules for game ends in which a spec differs from the variant of Fairy-Stockfish that it names.

The conformance kit gives Fairy-Stockfish the spec's own numbers (`spec_settings`), so that a spec may
have rules of its own. It cannot notice a number that is a mistake; here the named variant is asked.
"""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool

from variant_ai.core.derive.end_probe import MAX_FOLD, NO_FOLD, no_progress, repetition
from variant_ai.core.derive.probe_board import ProbeBoard
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.testing.rules_conformance import in_child, judge


def differing_ends(spec: VariantSpec) -> list[str]:
    """Return a sentence for each rule of repetition, move count and stalemate that differs. What
    cannot be found out is left out.

    Raises SpecError if Fairy-Stockfish does not have the variant.
    """
    judge(spec, {})
    try:
        return in_child(_differing_ends, spec)
    except BrokenProcessPool:  # Fairy-Stockfish died
        return []


def _differing_ends(spec: VariantSpec) -> list[str]:
    own = judge(spec, {})
    board = ProbeBoard(own, own)
    rules, name = spec.rules, spec.fairy
    found: list[str] = []
    unknown: list[str] = []
    repeated = repetition(board, unknown)
    if repeated["fold"] == NO_FOLD:
        if rules.repetition.fold <= MAX_FOLD:
            found.append(
                f"rules.repetition.fold is {rules.repetition.fold}; Fairy-Stockfish's {name}: none up to "
                f"{MAX_FOLD}"
            )
    elif not unknown:
        for word, mine in (
            ("fold", rules.repetition.fold),
            ("otherwise", rules.repetition.otherwise),
        ):
            if repeated[word] != mine:
                found.append(
                    f"rules.repetition.{word} is {mine}; Fairy-Stockfish's {name}: {repeated[word]}"
                )
    plies = no_progress(board, {}, "", [])["plies"]
    if plies != rules.no_progress.plies:
        found.append(
            f"rules.no_progress.plies is {rules.no_progress.plies}; Fairy-Stockfish's {name}: {plies}"
        )
    if (stalemate := own.stalemate()) != rules.stalemate:
        found.append(f"rules.stalemate is {rules.stalemate}; Fairy-Stockfish's {name}: {stalemate}")
    return found
