"""`variant-ai export`: write a checkpoint as an ONNX file, in fp32, fp16 or int8."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.options import (
    COUNT,
    FILE,
    PATH,
    examples,
    json_option,
    load_variant,
    output_option,
    reject_given,
    replace_option,
    require_new,
    seed_option,
    variant_option,
)
from variant_ai.cli.common.search_options import net_and_spec, spec_of_model
from variant_ai.cli.common.training_options import let_threads_sleep
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.spec.schema import VariantSpec
    from variant_ai.core.train.measure.reduced_precision import Reduced, Sample

BATCH = 64
"""Positions taken from a store at a time."""


@click.command(
    epilog=examples(
        "variant-ai export runs/mine -o mine.onnx",
        "variant-ai export runs/mine/checkpoints/step-00001000 -o early.onnx",
        "# small and fast, calibrated on the games of the run",
        "variant-ai export runs/mine --precision int8 -o mine-int8.onnx",
        "variant-ai export mine.onnx --precision int8 --store games.store -o mine-int8.onnx",
    )
)
@click.argument("model", metavar="CHECKPOINT|FILE|packaged", type=PATH)
@output_option("The file to write.")
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp16", "int8"]),
    default="fp32",
    help="Number format of the file.",
)
@click.option(
    "--store",
    type=FILE,
    help="Games for calibrating int8 and measuring the loss of accuracy; by default those of the run, "
    "or the variant's sample games.",
)
@click.option(
    "--positions",
    type=COUNT,
    default=2000,
    help="Number of positions for measuring the loss of accuracy; if there are fewer, some are used again.",
)
@click.option(
    "--calibrate",
    type=click.IntRange(min=BATCH),
    default=512,
    help="Number of positions for calibrating int8.",
)
@click.option(
    "--spare",
    type=click.IntRange(0, 2),
    help="int8: keep nothing (0), the policy's last layer (1), or also the sums of the shortcuts (2) "
    "in fp32; by default as little as needed to keep the net's choices.",
)
@variant_option(required=False, help="Reject a checkpoint of another variant or spec.")
@seed_option
@replace_option
@json_option
def command(
    model: Path,
    output: Path,
    precision: str,
    store: Path | None,
    positions: int,
    calibrate: int,
    spare: int | None,
    variant: str | None,
    seed: int,
    replace: bool,
    as_json: bool,
) -> None:
    """Write a net as an ONNX file, from a run directory (its newest checkpoint) or a checkpoint.

    The file contains variant, spec hashes, net, data hashes and metrics, and is compared with the
    net before it is kept. fp16 and int8 can also be made from an fp32 ONNX file. Their loss is
    printed: policy accuracy, share of positions with the same first move (all, and those where the
    fp32 net's first two moves differ by over 0.05), value difference. An int8 file contains known
    answers, from which an evaluator detects a processor that computes int8 wrongly and uses fp32.
    """
    from variant_ai.core.inference.model_file import read_model_file
    from variant_ai.core.spec.catalogue import PACKAGED

    if precision == "fp32":
        reject_given(["store", "positions", "seed"], "has no effect with --precision fp32")
    if precision != "int8":
        reject_given(["calibrate", "spare"], f"has no effect with --precision {precision}")
    require_new(output, replace, [model] if store is None else [model, store])
    let_threads_sleep()
    given = load_variant(variant) if variant is not None else None
    facts: dict[str, Any] = {}
    stores: tuple[Path, ...] = ()
    with tempfile.TemporaryDirectory() as folder:
        if given is not None or str(model) == PACKAGED:
            model, _ = net_and_spec(model, variant)
        if model.suffix == ".onnx":
            if precision == "fp32":
                fail(f"{model} is already an ONNX file; use --precision fp16 or int8 to convert it")
            source = model
            spec = (
                read_model_file(model).info.own_spec(given) if given else spec_of_model(model, None)
            )
        else:
            source = output if precision == "fp32" else Path(folder) / "fp32.onnx"
            facts, stores, spec = _from_checkpoint(model, source, given)
        facts["path"] = output
        if precision != "fp32":
            from variant_ai.core.train.measure.reduced_precision import write_fp16, write_int8

            # those of a training may have been deleted
            chosen = [path for path in stores if path.is_file()] if store is None else [store]
            if not chosen:
                chosen = _sample(spec)
            if precision == "int8" and not chosen:
                fail("int8 needs positions for calibration; name a game store with --store")
            calibration, check = _positions(source, spec, chosen, calibrate, positions, seed)
            if precision == "fp16":
                reduced = write_fp16(source, output, spec, check)
            else:
                reduced = write_int8(
                    source, output, spec, calibration, check, spare=spare, report=note
                )
            facts |= {
                "precision": precision,
                "spared": reduced.spared,
                "agreement": reduced.agreement and reduced.agreement.as_dict(),
            }
    facts["bytes"] = output.stat().st_size
    if as_json:
        print_json(facts)
        return
    if "net" in facts:
        note(
            f"{output}: {facts['variant']}, {facts['net']}, step {facts['step']:,}; "
            f"differs from torch by at most {facts['difference']:.1g}"
        )
    if precision != "fp32":
        _print(output, precision, reduced)


def _sample(spec: VariantSpec) -> list[Path]:
    """The variant's sample games, if there are any."""
    from variant_ai.plugins import registry

    entry = registry().entry_of(spec)
    if entry is None or entry.sample is None or not entry.sample.is_file():
        return []
    note(f"No --store: using positions of the sample games of {spec.variant}.")
    return [entry.sample]


def _from_checkpoint(
    checkpoint: Path, target: Path, given: VariantSpec | None
) -> tuple[dict[str, Any], tuple[Path, ...], VariantSpec]:
    """Write fp32; return the facts to print, the stores of the training, and the spec."""
    from variant_ai.core.train.run.checkpoint import find_checkpoint
    from variant_ai.core.train.run.run_folder import read_results
    from variant_ai.core.train.run.training_run import export_net
    from variant_ai.core.train.run.training_settings import model_info, run_spec
    from variant_ai.plugins import registry

    registry().offer()
    found = find_checkpoint(checkpoint)
    config = found.config()
    if given is not None:
        model_info(config, checkpoint).require(given)
    state = found.state()
    results = read_results(found.path.parent.parent, state.step)
    metrics = {}
    if results is not None:
        metrics = {name: results.get(name) for name in ("validation", "baseline_accuracy")}
    net = found.build(config)
    difference = export_net(config, net, target, metrics, state.step)
    stores = tuple(Path(path) for path in (*config.data.validation_stores, *config.data.stores))
    report = {
        "path": target,
        "variant": config.variant,
        "net": config.net.title,
        "step": state.step,
        "difference": difference,
    }
    return report, stores, given or run_spec(config)


def _positions(
    source: Path, spec: VariantSpec, stores: list[Path], calibrate: int, positions: int, seed: int
) -> tuple[list[Sample], list[Sample]]:
    """Random positions for calibration, and others for checking; none without a store."""
    from variant_ai.core.data.sample.sampler import Sampler
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.inference.model_file import read_model_file
    from variant_ai.core.train.measure.reduced_precision import take_samples
    from variant_ai.plugins import registry

    if not stores:
        return [], []
    encoder = Encoder(spec, read_model_file(source).info.head)
    rules = registry().rules(spec)
    sampler = Sampler(
        [Store(path, spec) for path in stores], encoder, batch=BATCH, seed=seed, rules=rules
    )
    if sampler.positions < calibrate + positions:
        note(
            f"There are only {counted(sampler.positions, 'position')}: some are used more than once "
            f"among the {calibrate:,} for calibration and the {positions:,} that are measured."
        )
    calibration = take_samples(sampler, encoder, rules, calibrate)
    return calibration, take_samples(sampler, encoder, rules, positions, first=len(calibration))


def _print(output: Path, precision: str, reduced: Reduced) -> None:
    size = output.stat().st_size
    stays = f"; in fp32: {', '.join(reduced.spared)}" if reduced.spared else ""
    note(f"{output}: {precision}, {size / 1e6:.1f} MB{stays}")
    if reduced.agreement is None:
        note("Accuracy was not measured; name a game store with --store")
        return
    print_facts(reduced.agreement.lines(), title=f"{precision} against fp32")
    if not reduced.agreement.good:
        note(
            "Warning: the file loses more than half a point of policy accuracy, or keeps fewer than "
            "98 % of the decided first moves"
        )
