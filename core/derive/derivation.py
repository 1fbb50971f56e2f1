"""Specs derived from Fairy-Stockfish: facts are probed, put into words, and tried.

The draft runs in the kernel if a comparison with Fairy-Stockfish finds no difference, and on
`engine: fairy` otherwise. Policy planes cover every move that is met.
"""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from variant_ai.core.derive.fairy_draft import draft_for_fairy, read_tree
from variant_ai.core.derive.spec_draft import draft
from variant_ai.core.errors import UnknownNameError, VariantAIError
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant
from variant_ai.core.rules.kernel.rule_tables import missing_words
from variant_ai.core.spec.files.fairy_ini import read_ini
from variant_ai.core.spec.files.yaml_reader import read_text
from variant_ai.core.testing.game_conformance import check_game_ends
from variant_ai.core.testing.rules_conformance import check_rules, in_child

POSITIONS = 400
"""Positions compared before a draft is written for the kernel."""
DEAD = "insufficient_material"


@dataclass
class Derivation:
    """A draft, the engine it is for, and notes on it."""

    variant: str
    tree: dict[str, Any] = field(default_factory=dict)
    """The spec, as its YAML file has it."""
    engine: str = ""
    """`kernel` or `fairy`; empty if the variant has no spec."""
    why_fairy: str = ""
    """Words that are missing in the kernel, or the first difference; empty for the kernel."""
    notes: list[str] = field(default_factory=list)
    """Sentences on what could not be found, or was not asked."""
    failure: str = ""
    """Why there is no spec, or none that trains."""


def derive(
    name: str, *, ini: Path | None = None, positions: int = POSITIONS, seed: int = 0
) -> Derivation:
    """Draft a spec for a variant that Fairy-Stockfish has built in, or that a file has.

    ini: a file in the format of Fairy-Stockfish's `variants.ini`. positions: compared in random
    games before the kernel is chosen. The work is done in a child process, since crafted positions
    may kill it.

    Raises UnknownNameError for a name that Fairy-Stockfish does not have, SpecError with the line
    of a mistake in the file.
    """
    text = None
    if ini is not None:
        text = read_text(ini, "a file of Fairy-Stockfish's variants")
        if name not in (known := read_ini(text, str(ini))):
            raise UnknownNameError(f"variant of {ini}", name, known)
    FairyVariant(name, ini=text)
    try:
        return in_child(_derive, name, text, positions, seed)
    except BrokenProcessPool:
        return Derivation(name, failure="Fairy-Stockfish's process died while it was probed")


def _derive(name: str, ini: str | None, positions: int, seed: int) -> Derivation:
    found = Derivation(name)
    try:
        tree, missing = draft(name, ini, found.notes)
    except VariantAIError as error:
        found.failure = str(error)
        return found
    found.why_fairy = "; ".join(missing) or _kernel_fails(tree, positions, seed)
    if not found.why_fairy:
        found.tree, found.engine = tree, "kernel"
        return found
    try:
        found.tree = draft_for_fairy(tree, seed, found.notes)
        found.engine = "fairy"
    except VariantAIError as error:
        found.failure = str(error)
    return found


def _kernel_fails(tree: dict[str, Any], positions: int, seed: int) -> str:
    """Return why the kernel does not play a draft as Fairy-Stockfish does; empty if it does."""
    rules = tree["rules"]
    try:
        spec = read_tree(tree)
        missing = missing_words(spec)
        if missing:
            return ", ".join(missing)
        report = check_rules(spec, positions, seed, isolated=False)
        if not report.agrees:
            return report.first_difference
        games = max(6, positions // 60)
        ends = check_game_ends(spec, games, seed, max_plies=60)
        if "insufficient material" in ends.first_difference and rules.pop(DEAD, None):
            # a variant in which some material never draws
            return check_game_ends(read_tree(tree), games, seed, max_plies=60).first_difference
        return ends.first_difference
    except VariantAIError as error:
        return str(error)
