"""Self-play on a cluster: what players, learner and network need, from sizes and rates measured here.

    python benchmarks/cluster.py                                    # dobutsu, minixiangqi, crazyhouse
    python benchmarks/cluster.py --variants dobutsu --net 5x64 --learner 40000 --player 3000

One player of one core plays for some seconds, and its games are read, written to a journal and stored
as the learner's machine does it. Rates are by processor time, so they hardly depend on what else runs.
`--learner` and `--player` replace the measured rates by those of other machines, such as GPUs.

With r positions a second of a player, t seconds of the learner's machine for a position that arrives, L
samples a second of the learner and s samples for each position, N players make

    min(N r, 1 / (t + s / L))

positions a second: the learner's process takes in games and trains by turns. At the second term more
players make no difference. The network carries N r b bytes of games a second, b for a position, and
each machine gets a net of n bytes once a generation.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from variant_ai.cli.common.console import print_table, run_script
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.store_writer import StoreWriter
from variant_ai.core.reinforce.games.game_journal import GameJournal, game_line, read_line
from variant_ai.core.reinforce.games.self_play import make_self_play, recorded_positions
from variant_ai.core.reinforce.games.self_play_evaluator import open_net
from variant_ai.core.reinforce.learn.replay_window import newest_games
from variant_ai.core.reinforce.learn.window_training import Course, WindowTraining, configure_start
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.plugins import registry

WARM_UP, STEPS = 5, 20
"""Steps of the learner that do not count, and that do."""
INTAKE_BYTES = 1e6
"""Games are repeated to about so many bytes, because a store has costs of its own."""


@dataclass(frozen=True)
class Sizes:
    """Sizes and rates of a variant with one net."""

    net: int
    """Bytes of the ONNX file: n."""
    game: float
    """Bytes of a game as a line."""
    position: float
    """Bytes of a recorded position in such lines: b."""
    player: float
    """Recorded positions of a player a second: r."""
    intake: float
    """Seconds of the learner's machine for a position that arrives: t."""
    learner: float
    """Samples of the learner a second: L."""

    @property
    def most(self) -> float:
        """Recorded positions a second that the learner's machine can take."""
        return 1 / (self.intake + SAMPLES / self.learner)


SAMPLES = ReinforceSettings(variant="").learning.samples_per_position


def measure(variant: str, net: str, nodes: int, seconds: float) -> Sizes:
    """Play, take in the games, and train, on one core."""
    blocks, channels = map(int, net.split("x"))
    size = {"blocks": blocks, "channels": channels, "value_channels": 4, "value_hidden": 64}
    settings = ReinforceSettings(
        variant=variant,
        threads=1,
        search={"nodes": nodes},
        learning={"size": size, "checkpoint_every": 10**6},
        variety={"max_plies": 200},
    )
    spec = registry().variant(variant)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        training = WindowTraining(
            settings, spec, configure_start(settings, spec, None, None), folder
        )
        path = folder / "model.onnx"
        training.export_start(path)
        net_bytes = path.stat().st_size
        with closing(open_net(spec, path, settings)) as evaluator:
            player = make_self_play(spec, evaluator, settings, generation=0)
            playing = player.finished()
            next(playing)  # compiles
            # Not the positions of the games that have ended: the first ones are the short ones.
            visits, lines = player.visits, []
            began = time.process_time()
            while (spent := time.process_time() - began) < seconds:
                lines.append(game_line(next(playing)))
            rate = (player.visits - visits) / nodes / spent

        total = sum(len(line) + 1 for line in lines)
        share = total / sum(recorded_positions(read_line(line, variant)) for line in lines)
        game = total / len(lines)
        lines *= 1 + int(INTAKE_BYTES / total)
        began = time.process_time()
        games = [read_line(line, variant) for line in lines]
        with GameJournal(folder / "journal", variant) as journal:
            for record in games:
                journal.add(record)
        with StoreWriter(folder / "games.store", spec) as writer:
            for record in games:
                writer.add(record)
        intake = time.process_time() - began
        positions = sum(map(recorded_positions, games))

        stores = {1: Store(folder / "games.store", spec)}
        window = newest_games([1], stores.__getitem__, positions)
        rate_of_learning = settings.learning.lr
        warm = Course(1, WARM_UP, 0.0, rate_of_learning)
        training.train(window, warm, 0, lambda text: None)
        began = time.process_time()
        timed = Course(2, WARM_UP + STEPS, 0.0, rate_of_learning)
        training.train(window, timed, WARM_UP, lambda text: None)
        step = (time.process_time() - began) / STEPS
    return Sizes(
        net_bytes,
        game,
        share,
        rate,
        intake / positions,
        settings.learning.batch / step,
    )


def print_needs(sizes: Sizes, players: list[int], cores: int, generation: int) -> None:
    """Print what a number of players needs. cores: players of a machine."""
    rows = []
    for count in players:
        made = count * sizes.player
        used = min(made, sizes.most)
        machines = -(-count // cores)
        nets = machines * sizes.net * used / generation / 1e6
        rows.append(
            [
                f"{count:,}",
                f"{used:,.0f}" + (" (limit)" if used < made else ""),
                f"{used * SAMPLES:,.0f}",
                f"{used * sizes.position / 1e6:,.2f}",
                f"{nets:,.2f}",
                f"{generation / used:,.0f}",
            ]
        )
    print_table(
        ["players", "positions/s", "samples/s", "games MB/s", "nets MB/s", "s a generation"], rows
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variants", nargs="+", default=["dobutsu", "minixiangqi", "crazyhouse"])
    parser.add_argument("--net", default="3x32", metavar="BLOCKSxCHANNELS")
    parser.add_argument("--nodes", type=int, default=16, help="of each search")
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time of a player")
    parser.add_argument("--player", type=float, help="positions a second of a player")
    parser.add_argument("--learner", type=float, help="samples a second of the learner")
    parser.add_argument("--players", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--cores", type=int, default=16, help="players of a machine")
    parser.add_argument("--generation", type=int, default=100_000, help="its recorded positions")
    given = parser.parse_args()
    for variant in given.variants:
        sizes = measure(variant, given.net, given.nodes, given.seconds)
        if given.player or given.learner:
            sizes = Sizes(
                sizes.net, sizes.game, sizes.position,
                given.player or sizes.player, sizes.intake, given.learner or sizes.learner,
            )  # fmt: skip
        print(
            f"\n{variant}: net {sizes.net / 1e6:.2f} MB, game {sizes.game:,.0f} bytes, position "
            f"{sizes.position:.0f} bytes, player {sizes.player:,.0f} positions/s, intake "
            f"{1e6 * sizes.intake:.0f} µs, learner {sizes.learner:,.0f} samples/s; growth ends at "
            f"{sizes.most:,.0f} positions/s, {sizes.most / sizes.player:,.0f} players"
        )
        print_needs(sizes, given.players, given.cores, given.generation)


if __name__ == "__main__":
    run_script(main)
