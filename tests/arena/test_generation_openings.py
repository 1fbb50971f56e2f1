"""Games generated from the openings of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy_engine import SHORT, changed, generator, played

from variant_ai.core.arena.games.openings import (
    Opening,
    OpeningSampler,
    random_lines,
    random_starts,
    read_lines,
    read_positions,
)
from variant_ai.core.data.read.line_formats import MoveListReader
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.errors import DataError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import core_notations
from variant_ai.core.spec import builtin_specs, load_spec


def test_openings_from_a_file(one_rules: Rules, tmp_path: Path) -> None:
    game = Game(one_rules)
    game.push(int(game.legal_moves()[0]))
    first = game.fen()
    game.push(int(game.legal_moves()[0]))
    second = game.fen()
    epd = " ".join(word for word in second.split() if not word.isdigit())
    file = tmp_path / "lines.epd"
    file.write_text(f'# two lines\n\n{first}\n{epd} bm a1a2; id "two; words";\n')
    openings = read_positions(file, one_rules)
    assert openings[0] == Opening(first)
    assert openings[1].fen is not None and openings[1].fen.split()[0] == second.split()[0]
    settings = changed(SHORT, random_plies=(1, 1))
    games, dropped = played(generator(one_rules, settings, openings=openings))
    assert dropped == []
    assert [g.start_fen for g in games] == [first, openings[1].fen, first]
    for record in games:
        game = Game(one_rules, record.start_fen)
        for move in record.moves:
            assert move in game.legal_moves()
            game.push(move)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no opening in it"),
        ("\nnot a position\n", r"lines.epd:2: "),
        ("8/8 w\n", r"lines.epd:1: "),
    ],
)
def test_bad_opening_files(one_rules: Rules, tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "lines.epd"
    file.write_text(text)
    with pytest.raises(DataError, match=reason):
        read_positions(file, one_rules)


def test_lines_of_games_are_openings(one_rules: Rules, tmp_path: Path) -> None:
    file = tmp_path / "lines.pgn"
    line = Game(one_rules)
    while line.ply < 6:
        line.push(int(line.legal_moves()[-1]))
    texts = line.uci_moves()
    file.write_text(f"{' '.join(texts[:3])}\n{' '.join(texts)}\n{' '.join(texts)}\n")
    openings = read_lines(
        file, 5, [MoveListReader()], lambda: Resolver(one_rules, core_notations())
    )
    assert openings == tuple(Opening(None, tuple(line.moves[:n])) for n in (3, 5))
    settings = changed(SHORT, random_plies=(1, 2))
    games, _ = played(generator(one_rules, settings, openings=openings))
    for record, plies in zip(games, (3, 5, 3), strict=True):
        assert record.start_fen is None
        assert record.moves[:plies] == line.moves[:plies]
        assert record.scores is not None
        assert record.scores[: plies + 1] == [None] * (plies + 1)
        assert record.tags["RandomPlies"] in ("1", "2")


def test_openings_that_cannot_be_read_are_told(one_rules: Rules, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    first = Game(one_rules)
    first.push(int(first.legal_moves()[0]))
    (move,) = first.uci_moves()
    file.write_text(f"{move}\nz9z9\n")
    said: list[str] = []
    found = read_lines(
        file, 5, [MoveListReader()], lambda: Resolver(one_rules, core_notations()), said.append
    )
    assert len(found) == 1
    assert len(said) == 1 and "1 of the openings could not be read; " in said[0]


def test_a_file_without_games_says_why(one_rules: Rules, tmp_path: Path) -> None:
    file = tmp_path / "lines.pgn"
    file.write_text("e2e4 z9z9\n")
    with pytest.raises(DataError, match=r"lines.pgn: there is no opening in it \("):
        read_lines(file, 5, [MoveListReader()], lambda: Resolver(one_rules, core_notations()))


def test_games_of_a_shuffled_variant_begin_at_different_starts() -> None:
    rules = make_rules(load_spec(builtin_specs()["chess960"]))
    starts = [opening.fen for opening in random_starts(rules, 100, seed=1)]
    assert len(set(starts)) == 100
    assert starts == [opening.fen for opening in random_starts(rules, 100, seed=1)]
    assert len(random_starts(rules, 5000, seed=1)) == 960
    assert len(random_starts(rules, None, seed=1)) == 960
    sampler = OpeningSampler(rules, (Opening(),), (0, 0), seed=2)
    opened = [sampler.game(number) for number in range(8)]
    assert len({game.fen() for game in opened}) == 8
    assert [sampler.opening(number).fen for number in range(8)] == [g.fen() for g in opened]
    assert all(opening.fen for opening in random_lines(rules, 5, (2, 4), seed=3))
    usual = make_rules(load_spec(builtin_specs()["chess"]))
    assert random_starts(usual, 100, seed=1) == (Opening(),)
