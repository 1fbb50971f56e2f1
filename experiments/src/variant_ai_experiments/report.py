"""The report of an experiment: table, pictures, machine, data and commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from variant_ai_experiments.comparison import ArmRuns, Table
    from variant_ai_experiments.experiment_file import Experiment

REPORT, CURVES, LAST_STEPS = "report.md", "curves.png", "last-steps.png"
PICTURES = ("Learning curves of the arms", "The last steps")
"""Titles of the pictures, in their order."""
MADE = "\n## How it was made"


def write_report(
    experiment: Experiment,
    file: Path,
    scale: str,
    arms: Sequence[ArmRuns],
    target: Path,
    *,
    publish: bool,
    sample: bool = False,
) -> Table:
    """Write the report and its pictures to the folder `target`; return the table.

    publish: also write them beside the file. sample: the variant's own games stood in.
    """
    from variant_ai_experiments.comparison import compare, draw_comparison, draw_last_steps

    table = compare(arms, experiment.metrics, experiment.measure)
    pictures = {CURVES: draw_comparison(arms), LAST_STEPS: draw_last_steps(arms)}
    drawn = {name: data for name, data in pictures.items() if data is not None}
    page = list(_page(experiment, file, scale, arms, table, sample))
    _write(target / REPORT, page, {target / name: data for name, data in drawn.items()})
    if publish:
        stem = f"{file.stem}.{scale}"
        beside = {CURVES: f"{stem}.png", LAST_STEPS: f"{stem}.{LAST_STEPS}"}
        _write(
            file.with_name(f"{stem}.md"),
            page,
            {file.with_name(beside[name]): data for name, data in drawn.items()},
        )
    return table


def _write(path: Path, page: Sequence[str], pictures: Mapping[Path, bytes]) -> None:
    """Write a page and its pictures, which stand after its table."""
    from variant_ai.core.system.files import write_whole

    for place, data in pictures.items():
        write_whole(place, data)
    shown = [
        f"\n![{title}]({place.name})" for title, place in zip(PICTURES, pictures, strict=False)
    ]
    at = page.index(MADE)
    write_whole(path, "\n".join([*page[:at], *shown, *page[at:]]))


def _page(
    experiment: Experiment,
    file: Path,
    scale: str,
    arms: Sequence[ArmRuns],
    table: Table,
    sample: bool,
) -> Iterable[str]:
    """Lines of the report, without its pictures."""
    from variant_ai_experiments.comparison import data_of, finished_on, machine_of, mates_of

    sized = experiment.scales[scale]  # type: ignore[index]
    yield f"# {experiment.title}: {scale} scale"
    yield f"\n{experiment.question} ({experiment.source})"
    if experiment.expected:
        yield f"\nPublished: {experiment.expected}"
    yield f"\nScale: {sized.about}."
    if sized.seeds > 1:
        yield f"Means and standard deviations of {sized.seeds} runs each, of different seeds."
    yield f"\n{table.markdown()}"
    yield MADE
    held = " Numbers not of the training are of held-back games."
    yield (
        f"\n`variant-ai experiment run {file.name} --scale {scale}{' --sample' if sample else ''}`, finished on "
        f"{finished_on(arms)}.{held if experiment.command == 'train' else ''}"
    )
    yield ""
    yield from (f"- machine: {line}" for line in machine_of(arms))
    yield from (f"- data: {line}" for line in data_of(arms))
    yield from (f"- mates in one: {line}" for line in mates_of(arms))
    yield "\n```sh"
    for arm in arms:
        yield f"# {arm.arm}"
        yield from (_without_places(command, file) for command in arm.commands)
    yield "```"


def _without_places(command: str, file: Path) -> str:
    """A command without the folders of one machine: paths by their last part."""
    words = shlex.split(command)
    shown = [Path(word).name if "/" in word and "=" not in word else word for word in words]
    cut = shown.index("--run") if "--run" in shown else len(shown)
    return shlex.join(shown[:cut])
