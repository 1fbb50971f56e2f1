"""The player of self-play: positions evaluated a second against the bare evaluator, on one core.

    python benchmarks/self_play.py                                  # dobutsu and minixiangqi
    python benchmarks/self_play.py --variants xiangqi --nets 4x32 6x64 --games 256
    python benchmarks/self_play.py --variants chess --nets packaged # the net that ships, not random weights
    python benchmarks/self_play.py --peer pgx                       # and pgx with mctx
    python benchmarks/self_play.py --evaluators openvino@int8 onnx@fp32

The player and the evaluator alone, on the player's own planes, take turns in one process, which is bound to
one core. Columns:

    visits/s      visits of the player, by wall time
    visits/eval   visits for each evaluation; with `--no-cache` the player evaluates every position again
    bare us       processor time of an evaluation by the evaluator alone, in microseconds
    inside us     the same inside the player
    tree us       processor time of a visit without evaluations
    share         evaluations of the player for each one of the evaluator (goal: 0.9, if an evaluation costs
                  ten times as much as its visits)
    gain          visits of the player for each evaluation of the evaluator

With `--peer pgx` the same game is played by pgx (rules) and mctx (search) in the same process, in turns: the
same number of simulations and a net of the same layers in fp32, games at once as each is fastest. It needs
the packages jax, mctx and pgx. Rates are by processor time of all threads. Rules differ a little: a lion in check must be saved in pgx.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.cli.common.ending import run_script
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import VariantAIError
from variant_ai.core.inference import Evaluation, Evaluator, make_evaluator
from variant_ai.core.inference.backends import openvino_backend as ov
from variant_ai.core.inference.packaged_nets import first_file
from variant_ai.core.reinforce.games.self_play import SelfPlay
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings, SearchChoice
from variant_ai.core.search.forest.evaluation_cache import new_cache
from variant_ai.core.spec import VariantSpec, encoding_hash
from variant_ai.plugins import registry

VALUE_HEAD: dict[str, Any] = {"value_channels": 4, "value_hidden": 64}
PEERS = {
    # variant or spec: game of pgx, size of the net (about 115,000 weights)
    "dobutsu": ("animal_shogi", "5x32"),
    str(Path(__file__).with_name("gardner.yaml")): ("gardner_chess", "4x32"),
}
PACKAGED = "packaged"
PEER_GAMES = (16, 64, 256)
"""Games at once that are tried for pgx."""
WARM_UP = 2
"""Turns that do not count: code is compiled, memory is touched for the first time."""


@dataclass
class Turns:
    """Sums over the turns of one contender."""

    positions: int = 0
    """Evaluations, or simulations."""
    wall: float = 0.0
    processor: float = 0.0

    def add(self, positions: int, wall: float, processor: float) -> None:
        self.positions += positions
        self.wall += wall
        self.processor += processor

    @property
    def rate(self) -> float:
        return self.positions / self.wall

    @property
    def cost(self) -> float:
        """Processor time of a position, in microseconds."""
        return 1e6 * self.processor / self.positions


class FinishedError(Exception):
    """The last turn is over."""


class Watched(Evaluator):
    """Evaluator of the player: measures it, and lets the others have their turns during a call."""

    def __init__(
        self,
        evaluator: Evaluator,
        seconds: float,
        rounds: int,
        pause: Callable[[NDArray[np.float32]], None],
        warm: Callable[[], None],
    ) -> None:
        """seconds: of a turn. pause: gives the others a turn; it gets planes to evaluate. warm: called
        once, when the warm-up is over."""
        self.evaluator = evaluator
        self.name, self.info = evaluator.name, evaluator.info
        self.planes_shape, self.actions = evaluator.planes_shape, evaluator.actions
        self.seconds = seconds
        self.left = rounds + WARM_UP
        self.warm_up = WARM_UP
        self.pause = pause
        self.warm = warm
        self.player = Turns()
        self.inside = Turns()
        """The evaluations of the player."""
        self._begin()

    def _begin(self) -> None:
        self._count, self._inside = 0, 0.0
        self._processor, self._wall = time.process_time(), time.perf_counter()

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        wall = time.perf_counter() - self._wall
        if wall > self.seconds:
            processor = time.process_time() - self._processor
            self.left -= 1
            if self.warm_up:
                self.warm_up -= 1
                if not self.warm_up:
                    self.warm()
            else:
                self.player.add(self._count, wall, processor)
                self.inside.add(self._count, self._inside, self._inside)
                self.pause(planes.copy())
            if not self.left:
                raise FinishedError
            self._begin()
        began = time.process_time()
        answer = self.evaluator.evaluate(planes)
        self._inside += time.process_time() - began
        self._count += len(planes)
        return answer


def write_net(spec: VariantSpec, size: str, path: Path) -> int:
    """Write a net with random weights of BLOCKSxCHANNELS, and beside it the same in int8.

    Returns the number of its weights.
    """
    import torch

    from variant_ai.core.inference.model_file import beside_name
    from variant_ai.core.nets import configure_for
    from variant_ai.core.nets.onnx_export import export_onnx, sample_planes, write_metadata
    from variant_ai.core.nets.onnx_files import read_onnx, write_onnx
    from variant_ai.core.nets.quantise import quantise

    encoder = Encoder(spec)
    blocks, channels = map(int, size.split("x"))
    config = configure_for(
        "alphazero-8v-map", encoder, blocks=blocks, channels=channels, **VALUE_HEAD
    )
    torch.manual_seed(0)
    net = config.build()
    metadata = {"variant": spec.variant, "encoding_hash": encoding_hash(spec)}
    export_onnx(net, path, metadata, shape=config.shape)
    # Ranges of random planes: these files serve to measure speed alone.
    int8 = quantise(read_onnx(path), [sample_planes(config.shape).numpy()])
    write_metadata(int8, {**metadata, "precision": "int8"})
    write_onnx(int8, beside_name(path, "int8"))
    return sum(parameter.numel() for parameter in net.parameters())


def evaluate_for(seconds: float, evaluator: Evaluator, planes: NDArray[np.float32]) -> Turns:
    """Evaluate the same planes for a while."""
    turns = Turns()
    processor, wall = time.process_time(), time.perf_counter()
    count = 0
    while time.perf_counter() - wall < seconds:
        evaluator.evaluate(planes)
        count += len(planes)
    turns.add(count, time.perf_counter() - wall, time.process_time() - processor)
    return turns


@dataclass
class Row:
    """Measurements of one player."""

    player: Turns
    inside: Turns
    bare: Turns
    visits: float
    """Visits an evaluation."""

    @property
    def share(self) -> float:
        return self.bare.cost / self.player.cost

    @property
    def gain(self) -> float:
        """Visits of the player for each evaluation of the evaluator alone in the same time."""
        return self.share * self.visits

    @property
    def tree(self) -> float:
        """Processor time of a visit without evaluations, in microseconds."""
        return (self.player.cost - self.inside.cost) / self.visits


def measure(
    spec: VariantSpec,
    path: Path,
    contender: str,
    games: int,
    given: argparse.Namespace,
    others: Callable[[], None] = lambda: None,
) -> Row:
    """Play, and evaluate in turns."""
    bare = Turns()
    evaluator = make_evaluator(spec, path, evaluator=contender, batch=games, threads=1)

    def pause(planes: NDArray[np.float32]) -> None:
        turn = evaluate_for(given.seconds, evaluator, planes)
        bare.add(turn.positions, turn.wall, turn.processor)
        others()

    before = 0, 0

    def warm() -> None:
        nonlocal before
        before = playing.visits, playing.evaluations

    settings = ReinforceSettings(
        variant=spec.variant,
        games_at_once=games,
        search=SearchChoice(nodes=given.nodes, considered=min(16, given.nodes)),
    )
    with evaluator:
        watched = Watched(evaluator, given.seconds, given.rounds, pause, warm)
        playing = SelfPlay(spec, watched, settings, generation=0)
        if given.no_cache:
            playing._forest.cache = new_cache(1, 0)
        try:
            for _ in playing.finished():
                pass
        except FinishedError:
            pass
    visits, evaluations = playing.visits - before[0], playing.evaluations - before[1]
    return Row(watched.player, watched.inside, bare, visits / max(evaluations, 1))


def compare_with_evaluator(given: argparse.Namespace) -> None:
    head = (
        "net",
        "evaluator",
        "games",
        "visits/s",
        "visits/eval",
        "bare us",
        "inside us",
        "tree us",
    )
    print(f"{'variant':<12}" + "".join(f"{word:>13}" for word in (*head, "share", "gain")))
    with tempfile.TemporaryDirectory() as folder:
        for name in given.variants:
            spec = registry().variant(name)
            for size in given.nets:
                path = Path(folder) / f"{spec.variant}-{size}.onnx"
                if size == PACKAGED:
                    packaged = first_file(registry().net_paths(spec))
                    if packaged is None:
                        raise VariantAIError(f"{spec.variant} comes without a net")
                    path = packaged
                else:
                    write_net(spec, size, path)
                for contender in given.evaluators:
                    for games in given.games:
                        row = measure(spec, path, contender, games, given)
                        print(
                            f"{spec.variant:<12}{size:>13}{contender:>13}{games:>13}"
                            f"{row.player.rate * row.visits:>13,.0f}{row.visits:>13.2f}"
                            f"{row.bare.cost:>13.1f}{row.inside.cost:>13.1f}{row.tree:>13.1f}"
                            f"{row.share:>13.2f}{row.gain:>13.2f}",
                            flush=True,
                        )


def compare_with_pgx(given: argparse.Namespace) -> None:
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
    try:
        from pgx_player import PgxPlayer
    except ImportError as error:
        raise VariantAIError(f"not measured: pip install jax mctx pgx ({error})") from None
    head = ("games", "weights", "simulations/s", "moves/s", "us/simulation")
    print(f"{'game':<16}{'player':<24}" + "".join(f"{word:>15}" for word in head))
    for name, (game, size) in PEERS.items():
        spec = registry().variant(name)
        blocks, channels = map(int, size.split("x"))
        candidates = [
            PgxPlayer(game, blocks, channels, VALUE_HEAD, batch, given.nodes)
            for batch in PEER_GAMES
        ]
        peer = max(candidates, key=lambda player: player.rate(given.seconds))
        del candidates
        theirs = Turns()

        def others(peer: PgxPlayer = peer, theirs: Turns = theirs) -> None:
            theirs.add(*peer.turn(given.seconds))

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.onnx"
            weights = write_net(spec, size, path)
            for contender in given.evaluators:
                for games in given.games:
                    row = measure(spec, path, contender, games, given, others)
                    simulations = 1e6 / row.player.cost * row.visits
                    cells = f"{games:>15}{weights:>15,}{simulations:>15,.0f}"
                    cells += f"{simulations / given.nodes:>15,.0f}{1e6 / simulations:>15.1f}"
                    print(f"{spec.variant:<16}{contender:<24}{cells}", flush=True)
        simulations = 1e6 / theirs.cost
        cells = f"{peer.games:>15}{peer.weights:>15,}{simulations:>15,.0f}"
        cells += f"{simulations / given.nodes:>15,.0f}{theirs.cost:>15.1f}"
        print(f"{game:<16}{'pgx and mctx':<24}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--variants", nargs="+", default=["dobutsu", "minixiangqi"])
    parser.add_argument(
        "--nets", nargs="+", default=["4x32"], help="BLOCKSxCHANNELS (4x32), or packaged"
    )
    parser.add_argument("--games", type=int, nargs="+", help="at once (64 256 1024; pgx: 256)")
    parser.add_argument("--nodes", type=int, default=32, help="simulations a move")
    parser.add_argument("--evaluators", nargs="+", help="NAME@PRECISION (openvino@fp32)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each that count")
    parser.add_argument("--core", type=int, default=1, help="number of the core; -1: any")
    parser.add_argument("--peer", choices=["pgx"])
    parser.add_argument("--no-cache", action="store_true", help="evaluate every position")
    given = parser.parse_args()
    if given.core >= 0 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {given.core})
    given.evaluators = given.evaluators or ["openvino@fp32" if ov.available() else "onnx@fp32"]
    given.games = given.games or ([256] if given.peer else [64, 256, 1024])
    if given.peer:
        compare_with_pgx(given)
    else:
        compare_with_evaluator(given)


if __name__ == "__main__":
    run_script(main)
