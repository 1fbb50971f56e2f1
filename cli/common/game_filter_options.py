"""The options that choose games, shared by every command that reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from variant_ai.core.data.filters import GameFilter

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--min-rating",
        {"type": int, "metavar": "N", "help": "Both players rated at least N (missing: dropped)."},
    ),
    ("--max-rating", {"type": int, "metavar": "N", "help": "Both players rated at most N."}),
    ("--min-plies", {"type": int, "metavar": "N", "help": "At least N plies (half moves)."}),
    ("--max-plies", {"type": int, "metavar": "N", "help": "At most N plies."}),
    (
        "--since",
        {"metavar": "DATE", "help": "Played in or after 2016, 2016.01 or 2016.01.15."},
    ),
    ("--until", {"metavar": "DATE", "help": "Played in or before; 2018 takes all of 2018."}),
    ("--known-result", {"is_flag": True, "help": "Drop games without a result (`*`)."}),
    (
        "--result",
        {
            "results": True,
            "metavar": "RESULT",
            "help": "Keep this result only: 1-0, 0-1, 1/2-1/2, *. May be repeated.",
        },
    ),
    (
        "--ending",
        {
            "endings": True,
            "metavar": "KIND",
            "help": "Keep games that ended so only: checkmate, resignation, time, draw, "
            "stalemate, disconnection, rules, adjudication, normal, aborted, unfinished, other, "
            "unknown. May be repeated.",
        },
    ),
    (
        "--no-ending",
        {"not_endings": True, "metavar": "KIND", "help": "Drop games that ended so."},
    ),
    (
        "--player",
        {
            "players": True,
            "metavar": "NAME",
            "help": "Either player is NAME (`*` and `?` as in file names). May be repeated.",
        },
    ),
    (
        "--no-player",
        {"not_players": True, "metavar": "NAME", "help": "Drop games of this player."},
    ),
    ("--event", {"events": True, "metavar": "NAME", "help": "The event is NAME, likewise."}),
    ("--source", {"sources": True, "metavar": "NAME", "help": "The source is NAME, likewise."}),
    (
        "--standard-start",
        {"is_flag": True, "help": "Drop games that begin at another position."},
    ),
)
_REPEATED = ("results", "endings", "not_endings", "players", "not_players", "events", "sources")
FILTER_NAMES = (
    "min_rating",
    "max_rating",
    "min_plies",
    "max_plies",
    "since",
    "until",
    "known_result",
    *_REPEATED,
    "standard_start",
)
"""Parameters that `filter_options` adds; `game_filter` takes them."""


def filter_options(command: F) -> F:
    """All conditions of `core.data.filters.GameFilter` as options, given as keyword arguments.

    Use: `def command(..., **options)`, then `game_filter(options)`.
    """
    for flag, settings in reversed(_OPTIONS):
        kwargs = dict(settings)
        names = [flag]
        for repeated in _REPEATED:
            if kwargs.pop(repeated, False):
                names.append(repeated)
                kwargs["multiple"] = True
        command = click.option(*names, **kwargs)(command)
    return command


def game_filter(options: dict[str, Any], **defaults: Any) -> GameFilter:
    """The filter that the options say; removes them from `options`.

    `defaults` (such as `not_endings=("aborted",)`) hold where the option was not given.
    """
    from variant_ai.core.data.filters import GameFilter

    chosen = {name: options.pop(name) for name in FILTER_NAMES if name in options}
    for name, value in defaults.items():
        if not chosen.get(name):
            chosen[name] = value
    return GameFilter(**chosen)
