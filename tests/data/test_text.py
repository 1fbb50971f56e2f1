"""Encodings are found from the bytes alone."""

from __future__ import annotations

import io

import pytest

from variant_ai.core.data.read.decoding import MAX_LINE, REPLACEMENT, TextLines, detect, head_text

HEADER = '[Event "全國象棋個人賽"]\n[Red "許銀川"]\n[Black "呂欽"]\n[Result "1/2-1/2"]\n\n'
MOVES = "1. 炮二平五 馬８進７\n2. 馬二進三 車９平８\n"
SIMPLE = '[Event "全国象棋个人赛"]\n[Red "许银川"]\n\n1. 炮二平五 马８进７\n2. 马二进三 车９平８\n'
EXPECT = "炮馬马車车進进退平兵卒"


def _lines(data: bytes, expect: str = "") -> list[str]:
    numbered = list(TextLines(io.BufferedReader(io.BytesIO(data)), expect))
    assert sorted({number for number, _ in numbered}) == list(
        range(1, 1 + max((n for n, _ in numbered), default=0))
    )
    return [text for _, text in numbered]


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (text, codec)
        for text in (HEADER + MOVES, SIMPLE)
        for codec in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5")
        if not (text == SIMPLE and codec == "big5")
    ],
)
def test_chinese_text_in_every_encoding(text: str, codec: str) -> None:
    assert _lines(text.encode(codec)) == text.splitlines()


@pytest.mark.parametrize("codec", ("utf-8", "big5", "gb18030"))
@pytest.mark.parametrize(
    "text", ("炮二平五", "馬８進７", '[White "李來群"]', "1. 炮二平五 馬８進７")
)
def test_a_few_characters_are_enough(text: str, codec: str) -> None:
    assert _lines(text.encode(codec), EXPECT) == [text]


@pytest.mark.parametrize(
    "name", ("Gößl, Hans", "Søørensen", "Müller", "Sørensen", "Peña", "Łukasz", "José María")
)
def test_western_names_are_not_taken_for_chinese(name: str) -> None:
    line = f'[White "{name}, A."]'
    assert _lines(line.encode()) == [line]
    if name != "Łukasz":
        assert _lines(line.encode("cp1252")) == [line]


@pytest.mark.parametrize("codec", ("utf-8", "big5", "gb18030"))
def test_the_first_chinese_character_may_come_late(codec: str) -> None:
    text = '[Event "?"]\n\n1. C2=5 H8+7\n' * 5000 + HEADER + MOVES
    assert _lines(text.encode(codec)) == text.splitlines()


def test_files_put_together_keep_their_encodings() -> None:
    text = HEADER + MOVES
    data = b"".join(text.encode(codec) for codec in ("big5", "utf-8", "gb18030", "big5"))
    assert _lines(data, EXPECT) == text.splitlines() * 4


def test_bytes_of_no_encoding_become_replacement_characters() -> None:
    lines = _lines(HEADER.encode("big5") + b"1. \xff\xff\xff e4\n" + MOVES.encode("big5"))
    assert REPLACEMENT in lines[5] or "ÿ" in lines[5]
    assert lines[-1] == MOVES.splitlines()[-1]


@pytest.mark.parametrize("end", ("\n", "\r\n", "\r"))
def test_line_ends_of_every_system(end: str) -> None:
    assert _lines(end.join(["a", "b", "", "c"]).encode()) == ["a", "b", "", "c"]


def test_an_endless_line_comes_in_pieces() -> None:
    word = "馬８進７"
    data = (word * 400_000).encode()
    lines = _lines(data)
    assert "".join(lines) == word * 400_000
    assert len(lines) > 3
    assert max(len(line.encode()) for line in lines) <= 2 * MAX_LINE


def test_empty_input_has_no_lines() -> None:
    assert _lines(b"") == []
    assert _lines(b"\xef\xbb\xbf") == []


def test_head_of_a_file_is_cut_at_a_whole_character() -> None:
    data = ('[Event "x"]\n' + "馬８進７ " * 300).encode("big5")
    for size in range(1100, 1120):
        assert REPLACEMENT not in head_text(data[:size], EXPECT)
    assert head_text(b"short") == "short"
    assert detect(b"only ASCII") == "utf-8"


def test_a_mark_does_not_shift_the_cuts_of_a_long_line() -> None:
    text = "é" * (MAX_LINE * 2 // 3)
    assert "".join(_lines(b"\xef\xbb\xbf" + text.encode())) == text


def test_western_names_in_two_encodings_are_no_chinese() -> None:
    """Two collections in one file; GB18030 decodes nearly everything."""
    names = ["Müller", "Gómez", "Façade", "Zürich, Café"]
    data = b"".join(
        f"{name}\n".encode("cp1252" if turn % 2 else "utf-8") for turn in range(4) for name in names
    )
    assert _lines(data) == names * 4
