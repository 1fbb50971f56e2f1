"""The command group `variant-ai`: a table of commands, each imported when it is called.

`--help` reads this table and the plugins' lists of commands, and imports only click and pluggy: no
numpy, pydantic, numba or torch. A test looks at `sys.modules`.
"""

from __future__ import annotations

if __name__ == "__main__":  # before all that takes time to import
    from variant_ai.cli.program import begin

    begin()

import importlib
import os
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from variant_ai import __version__
from variant_ai.cli.common.console import note
from variant_ai.cli.common.ending import plain_ends, reported_errors
from variant_ai.core.errors import unknown
from variant_ai.core.system import compilation_progress as compilation
from variant_ai.core.system.interrupts import answer_signals, command_begins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from variant_ai.plugins import CommandEntry


@dataclass(frozen=True)
class Own:
    """A command of ours that is not imported yet: its module in `cli/`, and its line in `--help`."""

    module: str
    summary: str

    def load(self) -> click.Command:
        """Import the command."""
        module = importlib.import_module(f"variant_ai.cli.{self.module}")
        command: click.Command = module.command
        return command


GROUPS = {
    "Play": {
        "web": Own("play.web", "Play, analyse and watch nets learn in the browser."),
        "play": Own("play.play", "Play against the engine in the terminal."),
        "engine": Own("play.engine", "Play for a GUI: UCI, UCCI, UCI-cyclone and USI."),
        "analyse": Own(
            "play.analyse", "Analyse a position, or the moves of games, with the search."
        ),
        "serve": Own("play.serve", "Analyse positions for other programs, as JSON lines."),
    },
    "Variants": {
        "variants": Own("variants.variants", "List the variants that can be named."),
        "spec": Own("variants.spec", "Show, check or compare specs of variants."),
        "plugin": Own("variants.plugin", "Begin a package with a variant of your own."),
        "perft": Own("variants.perft", "Count the sequences of legal moves of a given length."),
    },
    "Games": {
        "import": Own("games.import_games", "Read games from files into a game store."),
        "data": Own("games.fetch_lichess", "Fetch published games into game stores."),
        "generate": Own("games.generate", "Let a net or an engine play itself into a game store."),
        "store": Own(
            "games.store", "Show, filter, merge, split, label, export or verify game stores."
        ),
        "stats": Own("games.stats", "Describe the games of a store."),
    },
    "Training": {
        "train": Own("train.train", "Train a network on the games of a store."),
        "reinforce": Own(
            "train.reinforce", "Train a network from nothing, by games against itself."
        ),
        "evaluate": Own("train.evaluate", "Measure networks on the games of a store."),
        "report": Own("train.report", "Draw a run's pictures and write its report."),
        "export": Own("train.export", "Write a network as an ONNX file."),
        "nets": Own("train.nets", "List the networks that can be trained; adopt or widen one."),
    },
    "Matches": {
        "match": Own("match.match", "Let engines and nets play matches, with tables and PGN."),
        "tune": Own("match.tune", "Find better search settings by matches."),
        "openings": Own("match.openings", "Sample opening lines from a net or a Polyglot book."),
    },
    "This installation": {
        "doctor": Own("host.doctor", "Check this installation and suggest what to do."),
        "bench": Own("host.bench", "Time the search and its parts."),
        "plugins": Own("host.plugins", "List plugins and what each registers."),
    },
}
"""Commands in the groups and the order of `--help`. Each group is a folder of `cli/`."""
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


class VariantGroup(click.Group):
    """A group whose subcommands come from `COMMANDS` and from plugins, imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        own = list(COMMANDS)
        return own + sorted(set(_plugin_commands()) - set(own))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = COMMANDS.get(cmd_name) or _plugin_commands().get(cmd_name)
        return lazy.load() if lazy else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            known = self.list_commands(ctx)
            if name not in known:
                raise click.UsageError(unknown("command", name, known), ctx)
        resolved = super().resolve_command(ctx, args)
        command_begins()
        return resolved

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        added = {name: _plugin_commands()[name] for name in sorted(_plugin_commands())}
        groups: dict[str, Mapping[str, Own | CommandEntry]]
        groups = {**GROUPS, "From plugins": added}
        for title, group in groups.items():
            if group:
                with formatter.section(title):
                    formatter.write_dl([(name, lazy.summary) for name, lazy in group.items()])

    def invoke(self, ctx: click.Context) -> Any:
        compilation.listen(compilation.Announcer(note))
        return super().invoke(ctx)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Like click's, but Ctrl-C exits with 130, and a closed pipe is no error."""
        standalone = kwargs.pop("standalone_mode", True)
        kwargs["standalone_mode"] = False
        if not standalone:
            return super().main(*args, **kwargs)
        with plain_ends(), reported_errors():  # of --help, too
            status = super().main(*args, **kwargs)
        sys.exit(status if isinstance(status, int) else 0)


@cache
def _plugin_commands() -> dict[str, CommandEntry]:
    """Commands added by outside plugins; a plugin cannot replace one of ours.

    Without outside plugins the registry need not be built to show `--help`, because our own commands
    are in the table.
    """
    if not outside_plugins():
        return {}
    from variant_ai.plugins import registry

    registry().reserve("register_commands", COMMANDS)
    return registry().commands


def outside_plugins(own: tuple[str, ...] = ("variant_ai-",)) -> bool:
    """Return True if an installed package has an entry point of our group, `own` packages aside, and
    VARIANT_AI_PLUGINS does not exclude them all.

    The files are read directly: importing importlib.metadata takes longer than the rest of `--help`.
    """
    if os.environ.get("VARIANT_AI_PLUGINS", "*").strip(", ") == "":
        return False
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:  # an archive, or missing
            continue
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")) or name.startswith(own):
                continue
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if b"[variant_ai]" in file.read():
                        return True
            except OSError:
                continue
    return False


@click.group(
    cls=VariantGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
    epilog="\b\nExamples:\n"
    "  variant-ai variants\n"
    "  variant-ai spec show NAME\n"
    "  variant-ai train -V NAME\n"
    "  variant-ai doctor\n",
)
@click.version_option(__version__, "-v", "--version", prog_name="variant-ai")
def cli() -> None:
    """Neural engines for any chess variant that a YAML spec can describe."""


def main() -> None:
    """Run the command line."""
    answer_signals()
    parent = os.environ.pop("VARIANT_AI_PARENT", "")
    if parent.isdigit():  # started by another command of ours
        from variant_ai.core.system.child_processes import SAVING, end_with_parent

        end_with_parent(int(parent), grace=SAVING)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a Chinese character shows `?`; the program goes on.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is None:
            continue
        reconfigure(errors="replace")
        if os.name == "nt" and not stream.isatty():  # files are read as UTF-8 again
            reconfigure(encoding="utf-8")
    cli(prog_name="variant-ai")


if __name__ == "__main__":
    main()
