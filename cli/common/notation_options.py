"""The options `--notation` and `--fen`, and notations, readers and resolvers from the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from variant_ai.cli.common.console import F

if TYPE_CHECKING:
    from variant_ai.core.data.read.game_reader import GameReader
    from variant_ai.core.data.read.resolve import Resolver
    from variant_ai.core.rules.text.notation import Notation
    from variant_ai.core.spec.schema import VariantSpec


def notation_option(default: str = "uci") -> Callable[[F], F]:
    """Add `--notation NAME`, passed to the command as `notation: str` (see `load_notation`)."""
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


def notations(spec: VariantSpec) -> dict[str, Notation]:
    """Return notations by name: those of plugins first, then those of every variant. Looking up one
    of a plugin that could not be made raises its PluginError."""
    from variant_ai.core.rules.text.notation import core_notations
    from variant_ai.plugins import registry

    table = registry().made_notations(spec)
    for notation in core_notations():
        table.setdefault(notation.name, notation)
    return table


def load_notation(spec: VariantSpec, name: str) -> Notation:
    """Return the notation of this name. Raises UnknownNameError, which lists the names."""
    from variant_ai.core.errors import UnknownNameError

    table = notations(spec)
    try:
        return table[name]
    except KeyError:
        raise UnknownNameError(f"notation of {spec.variant}", name, table) from None


def readers(spec: VariantSpec) -> dict[str, GameReader]:
    """Return readers by name in the order in which they are tried: those of plugins first."""
    from variant_ai.core.data.read.game_reader import core_readers
    from variant_ai.plugins import registry

    table = registry().made_readers(spec)
    for reader in core_readers():
        table.setdefault(reader.name, reader)
    return table


def make_resolver(spec: VariantSpec, notation: str | None = None) -> Resolver:
    """Return a resolver for games of the variant; with `notation` in that notation only."""
    from variant_ai.core.data.read.resolve import Resolver
    from variant_ai.plugins import registry

    chosen = (
        tuple(notations(spec).values()) if notation is None else (load_notation(spec, notation),)
    )
    return Resolver(registry().rules(spec), chosen)
