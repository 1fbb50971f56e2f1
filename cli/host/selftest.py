"""A short test of rules, encoder, network and search of a variant.

It finds errors that no version number shows: a compiler that miscompiles, a broken torch, a spec
that loads but cannot be played. It also compiles everything that an engine needs.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from variant_ai.core.errors import VariantAIError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from variant_ai.core.encoding import Encoder
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec
    from variant_ai.plugins import Registry

MAX_PLIES = 200
NET_POSITIONS = 4
SEARCHED = 32
"""Visits of the test search."""
NET = "risev2-mobile-small"


@dataclass(frozen=True)
class SelfTest:
    """Result of a self-test."""

    variant: str
    plies: int
    """Plies of random games; each was written as FEN and read, encoded and decoded."""
    seconds: float


def run_self_test(registry: Registry, spec: VariantSpec, seconds: float) -> SelfTest:
    """Play random games for a number of seconds (at least one ply) and check every ply.

    Raises VariantAIError for a wrong result, and any error of the parts that are tested.
    """
    import numpy as np

    from variant_ai.core.encoding import Encoder
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.position import POSITION

    rules = registry.rules(spec)
    encoder = Encoder(spec)
    rng = random.Random(0)
    seen = np.zeros(NET_POSITIONS, POSITION)
    plies = 0
    start = time.monotonic()
    deadline = start + seconds
    while plies == 0 or time.monotonic() < deadline:
        game = Game(rules)
        while game.ply < MAX_PLIES and game.outcome() is None:
            if plies and time.monotonic() > deadline:
                break
            fen = game.fen()
            if rules.fen(rules.position(fen)) != fen:
                raise VariantAIError(f"FEN {fen} has changed after it was read and written")
            moves = [int(move) for move in game.legal_moves()]
            actions = [encoder.action(game.position, move) for move in moves]
            back = [encoder.move(game.position, action) for action in actions]
            if len(set(actions)) != len(moves) or back != moves:
                raise VariantAIError(f"moves and actions do not match (FEN {fen})")
            seen[plies % NET_POSITIONS] = game.position[0]
            game.push(rng.choice(moves))
            plies += 1
    _check_net(encoder.planes(seen[: min(plies, NET_POSITIONS)]), encoder)
    _check_search(rules, encoder)
    return SelfTest(spec.variant, plies, time.monotonic() - start)


def _check_search(rules: Rules, encoder: Encoder) -> None:
    """Search the start position with a few visits."""
    from variant_ai.core.inference import UniformEvaluator
    from variant_ai.core.rules.game import Game
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.search import Search

    evaluator = UniformEvaluator(encoder.shape, encoder.actions)
    with Search(rules.spec, evaluator, rules=rules) as search:
        report = search.run(Limits(simulations=SEARCHED))
    if report.best not in Game(rules).legal_moves() or report.visits != SEARCHED:
        raise VariantAIError(
            f"a search of {SEARCHED} visits made {report.visits} and found move {report.best}"
        )


def _check_net(planes: NDArray[np.float32], encoder: Encoder) -> None:
    """Run a small network with random weights on planes float32 [N, C, H, W]."""
    import torch

    from variant_ai.core.nets import build_net

    net = build_net(
        NET,
        planes=encoder.shape[0],
        board=encoder.shape[1:],
        policy_planes=encoder.policy_shape[0],
        head="map",
    ).eval()
    with torch.inference_mode():
        value, policy = net(torch.from_numpy(planes))
    if value.shape != (len(planes),) or policy.shape != (len(planes), encoder.actions):
        raise VariantAIError(
            f"a network returns {tuple(policy.shape)} instead of {(len(planes), encoder.actions)}"
        )
    if not (torch.isfinite(policy).all() and value.abs().max() <= 1):
        raise VariantAIError("a network returns NaN or values outside [-1, 1]")
