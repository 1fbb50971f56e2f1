"""Values and blunders of nets, judged by a strong program.

    python benchmarks/judgement.py -V xiangqi --store games.store --labels labels.jsonl --model NET.onnx
    python benchmarks/judgement.py -V xiangqi --labels labels.jsonl --model packaged --model NET.onnx

The first command samples positions of the store's games and asks the judge about each of them (by default
Fairy-Stockfish at 100,000 nodes). Its answers are kept in the file of labels; an interrupted run goes on,
and other nets are measured on the same positions. The nets must not have been trained on the games.

Values: among the positions that the judge calls better for one side by 150 to 300, 300 to 600 and more
centipawns, the share in which the net's value has the right sign, by one evaluation and by a search, with
the mean value for the better side in [-1, 1].

Blunders: the share of all positions in which the move of a search loses more than 200 centipawns: the
judge's score of the position, less that of the position after the move, both limited to ±1,000. Judged
moves are kept in the file of labels too. Errors are 95 % intervals.

With `--check N` the judge is asked again, with N nodes, about the positions that it calls better by 150 to 600
centipawns. A net cannot be expected to agree with the labels more often than the judge does then. The last
column has only the positions in which both answers agree. The answers are kept beside the labels, in
`labels.N.jsonl`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from variant_ai import Engine, Position
from variant_ai.cli.common.console import note, progress
from variant_ai.cli.common.ending import run_script
from variant_ai.core.arena.games.openings import played_out, sampled_from_store
from variant_ai.core.arena.players.player import Allowance, Player, PlayerClock, Turn
from variant_ai.core.arena.players.player_spec import net_name, parse_player
from variant_ai.core.arena.programs.program_player import program_player
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.errors import DataError, SettingError
from variant_ai.plugins import registry

CLASSES = ((150, 300), (300, 600), (600, math.inf))
"""Centipawns, from and below."""
BLUNDER = 200
LIMIT = 1000
"""Scores are limited to this many centipawns before a loss is taken."""
PATIENCE = 120.0
"""Seconds that the judge may take for a position."""
CHUNK = 64
"""Positions that a net searches at once."""


class Judge:
    """A program that scores positions; its answers are lines of a file."""

    def __init__(self, variant: str, text: str, nodes: int, path: Path) -> None:
        self.variant, self.nodes, self.path = variant, nodes, path
        self.scores: dict[str, int] = {}
        """FEN to centipawns for the side to move, within ±LIMIT."""
        self.sampled: list[str] = []
        """FENs of the sample; other scores are those of positions after a net's move."""
        self._text = text
        self._player: Player | None = None
        if path.exists():
            self._load()

    def _load(self) -> None:
        for number, line in enumerate(self.path.read_text("utf-8").splitlines(), start=1):
            try:
                row = json.loads(line)
                kept = (row["variant"], row["judge"], row["nodes"])
                fen, score, sampled = str(row["fen"]), int(row["score"]), bool(row["sampled"])
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(
                    f"{self.path}:{number}: no label of this program: {error}"
                ) from error
            if kept != (self.variant, self._text, self.nodes):
                raise DataError(
                    f"{self.path}:{number}: a label of {kept[1]} at {kept[2]} nodes for {kept[0]}; asked for "
                    f"{self._text} at {self.nodes} nodes for {self.variant}"
                )
            self.scores[fen] = score
            if sampled:
                self.sampled.append(fen)

    def score(self, fen: str, *, sampled: bool = False) -> int:
        """Score a position for its side to move, which must have a move."""
        if fen not in self.scores:
            self.scores[fen] = self._ask(fen)
            row = {
                "variant": self.variant,
                "judge": self._text,
                "nodes": self.nodes,
                "fen": fen,
                "score": self.scores[fen],
                "sampled": sampled,
            }
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            if sampled:
                self.sampled.append(fen)
        return self.scores[fen]

    def _ask(self, fen: str) -> int:
        game = Position(self.variant, fen).game
        player = self._started()
        player.new_game(game)
        clock = PlayerClock(Allowance(nodes=self.nodes))
        reply = player.play(game, Turn((clock, clock), game.side, PATIENCE, PATIENCE))
        if reply.score is None:
            raise DataError(f"{player.name} reports no score (FEN {fen})")
        return max(-LIMIT, min(LIMIT, reply.score))

    def _started(self) -> Player:
        if self._player is None:
            spec = registry().variant(self.variant)
            words = parse_player(f"{self._text};option.Threads=1;option.Hash=64")
            player = program_player(words, registry().rules(spec))
            player.start()
            self._player = player
        return self._player

    def close(self) -> None:
        if self._player is not None:
            self._player.close()


