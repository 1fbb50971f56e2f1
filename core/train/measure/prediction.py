"""Running a net without teaching it: number format, scores over a source."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import nn

from variant_ai.core.nets.network import outputs_of
from variant_ai.core.train.loop.distributed import ALONE, Workers
from variant_ai.core.train.loop.learner import further_outputs
from variant_ai.core.train.loop.placement import place_batch
from variant_ai.core.train.loop.position_source import Source
from variant_ai.core.train.measure.metrics import Scores, score


def autocast(device: torch.device, precision: str) -> torch.autocast | nullcontext[None]:
    """bf16 inside, or nothing."""
    if precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


def predict(
    net: nn.Module,
    source: Source,
    device: torch.device,
    precision: str = "fp32",
    *,
    limit: int | None = None,
    workers: Workers = ALONE,
) -> Scores:
    """Scores of the net on the positions of a source, in the order of its sweep.

    Several processes take turns at its batches; each of them ends with all scores.
    """
    net.eval()
    n = source.positions if limit is None else min(limit, source.positions)
    scores = Scores.room(n, wdl="wdl" in further_outputs(net))
    at = 0
    with torch.inference_mode(), autocast(device, precision):
        for number, samples in enumerate(source.sweep(limit=limit)):
            if number % workers.world != workers.rank:
                at += len(samples.action)
                continue
            batch = place_batch(samples, device)
            said = outputs_of(net, batch.planes)
            wdl = None if said.wdl is None else torch.softmax(said.wdl.float(), 1)
            of_batch = score(said.value, said.policy, batch.action, batch.outcome, wdl, batch.soft)
            at = scores.put(at, of_batch)
    if workers.world > 1:
        workers.add_arrays(scores.log_probability, scores.rank, scores.value, scores.outcome)
        if scores.wdl is not None:
            workers.add_arrays(scores.wdl)
    return scores
