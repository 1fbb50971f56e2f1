"""Derived specs: shipped ones are found again, and new ones agree with Fairy-Stockfish."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from variant_ai.cli.main import cli
from variant_ai.core.derive.derivation import UNSTORED, derive, draft_for_fairy, read_tree
from variant_ai.core.derive.end_probe import differing_ends
from variant_ai.core.derive.probe_board import NEUTRAL, ProbeBoard
from variant_ai.core.derive.rule_probe import castling, promoted_symbol
from variant_ai.core.encoding.move_codes import MoveCodec
from variant_ai.core.errors import SpecError, UnknownNameError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant
from variant_ai.core.rules.game import Game
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.core.spec.betza import parse_betza
from variant_ai.testing import check_game_ends, check_rules

SHIPPED = ["chess", "crazyhouse", "xiangqi", "minishogi", "minixiangqi", "kingofthehill", "dobutsu"]
"""Variants whose derived spec must play as the shipped one."""
OTHERS = [
    "losalamos",
    "gardner",
    "hoppelpoppel",
    "shatranj",
    "knightmate",
    "manchu",
    "torpedo",
    "horde",
    "pawnsideways",
    "checkshogi",
    "caparandom",
]
"""Variants without a shipped spec that the kernel plays."""
ON_FAIRY = ["coregal", "flipello", "sittuyin"]
"""Variants for which the kernel has no words."""


def now(all_of_them: list[Any], *names: str) -> list[Any]:
    """Parameters of which those with these names belong to every test run and the others, half a minute each,
    to `make nightly`."""
    rows = [row if isinstance(row, tuple) else (row,) for row in all_of_them]
    marks = {True: (), False: (pytest.mark.nightly,)}
    return [pytest.param(*row, marks=marks[row[0] in names], id=row[0]) for row in rows]


@pytest.mark.parametrize("name", now(SHIPPED, "minixiangqi", "crazyhouse"))
def test_shipped_specs_are_found_again(name: str) -> None:
    found = derive(name, positions=40)
    assert found.engine == "kernel", found.why_fairy or found.failure
    shipped = make_rules(load_spec(builtin_specs()[name]))
    derived = make_rules(read_tree(found.tree))
    assert derived.spec.symmetry == shipped.spec.symmetry
    rng = random.Random(name)
    for _ in range(4):
        ours, theirs = shipped.position(), derived.position()
        for _ in range(80):
            moves = {shipped.uci(m): m for m in shipped.legal_moves(ours).tolist()}
            same = {derived.uci(m): m for m in derived.legal_moves(theirs).tolist()}
            assert moves.keys() == same.keys(), shipped.fen(ours)
            ends = [r.outcome(p) for r, p in ((shipped, ours), (derived, theirs))]
            assert (ends[0] is None) == (ends[1] is None), shipped.fen(ours)
            if ends[0] is not None and ends[1] is not None:
                assert ends[0].winner == ends[1].winner
                break
            text = rng.choice(sorted(moves))
            ours, theirs = shipped.play(ours, moves[text]), derived.play(theirs, same[text])


@pytest.mark.parametrize("name", now(OTHERS, "hoppelpoppel"))
def test_other_variants_run_in_the_kernel(name: str) -> None:
    found = derive(name, positions=40)
    assert found.engine == "kernel", found.why_fairy or found.failure
    report = check_rules(read_tree(found.tree), 60, seed=5)
    assert report.agrees, report.first_difference


@pytest.mark.parametrize(
    ("name", "ends"),
    now(
        [
            ("losers", {"checkmate": "win", "wins": [{"lost": "all pieces", "left": 1}]}),
            ("misere", {"checkmate": "win", "stalemate": "draw"}),
            ("suicide", {"stalemate": "fewer pieces win", "wins": [{"lost": "all pieces"}]}),
            ("codrus", {"wins": [{"lost": "K"}]}),
            ("atomic", {"wins": [{"extinct": "K"}], "explodes": True}),
            ("threekings", {"wins": [{"extinct": "K", "left": 2}]}),
            ("extinction", {"wins": [{"extinct": piece} for piece in "PQKBNR"]}),
            (
                "racingkings",
                {"wins": [{"piece": "K", "reaches": "rank 8", "race": True}], "checks": "never"},
            ),
            ("jesonmor", {"wins": [{"piece": "N", "reaches": ["e5"], "held": True}]}),
            ("nocheckatomic", {"wins": [{"extinct": "K"}], "explodes": True, "checks": "ignored"}),
            ("makpong", {"checked_king": "only captures", "counting": "makruk"}),
        ],
        "racingkings",
        "jesonmor",
    ),
)
def test_ends_of_other_kinds_are_found(name: str, ends: dict[str, object]) -> None:
    found = derive(name, positions=40)
    assert found.engine == "kernel", found.why_fairy or found.failure
    assert {word: found.tree["rules"][word] for word in ends} == ends
    report = check_game_ends(read_tree(found.tree), 10, seed=5, max_plies=120)
    assert report.agrees, report.first_difference


def test_shuffled_starts_are_found() -> None:
    found = derive("fischerandom", positions=40)
    assert found.engine == "kernel", found.why_fairy or found.failure
    spec, shipped = read_tree(found.tree), load_spec(builtin_specs()["chess960"])
    assert spec.rules.shuffle == "chess960" and spec.castling == shipped.castling


@pytest.mark.nightly
def test_castling_from_any_files_is_found() -> None:
    found = read_tree(derive("caparandom", positions=20).tree)
    assert found.rules.shuffle == "as in the FEN" and found.castling["K"].king == "f1-i1"


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["grand", "opulent"])
def test_promotions_to_captured_pieces_are_found(name: str) -> None:
    found = derive(name, positions=40)
    assert found.engine == "kernel", found.why_fairy
    assert found.tree["pieces"]["P"]["promotes"]["to"] == "captured pieces"


@pytest.mark.nightly
def test_choices_of_promotion_are_found() -> None:
    """Those of each player."""
    chigorin = derive("chigorin", positions=40)
    assert chigorin.engine == "kernel", chigorin.why_fairy
    promotes = chigorin.tree["pieces"]["P"]["promotes"]
    assert (sorted(promotes["to"]), sorted(promotes["second"])) == (list("CNR"), list("BQR"))
    chess = derive("chess", positions=20).tree["pieces"]["P"]["promotes"]
    assert "second" not in chess and sorted(chess["to"]) == list("BNQR")


@pytest.mark.nightly
def test_castling_from_any_files_is_left_to_the_engine() -> None:
    """A variant that needs Fairy-Stockfish for another reason still gets a spec."""
    tree = derive("caparandom", positions=20).tree
    tree["pieces"]["P"]["promotes"]["to"] = "captured pieces"
    drafted = read_tree(draft_for_fairy(tree, 0, []))
    assert (drafted.rules.engine, drafted.rules.shuffle) == ("fairy", "none")


@pytest.mark.nightly
def test_pieces_from_another_board_may_be_dropped() -> None:
    """Bughouse: the pieces that the partner has captured come by FEN."""
    found = derive("bughouse", positions=40)
    assert found.engine == "kernel", found.why_fairy
    spec = read_tree(found.tree)
    fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPP1PPP/RNBQKBNR[QQqPpNNNb] w KQkq - 0 1"
    report = check_rules(spec, 400, seed=3, starts=(fen, "6k1/P4Q~2/8/8/8/8/8/K7[Qn] w - - 0 1"))
    assert report.agrees and report.counts["drops"] > 0, report.first_difference


def test_moves_that_place_walls_are_probed_as_others() -> None:
    """In duck chess each move ends with the wall that it places."""
    board = ProbeBoard(FairyVariant("duck", {}), FairyVariant("duck", NEUTRAL))
    walks = {
        "K": {"king": "e1-g1", "rook": "h1-f1"},
        "Q": {"king": "e1-c1", "rook": "a1-d1"},
    }
    assert castling(board) == (walks, False)
    promotion, step, drop = board.read(["a7a8q,a8b8", "a2a3,a3b8", "N@a3"])
    assert promoted_symbol("P", promotion) == "Q" and not promotion.is_plain
    assert promoted_symbol("P", step) == "" and step.is_plain and drop.is_plain


@pytest.mark.nightly
def test_taking_the_king_is_not_reaching_its_square() -> None:
    """In duck chess the king may be taken; a king on e8 has won only because theirs is gone."""
    assert derive("duck", positions=5).tree["rules"]["wins"] == [{"extinct": "K"}]


@pytest.mark.nightly
def test_a_long_straight_move_is_said_as_a_ride() -> None:
    """A lance that turns back goes four squares; no letter is a leap of four."""
    found = derive("micro", positions=20)
    assert found.engine == "fairy", found.failure
    assert "W4" in found.tree["pieces"]["L"]["moves"]
    assert UNSTORED in found.notes


@pytest.mark.parametrize("name", now(ON_FAIRY, "flipello"))
def test_all_others_play_and_are_stored_on_fairy(name: str) -> None:
    found = derive(name, positions=20)
    assert found.engine == "fairy", found.failure
    assert found.why_fairy
    spec = read_tree(found.tree)
    rules, codec, rng = make_rules(spec), MoveCodec(spec), random.Random(name)
    game = Game(rules)
    for _ in range(30):
        if game.outcome() is not None:
            break
        legal = game.legal_moves().tolist()
        codes = {codec.encode(game.position, move) for move in legal}
        assert len(codes) == len(legal)
        game.push(rng.choice(legal))


INI = """\
[like-chess:losalamos]
customPiece1 = a:NA
knight = -
startFen = raqkar/pppppp/6/6/PPPPPP/RAQKAR w - - 0 1
promotionPieceTypes = arq

