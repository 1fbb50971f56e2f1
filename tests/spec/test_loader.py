"""Every mistake in a spec is named with its line, what was given and what is accepted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from variant_ai.core.arena.players.player_spec import read_yaml
from variant_ai.core.errors import SettingError, SpecError
from variant_ai.core.spec import builtin_specs, load_spec, parse_spec
from variant_ai.core.spec.files.yaml_reader import location_of, parse_yaml, plain_values


def text_of(name: str) -> str:
    return builtin_specs()[name].read_text(encoding="utf-8")


def edited(name: str, old: str, new: str) -> str:
    text = text_of(name)
    assert old in text, f"the spec no longer has {old!r}"
    return text.replace(old, new, 1)


@pytest.mark.parametrize("name", sorted(builtin_specs()))
def test_built_in_specs_load(name: str) -> None:
    assert load_spec(builtin_specs()[name]).variant == name


@pytest.mark.parametrize(
    ("name", "old", "new", "line_with", "expected"),
    [
        ("xiangqi", "engine: kernel", "enginee: kernel", "enginee", "did you mean 'engine'"),
        ("xiangqi", "title: X", "variant: shogi\ntitle: X", "variant: shogi", "duplicate"),
        ("xiangqi", "files: 9", "files: 40", "files: 40", "at most 12 is expected, given 40"),
        ("xiangqi", "ranks: 10", "ranks: '10'", "ranks: '10'", "given '10'"),
        ("xiangqi", "order: [A, B", "order: [A, X", "[A, X", "unknown piece 'X'"),
        ("xiangqi", "moves: nN, ", "moves: nX, ", "nX", "'nX', character 2"),
        ("xiangqi", "d1-f3", "d1-z3", "zones:", "outside the board"),
        ("xiangqi", "  - colour", "  - color", "- color", "did you mean 'colour'"),
        ("xiangqi", "  - leaps: ['2N1E', ", "  - leaps: [", "policy:", "horse (N): 2N1E"),
        ("xiangqi", "'1N2E', ", "'2N1E', ", "policy:", "both have the move 2N1E"),
        ("xiangqi", "stalemate: loss", "stalemate: lost", "stalemate", "accepted: 'draw', 'loss'"),
        ("xiangqi", "title: Xiangqi (Chinese chess)\n", "", "", "'title' is missing"),
        ("xiangqi", "9/1c5c1", "9/1c6c1", "start:", "10 files, the board has 9"),
        ("xiangqi", "[0.8, 0.95]", "[0.95, 0.8]", "training:", "low <= high"),
        ("xiangqi", "from: {abroad: sW}", "from: {abraod: sW}", "abraod", "not a zone"),
        ("crazyhouse", "to: [N, B, R, Q], must", "to: [N, B, R, X], must", "X]", "piece 'X'"),
        ("crazyhouse", "steps: [NW, N, NE]", "steps: [NW, N]", "policy:", "P to N: NE"),
        ("crazyhouse", "drops: [P, N, B, R, Q]", "drops: [P, N, B, R]", "policy:", "drops of Q"),
        ("crazyhouse", "king: e1-g1", "king: e1-j1", "e1-j1", "outside the board"),
        ("crazyhouse", "returns as P", "returns as X", "as X", "unknown piece 'X'"),
        ("crazyhouse", "\nsearch:", "\nsymmetry: [files]\nsearch:", "symmetry:", "castling"),
        (
            "shogi",
            "gold,   moves: WfF",
            "gold,   moves: WflF",
            "symmetry:",
            "G moves differently to the left",
        ),
        ("janggi", "lower right: flF", "lower right: frF", "symmetry:", "P moves differently"),
        (
            "janggi",
            "lower right: [f1, f8]",
            "lower right: [f1]",
            "symmetry:",
            "R moves differently",
        ),
        (
            "xiangqi",
            "plies: 120",
            "plies: 0",
            "plies: 0",
            "given 0; accepted: a whole number from 1",
        ),
        ("xiangqi", "plies: 120", "plies: 30001", "plies: 3", "from 1 to 30000, or `none`"),
        ("xiangqi", "counted: 10", "counted: -1", "plies:", "from 0 to 30000, or `all`"),
        ("xiangqi", "fold: 3", "fold: 1000", "fold", "at most 100 is expected, given 1000"),
        ("xiangqi", "max: 500", "max: .inf", ".inf", "finite number is expected, given inf"),
        ("xiangqi", "max: 500", "max: .nan", ".nan", "finite number is expected, given nan"),
        ("xiangqi", "max: 500", "max: 1.0e+300", "e+300", "at most 1000000 is expected"),
        ("xiangqi", "{N: 9, E", "{N: 90000000, E", "N: 90000000", "at most 11 is expected"),
        ("xiangqi", "{N: 9, E", "{N: 0, E", "N: 0", "at least 1 is expected, given 0"),
        ("shogi", "per_file: 1", "per_file: 300", "per_file: 300", "at most 10 is expected"),
        ("xiangqi", "{max: 500}", "500", "move_number", "given 500; accepted: {max: 500}"),
        (
            "xiangqi",
            "move_number: {max: 500}",
            "move_number",
            "move_number",
            "{move_number: {max: …}}",
        ),
        ("chess", "castling: me", "castling", "castling", "{castling: me}, or {castling: them}"),
        (
            "chess",
            "repetitions: 2",
            "repetitions",
            "repetitions",
            "{repetitions: a whole number fr",
        ),
        ("chess", "R: {name: rook,   moves: R}", "R: R", "R: R", "'R'; accepted: {name: …, moves"),
        ("xiangqi", "rank 1-5", "rank 5-1", "zones", "zone 'rank 5-1' is empty; accepted: `rank 1"),
        ("kingofthehill", "d4-e5}", "file e-d}", "zones", "is empty; accepted: `file d-e`"),
        ("xiangqi", "within: palace", "within: 6", "within: 6", "a zone: `rank 6`, …"),
        (
            "xiangqi",
            "rank 1-5",
            "5",
            "zones",
            "board.zones.home: given 5; accepted: a zone: `rank 5`",
        ),
        (
            "chess",
            "at: rank 8",
            "at: [8]",
            "at: [8]",
            "at.0: given 8; accepted: a square such as e4",
        ),
        (
            "chess",
            "must: true",
            "must: 8",
            "must: 8",
            "true or false, or a zone: `rank 8`, …, or `w",
        ),
        ("chess", "to: [N, B, R, Q]", "to: Q", "to: Q", "a list in [ ], or `captured pieces`"),
        ("chess", "K: {king: e1-g1, rook: h1-f1}", "K: e1", "K: e1", "{king: …, rook: …}"),
        (
            "kingofthehill",
            "{piece: K, reaches: hill}",
            "{}",
            "wins:",
            "nothing given; an item is one of",
        ),
        (
            "kingofthehill",
            "{piece: K, reaches: hill}",
            "{piece: K}",
            "wins:",
            "wins.0: piece given; an item is one of `{piece: K, reaches",
        ),
        (
            "kingofthehill",
            "{piece: K, reaches: hill}",
            "{reaches: hill}",
            "wins:",
            "reaches given; an",
        ),
        (
            "kingofthehill",
            "{piece: K, reaches: hill}",
            "{checks: 3, extinct: Q}",
            "wins:",
            "checks, extinct given; an item is one",
        ),
        (
            "kingofthehill",
            "{piece: K, reaches: hill}",
            "{checks: 3, safe: true}",
            "wins:",
            "checks, safe given; an",
        ),
        (
            "kingofthehill",
            "{piece: K, reaches: hill}",
            "{piece: K, reaches: []}",
            "wins:",
            "an empty list is not a zone",
        ),
        (
            "three-check",
            "fairy: 3check",
            "fairy: 3check\npieces: {K: {royal: null}}\ncastling: null",
            "wins:",
            "wins.0.checks: there are no checks",
        ),
        (
            "capablanca",
            "K, royal: true",
            "K",
            "rules:",
            "nobody can win: no piece of the start position",
        ),
        ("chess", "[N, B, R, Q]", "[N, P]", "to: [N, P]", "to.1: P would promote to itself"),
        (
            "chess",
            "[N, B, R, Q]",
            "[N, B, N]",
            "to: [N, B, N]",
            "to.2: N is listed already; accepted: each",
        ),
        ("chess", "[N, B, R, Q]", "[Q, K]", "to: [Q, K]", "to.1: K is royal"),
        ("chess", "[N, B, R, Q]", "[]", "to: []", "an empty list; accepted: pieces"),
        (
            "chess",
            "at: rank 8",
            "at: []",
            "at: []",
            "at: an empty list is not a zone; accepted: `rank",
        ),
        (
            "kingofthehill",
            "{hill:",
            "{rank 2:",
            "zones:",
            "zones.rank 2: 'rank 2' already has a meaning",
        ),
        (
            "kingofthehill",
            "{hill:",
            "{file a-c:",
            "zones:",
            "zones.file a-c: 'file a-c' already has a meaning",
        ),
        (
            "kingofthehill",
            "{hill:",
            "{d1-f3:",
            "zones:",
            "zones.d1-f3: 'd1-f3' already has a meaning",
        ),
        ("kingofthehill", "{hill:", "{e4:", "zones:", "zones.e4: 'e4' already has a meaning"),
        (
            "kingofthehill",
            "{hill:",
            "{where stuck:",
            "zones:",
            "zones.where stuck: 'where stuck' already has a meaning",
        ),
        (
            "xiangqi",
            "also: H",
            "also: HX",
            "also: HX",
            "also: 'HX' is not a letter of a FEN; accepted: one",
        ),
        ("xiangqi", "also: H", "also: h", "also: h", "'h' is not a letter"),
        ("xiangqi", "also: H", "also: R", "also: R", "also: letter 'R' is used by R already"),
        ("xiangqi", "also: H", "also: E", "also: E", "also: letter 'E' is used by B already"),
    ],
)
def test_mistakes_are_named(name: str, old: str, new: str, line_with: str, expected: str) -> None:
    text = edited(name, old, new)
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "my.yaml")
    message = str(caught.value)
    assert expected in message
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
def test_invalid_text_has_a_message(text: str) -> None:
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


def test_a_word_of_several_types_is_one_mistake() -> None:
    for old, new in (("within: palace", "within: 6"), ("N: 9, E", "N: 99, E")):
        with pytest.raises(SpecError) as caught:
            parse_spec(edited("xiangqi", old, new), "my.yaml")
        assert len(str(caught.value).splitlines()) == 1


def test_all_mistakes_are_listed() -> None:
    text = edited("xiangqi", "files: 9", "fies: 9").replace("ranks: 10", "ranks: 0")
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "my.yaml")
    lines = str(caught.value).splitlines()
    assert len(lines) >= 3
    assert all(line.startswith("my.yaml:") for line in lines)


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 8)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LAUGHS, "over 20,000 values (those of an alias count at each use)"),
        ("- 1\n" * 20_001, "over 20,000 values"),
        ("a: &a {<<: *a}\n", "1:12: a spec: an alias inside the value it refers to"),
        ("a: &a [1, *a]\n", "1:11: a spec: an alias inside the value it refers to"),
        ("a: {<<: *b}\n", "not YAML: found undefined alias"),
        ("a: 1\n  b: 2\n", "is a blank missing after a colon"),
        ("a: {b: 1\n", "is a bracket not closed"),
        (
            "a: 1\nb:2\nc: 3\n",
            "3:1: not YAML: could not find expected ':' in what begins in line 2; is a",
        ),
        ("a: [1,\n  2\nc: 3\n", "but got ':' in what begins in line 1; is a bracket not closed"),
        ("a:\n  b: 1\n c: 2\n", "but found '<block mapping start>'; is the line indented"),
        ("? [a, b]\n: 1\n", ""),
        ("? {a: b}\n: 1\n", ""),
    ],
)
def test_yaml_that_multiplies(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=re.escape(f"my.yaml{':' if expected else ''}")) as caught:
        parse_spec(text, "my.yaml")
    assert expected in str(caught.value)
    players = tmp_path / "players.yaml"
    players.write_text(text)
    if expected:
        with pytest.raises(
            SettingError, match=re.escape(expected.removeprefix("1:").split("a spec")[-1])
        ):
            read_yaml(players)


def test_aliases_and_merges_are_read() -> None:
    text = "a: &a {b: 1, c: [1, 2]}\nd: {<<: *a, b: 2}\ne: [*a, *a]\n"
    tree = parse_yaml(text, "x", "a file", "a, b, …")
    assert location_of(tree, ("d", "b")) == "x:2:13"
    assert plain_values(tree)["d"] == {"b": 2, "c": [1, 2]}
    assert plain_values(tree)["e"] == [{"b": 1, "c": [1, 2]}] * 2
