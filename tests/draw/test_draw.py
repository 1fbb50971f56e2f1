"""Pictures and text of boards: every variant, both kinds of board, hands, arrows."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from variant_ai.core.draw import Arrow, board_svg, board_text, png_bytes
from variant_ai.core.draw.board import CELL, FRAME, Layout
from variant_ai.core.draw.piece_images import FIGURES, strokes
from variant_ai.core.errors import SpecError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.position import PROMOTION, make_move
from variant_ai.core.rules.text.notation import UciNotation
from variant_ai.core.spec import encoding_hash, load_spec, rules_hash, spec_hash
from variant_ai.core.spec.schema import Drawing
from variant_ai.core.spec.start_position import walls_of_fen
from variant_ai.core.spec.zones import seen_by, square_of
from variant_ai.plugins import registry

SVG = "{http://www.w3.org/2000/svg}"
TACTICS = "3k2r1/pBpr1p1p/Pp3p1B/3p4/2PPn2B/5NPp/q4PpP/1R1QR1K1[NNbp] w - - 1 23"


def drawn(
    variant: str, moves: tuple[str, ...] = (), fen: str | None = None, arrows: tuple[str, ...] = (),
    **options: bool,
) -> ET.Element:  # fmt: skip
    spec = registry().variant(variant)
    rules = make_rules(spec)
    game = Game.from_uci(rules, fen, moves)
    shown = [Arrow(UciNotation().read(rules, game.position, text)) for text in arrows]
    last = game.moves[-1] if game.moves else None
    return ET.fromstring(board_svg(spec, game.position, last_move=last, arrows=shown, **options))


def points(root: ET.Element) -> list[list[tuple[float, float]]]:
    """Corners of each arrow, in the order drawn."""
    return [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in polygon.get("points", "").split())]
        for polygon in root.iter(f"{SVG}polygon")
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(registry().variants))
def test_every_variant_can_be_drawn(name: str) -> None:
    spec = registry().variant(name)
    root = drawn(name)
    pieces = sum(c.isalpha() for c in spec.rules.start.split()[0].split("[")[0])
    groups = [g for g in root.iter(f"{SVG}g") if (g.get("transform") or "").startswith("translate")]
    hands = 2 * len(spec.hands.order) if spec.hands else 0
    assert len(groups) == pieces + hands
    assert "nan" not in ET.tostring(root, encoding="unicode")


def test_a_promotion_in_place_has_no_arrow() -> None:
    rules = make_rules(registry().variant("chess"))
    arrow = Arrow(make_move(12, 12, PROMOTION, 1))
    pictures = [board_svg(rules.spec, rules.position(), arrows=a) for a in ([], [arrow])]
    assert pictures[0] == pictures[1]


def test_arrow_ends_on_its_target_from_both_sides() -> None:
    layout = Layout.of(registry().variant("chess"), flipped=False)
    e4 = 3 * 8 + 4
    tip = points(drawn("chess", arrows=("e2e4",)))[0][3]
    assert tip == pytest.approx(layout.centre(e4), abs=0.1)
    turned = points(drawn("chess", arrows=("e2e4",), flipped=True))[0][3]
    across = (layout.width - tip[0], layout.height - tip[1])
    assert turned == pytest.approx(across, abs=0.1)


@pytest.mark.parametrize("name", sorted(registry().variants))
def test_a_board_can_be_turned_as_the_net_sees_it(name: str) -> None:
    board = registry().variant(name).board
    for side in (0, 1):
        layout = Layout.of(registry().variant(name), side == 1, board.sides == "mirror")
        for square in range(board.files * board.ranks):
            seen = seen_by(square, side, board)
            rank, file = divmod(seen, board.files)
            assert layout.column_row(square) == (file, board.ranks - 1 - rank)


def test_a_drop_comes_from_the_hand() -> None:
    layout = Layout.of(registry().variant("crazyhouse"), flipped=False)
    tail = points(drawn("crazyhouse", fen=TACTICS, arrows=("N@e6",)))[0][0]
    x, y = layout.hand_centre(0, 1)
    assert abs(tail[0] - x) < CELL / 2
    assert layout.top + 8 * CELL < tail[1] < y


def test_the_best_arrow_is_drawn_last_and_widest() -> None:
    spec = registry().variant("chess")
    rules = make_rules(spec)
    position = rules.position()
    moves = rules.legal_moves(position).tolist()[:3]
    arrows = [Arrow(move, weight) for move, weight in zip(moves, (1.0, 0.5, 0.0), strict=True)]
    root = ET.fromstring(board_svg(spec, position, arrows=arrows))
    widths = []
    for corners in points(root):
        (x0, y0), (x1, y1) = corners[0], corners[-1]
        widths.append(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5)
    assert widths == sorted(widths)
    assert widths[-1] > 2 * widths[0]


def test_labels_are_legible_wherever_svg_is_drawn() -> None:
    """Letters lie over their rim, above every arrow, and not over other letters.

    CairoSVG knows no `paint-order` and draws the rim of a text over its letters.
    """
    spec = registry().variant("xiangqi")
    rules = make_rules(spec)
    position = rules.position()
    moves = [UciNotation().read(rules, position, text) for text in ("h3e3", "b3e3", "h1g3")]
    labels = ("+0.76", "<1", "#3")
    arrows = [Arrow(move, 1.0, text) for move, text in zip(moves, labels, strict=True)]
    svg = board_svg(spec, position, arrows=arrows)
    assert "paint-order" not in svg
    shapes = [e for e in ET.fromstring(svg).iter() if e.tag in (f"{SVG}text", f"{SVG}polygon")]
    last = max(i for i, e in enumerate(shapes) if e.tag == f"{SVG}polygon")
    written = shapes[last + 1 :]
    assert [e.text for e in written] == [text for text in labels for _ in range(2)]
    for rim, letters in zip(written[::2], written[1::2], strict=True):
        assert rim.get("stroke") and not letters.get("stroke")
        assert (rim.get("x"), rim.get("y")) == (letters.get("x"), letters.get("y"))
    first, second = (float(e.get("y", "")) for e in written[1:4:2])
    assert first - second >= float(written[1].get("font-size", ""))


def test_hands_are_counted() -> None:
    texts = [t.text for t in drawn("crazyhouse", fen=TACTICS).iter(f"{SVG}text")]
    assert texts.count("2") == 3  # two ranks' labels, and two knights


def test_lines_stop_at_the_river_but_for_the_edges() -> None:
    layout = Layout.of(registry().variant("xiangqi"), flipped=False)
    below, above = layout.centre(4 * 9)[1], layout.centre(5 * 9)[1]
    crossing = {
        float(line.get("x1", "0"))
        for line in drawn("xiangqi").iter(f"{SVG}line")
        if line.get("x1") == line.get("x2")
        and min(float(line.get("y1", "0")), float(line.get("y2", "0"))) <= above
        and max(float(line.get("y1", "0")), float(line.get("y2", "0"))) >= below
    }
    assert crossing == {layout.centre(0)[0], layout.centre(8)[0]}


def test_palaces_have_diagonals_on_both_sides() -> None:
    diagonals = [
        line
        for line in drawn("xiangqi").iter(f"{SVG}line")
        if line.get("x1") != line.get("x2") and line.get("y1") != line.get("y2")
    ]
    assert len(diagonals) == 4


def test_every_character_of_the_specs_is_drawn_without_a_font() -> None:
    for name in ("xiangqi", "minixiangqi"):
        for glyph in registry().variant(name).drawing.glyphs.values():
            for character in glyph:
                lines = strokes(character)
                assert lines is not None, character
                assert all(-6 <= v <= 106 for line in lines for point in line for v in point)
    assert strokes("x") is None
    assert set("♚♛♜♝♞♟") == set(FIGURES)


def test_png_has_the_size_asked_for() -> None:
    spec = registry().variant("chess")
    svg = board_svg(spec, make_rules(spec).position(), size=300)
    for width, wanted in ((None, 300), (150, 150)):
        data = png_bytes(svg, width=width)
        assert data.startswith(b"\x89PNG")
        assert struct.unpack(">II", data[16:24])[0] == wanted


def test_text_of_a_board_reads_as_its_fen() -> None:
    rules = make_rules(registry().variant("crazyhouse"))
    text = board_text(Game(rules, TACTICS))
    rows = [line.split()[1:] for line in text.splitlines()[1:9]]
    fen = TACTICS.split("[", maxsplit=1)[0].split("/")
    written = [re.sub(r"\d", lambda m: "." * int(m[0]), row) for row in fen]
    assert ["".join(row) for row in rows] == written
    assert text.splitlines()[0].split() == ["hand:", "p", "b"]
    assert text.splitlines()[-1].split() == ["hand:", "N", "x", "2"]


def test_text_marks_the_last_move_and_turns() -> None:
    spec = registry().variant("xiangqi")
    game = Game.from_uci(make_rules(spec), None, ["h3e3"])
    lines = board_text(game).splitlines()
    assert "[C]" in next(line for line in lines if line.startswith(" 3 "))
    assert "[+]" in next(line for line in lines if line.startswith(" 3 "))
    turned = board_text(game, flipped=True, first_rank=0).splitlines()
    assert turned[0].split()[0] == "0"
    assert turned[-1].split() == list("ihgfedcba")
    assert "~" in turned[5]
    signs = board_text(game, signs=True, colour=True)
    assert "帥" in signs
    assert "\x1b[" in signs


def test_a_wall_that_was_placed_is_drawn() -> None:
    spec = load_spec(Path(__file__).parents[1] / "web" / "duck.yaml")
    game = Game.from_uci(make_rules(spec), None, ["e2e4,e4d5"])
    assert board_text(game).splitlines()[3].split() == ["5", *"...#...."]
    game.push_uci("e7e6,e6a3")
    lines = board_text(game).splitlines()
    assert "#" not in lines[3] and lines[5].split() == ["3", *"#......."]


def test_a_picture_shows_a_wall_that_was_placed() -> None:
    spec = load_spec(Path(__file__).parents[1] / "web" / "duck.yaml")
    game = Game.from_uci(make_rules(spec), None, ["e2e4,e4d5"])
    walls = walls_of_fen(spec, game.fen())
    assert walls == {square_of("d5", spec.board)}
    assert f'fill="{FRAME}"' not in board_svg(spec, game.position)
    assert board_svg(spec, game.position, walls=walls).count(f'fill="{FRAME}"') == 1


def test_how_it_is_drawn_changes_no_hash() -> None:
    spec = registry().variant("xiangqi")
    other = spec.model_copy(update={"drawing": Drawing()})
    for digest in (rules_hash, encoding_hash, spec_hash):
        assert digest(other) == digest(spec)


OWN = """\
extends: minixiangqi
variant: own
drawing:
  board: plain
  squares: {ZONE: 'SHADE'}
  figures: {R: 'FIGURE'}
