"""Nets of other projects: their planes, policy and value, number by number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from variant_ai.core.encoding import Encoder
from variant_ai.core.encoding.interface import InputEncoder
from variant_ai.core.errors import DataError, SettingError, UnknownNameError
from variant_ai.core.factories import INPUT_ENCODERS
from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
from variant_ai.core.inference.interface import Evaluation
from variant_ai.core.nets.adopted_net import NEVER, adopt
from variant_ai.core.nets.foreign_layout import (
    NetLayout,
    PolicyLayout,
    ValueLayout,
    read_layout,
    shipped_layouts,
)
from variant_ai.core.nets.onnx_files import cpu_session, write_onnx
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.position import Position
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.core.spec.schema import Encoders

CRAZYHOUSE = load_spec(builtin_specs()["crazyhouse"])
ENCODER = Encoder(CRAZYHOUSE)
FENS = (
    None,
    "r2qk2r/ppp2p1p/2np1n1P/4p3/2B1P1b1/2NP1N2/PPP2PP1/R1BQK2R[Pb] b KQkq - 7 9",
)


def foreign(
    *,
    planes: int = 34,
    outputs: int = 81 * 64,
    batch: int | str = 1,
    value: tuple[int, int, int] = (0, 1, 0),
    policy: Sequence[float] | None = None,
    kind: int = TensorProto.FLOAT,
    opset: int = 13,
    columns: int = 1,
) -> onnx.ModelProto:
    """A net whose value is one number of its input, and whose policy is constant."""
    plane, row, column = value
    number = np.float16 if kind == TensorProto.FLOAT16 else np.float32
    given = np.arange(outputs) / outputs if policy is None else np.asarray(policy)
    tensors = [
        numpy_helper.from_array(np.array([0, plane, row, column]), "starts"),
        numpy_helper.from_array(np.array([1 << 40, plane + 1, row + 1, column + 1]), "ends"),
        numpy_helper.from_array(np.array([1, 1]), "column"),
        numpy_helper.from_array(np.zeros(1, number), "zero"),
        numpy_helper.from_array(given.astype(number)[None], "constant"),
    ]
    nodes = [
        helper.make_node("Slice", ["data", "starts", "ends"], ["cell"]),
        # a shape with the number of positions in it, as exporters write it
        helper.make_node("Reshape", ["cell", "column"], ["value_out"]),
        helper.make_node("Mul", ["value_out", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "constant"], ["policy_out"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "foreign",
        [info("data", kind, [batch, planes, 8, 8])],
        [info("value_out", kind, [batch, columns]), info("policy_out", kind, [batch, outputs])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model


def planes_of(encoder: Encoder = ENCODER, *, raw: bool = False) -> NDArray[np.float32]:
    rules = make_rules(encoder.spec)
    positions = np.concatenate([rules.position(fen) for fen in FENS])
    return encoder.planes(positions, raw=raw)


def evaluated(
    folder: Path, model: onnx.ModelProto, layout: NetLayout, spec: VariantSpec = CRAZYHOUSE
) -> Evaluation:
    path = folder / "adopted.onnx"
    write_onnx(adopt(model, layout, spec, "theirs.onnx").content, path)
    with OnnxEvaluator(path, spec, threads=1) as evaluator:
        return evaluator.evaluate(planes_of())


def layout_of(**words: Any) -> NetLayout:
    return NetLayout.model_validate({"variant": "crazyhouse", **words})


def test_planes_and_policy_of_a_map_stay_where_they_are(tmp_path: Path) -> None:
    """Plane 32 is a castling right, plane 19 a count in hand."""
    for plane in (0, 19, 27, 32):
        model = foreign(value=(plane, 1, 0))
        found = evaluated(tmp_path, model, read_layout("crazyara-crazyhouse"))
        assert np.allclose(found.value, planes_of()[:, plane, 1, 0])
        assert np.allclose(found.policy, np.arange(81 * 64) / (81 * 64))


def test_the_order_of_planes_rows_and_counts_is_turned(tmp_path: Path) -> None:
    order = [*range(34)][::-1]
    model = foreign(value=(3, 7, 2))
    layout = layout_of(input={"planes": order, "counts": "raw", "first_rank": "last"})
    found = evaluated(tmp_path, model, layout)
    assert np.allclose(found.value, planes_of(raw=True)[:, 30, 0, 2])
    counts = evaluated(tmp_path, foreign(value=(19, 0, 0)), layout_of(input={"counts": "raw"}))
    assert counts.value.tolist() == [0.0, 1.0], "Black has a bishop, in Black's view its own"


class Halves(InputEncoder):
    """Two planes of an encoder of a plugin."""

    name = "halves"
    planes = ("two", "four")
    scale = np.array([2.0, 4.0])

    def encode(
        self,
        positions: Position,
        out: NDArray[np.float32],
        *,
        mirrored: bool = False,
        raw: bool = False,
    ) -> None:
        out[:] = 1 if raw else 1 / self.scale[:, None, None]


def test_planes_of_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(INPUT_ENCODERS, "_targets", {"halves": Halves})
    spec = CRAZYHOUSE.model_copy(update={"encoder": Encoders(input="halves")})
    model = foreign(planes=2, value=(1, 0, 0))
    layout = layout_of(input={"counts": "raw"})
    session = cpu_session(adopt(model, layout, spec, "theirs.onnx").content)
    planes = Encoder(spec).planes(make_rules(spec).position())
    value, _ = session.run(["value", "policy"], {"planes": planes})
    assert planes[0, 1, 0, 0] == 0.25 and value.tolist() == [[1.0]]
    layout = layout_of(value={"view": "first player"})
    with pytest.raises(DataError, match="do not show whose move it is"):
        adopt(foreign(planes=2), layout, spec, "theirs.onnx")


def test_the_moves_of_a_list_come_into_our_order(tmp_path: Path) -> None:
    layout = read_layout("crazyara-crazyhouse-flat")
    assert layout.moves is not None
    found = evaluated(tmp_path, foreign(outputs=2272, policy=np.arange(2272.0)), layout)
    labels: Any = Encoder(CRAZYHOUSE, "flat").labels
    theirs = [layout.moves.index(label) for label in labels.labels]
    assert found.policy[0].tolist() == theirs
    assert sorted(theirs) == list(range(2272))


def test_the_list_of_crazyara_names_the_planes_of_its_policy_map() -> None:
    """The first entries of CrazyAra's table FLAT_PLANE_IDX, in the order of its list of moves."""
    layout = read_layout("crazyara-crazyhouse-flat")
    assert layout.moves is not None
    theirs = """
        896 960 1024 1088 1152 1216 1280 0 64 128 192 256 320 384 448 512 576 640 704 768 832 3648 3584
        904 968 1032 1096 1160 1224 1288 1800 8 72 136 200 264 328 456 520 584 648 712 776 1352 3720 3656
        3592 912 976 1040 1104 1168 1232 1296 1872 1808 16 80 144 208 272 464 528 592 656 720 1360 1424
        3792 3728 3664 3600 920 984 1048 1112 1176 1240 1304 1944 1880 1816 24 88 152 216 472 536 600 664
    """
    table = ENCODER.policy_record
    for move, index in zip(layout.moves, map(int, theirs.split()), strict=False):
        files = "abcdefgh"
        step = (files.index(move[2]) - files.index(move[0]), int(move[3]) - int(move[1]))
        origin = files.index(move[0]) + 8 * (int(move[1]) - 1)
        move_integer = int(table[0]["move"][0, index])
        assert move_integer >> 7 & 127 == origin, move
        target = move_integer & 127
        assert (target % 8 - origin % 8, target // 8 - origin // 8) == step, move


def test_moves_that_the_list_does_not_have_are_never_played(tmp_path: Path) -> None:
    labels: Any = Encoder(CRAZYHOUSE, "flat").labels
    moves = (*labels.labels[:-1], "-")
    layout = layout_of(policy={"order": "moves.txt"}).with_moves(moves)
    adopted = adopt(foreign(outputs=2272), layout, CRAZYHOUSE, "theirs.onnx")
    assert adopted.missing == (labels.labels[-1],)
    found = evaluated(tmp_path, foreign(outputs=2272), layout)
    assert found.policy[0, -1] < NEVER / 2 and found.policy[0, :-1].min() >= 0


def test_probabilities_become_logits(tmp_path: Path) -> None:
    share = np.arange(1.0, 81 * 64 + 1)
    share /= share.sum()
    adopted = adopt(foreign(policy=share), layout_of(), CRAZYHOUSE, "theirs.onnx")
    assert adopted.numbers == "probabilities"
    found = evaluated(tmp_path, foreign(policy=share), layout_of())
    assert np.allclose(np.exp(found.policy[0]), share, rtol=1e-4)
    kept = layout_of(policy={"numbers": "logits"})
    assert np.allclose(evaluated(tmp_path, foreign(policy=share), kept).policy[0], share)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ValueLayout(range=(0.0, 1.0)), [1.0, -1.0]),
        (ValueLayout(range=(0.0, 1.0), view="opponent"), [-1.0, 1.0]),
        (ValueLayout(range=(1.0, 0.0)), [-1.0, 1.0]),
        (ValueLayout(range=(0.0, 1.0), view="first player"), [1.0, 1.0]),
    ],
)
@pytest.mark.parametrize("opset", [13, 18])
def test_values_are_the_movers(
    tmp_path: Path, value: ValueLayout, expected: list[float], opset: int
) -> None:
    """The number is the plane of the colour: 1 if White moves, else 0."""
    model = foreign(value=(27, 0, 0), opset=opset)
    layout = layout_of().model_copy(update={"value": value})
    assert evaluated(tmp_path, model, layout).value.tolist() == expected


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16])
@pytest.mark.parametrize("batch", [1, "n"])
def test_any_number_of_positions_and_half_precision(
    tmp_path: Path, batch: int | str, kind: int
) -> None:
    if batch == "n":
        model = foreign(batch=batch, kind=kind)
        shape = next(t for t in model.graph.initializer if t.name == "column")
        shape.CopyFrom(numpy_helper.from_array(np.array([-1, 1]), "column"))
    else:
        model = foreign(kind=kind)
    found = evaluated(tmp_path, model, layout_of())
    assert found.value.shape == (2,)
    assert np.allclose(found.policy[0], np.arange(81 * 64) / (81 * 64), atol=1e-3)