@dataclass(frozen=True)
class Share:
    """Number of positions of a kind, among all."""

    found: int
    of: int

    @property
    def text(self) -> str:
        if not self.of:
            return "no position"
        share = self.found / self.of
        error = 1.96 * math.sqrt(max(share * (1 - share), 0.25 / self.of) / self.of)
        return f"{100 * share:.1f} ± {100 * error:.1f} %"


@dataclass(frozen=True)
class Values:
    """Signs and values of a net in a class of positions."""

    right: Share
    mean: float
    """For the better side."""


def values_of(scores: Sequence[int], values: Sequence[float]) -> list[Values]:
    """Compare a net's values with the judge's scores, both for the side to move; one for each class."""
    rows = []
    for least, below in CLASSES:
        better = [
            value * math.copysign(1, score)
            for score, value in zip(scores, values, strict=True)
            if least <= abs(score) < below
        ]
        right = Share(sum(value > 0 for value in better), len(better))
        rows.append(Values(right, sum(better) / len(better) if better else 0.0))
    return rows


def sample(judge: Judge, store: Path, count: int, seed: int) -> None:
    """Score `count` positions of the store's games that lie between plies 8 and 150."""
    spec = registry().variant(judge.variant)
    rules = registry().rules(spec)
    chosen = sampled_from_store(Store(store, spec), rules, count, (8, 150), seed)
    fens = [played_out(rules, opening).fen() for opening in chosen]
    with progress() as bar:
        task = bar.add_task("judging", total=len(fens))
        for fen in fens:
            judge.score(fen, sampled=True)
            bar.advance(task)


def searched(
    engine: Engine, positions: Sequence[Position], nodes: int
) -> Iterable[tuple[float, str]]:
    """Values for the side to move, and best moves."""
    with progress() as bar:
        task = bar.add_task(f"{nodes} visits", total=len(positions))
        for first in range(0, len(positions), CHUNK):
            chunk = positions[first : first + CHUNK]
            for analysis in engine.analyse_many(chunk, nodes=nodes):
                if analysis.value is None or analysis.best is None:
                    raise DataError("a sampled position has no legal move")
                yield analysis.value, analysis.best
            bar.advance(task, len(chunk))


def lost_by(judge: Judge, fen: str, move: str) -> int:
    """Centipawns that a move loses, by the judge; 0 if it is as good as the judge's own."""
    after = Position(judge.variant, fen)
    side = after.turn
    after.push(move)
    if (outcome := after.outcome) is not None:
        value = LIMIT * outcome.value(side)
    else:
        value = -judge.score(after.fen)
    return max(0, judge.scores[fen] - value)


def check(judge: Judge, second: Judge) -> None:
    """Print how often a judge with more nodes prefers the same side, where the choice is close."""
    close = [fen for fen in judge.sampled if is_close(judge.scores[fen])]
    with progress() as bar:
        task = bar.add_task(f"judging with {second.nodes:,} nodes", total=len(close))
        for fen in close:
            second.score(fen, sampled=True)
            bar.advance(task)
    print(f"\n| better side, {judge.nodes:,} nodes | positions | the same with {second.nodes:,} |")
    print("| --- | ---: | ---: |")
    for least, below in CLASSES[:-1]:
        fens = [fen for fen in close if least <= abs(judge.scores[fen]) < below]
        share = Share(sum(agree(judge, second, fen) for fen in fens), len(fens))
        print(f"| {least} to {below} centipawns | {share.of} | {share.text} |")


def is_close(score: int) -> bool:
    """Return true for a score of the classes below the last."""
    return CLASSES[0][0] <= abs(score) < CLASSES[-1][0]


