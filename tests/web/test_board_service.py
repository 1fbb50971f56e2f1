"""Questions about variants and games, answered in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra `web`")

from variant_ai.cli.play.web_worker import answer
from variant_ai.core.web.board_pictures import STYLES
from variant_ai.core.web.board_service import KEPT_GAMES, BoardService
from variant_ai.plugins import registry

SPEC = Path(__file__).parent / "corridor.yaml"


@pytest.fixture(scope="module")
def service() -> BoardService:
    return BoardService(registry())


def ask(service: BoardService, action: str, **fields: Any) -> dict[str, Any]:
    found = answer({"id": 1, "action": action, **fields}, service.actions)
    assert found.pop("id") == 1
    return found


def test_a_position_has_all_that_a_board_shows(service: BoardService) -> None:
    moves = ["e2e4", "d7d5", "e4d5", "d8d5", "P@e4", "d5e4"]
    found = ask(service, "position", variant="crazyhouse", moves=moves)
    assert found["fen"].startswith("rnb1kbnr/ppp1pppp/8/8/4q3/8/PPPP1PPP/RNBQKBNR[pp]")
    assert found["written"] == ["e4", "d5", "exd5", "Qxd5", "P@e4", "Qxe4+"]
    assert found["check"] == ["e1"]
    assert found["hands"] == [[0, 0, 0, 0, 0], [2, 0, 0, 0, 0]]
    assert set(found["legal"]) == {"f1e2", "g1e2", "d1e2"}
    assert found["outcome"] is None


def test_the_end_of_a_game_has_no_moves(service: BoardService) -> None:
    found = ask(service, "position", variant="chess", moves=["f2f3", "e7e5", "g2g4", "d8h4"])
    assert found["legal"] == []
    assert found["outcome"]["result"] == "0-1"
    assert found["outcome"]["reason"] == "checkmate"


def test_answers_do_not_depend_on_earlier_questions(service: BoardService) -> None:
    def of(*moves: str) -> dict[str, Any]:
        return ask(service, "position", variant="crazyhouse", moves=list(moves))

    lines = [("e2e4",), ("e2e4", "e7e5"), ("e2e4",), ("d2d4",), ("e2e4", "e7e5", "e1e2"), ()]
    fresh = [
        ask(BoardService(registry()), "position", variant="crazyhouse", moves=list(line))
        for line in lines
    ]
    assert [of(*line) for line in lines] == fresh
    wrong = of("e2e4", "e7e5", "e1e3")
    assert "illegal" in wrong["error"]
    assert [of(*line) for line in lines] == fresh


def test_few_games_are_kept(service: BoardService) -> None:
    for number in range(KEPT_GAMES + 20):
        fen = f"4k3/8/8/8/8/8/8/4K2R[] w - - 0 {number + 1}"
        assert "legal" in ask(service, "position", variant="crazyhouse", fen=fen)
    assert len(service._games) <= KEPT_GAMES


def test_moves_are_read_in_every_notation_of_the_variant(service: BoardService) -> None:
    for text in ("C2=5", "h3e3", "H2-E2", "炮二平五"):
        assert ask(service, "line", variant="xiangqi", text=text) == {"move": "h3e3"}
    lines = [["h3e3", "h10g8"], []]
    found = ask(service, "line", variant="xiangqi", notation="wxf", lines=lines)
    assert found == {"lines": [["C2=5", "H8+7"], []]}


def test_games_go_out_and_in(service: BoardService) -> None:
    moves = ["e2e4", "d7d5", "e4d5", "d8d5", "P@e4"]
    tags = {"White": 'A "quoted" name', "Result": "0-1", "Termination": "resignation"}
    text = ask(service, "pgn", variant="crazyhouse", moves=moves, tags=tags)["pgn"]
    assert '[White "A \\"quoted\\" name"]' in text
    found = ask(service, "read", variant="crazyhouse", text=text)
    assert found["moves"] == moves
    assert found["white"] == tags["White"]
    assert found["result"] == "0-1"
    fen = "4k3/8/8/8/8/8/8/4K2R[Q] w - - 0 1"
    text = ask(service, "pgn", variant="crazyhouse", fen=fen, moves=["Q@e7"])["pgn"]
    assert ask(service, "read", variant="crazyhouse", text=text)["fen"] == fen
    for wrong in ("hello", "1. e4 e9", '[FEN "x"]\n\n1. e4 *'):
        assert "error" in ask(service, "read", variant="crazyhouse", text=wrong)


def test_styles_draw_every_piece(service: BoardService) -> None:
    for style in STYLES:
        found = ask(service, "describe", variant="xiangqi", style=style)
        assert len(found["pieces"]) == 14
        assert all(one["svg"].startswith("<svg") for one in found["pieces"])
    wedges = ask(service, "describe", variant="minishogi")
    assert len(wedges["pieces"]) == 2 * 2 * 10  # both ways up
    assert "pp-piece" in {one["role"] for one in wedges["pieces"]}
    twins = ask(service, "describe", variant="crazyhouse")["pieces"]
    assert {one["role"] for one in twins if one["twin"]} == {
        "n-piece", "b-piece", "r-piece", "q-piece",
    }  # fmt: skip


def test_mistakes_of_a_spec_have_lines(service: BoardService, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        SPEC.read_text().replace("moves: WF", "moves: W!").replace("files: 4", "files: x")
    )
    found = ask(service, "check", path=str(path))["mistakes"]
    assert [one["line"] for one in found] == [5]
    path = tmp_path / "other.yaml"
    path.write_text(SPEC.read_text().replace("moves: WF", "moves: W!"))
    found = ask(service, "check", path=str(path))["mistakes"]
    assert [(one["line"], "W!" in one["message"]) for one in found] == [(8, True)]
    found = ask(service, "check", path=str(SPEC))
    assert found["mistakes"] == []
    assert found["legal"] > 0


def test_a_question_that_fails_is_answered(service: BoardService) -> None:
    assert "error" in ask(service, "position", variant=7)
    assert "error" in ask(service, "no such action")


@pytest.mark.nightly
def test_every_variant_is_described(service: BoardService) -> None:
    for name in registry().variants:
        found = ask(service, "describe", variant=name)
        assert len(found["boards"]) == 2
        position = ask(service, "position", variant=name)
        assert position["legal"]
