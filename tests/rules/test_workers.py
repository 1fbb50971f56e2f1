"""Processes that answer for the rules engine `fairy`: the same answers, and how they end."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
from slow_rules import on_fairy

from variant_ai.core.reinforce.budget import cpu_seconds
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.fairy.fairy_workers import (
    TARGET_SECONDS,
    RulesWorkers,
    ended_workers,
    look_ahead,
    workers_of,
)
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.catalogue import builtin_specs
from variant_ai.core.spec.loader import load_spec

pytest.importorskip("pyffish")


@pytest.fixture(scope="module")
def rules() -> Rules:
    return make_rules(on_fairy(load_spec(builtin_specs()["atomic"])))


def questions(rules: Rules) -> list[tuple[np.ndarray, int]]:
    start = rules.position()
    mated = rules.position("7k/5Q2/6K1/8/8/8/8/8 w - - 0 1")
    return [(p, int(move)) for p in (start, mated) for move in rules.legal_moves(p)[:5]]


def test_workers_answer_as_the_rules_do(rules: Rules) -> None:
    workers = RulesWorkers(rules.spec, 2)
    requests = questions(rules)
    ahead = workers.ask(requests)
    for (position, move), answer in zip(requests, ahead, strict=True):
        own = look_ahead(rules, position, move)
        assert answer is not None
        assert answer.position.tobytes() == own.position.tobytes()
        assert answer.outcome == own.outcome
        assert answer.moves.tolist() == own.moves.tolist()
    processes = list(workers._processes)
    before = ended_workers.cpu_seconds, cpu_seconds()
    workers.close()
    assert all(process.poll() is not None for process in processes)
    # runs of self-play do not count it, because it would come all at once
    assert ended_workers.cpu_seconds > before[0] + 0.1
    assert cpu_seconds() < before[1] + 0.1


def test_a_worker_that_dies_gives_a_warning_and_no_delay(rules: Rules) -> None:
    workers = RulesWorkers(rules.spec, 2)
    workers.ask(questions(rules)[:2])
    processes = list(workers._processes)
    processes[1].kill()
    processes[1].wait()
    with pytest.warns(RuntimeWarning, match=r"rules of atomic .*status -9.*slower"):
        assert workers.ask(questions(rules)[:2]) == [None, None]
    assert workers.count == 0
    assert workers.ask(questions(rules)[:1]) == [None]
    assert all(process.poll() is not None for process in processes)


@pytest.mark.parametrize("requests", [0, 1_000_000])
def test_workers_end_with_the_process_that_started_them(requests: int) -> None:
    """However it ends, here by a kill, and also if workers have much to do."""
    code = (
        "import os, signal\n"
        "from variant_ai.core.rules import make_rules\n"
        "from variant_ai.core.rules.fairy.fairy_workers import RulesWorkers, _send\n"
        "from variant_ai.core.spec.catalogue import builtin_specs\n"
        "from variant_ai.core.spec.loader import load_spec\n"
        "spec = load_spec(builtin_specs()['atomic'])\n"
        "on_fairy = spec.rules.model_copy(update={'engine': 'fairy'})\n"
        "rules = make_rules(spec.model_copy(update={'rules': on_fairy}))\n"
        "workers = RulesWorkers(rules.spec, 1)\n"
        "start = rules.position()\n"
        "move = int(rules.legal_moves(start)[0])\n"
        "workers.ask([(start, move)])\n"
        f"_send(workers._processes[0].stdin, [(start, move)] * {requests})\n"
        "print(workers._processes[0].pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False, timeout=120
    )
    worker = int(done.stdout)
    for _ in range(600):
        if not runs(worker):
            return
        time.sleep(0.05)
    pytest.fail(f"worker {worker} is still there")


def runs(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_who_has_workers(rules: Rules) -> None:
    mine = workers_of(rules, 1)
    assert mine is not None and mine.count == 1
    assert workers_of(rules) is mine
    assert workers_of(make_rules(load_spec(builtin_specs()["chess"]))) is None


def test_slow_positions_are_requested_a_few_at_a_time(rules: Rules) -> None:
    workers = RulesWorkers(rules.spec, 2)
    workers.start()
    assert workers.is_running
    assert workers.at_once == 2  # nothing is known of their pace
    workers.ask(questions(rules))
    assert workers.at_once == 2 * max(int(TARGET_SECONDS / workers._seconds_each), 1)
    workers._seconds_each = 0.5
    assert workers.at_once == 2
    workers._seconds_each = 0.001
    assert workers.at_once == 60
    workers.close()
    assert not workers.is_running
