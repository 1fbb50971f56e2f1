"""The training loop: it learns, resumes to the same bits, stops, and survives a NaN."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import synthetic
import torch
from safetensors.torch import load_file, save_file
from synthetic import SyntheticSource, assert_same_bits, tiny_config, weights
from torch import nn

from variant_ai.core.errors import DataError
from variant_ai.core.train.loop.trainer import DivergedError, Trainer
from variant_ai.core.train.run.checkpoint import find_checkpoint, list_checkpoints
from variant_ai.core.train.run.initial_weights import random_net
from variant_ai.core.train.run.run_folder import NoObserver, RunLog, read_metrics
from variant_ai.core.train.run.training_settings import TrainConfig


def trained(folder: Path, source: SyntheticSource | None = None, resume: bool = False, **changes):
    trainer = Trainer(
        tiny_config(**changes),
        source or SyntheticSource(),
        SyntheticSource(seed=9),
        folder,
        tensorboard=False,
    )
    return trainer.run(resume=resume)


def recoveries(folder: Path) -> list[dict]:
    return [event for event in read_metrics(folder) if event["kind"] == "recovery"]


def numbers(folder: Path) -> list[dict]:
    """Events of the log without numbers that depend on the clock."""
    timed = ("seconds", "rate", "took")
    return [{k: v for k, v in line.items() if k not in timed} for line in read_metrics(folder)]


def test_it_learns(tmp_path: Path) -> None:
    result = trained(tmp_path, steps=200, validate_every=1000, checkpoint_every=1000)
    assert result.validation is not None
    assert result.validation.policy_accuracy > 0.6  # chance is 1 / 24
    assert result.validation.value_accuracy_sign > 0.7
    assert not result.stopped
    assert result.state.step == 200
    assert not result.net.training


def test_record(tmp_path: Path) -> None:
    result = trained(tmp_path)
    events = read_metrics(tmp_path)
    assert [(e["kind"], e["step"]) for e in events if e["kind"] != "train"] == [
        ("validation", 20),
        ("final", 40),
    ]
    train = [e for e in events if e["kind"] == "train"]
    assert [e["step"] for e in train] == list(range(5, 41, 5))
    assert all(e["positions"] == 5 * 16 for e in train)
    assert train[-1]["epoch"] == 4.0
    assert result.train is not None
    assert train[-1]["policy_loss"] == result.train.policy_loss


def test_the_rate_is_that_of_steps_and_not_of_validations(tmp_path: Path) -> None:
    class Slow(SyntheticSource):
        def sweep(self, *, limit=None):
            time.sleep(2)
            return super().sweep(limit=limit)

    Trainer(
        tiny_config(log_every=5, validate_every=12),
        SyntheticSource(),
        Slow(seed=9),
        tmp_path,
        tensorboard=False,
    ).run()
    rates = {e["step"]: e["rate"] for e in read_metrics(tmp_path) if e["kind"] == "train"}
    assert rates[15] > 5 * 16 / 1.5  # of the five steps that a validation of two seconds broke


def test_checkpoints_are_whole_and_few(tmp_path: Path) -> None:
    result = trained(tmp_path, keep=2)
    found = [c.path.name for c in list_checkpoints(tmp_path / "checkpoints")]
    assert found == ["step-00000030", "step-00000040"]
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == found
    again = find_checkpoint(tmp_path).build()
    planes = torch.rand(3, 4, 4, 3)
    with torch.no_grad():
        for a, b in zip(again(planes), result.net(planes), strict=True):
            # The trained net keeps its channels-last layout, the rebuilt one has torch's own.
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def with_dropout(config: TrainConfig) -> nn.Module:
    """The net, with dropout before its tower, as a plugin may build it."""
    net = random_net(config)
    dropout = nn.Dropout(0.2)
    net.add_module("dropout", dropout)
    net.tower.register_forward_pre_hook(lambda _, inputs: (dropout(inputs[0]),))
    return net


@pytest.mark.parametrize("make", [random_net, with_dropout])
def test_resumed_training_ends_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[TrainConfig], nn.Module]
) -> None:
    monkeypatch.setattr("variant_ai.core.train.loop.trainer.random_net", make)
    trained(tmp_path / "whole")
    source = SyntheticSource()

    class CutError(Exception):
        pass

    class Cutter:
        def stepped(self, step: int) -> None:
            if step == 27:
                raise CutError

        def recorded(self, *_: object) -> None: ...

        def validating(self, step: int) -> None: ...

    trainer = Trainer(
        tiny_config(),
        source,
        SyntheticSource(seed=9),
        tmp_path / "cut",
        observer=Cutter(),
        tensorboard=False,
    )
    with pytest.raises(CutError):
        trainer.run()
    again = SyntheticSource()
    trained(tmp_path / "cut", again, resume=True)
    assert again.served[0] == 20  # the newest checkpoint was that of step 20
    assert_same_bits(
        tmp_path / "whole/checkpoints/step-00000040", tmp_path / "cut/checkpoints/step-00000040"
    )
    assert numbers(tmp_path / "whole") == numbers(tmp_path / "cut")


CHILD = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from synthetic import SyntheticSource, assert_same_bits, tiny_config, weights
from variant_ai.core.train.run.run_folder import NoObserver
from variant_ai.core.train.loop.trainer import Trainer

class Slow(NoObserver):
    def stepped(self, step):
        if step > 12:
            time.sleep(0.05)

Trainer(
    tiny_config(checkpoint_every=6, log_every=4), SyntheticSource(), SyntheticSource(seed=9),
    Path(sys.argv[2]), observer=Slow(), tensorboard=False,
).run()
"""


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 600
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.01)


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is a POSIX matter")
def test_killed_training_resumes_to_the_same_bits(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    here = os.fspath(Path(synthetic.__file__).parent)
    victim = subprocess.Popen([sys.executable, "-c", CHILD, here, os.fspath(cut)])
    wait_for(cut / "checkpoints/step-00000018")
    victim.send_signal(signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    assert not (cut / "checkpoints/step-00000040").exists()
    trained(cut, resume=True, checkpoint_every=6, log_every=4)
    trained(whole, checkpoint_every=6, log_every=4)
    assert_same_bits(whole / "checkpoints/step-00000040", cut / "checkpoints/step-00000040")
    assert numbers(whole) == numbers(cut)


ENDLESS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from synthetic import SyntheticSource, tiny_config
from variant_ai.core.train.loop.trainer import Trainer

Trainer(
    tiny_config(checkpoint_every=2, log_every=4, validate_every=6, steps=120), SyntheticSource(),
    SyntheticSource(seed=9), Path(sys.argv[2]), tensorboard=False,
).run(resume=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is a POSIX matter")
def test_kills_at_any_moment_change_nothing(tmp_path: Path) -> None:
    """Checkpoints come every other step, so many a kill falls into the middle of writing one."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    changes = {"checkpoint_every": 2, "log_every": 4, "validate_every": 6, "steps": 120}
    here, rng = os.fspath(Path(synthetic.__file__).parent), np.random.default_rng(0)
    kills = 0
    for _ in range(3):
        victim = subprocess.Popen([sys.executable, "-c", ENDLESS, here, os.fspath(cut)])
        known = {c.path for c in list_checkpoints(cut / "checkpoints")}
        deadline = time.monotonic() + 600
        while victim.poll() is None and time.monotonic() < deadline:
            if {c.path for c in list_checkpoints(cut / "checkpoints")} - known:
                break
            time.sleep(0.002)
        time.sleep(float(rng.uniform(0, 0.05)))
        victim.kill()
        kills += victim.wait() == -signal.SIGKILL
    assert kills
    trained(cut, resume=True, **changes)
    trained(whole, **changes)
    assert_same_bits(whole / "checkpoints/step-00000120", cut / "checkpoints/step-00000120")
    assert numbers(whole) == numbers(cut)
    names = sorted(path.name for path in (cut / "checkpoints").iterdir())
    assert names == ["step-00000118", "step-00000120"]


def test_what_a_killed_writer_left_is_put_in_order(tmp_path: Path) -> None:
    trained(tmp_path / "whole")
    trained(tmp_path / "cut")
    checkpoints = tmp_path / "cut/checkpoints"
    newest = checkpoints / "step-00000040"
    newest.rename(checkpoints / "step-00000040.old")  # about to be replaced
    (checkpoints / "step-00000040.part").mkdir()
    (checkpoints / "step-00000020.gone").mkdir()
    again = SyntheticSource()
    trained(tmp_path / "cut", again, resume=True)
    assert again.served == []
    assert sorted(p.name for p in checkpoints.iterdir()) == ["step-00000030", "step-00000040"]
    assert numbers(tmp_path / "whole") == numbers(tmp_path / "cut")


def test_ctrl_c_saves_and_goes_on_later(tmp_path: Path) -> None:
    class Interrupting:
        def stepped(self, step: int) -> None:
            if step == 13:
                os.kill(os.getpid(), signal.SIGINT)

        def recorded(self, *_: object) -> None: ...

        def validating(self, step: int) -> None: ...

    trainer = Trainer(
        tiny_config(),
        SyntheticSource(),
        SyntheticSource(seed=9),
        tmp_path / "cut",
        observer=Interrupting(),
        tensorboard=False,
    )
    handler = signal.getsignal(signal.SIGINT)
    result = trainer.run()
    assert signal.getsignal(signal.SIGINT) is handler
    assert result.stopped
    assert result.validation is None
    assert result.state.step == 14
    assert result.checkpoint.path.name == "step-00000014"
    trained(tmp_path / "cut", resume=True)
    trained(tmp_path / "whole")
    assert_same_bits(
        tmp_path / "whole/checkpoints/step-00000040", tmp_path / "cut/checkpoints/step-00000040"
    )
    assert numbers(tmp_path / "whole") == numbers(tmp_path / "cut")


def test_a_poisoned_batch_is_stepped_past(tmp_path: Path) -> None:
    source = SyntheticSource(poisoned=(24,))
    result = trained(tmp_path, source)
    assert result.state.recoveries == 1
    assert result.state.lr_scale == 0.5
    assert result.state.step == 40
    # Step 24 fails after checkpoint 20, which goes on with batch 25.
    assert source.served == [*range(25), *range(25, 45)]
    assert all(torch.isfinite(v).all() for v in weights(result.checkpoint.path).values())
    assert [(e["step"], e["failed_step"]) for e in recoveries(tmp_path)] == [(20, 25)]


def test_recoveries_of_an_earlier_course_no_longer_count(tmp_path: Path) -> None:
    """A run of self-play trains in many courses; one bad batch halved the rate of all later ones."""
    first = trained(tmp_path, SyntheticSource(poisoned=(24,)))
    assert first.state.lr_scale == 0.5
    later = trained(tmp_path, resume=True, steps=80, begins_at=40)
    assert (later.state.lr_scale, later.state.recoveries, later.state.forgiven) == (1.0, 1, 1)
    poisoned = SyntheticSource(poisoned=(95,))
    last = trained(tmp_path, poisoned, resume=True, steps=120, begins_at=80)
    assert (last.state.lr_scale, last.state.recoveries, last.state.forgiven) == (0.5, 2, 1)


def test_a_return_to_the_first_step_stays_in_the_log(tmp_path: Path) -> None:
    with RunLog(tmp_path, tensorboard=False) as log:
        log.write("train", 1, 0.1, {"lr": 1.0})
        log.write("recovery", 0, 0.1, {"failed_step": 2, "recoveries": 1})
    RunLog(tmp_path, 0, recoveries=1, tensorboard=False).close()
    assert [event["kind"] for event in read_metrics(tmp_path)] == ["recovery"]


def test_it_gives_up_after_three_recoveries(tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match="after 3 returns"):
        trained(tmp_path, SyntheticSource(poisoned=tuple(range(12, 30))))
    # Where a return did not help, the checkpoint itself may be at fault.
    assert [e["step"] for e in recoveries(tmp_path)] == [10, 0, 0]


def test_a_ruined_checkpoint_is_gone_behind(tmp_path: Path) -> None:
    class Ruining(NoObserver):
        def stepped(self, step: int) -> None:
            if step == 30 and not ruined:
                path = find_checkpoint(tmp_path).path / "model.safetensors"
                save_file({name: 1e4 * w for name, w in load_file(path).items()}, path)
                (path.parent / "checksums.json").unlink()
                ruined.append(step)

    ruined: list[int] = []
    source = SyntheticSource(poisoned=(31,))
    result = Trainer(
        tiny_config(), source, SyntheticSource(seed=9), tmp_path, observer=Ruining(),
        tensorboard=False,
    ).run()  # fmt: skip
    assert ruined == [30]
    assert [e["step"] for e in recoveries(tmp_path)] == [30, 20]
    assert result.state.step == 40 and result.validation is not None
    assert result.validation.policy_loss < 10


@pytest.mark.parametrize("check_every", (1, 10))
@pytest.mark.parametrize("at", (4, 24))
def test_a_leap_of_the_loss_is_seen_however_rarely_one_looks(
    tmp_path: Path, check_every: int, at: int
) -> None:
    """A GPU is asked for its losses a window at a time, and every one of them counts as a step."""
    trainer = Trainer(
        tiny_config(), SyntheticSource(), SyntheticSource(seed=9), tmp_path, tensorboard=False
    )
    trainer.check_every = check_every
    step, taken = trainer.optimiser.step, []

    def leaping() -> None:
        step()
        taken.append(None)
        if len(taken) == at:
            with torch.no_grad():
                for weight in trainer.net.parameters():
                    weight.mul_(30)

    trainer.optimiser.step = leaping
    result = trainer.run()
    assert result.state.recoveries == 1
    assert result.state.usual_steps == 40
    assert result.validation is not None and result.validation.policy_loss < 4


def test_running_statistics_that_a_step_ruined_are_not_saved(tmp_path: Path) -> None:
    """The loss of a training does not look at them, and every evaluation does."""
    trainer = Trainer(
        tiny_config(), SyntheticSource(), SyntheticSource(seed=9), tmp_path, tensorboard=False
    )
    step, taken = trainer.optimiser.step, []

    def ruining() -> None:
        step()
        taken.append(None)
        if len(taken) == 20:
            norm = next(m for m in trainer.net.modules() if isinstance(m, torch.nn.BatchNorm2d))
            norm.running_var.fill_(float("inf"))

    trainer.optimiser.step = ruining
    result = trainer.run()
    assert [e["step"] for e in recoveries(tmp_path)] == [10]
    assert all(w.isfinite().all() for w in result.net.state_dict().values())


@pytest.mark.parametrize("interrupted", (False, True))
def test_weights_that_a_step_ruined_are_not_saved(tmp_path: Path, interrupted: bool) -> None:
    trainer = Trainer(
        tiny_config(), SyntheticSource(), SyntheticSource(seed=9), tmp_path, tensorboard=False
    )
    step, taken = trainer.optimiser.step, []

    def ruining() -> None:
        step()
        taken.append(None)
        if len(taken) == (15 if interrupted else 20):
            if interrupted:
                signal.raise_signal(signal.SIGINT)
            with torch.no_grad():
                next(trainer.net.parameters()).fill_(float("nan"))

    trainer.optimiser.step = ruining
    result = trainer.run()
    assert [e["step"] for e in recoveries(tmp_path)] == [10]
    assert result.stopped is interrupted
    for checkpoint in list_checkpoints(tmp_path / "checkpoints"):
        assert all(torch.isfinite(w).all() for w in weights(checkpoint.path).values())
    if interrupted:
        result = trained(tmp_path, resume=True)
    assert result.state.step == 40


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    trained(tmp_path)
    with pytest.raises(DataError, match="already holds a training"):
        trained(tmp_path)


def test_a_run_killed_before_its_first_checkpoint_begins(tmp_path: Path) -> None:
    trained(tmp_path / "new", resume=True)
    trained(tmp_path / "whole")
    name = "checkpoints/step-00000040"
    assert_same_bits(tmp_path / "new" / name, tmp_path / "whole" / name)


def test_resuming_a_finished_run_validates_again(tmp_path: Path) -> None:
    first = trained(tmp_path)
    again = trained(tmp_path, resume=True)
    assert again.validation == first.validation


def test_bf16_trains(tmp_path: Path) -> None:
    result = trained(tmp_path, precision="bf16", steps=20)
    assert result.validation is not None
    assert math.isfinite(result.validation.policy_loss)


def test_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    trained(tmp_path)
    newest = find_checkpoint(tmp_path).path
    content = (newest / "model.safetensors").read_bytes()
    (newest / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"step-00000040.model\.safetensors is damaged"):
        find_checkpoint(tmp_path).build()
    (newest / "config.json").write_text(json.dumps({"version": 1}))
    with pytest.raises(DataError, match=r"config\.json is damaged: its sha256 differs"):
        find_checkpoint(tmp_path).config()
    (newest / "checksums.json").unlink()
    with pytest.raises(DataError, match=r"config\.json: variant: a value is needed"):
        find_checkpoint(tmp_path).config()


def flip_a_bit(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimiser.safetensors", "state.json", "config.json"]
)
def test_resuming_goes_back_to_the_newest_whole_checkpoint(tmp_path: Path, name: str) -> None:
    whole = trained(tmp_path / "whole").net.state_dict()
    folder = tmp_path / "damaged"
    trained(folder)
    newest = find_checkpoint(folder).path
    flip_a_bit(newest / name, -3)
    said: list[str] = []
    trainer = Trainer(tiny_config(), SyntheticSource(), SyntheticSource(seed=9), folder)
    result = trainer.run(resume=True, report=said.append)
    assert len(said) == 1
    assert f"{newest / name} is damaged" in said[0]
    assert "Going back to step-00000030" in said[0]
    for key, value in result.net.state_dict().items():
        torch.testing.assert_close(value, whole[key], rtol=0, atol=0)
    assert (newest.parent / f"{newest.name}.damaged").is_dir()
    assert find_checkpoint(folder).path == newest


def test_without_a_whole_checkpoint_nothing_is_touched(tmp_path: Path) -> None:
    trained(tmp_path)
    found = list_checkpoints(tmp_path / "checkpoints")
    for checkpoint in found:
        (checkpoint.path / "model.safetensors").unlink()
    with pytest.raises(DataError, match=r"all .* checkpoints .* are damaged"):
        trained(tmp_path, resume=True)
    assert list_checkpoints(tmp_path / "checkpoints") == found


def test_a_checkpoint_without_checksums_is_taken(tmp_path: Path) -> None:
    """Old checkpoints without checksums."""
    first = trained(tmp_path)
    for checkpoint in list_checkpoints(tmp_path / "checkpoints"):
        (checkpoint.path / "checksums.json").unlink()
    assert trained(tmp_path, resume=True).validation == first.validation


def test_weights_of_another_net_are_refused(tmp_path: Path) -> None:
    trained(tmp_path)
    checkpoint = find_checkpoint(tmp_path)
    from synthetic import tiny_net

    other = checkpoint.config().model_copy(update={"net": tiny_net(channels=12)})
    with pytest.raises(DataError, match="do not fit the net"):
        checkpoint.build(other)


def test_learning_rate_reaches_the_optimiser(tmp_path: Path) -> None:
    trained(tmp_path)
    train = [e for e in read_metrics(tmp_path) if e["kind"] == "train"]
    assert train[0]["lr"] == pytest.approx(1e-4 + (0.2 - 1e-4) * 4 / 6)
    assert np.argmax([e["lr"] for e in train]) == np.argmin([e["momentum"] for e in train])


def test_a_full_disk_leaves_the_older_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.parent.name == "step-00000020.part" and path.name == "optimiser.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left") as raised:
        trained(tmp_path)
    assert raised.value.filename.endswith("step-00000020/optimiser.safetensors")
    names = sorted(p.name for p in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-00000000", "step-00000010"]
    monkeypatch.undo()
    assert trained(tmp_path, resume=True).state.step == 40
