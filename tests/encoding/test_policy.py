"""Moves to actions and back: maps, flat labels, mirroring."""

from __future__ import annotations

import re

import numpy as np
import pytest
from encoding_games import (
    ODD_FENS,
    VARIANTS,
    encoder_of,
    random_games,
    rules_of,
    spec_of,
)

from variant_ai.core.encoding import Encoder, FlatLabels, PolicyMap
from variant_ai.core.encoding import encoding_kernels as kernels
from variant_ai.core.errors import MoveError, SpecError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.position import (
    CASTLING,
    DOUBLE_STEP,
    DROP,
    EN_PASSANT,
    NORMAL,
    PROMOTION,
    make_move,
    move_kind,
    square_index,
)
from variant_ai.core.spec import VariantSpec
from variant_ai.core.testing.encoding_conformance import (
    mirrored_move,
    mirrored_position,
    swapped_move,
    swapped_position,
)


@pytest.mark.parametrize(
    ("name", "planes", "actions", "labels"),
    [("crazyhouse", 81, 5184, 2272), ("xiangqi", 50, 4500, 2086)],
)
def test_sizes_are_the_papers(name: str, planes: int, actions: int, labels: int) -> None:
    encoder = encoder_of(name)
    assert encoder.policy_shape[0] == planes
    assert encoder.actions == actions == int(np.prod(encoder.policy_shape))
    assert encoder_of(name, "flat").actions == encoder.labels.size == labels


def test_parts_of_the_flat_labels_are_the_papers() -> None:
    crazyhouse = encoder_of("crazyhouse").labels.labels
    drops = [text for text in crazyhouse if "@" in text]
    promotions = [text for text in crazyhouse if len(text) == 5]
    assert (len(crazyhouse) - len(drops) - len(promotions), len(promotions), len(drops)) == (
        1792,
        176,
        304,
    )
    assert sum(text.startswith("P@") for text in drops) == 48
    assert {text[1] + text[3] for text in promotions} == {"78", "21"}

    shapes = {"orthogonal": 0, "horse": 0, "elephant": 0, "advisor": 0}
    for text in encoder_of("xiangqi").labels.labels:
        found = re.fullmatch(r"([a-i])([0-9]+)([a-i])([0-9]+)", text)
        assert found is not None
        dx = abs(ord(found[1]) - ord(found[3]))
        dy = abs(int(found[2]) - int(found[4]))
        kinds = {(1, 2): "horse", (2, 1): "horse", (2, 2): "elephant", (1, 1): "advisor"}
        shapes[kinds.get((dx, dy), "orthogonal")] += 1
        assert 0 in (dx, dy) or (dx, dy) in kinds
    assert shapes == {"orthogonal": 1530, "horse": 508, "elephant": 32, "advisor": 16}


@pytest.mark.parametrize("name", VARIANTS)
def test_labels_are_distinct_and_map_both_ways(name: str) -> None:
    labels = encoder_of(name).labels
    assert len(set(labels.labels)) == labels.size
    assert labels.to_map.max() < labels.policy.size
    known = np.flatnonzero(labels.to_map >= 0)
    assert np.array_equal(labels.of_map[labels.to_map[known]], known)
    # labels of promotions on the own side are never used, and only these have no plane
    lacking = {labels.labels[i] for i in np.flatnonzero(labels.to_map < 0)}
    assert lacking == {text for text in labels.labels if re.fullmatch("[a-h]2[a-h]1[nbrq]", text)}


def test_indices_follow_the_papers_order_of_planes() -> None:
    """[CrazyAra-preprint] table 2: plane, row, file, with N first and knights from plane 56."""
    rules, encoder = rules_of("crazyhouse"), encoder_of("crazyhouse")
    fen = "r3k2r/1P6/8/8/4P3/8/8/R3K1NR[PNBRQ] w KQkq - 0 1"
    position = rules.position(fen)

    def action(text: str) -> int:
        origin, target = square_index(text[:2], 8, 8), square_index(text[2:4], 8, 8)
        legal = rules.legal_moves(position).tolist()
        [move] = [
            m
            for m in legal
            if (m >> 7 & 127, m & 127) == (origin, target)
            and move_kind(m) != DROP
            and (len(text) == 4 or rules.types.all[m >> 17 & 31].base == text[4])
        ]
        return encoder.action(position, move)

    def at(plane: int, square: str) -> int:
        index = square_index(square, 8, 8)
        assert index is not None
        return plane * 64 + index

    assert action("e4e5") == at(0, "e4")  # N, one step
    assert action("h1h8") == at(6, "h1")  # N, seven steps
    assert action("e1f2") == at(7, "e1")  # NE
    assert action("e1c1") == at(42 + 1, "e1")  # castling: W, two steps
    assert action("a1d1") == at(14 + 2, "a1")  # E, three steps
    assert action("g1h3") == at(56, "g1")  # 2N1E
    assert action("g1f3") == at(63, "g1")  # 2N1W
    assert action("b7a8N") == at(64, "b7")  # knight, NW
    assert action("b7b8Q") == at(64 + 9 + 1, "b7")  # queen, N
    drops = [
        m for m in rules.legal_moves(position).tolist() if move_kind(m) == DROP and m & 127 == 32
    ]
    assert sorted(encoder.action(position, m) for m in drops) == [
        at(76 + k, "a5") for k in range(5)
    ]


