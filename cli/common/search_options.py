"""What commands with a search in them share: options of net and search, and how both are made."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from variant_ai.cli.common.console import FiniteRange, NetPath, fail, load_variant, note

if TYPE_CHECKING:
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.rules.game import Game
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.settings import SearchParams
    from variant_ai.core.spec.schema import VariantSpec

F = TypeVar("F", bound=Callable[..., Any])


def fail_if_over(game: Game) -> None:
    """Ends the command where there is nothing left to search."""
    outcome = game.outcome()
    if outcome is not None:
        fail(f"the game is over: {outcome.reason}, {outcome.result} ({game.fen()})")


def spec_of_model(model: Path, variant: str | None) -> VariantSpec:
    """The spec named, else the one a run carries, or an ONNX file, else the variant that it names.

    Raises UnknownNameError, DataError.
    """
    from variant_ai.core.engine.packaged_nets import PACKAGED
    from variant_ai.core.errors import DataError, UnknownNameError
    from variant_ai.core.inference.model_file import ONNX_SUFFIX, read_model_file
    from variant_ai.core.train.run.checkpoint import find_checkpoint, read_config
    from variant_ai.core.train.run.training_run import CONFIG, run_spec

    if variant is not None:
        return load_variant(variant)
    if str(model) == PACKAGED and not model.exists():
        raise click.UsageError("packaged: name the variant with -V")
    if model.suffix != ONNX_SUFFIX:
        return run_spec(find_checkpoint(model).config())
    info = read_model_file(model).info
    name = info.variant
    if not name:
        raise DataError(f"{model} does not say its variant; it was not exported by variant-ai")
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
            f"{model} is a net for {name}, which is no variant of this installation; name its "
            "spec with -V FILE.yaml"
        )


def named_net(model: Path, variant: str | None) -> tuple[Path, VariantSpec]:
    """The net that is named, `packaged` included, and its spec (`spec_of_model`).

    Raises UnknownNameError, DataError.
    """
    from variant_ai.plugins import registry

    spec = spec_of_model(model, variant)
    return registry().net(spec, model), spec


@dataclass(frozen=True)
class NetChoice:
    """What the options say of the net and of the search's settings."""

    model: Path | None
    evaluator: str
    batch: int | None
    threads: int | None
    device: str
    precision: str | None
    search_set: str
    settings: tuple[str, ...]


def net_options(command: F) -> F:
    """`--model`, `--evaluator`, … given to the command as `net: NetChoice`."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        names = NetChoice.__dataclass_fields__
        chosen = {name: kwargs.pop(name) for name in names}
        return command(*args, net=NetChoice(**chosen), **kwargs)

    options = (
        click.option(
            "-m",
            "--model",
            type=NetPath(),
            metavar="FILE",
            help="ONNX file of the net, or a run. Without it, or as `packaged`, the net that comes "
            "with the variant.",
        ),
        click.option(
            "--evaluator",
            metavar="NAME",
            default="auto",
            show_default=True,
            help="auto, onnx, openvino, torch, uniform, random, check:A,B, or one of a plugin.",
        ),
        click.option(
            "--batch",
            type=click.IntRange(1, 4096),
            metavar="B",
            help="Positions the net sees at once.  [default: 16]",
        ),
        click.option(
            "--threads", type=click.IntRange(min=1), metavar="N", help="Threads of the evaluator."
        ),
        click.option(
            "--device", default="cpu", show_default=True, help="Where the net runs: cpu, cuda."
        ),
        click.option(
            "--precision",
            metavar="NAME",
            help="fp32, bf16, fp16, int8.  [default: bf16 if the processor has it]",
        ),
        click.option(
            "--settings",
            "search_set",
            metavar="NAME",
            default="default",
            show_default=True,
            help="Set of search settings of the variant's spec, such as paper.",
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="A setting of the search; may be given several times.",
        ),
    )
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


def search_params(spec: VariantSpec, net: NetChoice) -> SearchParams:
    """The chosen set of the spec's settings with the user's words applied.

    Raises UnknownNameError, SettingError.
    """
    from variant_ai.core.search.settings import SearchParams

    return SearchParams.of(spec, net.search_set, **settings_given(net))


def settings_given(net: NetChoice) -> dict[str, Any]:
    """The search's settings that the user says. Raises UnknownNameError, SettingError."""
    from variant_ai.core.search.settings import setting

    given: dict[str, Any] = {}
    if net.batch is not None:
        given["batch_size"] = net.batch
    for text in net.settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
        given[name.strip()] = setting(name.strip()).parse(value)
    return given


def load_evaluator(
    spec: VariantSpec, net: NetChoice, batch: int, *, say: Callable[[str], None] = note
) -> Evaluator:
    """The evaluator of the options. Without a net anywhere the uniform one stands in, and says so.

    Raises UnknownNameError, DataError, VariantAIError.
    """
    from variant_ai.plugins import registry

    settings: dict[str, Any] = {
        "evaluator": net.evaluator,
        "batch": batch,
        "threads": net.threads,
        "device": net.device,
        "precision": net.precision,
        "say": say,
    }
    if net.model is None:
        return registry().usual_evaluator(spec, warn=say, **settings)
    return registry().evaluator(spec, net.model, **settings)


def limits_option(simulations: int) -> Callable[[F], F]:
    """`--nodes N` and `--movetime S`, given to the command as `limits: Limits`; `simulations` nodes
    if neither is said. `--simulations` is the older name."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            visits, seconds = kwargs.pop("simulations"), kwargs.pop("movetime")
            return command(*args, limits=_limits(visits, seconds, simulations), **kwargs)

        options = (
            click.option(
                "-n",
                "--nodes",
                "--simulations",
                "simulations",
                type=click.IntRange(min=1),
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
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[return-value]

    return decorate


def _limits(visits: int | None, seconds: float | None, default: int) -> Limits:
    from variant_ai.core.search.move.limits import Limits

    if visits is None and seconds is None:
        visits = default
    return Limits(simulations=visits, movetime=seconds)


def is_file(given: str) -> bool:
    """Whether an argument that is a FEN or a file is a file."""
    if given == "-":
        return True
    try:
        return os.path.exists(given)
    except ValueError:  # a null byte
        return False
