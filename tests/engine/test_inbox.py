"""What waits for the end of a search."""

from __future__ import annotations

import threading

from variant_ai.core.engine.command_queue import MAX_WAITING, Inbox, Waiting
from variant_ai.core.engine.commands import Go, Ignored, IsReady, NewGame, Quit, SetPosition


def test_too_much_is_refused_but_for_what_must_come() -> None:
    inbox = Inbox()
    long = SetPosition(fen=None, moves=())
    assert inbox.put(Waiting(long, size=MAX_WAITING))
    assert not inbox.put(Waiting(long, size=1))
    assert inbox.put(Waiting(IsReady(), 7))
    assert inbox.put(Waiting(Go(), 8, size=100)) and inbox.put(Waiting(Quit(), size=100))
    assert [type(inbox.take().command) for _ in range(4)] == [SetPosition, IsReady, Go, Quit]
    assert inbox.put(Waiting(long, size=MAX_WAITING))  # there is room again


def test_at_the_end_no_search_is_begun() -> None:
    inbox = Inbox()
    for command in (IsReady(), Go(), Ignored(), NewGame()):
        inbox.put(Waiting(command, 1, size=MAX_WAITING // 8))
    assert inbox.quit(answer_first=True)
    assert [type(inbox.take().command) for _ in range(3)] == [IsReady, NewGame, Quit]
    inbox.put(Waiting(NewGame(), size=MAX_WAITING))
    assert not inbox.quit(answer_first=False)
    assert isinstance(inbox.take().command, Quit)
    assert inbox.put(Waiting(NewGame(), size=MAX_WAITING))


def test_who_waits_is_woken() -> None:
    inbox, got = Inbox(), []
    waiting = threading.Thread(target=lambda: got.append(inbox.take().number), daemon=True)
    waiting.start()
    inbox.put(Waiting(IsReady(), 3))
    waiting.join(10)
    assert got == [3]
