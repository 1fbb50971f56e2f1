"""Options of the commands that train: data, net and recipe, and the request they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from variant_ai.cli.common.console import (
    FiniteRange,
    fail,
    load_variant,
    note,
    seed_option,
    variant_option,
)
from variant_ai.cli.common.network_options import device_option, net_size, size_options

if TYPE_CHECKING:
    from variant_ai.core.train.run.plan import TrainRequest

F = TypeVar("F", bound=Callable[..., Any])

SAMPLE_NET, SAMPLE_SIZE, SAMPLE_BATCH = "alphazero-8v-map", {"blocks": 4, "channels": 48}, 128
"""For a few minutes on a CPU: plain convolutions do two or three times the operations of depthwise
ones in the same time there, and small batches give more steps."""


def policy_labels(context: click.Context, option: click.Parameter, word: str | None) -> str | None:
    """Callback of `--labels`: a store keeps policy targets as visits, so both are one label."""
    return "visits" if word == "targets" else word


_OPTIONS = (
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
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="STORE",
        help="Store to validate on, instead of a part of --data.",
    ),
    click.option(
        "--split",
        metavar="BY[:SHARE[:TEST]]",
        help="What to validate on: group:0.05 (the default: 5 % of the games, a group of games on "
        "one side), game:0.1, year:2008, source:club*, none. A third part is left out altogether: "
        "year:2008:2009-.",
    ),
    click.option(
        "--split-seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Which games or groups a share of a split is; --seed does not change it.",
    ),
    click.option(
        "--mirror", is_flag=True, help="Also train on every position mirrored left-right."
    ),
    click.option(
        "--labels",
        type=click.Choice(["move", "visits", "targets"]),
        default="move",
        show_default=True,
        callback=policy_labels,
        help="What the policy learns: the move played, or how often a search visited each move, in "
        "positions that have visits. A store keeps the policy targets of self-play as visits, so "
        "targets is another word for visits.",
    ),
    click.option(
        "--value-labels",
        metavar="LABELS",
        default="result",
        show_default=True,
        help="What the value learns: result of the game, root (value of the search), score (of the "
        "engine, through a logistic curve fitted to the results; score:180 names its scale in "
        "centipawns), or mixed:0.25 (a quarter root value, the rest result). Where one is unknown "
        "the other is learnt.",
    ),
    click.option(
        "--forget",
        "forget_move_number",
        type=FiniteRange(0, 1),
        metavar="SHARE",
        help="Share of the samples whose move number restarts at 1, as in positions that graphical "
        "interfaces send; 0.1 if the encoding shows it.",
    ),
    click.option("--net", metavar="NAME", help="Network (`variant-ai nets`)."),
    size_options,
    click.option("--head", metavar="map|flat", help="Policy head; the net's first by default."),
    click.option(
        "--wdl", is_flag=True, help="The net also predicts win, draw and loss (--size wdl=yes)."
    ),
    click.option(
        "--plies-left", is_flag=True, help="The net also predicts the plies left in the game."
    ),
    click.option(
        "--from",
        "start_from",
        type=click.Path(path_type=Path),
        metavar="RUN|CHECKPOINT|ONNX|packaged",
        help="Go on with the net of this run or file, or with the one that comes with the variant, "
        "in place of a new one (fine-tuning); the learning rate is then 0.01/0.35 of the spec's by "
        "default.",
    ),
    click.option(
        "--freeze",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="With --from: the first N layers stay as they are (the stem, then block after block).",
    ),
    click.option(
        "--no-normalise",
        "normalise",
        flag_value=False,
        default=True,
        help="The net sees counts as they are, not divided by the spec's maxima.",
    ),
    click.option(
        "--trainer",
        default="standard",
        show_default=True,
        metavar="NAME",
        help="Trainer: standard, or one of a plugin.",
    ),
    click.option(
        "--optimiser",
        default="nesterov",
        show_default=True,
        metavar="NAME",
        help="nesterov: SGD with Nesterov momentum on one cycle of the rate; adam: Adam at a constant "
        "rate (0.001 by default); muon: Muon on one cycle (up to 0.05 by default), which "
        "orthogonalises the steps of convolutions.",
    ),
    click.option("--batch", type=click.IntRange(min=2), help="Positions a step."),
    click.option(
        "--accumulate",
        type=click.IntRange(min=1),
        default=1,
        metavar="K",
        help="Compute the positions of a step in K parts one after the other, which takes a K-th "
        "of the memory.",
    ),
    click.option(
        "--momentum",
        type=(FiniteRange(0, 1), FiniteRange(0, 1)),
        metavar="LEAST GREATEST",
        help="Momentum at the greatest and at the least learning rate.",
    ),
    click.option("--weight-decay", type=FiniteRange(0), help="Weight decay."),
    click.option("--value-weight", type=FiniteRange(0), help="Weight α of the value loss."),
    click.option(
        "--plies-weight", type=FiniteRange(0), help="Weight of the loss of the plies left."
    ),
    click.option("--clip", type=FiniteRange(0, min_open=True), help="Greatest norm of a gradient."),
    device_option,
    click.option(
        "--precision",
        default="auto",
        show_default=True,
        metavar="auto|fp32|bf16",
        help="Number format of the tower; auto takes bf16 where the hardware multiplies it.",
    ),
    click.option("--threads", type=click.IntRange(min=1), help="Threads on the CPU."),
    click.option(
        "--compile", is_flag=True, help="Let torch compile the net first (torch.compile)."
    ),
    seed_option(),
)


def recipe_options(command: F) -> F:
    """The options of data, net and recipe, in this order; read them with `make_request`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def make_request(
    options: Mapping[str, Any], *, sample: dict[str, Any] | None = None
) -> tuple[TrainRequest, Any]:
    """Return the request and the rules for the options. sample: defaults of options for a training
    on the variant's own sample games.

    Raises click.UsageError, and the errors of loading a variant.
    """
    from variant_ai.core.train.run.initial_weights import find_start
    from variant_ai.core.train.run.plan import TrainRequest
    from variant_ai.plugins import registry

    options = dict(options)
    name = options.pop("variant")
    if name is None:
        raise click.UsageError("name the variant: -V NAME (`variant-ai variants` lists them)")
    spec = load_variant(name)
    size = net_size(options.pop("blocks"), options.pop("channels"), options.pop("sizes"))
    for head in ("wdl", "plies_left"):
        if options.pop(head):
            size[head] = True
    stores, weights = weighted_stores(options.pop("stores"))
    if not stores:
        entry = registry().entry_of(spec)
        if entry is None or entry.sample is None:
            fail(f"{spec.variant} comes without games of its own; name a store with --data")
        stores = (entry.sample,)
        for key, value in (sample or {}).items():
            if options.get(key) is None:
                options[key] = value
        if options["net"] is None and options["head"] is None and options["start_from"] is None:
            options["net"], size = SAMPLE_NET, {**SAMPLE_SIZE, **size}
            options["batch"] = options["batch"] or SAMPLE_BATCH
    if options["start_from"] is not None:
        options["start_from"] = registry().net(spec, options["start_from"])
        own = find_start(options["start_from"]).own_spec(spec)
        if own is not spec:
            note("The net has its own planes or policy and keeps them.")
            spec = own
    request = TrainRequest(spec=spec, stores=stores, weights=weights, size=size, **options)
    return request, registry().rules(spec)


def note_sample(options: Mapping[str, Any], variant: str) -> None:
    """Print where the games come from if no option names any. To be called once the request is
    accepted, so that mistakes are reported first."""
    if not options["stores"]:
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
