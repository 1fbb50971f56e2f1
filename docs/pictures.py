"""Draws the pictures of the README and the manual: `python docs/pictures.py`.

Every picture is the output of a command of the program, listed here. A picture depends on the net that
comes with the variant, so draw them again when a net changes.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from variant_ai.cli.main import cli

FOLDER = Path(__file__).parent / "pictures"
SEARCH = (
    "--nodes 3000 --evaluator onnx --precision fp32 --set deterministic=true --arrows 4 --replace"
)
CRAZYHOUSE = (
    "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 c2c3 g8f6 d2d4 e5d4 c3d4 c5b4 c1d2 f6e4 d2b4 c6b4 c4f7 e8f7"
)
XIANGQI = "h3e3 h10g8 h1g3 i10h10 g4g5 c7c6 b1a3 b10c8 a1b1 a10b10 b3d3 c10e8"
COMMANDS = {
    "crazyhouse.svg": f"analyse startpos --moves '{CRAZYHOUSE}' -V crazyhouse {SEARCH} --svg",
    "xiangqi.svg": f"analyse startpos --moves '{XIANGQI}' -V xiangqi {SEARCH} --svg",
}
"""Name of a picture to the command that draws it; the path of the picture follows."""


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, command in COMMANDS.items():
        print(f"{name}: variant-ai {command} docs/pictures/{name}", file=sys.stderr)
        cli.main([*shlex.split(command), str(FOLDER / name)], standalone_mode=False)


if __name__ == "__main__":
    main()
