"""A server of the page in a process of its own, and a browser that plays on it by clicks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

CHROMIUM = next(
    (
        path
        for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
        if os.path.exists(path)
    ),
    None,
)
ADDRESS = re.compile(r"the page is at (http://\S+)")
START_SECONDS = 60.0


def open_page(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("cg-board piece")


class Server:
    """`variant-ai web` as a process."""

    def __init__(self, *options: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "variant_ai.cli.main", "web", "--no-browser"]
        self.process = subprocess.Popen(
            [*command, "--port", str(port), *options], stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if found := ADDRESS.search(line):
                self.address = found[1]
                break
        else:
            raise AssertionError("".join(self.lines))
        self.port = urlsplit(self.address).port or 0
        self._wait()

    @property
    def talk(self) -> str:
        """Address of the WebSocket."""
        return f"ws://127.0.0.1:{self.port}/talk"

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            try:
                self.get("/files/icon.svg").close()
                return
            except urllib.error.HTTPError as error:  # it asks for a token
                error.close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def get(self, path: str, **headers: str) -> Any:
        """Return the answer to a request."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        return urllib.request.urlopen(request, timeout=20)

    def kill(self) -> None:
        """End the server as a crash does."""
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def close(self) -> None:
        """End the server as Ctrl-C does."""
        if os.name != "nt":
            self.process.send_signal(signal.SIGINT)
        else:
            self.process.terminate()
        try:
            self.process.wait(timeout=20)
        finally:
            self.kill()


@contextmanager
def browser_page(**options: Any) -> Iterator[Any]:
    """Yield a page of a headless browser; errors of its scripts fail the test."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            context = browser.new_context(
                **{
                    "viewport": {"width": 1280, "height": 900},
                    "reduced_motion": "reduce",
                    **options,
                }
            )
            page = context.new_page()
            page.set_default_timeout(30_000)
            problems: list[str] = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on(
                "console",
                lambda message: problems.append(message.text) if message.type == "error" else None,
            )
            yield page
            # a test restarts the server
            lost = (
                "WebSocket connection",
                "ERR_CONNECTION_",
                "ERR_CONTENT_LENGTH_MISMATCH",
                "ERR_EMPTY_RESPONSE",
            )
            left = [text for text in problems if not any(word in text for word in lost)]
            assert not left, left
        finally:
            browser.close()


class Table:
    """The board of a page, seen by a player who clicks."""

    def __init__(self, page: Any, files: int, ranks: int) -> None:
        self.page, self.files, self.ranks = page, files, ranks

    @property
    def moves(self) -> list[str]:
        """Moves of the game, by the address of the page."""
        query = parse_qs(urlsplit(self.page.url).query)
        moves: list[str] = query.get("moves", [""])[0].split()
        return moves

    def click(self, square: str) -> None:
        """Click a square."""
        box = self.page.locator("cg-board").bounding_box()
        file, rank = ord(square[0]) - 97, int(square[1:]) - 1
        self.page.mouse.click(
            box["x"] + (file + 0.5) * box["width"] / self.files,
            box["y"] + (self.ranks - rank - 0.5) * box["height"] / self.ranks,
        )

    def play(self, uci: str) -> None:
        """Play a move by clicks; the first player is below."""
        before = len(self.moves)
        drop = re.fullmatch(r"(\+?[A-Z])@([a-l]\d+)", uci)
        if drop:
            role = f"{drop[1].replace('+', 'p').lower()}-piece"
            self.page.locator(f".slot[data-role='{role}']:enabled").click()
            self.click(drop[2])
        else:
            found = re.match(r"([a-l]\d+)([a-l]\d+)", uci)
            assert found is not None
            self.click(found[1])
            self.click(found[2])
        self.page.wait_for_function(
            "n => document.querySelector('dialog[open]') || "
            "(new URL(location).searchParams.get('moves') ?? '').split(' ').filter(Boolean).length > n",
            arg=before,
        )
        choice = self.page.locator(f"dialog button[data-move='{uci}']")
        if choice.count():
            choice.click()
            self.wait(before + 1)
        assert self.moves[before] == uci

    def wait(self, count: int) -> None:
        """Wait until the game has this many moves, or is over."""
        self.page.wait_for_function(
            "n => document.querySelector('.status.over') || "
            "(new URL(location).searchParams.get('moves') ?? '').split(' ').filter(Boolean).length >= n",
            arg=count,
        )

    @property
    def result(self) -> str:
        """Text about the end of the game; empty while it goes on."""
        over = self.page.locator(".status.over")
        return str(over.inner_text()) if over.count() else ""


def whole_game(page: Any, engine: Any, position: Any, nodes: int, most: int = 160) -> Table:
    """Play the first side by clicks, with moves of an engine of ours, until the game is over."""
    table = Table(page, position.spec.board.files, position.spec.board.ranks)
    while not table.result and len(table.moves) < most:
        for move in table.moves[len(position.moves) :]:
            position.push(move)
        found = engine.analyse(position, nodes=nodes)
        table.play(found.best)
        table.wait(len(table.moves) + 1 if len(table.moves) % 2 else len(table.moves))
        page.wait_for_function(
            "() => document.querySelector('.status.over') || "
            "(new URL(location).searchParams.get('moves') ?? '').split(' ').length % 2 == 0"
        )
    for move in table.moves[len(position.moves) :]:
        position.push(move)
    return table


def choose_opponent(page: Any, net: str, level: str) -> None:
    """Choose opponent and strength, and begin a new game."""
    page.get_by_label("Opponent").select_option(net)
    page.get_by_label("Strength").select_option(level)


SPEC = Path(__file__).parent / "corridor.yaml"
"""A variant that only these tests know."""
