"""Files in the format of Fairy-Stockfish's variants.ini: what is read, and the line of a mistake."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from variant_ai.core.errors import SpecError
from variant_ai.core.spec import builtin_specs, load_spec, rules_hash
from variant_ai.core.spec.files.fairy_ini import own_names, read_ini
from variant_ai.core.spec.files.yaml_reader import read_text

TEXT = """\
# a comment
[parent:chess]
customPiece1 = a:NA   # a word of Betza notation
knight = -

[child:parent]
stalemateValue = loss
"""


def test_sections_settings_and_parents_are_read() -> None:
    found = read_ini(TEXT)
    assert [(v.name, v.parent) for v in found.values()] == [
        ("parent", "chess"),
        ("child", "parent"),
    ]
    assert found["parent"].settings == {"customPiece1": "a:NA", "knight": "-"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[one:chess]\nstalematValue = loss\n",
            "mine.ini:2: Fairy-Stockfish has no key 'stalematValue'",
        ),
        ("\n[one:ches]\n", "mine.ini:2: unknown parent 'ches'"),
        ("[one]\n[one]\n", "mine.ini:2: the variant 'one' is given twice"),
        ("[chess]\n", "mine.ini:1: Fairy-Stockfish has a variant 'chess'"),
        ("pawn = p\n", "mine.ini:1: 'pawn = p'; accepted"),
        ("[one]\npawn\n", "mine.ini:2: 'pawn'; accepted"),
        ("[one]\npawn = p\npawn = q\n", "mine.ini:3: 'pawn' is given twice"),
        ("[one two]\n", "mine.ini:1: '\\[one two\\]' is not a section"),
        (
            "[one]\nstalemateValue = lost\n",
            "mine.ini:2: stalemateValue = 'lost'; accepted: win, loss, draw, none",
        ),
        ("[one]\nmustCapture = yes\n", "mine.ini:2: mustCapture = 'yes'; accepted: true, false"),
        ("[one]\nnMoveRule = many\n", "mine.ini:2: nMoveRule = 'many'; accepted: a whole number"),
        ("[one]\npawn = ä\n", "mine.ini:2: 'ä'; accepted: letters of ASCII"),
    ],
)
def test_mistakes_have_their_line(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_ini(text, "mine.ini")
    shown = f"{caught.value.where}: {caught.value}" if caught.value.where else str(caught.value)
    assert re.search(message, shown), shown


def test_names_in_a_process_are_those_of_the_content() -> None:
    name, text = own_names(TEXT, "child", "x")
    other, _ = own_names(TEXT.replace("loss", "win"), "child", "x")
    assert name != other
    assert f"[{name}:" in text and "[parent" not in text and "chess]" in text


def spec_with_ini(folder: Path, ini: str) -> Path:
    (folder / "mine.ini").write_text(ini)
    path = folder / "mine.yaml"
    path.write_text(
        "extends: chess\nvariant: mine\ntitle: Mine\nfairy: mine\nfairy_ini: mine.ini\n"
        "rules: {stalemate: loss, insufficient_material: null}\nnames: null\n"
    )
    return path


def test_a_spec_holds_the_text_of_its_file(tmp_path: Path) -> None:
    text = "[mine:chess]\nstalemateValue = loss\n"
    spec = load_spec(spec_with_ini(tmp_path, text))
    assert spec.fairy_ini == text
    (tmp_path / "other").mkdir()
    other = load_spec(spec_with_ini(tmp_path / "other", text + "nFoldRule = 4\n"))
    assert rules_hash(spec) != rules_hash(other)
    assert load_spec(builtin_specs()["chess"]).fairy_ini is None


def test_a_spec_names_a_variant_of_its_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"mine.yaml:4:1: fairy: unknown variant of the ini file"):
        load_spec(spec_with_ini(tmp_path, "[yours:chess]\n"))
    with pytest.raises(SpecError, match=r"mine.ini:2.*no key 'xyz'"):
        load_spec(spec_with_ini(tmp_path, "[mine:chess]\nxyz = 1\n"))


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "b.ini"
    path.write_text("[mine:chess]\ncastling = false\n", encoding="utf-8-sig")
    assert list(read_ini(read_text(path, "an ini file"))) == ["mine"]
