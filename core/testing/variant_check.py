"""One variant in whole: the conformance kit of its spec, and a quick run through all rooms."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from variant_ai.core.encoding import Encoder, Head
from variant_ai.core.errors import SpecError, VariantAIError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.testing.encoding_conformance import check_encoder
from variant_ai.core.testing.game_conformance import STYLES, check_game_ends
from variant_ai.core.testing.random_games import Report
from variant_ai.core.testing.rules_conformance import check_rules

if TYPE_CHECKING:
    from variant_ai.core.nets.interface import NetConfig

SIMULATIONS = 32
"""Simulations of the search."""


def check_spec(
    spec: VariantSpec,
    positions: int,
    seed: int,
    *,
    on_start: Callable[[str], object] = lambda name: None,
) -> list[Report]:
    """Run the conformance kit on a spec: `rules`, `game ends`, `encoding` and `net`, in this order.

    A check that does not apply is skipped, and its report says why. positions: of random games,
    fewer where a check takes long. on_start: called with the name of each check before it runs.
    """
    checks: dict[str, Callable[[], Report]] = {
        "rules": lambda: check_rules(spec, positions, seed),
        "game ends": lambda: _game_ends(spec, positions, seed),
        "encoding": lambda: _encoding(spec, positions, seed),
        "net": lambda: check_export(spec),
    }
    reports: list[Report] = []
    for name, check in checks.items():
        report = Report(name, spec.variant)
        if name in ("rules", "game ends") and spec.fairy is None:
            report.skipped = "the spec has no `fairy:` name to compare its rules with"
        elif name == "game ends" and not reports[0].agrees:
            report.skipped = "the rules differ already, so Fairy-Stockfish cannot follow the games"
        else:
            on_start(name)
            begun = time.monotonic()
            try:
                report = check()
            except VariantAIError as error:  # a mistake in the spec
                report.first_difference = str(error)
            report.seconds = time.monotonic() - begun
        reports.append(report)
    return reports


def _game_ends(spec: VariantSpec, positions: int, seed: int) -> Report:
    games = max(len(STYLES), positions // 100)
    plies = max(20, min(400, 2 * positions // games))
    try:
        return check_game_ends(spec, games, seed, max_plies=plies)
    except SpecError as error:
        return Report("game ends", spec.variant, skipped=str(error))


def _encoding(spec: VariantSpec, positions: int, seed: int) -> Report:
    fewer = positions if spec.rules.engine == "kernel" else max(1, positions // 20)
    return check_encoder(spec, fewer, seed)


def check_export(spec: VariantSpec) -> Report:
    """Export a small network with each head to ONNX, run it, and compare its shapes with the
    spec."""
    import onnxruntime

    try:
        from variant_ai.core.nets.onnx_export import INPUT, OUTPUTS, export_onnx
    except ModuleNotFoundError as error:
        return Report("net", spec.variant, skipped=f"{error.name} is not installed")
    report = Report("net", spec.variant)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    heads: tuple[Head, ...] = ("map", "flat")
    for head in heads:
        encoder = Encoder(spec, head)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.onnx"
            config = _small_net(encoder)
            metadata = {"variant": spec.variant, "head": head}
            export_onnx(config.build(), path, metadata, shape=config.shape)
            session = onnxruntime.InferenceSession(
                path.read_bytes(), options, providers=["CPUExecutionProvider"]
            )
        planes = np.repeat(encoder.planes(make_rules(spec).position()), 2, axis=0)
        value, policy = session.run(list(OUTPUTS), {INPUT: planes})
        report.counts[f"{head} head outputs"] = int(policy.shape[1])
        if value.shape != (2, 1) or policy.shape != (2, encoder.actions):
            report.first_difference = (
                f"{head} head: value {value.shape} and policy {policy.shape} of two positions; "
                f"expected (2, 1) and (2, {encoder.actions})"
            )
            break
    return report


def check_variant(rules: Rules, seconds: float) -> Report:
    """Check positions of random games for some seconds, then a small network and a short search.

    This finds problems that no version number shows: a compiler that miscompiles, a broken torch, a
    spec that loads but cannot be played. It also compiles what an engine needs, so that its first
    game does not wait for that. Errors of any kind are passed on.
    """
    begun = time.monotonic()
    encoder = Encoder(rules.spec)
    report = check_encoder(rules, sys.maxsize, seed=0, seconds=seconds)
    report.check = "variant"
    report.first_difference = (
        report.first_difference or _network(rules, encoder) or _search(rules, encoder)
    )
    report.seconds = time.monotonic() - begun
    return report


def _network(rules: Rules, encoder: Encoder) -> str:
    """Run a network on the start position, and return a fault of its outputs, or nothing. Without torch
    nothing is run."""
    try:
        import torch
    except ModuleNotFoundError:
        return ""
    planes = torch.from_numpy(encoder.planes(rules.position()))
    with torch.inference_mode():
        value, policy = _small_net(encoder).build().eval()(planes)
    if value.shape != (1,) or policy.shape != (1, encoder.actions):
        shapes = f"value {tuple(value.shape)} and policy {tuple(policy.shape)}"
        return f"a network returned {shapes} for one position with {encoder.actions} actions"
    if not (torch.isfinite(policy).all() and value.abs().max() <= 1):
        return "a network returned values that are not finite or exceed 1"
    return ""


def _search(rules: Rules, encoder: Encoder) -> str:
    """Search the start position; return what is wrong with the result, or nothing."""
    from variant_ai.core.inference import UniformEvaluator
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.search import Search

    evaluator = UniformEvaluator(encoder.shape, encoder.actions)
    with Search(rules.spec, evaluator, rules=rules) as search:
        found = search.run(Limits(simulations=SIMULATIONS))
    if found.best in Game(rules).legal_moves() and found.visits == SIMULATIONS:
        return ""
    return f"a search of {SIMULATIONS} visits made {found.visits} and returned move {found.best}"


def _small_net(encoder: Encoder) -> NetConfig:
    """A network of one block with the encoder's head."""
    from variant_ai.core.nets import configure_for

    return configure_for("risev2-mobile", encoder, blocks=1, channels=16)
