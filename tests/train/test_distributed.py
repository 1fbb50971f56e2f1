"""Steps in parts, one after the other or by several processes, and the average of weights."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from synthetic import SyntheticSource, assert_same_bits, tiny_config
from torch import nn

from variant_ai.core.errors import VariantAIError
from variant_ai.core.nets.onnx_export import export_onnx
from variant_ai.core.train.loop.devices import Workers
from variant_ai.core.train.loop.learner import NormStatistics, WeightAverage
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai.core.train.run.checkpoint import find_checkpoint
from variant_ai.core.train.run.run_folder import read_metrics

PARTS = {"batch": 16, "micro_batches": 2, "steps": 12, "checkpoint_every": 6, "log_every": 4}
"""Two parts of 8 positions."""


def train(folder: Path, *, resume: bool = False, **changes: object):
    config = tiny_config(**{**PARTS, **changes})
    source = SyntheticSource(batch=config.batch // config.micro_batches)
    check = SyntheticSource(seed=9)
    return Trainer(config, source, check, folder, tensorboard=False).run(resume=resume)


def record(folder: Path) -> list[dict]:
    timed = ("seconds", "rate", "took")
    return [{k: v for k, v in line.items() if k not in timed} for line in read_metrics(folder)]


def test_each_process_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert Workers(1, 2, 1).device(gpu) == torch.device("cuda:1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    with pytest.raises(VariantAIError, match="process 1 of this machine has no GPU: there are 1;"):
        Workers(1, 2, 1).device(gpu)
    assert Workers(1, 2, 1).device(torch.device("cpu")).type == "cpu"
    monkeypatch.setenv("SLURM_PROCID", "1")  # which shows each process one GPU
    assert Workers(1, 2, 1).device(gpu) == torch.device("cuda:0")


RANK = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent)]
from synthetic import SyntheticSource, tiny_config
from test_distributed import PARTS
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai.core.train.loop.devices import open_workers

class Share(SyntheticSource):
    @property
    def steps_per_epoch(self):
        return super().steps_per_epoch // workers.world

    def whole(self):
        return SyntheticSource(batch=8)

    def batches(self, first=0, last=None):
        for step in range(first, last):
            yield self.batch(step * workers.world + workers.rank)

with open_workers() as workers:
    extra = {"wdl": True, "plies_left": True} if "heads" in sys.argv[3:] else {}
    from synthetic import tiny_net
    start = next((word for word in sys.argv[3:] if word.endswith(".onnx")), "")
    config = tiny_config(**PARTS, net=tiny_net(**extra), validate_every=6, start_from=start)
    trainer = Trainer(config, Share(batch=8), SyntheticSource(seed=9), Path(sys.argv[2]),
                      tensorboard=False, workers=workers)
    result = trainer.run(resume="resume" in sys.argv[3:])
    assert result.validation is not None
"""


LEAVE_EARLY = """
import sys, torch
import torch.distributed as dist
from variant_ai.core.train.loop.devices import open_workers

with open_workers() as workers:
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    alone = [dist.new_group([rank]) for rank in range(2)][workers.rank]
    sys.setswitchinterval(1000)  # no other thread gets the interpreter unless it is given away
    for _ in range(100_000):
        flags = torch.ones(2)
        dist.all_reduce(flags, group=alone)
        if flags._use_count() > 1:  # a thread of gloo still holds it
            break
    else:
        raise AssertionError("gloo always released the tensor before it answered")
"""


def free_port() -> str:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return str(listening.getsockname()[1])


