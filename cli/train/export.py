"""`variant-ai export`: a checkpoint as an ONNX file, in fp32, fp16 or int8."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import (
    examples,
    fail,
    json_option,
    load_variant,
    note,
    print_facts,
    print_json,
    seed_option,
    variant_option,
)
from variant_ai.cli.common.network_options import let_threads_sleep
from variant_ai.cli.common.search_options import named_net, spec_of_model

if TYPE_CHECKING:
    from variant_ai.core.spec.schema import VariantSpec
    from variant_ai.core.train.measure.precision_agreement import Sample
    from variant_ai.core.train.measure.reduced_precision import Reduced

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
@click.argument("model", metavar="CHECKPOINT|FILE|packaged", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The file to write.",
)
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp16", "int8"]),
    default="fp32",
    show_default=True,
    help="Numbers the file computes with.",
)
@click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Games to calibrate int8 on and to measure the loss on; by default those of the run, or "
    "those that come with the variant.",
)
@click.option(
    "--positions",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    help="Positions the loss is measured on.",
)
@click.option(
    "--calibrate",
    type=click.IntRange(min=BATCH),
    default=512,
    show_default=True,
    help="Positions int8 is calibrated on.",
)
@click.option(
    "--spare",
    type=click.IntRange(0, 2),
    help="int8: leave nothing (0), the policy's last layer (1), or also the shortcuts' sums (2) in "
    "fp32; by default as little as keeps the net's choices.",
)
@variant_option(required=False, help="Refuse a checkpoint of another variant or spec.")
@seed_option()
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
    as_json: bool,
) -> None:
    """Write a net as an ONNX file, from a run directory (its newest checkpoint) or a checkpoint.

    The file carries variant, spec hashes, net, data hashes and metrics, and is compared with the
    net before it is kept. fp16 and int8 are made from an fp32 ONNX file too. What they lose is
    printed: policy accuracy, share of positions with the same first move (all, and those where the
    fp32 net's first two moves differ by over 0.05), value difference. An int8 file knows answers
    by which an evaluator finds out that a processor computes int8 wrongly and runs fp32 instead.
    """
    from variant_ai.core.engine.packaged_nets import PACKAGED

    let_threads_sleep()
    given = load_variant(variant) if variant is not None else None
    said: dict[str, Any] = {}
    stores: tuple[Path, ...] = ()
    with tempfile.TemporaryDirectory() as folder:
        if given is not None or str(model) == PACKAGED:
            model, _ = named_net(model, variant)
        if model.suffix == ".onnx":
            if precision == "fp32":
                fail(f"{model} is an ONNX file already; --precision fp16 or int8 makes another")
            source = model
            spec = given or spec_of_model(model, None)
        else:
            source = output if precision == "fp32" else Path(folder) / "fp32.onnx"
            said, stores, spec = _from_checkpoint(model, source, given)
        said["path"] = output
        if precision != "fp32":
            # those of a training may be gone by now
            chosen = [path for path in stores if path.is_file()] if store is None else [store]
            if not chosen:
                chosen = _sample(spec)
            reduced = _reduce(
                source, output, precision, spec, chosen, positions, calibrate, spare, seed
            )
            said |= {
                "precision": precision,
                "spared": reduced.spared,
                "agreement": reduced.agreement and reduced.agreement.as_dict(),
            }
    said["bytes"] = output.stat().st_size
    if as_json:
        print_json(said)
        return
    if "net" in said:
        note(
            f"{output}: {said['variant']}, {said['net']}, step {said['step']:,}; "
            f"differs from torch by at most {said['difference']:.1g}"
        )
    if precision != "fp32":
        _print(output, precision, reduced)


def _sample(spec: VariantSpec) -> list[Path]:
    """The games that come with the variant, if there are any."""
    from variant_ai.plugins import registry

    entry = registry().entry_of(spec)
    if entry is None or entry.sample is None or not entry.sample.is_file():
        return []
    note(f"No --store: positions are taken from the games that come with {spec.variant}.")
    return [entry.sample]


def _from_checkpoint(
    checkpoint: Path, target: Path, given: VariantSpec | None
) -> tuple[dict[str, Any], tuple[Path, ...], VariantSpec]:
    """Writes fp32; returns what to report, the stores of the training, and the spec."""
    import json

    from variant_ai.core.train.run.checkpoint import find_checkpoint
    from variant_ai.core.train.run.publish import publish
    from variant_ai.core.train.run.training_run import RESULTS, require_spec, run_spec
    from variant_ai.plugins import registry

    found = find_checkpoint(checkpoint)
    config = found.config()
    if given is not None:
        require_spec(config, given, str(checkpoint))
    state = found.state()
    metrics = {}
    results = found.path.parent.parent / RESULTS
    if results.is_file():
        said = json.loads(results.read_text())
        if said.get("steps") == state.step:
            metrics = {name: said.get(name) for name in ("validation", "baseline_accuracy")}
    net = found.build(config, registry().builders())
    difference = publish(config, net, target, metrics, state.step)
    stores = tuple(Path(path) for path in (*config.data.validation_stores, *config.data.stores))
    report = {
        "path": target,
        "variant": config.variant,
        "net": config.net.title,
        "step": state.step,
        "difference": difference,
    }
    return report, stores, given or run_spec(config)


def _reduce(
    source: Path,
    output: Path,
    precision: str,
    spec: VariantSpec,
    stores: list[Path],
    positions: int,
    calibrate: int,
    spare: int | None,
    seed: int,
) -> Reduced:
    from variant_ai.core.train.measure.reduced_precision import write_fp16, write_int8

    if precision == "int8" and not stores:
        fail("int8 is calibrated on real positions: name a game store with --store")
    calibration, check = _positions(source, spec, stores, calibrate, positions, seed)
    if precision == "fp16":
        return write_fp16(source, output, spec, check)
    return write_int8(source, output, spec, calibration, check, spare=spare, say=note)


def _positions(
    source: Path, spec: VariantSpec, stores: list[Path], calibrate: int, positions: int, seed: int
) -> tuple[list[Sample], list[Sample]]:
    """Random positions to calibrate on, and others to check with; none without a store."""
    from variant_ai.core.data.sample.sampler import Sampler
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.inference.model_file import read_model_file
    from variant_ai.core.train.measure.precision_agreement import take
    from variant_ai.plugins import registry

    if not stores:
        return [], []
    flat = read_model_file(source).info.head == "flat"
    encoder = Encoder(spec, "flat" if flat else "map")
    rules = registry().rules(spec)
    sampler = Sampler(
        [Store(path, spec) for path in stores], encoder, batch=BATCH, seed=seed, rules=rules
    )
    calibration = take(sampler, encoder, rules, calibrate)
    return calibration, take(sampler, encoder, rules, positions, first=len(calibration))


def _print(output: Path, precision: str, reduced: Reduced) -> None:
    size = output.stat().st_size
    stays = f"; in fp32: {', '.join(reduced.spared)}" if reduced.spared else ""
    note(f"{output}: {precision}, {size / 1e6:.1f} MB{stays}")
    if reduced.agreement is None:
        note("Nothing was measured: name a game store with --store")
        return
    print_facts(reduced.agreement.lines(), title=f"{precision} against fp32")
    if not reduced.agreement.good:
        note(
            "Warning: it loses more than half a point of policy accuracy, or keeps fewer than "
            "98 % of the decided first moves"
        )
