"""Self-play on a cluster: what players, learner and network need, from sizes and rates measured here.

    python benchmarks/cluster.py                                    # dobutsu, minixiangqi, crazyhouse
    python benchmarks/cluster.py --variants dobutsu --net 5x64 --nodes 100 --learner 40000
    python benchmarks/cluster.py --nodes 16 400 --learner 50000 --into docs/cluster.md

One player of one core plays for some seconds, and its games are read, written to a journal and stored
as the learner's machine does it. Rates are by processor time, so they hardly depend on what else runs.
`--learner` adds what another learner, such as a GPU, would change. The tables are Markdown; `--into`
writes them into a page.

With r positions a second of a player, t seconds of the learner's machine for a position that arrives, L
samples a second of the learner and s samples for each position, N players make

    min(N r, 1 / (t + s / L))

positions a second: the learner's process takes in games and trains by turns. At the second term more
players make no difference. The network carries N r b bytes of games a second, b for a position, and
each machine gets a net of n bytes once a generation.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from page_tables import markdown_table, replaced

from variant_ai.cli.common.ending import run_script
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.store_writer import StoreWriter
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.games.game_journal import GameJournal, game_line, read_line
from variant_ai.core.reinforce.games.game_supply import open_net
from variant_ai.core.reinforce.games.self_play import make_self_play, recorded_positions
from variant_ai.core.reinforce.reinforce_settings import (
    Learning,
    ReinforceSettings,
    SearchChoice,
    Variety,
)
from variant_ai.core.reinforce.window_training import (
    Course,
    WindowTraining,
    configure_start,
    newest_games,
)
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.run.training_run import describe_environment
from variant_ai.plugins import registry

WARM_UP, STEPS = 5, 20
"""Steps of the learner that do not count, and that do."""
INTAKE_BYTES = 1e6
"""Games are repeated to about so many bytes, because a store has costs of its own."""


SCRIPT = "benchmarks/cluster.py"


@dataclass(frozen=True)
class Sizes:
    """Sizes and rates of a variant with one net."""

    variant: str
    net: int
    """Bytes of the ONNX file: n."""
    position: float
    """Bytes of a recorded position in the lines of games: b."""
    game: float
    """Bytes of a game."""
    players: dict[int, float]
    """Recorded positions of a player a second, by nodes of its searches: r."""
    intake: float
    """Seconds of the learner's machine for a position that arrives: t."""
    learner: float
    """Samples of the learner a second: L."""

    def most(self, learner: float) -> float:
        """Recorded positions a second that the learner's machine can take. learner: its samples a
        second."""
        return 1 / (self.intake + SAMPLES / learner)


SAMPLES = ReinforceSettings(variant="").learning.samples_per_position


def measure(variant: str, net: str, nodes: Sequence[int], seconds: float) -> Sizes:
    """Play, take in the games, and train, on one core. seconds: of a player, for each number of
    nodes; the games are those of the first one."""
    blocks, channels = map(int, net.split("x"))
    size: dict[str, int | bool] = {"blocks": blocks, "channels": channels}
    size |= {"value_channels": 4, "value_hidden": 64}
    settings = ReinforceSettings(
        variant=variant,
        threads=1,
        search=SearchChoice(nodes=nodes[0]),
        learning=Learning(size=size, checkpoint_every=10**6),
        variety=Variety(max_plies=200),
    )
    spec = registry().variant(variant)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        training = WindowTraining(settings, spec, configure_start(settings, spec, None), folder)
        path = folder / "model.onnx"
        training.export_start(path)
        net_bytes = path.stat().st_size
        rates: dict[int, float] = {}
        lines: list[bytes] = []
        with closing(open_net(spec, path, settings)) as evaluator:
            for number in nodes:
                search = settings.search.model_copy(update={"nodes": number})
                own = settings.model_copy(update={"search": search})
                rates[number], played = play(spec, evaluator, own, seconds)
                lines = lines or played
        total = sum(len(line) + 1 for line in lines)
        share = total / sum(recorded_positions(read_line(line, variant)) for line in lines)
        mean = total / len(lines)
        lines *= 1 + int(INTAKE_BYTES / total)
        began = time.process_time()
        games = [read_line(line, variant) for line in lines]
        with GameJournal(folder / "journal", variant) as journal:
            for game in games:
                journal.add(game)
        with StoreWriter(folder / "games.store", spec) as writer:
            for game in games:
                writer.add(game)
        intake = time.process_time() - began
        positions = sum(map(recorded_positions, games))

        lr = settings.learning.lr
        stores = {1: Store(folder / "games.store", spec)}
        window = newest_games([1], stores.__getitem__, positions)
        training.train(window, Course(1, WARM_UP, 0.0, lr), 0, lambda text: None)
        began = time.process_time()
        training.train(window, Course(2, WARM_UP + STEPS, 0.0, lr), WARM_UP, lambda text: None)
        step = (time.process_time() - began) / STEPS
    rate = settings.learning.batch / step
    return Sizes(variant, net_bytes, share, mean, rates, intake / positions, rate)


