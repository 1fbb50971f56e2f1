"""Comparison of finished runs: the table, the pictures and the report in Markdown."""

from __future__ import annotations

import datetime
import io
import json
import math
import shlex
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variant_ai.core.train.pictures.canvas import Picture
    from variant_ai_experiments.experiment_file import Experiment

from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.measure.metric_tables import MATES, SHARES, TITLES, UNSEEN

RESULTS, CONFIG, ENVIRONMENT = "results.json", "config.json", "environment.json"
PUBLISHED = "results"
"""Folder beside the experiment's file for published reports."""
REPORT, CURVES, LAST_STEPS = "report.md", "curves.png", "last-steps.png"
PICTURES = ("Learning curves of the arms", "The last steps")
"""Titles of the pictures, in their order."""
MADE = "\n## How it was made"
COLOURS = 48
"""Number of colours in the pictures."""


@dataclass(frozen=True)
class Metric:
    """A column of a comparison."""

    title: str
    path: tuple[str, ...]
    """Keys of the number in results.json."""
    form: str
    """`share` (shown in per cent), `loss`, `count`, `minutes` of seconds, or `milliseconds`."""

    def of(self, results: Mapping[str, Any]) -> float | None:
        """Return the number, None if the run has none."""
        value: Any = results
        for key in self.path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return float(value) if isinstance(value, int | float) else None

    def show(self, values: Sequence[float]) -> str:
        """Return one number, or mean and standard deviation of several; `-` if there is none."""
        kept = [value for value in values if math.isfinite(value)]
        if not kept:
            return "-"
        text = self._one(statistics.fmean(kept))
        if len(kept) > 1:
            text += f" ± {self._one(statistics.stdev(kept))}"
        return f"{text} %" if self.form == "share" else text

    def _one(self, value: float) -> str:
        if self.form == "share":
            return f"{100 * value:.2f}"
        if self.form == "minutes":
            return f"{value / 60:.1f}"
        if self.form == "milliseconds":
            return f"{value:.2f}"
        return f"{value:.4f}" if self.form == "loss" else f"{value:,.0f}"


def _metric(name: str, part: str, where: str = "") -> Metric:
    """Return a metric of `train` or `validation` with its usual title."""
    return Metric(TITLES[name] + where, (part, name), "share" if name in SHARES else "loss")


METRICS: dict[str, Metric] = {
    **{
        name: _metric(name, "validation")
        for name in (
            *("policy_accuracy", "top5_accuracy", "policy_loss", "value_accuracy_sign"),
            *("value_loss", "combined_loss"),
        )
    },
    "unseen_policy_accuracy": Metric(UNSEEN, ("validation", "unseen", "policy_accuracy"), "share"),
    **{
        f"train_{name}": _metric(name, "train", " in training")
        for name in ("policy_accuracy", "policy_loss", "value_loss")
    },
    "parameters": Metric("parameters", ("parameters",), "count"),
    "flops": Metric("operations a position", ("flops",), "count"),
    "steps": Metric("steps", ("steps",), "count"),
    "positions": Metric("positions trained", ("positions",), "count"),
    "minutes": Metric("minutes", ("seconds",), "minutes"),
    "recoveries": Metric("returns to a checkpoint", ("recoveries",), "count"),
    "milliseconds": Metric("ms an evaluation", ("milliseconds",), "milliseconds"),
    "median_milliseconds": Metric("median", ("median_milliseconds",), "milliseconds"),
    "best_milliseconds": Metric("best", ("best_milliseconds",), "milliseconds"),
    "processor_milliseconds": Metric(
        "ms of processor time", ("processor_milliseconds",), "milliseconds"
    ),
    "positions_per_second": Metric("positions/s", ("positions_per_second",), "count"),
}
"""Metrics by their names in experiments."""
MATE_IN_ONE = "mate in one"
"""Title of measurements on positions with a mate in one."""
MATE_METRICS = tuple(
    Metric(MATES[name], ("mates", name), kind)
    for name, kind in (("accuracy", "share"), ("top5_accuracy", "share"), ("value_loss", "loss"))
)
"""Columns of mates in one ([CrazyAra-preprint] table 10)."""


