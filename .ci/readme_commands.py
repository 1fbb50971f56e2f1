"""Run the commands of README's list "What it does" with an installed variant-ai, in an empty folder.

    python readme_commands.py README.md

They run in their order, with less work than README says (`SHORT`), or are left out with a reason
(`LEFT_OUT`). A line that is in neither table runs as it stands, so every line of README is either run
or accounted for; a key that no line begins with is an error.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

SHORT = {
    "variant-ai train -V crazyhouse --data games.store --minutes 30": (
        "--minutes 0.2 --run runs/mine --net risev2-mobile-small --size blocks=1"
    ),
    "variant-ai train -V crazyhouse --data games.store --from": "--minutes 0.1 --run runs/tuned",
    "variant-ai reinforce": "--generations 1 --positions 200 --set ladder.games=0",
    "variant-ai evaluate": "--mates 20",
    "variant-ai match": "--games 2 --nodes 8 --max-plies 40",
    "variant-ai perft": "--depth 3",
    "variant-ai generate": "--games 2 --nodes 20 --max-plies 40",
    "variant-ai analyse games.pgn": "--nodes 4",
    "variant-ai bench": "--nodes 200 --rounds 1",
}
"""Beginning of a line -> options that are added; a later option counts."""
INSTEAD = {
    "variant-ai import": ("--min-rating 2000",),  # the sample has no ratings
    "variant-ai match": ("--clock 60+0.25", "fairy-stockfish 'xboard:sjeng'", "random"),
    "variant-ai nets": ("--time",),
    "variant-ai analyse startpos": ("--model mine.onnx",),
}
"""Beginning of a line -> words that are taken out: they take minutes, or are for another variant. The
last of three takes the place of the second."""
LEFT_OUT = {
    "variant-ai data fetch": "fetches gigabytes from the network",
    "variant-ai show": "comes with the plugin in experiments/",
    "variant-ai experiment": "comes with the plugin in experiments/",
    "variant-ai tune": "needs the extra `tune`, and hours",
}
INPUT = {"variant-ai engine": "uci\nquit\n", "variant-ai play": "quit\n"}
PROGRAMS = {"variant-ai generate": "fairy-stockfish"}
"""Beginning of a line -> a program that it needs; without it the line is left out."""
MOST_SECONDS = 600


def commands(readme: str) -> list[str]:
    """Lines of the first shell block after the heading."""
    section = readme.split("## What it does", 1)[1]
    block = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)[0]
    return [line.split("  #")[0].strip() for line in block.splitlines() if line.strip()]


def found(table: dict[str, object], line: str) -> str | None:
    """The longest key of a table that a line begins with."""
    keys = [key for key in table if line.startswith(key)]
    return max(keys, key=len, default=None)


def prepare(folder: Path) -> None:
    """Make the files that the commands read: games and a net that come with the package."""
    import zstandard

    import variant_ai

    home = Path(variant_ai.__file__).parent / "variants" / "crazyhouse"
    shutil.copy(home / "model.onnx", folder / "other.onnx")
    subprocess.run(
        [*PROGRAM, "store", "export", str(home / "sample.store"), "-o", "all.pgn"], check=True
    )
    text = Path("all.pgn").read_bytes()
    Path("games.pgn.zst").write_bytes(zstandard.compress(text))
    Path("games.pgn").write_bytes(b"\n\n[Event".join(text.split(b"\n\n[Event")[:2]) + b"\n")


PROGRAM = [str(Path(sys.executable).with_name("variant-ai"))]


def main() -> None:
    lines = commands(Path(sys.argv[1]).read_text(encoding="utf-8"))
    unused = [
        key
        for table in (SHORT, INSTEAD, LEFT_OUT, INPUT, PROGRAMS)
        for key in table
        if not any(line.startswith(key) for line in lines)
    ]
    if unused:
        sys.exit(f"README has no command that begins with {unused[0]!r}")
    prepare(Path())
    for line in lines:
        key = found(LEFT_OUT, line)
        needed = PROGRAMS.get(found(PROGRAMS, line) or "")
        if key is not None or (needed and shutil.which(needed) is None):
            reason = LEFT_OUT[key] if key is not None else f"{needed} is not installed"
            print(f"left out: {line} ({reason})")
            continue
        words = line
        out = INSTEAD.get(found(INSTEAD, line) or "", ())
        for number, text in enumerate(out[:2]):
            words = words.replace(text, out[2] if number == 1 and len(out) == 3 else "")
        words = f"{words} {SHORT.get(found(SHORT, line) or '', '')}".strip()
        begun = time.monotonic()
        done = subprocess.run(
            [*PROGRAM, *shlex.split(words)[1:]], check=False, capture_output=True, text=True,
            input=INPUT.get(found(INPUT, line) or "", ""), timeout=MOST_SECONDS,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"failed: {words}\n{done.stdout}\n{done.stderr}")
        print(f"ok: {words} ({time.monotonic() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
