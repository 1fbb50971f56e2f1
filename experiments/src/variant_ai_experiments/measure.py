"""What an experiment measures of its finished nets, kept beside its runs."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variant_ai.cli.common.console import note

if TYPE_CHECKING:
    from variant_ai_experiments.comparison import ArmRuns
    from variant_ai_experiments.experiment_file import Experiment

RESULTS, MEASURED = "results.json", "measured.json"
MATES = "1000"
"""Positions of a mate-in-one set (paper 000, section 8)."""


def measure(
    experiment: Experiment,
    scale: str,
    arms: Sequence[ArmRuns],
    places: Mapping[str, Path],
    target: Path,
    lock: Any,
) -> list[ArmRuns]:
    """Measure all nets on the stores of `measure` and on mates in one.

    What is known is not measured again. `lock` is handed on to the process that measures.
    """
    from variant_ai.core.system.files import write_whole
    from variant_ai_experiments.child import child_json
    from variant_ai_experiments.comparison import MATE_IN_ONE

    path = target / MEASURED
    known: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError, ValueError):  # what is damaged is measured again
        known = json.loads(path.read_text(encoding="utf-8"))
    # What was measured belongs to a net, a store and the words of the command, not to a folder.
    now = {str(folder): _identity(folder) for arm in arms for folder in arm.folders}
    wanted: list[tuple[str, str, Sequence[str]]] = [
        (title, store, ()) for title, store in experiment.measure.items()
    ]
    mates = experiment.scales[scale].mates  # type: ignore[index]
    if mates is not None:
        wanted.append((MATE_IN_ONE, mates, ("--mates", MATES)))
    for title, store, further in wanted:
        with places[store].open("rb") as file:
            data = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        known[title] = {
            net: said
            for net, said in known.get(title, {}).items()
            if said.get("of") == [now.get(net), data]
        }
        nets = [
            str(folder)
            for arm in arms
            for folder in arm.folders
            if str(folder) not in known.get(title, {})
        ]
        if not nets:
            continue
        note(f"measuring {len(nets)} nets on {title}")
        more = [word for net in nets[1:] for word in ("--model", net)]
        on = [nets[0], str(places[store]), *more, *further]
        words = ["evaluate", *on, "-V", experiment.variant, "--json"]
        said = child_json(words, lock)
        known[title].update({net: {**said["nets"][net], "of": [now[net], data]} for net in nets})
        write_whole(path, json.dumps(known))
    return [
        dataclasses.replace(
            arm,
            measured={
                title: [nets[str(folder)] for folder in arm.folders if str(folder) in nets]
                for title, nets in known.items()
            },
        )
        for arm in arms
    ]


def _identity(run: Path) -> str:
    """Of the net of a finished run."""
    return hashlib.sha256((run / RESULTS).read_bytes()).hexdigest()[:16]
