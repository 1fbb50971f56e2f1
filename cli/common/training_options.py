"""Options of the commands that train or use nets: device, sizes of a net, data and recipe, and the request
that they make; and waiting threads that sleep.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.model_options import ModelCommand
from variant_ai.cli.common.options import COUNT, FILE, load_variant, variant_option, with_options

if TYPE_CHECKING:
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.train.run.training_settings import TrainRequest

size_options = with_options(
    click.option("--blocks", type=COUNT, help="Blocks of the net's tower."),
    click.option("--channels", type=COUNT, help="Channels of the net's tower."),
    click.option(
        "--size",
        "sizes",
        multiple=True,
        metavar="NAME=VALUE",
        help="Another option of the net, e.g. value_channels=4 (`variant-ai nets NAME`).",
    ),
)
"""`--blocks`, `--channels`, `--size NAME=VALUE`; read them with `net_size`."""
device_option = click.option(
    "--device",
    default="auto",
    metavar="auto|cpu|cuda",
    help="Device for computing; auto uses a GPU if there is one.",
)
"""`--device auto|cpu|cuda|cuda:N`, passed to the command as `device: str`."""
SAMPLE_NET, SAMPLE_SIZE, SAMPLE_BATCH = "alphazero-8v-map", {"blocks": 4, "channels": 48}, 128
"""For a few minutes on a CPU: plain convolutions do two or three times the operations of depthwise
ones in the same time there, and small batches give more steps."""
_MODEL = "variant_ai.core.train.run.training_settings:TrainRequest"
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


def net_size(blocks: int | None, channels: int | None, sizes: tuple[str, ...]) -> dict[str, Any]:
    """Return the given options, with values parsed as numbers or words. Raises click.UsageError."""
    from variant_ai.cli.common.search_options import name_values

    named = {"blocks": blocks, "channels": channels}
    size: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    return size | {name: _value(text) for name, text in name_values(sizes, "--size").items()}


def _value(text: str) -> int | bool | str | None:
    if text.lower() in ("none", "null"):
        return None
    if text.lower() in ("true", "yes", "false", "no"):
        return text.lower() in ("true", "yes")
    try:
        return int(text)
    except ValueError:
        return text


def let_threads_sleep() -> None:
    """Let torch's threads sleep while they wait. Call it before torch is imported.

    By default they spin, which is slow if other programs use the cores too: with a load of eight on
    two cores a training step took more than six seconds with spinning threads, three with sleeping
    ones.
    """
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


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
