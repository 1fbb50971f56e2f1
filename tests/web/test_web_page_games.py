"""Games on the page over reloads, other variants, other tabs, and answers that fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from page_driver import CHROMIUM, SPEC, Server, Table, browser_page, choose_opponent, open_page

pytest.importorskip("starlette", reason="needs the extra `web`")
pytest.importorskip("playwright", reason="needs playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def status(page: Any, text: str) -> None:
    """Wait until the status of the game is this text."""
    page.locator("p.status", has_text=text).first.wait_for()


def type_move(page: Any, move: str) -> None:
    page.get_by_label("Type a move").fill(move)
    page.keyboard.press("Enter")


class Wire:
    """The page's messages: counts them by type, answers some of them with an error, keeps others."""

    def __init__(self, page: Any) -> None:
        self.failing: set[str] = set()
        self.holding: set[str] = set()
        self.held: list[tuple[Any, str]] = []
        """Server and message of those that were kept."""
        self.count: dict[str, int] = {}
        page.route_web_socket("**/talk", self._route)

    def _route(self, socket: Any) -> None:
        server = socket.connect_to_server()

        def passed(text: str) -> None:
            message = json.loads(text)
            kind = message["type"]
            self.count[kind] = self.count.get(kind, 0) + 1
            if kind in self.failing:
                socket.send(json.dumps({"id": message["id"], "error": f"no {kind} today"}))
            elif kind in self.holding:
                self.held.append((server, text))
            else:
                server.send(text)

        socket.on_message(passed)

    def release(self) -> None:
        """Send what was kept."""
        self.holding = set()
        for server, text in self.held:
            server.send(text)


def play_duck(page: Any, server: Server) -> None:
    open_page(page, f"{server.address}variant")
    page.locator("textarea.code").fill(SPEC.with_name("duck.yaml").read_text())
    page.get_by_text("moves in the start position").wait_for()
    page.get_by_role("button", name="Play it").click()
    status(page, "Your move.")


LETTERS_ARE = """expected => {
  const pockets = [...document.querySelectorAll('.pocket')];
  const shown = pockets.map(one => [...one.querySelectorAll('.slot')]
    .filter(slot => slot.checkVisibility()).map(slot => slot.dataset.role[0]));
  return JSON.stringify(shown) === JSON.stringify(expected);
}"""
"""True once the visible slots of both hands are of these pieces."""


def test_the_hands_are_those_of_the_variant(server: Server) -> None:
    from variant_ai import Position

    with browser_page() as page:
        open_page(page, f"{server.address}?variant=crazyhouse")
        for variant in ("shogi", "minishogi", "crazyhouse", "chess", "dobutsu"):
            page.get_by_label("Variant").select_option(variant)
            page.wait_for_function(
                "name => new URL(location).searchParams.get('variant') === name", arg=variant
            )
            status(page, "Your move.")
            hands = Position(variant).spec.hands
            expected = [one.lower() for one in hands.order] if hands else []
            # the address may change a moment before the board
            page.wait_for_function(LETTERS_ARE, arg=[expected, expected])


def test_a_reload_keeps_side_and_end(server: Server) -> None:
    with browser_page() as page:
        open_page(page, f"{server.address}?variant=crazyhouse")
        choose_opponent(page, "random", "nodes:1")
        page.get_by_label("Clock").select_option("600+5")
        page.get_by_label("You are").select_option("1")
        table = Table(page, 8, 8)
        table.wait(1)
        type_move(page, "e7e5")
        table.wait(3)
        before = table.moves
        page.reload()
        status(page, "Your move.")
        page.wait_for_timeout(700)  # an engine that plays our side would have moved
        assert table.moves == before
        assert page.get_by_label("You are").input_value() == "1"
        assert page.locator(".orientation-black").count() > 0
        assert page.locator(".clock").count() == 2
        page.get_by_role("button", name="Resign").click()
        status(page, "1-0, resignation")
        page.reload()
        status(page, "1-0, resignation")
        assert page.get_by_role("button", name="Resign").is_disabled()
        page.get_by_role("button", name="Take back").click()  # the resignation
        status(page, "Your move.")
        assert table.moves == before
        page.get_by_role("button", name="Take back").click()
        table_has = "n => new URL(location).searchParams.get('moves').split(' ').length === n"
        page.wait_for_function(table_has, arg=1)
        page.get_by_role("link", name="Analyse").click()
        page.wait_for_url("**/analyse?**")
        page.reload()
        page.wait_for_selector("cg-board piece")
        page.get_by_role("link", name="Play").click()
        status(page, "Your move.")
        assert len(table.moves) == 1


