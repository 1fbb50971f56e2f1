"""Options of net and search that commands share, and functions that make both from them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.options import COUNT, F, FiniteRange, NetPath, load_variant, with_options
from variant_ai.core.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from variant_ai.api import Engine
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.rules.game import Game
    from variant_ai.core.spec.schema import VariantSpec


NET_OPTIONS = ("evaluator", "threads", "device", "precision")
"""Options of the net that are no settings of the search."""


def fail_if_over(game: Game) -> None:
    """End the command with an error if the game is over."""
    outcome = game.outcome()
    if outcome is not None:
        fail(f"the game is over: {outcome.reason}, {outcome.result} ({game.fen()})")


def spec_of_model(model: Path, variant: str | None) -> VariantSpec:
    """Return the spec of the named variant, else the spec stored in the run or ONNX file, else that
    of the variant whose name the file has.

    Raises UnknownNameError, DataError.
    """
    from variant_ai.core.inference.model_file import ONNX_SUFFIX, read_model_file
    from variant_ai.core.spec.catalogue import PACKAGED
    from variant_ai.core.train.run.checkpoint import find_checkpoint
    from variant_ai.core.train.run.run_folder import CONFIG, read_config
    from variant_ai.core.train.run.training_settings import run_spec

    if variant is not None:
        return load_variant(variant)
    if str(model) == PACKAGED and not model.exists():
        raise click.UsageError("packaged: name the variant with -V")
    if model.suffix != ONNX_SUFFIX:
        return run_spec(find_checkpoint(model).config())
    info = read_model_file(model).info
    name = info.variant
    if not name:
        raise DataError(
            f"{model} has no name of a variant; it was not exported by variant-ai. Name one with -V"
        )
    if (model.parent / CONFIG).is_file():
        config = read_config(model.parent / CONFIG)
        if config.variant == name:
            return run_spec(config)
    try:
        return info.own_spec(load_variant(name))
    except UnknownNameError:
        if (carried := info.carried_spec) is not None:
            return carried
        fail(
            f"{model} is a net for {name}, which is not a variant of this installation; name its "
            "spec with -V FILE.yaml"
        )


def net_and_spec(model: Path, variant: str | None) -> tuple[Path, VariantSpec]:
    """Return the path of a net, which may be `packaged`, and its spec (`spec_of_model`).

    Raises UnknownNameError, DataError.
    """
    from variant_ai.plugins import registry

    registry().offer()
    spec = spec_of_model(model, variant)
    return registry().net(spec, model), spec


@dataclass(frozen=True)
class NetChoice:
    """Values of the options of net and search."""

    model: Path | None
    batch: int | None
    how: dict[str, Any]
    """`evaluator`, `threads`, `device` and `precision`, as `Registry.evaluator` takes them."""
    settings_name: str
    """Of `--settings`: a set of the variant."""
    assignments: tuple[str, ...]
    """Of `--set`: NAME=VALUE."""


def net_options(command: F) -> F:
    """Add `--model`, `--evaluator`, … which the command gets as `net: NetChoice`."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if (name := kwargs.pop("search")) is not None:
            kwargs["assignments"] = (*kwargs["assignments"], f"algorithm={name}")
        how = {name: kwargs.pop(name) for name in NET_OPTIONS}
        names = ("model", "batch", "settings_name", "assignments")
        chosen = {name: kwargs.pop(name) for name in names}
        return command(*args, net=NetChoice(how=how, **chosen), **kwargs)

    add = with_options(
        click.option(
            "-m",
            "--model",
            type=NetPath(),
            metavar="FILE",
            help="ONNX file of the net, or a run.  [default: packaged, the net of the variant; without "
            "one the pieces are counted]",
        ),
        click.option(
            "--evaluator",
            metavar="NAME",
            default="auto",
            help="auto, onnx, openvino, torch, material, uniform, random, check:A,B, or one of a plugin.",
        ),
        click.option(
            "--batch",
            type=click.IntRange(1, 4096),
            metavar="B",
            help="Positions that the net evaluates at once.  [default: 16]",
        ),
        click.option(
            "--threads",
            type=COUNT,
            metavar="N",
            help="Threads of the evaluator.  [default: auto measures which number is the fastest; "
            "otherwise that of the library]",
        ),
        click.option(
            "--device",
            default="cpu",
            metavar="NAME",
            help="Device of the net: cpu, cuda, cuda:N or tensorrt.",
        ),
        click.option(
            "--precision",
            metavar="NAME",
            help="fp32, bf16, fp16, int8.  [default: bf16 if the processor has it, else int8 if the net has such "
            "a file and it is much faster]",
        ),
        click.option(
            "--search", metavar="NAME", help="Search: graph, or one of a plugin.  [default: graph]"
        ),
        click.option(
            "--settings",
            "settings_name",
            metavar="NAME",
            default="default",
            help="Set of search settings of the variant, such as paper.",
        ),
        click.option(
            "--set",
            "assignments",
            multiple=True,
            metavar="NAME=VALUE",
            help="Setting of the search, see docs/search.md; may be given several times.",
        ),
    )
    return add(wrapped)  # type: ignore[return-value]


