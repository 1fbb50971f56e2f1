"""`variant-ai plugins`: installed plugins and what they register."""

from __future__ import annotations

import click

from variant_ai.cli.common.console import note, print_json, print_table
from variant_ai.cli.common.options import examples, json_option


@click.command(
    epilog=examples(
        "variant-ai plugins",
        "variant-ai plugins --json",
        "# only the project's own",
        "VARIANT_AI_PLUGINS= variant-ai plugins",
        "# trace calls of hooks and their results",
        "VARIANT_AI_TRACE=1 variant-ai plugins",
    )
)
@json_option
def command(as_json: bool) -> None:
    """List plugins and what each registers.

    A plugin is an installed package with an entry point in the group `variant_ai`. One that cannot
    be loaded is listed with its problem and skipped. VARIANT_AI_PLUGINS=a,b loads only the outside
    plugins a and b.
    """
    from variant_ai.cli.main import COMMANDS
    from variant_ai.plugins import API_VERSION, registry

    registry().reserve("register_commands", COMMANDS)
    plugins = registry().plugins
    registered = registry().registered()
    if as_json:
        print_json(
            {
                "api": API_VERSION,
                "plugins": [
                    {
                        "name": plugin.name,
                        "version": plugin.version,
                        "distribution": plugin.distribution,
                        "registers": registered[plugin.name],
                        "problem": plugin.problem or None,
                    }
                    for plugin in plugins
                ],
            }
        )
        return
    rows: list[tuple[str, str, str, str, str]] = []
    for plugin in plugins:
        lines = list(registered[plugin.name].items()) or [("", [])]
        rows += [
            (
                plugin.name if at == 0 else "",
                plugin.version if at == 0 else "",
                plugin.distribution if at == 0 else "",
                noun or ("skipped" if plugin.problem else "nothing"),
                ", ".join(names),
            )
            for at, (noun, names) in enumerate(lines)
        ]
    print_table(["plugin", "version", "package", "registers", "names"], rows)
    note(f"plugin API {API_VERSION}")
    for plugin in plugins:
        if plugin.problem:
            note(f"{plugin.name}: {plugin.problem}")
