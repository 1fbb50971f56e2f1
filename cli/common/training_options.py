"""Options of the commands that train: data, net and recipe, and the request they make."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.model_options import ModelCommand
from variant_ai.cli.common.network_options import net_size, size_options
from variant_ai.cli.common.options import FILE, load_variant, variant_option, with_options

if TYPE_CHECKING:
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.train.run.training_settings import TrainRequest

SAMPLE_NET, SAMPLE_SIZE, SAMPLE_BATCH = "alphazero-8v-map", {"blocks": 4, "channels": 48}, 128
"""For a few minutes on a CPU: plain convolutions do two or three times the operations of depthwise
ones in the same time there, and small batches give more steps."""
_add_options = with_options(
    variant_option(required=False),
    click.option(
        "--data",
        "stores",
        multiple=True,
        metavar="STORE[:WEIGHT]",
        help="Store of games to train on; may be given again. With weights, each batch has "
        "these shares of the stores (a.store:0.7 b.store:0.3). The variant's sample by default.",
    ),
    click.option(
        "--validation",
        "validation_stores",
        multiple=True,
        type=FILE,
        metavar="STORE",
        help="Store to validate on, instead of a part of --data.",
    ),
    size_options,
    click.option(
        "--wdl", is_flag=True, help="The net also predicts win, draw and loss (--size wdl=yes)."
    ),
    click.option(
        "--plies-left", is_flag=True, help="The net also predicts the plies left in the game."
    ),
)
"""Options that are no single field of `TrainRequest`."""

_MODEL = "variant_ai.core.train.run.training_settings:TrainRequest"


def training_command(
    *, epilog: str, without: Collection[str] = ()
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command with the options of data, net and recipe; it gets the parameters of
    `make_request`.

    without: fields of `TrainRequest` that are no options of the command.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        make = click.command(
            cls=ModelCommand, model=_MODEL, before="blocks", without=without, epilog=epilog
        )
        return make(_add_options(function))

    return decorate


def make_request(
    given: Mapping[str, Any],
    *,
    variant: str | None,
    stores: tuple[str, ...],
    validation_stores: tuple[Path, ...],
    blocks: int | None,
    channels: int | None,
    sizes: tuple[str, ...],
    wdl: bool,
    plies_left: bool,
    sample: Mapping[str, Any] | None = None,
) -> tuple[TrainRequest, Rules]:
    """Return the request and the rules for the options. given: fields of `TrainRequest`; sample:
    those that are set for a training on the variant's own sample games, unless given.

    Raises click.UsageError, SettingError, and the errors of loading a variant.
    """
    from variant_ai.core.system.checked_models import checked
    from variant_ai.core.train.run.initial_weights import find_start
    from variant_ai.core.train.run.training_settings import TrainRequest
    from variant_ai.plugins import registry

    if variant is None:
        raise click.UsageError("name the variant: -V NAME (`variant-ai variants` lists them)")
    spec = load_variant(variant)
    size = net_size(blocks, channels, sizes)
    size |= {head: True for head, on in (("wdl", wdl), ("plies_left", plies_left)) if on}
    paths, weights = weighted_stores(stores)
    wishes: dict[str, Any] = dict(given)
    if not paths:
        entry = registry().entry_of(spec)
        if entry is None or entry.sample is None:
            fail(f"{spec.variant} comes without games of its own; name a store with --data")
        paths = (entry.sample,)
        wishes = {**(sample or {}), **wishes}
        if not {"net", "head", "start_from"} & set(given):
            size = {**SAMPLE_SIZE, **size}
            wishes = {"net": SAMPLE_NET, "batch": SAMPLE_BATCH, **wishes}
    if "start_from" in wishes:
        wishes["start_from"] = registry().net(spec, wishes["start_from"])
        own = find_start(wishes["start_from"]).info.own_spec(spec)
        if own is not spec:
            note("The net has its own planes or policy and keeps them.")
            spec = own
    wishes |= {"spec": spec, "stores": paths, "validation_stores": validation_stores}
    request = checked(TrainRequest, {**wishes, "weights": weights, "size": size}, "train")
    return request, registry().rules(spec)


def note_sample(stores: tuple[str, ...], variant: str) -> None:
    """Print where the games come from if no option names any. To be called once the request is
    accepted, so that mistakes are reported first."""
    if not stores:
        note(f"No --data: training on the games that come with {variant}.")


def weighted_stores(texts: tuple[str, ...]) -> tuple[tuple[Path, ...], tuple[float, ...]]:
    """Parse `PATH` or `PATH:WEIGHT` of each store; either all have a weight or none has.

    Raises click.UsageError.
    """
    paths: list[Path] = []
    weights: list[float] = []
    for text in texts:
        path, colon, tail = text.rpartition(":")
        weight = _number(tail) if colon and path and not Path(text).exists() else None
        paths.append(Path(text if weight is None else path))
        if weight is None:
            continue
        if not 0 < weight < float("inf"):
            raise click.UsageError(f"--data {text}: a weight is a number above 0")
        weights.append(weight)
    if weights and len(weights) < len(paths):
        raise click.UsageError("--data: give every store a weight, or none (a.store:0.7)")
    return tuple(paths), tuple(weights)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