def agree(judge: Judge, second: Judge, fen: str) -> bool:
    """Return true if both prefer the same side, or the second was not asked."""
    return fen not in second.scores or judge.scores[fen] * second.scores[fen] > 0


def measure(
    judge: Judge, second: Judge | None, model: str, visits: tuple[int, int], evaluator: str
) -> None:
    """Print the rows of one net."""
    spec = registry().variant(judge.variant)
    net = registry().net(spec, Path(model))
    fens = judge.sampled
    scores = [judge.scores[fen] for fen in fens]
    positions = [Position(judge.variant, fen) for fen in fens]
    with Engine(judge.variant, net, evaluator=evaluator, log=note) as engine:
        raw = [value for value, _ in engine.evaluate(positions)]
        short = [value for value, _ in searched(engine, positions, visits[0])]
        moves = [move for _, move in searched(engine, positions, visits[1])]
    print(f"\n{net_name(str(net))}, {len(fens)} positions\n")
    kept = [second is None or agree(judge, second, fen) for fen in fens]
    head, line = (
        "| better side | positions | visits | mean value | sign right |",
        "| --- |" + " ---: |" * 4,
    )
    print(head + (f" where {second.nodes:,} nodes agree |" if second else ""))
    print(line + (" ---: |" if second else ""))
    agreed = list(itertools.compress(scores, kept))
    columns = [
        (
            number,
            values_of(scores, values),
            values_of(agreed, list(itertools.compress(values, kept))),
        )
        for number, values in ((1, raw), (visits[0], short))
    ]
    for place, (least, below) in enumerate(CLASSES):
        name = f"{least} to {below}" if below < math.inf else f"{least} or more"
        for number, rows, checked in columns:
            row = rows[place]
            print(
                f"| {name} centipawns | {row.right.of} | {number} | {row.mean:+.2f} | {row.right.text} |"
                + (f" {checked[place].right.text} |" if second else "")
            )
    with progress() as bar:
        task = bar.add_task("judging moves", total=len(fens))
        losses = []
        for fen, move in zip(fens, moves, strict=True):
            losses.append(lost_by(judge, fen, move))
            bar.advance(task)
    blunders = Share(sum(loss > BLUNDER for loss in losses), len(losses))
    print(
        f"\nmoves of {visits[1]} visits that lose more than {BLUNDER} centipawns: {blunders.text}; "
        f"mean loss {sum(losses) / len(losses):.0f} centipawns"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-V", "--variant", required=True)
    parser.add_argument("--labels", type=Path, required=True, metavar="FILE")
    parser.add_argument("--store", type=Path, help="games to sample positions from")
    parser.add_argument("--positions", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--judge", default="fairy-stockfish", help="a player, as `match` takes it")
    parser.add_argument("--judge-nodes", type=int, default=100_000, metavar="N")
    parser.add_argument(
        "--check", type=int, metavar="N", help="nodes of the judge when asked again"
    )
    parser.add_argument("--model", action="append", default=[], metavar="NET")
    parser.add_argument(
        "--visits", type=int, nargs=2, default=(200, 1000), metavar=("VALUES", "MOVES")
    )
    parser.add_argument("--evaluator", default="auto")
    given = parser.parse_args()
    if min(given.positions, given.judge_nodes, *given.visits) < 1:
        raise SettingError("--positions, --judge-nodes and --visits must be 1 or more")
    if given.check is not None and given.check <= given.judge_nodes:
        raise SettingError(
            f"--check must be more than the {given.judge_nodes:,} nodes of the labels"
        )
    judge = Judge(given.variant, given.judge, given.judge_nodes, given.labels)
    second = None
    if given.check is not None:
        path = given.labels.with_suffix(f".{given.check}.jsonl")
        second = Judge(given.variant, given.judge, given.check, path)
    try:
        if given.store is not None:
            sample(judge, given.store, given.positions, given.seed)
        if not judge.sampled:
            raise DataError(f"{given.labels}: it has no labels; give --store")
        if second is not None:
            check(judge, second)
        for model in given.model:
            measure(judge, second, model, tuple(given.visits), given.evaluator)
    finally:
        judge.close()
        if second is not None:
            second.close()


if __name__ == "__main__":
    run_script(main)
