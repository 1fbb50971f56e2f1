"""The one rule for files that commands write.

A file that exists is overwritten with `--replace` only, and its folder must exist; both are checked
before the work. Folders (`-o FOLDER`) are created, and a play log (`--save`) is appended to.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.options import FILE, F
from variant_ai.core.system.files import is_stream


def output_option(help: str, *, type: click.Path = FILE, metavar: str = "FILE") -> Callable[[F], F]:
    """Add `-o/--output`, which must be given, passed to the command as `output: Path`."""
    return click.option("-o", "--output", type=type, required=True, metavar=metavar, help=help)


replace_option = click.option("--replace", is_flag=True, help="Overwrite an existing file.")


def require_folder(file: Path) -> None:
    """Fail if the folder of a file to be written does not exist."""
    if not file.absolute().parent.is_dir():
        fail(f"{file}: there is no folder {file.parent}")


def require_new(file: Path, replace: bool) -> None:
    """Fail if a file to be written exists, unless `replace` is set, or if its folder does not. A device
    or a pipe may exist."""
    if file.exists() and not replace and not is_stream(file):
        fail(f"{file} already exists; use --replace to overwrite it")
    require_folder(file)
