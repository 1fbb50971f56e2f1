"""A worker process that crashes, hangs, or is asked many things at once."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from variant_ai.core.errors import VariantAIError
from variant_ai.core.web.search_schedule import SearchJob, SearchSchedule
from variant_ai.core.web.worker_process import WorkerError, WorkerProcess

PROGRAM = """
import json, sys, time
for line in sys.stdin:
    question = json.loads(line)
    word = question.get("word")
    if word == "crash":
        sys.exit(3)
    if word == "hang":
        time.sleep(60)
    if word == "noise":
        print("not JSON")
    if word == "wrong":
        print(json.dumps({"id": question["id"], "error": "wrong"}), flush=True)
        continue
    if word == "until stop":
        assert json.loads(sys.stdin.readline())["action"] == "stop"
    if word == "reports":
        print(json.dumps({"id": question["id"], "final": False}), flush=True)
    print(json.dumps({"id": question["id"], "final": True, "word": word}), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    path = tmp_path / "worker.py"
    path.write_text(PROGRAM)
    return [sys.executable, str(path)]


def test_a_process_is_started_again(program: list[str]) -> None:
    async def run() -> None:
        worker = WorkerProcess(program, "the worker")
        try:
            assert (await worker.ask({"word": "a"}, 20))["word"] == "a"
            assert (await worker.ask({"word": "noise"}, 20))["word"] == "noise"
            with pytest.raises(VariantAIError, match="wrong"):
                await worker.ask({"word": "wrong"}, 20)
            with pytest.raises(WorkerError, match="the worker ended"):
                await worker.ask({"word": "crash"}, 20)
            answers = await asyncio.gather(*(worker.ask({"word": str(n)}, 20) for n in range(50)))
            assert [answer["word"] for answer in answers] == [str(n) for n in range(50)]
            with pytest.raises(VariantAIError, match=r"this took over 0\.3 seconds"):
                await worker.ask({"word": "hang"}, 0.3)
            assert (await worker.ask({"word": "b"}, 20))["word"] == "b"
            assert worker.started == 3
        finally:
            await worker.close()

    asyncio.run(run())


def test_searches_take_turns(program: list[str]) -> None:
    async def run() -> None:
        schedule = SearchSchedule([WorkerProcess(program, "the worker")], slice=0.1)
        order: list[str] = []
        finished = asyncio.Event()

        def job(owner: str, word: str) -> SearchJob:
            def answered(answer: dict[str, object]) -> None:
                if answer.get("final") or "error" in answer:
                    order.append(f"{owner}{'!' if 'error' in answer else ''}")
                    if len(order) == 6:
                        finished.set()

            return SearchJob(owner, {"word": word}, answered, 5.0)

        for owner, word in [
            ("a", "1"),
            ("a", "2"),
            ("a", "crash"),
            ("b", "1"),
            ("b", "2"),
            ("c", "1"),
        ]:
            await schedule.submit(job(owner, word))
        schedule.start()
        await asyncio.wait_for(finished.wait(), 30)
        assert order == ["a", "b", "c", "a", "b", "a!"]
        await schedule.close()

    asyncio.run(run())


def test_a_visitor_who_leaves_waits_no_more(program: list[str]) -> None:
    async def run() -> None:
        schedule = SearchSchedule([WorkerProcess(program, "the worker")], slice=0.1)
        answers: list[str] = []
        done = asyncio.Event()
        gone = SearchJob("gone", {"word": "1"}, lambda answer: answers.append("gone"), 5.0)
        await schedule.submit(gone)
        schedule.forget("gone")
        await schedule.submit(SearchJob("here", {"word": "1"}, lambda answer: done.set(), 5.0))
        schedule.start()
        await asyncio.wait_for(done.wait(), 30)
        assert answers == []
        await schedule.close()

    asyncio.run(run())


def test_no_search_is_lost_among_many(program: list[str]) -> None:
    """Searches that begin while others end, with questions between them."""

    async def run() -> None:
        schedule = SearchSchedule([WorkerProcess(program, "the worker")], slice=0.01)
        schedule.start()

        async def ask(owner: str, question: dict[str, object]) -> None:
            done = asyncio.Event()

            def answered(answer: dict[str, object]) -> None:
                if answer.get("final"):
                    done.set()

            await schedule.submit(SearchJob(owner, question, answered, 5.0))
            await done.wait()

        async def visitor(owner: str) -> None:
            for number in range(60):
                await asyncio.gather(
                    ask(owner, {"word": "reports", "report_every": 1}),
                    ask(owner, {"word": str(number), "action": "policy"}),
                )

        await asyncio.wait_for(asyncio.gather(*map(visitor, "abc")), 60)
        await schedule.close()

    asyncio.run(run())


Answers = list[dict[str, Any]]


def test_searches_go_on_after_a_fault(program: list[str], caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        schedule = SearchSchedule([WorkerProcess(program, "the worker")], slice=0.1)
        answers: Answers = []
        done = asyncio.Event()

        def answered(answer: dict[str, Any]) -> None:
            if "error" not in answer:
                raise OverflowError("too much")
            answers.append(answer)

        await schedule.submit(SearchJob("a", {"word": "1"}, answered, 5.0))
        await schedule.submit(SearchJob("b", {"word": "1"}, lambda answer: done.set(), 5.0))
        schedule.start()
        await asyncio.wait_for(done.wait(), 20)
        assert "could not answer (OverflowError)" in answers[0]["error"]
        await schedule.close()

    asyncio.run(run())
    assert "too much" in caplog.text


def test_a_process_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    async def run() -> None:
        worker = WorkerProcess([str(tmp_path / "nothing")], "the worker")
        schedule = SearchSchedule([worker], slice=0.1)
        schedule.start()
        for _ in range(2):
            answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
            await schedule.submit(SearchJob("a", {"word": "1"}, answers.put_nowait, 5.0))
            answer = await asyncio.wait_for(answers.get(), 10)
            assert "the worker cannot be started" in answer["error"]
            assert str(tmp_path) not in answer["error"]
        await schedule.close()

    asyncio.run(run())


def test_a_waiting_search_is_stopped_at_once() -> None:
    async def run() -> None:
        schedule = SearchSchedule([], slice=0.1)  # nobody works
        answers: Answers = []
        search = SearchJob("a", {"word": "1"}, answers.append, 5.0)
        policy = SearchJob("a", {"word": "1", "action": "policy"}, answers.append, 5.0)
        for job in (search, policy):
            await schedule.submit(job)
        schedule.stop(search)
        assert answers.pop()["stopped_by"] == "stop"
        schedule.stop(policy)
        assert "stopped" in answers.pop()["error"]
        assert not schedule._waiting
        schedule.stop(search)
        assert answers == []

    asyncio.run(run())


def test_a_stop_while_the_process_starts_is_not_lost(program: list[str]) -> None:
    async def run() -> None:
        schedule = SearchSchedule([WorkerProcess(program, "the worker")], slice=0.1)
        schedule.start()
        done = asyncio.Event()
        job = SearchJob("a", {"word": "until stop"}, lambda answer: done.set(), 5.0)
        await schedule.submit(job)
        while job.running is None:
            await asyncio.sleep(0)
        assert not job.running[1].sent.is_set()
        schedule.stop(job)
        await asyncio.wait_for(done.wait(), 10)
        await schedule.close()

    asyncio.run(run())
