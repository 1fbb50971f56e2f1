"""`variant-ai engine`, also `variant-ai-engine`: play for GUIs, sites and match programs.

Clients wait for the answer to their first word, so nothing is imported here but click and what
knows the names of specs; a test looks at `sys.modules`.
"""

from __future__ import annotations

if __name__ == "__main__":  # before all that takes time to import
    from variant_ai.cli.program import begin

    begin()

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from variant_ai import __version__
from variant_ai.cli.common.console import (
    EXIT_INTERRUPTED,
    examples,
    fail,
    plain_ends,
    reported_errors,
)
from variant_ai.core.system.interrupts import answer_signals, command_begins

if TYPE_CHECKING:
    from variant_ai.core.engine.engine_builder import Workshop
    from variant_ai.core.engine.line_io import InputLine, ProtocolLog
    from variant_ai.core.engine.session import Session
    from variant_ai.core.spec.schema import VariantSpec

SWITCH_INTERVAL = 0.0005
"""Seconds a thread may keep Python's lock: `stop` must not wait behind a search's bookkeeping."""


@click.command(
    epilog=examples(
        "variant-ai engine",
        "variant-ai engine --variant crazyhouse --model net.onnx",
        "# for a GUI that speaks UCCI; `auto` would find out by itself",
        "variant-ai engine --variant xiangqi --protocol ucci",
        "# what was said, and the same once more",
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
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="ONNX file of the net, or a folder with one. Without it the net that comes with the "
    "variant plays.",
)
@click.option(
    "--protocol",
    type=click.Choice(["auto", "uci", "ucci", "cyclone"]),
    default="auto",
    show_default=True,
    help="Protocol of the client; auto: its first word decides.",
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
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write every line that comes and goes, with its time.",
)
@click.option(
    "--replay",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Take the client's lines from such a log instead of standard input.",
)
def command(
    variant: str | None,
    model: Path | None,
    protocol: str,
    options: tuple[str, ...],
    log_protocol: Path | None,
    replay: Path | None,
) -> None:
    """Play for a GUI: UCI, UCCI and UCI-cyclone over standard input and output.

    The protocol is that of the client's first word. All settings are options of the protocol;
    docs/engine.md lists them. Messages go to standard error.
    """
    from variant_ai.core.engine.line_io import (
        LineReader,
        LineWriter,
        ProtocolLog,
        claim_stdout,
        quieten_collector,
    )
    from variant_ai.core.engine.packaged_nets import PACKAGED
    from variant_ai.core.engine.protocols.uci import Identity
    from variant_ai.core.engine.session import Session
    from variant_ai.core.spec.catalogue import home_path

    if model is not None and str(model) != PACKAGED and not home_path(str(model)).exists():
        fail(f"--model {model}: there is no such file or folder")
    workshop, variant = _workshop(variant, model)
    log = None
    if log_protocol is not None:
        log = ProtocolLog(log_protocol.open("w", encoding="utf-8", errors="replace"))
    lines: Iterable[InputLine] = LineReader(0)
    if replay is not None:
        lines, log = _replayed(replay, log)
    write = LineWriter(claim_stdout())
    sys.setswitchinterval(SWITCH_INTERVAL)
    quieten_collector()
    who = Identity(f"variant-ai {__version__}", "the variant-ai authors")
    session = Session(who, workshop, write, protocol=protocol, variant=variant, log=log)
    for text in options:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
        session.preset(name.strip(), value.strip())
    _serve(session, lines, log)


def _serve(session: Session, lines: Iterable[InputLine], log: ProtocolLog | None) -> None:
    """Run the session and leave the process: a search left behind may not keep it alive."""
    status = 0
    try:
        session.run(lines)
    except KeyboardInterrupt:  # Ctrl-C goes to the whole group: the GUI is leaving too
        session.leave()
        status = EXIT_INTERRUPTED
    if log is not None:
        log.close()
    if status or not session.is_done:
        sys.stderr.flush()
        os._exit(status)


def _workshop(variant: str | None, model: Path | None) -> tuple[Workshop, str | None]:
    """The variants of this installation by name, and the name of the one to play."""
    from variant_ai.cli.main import _outside_plugins
    from variant_ai.core.engine.engine_builder import Workshop
    from variant_ai.core.spec.catalogue import (
        SPEC_SUFFIXES,
        builtin_plugins,
        builtin_specs,
        home_path,
        spec_words,
        user_specs,
    )

    files = {**user_specs(os.environ), **builtin_specs()}
    if _outside_plugins(("variant_ai-", "variant_ai_experiments-")):  # neither adds a variant
        from variant_ai.plugins import registry

        files.update({name: entry.path for name, entry in registry().variants.items()})
    extra: dict[str, Path] = {}
    if variant is not None and Path(variant).suffix in SPEC_SUFFIXES:
        path = home_path(variant)
        if not path.is_file():
            fail(f"{path}: there is no such file")
        variant = spec_words(path).variant or path.stem
        extra[variant] = path
    files.update(extra)
    default = next((name for name in builtin_plugins() if name in files), min(files))

    def source() -> _Source:
        return _Source(extra)

    workshop = Workshop(files, default, source, model=model, models_of=model_places(files))
    if variant is not None:
        known = workshop.named(variant)
        if known not in files:
            from variant_ai.core.errors import UnknownNameError

            raise UnknownNameError("variant", variant, files)
        variant = known
    return workshop, variant


def model_places(files: dict[str, Path]) -> Callable[[str], Sequence[Path]]:
    """Where nets of a variant are looked for: the user's folder, beside the spec, in the package."""
    from variant_ai.core.engine.packaged_nets import model_places as of_variant

    return lambda name: of_variant(name, files.get(name))


class _Source:
    """The plugin registry, and the spec that was given as a file."""

    def __init__(self, extra: dict[str, Path]) -> None:
        from variant_ai.plugins import registry

        self._registry = registry()
        self._extra = extra
        self.rules = self._registry.rules
        self.evaluator = self._registry.evaluator

    def variant(self, name: str) -> VariantSpec:
        path = self._extra.get(name)
        return self._registry.variant(name if path is None else str(path))


def _replayed(path: Path, log: ProtocolLog | None) -> tuple[Iterable[InputLine], ProtocolLog]:
    """A client out of a log, and the log that tells it what the engine answers."""
    from variant_ai.core.engine.session_replay import Replay, Telling

    replay = Replay(path)
    return replay, Telling(replay.heard, log)


def main() -> None:
    """Run the engine as a program of its own."""
    answer_signals()
    command_begins()
    with plain_ends(), reported_errors():
        command.main(prog_name="variant-ai-engine", standalone_mode=False)


if __name__ == "__main__":
    main()