@dataclass(frozen=True)
class ArmRuns:
    """Runs of an arm and their results."""

    arm: str
    folders: tuple[Path, ...]
    """Run directories of its finished runs, one for each seed."""
    commands: tuple[str, ...]
    """Command of each run."""
    failures: tuple[str, ...] = ()
    """Messages of failed runs."""
    measured: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Results of `evaluate` for each run's net, by the title of the store."""

    def results(self) -> list[dict[str, Any]]:
        return [_json(folder / RESULTS) for folder in self.folders]


@dataclass(frozen=True)
class Table:
    """Rows of text under column heads; the first column is the arm."""

    columns: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        heads = [" | ".join(self.columns), " | ".join(["---"] + ["---:"] * (len(self.columns) - 1))]
        body = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in self.rows]
        return "\n".join(f"| {line} |" for line in (*heads, *body))


def compare(
    arms: Sequence[ArmRuns], metrics: Sequence[str], measured_on: Iterable[str] = ()
) -> Table:
    """Return a row for each arm: the named metrics, then policy accuracy and value accuracy sign on
    each store of `measured_on`, then mates in one if nets were measured on such positions."""
    chosen = [METRICS[name] for name in metrics]
    others = [
        (title, Metric(f"{METRICS[name].title} on {title}", (name,), "share"))
        for title in measured_on
        for name in ("policy_accuracy", "value_accuracy_sign")
    ]
    if any(MATE_IN_ONE in arm.measured for arm in arms):
        others += [(MATE_IN_ONE, metric) for metric in MATE_METRICS]
    rows = []
    for arm in arms:
        results = arm.results()
        cells = [metric.show(_known(metric, results)) for metric in chosen]
        cells += [
            metric.show(_known(metric, arm.measured.get(title, ()))) for title, metric in others
        ]
        if arm.failures:
            cells[0] = f"{cells[0]} (failed: {'; '.join(arm.failures)})"
        rows.append([arm.arm, *cells])
    heads = ["arm", *(metric.title for metric in chosen), *(metric.title for _, metric in others)]
    return Table(heads, rows)


def _known(metric: Metric, results: Iterable[Mapping[str, Any]]) -> list[float]:
    found = (metric.of(one) for one in results)
    return [value for value in found if value is not None]


def draw_comparison(arms: Sequence[ArmRuns]) -> bytes | None:
    """Draw the learning curves of each arm's first run as one PNG; None if no arm has any."""
    from variant_ai.core.train.pictures.training_curves import compared_curves

    return _drawn(arms, compared_curves)


def draw_last_steps(arms: Sequence[ArmRuns]) -> bytes | None:
    """Draw the end of those curves as a PNG; None if they are too short."""
    from variant_ai.core.train.pictures.training_curves import last_steps

    return _drawn(arms, last_steps)


