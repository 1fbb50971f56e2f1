"""The options `--notation` and `--fen`, and resolvers of games."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from variant_ai.cli.common.options import F

if TYPE_CHECKING:
    from variant_ai.core.data.read.resolve import Resolver
    from variant_ai.core.spec.schema import VariantSpec


def notation_option(default: str = "uci") -> Callable[[F], F]:
    """Add `--notation NAME`, passed to the command as `notation: str` (see `Registry.notation`)."""
    return click.option(
        "--notation",
        metavar="NAME",
        default=default,
        help="Notation of moves: uci, san, iccs, or one of the variant's plugin.",
    )


def fen_option(help: str = "Position to start from.") -> Callable[[F], F]:
    """Add `--fen FEN`, passed to the command as `fen: str | None`; None is the start position, which
    may also be given as `startpos`."""
    return click.option(
        "--fen",
        metavar="FEN",
        callback=_fen_or_start,
        help=f"{help} FEN, or startpos.  [default: the variant's start position]",
    )


def _fen_or_start(_ctx: click.Context, _param: click.Parameter, given: str | None) -> str | None:
    from variant_ai.core.rules.text.fen import fen_or_start

    return None if given is None else fen_or_start(given)


def make_resolver(spec: VariantSpec, notation: str | None = None) -> Resolver:
    """Return a resolver for games of the variant; with `notation` in that notation only."""
    from variant_ai.core.data.read.resolve import Resolver
    from variant_ai.plugins import registry

    found = registry()
    if notation is None:
        chosen = tuple(found.notations(spec).values())
    else:
        chosen = (found.notation(spec, notation),)
    return Resolver(found.rules(spec), chosen)
