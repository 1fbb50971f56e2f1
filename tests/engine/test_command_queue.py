"""The queue of commands that wait for the end of a search."""

from __future__ import annotations

import threading

from variant_ai.core.engine.command_queue import MAX_WAITING, CommandQueue, QueuedCommand
from variant_ai.core.engine.commands import Go, Ignored, IsReady, NewGame, Quit, SetPosition


def test_a_full_queue_still_accepts_go_and_quit() -> None:
    queue = CommandQueue()
    long = SetPosition(fen=None, moves=())
    assert queue.put(QueuedCommand(long, size=MAX_WAITING))
    assert not queue.put(QueuedCommand(long, size=1))
    assert queue.put(QueuedCommand(IsReady(), 7))
    assert queue.put(QueuedCommand(Go(), 8, size=100)) and queue.put(
        QueuedCommand(Quit(), size=100)
    )
    assert [type(queue.take().command) for _ in range(4)] == [SetPosition, IsReady, Go, Quit]
    assert queue.put(QueuedCommand(long, size=MAX_WAITING))  # there is room again


def test_quit_drops_waiting_searches() -> None:
    queue = CommandQueue()
    for command in (IsReady(), Go(), Ignored(), NewGame()):
        queue.put(QueuedCommand(command, 1, size=MAX_WAITING // 8))
    assert queue.quit(answer_first=True)
    assert [type(queue.take().command) for _ in range(3)] == [IsReady, NewGame, Quit]
    queue.put(QueuedCommand(NewGame(), size=MAX_WAITING))
    assert not queue.quit(answer_first=False)
    assert isinstance(queue.take().command, Quit)
    assert queue.put(QueuedCommand(NewGame(), size=MAX_WAITING))


def test_put_wakes_the_waiting_thread() -> None:
    queue, got = CommandQueue(), []
    waiting = threading.Thread(target=lambda: got.append(queue.take().number), daemon=True)
    waiting.start()
    queue.put(QueuedCommand(IsReady(), 3))
    waiting.join(10)
    assert got == [3]
