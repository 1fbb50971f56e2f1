"""Options of the commands about nets: sizes, device; and waiting threads that sleep."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from variant_ai.cli.common.options import COUNT, with_options

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
