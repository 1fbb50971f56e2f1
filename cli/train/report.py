"""`variant-ai report`: write the pictures and numbers of a run into one HTML file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_json, progress
from variant_ai.cli.common.options import (
    COUNT,
    FILE,
    FOLDER,
    examples,
    json_option,
    load_variant,
    replace_option,
    require_new,
)
from variant_ai.cli.common.training_options import let_threads_sleep
from variant_ai.cli.train.mate_options import mates_option, read_or_find_mates
from variant_ai.core.errors import DataError
from variant_ai.core.system.files import short_names
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from torch import nn

    from variant_ai.core.encoding import Encoder
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.train.report.report_page import WrittenReport
    from variant_ai.core.train.run.training_data import Prepared
    from variant_ai.core.train.run.training_settings import TrainConfig

POSITIONS = 20_000
"""Validation positions to measure, unless `--limit` gives another number."""


@click.command(
    epilog=examples(
        "variant-ai report runs/mine",
        "# with another run's learning curves, and a mate-in-one set from the validation games",
        "variant-ai report runs/mine --beside runs/other --mates 1000",
        "variant-ai report runs/mine -o mine.html",
        "# a run of self-play",
        "variant-ai report runs/reinforce-NAME",
    )
)
@click.argument("run", type=FOLDER)
@click.option(
    "--beside",
    multiple=True,
    type=FOLDER,
    metavar="RUN",
    help="Also draw the learning curves of this run; may be repeated.",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Page to write; by default report.html in the run directory, which is replaced.",
)
@click.option(
    "--measure",
    is_flag=True,
    help="Measure the newest checkpoint again, even if the run was measured at its end.",
)
@click.option(
    "--limit",
    type=COUNT,
    help=f"Maximum number of validation positions to measure, by default {POSITIONS:,}; implies --measure.",
)
@mates_option
@replace_option
@json_option
def command(
    run: Path,
    beside: tuple[Path, ...],
    output: Path | None,
    measure: bool,
    limit: int | None,
    mates: str | None,
    replace: bool,
    as_json: bool,
) -> None:
    """Draw a run's pictures and write its report, one file that opens offline.

    The run, of `train` or of `reinforce`, may still be under way, or be stopped. If its stores are
    missing, the parts that need them are left out. The pictures are also written to `pictures/` in
    the run directory.
    """
    if output is not None:
        require_new(output, replace)
    let_threads_sleep()
    from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder

    if ReinforceFolder(run).exists():
        if beside or measure or limit is not None or mates is not None:
            raise click.UsageError(
                f"{run} is a run of self-play: its report takes no --beside, --measure, --limit and --mates"
            )
        _print_written(run, _reinforce_report(run, output), as_json)
        return
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.train.report.run_report import write_report
    from variant_ai.core.train.run.checkpoint import find_checkpoint
    from variant_ai.core.train.run.run_folder import run_config
    from variant_ai.core.train.run.training_settings import run_spec
    from variant_ai.plugins import registry

    config, *_ = [run_config(folder) for folder in (run, *beside)]
    spec = run_spec(config)
    rules = registry().rules(spec)
    checkpoint = find_checkpoint(run)
    net = checkpoint.build(config)
    prepared = _open(run, rules)
    results = _results(run, config, net, checkpoint.state().step)
    encoder = Encoder(spec, config.net.head)
    again = measure or limit is not None
    _measure(results, net, prepared, rules, encoder, limit or POSITIONS, again, mates)
    written = write_report(
        run,
        config,
        results,
        rules,
        prepared=prepared,
        net=net,
        beside=_names(beside),
        out=output,
        report=note,
    )
    _print_written(run, written, as_json)


def _print_written(run: Path, written: WrittenReport, as_json: bool) -> None:
    from variant_ai.core.train.run.run_folder import PICTURES

    page, pictures = written
    if as_json:
        print_json({"report": page, "pictures": pictures})
        return
    size = f"{page.stat().st_size / 1e6:.1f} MB"
    click.echo(f"{page}, {size}; {counted(len(pictures), 'picture')} in {run / PICTURES}")


def _reinforce_report(run: Path, output: Path | None) -> WrittenReport:
    """Write the report of a run of self-play."""
    from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder
    from variant_ai.core.reinforce.report.reinforce_report import write_reinforce_report
    from variant_ai.plugins import registry

    spec = load_variant(ReinforceFolder(run).settings().variant)
    return write_reinforce_report(run, registry().rules(spec), out=output)


def _open(run: Path, rules: Rules) -> Prepared | None:
    from variant_ai.core.train.run.training_run import open_run

    try:
        return open_run(run, rules=rules)
    except DataError as error:
        note(f"Without the games: {error}.")
        return None


def _results(run: Path, config: TrainConfig, net: nn.Module, step: int) -> dict[str, Any]:
    """The results that the run wrote at its end; a few facts if it did not end at this step."""
    from variant_ai.core.nets.description import describe
    from variant_ai.core.train.run.run_folder import read_results

    found = read_results(run, step)
    if found is not None:
        return found
    known = describe(net, config.net.shape)
    return {"parameters": known.parameters, "flops": known.flops, "steps": step}


def _measure(
    results: dict[str, Any],
    net: nn.Module,
    prepared: Prepared | None,
    rules: Rules,
    encoder: Encoder,
    limit: int,
    again: bool,
    mates: str | None,
) -> None:
    """Add to `results` the measurements that were not made at the end of the run."""
    import torch

    from variant_ai.core.train.measure.evaluation import Measured, evaluate, position_origins
    from variant_ai.core.train.measure.mate_set import measure_mates
    from variant_ai.core.train.measure.prediction import TorchPredictor

    predictor = TorchPredictor(net, torch.device("cpu"))
    measured = dict(results.get("validation") or {})
    if prepared is not None and prepared.validation is not None:
        source = prepared.validation
        if again or not measured.get("calibration"):
            whole = source.positions <= limit
            total = min(limit, source.positions)
            with progress() as bar:
                evaluation = evaluate(
                    {"net": Measured(predictor)},
                    source,
                    prepared.encoder,
                    seen=prepared.seen,
                    origins=position_origins(source, prepared.validation_stores(), limit=limit),
                    limit=None if whole else limit,
                    value_weight=prepared.config.value_weight,
                    advance=partial(bar.advance, bar.add_task("positions", total=total)),
                )
            found = evaluation.nets["net"].as_dict()
            kept = {} if again else {k: v for k, v in measured.items() if v is not None}
            measured = {**found, **kept}
    if mates is not None:
        games = None if prepared is None else prepared.validation or prepared.train
        chosen = read_or_find_mates(mates, rules, games)
        measured["mates"] = vars(measure_mates(predictor, chosen, rules, encoder))
    results["validation"] = measured or None


def _names(runs: tuple[Path, ...]) -> dict[str, Path]:
    """Runs by the name of the net and a part of the folder that is different for each."""
    from variant_ai.core.train.run.run_folder import run_config

    folders = list(dict.fromkeys(path.resolve() for path in runs))
    return {
        f"{run_config(path).net.title} ({name})": path
        for path, name in zip(folders, short_names(folders), strict=True)
    }
