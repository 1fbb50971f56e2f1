"""The page of all commands, from the declarations that `--help` shows."""

from __future__ import annotations

from collections.abc import Iterator

import click

from variant_ai.cli.main import GROUPS, cli

HEAD = """# Commands

Written from the declarations of the program; `variant-ai COMMAND --help` prints the same. `-h` and
`--help` are in every command, and `--json` in every command that reports something.
"""


def commands_page() -> str:
    """Return the page as Markdown: a section for each group of `--help`."""
    lines = [HEAD]
    with click.Context(cli, info_name="variant-ai") as root:
        for group, members in GROUPS.items():
            lines.append(f"## {group}\n")
            for name in members:
                command = cli.get_command(root, name)
                assert command is not None
                lines += _command(command, name, root, level=3)
    return "\n".join(lines) + "\n"


def _command(command: click.Command, name: str, parent: click.Context, level: int) -> Iterator[str]:
    with click.Context(command, info_name=name, parent=parent) as context:
        yield f"{'#' * level} {context.command_path}\n"
        yield from _paragraphs(command.help or "")
        yield f"```text\n{' '.join(command.collect_usage_pieces(context))}\n```\n".replace(
            "```text\n", f"```text\n{context.command_path} "
        )
        yield from _options(command, context)
        yield from _examples(command.epilog or "")
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                assert found is not None
                yield from _command(found, inner, context, min(level + 1, 4))


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs; those after a line of `\\b` keep their lines."""
    for paragraph in text.strip().split("\n\n"):
        if paragraph.startswith("\b"):
            yield f"```text\n{paragraph.removeprefix(chr(8)).strip(chr(10))}\n```\n"
        else:
            yield _escaped(" ".join(paragraph.split())) + "\n"


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    records = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
        and (record := parameter.get_help_record(context)) is not None
        and "--help" not in parameter.opts
    ]
    if not records:
        return
    yield "| option | meaning |"
    yield "| --- | --- |"
    for names, text in records:
        shown = " ".join(text.split())
        yield f"| `{names.replace('|', chr(92) + '|')}` | {_escaped(shown)} |"
    yield ""


def _examples(epilog: str) -> Iterator[str]:
    lines = [line[2:] for line in epilog.splitlines() if line.startswith("  ")]
    if lines:
        yield "```sh\n" + "\n".join(lines) + "\n```\n"


def _escaped(text: str) -> str:
    """Escape what Markdown would read as markup outside of code."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        for character in "\\*_<>[]|":
            parts[index] = parts[index].replace(character, "\\" + character)
    for index in range(1, len(parts), 2):
        parts[index] = parts[index].replace("|", "\\|")
    return "`".join(parts)
