"""`variant-ai variants`: what can be named with `-V`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from variant_ai.cli.common.console import examples, json_option, note, print_json, print_table


@click.command(
    epilog=examples(
        "variant-ai variants",
        "variant-ai variants --json",
        "# a folder with YAML specs of one's own",
        "VARIANT_AI_SPECS=~/my-specs variant-ai variants",
    )
)
@json_option
def command(as_json: bool) -> None:
    """List the variants that can be named.

    They come from plugins, and from the YAML files in ~/.config/variant-ai/specs (or the folders
    in VARIANT_AI_SPECS). Wherever a variant is asked for, the path of a YAML spec does as well.
    """
    listed = _variants()
    if as_json:
        print_json(listed)
        return
    print_table(
        ["name", "title", "board", "pieces", "rules", "plugin", "sample", "spec"],
        [
            (
                row["name"],
                row["title"] if not row["problem"] else "(cannot be read)",
                row["board"],
                row["pieces"],
                row["rules"],
                row["plugin"],
                "yes" if row["sample"] else "",
                _short(row["spec"]),
            )
            for row in listed
        ],
        right=["pieces"],
    )
    for row in listed:
        if row["problem"]:
            note(f"{row['name']}: {row['problem']}")


def _short(path: str) -> str:
    """The path of a spec; `built in` for one of the project (`--json` has all paths)."""
    from variant_ai.core.spec.catalogue import ROOT

    return "built in" if Path(path).is_relative_to(ROOT) else path


def _variants() -> list[dict[str, Any]]:
    """One row for each registered variant; one that cannot be read has a `problem`."""
    from variant_ai.core.errors import SpecError
    from variant_ai.plugins import registry

    rows: list[dict[str, Any]] = []
    for name, entry in registry().variants.items():
        row: dict[str, Any] = {
            "name": name,
            "title": None,
            "board": None,
            "pieces": None,
            "rules": None,
            "plugin": entry.plugin,
            "sample": entry.sample if entry.sample and entry.sample.exists() else None,
            "spec": entry.path,
            "hash": None,
            "problem": None,
        }
        try:
            spec = registry().variant(name)
        except SpecError as error:
            row["problem"] = str(error)
        else:
            from variant_ai.core.spec import spec_hash

            row |= {
                "title": spec.title,
                "board": f"{spec.board.files}×{spec.board.ranks}",
                "pieces": len(spec.pieces),
                "rules": spec.rules.engine,
                "hash": spec_hash(spec),
            }
        rows.append(row)
    return rows
