"""Options that select games, for every command that reads them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.options import with_options

if TYPE_CHECKING:
    from variant_ai.core.data.filters import GameFilter

_number = partial(click.option, type=click.IntRange(min=0), metavar="N")
_repeated = partial(click.option, multiple=True)

filter_options = with_options(
    _number(
        "--min-rating", help="Both players rated at least N; games without ratings are dropped."
    ),
    _number(
        "--max-rating", help="Both players rated at most N; games without ratings are dropped."
    ),
    _number("--min-plies", help="At least N plies (half moves)."),
    _number("--max-plies", help="At most N plies."),
    click.option("--since", metavar="DATE", help="Earliest date: 2016, 2016.01 or 2016.01.15."),
    click.option("--until", metavar="DATE", help="Latest date; 2018 includes all of 2018."),
    click.option("--known-result", is_flag=True, help="Drop games without a result (`*`)."),
    _repeated(
        "--result",
        "results",
        metavar="RESULT",
        help="Keep only this result: 1-0, 0-1, 1/2-1/2, *. Repeatable.",
    ),
    _repeated(
        "--ending",
        "endings",
        metavar="KIND",
        help="Keep only games with this ending: checkmate, resignation, time, draw, stalemate, "
        "variant, disconnection, rules, adjudication, normal, aborted, unfinished, other, unknown. "
        "Repeatable.",
    ),
    _repeated(
        "--no-ending",
        "not_endings",
        metavar="KIND",
        help="Drop games with this ending. Repeatable.",
    ),
    _repeated(
        "--player",
        "players",
        metavar="NAME",
        help="Keep only games of this player (`*` and `?` as in file names). Repeatable.",
    ),
    _repeated(
        "--no-player", "not_players", metavar="NAME", help="Drop games of this player. Repeatable."
    ),
    _repeated(
        "--event",
        "events",
        metavar="NAME",
        help="Keep only games of this event (`*`, `?`). Repeatable.",
    ),
    _repeated(
        "--source",
        "sources",
        metavar="NAME",
        help="Keep only games of this source (`*`, `?`). Repeatable.",
    ),
    click.option(
        "--standard-start", is_flag=True, help="Drop games that begin at another position."
    ),
)
"""All conditions of `core.data.filters.GameFilter` as options.

Use: `def command(..., **options)`, then `game_filter(options)`."""


def game_filter(options: dict[str, Any]) -> GameFilter:
    """Return the filter of the options, which are removed from `options`."""
    from dataclasses import fields

    from variant_ai.core.data.filters import GameFilter

    names = [item.name for item in fields(GameFilter)]
    return GameFilter(**{name: options.pop(name) for name in names if name in options})
