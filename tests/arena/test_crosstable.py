"""Tables: the right numbers in the right places, whatever the names are."""

from __future__ import annotations

import csv
import io
import math
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from variant_ai.core.arena.tables.crosstable import as_json, csv_text, html, plot, standings, text
from variant_ai.core.arena.tables.elo import Tally

NAMES = ["weak <b>", "strong", 'of "two", kinds']
RESULTS = [
    [Tally(), Tally(1, 1, 3), Tally(1, 2, 2)],
    [Tally(4, 1, 0), Tally(), Tally(3, 1, 1)],
    [Tally(3, 1, 1), Tally(1, 1, 3), Tally()],
]


def test_standings_count_both_colours() -> None:
    table = standings(NAMES, RESULTS)
    best = table.lines[0]
    assert (best.name, best.rank) == ("strong", 1)
    # first: 4-0-1 and 3-1-1; second: 3-1-1 and 3-1-1
    assert best.tally.text == "13-3-4"
    assert best.first.text == "7-1-2"
    assert best.against[NAMES[0]].text == "7-1-2"
    assert [line.name for line in table.lines] == ["strong", NAMES[2], NAMES[0]]
    assert (table.games, table.tally.draw_ratio) == (30, 7 / 30)
    assert table.tally.score == pytest.approx((13 + 3.5) / 30)
    assert sum(line.elo for line in table.lines) == pytest.approx(0, abs=1e-9)
    assert all(0 < line.error < 300 for line in table.lines)


def test_text_of_two_says_what_the_papers_say() -> None:
    results = [[Tally(), Tally(40, 10, 2)], [Tally(1, 11, 36), Tally()]]
    said = text(standings(["A", "B"], results, title="A and B"))
    assert said.startswith("A and B\n\n")
    assert "A against B: 76-3-21, Elo +322.7 ± 77.1, LOS 100.0 %, draws 21.0 %" in said


def test_text_of_three_has_a_cross_table() -> None:
    said = text(standings(NAMES, RESULTS, extra={"strong": {"nps": "1,234"}}))
    lines = said.splitlines()
    assert lines[0].split()[-1] == "nps"
    assert lines[1].endswith("1,234")
    assert "1 strong" in said and "·" in said
    assert "30 games, 23.3 % drawn; the first player won 55.0 % of the points" in said
    assert not any(line != line.rstrip() for line in lines)


def test_no_games_and_games_all_won() -> None:
    empty = standings(["A", "B"], [[Tally()] * 2] * 2)
    assert empty.ratings is None and "0.0" in text(empty)
    assert "<html" in html(empty)
    one = standings(["A", "B"], [[Tally(), Tally(3, 0, 0)], [Tally(), Tally()]])
    assert "include one drawn game" in text(one)
    assert "include one drawn" in html(one)
    assert as_json(one)["prior"] is True


def test_csv_is_read_back() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(standings(NAMES, RESULTS)))))
    assert [row["player"] for row in rows] == ["strong", NAMES[2], NAMES[0]]
    assert rows[0]["W-L-D"] == "13-3-4"
    assert rows[0][f"against {NAMES[0]}"] == "7-1-2"
    assert rows[0]["against strong"] == ""


class Page(HTMLParser):
    """What a browser would see of a page: open elements, texts, and what it would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [v or "" for name, v in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_stands_alone_and_names_stay_text() -> None:
    page = Page()
    page.feed(html(standings(NAMES, RESULTS, title="A & B"), notes=["10 s <each>"]))
    assert "svg" in page.tags and "script" not in page.tags and "b" not in page.tags
    assert page.fetched == []
    assert page.tags.count("circle") == 3
    assert "weak <b>" in page.texts and "10 s <each>" in page.texts and "A & B" in page.texts
    assert "7-1-2" in page.texts


def test_the_plot_has_room_for_names() -> None:
    long = "a program with a name that is longer than anybody would want to read it"
    results = [[Tally(), Tally(3, 1, 1)], [Tally(2, 1, 2), Tally()]]
    drawn = plot(standings(["short", long], results))
    root = ElementTree.fromstring(drawn)
    width = float(root.attrib["viewBox"].split()[2])
    texts = [node for node in root.iter("text") if node.attrib["text-anchor"] == "end"]
    assert [node.text for node in texts] == ["short", long[:14] + "…" + long[-29:]]
    for node in texts:
        assert float(node.attrib["x"]) >= 7 * len(node.text or "")
    bars = [float(node.attrib["cx"]) for node in root.iter("circle")]
    assert all(float(texts[0].attrib["x"]) < at < width for at in bars)
    assert bars[0] > bars[1]


def test_encounters_are_told_where_few_met() -> None:
    """As the thesis prints its table 5.3."""
    met = [[Tally()] * 3 for _ in range(3)]
    met[0][1] = Tally(35, 93, 72)
    met[2][1] = Tally(10, 10, 5)
    said = text(standings(["v2", "v3", "v4"], met))
    assert "v3 against v2: 72-35-93, Elo +65.0 ± 35." in said
    assert "v4 against v3: 10-5-10" in said and "v4 against v2" not in said
    # a round robin of four has more meetings than players
    assert " against " not in text(standings(list("abcd"), [[Tally(1, 1, 1)] * 4] * 4))


def test_json_has_no_infinities() -> None:
    said = as_json(standings(NAMES, RESULTS))
    players = said["players"]
    assert isinstance(players, list)
    assert all(math.isfinite(player["elo"]) for player in players)
    assert players[0]["against"][NAMES[0]] == "7-1-2"
