"""Options that several commands share, and what belongs to them: types, examples, completion.

Nothing heavy is imported at module level, because every `--help` imports this file. Commands import
numpy, torch and the core inside their functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from variant_ai.core.spec.schema import VariantSpec

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
EXISTING_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
FOLDER = click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(min=1)
"""Types of options."""


def examples(*lines: str) -> str:
    """Return the `epilog` of a command with its examples, one per line.

    Use: `@click.command(epilog=examples("variant-ai spec show NAME"))`. A line that starts with
    `#` is a comment on the next line.
    """
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class FiniteRange(click.FloatRange):
    """A number in a range; `inf` and `nan` are rejected."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class NetPath(click.Path):
    """A net that exists, or `packaged` (see `Registry.net`)."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, exists=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from variant_ai.core.spec.catalogue import PACKAGED

        if str(value) == PACKAGED:
            return Path(value)
        return super().convert(value, param, ctx)


def variant_option(
    *, required: bool = True, help: str = "Variant: a name, or the path of a YAML spec."
) -> Callable[[F], F]:
    """Add `-V/--variant NAME`, passed to the command as `variant: str` (see `load_variant`)."""
    return click.option(
        "-V",
        "--variant",
        "variant",
        metavar="NAME",
        required=required,
        help=help,
        shell_complete=_complete_variant,
    )


def _complete_variant(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from variant_ai.plugins import registry

    return sorted(name for name in registry().variants if name.startswith(incomplete))


def with_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Add several options to a command, in the order in which its help lists them."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
"""`--json`, passed to the command as `as_json: bool`; print with `print_json`."""

seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, help="Seed of all random numbers."
)
"""`--seed N`, passed to the command as `seed: int`."""


def reject_given(names: Iterable[str], reason: str) -> None:
    """Raise UsageError if the command was given one of its parameters `names`, such as `as_json`.

    reason: follows the option, as in `has no effect with --elo`.
    """
    for param in click.get_current_context().command.params:
        if param.name in names and was_given(param.name):
            raise click.UsageError(f"{next(o for o in param.opts if o[:2] == '--')} {reason}")


def was_given(name: str) -> bool:
    """Return true if the command was given its parameter of that name on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source == ParameterSource.COMMANDLINE


def load_variant(name_or_path: str) -> VariantSpec:
    """Return the spec of `-V`: a registered name or a YAML file. Raises UnknownNameError, SpecError."""
    from variant_ai.plugins import registry

    return registry().variant(name_or_path)