def test_an_earlier_position_says_why_nothing_can_be_moved(server: Server) -> None:
    earlier = "An earlier position"
    with browser_page() as page:
        open_page(page, f"{server.address}?variant=crazyhouse&moves=e2e4+e7e5")
        status(page, "Your move.")
        page.get_by_role("button", name="To the beginning").click()
        status(page, earlier)
        type_move(page, "d4")
        page.locator(".movebox .problem", has_text=earlier).wait_for()
        assert page.get_by_label("Type a move").input_value() == "d4"
        page.get_by_role("button", name="To the end").click()
        status(page, "Your move.")
        assert page.locator(".movebox .problem").inner_text() == ""


def test_an_annotation_ends_with_its_game(server: Server) -> None:
    with browser_page() as page:
        moves = "+".join(["g1f3", "g8f6", "f3g1", "f6g8"] * 2)
        open_page(page, f"{server.address}analyse?variant=crazyhouse&moves={moves}")
        page.get_by_label("Net", exact=True).select_option("uniform")
        page.get_by_label("Nodes of annotation").select_option("1600")
        page.get_by_role("button", name="Annotate the game").click()
        page.locator("progress").wait_for()
        page.get_by_label("Variant").select_option("minishogi")
        page.wait_for_function(
            "() => new URL(location).searchParams.get('variant') === 'minishogi'"
        )
        page.locator("progress").wait_for(state="hidden")
        status(page, "The search is off.")
        page.wait_for_timeout(700)  # until the search of the old position has ended
        assert page.locator("p.status").first.inner_text() == "The search is off."


def test_a_link_that_was_cut_off_says_so(server: Server) -> None:
    with browser_page() as page:
        for cut in ("abc", "%%%"):
            page.goto("about:blank")
            page.goto(f"{server.address}?moves=e2e4#spec={cut}")
            page.get_by_text("The link is damaged or was cut off").wait_for()


def test_another_game_of_the_session_begins_again(server: Server) -> None:
    with browser_page() as page:
        open_page(page, f"{server.address}?variant=crazyhouse")
        page.get_by_role("button", name="Resign").click()
        status(page, "0-1, resignation")
        page.get_by_role("link", name="New variant").click()
        page.locator("textarea.code").fill(SPEC.read_text())
        page.get_by_text("moves in the start position").wait_for()
        page.get_by_role("button", name="Play it").click()
        status(page, "Your move.")
        assert page.get_by_role("button", name="Resign").is_enabled()
        page.go_back()  # to the editor, then to the game that was resigned
        page.go_back()
        status(page, "0-1, resignation")
        assert "crazyhouse" in page.url


def test_a_search_that_fails_is_reported_and_waits(server: Server) -> None:
    with browser_page() as page:
        wire = Wire(page)
        open_page(page, f"{server.address}?variant=crazyhouse")
        choose_opponent(page, "random", "nodes:1")
        wire.failing.add("search")
        table = Table(page, 8, 8)
        table.play("e2e4")
        status(page, "no search today")
        page.wait_for_timeout(500)
        assert wire.count["search"] == 1
        wire.failing.clear()
        page.get_by_role("button", name="Try again").click()
        table.wait(2)
        assert page.get_by_role("button", name="Try again").is_hidden()


def test_the_analysis_begins_again_after_a_search_that_fails(server: Server) -> None:
    with browser_page() as page:
        wire = Wire(page)
        wire.failing.add("search")
        open_page(page, f"{server.address}analyse?variant=crazyhouse")
        status(page, "no search today")
        wire.failing.clear()
        page.locator(".lines-of-play li").first.wait_for()


def test_the_moves_outlast_answers_that_fail(server: Server) -> None:
    game = "variant=crazyhouse&moves=e2e4+e7e5+g1f3"
    with browser_page() as page:
        wire = Wire(page)
        open_page(page, f"{server.address}analyse?{game}")
        table = Table(page, 8, 8)
        wire.failing.add("position")
        page.get_by_role("button", name="Back", exact=True).click()
        status(page, "no position today")
        assert len(table.moves) == 3
        page.reload()
        page.get_by_role("heading", name="This game could not be opened").wait_for()
        assert len(table.moves) == 3
        wire.failing.clear()
        page.get_by_role("button", name="Try again").click()
        page.wait_for_selector("cg-board piece")
        assert page.locator(".move").count() == 3


def test_moves_with_walls_are_opened_again(server: Server) -> None:
    with browser_page() as page:
        play_duck(page, server)
        page.get_by_label("You are").select_option("both")
        table = Table(page, 8, 8)
        for count, move in enumerate(("e2e4,e4e5", "d7d5,d5e6"), 1):
            type_move(page, move)
            table.wait(count)
        page.reload()
        status(page, "Your move.")
        assert table.moves == ["e2e4,e4e5", "d7d5,d5e6"]
        assert page.locator(".move").count() == 2


