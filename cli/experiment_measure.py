"""What an experiment measures of its finished nets, kept beside its runs."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variant_ai.cli.common import note

if TYPE_CHECKING:
    from variant_ai.core.train.comparison import ArmRuns
    from variant_ai.core.train.experiment import Experiment

RESULTS, MEASURED = "results.json", "measured.json"


def measure(
    experiment: Experiment,
    arms: Sequence[ArmRuns],
    places: Mapping[str, Path],
    target: Path,
    lock: Any,
) -> list[ArmRuns]:
    """All nets on the stores of `measure`; what is known is not measured again. `lock` is handed on to
    the process that measures."""
    from variant_ai.cli.experiment_child import child_json
    from variant_ai.core.train.files import write_whole

    path = target / MEASURED
    known: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError, ValueError):  # what is damaged is measured again
        known = json.loads(path.read_text(encoding="utf-8"))
    # What was measured belongs to a net, a store and the words of the command, not to a folder.
    now = {str(folder): _identity(folder) for arm in arms for folder in arm.folders}
    for title, store in experiment.measure.items():
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
        words = ["evaluate", nets[0], str(places[store]), *more, "-V", experiment.variant, "--json"]
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
