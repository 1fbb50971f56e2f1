"""`variant-ai engine`, also `variant-ai-engine`: play for GUIs, sites and match programs.

Clients wait for the answer to their first line, so only click and the names of the specs are
imported here; a test looks at `sys.modules`.
"""

from __future__ import annotations

if __name__ == "__main__":  # before all that takes time to import
    from variant_ai.cli.program import begin

    begin()

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from variant_ai import __version__
from variant_ai.cli.common.ending import (
    EXIT_INTERRUPTED,
    exit_at_once,
    fail,
    plain_ends,
    reported_errors,
)
from variant_ai.cli.common.options import EXISTING_FILE, FILE, PATH, examples
from variant_ai.core.errors import UnknownNameError, unknown
from variant_ai.core.factories import DIALECTS
from variant_ai.core.spec.catalogue import (
    PACKAGED,
    SPEC_SUFFIXES,
    builtin_plugins,
    builtin_specs,
    home_path,
    spec_names,
    user_specs,
)
from variant_ai.core.system.files import is_same_file
from variant_ai.core.system.interrupts import answer_signals, command_begins

if TYPE_CHECKING:
    from variant_ai.core.engine.engine_builder import EngineBuilder
    from variant_ai.core.engine.line_io import InputLine
    from variant_ai.plugins import Registry


SWITCH_INTERVAL = 0.0005
"""Seconds that a thread may hold Python's lock, so that `stop` does not wait for a search."""


class Protocol(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no arguments
    """Name of a protocol, those of plugins included, or `auto`."""

    name = "protocol"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(('auto', *DIALECTS.builtin))}|NAME]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value != "auto" and value not in DIALECTS.names:
            from variant_ai.plugins import registry

            registry().offer()  # the protocols of plugins
        if value not in (names := ("auto", *DIALECTS.names)):
            self.fail(unknown("protocol", value, names), param, ctx)
        return value


@click.command(
    epilog=examples(
        "variant-ai engine",
        "variant-ai engine --variant crazyhouse --model net.onnx",
        "# for a GUI that speaks UCCI; `auto` would detect it",
        "variant-ai engine --variant xiangqi --protocol ucci",
        "# log a session and replay it",
        "variant-ai engine --log-protocol game.log",
        "variant-ai engine --replay game.log",
    )
)
@click.option(
    "-V",
    "--variant",
    metavar="NAME",
    help="Variant to play until the client chooses one: a name, or the path of a YAML spec.",
)
@click.option(
    "-m",
    "--model",
    type=PATH,
    metavar="FILE",
    help="ONNX file of the net, or a folder with one.  [default: the net that comes with the "
    "variant]",
)
@click.option(
    "--protocol",
    type=Protocol(),
    default="auto",
    show_default=True,
    help="Protocol of the client, those of plugins included; auto: its first word decides.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an option of the protocol before the client does; may be given several times.",
)
@click.option(
    "--log-protocol",
    type=FILE,
    help="Write every line of input and output to a file, with its time.",
)
@click.option(
    "--replay",
    type=EXISTING_FILE,
    help="Read the client's lines from such a file instead of standard input.",
)
def command(
    variant: str | None,
    model: Path | None,
    protocol: str,
    options: tuple[str, ...],
    log_protocol: Path | None,
    replay: Path | None,
) -> None:
    """Play for a GUI: UCI, UCCI, UCI-cyclone and USI over standard input and output.

    The first word of the client decides the protocol. All settings are options of the protocol;
    docs/engine.md lists them. Messages go to standard error.
    """
    from variant_ai.cli.common.search_options import name_values
    from variant_ai.core.engine.line_io import (
        LineWriter,
        claim_stdout,
        prepare_process,
        read_lines,
    )
    from variant_ai.core.engine.protocols.uci import Identity
    from variant_ai.core.engine.session import Session

    if model is not None and str(model) != PACKAGED and not home_path(str(model)).exists():
        fail(f"--model {model}: there is no such file or folder")
    if log_protocol and replay and is_same_file(log_protocol, replay):
        # it would be emptied before it is read
        fail(f"{log_protocol} is the log to replay; give --log-protocol another file")
    builder, variant = _engine_builder(variant, model)
    log = None
    lines: Iterable[InputLine] = read_lines(0)
    if log_protocol is not None or replay is not None:
        from variant_ai.core.engine.protocol_log import ProtocolLog, Replay

        file = None
        if log_protocol is not None:
            file = log_protocol.open("w", encoding="utf-8", errors="replace")
        if replay is None:
            log = ProtocolLog(file)
        else:
            lines = replayed = Replay(replay)
            log = ProtocolLog(file, replayed.on_output)
    write = LineWriter(claim_stdout())
    sys.setswitchinterval(SWITCH_INTERVAL)
    prepare_process()
    identity = Identity(f"variant-ai {__version__}", "the variant-ai authors")
    session = Session(identity, builder, write, protocol=protocol, variant=variant, log=log)
    for name, value in name_values(options, "--option").items():
        session.preset(name, value)
    status = 0
    try:
        session.run(lines)
    except KeyboardInterrupt:  # Ctrl-C goes to the whole group: the GUI is leaving too
        session.leave()
        status = EXIT_INTERRUPTED
    if log is not None:
        log.close()
    if status or not session.is_done:  # a search that still runs may not keep the process alive
        exit_at_once(status)


def _engine_builder(variant: str | None, model: Path | None) -> tuple[EngineBuilder, str | None]:
    """The variants of this installation, and the name of the one to play."""
    from variant_ai.cli.main import outside_plugins
    from variant_ai.core.engine.engine_builder import EngineBuilder

    files = {**user_specs(os.environ), **builtin_specs()}
    # the experiments add commands only
    if outside_plugins(("variant_ai-", "variant_ai_experiments-")):
        from variant_ai.plugins import registry

        registry().offer()  # a protocol of a plugin is chosen by its first word
        files.update({name: entry.path for name, entry in registry().variants.items()})
    given: dict[str, Path] = {}
    if variant is not None and Path(variant).suffix in SPEC_SUFFIXES:
        path = home_path(variant)
        if not path.is_file():
            fail(f"{path}: there is no such file")
        variant = spec_names(path).variant or path.stem
        given[variant] = path
    files.update(given)
    default = next((name for name in builtin_plugins() if name in files), min(files))
    builder = EngineBuilder(files, default, _registry, given=given, model=model)
    if variant is not None:
        name = builder.resolve_name(variant)
        if name not in files:
            raise UnknownNameError("variant", variant, files)
        variant = name
    return builder, variant


def _registry() -> Registry:
    from variant_ai.plugins import registry

    return registry()


def main() -> None:
    """Run the engine as a program of its own."""
    answer_signals()
    command_begins()
    with plain_ends(), reported_errors():
        command.main(prog_name="variant-ai-engine", standalone_mode=False)


if __name__ == "__main__":
    main()