"""


def own(
    folder: Path, zone: str = "d1", shade: str = "#336699", figure: str = "M20 80L50 20L80 80z"
) -> Path:
    text = OWN.replace("ZONE", zone).replace("SHADE", shade).replace("FIGURE", figure)
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    return folder / "own.yaml"


def test_squares_and_figures_of_a_spec_are_drawn(tmp_path: Path) -> None:
    spec = load_spec(own(tmp_path))
    svg = board_svg(spec, make_rules(spec).position())
    assert svg.count('fill="#336699"') == 2  # d1 and d7
    assert svg.count('<path d="M20 80L50 20L80 80z" fill="#fbf7ee"/>') == 2
    assert svg.count('<path d="M20 80L50 20L80 80z" fill="#2b2623"/>') == 2
    assert png_bytes(svg).startswith(b"\x89PNG")
    shaded = board_svg(spec, make_rules(spec).position(), shades=["#ffffff"] * 49)
    assert "#336699" not in shaded


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"zone": "d9"}, r"own.yaml:5:\d+: drawing.squares.d9: .*outside the board"),
        ({"shade": "red"}, r"'red' is not a colour; accepted: such as '#b3201b'"),
        (
            {"figure": '"/><script/>'},
            r"own.yaml:6:\d+: drawing.figures.R: not an SVG path; accepted",
        ),
    ],
)
def test_a_wrong_picture_is_reported_with_its_line(
    words: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match=message):
        load_spec(own(tmp_path, **words))
