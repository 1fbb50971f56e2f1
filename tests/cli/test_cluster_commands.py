"""`generate --ray` and `import --ray`: the stores are those of the commands without it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.system import ray_cluster
from variant_ai.core.system.interrupts import handlers_kept
from variant_ai.core.system.ray_cluster import ClusterPool, connect
from variant_ai.plugins import registry

FAKE = Path(__file__).parent.parent / "arena" / "fake_engine.py"
PGN = (
    '[Event "{number}"]\n[White "Ada"]\n[Black "Bob"]\n[Result "1-0"]\n\n1. e4 d5 2. {move} 1-0\n\n'
)


class AtOnce(Executor):
    """Pool that runs every task in this process when it is submitted."""

    made: list[tuple[str, int]]
    arrive: Callable[[], object]
    """Called before the first process begins, as if on another machine."""

    def __init__(self, processes: int, initialiser: Callable[..., None], arguments: Any) -> None:
        type(self).arrive()
        initialiser(*arguments)
        self.made.append(("pool", processes))

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        self.made.append(("task", len(arguments[0])))
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **named))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None: ...


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Pools that were made with --ray there:1, and sizes of their tasks."""

    def pools(address: str, processes: int | None = None) -> Any:
        assert address == "there:1"
        return processes or 3, AtOnce

    AtOnce.made, AtOnce.arrive = [], staticmethod(bool)
    for module in ("generate", "import_games"):
        monkeypatch.setattr(f"variant_ai.cli.games.{module}.cluster_pools", pools)
    return AtOnce.made


def run(*words: str | Path) -> Result:
    result = CliRunner().invoke(cli, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result


def games(store: Path) -> list[GameRecord]:
    return list(Store(store).games())


def test_generated_games_are_the_same(tmp_path: Path, made: list[tuple[str, int]]) -> None:
    engine = shlex.join([sys.executable, str(FAKE), "good"])
    words = ["generate", "-V", "xiangqi", "--engine", engine, "--nodes", "1", "--games", "5"]
    words += ["--max-plies", "8"]
    run(*words, "-o", tmp_path / "here.store")
    run(*words, "-o", tmp_path / "there.store", "--ray", "there:1", "--workers", "2")
    assert games(tmp_path / "here.store") == games(tmp_path / "there.store")
    assert made == [("pool", 2), *[("task", 1)] * 5]


def test_generated_games_of_a_net_are_the_same(tmp_path: Path, made: list[tuple[str, int]]) -> None:
    """Each task plays games at once, also on machines without the file of the net."""
    net = tmp_path / "mine.onnx"
    spec = registry().variant("crazyhouse")
    shutil.copy(registry().net(spec, Path("packaged")), net)
    words = [
        "generate",
        "-V",
        "crazyhouse",
        "--engine",
        f"net:{net};evaluator=onnx",
        "--nodes",
        "4",
    ]
    words += ["--games", "6", "--max-plies", "6"]
    run(*words, "-o", tmp_path / "here.store")
    AtOnce.arrive = net.unlink
    run(*words, "-o", tmp_path / "there.store", "--ray", "there:1")
    assert games(tmp_path / "here.store") == games(tmp_path / "there.store")
    assert made == [("pool", 3), *[("task", 2)] * 3]


def test_imported_games_are_the_same(tmp_path: Path, made: list[tuple[str, int]]) -> None:
    path = tmp_path / "games.pgn"
    moves = ["exd5", "e5", "Ke5"]  # the last one cannot be played
    path.write_text("".join(PGN.format(number=i, move=moves[i % 3]) for i in range(400)))
    words = ["import", path, "-V", "crazyhouse"]
    run(*words, "-o", tmp_path / "here.store", "--workers", "1")
    run(*words, "-o", tmp_path / "there.store", "--ray", "there:1")
    assert games(tmp_path / "here.store") == games(tmp_path / "there.store")
    assert len(games(tmp_path / "here.store")) == 267
    assert made[0] == ("pool", 3)
    assert sum(size for kind, size in made[1:]) == 400
    skipped = [(tmp_path / f"{name}.store.skipped.jsonl").read_text() for name in ("here", "there")]
    assert skipped[0] == skipped[1]


def test_ray_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(VariantAIError, match=r"pip install 'variant-ai\[ray\]'"):
        connect("local")


def test_handlers_of_signals_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray sets its own for SIGTERM, on which nothing would be saved."""

    def init(**_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    stand_in = SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    before = signal.getsignal(signal.SIGTERM)
    assert connect("local") is stand_in
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("local", r"cannot start a cluster on this machine \(the node timed out\)"),
        ("there:1", r"no Ray cluster at 'there:1' \(the node timed out\)"),
    ],
)
def test_ray_does_not_start(monkeypatch: pytest.MonkeyPatch, address: str, message: str) -> None:
    def init(**words: Any) -> None:
        raise Exception("the node timed out\nlog of the node")

    stand_in = SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    with pytest.raises(VariantAIError, match=message):
        connect(address)


# --- with Ray -------------------------------------------------------------------------------------


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Cluster of two nodes of one processor; this process is connected."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_worker_niceness", "0")  # tasks would wait for all other tests
    found = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(found))  # for the tasks below
    with handlers_kept():
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        connect(cluster.address)
        yield cluster
        import ray

        ray.shutdown()
        cluster.shutdown()


def begin(folder: Path) -> None:
    (folder / f"begun-{os.getpid()}").touch()


def die_once(folder: Path) -> int:
    """Kill this process the first time."""
    try:
        (folder / "died").touch(exist_ok=False)
    except FileExistsError:
        return os.getpid()
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def fail() -> None:
    raise DataError("the file is damaged")


def always_die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@pytest.mark.nightly
@pytest.mark.filterwarnings("default")  # Ray's own
def test_a_pool_of_a_cluster(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    node = cluster.add_node(num_cpus=1)
    monkeypatch.setattr(ray_cluster, "RETRIES", 2)
    pool = ClusterPool(ray, begin, (tmp_path,))
    assert [pool.submit(abs, -n).result(300) for n in range(20)] == list(range(20))
    begun = len(list(tmp_path.glob("begun-*")))
    assert 1 <= begun <= 4  # once in a process, not for each task

    assert pool.submit(die_once, tmp_path).result(300) > 0
    with pytest.raises(DataError, match="the file is damaged"):
        pool.submit(fail).result(300)
    with pytest.raises(BrokenExecutor):
        pool.submit(always_die).result(300)

    slow = [pool.submit(sleep, 4.0) for _ in range(4)]
    time.sleep(1.0)
    cluster.remove_node(node)
    assert [one.result(300) for one in slow] == [4.0] * 4  # two of them were run again

    endless = pool.submit(sleep, 1e6)
    time.sleep(1.0)
    began = time.monotonic()
    pool.shutdown(cancel_futures=True)
    assert endless.cancelled() and time.monotonic() - began < 60
    after = ClusterPool(ray, begin, (tmp_path,))
    assert after.submit(abs, -5).result(300) == 5  # its processor is free again
    after.shutdown()
