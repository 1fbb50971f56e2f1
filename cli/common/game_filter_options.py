"""Options that select games, for every command that reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from variant_ai.core.data.filters import GameFilter

F = TypeVar("F", bound=Callable[..., Any])


def _number(flag: str, help: str) -> Callable[[F], F]:
    return click.option(flag, type=click.IntRange(min=0), metavar="N", help=help)


def _repeated(flag: str, name: str, metavar: str, help: str) -> Callable[[F], F]:
    return click.option(flag, name, multiple=True, metavar=metavar, help=help)


_OPTIONS = (
    _number("--min-rating", "Both players rated at least N; games without ratings are dropped."),
    _number("--max-rating", "Both players rated at most N; games without ratings are dropped."),
    _number("--min-plies", "At least N plies (half moves)."),
    _number("--max-plies", "At most N plies."),
    click.option("--since", metavar="DATE", help="Earliest date: 2016, 2016.01 or 2016.01.15."),
    click.option("--until", metavar="DATE", help="Latest date; 2018 includes all of 2018."),
    click.option("--known-result", is_flag=True, help="Drop games without a result (`*`)."),
    _repeated(
        "--result", "results", "RESULT", "Keep only this result: 1-0, 0-1, 1/2-1/2, *. Repeatable."
    ),
    _repeated(
        "--ending",
        "endings",
        "KIND",
        "Keep only games with this ending: checkmate, resignation, time, draw, stalemate, "
        "disconnection, rules, adjudication, normal, aborted, unfinished, other, unknown. "
        "Repeatable.",
    ),
    _repeated("--no-ending", "not_endings", "KIND", "Drop games with this ending. Repeatable."),
    _repeated(
        "--player",
        "players",
        "NAME",
        "Keep only games of this player (`*` and `?` as in file names). Repeatable.",
    ),
    _repeated("--no-player", "not_players", "NAME", "Drop games of this player. Repeatable."),
    _repeated("--event", "events", "NAME", "Keep only games of this event (`*`, `?`). Repeatable."),
    _repeated(
        "--source", "sources", "NAME", "Keep only games of this source (`*`, `?`). Repeatable."
    ),
    click.option(
        "--standard-start", is_flag=True, help="Drop games that begin at another position."
    ),
)


def filter_options(command: F) -> F:
    """Add all conditions of `core.data.filters.GameFilter` as options.

    Use: `def command(..., **options)`, then `game_filter(options)`.
    """
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def game_filter(options: dict[str, Any]) -> GameFilter:
    """Return the filter of the options, which are removed from `options`."""
    from dataclasses import fields

    from variant_ai.core.data.filters import GameFilter

    names = [item.name for item in fields(GameFilter)]
    return GameFilter(**{name: options.pop(name) for name in names if name in options})