@pytest.mark.parametrize("head", ["map", "flat"])
@pytest.mark.parametrize("name", VARIANTS)
def test_every_legal_move_has_one_action_and_comes_back(name: str, head: str) -> None:
    encoder = encoder_of(name, "flat" if head == "flat" else "map")
    kinds: set[int] = set()
    positions = 0
    for position, moves in random_games(name):
        if head == "flat" and name == "xiangqi" and _beyond_the_start_array(position):
            continue
        actions = encoder.action_indices(position, moves)
        assert len(set(actions.tolist())) == len(moves)
        assert [encoder.move(position, a) for a in actions.tolist()] == moves
        assert [encoder.action(position, m) for m in moves] == actions.tolist()
        kinds.update(move_kind(m) for m in moves)
        positions += 1
    assert positions > 500
    every = {NORMAL, PROMOTION, DROP, CASTLING, EN_PASSANT, DOUBLE_STEP}
    assert kinds == (every if name == "crazyhouse" else {NORMAL})


def _beyond_the_start_array(position: np.ndarray) -> bool:
    """Return True if an elephant or advisor is on a square it cannot reach from the start position; its
    moves have no flat label."""
    reached = encoder_of("xiangqi").labels.labels
    origins = {text[: -2 if text[-2].isalpha() else -3] for text in reached}
    assert len(origins) == 90
    board = position[0]["board"].tolist()
    elephants = {2, 6, 18, 22, 26, 38, 42}
    advisors = {3, 5, 13, 21, 23}
    for square, code in enumerate(board[:90]):
        own = square if code < 33 else 90 - 9 - square // 9 * 9 + square % 9
        if code in (3, 35) and own not in elephants:
            return True
        if code in (2, 34) and own not in advisors:
            return True
    return False


def test_a_move_from_an_unreachable_square_has_no_flat_label() -> None:
    rules = rules_of("xiangqi")
    position = rules.position(ODD_FENS["xiangqi"][0])
    encoder = encoder_of("xiangqi", "flat")
    with pytest.raises(MoveError, match=r"no index in the flat policy of xiangqi"):
        encoder.action_indices(position, rules.legal_moves(position).tolist())


@pytest.mark.parametrize("name", VARIANTS)
def test_second_player_chooses_what_the_first_does_with_colours_swapped(name: str) -> None:
    rules, encoder = rules_of(name), encoder_of(name)
    for position, moves in random_games(name, games=6):
        other = swapped_position(spec_of(name), position)
        swapped = [swapped_move(spec_of(name), m) for m in moves]
        assert sorted(rules.legal_moves(other).tolist()) == sorted(swapped)
        ours, theirs = (
            encoder.action_indices(position, moves),
            encoder.action_indices(other, swapped),
        )
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("head", ["map", "flat"])
def test_mirrored_moves_have_mirrored_actions(head: str) -> None:
    encoder = encoder_of("xiangqi", "flat" if head == "flat" else "map")
    mirror = encoder.mirror_actions
    assert np.array_equal(mirror[mirror], np.arange(encoder.actions))
    for position, moves in random_games("xiangqi", games=6):
        if _beyond_the_start_array(position):
            continue
        other = mirrored_position(spec_of("xiangqi"), position)
        turned = [mirrored_move(spec_of("xiangqi"), m) for m in moves]
        assert sorted(rules_of("xiangqi").legal_moves(other).tolist()) == sorted(turned)
        expected = mirror[encoder.action_indices(position, moves)]
        assert np.array_equal(encoder.action_indices(other, turned), expected)


def test_labels_mirror_as_their_text_does() -> None:
    labels = encoder_of("xiangqi").labels
    mirror = labels.mirrored()
    files = str.maketrans("abcdefghi", "ihgfedcba")
    for i, text in enumerate(labels.labels):
        assert labels.labels[mirror[i]] == text.translate(files)