def test_a_promotion_with_a_wall_is_asked_for_both(server: Server) -> None:
    fen = "4k3/P7/8/8/8/8/8/4K3 w - - 0 1"
    with browser_page() as page:
        play_duck(page, server)
        page.get_by_text("Position and game as text").click()
        page.get_by_label("FEN").fill(fen)
        page.keyboard.press("Enter")
        page.wait_for_function("() => new URL(location).searchParams.has('fen')")
        page.get_by_label("You are").select_option("both")
        page.wait_for_timeout(500)
        table = Table(page, 8, 8)
        table.click("a7")
        table.click("a8")
        page.locator("dialog.promotion button").nth(1).click()
        page.locator(".prompt").wait_for()
        table.click("d4")
        table.wait(1)
        assert table.moves[0].startswith("a7a8") and table.moves[0].endswith(",a8d4")


def test_escape_takes_a_move_back_that_waits_for_its_wall(server: Server) -> None:
    with browser_page() as page:
        play_duck(page, server)
        page.get_by_label("You are").select_option("both")
        table = Table(page, 8, 8)
        table.click("e2")
        table.click("e4")
        page.locator(".prompt").wait_for()
        page.get_by_role("application", name="Board").focus()
        page.keyboard.press("Escape")
        page.locator(".prompt").wait_for(state="hidden")
        table.click("d2")
        table.click("d4")
        page.locator(".prompt").wait_for()
        table.click("d5")
        table.wait(1)
        assert table.moves == ["d2d4,d4d5"]


def test_two_tabs_keep_what_the_other_has_saved(server: Server) -> None:
    with browser_page() as page:
        open_page(page, f"{server.address}?variant=crazyhouse")
        other = page.context.new_page()
        open_page(other, f"{server.address}variant")
        other.locator("textarea.code").fill(SPEC.read_text())
        other.get_by_text("moves in the start position").wait_for()
        other.get_by_role("button", name="Play it").click()
        status(other, "Your move.")
        page.get_by_role("button", name="Light or dark").click()
        kept = json.loads(page.evaluate("localStorage.getItem('variant-ai')"))
        assert [one["name"] for one in kept["specs"]] == ["corridor"]
        assert kept["theme"] == "dark"
        page.goto(f"{server.address}?variant=mine:corridor")
        status(page, "Your move.")


def test_a_pasted_game_keeps_its_end_and_its_players(server: Server) -> None:
    text = '[White "Ada"]\n[Black "Bob"]\n[Result "0-1"]\n\n{A start} 1. e4 {Bold} e5 2. Nf3 0-1'
    with browser_page() as page:
        wire = Wire(page)
        open_page(page, f"{server.address}?variant=chess")
        page.get_by_text("Position and game as text").click()
        page.get_by_label("A game as PGN").fill(text)
        page.get_by_role("button", name="Open this game").click()
        status(page, "0-1, as the pasted game says")
        assert page.locator(".comment").all_inner_texts() == ["A start", "Bold"]
        assert page.locator(".player strong").all_inner_texts() == ["Bob", "Ada"]
        page.wait_for_timeout(400)
        assert "search" not in wire.count
        page.evaluate(
            "() => { navigator.clipboard.writeText = async text => { window.copied = text; } }"
        )
        page.get_by_role("button", name="Copy PGN").click()
        page.locator(".notice", has_text="Copied").wait_for()
        pgn = page.evaluate("window.copied")
        assert '[White "Ada"]' in pgn and '[Result "0-1"]' in pgn
        page.evaluate(
            "() => { navigator.clipboard.writeText = async () => { throw Error('no'); } }"
        )
        page.get_by_role("button", name="Copy FEN").click()
        field = page.get_by_label("Text to copy")
        assert " w KQkq" in field.input_value() or " b KQkq" in field.input_value()
        page.get_by_role("button", name="Close").click()
        page.get_by_label("A game as PGN").fill("1. e4 " * 100_000)
        page.get_by_role("button", name="Open this game").click()
        page.locator(".problem", has_text="too long").wait_for()


