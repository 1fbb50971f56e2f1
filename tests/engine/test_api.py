"""`import variant_ai`: correct and wrong arguments."""

from __future__ import annotations

import gc
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variant_ai
from variant_ai import Engine, Position, api
from variant_ai.core.errors import MoveError, SettingError, VariantAIError
from variant_ai.core.spec import builtin_specs
from variant_ai.core.spec.search_settings import SEARCH_SETTINGS


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine("crazyhouse", evaluator="uniform", memory_mb=64, batch_size=np.int64(8)) as made:
        yield made


WRONG: list[tuple[str, Callable[[Engine], object], str]] = [
    ("text", lambda e: e.analyse("startpos"), "not 'startpos' (str)"),  # type: ignore[arg-type]
    ("nodes", lambda e: e.analyse(Position("crazyhouse"), nodes="300"), "limit nodes = '300'"),  # type: ignore[arg-type]
    ("written", lambda e: Position("crazyhouse").written(None), "not None (NoneType)"),  # type: ignore[arg-type]
    ("read", lambda e: Position("crazyhouse").read(None), "not None (NoneType)"),  # type: ignore[arg-type]
    ("push", lambda e: Position("crazyhouse").push(3), "not 3 (int)"),  # type: ignore[arg-type]
    ("fen", lambda e: Position("crazyhouse", 3), "a FEN is text, not 3"),  # type: ignore[arg-type]
    ("moves", lambda e: Position("crazyhouse", moves=[12]), "not 12 (int)"),  # type: ignore[list-item]
    (
        "one",
        lambda e: e.evaluate(Position("crazyhouse")),
        "a list of positions is expected, not a Position",
    ),  # type: ignore[arg-type]
    (
        "other",
        lambda e: e.evaluate([Position("chess")]),
        "plays crazyhouse, the position is one of chess",
    ),
    ("many", lambda e: e.analyse_many("ab", nodes=1), "a list of positions is expected, not a str"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "said"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_arguments_are_reported(
    engine: Engine, call: Callable[[Engine], object], said: str
) -> None:
    with pytest.raises(VariantAIError) as caught:
        call(engine)
    assert said in str(caught.value)


def test_accepted_arguments(engine: Engine) -> None:
    told = Position("crazyhouse", "startpos", "e2e4 e7e5")
    assert told.moves == ["e2e4", "e7e5"]
    found = engine.analyse(told, nodes=np.int64(50), multipv=np.int64(3))  # type: ignore[arg-type]
    assert found.visits == 50 and len(found.lines) == 3
    assert len(engine.evaluate((told, Position("crazyhouse")))) == 2
    assert engine.evaluate([]) == []
    assert variant_ai.load_variant("crazyhouse").variant == "crazyhouse"


def test_a_garbage_collected_engine_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    for _ in range(3):
        dropped = Engine("crazyhouse", evaluator="uniform", memory_mb=16)
        dropped.analyse(Position("crazyhouse"), nodes=20)
        del dropped
    gc.collect()
    assert not set(threading.enumerate()) - before
    with Engine("crazyhouse", evaluator="uniform", memory_mb=16) as closed:
        closed.close()


def test_a_closed_engine_closes_its_net(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[object] = []
    engine = Engine("crazyhouse", evaluator="uniform", memory_mb=64)
    monkeypatch.setattr(type(engine.evaluator), "close", lambda net: closed.extend([net]))
    engine.close()
    engine.close()
    assert closed == [engine.evaluator]


def test_rules_of_many_specs_are_not_kept_for_ever() -> None:
    spec = variant_ai.load_variant("crazyhouse")
    positions = [Position(spec.model_copy()) for _ in range(12)]
    assert len(api._rules) == api._RULES_KEPT
    assert all(position.fen == Position("crazyhouse").fen for position in positions)


def test_a_search_of_some_moves_leaves_the_next_alone(engine: Engine) -> None:
    position = Position("crazyhouse")
    engine.forget()
    engine.analyse(position, nodes=800, moves=["g2g4"])
    free = engine.analyse(position, nodes=200, multipv=30)
    assert sum(line.visits for line in free.lines) <= 201


def test_the_net_is_used_by_one_thread_at_a_time(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search may have left a batch with the evaluator."""
    asked: list[str] = []
    real = engine.evaluator.evaluate
    monkeypatch.setattr(engine.search, "settle", lambda: asked.append("settle"))
    monkeypatch.setattr(
        engine.evaluator, "evaluate", lambda *given: (asked.append("evaluate"), real(*given))[1]
    )
    engine.evaluate([Position("crazyhouse")])
    assert asked == ["settle", "evaluate"]
    asked.clear()
    engine.analyse_many([Position("crazyhouse")], nodes=4)
    assert asked[0] == "settle"


def test_limits_are_whole_numbers() -> None:
    """A part of a visit was searched for without end."""
    position = Position("dobutsu")
    with Engine("dobutsu", evaluator="uniform") as engine:
        for nodes in (1.5, 100 / 3, float("nan"), True):
            with pytest.raises(SettingError, match=r"limit nodes = .*a whole number"):
                engine.analyse(position, nodes=nodes)  # type: ignore[arg-type]
            with pytest.raises(SettingError, match=r"limit nodes = .*a whole number"):
                engine.analyse_many([position], nodes=nodes)  # type: ignore[arg-type]
        assert engine.analyse(position, nodes=5, movetime=60).visits == 5


def test_a_spec_of_the_same_name_with_other_rules_is_another_one(tmp_path: Path) -> None:
    text = builtin_specs()["chess"].read_text()
    for name, changed in (("same", text), ("other", text.replace("plies: 100", "plies: 60"))):
        (tmp_path / f"{name}.yaml").write_text(changed)
    assert "plies: 60" in (tmp_path / "other.yaml").read_text()
    with Engine("chess", evaluator="uniform") as engine:
        assert engine.analyse(Position(str(tmp_path / "same.yaml")), nodes=2).visits == 2
        with pytest.raises(VariantAIError, match="another spec of chess, with other rules"):
            engine.analyse(Position(str(tmp_path / "other.yaml")), nodes=2)


def test_the_search_is_known_before_the_net_is_loaded() -> None:
    with pytest.raises(VariantAIError, match="unknown search 'foo'"):
        Engine("crazyhouse", "missing.onnx", algorithm="foo")


def test_wrong_kinds_of_arguments_are_named() -> None:
    with pytest.raises(VariantAIError, match="a variant is a name, a path or a spec, not None"):
        Position(None)  # type: ignore[arg-type]
    with pytest.raises(MoveError, match="moves are a list of texts"):
        Position("chess", moves=None)  # type: ignore[arg-type]
    position = Position("chess", moves="e2e4 e7e5")
    with Engine("chess", evaluator="uniform") as engine:
        found = engine.analyse(position, nodes=4, moves="g1f3 f1c4")
        assert found.best in ("g1f3", "f1c4")
        with pytest.raises(MoveError, match="a move is text like 'e2e4', not 5"):
            engine.analyse(position, nodes=4, moves=[5])  # type: ignore[list-item]


def test_an_open_stream_has_the_engine_for_itself() -> None:
    start, other = Position("chess"), Position("chess", moves="d2d4 d7d5 c2c4")
    with Engine("chess", evaluator="material", memory_mb=64) as engine:
        stream = engine.stream(start, interval=0.01)
        next(stream)
        calls: list[Callable[[], object]] = [
            lambda: engine.analyse(other, nodes=9),
            lambda: engine.analyse_many([other], nodes=9),
            lambda: engine.evaluate([other]),
            lambda: next(engine.stream(other)),
            engine.forget,
        ]
        for call in calls:
            with pytest.raises(VariantAIError, match="leave the loop of its stream first"):
                call()
        assert all(found.best in start.legal_moves() for found, _ in zip(stream, range(3)))  # noqa: B905
        stream.close()
        assert engine.analyse(other, nodes=9).best in other.legal_moves()
    with pytest.raises(VariantAIError, match="this engine was closed"):
        engine.analyse(start, nodes=9)


def test_an_open_stream_closes_the_net_of_a_closed_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, closed = Engine("dobutsu", evaluator="uniform"), []
    monkeypatch.setattr(engine.evaluator, "close", lambda: closed.append(True))
    stream = engine.stream(Position("dobutsu"), interval=0.01)
    next(stream)
    engine.close()
    assert not closed
    stream.close()
    with pytest.raises(VariantAIError, match="this engine was closed"):
        engine.analyse(Position("dobutsu"), nodes=9)
    engine.close()
    assert closed == [True]


@pytest.mark.parametrize("interval", [0, -1.0, math.nan, math.inf, True, "1", None])
def test_an_interval_of_a_stream_is_a_number_above_0(interval: Any) -> None:
    with (
        Engine("dobutsu", evaluator="uniform") as engine,
        pytest.raises(SettingError, match=r"interval = .*: must be a number of seconds"),
    ):
        engine.stream(Position("dobutsu"), nodes=9, interval=interval)


def test_every_search_setting_can_be_given() -> None:
    """None has the name of another argument."""
    known = {row.name: row.default for row in SEARCH_SETTINGS.values()}
    with Engine("dobutsu", evaluator="uniform", threads=1, **known) as engine:
        assert vars(engine.params).items() >= known.items()


@pytest.mark.parametrize("lines", [0, -3, 1.5])
def test_numbers_of_lines_are_checked(engine: Engine, lines: int) -> None:
    start = Position("crazyhouse")
    for call in (engine.analyse, engine.stream):  # at once, not when the loop begins
        with pytest.raises(SettingError, match=f"multipv = {lines}: must be"):
            call(start, nodes=9, multipv=lines)  # type: ignore[operator]
    with pytest.raises(SettingError, match="limit mate = 0"):
        engine.analyse(start, mate=0)
