"""Options that several commands share, and what belongs to them: types, examples, completion;
`--ray`, and what commands send to the machines of a cluster.

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

from variant_ai.cli.common.ending import fail
from variant_ai.core.system.files import is_same_file, is_stream

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from variant_ai.core.data.read.resolve import Resolver
    from variant_ai.core.rules.interface import Rules
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


# --- notations and positions ---------------------------------------------------------------------


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


# --- files that commands write -------------------------------------------------------------------
# A file that exists is overwritten with `--replace` only, and its folder must exist; both are checked
# before the work. Folders (`-o FOLDER`) are created, and a play log (`--save`) is appended to.


def output_option(help: str, *, type: click.Path = FILE, metavar: str = "FILE") -> Callable[[F], F]:
    """Add `-o/--output`, which must be given, passed to the command as `output: Path`."""
    return click.option("-o", "--output", type=type, required=True, metavar=metavar, help=help)


replace_option = click.option("--replace", is_flag=True, help="Overwrite an existing file.")


def require_folder(file: Path) -> None:
    """Fail if the folder of a file to be written does not exist."""
    if not file.absolute().parent.is_dir():
        fail(f"{file}: there is no folder {file.parent}")


def require_no_input(file: Path, inputs: Iterable[str | Path]) -> None:
    """Fail if a file to be written is one of the files that the command reads, which would be lost."""
    if any(is_same_file(file, Path(other)) for other in inputs):
        fail(f"{file} is also an input; give --output another name")


def require_new(file: Path, replace: bool, inputs: Iterable[str | Path] = ()) -> None:
    """Fail if a file to be written is one of the `inputs`, if it exists, unless `replace` is set, or if
    its folder does not exist. A device or a pipe may exist."""
    require_no_input(file, inputs)
    if file.exists() and not replace and not is_stream(file):
        fail(f"{file} already exists; use --replace to overwrite it")
    require_folder(file)


def ray_option(work: str) -> Callable[[F], F]:
    """Add `--ray ADDRESS`, passed to the command as `cluster: str | None`. work: done there."""
    return click.option(
        "--ray",
        "cluster",
        metavar="local|ADDRESS",
        help=f"{work} on a Ray cluster: one on this machine, or the one at an address (see "
        "docs/cluster.md).",
    )


def cluster_pools(
    address: str, processes: int | None
) -> tuple[int, Callable[[int, Callable[..., None], tuple[Any, ...]], Executor]]:
    """Connect to a cluster. Returns a number of processes, by default that of its processors, and a
    function that makes a pool of them as `WorkerPool` does. Raises VariantAIError."""
    from variant_ai.core.system.ray_cluster import ClusterPool, connect, processors_of

    ray = connect(address)
    wanted = processes or max(2, int(processors_of(ray)))
    return wanted, lambda count, *start: ClusterPool(ray, *start)


def registered_rules(spec: VariantSpec) -> Rules:
    """Make the rules of a spec, those of plugins included."""
    from variant_ai.plugins import registry

    return registry().rules(spec)