def settings_given(net: NetChoice) -> dict[str, Any]:
    """Return the settings of `--set` and `--batch`. Raises UnknownNameError, SettingError."""
    batch = {} if net.batch is None else {"batch_size": net.batch}
    for name in (part.partition("=")[0].strip() for part in net.assignments):
        if name in NET_OPTIONS:
            message = f"{name!r} is a setting of the net, not of the search: give it as --{name}"
            raise click.BadParameter(message, param_hint="--set")
    return batch | parse_settings(net.assignments)


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Return the settings of `--set NAME=VALUE`. Raises UnknownNameError, SettingError."""
    from variant_ai.core.spec.search_settings import setting

    values = name_values(texts, "--set")
    return {name: setting(name).parse(value) for name, value in values.items()}


def name_values(texts: Iterable[str], option: str) -> dict[str, str]:
    """Return the values of an option NAME=VALUE that may be given several times."""
    found = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=option)
        found[name] = value
    return found


def load_evaluator(spec: VariantSpec, net: NetChoice, batch: int) -> Evaluator:
    """Return the evaluator of the options. Without any net it counts the pieces, with a warning.

    Raises UnknownNameError, DataError, VariantAIError.
    """
    from variant_ai.plugins import registry

    return registry().usual_evaluator(spec, net.model, batch=batch, warn=note, log=note, **net.how)


def load_engine(
    spec: VariantSpec, net: NetChoice, *, log: Callable[[str], None] = note, **overrides: Any
) -> Engine:
    """Make an engine of the options; `overrides` are fields of `SearchParams`.

    Raises UnknownNameError, SettingError, DataError, VariantAIError.
    """
    from variant_ai.api import Engine

    return Engine(
        spec,
        net.model,
        settings=net.settings_name,
        log=log,
        **net.how,
        **{**settings_given(net), **overrides},
    )


def limits_option(simulations: int) -> Callable[[F], F]:
    """Add `--nodes N` and `--movetime S`, which the command gets as `limits: Limits`: `simulations`
    nodes if neither is given. `--simulations` is the old name of `--nodes`."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            from variant_ai.core.search.move.limits import Limits

            visits, seconds = kwargs.pop("simulations"), kwargs.pop("movetime")
            if visits is None and seconds is None:
                visits = simulations
            return command(*args, limits=Limits(simulations=visits, movetime=seconds), **kwargs)

        add = with_options(
            click.option(
                "-n",
                "--nodes",
                "--simulations",
                "simulations",
                type=COUNT,
                metavar="N",
                help=f"Nodes for each position.  [default: {simulations}, without --movetime]",
            ),
            click.option(
                "-t",
                "--movetime",
                type=FiniteRange(min=0, min_open=True),
                metavar="S",
                help="Seconds for each position.",
            ),
        )
        return add(wrapped)  # type: ignore[return-value]

    return decorate


def is_file(given: str) -> bool:
    """Return True if an argument that may be a FEN or a file is a file."""
    if given == "-":
        return True
    try:
        return os.path.exists(given)
    except ValueError:  # a null byte
        return False
