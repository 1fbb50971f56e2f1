"""`variant-ai lr-find`: the learning-rate range test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from variant_ai.cli.common.console import (
    FiniteRange,
    examples,
    fail,
    json_option,
    note,
    print_facts,
    print_json,
    progress,
)
from variant_ai.cli.common.network_options import calm_threads
from variant_ai.cli.common.training_options import make_request, recipe_options, tell_sample


@click.command(
    epilog=examples(
        "variant-ai lr-find -V NAME --data games.store",
        "variant-ai lr-find -V NAME --data games.store --blocks 5 --channels 64 --batch 256",
        "# of a net that is to be trained further",
        "variant-ai lr-find -V NAME --data games.store --from runs/mine --lr-to 1",
    )
)
@recipe_options
@click.option(
    "--lr-from",
    "low",
    type=FiniteRange(0, min_open=True),
    default=1e-4,
    show_default=True,
    help="Learning rate of the first step.",
)
@click.option(
    "--lr-to",
    "high",
    type=FiniteRange(0, min_open=True),
    default=10.0,
    show_default=True,
    help="Learning rate of the last step, if the loss does not rise before.",
)
@click.option(
    "--steps", type=click.IntRange(min=40), default=200, show_default=True, help="Steps in all."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("lr-find.png"),
    show_default=True,
    help="The picture to write.",
)
@json_option
def command(
    low: float, high: float, steps: int, output: Path, as_json: bool, **options: Any
) -> None:
    """Find how great a learning rate may be, by training a little at ever greater ones.

    The picture shows the loss over the rate; the rate suggested is for --lr of `train`, with the
    same net, data and batch. Nothing else is kept.
    """
    calm_threads()
    from dataclasses import replace

    from variant_ai.core.train.loop.trainer import Trainer
    from variant_ai.core.train.run.plan import prepare
    from variant_ai.plugins import registry
    from variant_ai_experiments.lr_range import draw_range, range_test

    if low >= high:
        raise click.UsageError(f"--lr-from {low:g} is not below --lr-to {high:g}")
    if not output.parent.is_dir():
        fail(f"{output.parent} is no folder to write {output.name} into")
    request, rules = make_request(options)
    builders = registry().builders()
    prepared = prepare(replace(request, steps=steps), rules=rules, builders=builders)
    config = prepared.config
    tell_sample(options, config.variant)
    trainer = Trainer(config, prepared.train, None, Path(), builders=builders, tensorboard=False)
    trainer.take_start()
    note(
        f"{config.net.title}, batches of {config.batch} on {config.device} in {config.precision}: "
        f"{steps} steps from {low:g} to {high:g}"
    )
    with progress() as bar:
        task = bar.add_task("steps", total=steps)

        def tell(step: int, rate: float, loss: float) -> None:
            bar.update(task, completed=step, note=f"rate {rate:.2g}, loss {loss:.3f}")

        test = range_test(trainer, low=low, high=high, steps=steps, tell=tell)
    draw_range(test, output, f"{config.variant}, {config.net.title}, batch {config.batch}")
    if as_json:
        print_json({**{name: getattr(test, name) for name in test.__dataclass_fields__},
                    "batch": config.batch, "picture": output})  # fmt: skip
        return
    print_facts(
        [
            ("suggested", f"{test.suggested:g}  (variant-ai train --lr {test.suggested:g})"),
            ("least loss", f"at {test.least:.2g}"),
            ("falls fastest", f"at {test.steepest:.2g}"),
            ("by default", f"{config.lr_max:g} at batch {config.batch}"),
            ("picture", output),
        ]
    )
    if not test.diverged:
        note("The loss had not risen again: try a greater --lr-to.")
