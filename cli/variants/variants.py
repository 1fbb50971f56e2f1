"""`variant-ai variants`: list the variants that `-V` accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from variant_ai.cli.common.console import note, print_json, print_table
from variant_ai.cli.common.options import examples, json_option
from variant_ai.core.errors import SpecError


@click.command(
    epilog=examples(
        "variant-ai variants",
        "variant-ai variants --json",
        "# a folder with your own YAML specs",
        "VARIANT_AI_SPECS=~/my-specs variant-ai variants",
    )
)
@json_option
def command(as_json: bool) -> None:
    """List the available variants.

    They come from plugins, and from YAML files in ~/.config/variant-ai/specs (or the folders in
    VARIANT_AI_SPECS). Every command also accepts the path of a YAML spec as a variant.
    """
    listed = _variants()
    if as_json:
        print_json(listed)
        return
    print_table(
        ["name", "title", "board", "pieces", "rules", "plugin", "net", "sample", "spec"],
        [
            (
                row["name"],
                row["title"] if not row["problem"] else "(cannot be read)",
                row["board"],
                row["pieces"],
                row["rules"],
                row["plugin"],
                "yes" if row["net"] else "",
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


def _short(path: Path) -> str:
    """Path of a spec, or `built in` for one of the project (`--json` has all paths)."""
    from variant_ai.core.spec.catalogue import SPECS

    return "built in" if path.parent == SPECS else str(path)


def _variants() -> list[dict[str, Any]]:
    """Return a row for each registered variant; one that cannot be read has a `problem`."""
    from variant_ai.plugins import registry

    rows: list[dict[str, Any]] = []
    for name, entry in registry().variants.items():
        row: dict[str, Any] = {
            "name": name,
            **dict.fromkeys(("title", "board", "pieces", "rules")),
            "plugin": entry.plugin,
            "net": None,
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
                "net": next((path for path in registry().net_paths(spec) if path.exists()), None),
                "hash": spec_hash(spec),
            }
        rows.append(row)
    return rows
