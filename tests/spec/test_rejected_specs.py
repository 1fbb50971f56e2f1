"""Specs that were accepted, and then crashed the check or were played wrongly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from variant_ai.core.errors import SpecError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.kernel.rule_tables import missing_words
from variant_ai.core.rules.shuffled_starts import shuffled_start
from variant_ai.core.spec import load_spec
from variant_ai.plugins import registry


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("extends: chess960\nrules: {start: ''}\n", "mine.yaml:2", "at least two fields"),
        (
            "extends: chess960\ncastling: {K: {king: '', rook: h1-f1}}\n",
            "mine.yaml:2",
            "is not two squares",
        ),
        (
            "extends: chess\ncastling: {A: {king: e1-g1, rook: h1-f1}, B: {king: e1-c1, rook: a1-d1}}\n",
            "mine.yaml:2",
            "4 sides; accepted: at most 3",
        ),
        (
            "extends: chess\ncastling: null\nrules:\n  start: 4k3/8/8/8/8/8/P7/4K3 w 0 1\n",
            "mine.yaml:4",
            "no field for en passant squares",
        ),
        (
            "extends: crazyhouse\nhands:\n  order: [N, B, R, Q]\n",
            "mine.yaml:3",
            "P, as which promoted pieces return, is missing",
        ),
        (
            "extends: minishogi\npieces:\n  +P: {promotes: {at: rank 1, to: [X]}}\n  X: {name: imp, moves: K}\n",
            "minishogi.yaml:19",
            "P promotes to +P, which promotes again",
        ),
        (
            "extends: grand\nhands:\n  order: [P]\n  promoted: returns as P\n",
            "mine.yaml:4",
            "with `to: captured pieces`; accepted: `keeps`",
        ),
    ],
)
def test_the_mistake_has_its_line(tmp_path: Path, text: str, place: str, expected: str) -> None:
    with pytest.raises(SpecError, match=rf"{place}:.*{re.escape(expected)}"):
        load_spec(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("extends: janggi\nhands: {order: [R, C, P]}\n", "`avoids` with hands"),
        (
            "extends: janggi\nrules: {start: rnba1abnr/4*4/1c2k2c1/p1p1p1p1p/9/9/P1P1P1P1P/1C2K2C1/9/RNBA1ABNR w - - 0 1}\n",
            "`facing_kings: must part` with walls",
        ),
    ],
)
def test_what_the_kernel_would_play_wrongly(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in missing_words(load_spec(written(tmp_path, text)))


def test_an_error_of_the_kernel_has_the_words_of_the_piece(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "extends: chess\npieces:\n  P:\n    promotes:\n      at: rank 7\n      must: where stuck\n",
    )
    with pytest.raises(SpecError, match="must promote on a8") as caught:
        make_rules(load_spec(path))
    assert caught.value.keys == ("pieces", "P", "promotes", "at")


def test_shuffled_starts_keep_the_rights_of_the_spec() -> None:
    chess = registry().variant("chess960")
    rules = chess.rules.model_copy(update={"start": chess.rules.start.replace("KQkq", "KQ")})
    one_sided = chess.model_copy(update={"rules": rules})
    assert shuffled_start(one_sided, 518).split()[2] == "HA"


CHILD = "extends: minixiangqi\nvariant: child\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CHILD + "policy: [slides]", "accepted: {slides: {N: 7, NE: 7}}"),
        (CHILD + "policy: [leaps]", "accepted: {leaps: [2N1E]}"),
        (CHILD + "players: [White]", "players: a list of 1 is too short"),
        (CHILD + "spec: true", "child.yaml:3:1: spec: given True; accepted: 1"),
        (CHILD + "protocols: []", "child.yaml:3:1: protocols: a list of at least 1 is expected"),
        (CHILD + "rule: {}", "accepted: board, castling, drawing, encoder, extends,"),
        (CHILD + "fairy_ini: gone.ini", "child.yaml:3:1: fairy_ini: "),
        (
            CHILD + "pieces: {P: {promotes: {at: rank 7, to: [R], must: maybe}}}",
            "or true, false or `where stuck`",
        ),
        (
            "extends: chess\nvariant: child\nfairy: null\nrules: {counting: makruk}",
            "rules.counting: a FEN has one field for the count and for en passant",
        ),
    ],
)
def test_messages_say_what_is_accepted(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "child.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert message in str(caught.value)


@pytest.mark.parametrize("item", ["[slides]", "{slides: [N]}", "3"])
def test_any_item_of_the_policy_gets_a_message(tmp_path: Path, item: str) -> None:
    path = tmp_path / "child.yaml"
    path.write_text(f"{CHILD}policy: [{item}]\n")
    with pytest.raises(SpecError, match=r"child\.yaml:3:"):
        load_spec(path)
