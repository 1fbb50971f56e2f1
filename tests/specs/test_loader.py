"""Every mistake in a spec is named with its line, what was given and what is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from variant_ai.specs import SpecError, builtin_specs, load_spec, parse_spec


def text_of(name: str) -> str:
    return builtin_specs()[name].read_text(encoding="utf-8")


def edited(name: str, old: str, new: str) -> str:
    text = text_of(name)
    assert old in text, f"the spec no longer says {old!r}"
    return text.replace(old, new, 1)


@pytest.mark.parametrize("name", sorted(builtin_specs()))
def test_built_in_specs_load(name: str) -> None:
    assert load_spec(builtin_specs()[name]).variant == name


@pytest.mark.parametrize(
    ("name", "old", "new", "line_with", "said"),
    [
        ("xiangqi", "engine: kernel", "enginee: kernel", "enginee", "did you mean 'engine'"),
        ("xiangqi", "title: X", "variant: shogi\ntitle: X", "variant: shogi", "duplicate"),
        ("xiangqi", "files: 9", "files: 40", "files: 40", "than or equal to 12, given 40"),
        ("xiangqi", "ranks: 10", "ranks: '10'", "ranks: '10'", "given '10'"),
        ("xiangqi", "order: [A, B", "order: [A, X", "[A, X", "unknown piece 'X'"),
        ("xiangqi", "moves: nN, ", "moves: nX, ", "nX", "'nX', character 2"),
        ("xiangqi", "d1-f3", "d1-z3", "zones:", "outside the board"),
        ("xiangqi", "  - colour", "  - color", "- color", "did you mean 'colour'"),
        ("xiangqi", "  - leaps: ['2N1E', ", "  - leaps: [", "policy:", "horse (N): 2N1E"),
        ("xiangqi", "'1N2E', ", "'2N1E', ", "policy:", "both stand for move 2N1E"),
        ("xiangqi", "stalemate: loss", "stalemate: lost", "stalemate", "accepted: 'draw', 'loss'"),
        ("xiangqi", "title: Xiangqi (Chinese chess)\n", "", "", "'title' is missing"),
        ("xiangqi", "9/1c5c1", "9/1c6c1", "start:", "10 squares wide"),
        ("xiangqi", "[0.8, 0.95]", "[0.95, 0.8]", "training:", "low <= high"),
        ("xiangqi", "from: {abroad: sW}", "from: {abraod: sW}", "abraod", "not a zone"),
        ("crazyhouse", "to: [N, B, R, Q], must", "to: [N, B, R, X], must", "X]", "piece 'X'"),
        ("crazyhouse", "steps: [NW, N, NE]", "steps: [NW, N]", "policy:", "P to N: NE"),
        ("crazyhouse", "drops: [P, N, B, R, Q]", "drops: [P, N, B, R]", "policy:", "drops of Q"),
        ("crazyhouse", "king: e1-g1", "king: e1-j1", "e1-j1", "outside the board"),
        ("crazyhouse", "returns as P", "returns as X", "as X", "unknown piece 'X'"),
        ("crazyhouse", "\nsearch:", "\nsymmetry: [files]\nsearch:", "symmetry:", "castling"),
    ],
)
def test_mistakes_are_named(name: str, old: str, new: str, line_with: str, said: str) -> None:
    text = edited(name, old, new)
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "my.yaml")
    message = str(caught.value)
    assert said in message
    lines = [n for n, line in enumerate(text.splitlines(), 1) if line_with in line]
    assert lines if line_with else True
    if line_with:
        assert any(f"my.yaml:{n}:" in message for n in lines), message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "a: b: c",
        "\tx",
        "spec: 1",
        "- 1",
        "spec: &a [*a]",
        "\x00",
        "{" * 2000,
        "spec: !!x 1",
    ],
)
def test_rubbish_is_refused_in_words(text: str) -> None:
    with pytest.raises(SpecError):
        parse_spec(text)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="No such file"):
        load_spec(tmp_path / "none.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="UTF-8"):
        load_spec(binary)
    with pytest.raises(SpecError):
        load_spec(tmp_path)


def test_all_mistakes_are_listed() -> None:
    text = edited("xiangqi", "files: 9", "fies: 9").replace("ranks: 10", "ranks: 0")
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "my.yaml")
    lines = str(caught.value).splitlines()
    assert len(lines) >= 3
    assert all(line.startswith("my.yaml:") for line in lines)
