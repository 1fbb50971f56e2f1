"""A page of the manual for each variant that ships, written from its spec."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from piece_moves import piece_moves_svg

from variant_ai.cli.main import cli
from variant_ai.core.draw import board_svg
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.plugins import registry


def write_variant_pages(folder: Path) -> list[str]:
    """Write `NAME.md` and pictures for every variant of the project; return the names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(registry().variants)
    for name in names:
        (folder / f"{name}.md").write_text("\n".join(_page(name, folder)) + "\n", encoding="utf-8")
    return names


def _described(name: str) -> dict[str, Any]:
    """Output of `variant-ai spec show NAME --json`."""
    result = CliRunner().invoke(cli, ["spec", "show", name, "--json"], catch_exceptions=False)
    described: dict[str, Any] = json.loads(result.stdout)
    return described


def _page(name: str, folder: Path) -> Iterator[str]:
    spec = registry().variant(name)
    shown = _described(name)
    board = shown["board"]
    (folder / f"{name}.svg").write_text(_start(spec), encoding="utf-8")
    yield f"# {spec.title}\n"
    yield f"![The start position of {spec.title}]({name}.svg)\n"
    yield (
        f"`{name}`: {board['files']} × {board['ranks']} squares, rules by "
        f"{'the compiled kernel' if shown['engine'] == 'kernel' else 'Fairy-Stockfish (`engine: fairy`)'}"
        f", protocols {', '.join(shown['protocols'])}. Written from "
        f"[its spec](../../specs/{name}.yaml) by `variant-ai spec show {name}`.\n"
    )
    yield "```sh"
    yield f"variant-ai play -V {name}"
    yield f"variant-ai reinforce -V {name} --minutes 30"
    yield "```\n"
    yield "## Pieces\n"
    yield (
        "A green dot is a move without capture, a red ring a capture, blue marks go over another "
        "piece, and faint ones exist in a part of the board only.\n"
    )
    yield "| piece | moves | description | more |"
    yield "| --- | --- | --- | --- |"
    kinds = PieceTypes(spec).by_symbol
    for piece in shown["pieces"]:
        symbol = piece["symbol"]
        picture = f"{name}-{symbol.replace('+', 'promoted-').replace('~', '-twin')}.svg"
        svg = piece_moves_svg(spec.drawing, kinds[symbol], spec.board, size=150)
        (folder / picture).write_text(svg, encoding="utf-8")
        notes = "; ".join(piece["notes"])
        yield (
            f"| `{symbol}` {piece['name']} | ![Moves of the {piece['name']}]({picture}) | "
            f"{piece['in_words']} (`{piece['moves']}`) | {notes} |"
        )
    yield "\n## Rules\n"
    yield from (f"- {line}" for line in shown["rules"])
    yield f"\nStart position: `{shown['start']}`\n"
    if shown["zones"]:
        yield "| zone | squares |"
        yield "| --- | --- |"
        for zone, squares in shown["zones"].items():
            text = squares if isinstance(squares, str) else " ".join(squares)
            yield f"| `{zone}` | {text} |"
    yield "\n## Input planes\n"
    yield f"[{' × '.join(map(str, shown['input']['shape']))}], as the player to move sees the board.\n"
    yield "| plane | content |"
    yield "| ---: | --- |"
    yield from (f"| {plane['index']} | {plane['name']} |" for plane in shown["input"]["planes"])
    yield "\n## Policy\n"
    yield from _policy(shown["policy"])


def _policy(policy: dict[str, Any]) -> Iterator[str]:
    yield f"```json\n{json.dumps({k: v for k, v in policy.items() if k != 'planes'}, indent=2)}\n```\n"
    if planes := policy.get("planes"):
        yield "| plane | moves |"
        yield "| ---: | --- |"
        yield from (f"| {plane['index']} | {plane['name']} |" for plane in planes)


def _start(spec: VariantSpec) -> str:
    """The start position as SVG."""
    game = Game(registry().rules(spec))
    return board_svg(spec, game.position, size=400)
