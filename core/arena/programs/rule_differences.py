"""Faults that show that a program plays by other rules than the spec, and what to do about them."""

from __future__ import annotations

from variant_ai.core.arena.players.player_spec import PlayerSpec
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.text_tables import counted

RULE_FAULTS = frozenset({"illegal move", "no move", "false claim"})
"""Reasons for which a program loses a game and that other rules than the spec's would explain."""


def program_variant(player: PlayerSpec, spec: VariantSpec) -> str:
    """The name by which a program is asked to play a variant."""
    return player.variant or spec.fairy or spec.variant


def advice_on_rules(name: str, asked: str, spec: VariantSpec, games: int) -> str:
    """Return a sentence about a program that broke the rules in some games, for the user.

    Programs answer for an older position when they reject a move that the spec allows, so that a legal
    game of the other side looks like an illegal move of theirs.
    """
    return (
        f"{name} broke the rules of {spec.variant} in {counted(games, 'game')}, which say nothing about its "
        f"strength: it was asked to play {asked!r}, and may know other rules by that name than the spec. "
        "Give it a file with these rules (`VariantPath`, an option of Fairy-Stockfish; the name in the file is "
        "`variant=` of a player), or play by another spec of the game (`variant-ai variants` lists them)."
    )
