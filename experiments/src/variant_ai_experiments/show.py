"""`variant-ai show`: pictures of a position as a net sees it, of its activations and its policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from variant_ai.cli.common.console import print_json
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.options import (
    examples,
    fen_option,
    json_option,
    load_variant,
    notation_option,
    replace_option,
    require_new,
    variant_option,
)
from variant_ai.cli.common.search_options import net_and_spec
from variant_ai.cli.common.training_options import let_threads_sleep

if TYPE_CHECKING:
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.rules.position import Position
    from variant_ai.core.spec.schema import VariantSpec
    from variant_ai.core.train.pictures.canvas import Picture

F = TypeVar("F", bound=Callable[..., Any])


@click.group(
    epilog=examples(
        "variant-ai show planes -V NAME -o planes.png",
        "variant-ai show activations runs/mine -o maps",
        "variant-ai show policy net.onnx --moves 'e2e4 e7e5' -o policy.png",
    )
)
def command() -> None:
    """Draw the planes of a position, the maps inside a net, or a net's policy, as PNG."""


def _position_options(command: F) -> F:
    """`--fen` and `--moves`, given as `fen` and `moves`; read them with `_position`."""
    for option in (
        click.option(
            "--moves",
            default="",
            show_default=False,
            metavar="MOVES",
            help="UCI moves to play first, separated by spaces.",
        ),
        fen_option("Position to draw."),
    ):
        command = option(command)
    return command


_output = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="PNG to write.",
)


@command.command(
    epilog=examples(
        "variant-ai show planes -V NAME -o planes.png",
        "variant-ai show planes -V NAME --moves 'e2e4 e7e5 g1f3' -o planes.png",
    )
)
@variant_option()
@_position_options
@_output
@replace_option
@json_option
def planes(
    variant: str, fen: str | None, moves: str, output: Path, replace: bool, as_json: bool
) -> None:
    """Draw every input plane of a position, with its number and name, beside the board."""
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.train.pictures.position_pictures import planes_picture

    require_new(output, replace)
    spec = load_variant(variant)
    rules, position = _position(spec, fen, moves)
    _write([planes_picture(Encoder(spec), rules, position)], output, as_json)


@command.command(
    epilog=examples(
        "# three pictures: after the first layer, after the last block, and in the heads",
        "variant-ai show activations runs/mine --moves 'e2e4 e7e5' -o maps",
    )
)
@click.argument("model", type=click.Path(path_type=Path))
@variant_option(required=False, help="Reject nets of another variant or spec.")
@_position_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="Folder for the PNGs; made if missing.",
)
@json_option
def activations(
    model: Path, variant: str | None, fen: str | None, moves: str, output: Path, as_json: bool
) -> None:
    """Draw the maps inside a net on a position.

    MODEL is a run directory or a checkpoint, or an ONNX file in its run directory.
    """
    let_threads_sleep()
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.inference.model_file import ONNX_SUFFIX
    from variant_ai.core.spec.catalogue import PACKAGED
    from variant_ai.core.train.report.run_report import activation_pictures
    from variant_ai.core.train.run.checkpoint import find_checkpoint
    from variant_ai.core.train.run.run_folder import CONFIG
    from variant_ai.core.train.run.training_settings import model_info, run_spec

    if model.suffix == ONNX_SUFFIX or str(model) == PACKAGED:
        if not (model.parent / CONFIG).is_file():
            fail(
                f"{model}: activations cannot be drawn from an ONNX file; name its run or checkpoint. "
                "The page of `variant-ai web` shows the layers of any net"
            )
        model = model.parent
    checkpoint = find_checkpoint(model)
    config = checkpoint.config()
    spec = load_variant(variant) if variant else run_spec(config)
    model_info(config, model).require(spec)
    rules, position = _position(spec, fen, moves)
    net = checkpoint.build(config)
    drawn = activation_pictures(net, Encoder(spec, config.net.head), rules, position)
    _write(drawn, output, as_json, folder=True)


@command.command(
    epilog=examples(
        "variant-ai show policy net.onnx -o policy.png",
        "variant-ai show policy runs/mine --fen FEN --notation san -o policy.png",
    )
)
@click.argument("model", type=click.Path(path_type=Path))
@variant_option(required=False, help="Reject nets of another variant or spec.")
@_position_options
@notation_option()
@click.option(
    "--played",
    default="",
    show_default=False,
    metavar="MOVE",
    help="Mark this move, written in --notation.",
)
@_output
@replace_option
@json_option
def policy(
    model: Path,
    variant: str | None,
    fen: str | None,
    moves: str,
    notation: str,
    played: str,
    output: Path,
    replace: bool,
    as_json: bool,
) -> None:
    """Draw the moves with the highest policy in a position, with their probabilities.

    MODEL is an ONNX file, a run directory, a checkpoint, or `packaged`.
    """
    require_new(output, replace)
    let_threads_sleep()
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.train.loop.devices import choose_device
    from variant_ai.core.train.measure.prediction import open_model
    from variant_ai.core.train.report.run_report import policy_of
    from variant_ai.plugins import registry

    model, spec = net_and_spec(model, variant)
    opened = open_model(model, spec, choose_device("cpu"))
    spec = opened.spec
    rules, position = _position(spec, fen, moves)
    chosen = registry().notation(spec, notation)
    if played:  # written as the picture writes it; an illegal move is an error
        played = chosen.write(rules, position, chosen.read(rules, position, played))
    drawn = policy_of(
        opened.predictor,
        Encoder(spec, opened.head),
        rules,
        position,
        played=played,
        write_move=lambda move: chosen.write(rules, position, move),
    )
    _write([drawn], output, as_json)


def _position(spec: VariantSpec, fen: str | None, moves: str) -> tuple[Rules, Position]:
    """Return the rules, and the position with its history of repetitions. Raises FenError, MoveError."""
    from variant_ai.core.rules.game import Game
    from variant_ai.plugins import registry

    rules = registry().rules(spec)
    return rules, Game.from_uci(rules, fen, moves.split()).position


def _write(drawn: list[Picture], output: Path, as_json: bool, *, folder: bool = False) -> None:
    from variant_ai.core.system.files import write_whole
    from variant_ai.core.train.pictures.canvas import write_pictures

    if folder:
        paths = write_pictures(drawn, output)
    else:
        write_whole(output, drawn[0].png)
        paths = [output]
    if as_json:
        pictures = [
            {"path": path, "title": shown.title, "caption": shown.caption}
            for path, shown in zip(paths, drawn, strict=True)
        ]
        print_json({"pictures": pictures})
        return
    for path, shown in zip(paths, drawn, strict=True):
        click.echo(f"{path}  {shown.title}")
