"""`variant-ai plugin new`: begin a package with a variant of one's own."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from variant_ai.cli.common.console import print_json, program
from variant_ai.cli.common.options import FOLDER, examples, json_option


@click.group(
    "plugin",
    epilog=examples("variant-ai plugin new mychess", "variant-ai plugin new --help"),
)
def command() -> None:
    """Begin a plugin: a package with a variant of your own.

    A variant alone needs no plugin, only a YAML file (`variant-ai spec --help`). The command
    `plugins` lists those that are installed.
    """


@command.command(
    epilog=examples(
        "variant-ai plugin new mychess",
        "# with a reader of game files and a notation to begin with",
        "variant-ai plugin new mychess --reader --notation",
        "variant-ai plugin new mychess -o ~/code/mychess",
    )
)
@click.argument("name")
@click.option("--reader", is_flag=True, help="Add a reader of game files.")
@click.option("--notation", is_flag=True, help="Add a notation, a way to write moves.")
@click.option(
    "-o",
    "--output",
    "folder",
    type=FOLDER,
    help="Folder of the package, a new one.  [default: variant-ai-NAME]",
)
@json_option
def new(name: str, reader: bool, notation: bool, folder: Path | None, as_json: bool) -> None:
    """Write the skeleton of a plugin: a spec, hooks, tests and a README.

    It works before anything is changed: it installs, passes its tests, trains by self-play and
    plays. The spec begins as chess on 5×5 squares.
    """
    from variant_ai.plugins import registry
    from variant_ai.plugins.skeleton import check_name, distribution_of, write_skeleton

    check_name(name, registry())
    folder = Path(distribution_of(name)) if folder is None else folder
    files = write_skeleton(name, folder, reader=reader, notation=notation)
    if as_json:
        print_json({"folder": folder, "files": files})
        return
    click.echo(f"{folder}/")
    for file in files:
        click.echo(f"  {file}")
    shown, ai = shlex.quote(str(folder)), program()
    click.echo(
        f"\nNext:\n"
        f"  pip install -e {shlex.quote(f'{folder}[testing]')}\n"
        f"  pytest {shown}\n"
        f"  {ai} reinforce -V {name} --minutes 10\n"
        f"Then change the rules in {folder / next(f for f in files if f.suffix == '.yaml')}."
    )