def test_a_reload_keeps_variations_comments_and_players(server: Server) -> None:
    text = '[White "Ada"]\n[Black "Bob"]\n[Result "0-1"]\n\n{A start} 1. e4 {Bold} e5 2. Nf3 0-1'
    with browser_page() as page:
        open_page(page, f"{server.address}analyse?variant=chess")
        page.get_by_text("Position and game as text").click()
        page.get_by_label("A game as PGN").fill(text)
        page.get_by_role("button", name="Open this game").click()
        page.locator(".comment", has_text="Bold").wait_for()
        moves = page.get_by_label("Moves", exact=True)
        moves.get_by_role("button", name="e4").click()
        type_move(page, "c7c5")
        moves.get_by_role("button", name="c5").wait_for()
        type_move(page, "Nc3")
        moves.get_by_role("button", name="Nc3").wait_for()
        before = moves.inner_text()
        page.reload()
        moves.get_by_role("button", name="Nc3").wait_for()
        moves.get_by_role("button", name="Nf3").wait_for()
        assert moves.inner_text() == before
        assert page.locator(".comment").all_inner_texts() == ["A start", "Bold"]
        moves.get_by_role("button", name="Nf3").click()
        page.get_by_role("link", name="Play").click()
        status(page, "0-1, as the pasted game says")
        assert page.locator(".player strong").all_inner_texts() == ["Bob", "Ada"]
        # another game is another game
        page.goto(f"{server.address}analyse?variant=chess&moves=d2d4")
        moves.get_by_role("button", name="d4").wait_for()
        assert page.locator(".comment").count() == 0


def test_a_lost_spec_is_sent_again() -> None:
    first = Server()
    with browser_page() as page:
        play_duck(page, first)
        choose_opponent(page, "random", "nodes:1")
        first.kill()
        page.get_by_text("The server does not answer").wait_for()
        second = Server(port=first.port)
        try:
            type_move(page, "e2e4,e4e5")
            Table(page, 8, 8).wait(2)
        finally:
            second.close()


def test_a_rejected_page_says_why() -> None:
    server = Server("--allow-visitors", "1")
    with browser_page() as page, closing(server):
        open_page(page, server.address)
        other = page.context.new_page()
        other.goto(server.address)
        other.locator(".banner", has_text="Too many pages are open").wait_for()
        page.goto("about:blank")
        other.wait_for_selector("cg-board piece")


def test_controls_keep_the_focus_when_they_are_drawn_again(server: Server) -> None:
    focused = "() => document.activeElement.getAttribute('data-control')"
    with browser_page() as page:
        open_page(page, f"{server.address}?variant=crazyhouse")
        page.get_by_label("Variant").focus()
        page.get_by_label("Variant").select_option("minishogi")
        page.wait_for_url("**variant=minishogi**")
        status(page, "Your move.")
        assert page.evaluate(focused) == "variant"
        page.get_by_role("link", name="Analyse").click()
        line = page.locator(".lines-of-play button").first
        line.focus()
        page.wait_for_timeout(1000)  # reports arrive three times a second
        assert line.evaluate("one => one === document.activeElement")


def test_the_editor_draws_changed_colours(server: Server) -> None:
    with browser_page() as page:
        open_page(page, f"{server.address}variant")
        text = page.locator("textarea.code")
        spec = SPEC.with_name("duck.yaml").read_text() + "drawing: {pieces: discs, inks: [%s]}\n"
        look = (
            "() => getComputedStyle(document.querySelector('piece.p-piece.black')).backgroundImage"
        )
        pictures = []
        for inks in ("'#aa0000', '#00aa00'", "'#aa0000', '#0000aa'"):
            text.fill(spec % inks)
            page.get_by_text("Checking").wait_for()
            page.get_by_text("Duck: ").wait_for()
            page.wait_for_timeout(300)
            pictures.append(page.evaluate(look))
        assert pictures[0] != pictures[1]


def test_janggi_can_pass_in_analyse(server: Server) -> None:
    with browser_page() as page:
        open_page(page, f"{server.address}analyse?variant=janggi")
        page.get_by_role("button", name="Pass").click()
        page.wait_for_function("() => document.querySelectorAll('.move').length === 1")


def test_the_list_of_runs_comes_back_and_is_left_alone(server: Server) -> None:
    with browser_page() as page:
        wire = Wire(page)
        page.goto(f"{server.address}watch")
        page.get_by_text("There is no run yet").wait_for()
        wire.failing = {"runs"}
        page.get_by_text("no runs today").wait_for()
        wire.failing = set()
        page.get_by_text("There is no run yet").wait_for()
        # the first answer comes after the visitor has left
        page.goto(server.address)
        page.wait_for_selector("cg-board piece")
        wire.holding, wire.count = {"runs"}, {}
        page.get_by_role("link", name="Watch").click()
        page.get_by_text("Loading …").wait_for()
        page.get_by_role("link", name="Play").click()
        status(page, "Your move.")
        wire.release()
        page.wait_for_timeout(6_000)
        assert wire.count["runs"] == 1