def _drawn(arms: Sequence[ArmRuns], draw: Callable[..., Picture | None]) -> bytes | None:
    """Return a picture in `COLOURS` colours, a quarter of the bytes: it is kept with the source."""
    from PIL import Image

    from variant_ai.core.train.run.run_folder import read_metrics

    drawn = draw({arm.arm: read_metrics(arm.folders[0]) for arm in arms if arm.folders})
    if drawn is None:
        return None
    small = io.BytesIO()
    with Image.open(io.BytesIO(drawn.png)) as picture:
        picture.convert("RGB").quantize(COLOURS).save(small, "PNG", optimize=True)
    return small.getvalue()


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

    publish: also write them to `results/` beside the file. sample: made with the variant's own games.
    """
    table = compare(arms, experiment.metrics, experiment.measure)
    pictures = {CURVES: draw_comparison(arms), LAST_STEPS: draw_last_steps(arms)}
    drawn = {name: data for name, data in pictures.items() if data is not None}
    page = list(_page(experiment, file, scale, arms, table, sample))
    _write_page(target / REPORT, page, {target / name: data for name, data in drawn.items()})
    if publish:
        stem = f"{file.stem}.{scale}"
        beside = {CURVES: f"{stem}.png", LAST_STEPS: f"{stem}.{LAST_STEPS}"}
        results = file.parent / PUBLISHED
        results.mkdir(exist_ok=True)
        pictures_there = {results / beside[name]: data for name, data in drawn.items()}
        _write_page(results / f"{stem}.md", page, pictures_there)
    return table


def _write_page(path: Path, page: Sequence[str], pictures: Mapping[Path, bytes]) -> None:
    """Write a page and its pictures, which follow its table."""
    from variant_ai.core.system.files import write_whole

    for picture, data in pictures.items():
        write_whole(picture, data)
    shown = [
        f"\n![{title}]({picture.name})" for title, picture in zip(PICTURES, pictures, strict=False)
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
    """Yield the lines of the report, without its pictures."""
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
    held = " Numbers are of held-back games, those of the training aside."
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
        yield from (_without_folders(command, file) for command in arm.commands)
    yield "```"


def _without_folders(command: str, file: Path) -> str:
    """Return a command without folders of the machine: paths by their last part."""
    words = shlex.split(command)
    shown = [Path(word).name if "/" in word and "=" not in word else word for word in words]
    cut = shown.index("--run") if "--run" in shown else len(shown)
    return shlex.join(shown[:cut])


def finished_on(arms: Sequence[ArmRuns]) -> str:
    """Return the day of the last run, `2026-01-31`; `''` if none is finished."""
    times = [(folder / RESULTS).stat().st_mtime for arm in arms for folder in arm.folders]
    return datetime.date.fromtimestamp(max(times)).isoformat() if times else ""


def machine_of(arms: Sequence[ArmRuns]) -> list[str]:
    """Describe the machines of the runs, a line for each kind of machine and version."""
    lines: dict[str, None] = {}
    for folder in (folder for arm in arms for folder in arm.folders):
        found, config = _json(folder / ENVIRONMENT), _json(folder / CONFIG)
        cpu = found.get("cpu", {})
        hardware = ", ".join(
            found.get("gpus") or [f"{cpu.get('cores')} cores of {cpu.get('name')}"]
        )
        packages = found.get("packages", {})
        where = f"{config['device']} in {config['precision']}, " if "device" in config else ""
        lines[
            f"{hardware}; {where}{config.get('threads') or found.get('threads')} threads; "
            f"Python {found.get('python')}, torch {packages.get('torch')}, onnxruntime "
            f"{packages.get('onnxruntime')}, variant-ai {packages.get('variant-ai')}"
        ] = None
    return list(lines)


def data_of(arms: Sequence[ArmRuns]) -> list[str]:
    """Describe the games of the runs: a line for each set of stores, by file name and content hash."""
    lines: dict[str, None] = {}
    for folder in (folder for arm in arms for folder in arm.folders):
        data = _json(folder / CONFIG).get("data")
        if not data:
            continue
        paths = [*data.get("stores", ()), *data.get("validation_stores", ())]
        names = [
            f"{Path(path).name} ({digest[:12]})"
            for path, digest in zip(paths, data.get("hashes", ()), strict=False)
        ]
        lines[
            f"{', '.join(names)}: {counted(data.get('train_games', 0), 'game')} and "
            f"{counted(data.get('train_positions', 0), 'position')} to train, "
            f"{data.get('validation_games', 0):,} and {data.get('validation_positions', 0):,} to "
            f"validate, split {data.get('split')}"
        ] = None
    return list(lines)


def mates_of(arms: Sequence[ArmRuns]) -> list[str]:
    """Describe the sets of mates in one that nets were measured on, a line for each."""
    lines: dict[str, None] = {}
    for net in (net for arm in arms for net in arm.measured.get(MATE_IN_ONE, ())):
        mates = net["mates"]
        lines[
            f"{counted(mates['positions'], 'position')} with {mates['legal_moves']:.1f} legal moves on "
            f"average, of which {mates['mating_moves']:.2f} mate"
        ] = None
    return list(lines)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
