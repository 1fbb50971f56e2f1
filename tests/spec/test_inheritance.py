"""Specs that extend specs: what is merged, where mistakes are, and that hashes stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from variant_ai.core.errors import SpecError
from variant_ai.core.spec import (
    VariantSpec,
    builtin_specs,
    encoding_hash,
    load_spec,
    parse_spec,
    rules_hash,
)
from variant_ai.core.spec.catalogue import spec_names

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "spec_hashes.json").read_text())


def spec_of(folder: Path, text: str, name: str = "mine") -> VariantSpec:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return load_spec(path)


@pytest.mark.parametrize("name", sorted(builtin_specs()))
def test_hashes_of_shipped_specs_are_those_of_before_they_extended_each_other(name: str) -> None:
    spec = load_spec(builtin_specs()[name])
    assert GOLDEN[name] == {"rules": rules_hash(spec), "encoding": encoding_hash(spec)}


def test_a_variant_in_four_lines(tmp_path: Path) -> None:
    spec = spec_of(
        tmp_path,
        "extends: crazyhouse\nvariant: mine\nfairy: null\n"
        "rules: {start: 'rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR[QQ] w KQkq - 0 1'}\n",
    )
    parent = load_spec(builtin_specs()["crazyhouse"])
    assert (spec.variant, spec.fairy) == ("mine", None)
    assert spec.rules.stalemate == parent.rules.stalemate and "[QQ]" in spec.rules.start
    assert list(spec.pieces) == list(parent.pieces)
    assert spec.input == parent.input and spec.search == parent.search


def test_keys_are_merged_added_behind_and_taken_away(tmp_path: Path) -> None:
    spec = spec_of(
        tmp_path,
        "extends: chess\nvariant: mine\nfairy: null\nnames: null\n"
        "pieces:\n  A: {name: archbishop, moves: BN}\n  N: {moves: NW}\n  B: null\n"
        "  P: {promotes: {to: [A, Q]}}\n"
        "rules: {start: 'rnqqkqnr/pppppppp/8/8/8/8/PPPPPPPP/RNQQKQNR w KQkq - 0 1'}\n",
    )
    assert list(spec.pieces) == ["P", "N", "R", "Q", "K", "A"]
    assert spec.pieces["N"].name == "knight" and spec.pieces["N"].moves == "NW"
    assert spec.pieces["P"].promotes is not None
    assert spec.pieces["P"].promotes.to == ("A", "Q") and spec.pieces["P"].promotes.must is True
    assert spec.names == {}


def test_inherited_stands_for_the_items_of_the_parents_list(tmp_path: Path) -> None:
    parent = load_spec(builtin_specs()["chess"])
    spec = spec_of(
        tmp_path,
        "extends: chess\nvariant: mine\ninput: [{last_moves: 1}, inherited]\n",
    )
    assert spec.input[1:] == parent.input and len(spec.input) == len(parent.input) + 1


def test_parents_lie_beside_the_file_or_have_a_path_and_parents_of_their_own(
    tmp_path: Path,
) -> None:
    (tmp_path / "deep").mkdir()
    rules = "rules: {stalemate: loss, insufficient_material: null}\n"
    spec_of(tmp_path, f"extends: chess\nvariant: base\n{rules}", "base")
    near = spec_of(tmp_path, "extends: base\nvariant: near\ntitle: Near\n", "near")
    assert near.rules.stalemate == "loss" and near.title == "Near"
    far = spec_of(tmp_path / "deep", "extends: ../near.yaml\nvariant: far\n", "far")
    assert far.rules.stalemate == "loss" and far.title == "Near"
    assert spec_names(tmp_path / "deep" / "far.yaml") == ("far", "chess", ("uci",))
    assert spec_names(tmp_path / "near.yaml") == ("near", "chess", ("uci",))


def test_words_of_a_spec_that_extends_xiangqi_are_known_before_it_is_loaded(tmp_path: Path) -> None:
    spec_of(
        tmp_path,
        "extends: xiangqi\nvariant: mine\nfairy: null\n"
        "rules: {repetition: {perpetual_chase: none}}\n",
    )
    assert spec_names(tmp_path / "mine.yaml") == ("mine", "", ("uci", "ucci", "cyclone"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: chees\nvariant: mine\n", "mine.yaml:1:1: extends: unknown variant 'chees'"),
        ("extends: none.yaml\nvariant: mine\n", "mine.yaml:1:1: extends: there is no file"),
        ("extends: [chess]\nvariant: mine\n", "mine.yaml:1:1: extends: given ['chess']; accepted"),
        ("extends: mine\nvariant: mine\n", "mine.yaml:1:1: extends: a spec cannot extend itself"),
        (
            "extends: chess\nvariant: mine\nrules:\n  stalemate: wins\n",
            "mine.yaml:4:3: rules.stalemate: given 'wins'",
        ),
        (
            "extends: chess\nvariant: mine\npieces: {N: {moves: N, royal: maybe}}\n",
            "mine.yaml:3:24: pieces.N.royal",
        ),
        (
            "extends: dobutsu\nvariant: mine\ncastling: [inherited]\n",
            "mine.yaml:3:12: `inherited` stands for",
        ),
        ("variant: mine\ninput: [inherited]\nspec: 1\n", "`inherited` stands for|is missing|given"),
    ],
)
def test_mistakes_have_the_childs_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_of(tmp_path, text)
    assert any(part in str(caught.value) for part in message.split("|")), str(caught.value)


def test_a_parents_word_that_clashes_has_the_parents_file_and_line(tmp_path: Path) -> None:
    # castling of the parent needs a rook on h1
    with pytest.raises(SpecError) as caught:
        spec_of(
            tmp_path,
            "extends: chess\nvariant: mine\n"
            "rules: {start: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBN1 w KQkq - 0 1}\n",
        )
    line = next(
        number
        for number, text in enumerate(builtin_specs()["chess"].read_text().splitlines(), start=1)
        if text.startswith("castling:")
    )
    assert f"chess.yaml:{line}:" in str(caught.value) and "castling.K.rook" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "symmetry"),
    [
        ("extends: shogi\npieces: {G: {moves: WflF}}\n", ()),
        ("extends: antichess\ncastling: {K: {king: e1-g1, rook: h1-f1}}\n", ()),
        ("extends: shogi\npieces: {G: {moves: WfF}}\n", ("files",)),
    ],
)
def test_a_parents_symmetry_holds_only_where_it_is_true(
    tmp_path: Path, text: str, symmetry: tuple[str, ...]
) -> None:
    spec = spec_of(tmp_path, f"{text}variant: mine\nfairy: null\n")
    assert spec.symmetry == symmetry


def test_a_text_without_a_file_extends_shipped_specs() -> None:
    assert parse_spec("extends: xiangqi\nvariant: mine\n").board.files == 9
