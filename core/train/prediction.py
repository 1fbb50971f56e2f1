"""Running a net without teaching it: layout, number format, scores over a source."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from variant_ai.core.nets.network import outputs_of
from variant_ai.core.train.learner import further_outputs
from variant_ai.core.train.metrics import Scores, Soft, score
from variant_ai.core.train.source import Samples, Source
from variant_ai.core.train.workers import ALONE, Workers


def place(net: nn.Module, device: torch.device) -> None:
    """Moves a net to the device, in the channels-last layout that `predict` and training use."""
    untyped: Any = net.to(device)  # torch's stubs do not know the keyword
    untyped.to(memory_format=torch.channels_last)


def autocast(device: torch.device, precision: str) -> torch.autocast | nullcontext[None]:
    """bf16 inside, or nothing."""
    if precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


def soft_of(samples: Samples, device: torch.device) -> Soft | None:
    """The visits of a batch, None where it has none to learn."""
    if samples.choices.shape[1] == 0:
        return None
    return Soft(
        torch.from_numpy(samples.choices).to(device), torch.from_numpy(samples.shares).to(device)
    )


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
            planes = torch.from_numpy(samples.planes).to(device)
            said = outputs_of(net, planes.contiguous(memory_format=torch.channels_last))
            wdl = None if said.wdl is None else torch.softmax(said.wdl.float(), 1)
            action = torch.from_numpy(samples.action).to(device)
            outcome = torch.from_numpy(samples.value).to(device)
            soft = soft_of(samples, device)
            at = scores.put(at, score(said.value, said.policy, action, outcome, wdl, soft))
    if workers.world > 1:
        workers.add_arrays(scores.log_probability, scores.rank, scores.value, scores.outcome)
        if scores.wdl is not None:
            workers.add_arrays(scores.wdl)
    return scores