def two_processes(script: str, *words: str) -> None:
    """Start two processes like torchrun."""
    port = free_port()
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script, *words],
            env={
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
                "OMP_NUM_THREADS": "1",
                "CUDA_VISIBLE_DEVICES": "",
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        errors = [child.communicate(timeout=1200)[1] for child in children]
    finally:
        for child in children:
            child.kill()
    assert [child.returncode for child in children] == [0, 0], "\n".join(errors)


def two_trainings(folder: Path, *words: str) -> None:
    two_processes(RANK, os.fspath(Path(__file__).parent), os.fspath(folder), *words)


def test_leaving_right_after_a_message_to_the_others() -> None:
    for _ in range(2):  # without the wait, one of two processes usually aborts
        two_processes(LEAVE_EARLY)


def test_two_processes_are_two_parts_of_one(tmp_path: Path) -> None:
    from synthetic import tiny_net

    two, one = tmp_path / "two", tmp_path / "one"
    two_trainings(two, "heads")
    train(one, net=tiny_net(wdl=True, plies_left=True), validate_every=6)
    name = "checkpoints/step-00000012"
    assert_same_bits(two / name, one / name)
    assert record(two) == record(one)
    assert {"wdl_loss", "plies_error"} <= record(one)[0].keys()


def test_two_processes_start_from_a_file_like_one(tmp_path: Path) -> None:
    """The statistics of the norms come from the same positions."""
    from synthetic import tiny_net

    config = tiny_net()
    net = config.build()
    with torch.no_grad():  # as after a training, whose norms shift
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.uniform_(module.bias, -0.5, 0.5)
    file = tmp_path / "net.onnx"
    export_onnx(net, file, {"net_config": config.model_dump_json()}, shape=config.shape)
    two, one = tmp_path / "two", tmp_path / "one"
    two_trainings(two, str(file))
    train(one, start_from=str(file), validate_every=6)
    name = "checkpoints/step-00000012"
    assert_same_bits(two / name, one / name)


@pytest.mark.parametrize(
    ("norm", "square"), [(nn.BatchNorm2d(2), (3, 3)), (nn.BatchNorm1d(2), (9,))]
)
def test_running_statistics_are_the_mean_of_the_parts(
    norm: nn.BatchNorm2d | nn.BatchNorm1d, square: tuple[int, ...]
) -> None:
    net = nn.Sequential(norm)
    net.train()
    halves = [torch.rand(4, 2, *square), torch.rand(4, 2, *square) + 1]
    axes = (0, *range(2, 2 + len(square)))
    expected = torch.stack([half.mean(axes) for half in halves]).mean(0) * 0.1
    statistics = NormStatistics(net)
    for order in (halves, halves[::-1]):
        norm.reset_running_stats()
        statistics.begin()
        for half in order:
            net(half)
            statistics.end_part()
        statistics.end(2)
        torch.testing.assert_close(norm.running_mean, expected)
        assert norm.num_batches_tracked.item() == 1


@pytest.mark.parametrize(("batch", "parts", "world"), [(16, 3, 1), (16, 2, 4), (16, 1, 2)])
def test_parts_that_cannot_be_shared(batch: int, parts: int, world: int) -> None:
    config = tiny_config(batch=batch, micro_batches=parts)
    with pytest.raises(VariantAIError, match=r"equal parts|share the"):
        Trainer(config, SyntheticSource(), None, Path(), workers=Workers(0, world))


def test_running_mean_by_hand() -> None:
    net = nn.Linear(1, 1, bias=False)
    nn.init.constant_(net.weight, 1.0)
    average = WeightAverage(net, 0.5)
    expected = 1.0
    for step, value in enumerate([3.0, 5.0, -1.0], 1):
        nn.init.constant_(net.weight, value)
        average.update(step)
        decay = min(0.5, step / (step + 9))
        expected = decay * expected + (1 - decay) * value
    assert average.net.weight.item() == pytest.approx(expected)


def test_the_running_mean_is_kept_and_resumed(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", ema=0.9)
    train(tmp_path / "cut", ema=0.9, steps=12)
    found = find_checkpoint(tmp_path / "whole")
    last, mean = found.model(), found.average()
    assert mean is not None
    assert not all(torch.equal(last[name], mean[name]) for name in last)
    for name, value in found.build().state_dict().items():
        assert torch.equal(value, mean[name])
        assert torch.equal(value, whole.net.state_dict()[name].contiguous())
    # Cut after step 6 and resumed, the average is the same.
    for path in (tmp_path / "cut/checkpoints").glob("step-00000012*"):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    train(tmp_path / "cut", ema=0.9, resume=True)
    again = find_checkpoint(tmp_path / "cut").average()
    assert again is not None
    assert all(torch.equal(again[name], mean[name]) for name in mean)
