"""The page in a real browser: whole games by clicks, analysis, the editor, a restart, accessibility."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_driver import (
    CHROMIUM,
    SPEC,
    Server,
    Table,
    browser_page,
    choose_opponent,
    open_page,
    whole_game,
)

pytest.importorskip("starlette", reason="needs the extra `web`")
pytest.importorskip("playwright", reason="needs playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
GAME = "variant=crazyhouse&moves=e2e4+e7e5+g1f3+b8c6+f1c4+g8f6+f3g5+d7d5+e4d5"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def win(page: Any, position: Any, nodes: int, **how: Any) -> Table:
    """Play the game on the page with an engine of ours, until it is won."""
    from variant_ai import Engine

    with Engine(position.spec, log=lambda text: None, deterministic=True, **how) as engine:
        table = whole_game(page, engine, position, nodes)
        assert position.outcome is not None, position
        assert position.outcome.result == "1-0"
        assert table.result.startswith(f"1-0, {position.outcome.reason}")
        return table


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "nodes", "how"),
    [
        ("crazyhouse", 200, {"model": "packaged"}),
        ("xiangqi", 200, {"model": "packaged"}),
        ("minishogi", 300, {"evaluator": "uniform"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_whole_game_by_clicks(
    server: Server, variant: str, nodes: int, how: dict[str, Any]
) -> None:
    from variant_ai import Position

    position = Position(variant)
    with browser_page() as page:
        open_page(page, f"{server.address}?variant={variant}")
        choose_opponent(page, "random", "nodes:1")
        win(page, position, nodes, **how)
    if variant == "crazyhouse":
        assert any("@" in move for move in position.moves[::2])


@pytest.mark.slow
def test_a_variant_is_written_and_played(server: Server) -> None:
    from variant_ai import Position

    with browser_page() as page:
        open_page(page, f"{server.address}variant")
        text = page.locator("textarea.code")
        text.fill(SPEC.read_text().replace("moves: WF", "moves: W!"))
        page.get_by_role("button", name="line 8").click()
        assert "W!" in page.locator(".mistakes").inner_text()
        page.keyboard.type("x")  # where the mistake is
        text.fill(SPEC.read_text())
        page.get_by_text("moves in the start position").wait_for()
        assert page.locator("cg-board piece").count() == 14
        page.get_by_role("button", name="Play it").click()
        page.get_by_text("Your move.").wait_for()
        page.get_by_text("Position and game as text").click()
        page.evaluate("navigator.clipboard.writeText = text => { window.copied = text; }")
        page.get_by_role("button", name="Copy link").click()
        page.wait_for_function("() => window.copied")
        link = page.evaluate("window.copied")
        choose_opponent(page, "random", "nodes:1")
        win(page, Position(str(SPEC)), 300, evaluator="material")
    with browser_page() as other:
        open_page(other, link)
        assert other.get_by_label("Variant").input_value() == "mine:corridor"
        assert other.locator("cg-board piece").count() == 14


@pytest.mark.slow
def test_a_wall_is_placed_by_a_third_click(server: Server) -> None:
    with browser_page() as page:
        open_page(page, f"{server.address}variant")
        page.locator("textarea.code").fill(SPEC.with_name("duck.yaml").read_text())
        page.get_by_text("moves in the start position").wait_for()
        page.get_by_role("button", name="Play it").click()
        page.get_by_text("Your move.").wait_for()
        choose_opponent(page, "random", "nodes:1")
        page.wait_for_timeout(500)  # a click on a board that is drawn anew is lost
        table = Table(page, 8, 8)
        table.click("e2")
        table.click("e4")
        prompt = page.locator(".prompt")
        prompt.wait_for()
        assert prompt.inner_text() == "Choose a square for the wall"
        table.click("e4")  # its pawn stands there: the move is taken back
        prompt.wait_for(state="hidden")
        assert table.moves == []
        table.click("e2")
        table.click("e4")
        table.click("e5")
        table.wait(2)
        assert table.moves[0] == "e2e4,e4e5"
        assert page.locator("cg-board piece._-piece").count() == 1


def test_words_are_completed_in_the_editor(server: Server) -> None:
    with browser_page() as page:
        open_page(page, f"{server.address}variant")
        text = page.locator("textarea.code")
        text.fill("spec: 1\nextends: chess\nrules:\n  stale")
        text.press("End")
        word = page.locator(".words").get_by_role("button", name="stalemate")
        word.wait_for()
        text.press("Tab")
        assert text.input_value().endswith("  stalemate: ")
        page.locator(".words").get_by_role("button", name="loss", exact=True).click()
        assert text.input_value().endswith("stalemate: loss")


def test_lines_of_play_appear_at_once(server: Server) -> None:
    with browser_page() as page:
        open_page(page, f"{server.address}analyse?{GAME}")
        page.locator(".lines-of-play li").first.wait_for()  # the net is loaded now
        page.get_by_role("button", name="Back").click()
        began = time.monotonic()
        page.wait_for_function("() => document.querySelectorAll('.lines-of-play li').length === 3")
        assert time.monotonic() - began < 5  # a second on a quiet machine
        page.get_by_role("button", name="To the beginning").click()
        page.wait_for_function("() => document.querySelectorAll('.lines-of-play li').length === 3")
        before = Table(page, 8, 8).moves
        # at once: a click waits until the button rests, and the running search may give it another move
        page.locator(".lines-of-play button").filter(has_not_text="e4 ").first.dispatch_event(
            "click"
        )
        page.wait_for_selector(".variation")
        assert Table(page, 8, 8).moves != before
        page.get_by_label("Policy of the net").check()
        page.locator(".policy .share").first.wait_for()
        page.get_by_text("What the net sees").click()
        page.get_by_role("button", name="Show the input planes").click()
        page.get_by_text("my pawns", exact=True).wait_for()
        page.get_by_text("What its layers compute").click()
        page.get_by_role("button", name="Show the layers").click()
        page.locator(".layers canvas").nth(40).wait_for()
        page.get_by_label("Layer", exact=True).select_option("9")  # of the value head, 8 channels
        page.wait_for_function("() => document.querySelectorAll('.layers canvas').length === 8")
        page.wait_for_function(  # a tree with something below its first move
            "() => parseInt(document.querySelector('.counters').textContent.replaceAll(',', '')) > 300"
        )
        page.get_by_text("What each visit went to").click()
        page.get_by_role("button", name="Show the tree as it is now").click()
        page.locator(".tree button").first.click()
        page.locator(".tree .tree button").first.wait_for()
        page.get_by_label("Nodes of annotation").select_option("100")
        page.get_by_role("button", name="Annotate the game").click()
        page.wait_for_function("() => document.querySelectorAll('.curve circle').length >= 10")


def test_the_game_goes_on_after_a_restart() -> None:
    first = Server()
    with browser_page() as page:
        open_page(page, f"{first.address}?variant=minishogi")
        choose_opponent(page, "random", "nodes:1")
        table = Table(page, 5, 5)
        table.play("a2a3")
        table.wait(2)
        first.kill()
        page.get_by_text("The server does not answer").wait_for()
        legal_move = "a1b2"
        table.click("a1")
        table.click("b2")
        second = Server(port=first.port)
        try:
            table.wait(4)
            assert table.moves[2] == legal_move
            assert not page.get_by_text("The server does not answer").is_visible()
        finally:
            second.close()


def test_castling_in_chess960_is_the_king_that_takes_its_rook(server: Server) -> None:
    fen = "4k3/8/8/8/8/8/PPPPPPPP/R4K1R w KQ - 0 1".replace(" ", "%20")
    with browser_page() as page:
        open_page(page, f"{server.address}?variant=chess960&fen={fen}")
        choose_opponent(page, "random", "nodes:1")
        table = Table(page, 8, 8)
        table.click("f1")
        table.click("h1")
        table.wait(2)
        assert table.moves[0] == "f1h1"
        assert page.locator(".move").first.inner_text() == "O-O"
        open_page(page, f"{server.address}?variant=chess960")
        page.get_by_text("Position and game as text").click()
        starts = page.get_by_label("FEN")
        assert starts.input_value().count("/pppppppp/8/8/8/8/PPPPPPPP/") == 1


def test_a_game_by_keyboard(server: Server) -> None:
    with browser_page() as page:
        open_page(page, f"{server.address}?variant=crazyhouse")
        choose_opponent(page, "random", "nodes:1")
        board = page.get_by_role("application", name="Board")
        board.focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowUp", "Enter"):
            page.keyboard.press(key)
        assert "e2, White pawn, 2 moves" in page.locator("[aria-live=polite].unseen").inner_text()
        for key in ("ArrowUp", "ArrowUp", "Enter"):
            page.keyboard.press(key)
        table = Table(page, 8, 8)
        table.wait(2)
        assert table.moves[0] == "e2e4"
        hint = page.get_by_label("Type a move").get_attribute("placeholder")
        assert hint is not None and hint.startswith("such as ")
        page.get_by_label("Type a move").fill("Nf3")
        page.keyboard.press("Enter")
        table.wait(4)
        assert table.moves[2] == "g1f3"
        page.get_by_role("button", name="Take back").click()
        page.wait_for_function("() => document.querySelectorAll('.move').length === 2")
        page.get_by_label("Type a move").fill("Kh8")
        page.keyboard.press("Enter")
        page.get_by_text("'Kh8' is no legal move here").wait_for()


def test_text_of_others_stays_text(server: Server) -> None:
    """Scripts in names, tags and addresses are shown, never run."""
    evil = '<img src=x onerror="document.title=1">'
    with browser_page() as page:
        page.goto(f"{server.address}?variant={evil}&fen={evil}&moves={evil}")
        assert evil in page.locator(".problem").inner_text()
        page.get_by_role("button", name="Open a start position").click()
        page.wait_for_selector("cg-board piece")
        page.get_by_text("Position and game as text").click()
        page.get_by_label("A game as PGN").fill(f'[White "{evil}"]\n\n1. e4 {{{evil}}} e5 *')
        page.get_by_role("button", name="Open this game").click()
        page.wait_for_function("() => document.querySelectorAll('.move').length === 2")
        page.get_by_label("FEN").fill(evil)
        page.keyboard.press("Enter")
        page.locator(".problem", has_text="FEN").wait_for()
        open_page(page, f"{server.address}variant")
        page.locator("textarea.code").fill(
            SPEC.read_text().replace("title: Corridor", f"title: '{evil}'")
        )
        page.get_by_text(evil).wait_for()
        assert page.locator("img").count() == 0
        assert "variant-ai" in page.title()


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: npm ci in web/")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_fault_of_accessibility(server: Server, theme: str) -> None:
    with browser_page(color_scheme=theme, bypass_csp=True) as page:
        for path in ("", "analyse", "watch", "variant", "help"):
            page.goto(f"{server.address}{path}")
            page.wait_for_selector("main > *:not(.loading)")
            if path in ("", "analyse"):
                page.wait_for_selector("cg-board piece")
            if path == "analyse":
                page.locator(".lines-of-play li").first.wait_for()
            page.add_script_tag(path=str(AXE))
            found = page.evaluate("async () => (await axe.run()).violations")
            serious = [
                (one["id"], node["target"], node["failureSummary"])
                for one in found
                if one["impact"] in ("serious", "critical")
                for node in one["nodes"]
            ]
            assert serious == [], path


def test_a_phone_needs_no_sideways_scrolling(server: Server) -> None:
    with browser_page(viewport={"width": 360, "height": 740}) as page:
        for path in ("", "analyse", "watch", "variant", "help"):
            page.goto(f"{server.address}{path}")
            page.wait_for_selector("main > *:not(.loading)")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 360, path