[loses-by-stalemate:like-chess]
stalemateValue = loss
"""


def test_a_variant_of_an_ini_file_is_derived(tmp_path: Path) -> None:
    ini, output = tmp_path / "mine.ini", tmp_path / "mine.yaml"
    ini.write_text(INI)
    words = ["spec", "derive", "--ini", str(ini), "loses-by-stalemate", "-o", str(output)]
    result = CliRunner().invoke(cli, [*words, "--positions", "40"], prog_name="variant-ai")
    assert result.exit_code == 0, result.output
    spec = load_spec(output)
    assert spec.pieces["A"].moves == "NA"
    assert spec.rules.stalemate == "loss"
    assert "fairy_ini: mine.ini" in output.read_text()
    report = check_rules(spec, 40, seed=3)
    assert report.agrees, report.first_difference
    on_fairy = output.read_text().replace("rules:\n", "rules:\n  engine: fairy\n")
    (tmp_path / "slow.yaml").write_text(on_fairy)
    slow = load_spec(tmp_path / "slow.yaml")
    assert check_rules(slow, 10, seed=3).agrees


@pytest.mark.nightly
def test_short_slides_that_only_capture_keep_their_length_on_even_boards(tmp_path: Path) -> None:
    """From no square can they go one step more in all directions."""
    ini = tmp_path / "w.ini"
    ini.write_text(
        "[w6]\nmaxRank = 6\nmaxFile = f\npieceToCharTable = -\nking = k\n"
        "customPiece1 = b:mWcR2\ncustomPiece2 = d:cB2\ncustomPiece3 = f:mNcF\n"
        "castling = false\ndoubleStep = false\npromotionPieceTypes = -\n"
        "startFen = fbkdbf/6/6/6/6/FBKDBF w - - 0 1\n"
    )
    spec = read_tree(derive("w6", ini=ini, positions=200).tree)
    assert spec.rules.engine == "kernel"
    moves = {symbol: parse_betza(piece.moves) for symbol, piece in spec.pieces.items()}
    assert set(moves["B"]) == set(parse_betza("mWcW2"))
    assert set(moves["D"]) == set(parse_betza("cF2"))


def test_unknown_names_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown Fairy-Stockfish variant 'ches'"):
        derive("ches")
    ini = tmp_path / "mine.ini"
    ini.write_text("[mine:chess]\nstalemtValue = loss\n")
    with pytest.raises(SpecError, match=r"no key 'stalemtValue' .*similar: stalemateValue"):
        derive("mine", ini=ini)
    ini.write_text("[mine:chess]\n")
    with pytest.raises(UnknownNameError, match=r"variant of .*mine\.ini"):
        derive("yours", ini=ini)


FOLD_INI = """
[hussars]
maxRank = 7
maxFile = g
pawn = p
rook = r
king = k
customPiece1 = h:mRcN
startFen = hrhkhrh/ppppppp/7/7/7/PPPPPPP/HRHKHRH w - - 0 1
doubleStep = false
castling = false
nFoldRule = {fold}
"""


@pytest.mark.nightly
@pytest.mark.parametrize("fold", [3, 4])
def test_repetitions_are_counted_though_no_piece_can_go_back_at_once(
    fold: int, tmp_path: Path
) -> None:
    """Pawns block every piece at the start."""
    ini = tmp_path / "mine.ini"
    ini.write_text(FOLD_INI.format(fold=fold), encoding="utf-8")
    found = derive("hussars", ini=ini, positions=20)
    assert found.tree["rules"]["repetition"] == {"fold": fold, "otherwise": "draw"}
    assert not [note for note in found.notes if "fold" in note]


@pytest.mark.nightly
def test_a_variant_without_repetition_differs(tmp_path: Path) -> None:
    (tmp_path / "mine.ini").write_text(FOLD_INI.format(fold=0), encoding="utf-8")
    found = derive("hussars", ini=tmp_path / "mine.ini", positions=20)
    found.tree["rules"]["repetition"] = {"fold": 3}
    found.tree["fairy_ini"] = FOLD_INI.format(fold=0)
    said = differing_ends(read_tree(found.tree))
    assert said == ["rules.repetition.fold is 3; Fairy-Stockfish's hussars: none up to 6"]


def test_ends_that_differ_from_the_variant_that_is_named() -> None:
    spec = load_spec(builtin_specs()["kingofthehill"])
    assert differing_ends(spec) == []
    changed = {
        "repetition": spec.rules.repetition.model_copy(update={"fold": 9}),
        "no_progress": spec.rules.no_progress.model_copy(update={"plies": 60}),
        "stalemate": "loss",
    }
    wrong = spec.model_copy(update={"rules": spec.rules.model_copy(update=changed)})
    said = differing_ends(wrong)
    assert said == [
        "rules.repetition.fold is 9; Fairy-Stockfish's kingofthehill: 3",
        "rules.no_progress.plies is 60; Fairy-Stockfish's kingofthehill: 100",
        "rules.stalemate is loss; Fairy-Stockfish's kingofthehill: draw",
    ]


@pytest.mark.parametrize(
    ("name", "left_out"),
    now(
        [
            ("janggi", []),
            ("janggicasual", ["facing_kings", "points"]),
            ("janggitraditional", ["points"]),
        ],
    ),
)
def test_variants_like_a_shipped_one_extend_it(name: str, left_out: list[str]) -> None:
    found = derive(name, positions=200)
    assert (found.engine, found.tree["extends"]) == ("kernel", "janggi"), found.why_fairy
    assert list(found.tree.get("rules", {})) == left_out
    report = check_rules(read_tree(found.tree), 300, 1)
    assert report.agrees, report.first_difference
    assert not differing_ends(read_tree(found.tree))
