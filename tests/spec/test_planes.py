"""Plane lists against the papers' tables (000 tables 1 and 2, thesis tables 4.2 and 4.3)."""

from __future__ import annotations

import itertools

import pytest

from variant_ai.core.spec import builtin_specs, encoding_hash, load_spec, parse_spec, rules_hash
from variant_ai.core.spec.plane_layout import input_planes, policy_planes, step_name
from variant_ai.core.spec.zones import zone_squares


def test_crazyhouse_tables() -> None:
    spec = load_spec(builtin_specs()["crazyhouse"])
    planes = input_planes(spec)
    expected = (
        ["pieces"] * 12
        + ["repetitions"] * 2
        + ["hand"] * 10
        + ["promoted"] * 2
        + ["en_passant", "colour", "move_number"]
        + ["castling"] * 4
        + ["halfmove"]
    )
    assert [p.item for p in planes] == expected
    assert [p.piece for p in planes[:6]] == list("PNBRQK")
    assert {p.max for p in planes if p.item == "hand"} == {32}
    policy = policy_planes(spec)
    assert len(policy) == 81
    points = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"]
    names = [n if k == 1 else f"{k}{n}" for n in points for k in range(1, 8)]
    assert [p.name for p in policy[:56]] == names
    assert [p.name for p in policy[64:68]] == ["NW=N", "N=N", "NE=N", "NW=B"]
    assert [p.piece for p in policy[76:]] == list("PNBRQ")


def test_xiangqi_tables() -> None:
    spec = load_spec(builtin_specs()["xiangqi"])
    planes = input_planes(spec)
    assert len(planes) == 28
    assert [p.piece for p in planes[:7]] == list("KABNRCP")
    assert [p.piece for p in planes[14:20]] == list("ABNRCP")
    policy = policy_planes(spec)
    assert len(policy) == 50
    assert [p.name for p in policy[34:44]] == [
        "NE", "2NE", "SE", "2SE", "SW", "2SW", "NW", "2NW", "2N1E", "1N2E",
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(builtin_specs()))
def test_derived_layout_holds_every_written_move_once(name: str) -> None:
    spec = load_spec(builtin_specs()[name])
    derived = policy_planes(spec, "derived")
    keys = [(p.kind, p.dx, p.dy, p.piece) for p in derived]
    assert len(set(keys)) == len(keys)
    assert [p.index for p in derived] == list(range(len(derived)))
    if not isinstance(spec.policy, str):
        # The papers' layouts may hold more (8 x 8 queens reach everything), never less.
        written = {(p.kind, p.dx, p.dy, p.piece) for p in policy_planes(spec)}
        assert set(keys) <= written


def test_derived_planes_can_be_followed_by_others() -> None:
    spec = load_spec(builtin_specs()["minishogi"])
    data = spec.model_dump(by_alias=True)
    longer = type(spec).model_validate({**data, "policy": ("derived", "pass")})
    names = [plane.name for plane in policy_planes(longer)]
    assert names == [*(plane.name for plane in policy_planes(spec)), "pass"]
    assert policy_planes(longer) == policy_planes(longer, "derived")


def test_step_names_are_distinct() -> None:
    steps = [s for s in itertools.product(range(-7, 8), repeat=2) if s != (0, 0)]
    assert len({step_name(*s) for s in steps}) == len(steps)


def test_zones() -> None:
    board = load_spec(builtin_specs()["xiangqi"]).board
    assert zone_squares("rank 1-5", board) == frozenset(range(45))
    assert zone_squares("palace", board) == {3, 4, 5, 12, 13, 14, 21, 22, 23}
    assert zone_squares(("a1", "i10"), board) == {0, 89}
    assert zone_squares("file i", board) == frozenset(range(8, 90, 9))


def test_hashes_follow_meaning() -> None:
    path = builtin_specs()["xiangqi"]
    text = path.read_text(encoding="utf-8")
    spec = load_spec(path)
    same = parse_spec(
        text.replace("  engine: kernel", "  engine: fairy   # slow").replace("1.0e-5", "0.00001")
    )
    assert (rules_hash(same), encoding_hash(same)) == (rules_hash(spec), encoding_hash(spec))
    planes = parse_spec(text.replace("max: 500", "max: 400"))
    assert rules_hash(planes) == rules_hash(spec)
    assert encoding_hash(planes) != encoding_hash(spec)
    turned = parse_spec(text.replace("{N: 9, E: 8, S: 9, W: 8}", "{E: 8, N: 9, S: 9, W: 8}"))
    assert encoding_hash(turned) != encoding_hash(spec)
    rules = parse_spec(text.replace("stalemate: loss", "stalemate: draw"))
    assert rules_hash(rules) != rules_hash(spec)
