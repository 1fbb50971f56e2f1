"""The plugin: commands that repeat what the papers did."""

from __future__ import annotations

from collections.abc import Iterable

from variant_ai.plugins import CommandEntry, hookimpl

variant_ai_api = 1

_COMMANDS = {
    "experiment": ("experiment", "Repeat an experiment of the papers with a net of your own."),
    "lr-find": ("lr_find", "Find the largest useful learning rate."),
    "show": ("show", "Draw the input planes, activations and policy of a net for a position."),
    "solve": ("solve", "Let an engine or a net solve puzzles."),
}


@hookimpl
def register_commands() -> Iterable[CommandEntry]:
    """One entry per command."""
    return [
        CommandEntry(name, f"variant_ai_experiments.{module}:command", summary)
        for name, (module, summary) in _COMMANDS.items()
    ]
