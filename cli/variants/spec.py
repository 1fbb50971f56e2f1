"""`variant-ai spec`: show, check, compare and derive specs, and write their schema."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json, print_table
from variant_ai.cli.common.ending import EXIT_ERROR, fail
from variant_ai.cli.common.options import (
    COUNT,
    EXISTING_FILE,
    FILE,
    examples,
    json_option,
    load_variant,
    replace_option,
    require_new,
    seed_option,
)
from variant_ai.cli.variants.spec_text import (
    as_yaml,
    board_drawing,
    difference_lines,
    moves_in_words,
    piece_notes,
    rules_in_words,
    written_out,
    zone_in_words,
)
from variant_ai.core.system.files import write_whole
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec
    from variant_ai.core.testing.random_games import Report


_output_option = click.option("-o", "--output", type=FILE, help="File to write instead of stdout.")


@click.group(
    "spec",
    epilog=examples(
        "variant-ai spec show crazyhouse",
        "variant-ai spec check my-variant.yaml",
        "variant-ai spec derive losalamos -o losalamos.yaml",
        "variant-ai spec schema -o schema.json",
    ),
)
def command() -> None:
    """Show, check, compare or derive specs of variants, or write the schema of specs."""


# --- show --------------------------------------------------------------------------------------


@command.command(
    epilog=examples(
        "variant-ai spec show xiangqi",
        "variant-ai spec show my-variant.yaml",
        "variant-ai spec show crazyhouse --json | jq .policy",
        "# the YAML of a spec that extends another, written out",
        "variant-ai spec show my-variant.yaml --resolved",
    )
)
@click.argument("variant", metavar="NAME|FILE")
@click.option(
    "--resolved",
    is_flag=True,
    help="Print the whole spec as YAML, merged with those it extends.",
)
@json_option
def show(variant: str, resolved: bool, as_json: bool) -> None:
    """Show pieces, rules, planes and actions.

    Planes and actions are numbered as in networks: index = plane * ranks * files + row * files +
    file, and row 0 is the mover's own first rank. Directions are compass points seen from the
    mover.
    """
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    if resolved:
        tree = written_out(spec, registry().path(variant))
        if as_json:
            print_json(tree)
        else:
            click.echo(as_yaml(tree), nl=False)
        return
    registry().rules(spec)  # checks the start position
    shown = _describe(spec, variant)
    if as_json:
        print_json(shown)
        return
    _print_described(spec, shown)


def _describe(spec: VariantSpec, given: str) -> dict[str, Any]:
    """Everything that `show` prints, as JSON."""
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.rules.pieces import PieceTypes
    from variant_ai.core.spec import encoding_hash, rules_hash, spec_hash
    from variant_ai.plugins import registry

    board, squares = spec.board, spec.board.squares
    encoder = Encoder(spec)
    policy = encoder.policy
    planes: list[dict[str, Any]] = [asdict(plane) for plane in encoder.input_planes]
    if not encoder.compiled:
        divisors = encoder.input.scale.tolist()
        item = spec.encoder.input
        planes = [
            {"index": index, "item": item, "name": name, "max": divisor}
            for index, (name, divisor) in enumerate(zip(encoder.plane_names, divisors, strict=True))
        ]
    return {
        "variant": spec.variant,
        "title": spec.title,
        "file": str(registry().path(given)),
        "fairy": spec.fairy,
        "engine": spec.rules.engine,
        "board": {"files": board.files, "ranks": board.ranks, "sides": board.sides},
        "zones": dict(board.zones),
        "start": spec.rules.start,
        "shuffle": spec.rules.shuffle,
        "symmetry": list(spec.symmetry),
        "protocols": list(spec.protocols),
        "spec_hash": spec_hash(spec),
        "rules_hash": rules_hash(spec),
        "encoding_hash": encoding_hash(spec),
        "pieces": [
            {
                "type": kind.index,
                "symbol": kind.symbol,
                "name": ("promoted " if kind.twin else "") + kind.piece.name,
                "moves": kind.piece.moves,
                "in_words": moves_in_words(kind.piece.moves),
                "notes": [] if kind.twin else list(piece_notes(spec, kind.piece)),
            }
            for kind in PieceTypes(spec).all
        ],
        "rules": list(rules_in_words(spec)),
        "input": {
            "encoder": spec.encoder.input,
            "shape": list(encoder.shape),
            "planes": planes,
        },
        "policy": {
            "layout": "derived" if spec.policy == "derived" else "written",
            "shape": list(policy.shape),
            "actions": policy.size,
            "labels": spec.encoder.labels,
            "flat_labels": encoder.labels.size,
            "planes": [
                {**asdict(plane), "first_action": plane.index * squares} for plane in policy.planes
            ],
        },
    }


def _print_described(spec: VariantSpec, shown: dict[str, Any]) -> None:
    board, policy, planes = spec.board, shown["policy"], shown["input"]
    print_facts(
        [
            ("variant", f"{spec.variant}: {spec.title}"),
            ("file", shown["file"]),
            ("reference", f"Fairy-Stockfish's {spec.fairy}" if spec.fairy else "none"),
            ("rules engine", spec.rules.engine),
            (
                "board",
                f"{counted(board.files, 'file')}, {counted(board.ranks, 'rank')}, sides: {board.sides}",
            ),
            (
                "zones",
                ", ".join(f"{n}: {zone_in_words(z)}" for n, z in board.zones.items()) or "none",
            ),
            ("start", spec.rules.start),
            *([("shuffle", spec.rules.shuffle)] if spec.rules.shuffle != "none" else ()),
            ("mirroring", "left-right" if spec.symmetry else "none"),
            ("protocols", ", ".join(spec.protocols)),
            ("spec hash", shown["spec_hash"]),
            ("rules hash", shown["rules_hash"]),
            ("encoding hash", shown["encoding_hash"]),
        ]
    )
    click.echo()
    print_table(
        ["type", "symbol", "name", "Betza", "moves", "notes"],
        [
            (p["type"], p["symbol"], p["name"], p["moves"], p["in_words"], "; ".join(p["notes"]))
            for p in shown["pieces"]
        ],
        title="Pieces",
        right=["type"],
    )
    click.echo()
    click.echo("\n".join(["Rules", *(f"  {line}" for line in shown["rules"])]))
    click.echo()
    print_table(
        ["plane", "item", "meaning", "divided by"],
        [
            (p["index"], p["item"], p["name"], f"{p['max']:g}" if p["max"] != 1 else None)
            for p in planes["planes"]
        ],
        title=f"Input: {_by(planes['shape'])}",
        right=["plane", "divided by"],
    )
    click.echo()
    print_table(
        ["plane", "actions", "kind", "meaning", "dx", "dy", "square"],
        [_policy_row(p, board.squares) for p in policy["planes"]],
        title=f"Policy ({policy['layout']}): {_by(policy['shape'])} = {policy['actions']} actions, "
        f"or {policy['flat_labels']} flat labels",
        right=["plane", "dx", "dy"],
    )
    click.echo()
    click.echo("Squares, row * files + file, as the first player sees them:")
    click.echo(board_drawing(spec, 0))
    click.echo("and as the second player does:")
    click.echo(board_drawing(spec, 1))


def _by(shape: list[int]) -> str:
    return " × ".join(map(str, shape))


def _policy_row(plane: dict[str, Any], squares: int) -> tuple[object, ...]:
    first = plane["first_action"]
    stepping = plane["kind"] in ("move", "promotion")
    return (
        plane["index"],
        f"{first}-{first + squares - 1}",
        plane["kind"],
        plane["name"],
        plane["dx"] if stepping else None,
        plane["dy"] if stepping else None,
        "origin" if stepping else "target" if plane["kind"] == "drop" else None,
    )


# --- check -------------------------------------------------------------------------------------


@command.command(
    epilog=examples(
        "variant-ai spec check crazyhouse",
        "variant-ai spec check my-variant.yaml --positions 20000 --seed 7",
        "variant-ai spec check xiangqi --json > report.json",
    )
)
@click.argument("variant", metavar="NAME|FILE")
@click.option(
    "--positions",
    type=COUNT,
    default=300,
    help="Number of positions of random games to compare.",
)
@seed_option
@json_option
def check(variant: str, positions: int, seed: int, as_json: bool) -> None:
    """Check a spec with the conformance kit.

    The first difference is printed with its FEN and move. Compared over random games: legal moves,
    checks and game ends with Fairy-Stockfish; FENs, moves, actions and codes written and read
    back; positions with their mirror images and with colours exchanged; and the ONNX file of a
    small net with the spec's planes and actions. Exit status 1 if anything differs. A spec may have
    its own numbers of repetitions and moves; those that differ from Fairy-Stockfish's are listed.
    """
    from variant_ai.core.derive.end_probe import differing_ends
    from variant_ai.core.testing.variant_check import check_spec
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    _check_start(registry().rules(spec), registry().path(variant))
    reports = check_spec(spec, positions, seed, on_start=lambda name: note(f"{name} ..."))
    agrees = all(report.agrees for report in reports)
    differing = differing_ends(spec) if spec.fairy is not None and agrees else []
    if as_json:
        print_json(
            {
                "variant": spec.variant,
                "seed": seed,
                "positions": positions,
                "agrees": agrees,
                "differing_ends": differing,
                "stages": [_as_json(report) for report in reports],
            }
        )
    else:
        _print_reports(reports)
        if differing:
            click.echo(f"\nRules for game ends that differ from Fairy-Stockfish's {spec.fairy}:")
            click.echo("\n".join(differing))
    if not agrees:
        raise SystemExit(EXIT_ERROR)


def _check_start(rules: Rules, path: Path) -> None:
    """Raise SpecError with the line of `start:` if the game would be over at once; making the rules has
    raised it for a start position that cannot be read."""
    from variant_ai.core.errors import SpecError
    from variant_ai.core.rules.game import Game
    from variant_ai.core.spec.loader import in_file

    outcome = Game(rules).outcome()
    if outcome is not None:
        message = f"the game would be over at once: {outcome.reason}"
        raise in_file(SpecError(message, keys=("rules", "start")), path)


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "name": report.check,
        "compared": _compared(report),
        "difference": report.first_difference,
        "left_out": report.left_out,
        "not_met": report.not_met,
        "skipped": report.skipped,
        "seconds": round(report.seconds, 2),
        "verdict": report.verdict,
    }


def _compared(report: Report) -> dict[str, int]:
    """Numbers of what was compared, by name; none of them is 0."""
    totals = {"games": report.games, "positions": report.positions, "moves": report.moves}
    shown = {name: number for name, number in totals.items() if number}
    return {**shown, **report.counts}


def _print_reports(reports: list[Report]) -> None:
    rows = []
    for report in reports:
        counted = ", ".join(f"{count:,} {name}" for name, count in _compared(report).items())
        row = (report.check, report.verdict, report.skipped or counted, f"{report.seconds:.1f} s")
        rows.append(row)
    print_table(["part", "verdict", "compared", "time"], rows, right=["time"])
    for report in reports:
        if report.not_met and report.agrees:
            click.echo(
                f"\nNot met in {report.check}, so not compared (more --positions meet more): {report.not_met}"
            )
        if report.left_out:
            click.echo(f"\nLeft out in {report.check}: {report.left_out}")
        if not report.agrees:
            click.echo(f"\nFirst difference in {report.check}:\n{report.first_difference}")


# --- diff ----------------------------------------------------------------------------------------


@command.command(
    epilog=examples(
        "variant-ai spec diff chess crazyhouse",
        "variant-ai spec diff crazyhouse my-crazyhouse.yaml",
    )
)
@click.argument("one", metavar="NAME|FILE")
@click.argument("other", metavar="NAME|FILE")
@json_option
def diff(one: str, other: str, as_json: bool) -> None:
    """Compare two specs word by word.

    Inherited words are included. Exit status 0 if rules, planes and policy are the same, so that
    nets and stores of one spec can be used with the other, else 1.
    """
    from variant_ai.core.spec import encoding_hash
    from variant_ai.core.spec.hashing import spec_differences

    specs = [load_variant(name) for name in (one, other)]
    first, second = (s.model_dump(mode="json", by_alias=True, exclude_defaults=True) for s in specs)
    found = list(spec_differences(first, second))
    same = encoding_hash(specs[0]) == encoding_hash(specs[1])
    if as_json:
        words = [{"word": path, "one": a, "other": b} for path, a, b in found]
        print_json({"differences": words, "same_encoding": same})
    else:
        click.echo("\n".join(difference_lines(found)) or "no difference")
        verb = "can" if same else "cannot"
        click.echo(f"\nNets of one spec {verb} be used with the other.")
    if not same:
        raise SystemExit(EXIT_ERROR)


# --- derive --------------------------------------------------------------------------------------


@command.command(
    epilog=examples(
        "variant-ai spec derive losalamos -o losalamos.yaml",
        "variant-ai spec derive --ini variants.ini mine -o mine.yaml",
        "variant-ai spec check losalamos.yaml --positions 5000",
    )
)
@click.argument("name")
@click.option(
    "--ini",
    type=EXISTING_FILE,
    help="File in the format of Fairy-Stockfish's variants.ini that has the variant.",
)
@_output_option
@click.option(
    "--positions",
    type=COUNT,
    default=400,
    help="Number of positions compared with Fairy-Stockfish before the kernel is chosen.",
)
@seed_option
@replace_option
def derive(
    name: str, ini: Path | None, output: Path | None, positions: int, seed: int, replace: bool
) -> None:
    """Draft a spec for a variant of Fairy-Stockfish.

    Moves, promotions, hands, castling and ends are found by asking Fairy-Stockfish about crafted
    positions. The draft runs in the kernel if random games agree with Fairy-Stockfish, and on
    `engine: fairy` otherwise. What could not be found is listed, and marked in the file. Prove the
    draft with `variant-ai spec check`.
    """
    from variant_ai.core.derive.derivation import derive as derive_spec
    from variant_ai.plugins import registry

    if output is not None:
        require_new(output, replace)
    note(f"probing {name} ...")
    found = derive_spec(name, ini=ini, positions=positions, seed=seed)
    if found.failure:
        fail(f"{name}: no spec was derived: {found.failure}")
    if ini is not None:
        found.tree["fairy_ini"] = os.path.relpath(ini, output.parent if output else None)
    remarks = [f"Derived from Fairy-Stockfish's {name}; see `variant-ai spec check`."]
    if found.why_fairy:
        remarks.append(f"Not for the kernel: {found.why_fairy}")
    remarks += [f"NOT FOUND: {text}" for text in found.notes]
    lines = "".join(f"# {' '.join(remark.split())}\n" for remark in remarks)
    _write(lines + as_yaml(found.tree), output)
    for remark in remarks[1:]:
        note(remark)
    note(f"{name} runs on the rules engine {found.engine}")
    if (own := found.tree["variant"]) in registry().variants:
        note(
            f"a variant {own!r} is known already, and nets of this file do not fit it: change `variant:`, "
            f"or use `-V {own}` instead of this file"
        )


# --- schema ------------------------------------------------------------------------------------


@command.command(
    epilog=examples(
        "variant-ai spec schema",
        "variant-ai spec schema -o schema.json",
        "# then, as the first line of a spec, for editors that know the YAML language server",
        "# yaml-language-server: $schema=schema.json",
    )
)
@_output_option
@replace_option
def schema(output: Path | None, replace: bool) -> None:
    """Print the JSON schema of specs.

    Editors use it to complete and check specs.
    """
    from variant_ai.core.spec.files.json_schema import schema_text

    if output is not None:
        require_new(output, replace)
    _write(schema_text(), output)
    if output is not None:
        note(f"wrote {output}")


def _write(text: str, output: Path | None) -> None:
    """Write a text to a file, or to stdout."""
    if output is None:
        click.echo(text, nl=False)
    else:
        write_whole(output, text)
