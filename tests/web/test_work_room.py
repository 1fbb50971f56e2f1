"""What visitors share: specs, nets and runs, without processes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from variant_ai.core.errors import DataError, SettingError, UnknownNameError
from variant_ai.core.system.folders import LOCK
from variant_ai.core.web.web_settings import VisitorLimits, WebSettings
from variant_ai.core.web.work_room import OfferedNet, WorkRoom

ROOT = Path(__file__).resolve().parents[2]
NETS = ROOT / "variants" / "nets"
BAD, GOOD = "spec: 1", "spec: 1\nvariant: corridor"


@pytest.fixture
def room() -> Iterator[WorkRoom]:
    nets = {"mine": OfferedNet(Path("/x/mine.onnx"), ("corridor", "dobutsu"))}
    nets["any"] = OfferedNet(Path("/x/any.onnx"))
    settings = WebSettings(limits=VisitorLimits(specs=1, message=1234))
    made = WorkRoom(settings, lambda kind: ["no program"], version="1", nets=nets)
    yield made
    assert [path.name for path in made._folder.iterdir()] == [LOCK]
    shutil.rmtree(made._folder)


def answer_checks(room: WorkRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer as the process that checks specs does, the first question first."""
    turn = asyncio.Lock()

    async def ask(question: dict[str, Any], seconds: float) -> dict[str, Any]:
        async with turn:
            await asyncio.sleep(0.01)
            text = Path(question["path"]).read_text(encoding="utf-8")
            return {"mistakes": [] if text.startswith(GOOD) else ["wrong"], "name": "corridor"}

    monkeypatch.setattr(room._guest, "ask", ask)


def test_two_visitors_send_the_same_spec(room: WorkRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        answer_checks(room, monkeypatch)
        answers = await asyncio.gather(*(room.add_spec(BAD) for _ in range(3)))
        assert [answer["mistakes"] for answer in answers] == [["wrong"]] * 3

    asyncio.run(run())


def test_specs_beyond_the_limit_leave_no_files(
    room: WorkRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        answer_checks(room, monkeypatch)
        texts = [f"{GOOD}\n# {number}" for number in range(4)]
        names = [answer["variant"] for answer in await asyncio.gather(*map(room.add_spec, texts))]
        again = await asyncio.gather(*(room.add_spec(text) for text in [*texts, *texts]))
        assert [answer["variant"] for answer in again] == names * 2
        assert room.source_of(names[-1]) == texts[-1]
        (left,) = room._folder.glob("*.yaml")
        assert left.read_text(encoding="utf-8") == texts[-1]
        with pytest.raises(DataError, match="send it again"):
            room.place_of(names[0])
        left.unlink()

    asyncio.run(run())


def test_nets_are_for_their_variants(room: WorkRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        answer_checks(room, monkeypatch)
        own = (await room.add_spec(GOOD))["variant"]
        for variant in ("dobutsu", own):
            assert room.net("mine", variant) == "/x/mine.onnx"
            assert room.net("any", variant) == "/x/any.onnx"
        with pytest.raises(
            DataError, match="mine is a net for corridor and dobutsu, not for chess"
        ):
            room.net("mine", "chess")
        assert room.net("any", "chess") == "/x/any.onnx"
        Path(room.place_of(own)).unlink()

    asyncio.run(run())


def test_a_page_learns_nets_and_limits(room: WorkRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    async def variants() -> dict[str, Any]:
        return {"variants": []}

    monkeypatch.setattr(room, "variants", variants)
    greeting = asyncio.run(room.greeting())
    assert {"mine", "any", "random"} < set(greeting["nets"])
    assert greeting["net_variants"] == {"mine": ["corridor", "dobutsu"]}
    assert greeting["limits"]["message"] == 1234


def test_nets_of_runs_are_known_after_a_restart(
    room: WorkRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def ask(question: dict[str, Any], seconds: float) -> dict[str, Any]:
        asked.append(question)
        return {"runs": [], "paths": {"little": "/runs/little"}}

    monkeypatch.setattr(room.reader, "ask", ask)

    async def run() -> None:
        for name in (None, "uniform", "run:little", "run:little"):
            await room.learn_net(name)
        assert room.net("run:little", "chess") == "/runs/little"
        assert len(asked) == 1
        await room.learn_net("run:gone")
        with pytest.raises(UnknownNameError, match=r"accepted: .*run:little"):
            room.net("run:gone", "chess")

    asyncio.run(run())


def test_files_say_which_variants_they_are_of(tmp_path: Path) -> None:
    net = NETS / "dobutsu.onnx"
    if not net.is_file():
        pytest.skip("needs the nets of the sources")
    assert OfferedNet.read(net).variants == ["dobutsu"]
    for name in ("dobutsu", "minishogi"):
        (tmp_path / f"{name}.onnx").write_bytes((NETS / f"{name}.onnx").read_bytes())
    assert OfferedNet.read(tmp_path).variants == ["dobutsu", "minishogi"]
    other = tmp_path / "other.bin"
    other.write_text("no net")
    assert OfferedNet.read(other) == OfferedNet(other)


def test_names_of_opponents_are_distinct(tmp_path: Path) -> None:
    from variant_ai.cli.play.web import _nets, _players

    file = tmp_path / "net.onnx"
    file.write_text("no net")
    assert set(_nets((f"a={file}", f"b={file}"))) == {"a", "b"}
    for given in ((f"random={file}",), (f"a={file}", f"a={file}")):
        with pytest.raises(SettingError, match=r"another opponent (random|a); .*NAME=FILE"):
            _nets(given)
    with pytest.raises(SettingError, match="begins the names of runs"):
        _nets((f"run:a={file}",))
    assert _players(("random;name=Chance",), ["a"]) == {"Chance": "random;name=Chance"}
    for players in (("random",), ("random;name=a",), ("random;name=b", "random;name=b")):
        with pytest.raises(SettingError, match=r"another opponent .*;name=NAME"):
            _players(players, ["a"])