def play(
    spec: VariantSpec, evaluator: Evaluator, settings: ReinforceSettings, seconds: float
) -> tuple[float, list[bytes]]:
    """Return recorded positions a second of a player, and the lines of the games that ended."""
    player = make_self_play(spec, evaluator, settings, generation=0)
    playing = player.finished()
    next(playing)  # compiles
    # Not the positions of the games that have ended: the first ones are the short ones.
    visits, lines = player.visits, []
    began = time.process_time()
    while (spent := time.process_time() - began) < seconds:
        lines.append(game_line(next(playing)))
    return (player.visits - visits) / settings.search.nodes / spent, lines


def size_table(found: Sequence[Sizes]) -> str:
    """Table of the sizes and rates that were measured."""
    nodes = list(found[0].players)
    head = ["", "net", "position", "game", *(f"r, {number} nodes" for number in nodes), "t", "L"]
    rows = [
        [
            one.variant,
            f"{one.net / 1e6:.2f} MB",
            f"{one.position:.0f} bytes",
            f"{one.game / 1e3:.1f} KB",
            *(f"{_rounded(rate)}/s" for rate in one.players.values()),
            f"{1e6 * one.intake:.0f} µs",
            f"{_rounded(one.learner)}/s",
        ]
        for one in found
    ]
    return markdown_table([head, *rows], [False] + [True] * (len(head) - 1))


def limit_table(found: Sequence[Sizes], learner: float | None) -> str:
    """Table of where growth ends, by nodes, with the learner that was measured and with another one."""
    head = ["", "nodes", "positions/s", "players"]
    if learner:
        head += [f"positions/s, L = {learner:,.0f}", "players"]
    rows = []
    for one in found:
        for number, rate in one.players.items():
            row = [one.variant, f"{number:,}"]
            for samples in (one.learner, learner):
                if samples:
                    row += [_rounded(one.most(samples)), _rounded(one.most(samples) / rate)]
            rows.append(row)
    return markdown_table([head, *rows], [False] + [True] * (len(head) - 1))


def need_table(
    found: Sequence[Sizes],
    learner: float | None,
    players: Sequence[int],
    cores: int,
    generation: int,
) -> str:
    """Table of what numbers of players need, at the last number of nodes. cores: players of a machine.
    generation: its positions."""
    head = ["", "players", "positions/s", "samples/s", "games MB/s", "nets MB/s", "s a generation"]
    rows = []
    for one in found:
        most = one.most(learner or one.learner)
        for count in players:
            made = count * list(one.players.values())[-1]
            used = min(made, most)
            nets = -(-count // cores) * one.net * used / generation / 1e6
            row = [f"{count:,}", _rounded(used) + (" (limit)" if used < made else "")]
            row += [_rounded(used * SAMPLES), f"{used * one.position / 1e6:.2f}", f"{nets:.2f}"]
            rows.append([one.variant, *row, _rounded(generation / used)])
    return markdown_table([head, *rows], [False] + [True] * (len(head) - 1))


def _rounded(number: float) -> str:
    """A number with three digits."""
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 10 else f"{number:.1f}"


def main() -> None:
    """Measure, print the tables, and write them into a page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variants", nargs="+", default=["dobutsu", "minixiangqi", "crazyhouse"])
    parser.add_argument("--net", default="3x32", metavar="BLOCKSxCHANNELS")
    parser.add_argument("--nodes", type=int, nargs="+", default=[16], help="of each search")
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time of a player")
    parser.add_argument("--learner", type=float, help="samples a second of another learner")
    parser.add_argument("--players", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--cores", type=int, default=16, help="players of a machine")
    parser.add_argument("--generation", type=int, default=100_000, help="its recorded positions")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="page to write the tables into")
    given = parser.parse_args()
    if given.into is not None:
        replaced(given.into.read_text(encoding="utf-8"), "", given.into, SCRIPT)  # raises at once
    found = [measure(name, given.net, given.nodes, given.seconds) for name in given.variants]
    words = [word for word in sys.argv[1:] if word not in ("--into", str(given.into))]
    learner = f"L = {given.learner:,.0f}" if given.learner else "L as measured"
    tables = "\n\n".join(
        [
            f"`{shlex.join(['python', SCRIPT, *words])}` with random nets of {given.net} on one core, "
            f"{describe_environment()['cpu']['name']}, {date.today().isoformat()}:",
            size_table(found),
            "Where growth ends: positions a second, and the players that make them:",
            limit_table(found, given.learner),
            f"Searches of {given.nodes[-1]} nodes, {learner}, {given.cores} players a machine, "
            f"{given.generation:,} positions a generation:",
            need_table(found, given.learner, given.players, given.cores, given.generation),
        ]
    )
    print(tables)
    if given.into is not None:
        page = given.into.read_text(encoding="utf-8")
        write_whole(given.into, replaced(page, tables + "\n", given.into, SCRIPT))


if __name__ == "__main__":
    run_script(main)
