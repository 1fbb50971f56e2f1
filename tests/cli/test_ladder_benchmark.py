"""benchmarks/ladder.py: what ends it with an error, what it resumes, what it draws."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from variant_ai.core.arena.match.match_record import GameEntry
from variant_ai.core.arena.programs.engine_process import GAMES_FOLDERS
from variant_ai.core.arena.tables.elo import Tally
from variant_ai.core.errors import DataError, EngineError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.plugins import registry

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
ENGINE = shutil.which("fairy-stockfish", path=":".join(GAMES_FOLDERS))


@pytest.fixture
def ladder(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not BENCHMARKS.is_dir():
        pytest.skip("needs the folder benchmarks/ of the sources")
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("ladder")


class Judge:
    """Has the legal moves of the rules, but one less at a ply."""

    name = "judge"

    def __init__(self, rules: Rules, less_at: int | None = None) -> None:
        self.rules, self.less_at = rules, less_at

    def legal(self, fen: str | None, moves: Sequence[str]) -> set[str]:
        game = Game.from_uci(self.rules, fen, moves)
        found = []
        for move in game.legal_moves().tolist():
            game.push(move)
            found.append(game.uci_moves()[-1])
            game.pop()
        return set(found[1:] if len(moves) == self.less_at else found)


def entry(moves: list[str], **words: Any) -> GameEntry:
    names = {"first": "net", "second": "engine", "result": "1-0", "reason": "checkmate"}
    return GameEntry(
        4, 2, opening=0, moves=moves, opening_plies=0, **({"start_fen": None} | names | words)
    )


MOVES = ["a2a3", "a6a5", "g2g3"]


@pytest.fixture(scope="module")
def rules() -> Rules:
    return make_rules(registry().variant("minixiangqi"))


def test_positions_on_which_both_agree(ladder: ModuleType, rules: Rules) -> None:
    ladder.Agreement(rules, Judge(rules)).check(entry(MOVES), 30)


def test_another_opinion_names_game_and_position(ladder: ModuleType, rules: Rules) -> None:
    fen = Game.from_uci(rules, None, MOVES[:2]).fen()
    with pytest.raises(EngineError, match=r"30 nodes, game 5, ply 2: .* disagree about ") as error:
        ladder.Agreement(rules, Judge(rules, less_at=2)).check(entry(MOVES), 30)
    assert fen in str(error.value)


def test_the_same_moves_from_another_start_are_checked(ladder: ModuleType, rules: Rules) -> None:
    judge = Judge(rules)
    agreement = ladder.Agreement(rules, judge)
    agreement.check(entry(MOVES), 30)
    judge.less_at = 0
    fen = Game.from_uci(rules, None, ["g2g3", "g6g5"]).fen()
    with pytest.raises(EngineError, match=r"ply 0: .* disagree about "):
        agreement.check(entry(MOVES, start_fen=fen), 30)


def test_a_game_that_ends_by_a_fault_is_an_error(ladder: ModuleType, rules: Rules) -> None:
    fen = Game.from_uci(rules, None, MOVES).fen()
    agreement = ladder.Agreement(rules, Judge(rules))
    with pytest.raises(EngineError, match="game 5, net - engine: illegal move: a1a9") as error:
        agreement.check(entry(MOVES, reason="illegal move", detail="a1a9"), 30)
    assert fen in str(error.value)
    agreement.check(entry(MOVES, reason="resignation"), 30)


def test_error_of_a_score(ladder: ModuleType) -> None:
    assert ladder.score_error(Tally(50, 0, 50)) == pytest.approx(1.96 * 0.5 / 10, rel=1e-3)
    # a few games with the same result do not show that all games have it
    for games in (Tally(10, 0, 0), Tally(0, 10, 0), Tally(0, 0, 10)):
        assert 0.05 < ladder.score_error(games) < 0.2
    assert ladder.score_error(Tally()) == 0.5


def test_the_rung_that_was_reached(ladder: ModuleType) -> None:
    rungs = [ladder.Rung(10, score=0.9, complete=True), ladder.Rung(30, score=0.5, complete=True)]
    assert ladder.reached(rungs) == "rung reached: 30 nodes"
    assert ladder.reached([*rungs, ladder.Rung(100, score=0.6)]) == "rung reached: 30 nodes"
    assert ladder.reached([ladder.Rung(10, score=0.49, complete=True)]) == "no rung reached"


def test_a_picture_of_something_else(ladder: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"rungs": [{"knots": 3}]}')
    with pytest.raises(DataError, match=r"a\.json: not a result of this benchmark"):
        ladder.draw(tmp_path / "a.png", [tmp_path / "a.json"])


@pytest.mark.skipif(ENGINE is None, reason="needs fairy-stockfish")
@pytest.mark.parametrize("variant", ["minixiangqi", "dobutsu-royal"])
def test_games_are_resumed(
    ladder: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    variant: str,
) -> None:
    engine = str(ENGINE)
    if variant == "dobutsu-royal":
        engine += f";option.VariantPath={BENCHMARKS / 'dobutsu-royal.ini'}"
    output = tmp_path / "result.json"
    command = ["ladder.py", "-V", variant, "--model", "-", "--evaluator", "random"]
    command += ["--evaluations", "4", "--games", "4", "--engine", engine, "-o", str(output)]
    monkeypatch.setattr(sys, "argv", [*command, "--nodes", "1"])
    ladder.main()
    first = json.loads(output.read_text("utf-8"))["rungs"][0]
    assert first["complete"] and first["wins"] + first["draws"] + first["losses"] == 4
    monkeypatch.setattr(sys, "argv", [*command, "--nodes", "1,5"])
    ladder.main()
    again, second = json.loads(output.read_text("utf-8"))["rungs"]
    assert again == first | {"seconds": 0.0}
    assert (second["nodes"], second["complete"]) == (5, True)
    assert "     5 nodes: +" in capsys.readouterr().out
    picture = tmp_path / "p.svg"
    monkeypatch.setattr(sys, "argv", ["ladder.py", "--picture", str(picture), str(output)])
    ladder.main()
    assert picture.read_text("utf-8").startswith("<?xml")