@pytest.mark.parametrize("name", VARIANTS)
def test_actions_off_the_board_or_without_a_piece_are_rejected(name: str) -> None:
    rules, encoder = rules_of(name), encoder_of(name)
    start = rules.position()
    legal = set(encoder.action_indices(start, rules.legal_moves(start).tolist()).tolist())
    found = 0
    for action in range(encoder.actions):
        try:
            move = encoder.move(start, action)
        except MoveError:
            continue
        assert encoder.action(start, move) == action
        assert start[0]["board"][move >> 7 & 127] in range(1, 33)
        found += 1
    assert found > len(legal)
    for wrong in (-1, encoder.actions, 1 << 40):
        with pytest.raises(MoveError, match="does not exist"):
            encoder.move(start, wrong)


def test_a_move_without_a_plane_is_rejected_in_words() -> None:
    start = rules_of("xiangqi").position()
    jump = make_move(square_index("a1", 9, 10) or 0, square_index("c4", 9, 10) or 0)
    with pytest.raises(MoveError, match=r"normal a1c4.*map policy of xiangqi"):
        encoder_of("xiangqi").action(start, jump)


def test_derived_layout_has_the_same_moves_in_its_own_order() -> None:
    for name in VARIANTS:
        written, derived = PolicyMap(spec_of(name)), PolicyMap(spec_of(name), "derived")
        keys = [(p.kind, p.dx, p.dy, p.piece) for p in written.planes]
        assert sorted(keys, key=str) == sorted(
            ((p.kind, p.dx, p.dy, p.piece) for p in derived.planes), key=str
        )


def test_a_policy_that_16_bits_cannot_number_is_rejected() -> None:
    data = spec_of("crazyhouse").model_dump(by_alias=True)
    lengths = [(n, m) for n in range(1, 10) for m in range(1, 10) if n != m]
    leaps = [f"{n}{a}{m}{b}" for n, m in lengths for a in "NS" for b in "EW"]
    steps = {"promotions": {"to": ("N", "B", "R", "Q"), "steps": tuple(leaps)}}
    spec = VariantSpec.model_validate({**data, "policy": (*data["policy"], steps)})
    with pytest.raises(SpecError, match="maximum is 65536"):
        PolicyMap(spec)


def test_an_asymmetric_policy_cannot_be_mirrored() -> None:
    data = spec_of("xiangqi").model_dump(by_alias=True)
    spec = VariantSpec.model_validate({**data, "policy": ({"slides": {"N": 9, "E": 8}},)})
    with pytest.raises(SpecError, match="no mirrored plane for plane"):
        PolicyMap(spec).mirrored()


def test_labels_of_a_derived_policy_are_complete() -> None:
    """With a derived layout, the flat head still has labels for all moves of the start position."""
    data = spec_of("xiangqi").model_dump(by_alias=True)
    spec = VariantSpec.model_validate({**data, "policy": "derived"})
    labels = FlatLabels(spec)
    assert labels.labels == encoder_of("xiangqi").labels.labels
    assert labels.to_map.min() >= 0


@pytest.mark.parametrize("must", [True, False, "rank 5", "where stuck"])
def test_promotions_forced_in_every_way_have_their_labels(must: bool | str) -> None:
    """A rook that was dropped where it may promote moves along the zone and out of it. No other piece
    slides straight, so that labels of others cannot hide an error."""
    data = spec_of("minishogi").model_dump(by_alias=True)
    data["pieces"]["R"]["promotes"]["must"] = must
    data["pieces"]["+R"]["moves"] = "WfF"
    spec = VariantSpec.model_validate(data)
    rules, flat = make_rules(spec), Encoder(spec, "flat")
    position = rules.position("R4/4k/5/5/4K[] w - - 0 1")
    for move in rules.legal_moves(position).tolist():
        assert flat.move(position, flat.action(position, move)) == move


def test_compiled_functions_have_one_signature() -> None:
    for name in VARIANTS:
        for encoder in (encoder_of(name), Encoder(spec_of(name), "flat")):
            position = rules_of(name).position()
            moves = rules_of(name).legal_moves(position).tolist()
            encoder.planes(position)
            encoder.move(position, encoder.action(position, moves[0]))
            if encoder.head == "map":
                encoder.action_indices(position, moves)
    compiled = [f for f in vars(kernels).values() if hasattr(f, "signatures")]
    assert len(compiled) >= 6
    for function in compiled:
        assert len(function.signatures) <= 1, function