@pytest.mark.parametrize(
    ("model", "words", "message"),
    [
        ({"planes": 33}, {}, "no input of the size that the layout gives"),
        ({"outputs": 100}, {}, r"no policy of the size.*policy_out \[1, 100\]"),
        ({}, {"value": {"name": "v"}}, "no value 'v'; it has data"),
        ({"columns": 3}, {"value": {"name": "value_out"}}, "one number a position"),
        ({}, {"variant": "xiangqi"}, "one for xiangqi, not for crazyhouse"),
        ({}, {"input": {"planes": [*range(33), 34]}}, "34 is no plane; there are 0 to 33"),
    ],
)
def test_a_net_that_does_not_fit_is_rejected(
    model: dict[str, Any], words: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        adopt(foreign(**model), layout_of(**words), CRAZYHOUSE, "theirs.onnx")


def test_a_list_of_other_moves_is_rejected() -> None:
    layout = layout_of(policy={"order": "x"}).with_moves(("a1a2", *"-" * 9))
    with pytest.raises(DataError, match=r"2,271 of the 2,272 moves"):
        adopt(foreign(outputs=10), layout, CRAZYHOUSE, "theirs.onnx")


def test_layouts_that_ship_can_be_read() -> None:
    for name in shipped_layouts():
        layout = read_layout(name)
        spec = load_spec(builtin_specs()[layout.variant])
        assert isinstance(layout.policy, PolicyLayout) and layout.source
        if layout.moves is not None:
            labels: Any = Encoder(spec, "flat").labels
            assert set(layout.moves) == set(labels.labels)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("variant: crazyhouse\nvalue: {view: ours}\n", SettingError, r"mine.yaml:2.*view"),
        ("variant: crazyhouse\nvalue: {range: [1, 1]}\n", SettingError, "a loss is 1 and a win 1"),
        ("variant: crazyhouse\nvalue: {range: [-.inf, 1]}\n", SettingError, "value"),
        ("variant: crazyhouse\nmoves: [a1a2]\n", SettingError, r"mine.yaml:2.*moves"),
        ("variant: crazyhouse\nplanes: 3\n", SettingError, r"mine.yaml:2.*planes"),
        ("variant: [", DataError, "mine.yaml:1"),
        ("variant: x\npolicy: {order: no.txt}\n", DataError, r"no\.txt"),
        ("variant: x\npolicy: {order: twice.txt}\n", DataError, "move 3, 'a1a2', is move 1"),
    ],
)
def test_wrong_words_are_named_with_their_line(
    tmp_path: Path, text: str, kind: type[Exception], message: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    (tmp_path / "twice.txt").write_text("a1a2\na1a3\na1a2\n")
    with pytest.raises(kind, match=message):
        read_layout(str(path))
    with pytest.raises(UnknownNameError, match="crazyara-crazyhouse"):
        read_layout("crazyara")
