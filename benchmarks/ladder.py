"""A net against Fairy-Stockfish at more and more nodes a move: rungs of a ladder.

    python benchmarks/ladder.py -V minixiangqi --model NET.onnx --nodes 10,30,100,300,1000 \
        --evaluations 800 --games 200 -o result.json
    python benchmarks/ladder.py -V dobutsu-royal --net-variant dobutsu --model NET.onnx -o result.json \
        --engine 'fairy-stockfish;option.VariantPath=benchmarks/dobutsu-royal.ini'
    python benchmarks/ladder.py --picture ladder.svg one.json other.json

Each rung is a match: both colours from openings of a few random plies to different positions, the same
ones in every rung; without them most games repeat. The net searches with a fixed number of evaluations a
move, Fairy-Stockfish with Threads 1 and Hash 16. The games are in `result.games/NODES-nodes/` as those of
`variant-ai match`, and the same command goes on after any interruption. Every position of every game is
also given to Fairy-Stockfish: if its legal moves are not those of the spec, or if a game ends by a fault
of a player (an illegal move, a crash), the benchmark stops with an error that names game and FEN.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from variant_ai.cli.common.ending import run_script
from variant_ai.cli.common.player_options import NO_NET, net_digest
from variant_ai.core.arena.games.openings import random_lines
from variant_ai.core.arena.match.match_record import GameEntry, tally_of
from variant_ai.core.arena.match.match_settings import MatchSettings, settings_of
from variant_ai.core.arena.match.tournament import MatchState, Tournament
from variant_ai.core.arena.players.net_player import NetPlayer
from variant_ai.core.arena.players.player import FAULTS, Player
from variant_ai.core.arena.players.player_spec import PlayerSpec, net_name, parse_player
from variant_ai.core.arena.programs.engine_process import engine_command
from variant_ai.core.arena.programs.program_player import Coordinates, program_player
from variant_ai.core.arena.programs.uci_client import UciClient
from variant_ai.core.arena.tables.elo import Tally, estimate, expected_score
from variant_ai.core.errors import DataError, EngineError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.interface import BaseSearch, make_search
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.system.files import write_whole
from variant_ai.core.system.interrupts import stop_on_signal
from variant_ai.plugins import registry

VISITS = 10
"""Visits of a search for each evaluation, at most: visits that end at once are free."""
THINK = 600
"""Seconds after which a player counts as hung."""


@dataclass
class Rung:
    """Result of the net against one number of nodes."""

    nodes: int
    wins: int = 0
    draws: int = 0
    losses: int = 0
    repeated: int = 0
    """Games that repeat another move for move."""
    ends: dict[str, int] = field(default_factory=dict)
    complete: bool = False
    score: float = 0.5
    score_error: float = 0.0
    """Half the width of the 95 % interval."""
    elo: float | None = None
    """Difference to Fairy-Stockfish; None if every game was won or lost."""
    elo_error: float | None = None
    seconds: float = 0.0
    """Of this process's last run; 0 if all games were played before."""

    @classmethod
    def of(cls, nodes: int, state: MatchState, seconds: float) -> Rung:
        tally = tally_of(state.entries, state.names[0])
        difference = estimate(tally)
        return cls(
            nodes,
            tally.wins,
            tally.draws,
            tally.losses,
            state.repeated,
            dict(Counter(entry.reason for entry in state.entries).most_common()),
            not state.stopped,
            tally.score,
            score_error(tally),
            _finite(difference.elo),
            _finite(difference.error),
            round(seconds, 1),
        )

    @property
    def text(self) -> str:
        elo = "" if self.elo is None else f", Elo {self.elo:+.0f}"
        error = "" if self.elo_error is None else f" ± {self.elo_error:.0f}"
        ends = ", ".join(f"{reason} {count}" for reason, count in self.ends.items())
        return (
            f"{self.nodes:>6} nodes: +{self.wins} ={self.draws} -{self.losses}, "
            f"score {self.score:.3f} ± {self.score_error:.3f}{elo}{error}; "
            f"{self.repeated} repeated; {ends}{'' if self.complete else ' (not complete)'}"
        )


def score_error(tally: Tally) -> float:
    """Half the width of the 95 % interval of the mean score, as wide as that of the Elo difference."""
    found = estimate(tally)
    return (expected_score(found.high) - expected_score(found.low)) / 2


def _finite(number: float) -> float | None:
    return round(number, 1) if math.isfinite(number) else None


class LegalMoves(UciClient):
    """Fairy-Stockfish as a judge of legal moves."""

    def __init__(self, rules: Rules, engine: PlayerSpec) -> None:
        super().__init__(engine_command(engine.command), options=engine.option_texts)
        self._variant = engine.variant or rules.spec.fairy or rules.spec.variant

    def start(self) -> None:
        super().start()
        self.set_variant(self._variant)

    def legal(self, fen: str | None, moves: Sequence[str]) -> set[str]:
        """Return the legal moves after the moves, as it writes them."""
        self.send(self.position_line(fen, moves))
        self.send("go perft 1")
        deadline = time.monotonic() + self.timeout
        found = set()
        while not (line := self._line("Nodes searched", deadline)).startswith("Nodes searched"):
            move, colon, _ = line.partition(": ")
            if colon and " " not in move:
                found.add(move)
        return found


class Agreement:
    """Compares every position of finished games with Fairy-Stockfish."""

    def __init__(self, rules: Rules, client: LegalMoves) -> None:
        """client: started."""
        self._rules = rules
        self._client = client
        self._coordinates = Coordinates(rules)
        self._checked: set[tuple[str | None, ...]] = set()
        """Start position and moves of each position."""

    def check(self, entry: GameEntry, rung: int) -> None:
        """Raises EngineError if a fault ended the game, or if legal moves differ in it."""
        where = f"{rung} nodes, game {entry.number + 1}"
        game = Game(self._rules, entry.start_fen)
        for ply, text in enumerate(entry.moves):
            before = tuple(entry.moves[:ply])
            if (entry.start_fen, *before) not in self._checked:
                self._checked.add((entry.start_fen, *before))
                theirs = self._client.legal(entry.start_fen, before)
                ours = set(self._coordinates.write_all(game.legal_moves().tolist()))
                # It lists the drop of a pawn that mates, and counts it as lost; here it is illegal.
                theirs -= {
                    move
                    for move in theirs - ours
                    if "@" in move and not self._client.legal(entry.start_fen, (*before, move))
                }
                if ours != theirs:
                    differ = ", ".join(sorted(ours ^ theirs))
                    raise EngineError(
                        f"{where}, ply {ply}: the spec and {self._client.name} disagree about {differ} "
                        f"(FEN {game.fen()})"
                    )
            game.push_uci(text)
        if entry.reason in FAULTS - {"resignation"}:
            raise EngineError(
                f"{where}, {entry.first} - {entry.second}: {entry.reason}: {entry.detail} "
                f"(FEN {game.fen()}); to play it again, delete its line of games.jsonl"
            )


class Ladder:
    """The rungs of one net."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.spec = registry().variant(given.variant)
        self.rules = registry().rules(self.spec)
        self.net_spec = registry().variant(given.net_variant or given.variant)
        self.openings = random_lines(
            self.rules, (given.games + 1) // 2, (given.opening_plies,) * 2, given.seed
        )
        self.params = SearchParams.of(self.spec, **_settings(given.search))
        self.path = None if given.model == NO_NET else registry().net(self.spec, Path(given.model))
        self.name = net_name(str(self.path)) if self.path else given.evaluator
        self.digest = net_digest(self.path) if self.path else ""

    def play(self, on_rung: Callable[[Rung], None]) -> None:
        """Play all rungs; on_rung is called after each, and after an interrupted one."""
        with LegalMoves(self.rules, parse_player(self.given.engine)) as client:
            judge = Agreement(self.rules, client)
            with stop_on_signal() as interrupt:
                for nodes in self.given.nodes:
                    match = self.match(nodes)
                    interrupt.stops.append(match.stop)
                    begun, made = time.monotonic(), 0

                    def on_game(state: MatchState, entry: GameEntry, nodes: int = nodes) -> None:
                        nonlocal made
                        made += 1
                        judge.check(entry, nodes)

                    state = match.run(on_game)
                    for entry in state.entries:
                        judge.check(entry, nodes)
                    rung = Rung.of(nodes, state, time.monotonic() - begun if made else 0.0)
                    on_rung(rung)
                    if interrupt():
                        raise KeyboardInterrupt

    def match(self, nodes: int) -> Tournament:
        """The match of a rung."""
        settings = self.settings(nodes)
        folder = self.given.output.with_suffix(".games") / f"{nodes}-nodes"

        def make_player(index: int) -> Player:
            if index == 1:
                return program_player(settings.players[1], self.rules)
            return NetPlayer(
                self.make_search,
                settings.players[0].name,
                self.digest,
                evaluations=self.given.evaluations,
            )

        notation = registry().notation(self.spec, "uci")
        return Tournament(settings, self.rules, make_player, self.openings, folder, notation)

    def settings(self, nodes: int) -> MatchSettings:
        given = self.given
        net = {
            "net": str(given.model),
            "name": f"{self.name} at {given.evaluations} evaluations",
            "nodes": VISITS * given.evaluations,
            "search": _settings(given.search),
        }
        engine = parse_player(
            f"{given.engine};name=Fairy-Stockfish at {nodes};nodes={nodes};option.Threads=1;"
            "option.Hash=16"
        )
        words: dict[str, Any] = {
            "variant": given.variant,
            "players": [net, engine],
            "games": given.games,
            "concurrency": given.concurrency,
            "seed": given.seed,
            "think": THINK,
            "max_plies": given.max_plies,
        }
        if given.sprt:
            words["sprt"] = tuple(given.sprt)
        return settings_of(words, "ladder")

    def make_search(self) -> BaseSearch:
        evaluator = registry().evaluator(
            self.net_spec,
            self.path,
            evaluator=self.given.evaluator,
            batch=self.params.batch_size,
            threads=self.given.threads,
        )
        return make_search(self.spec, evaluator, self.params, rules=self.rules)


def _settings(texts: Sequence[str]) -> dict[str, Any]:
    """Search settings of KEY=VALUE texts. Raises SettingError."""
    player = parse_player(";".join(["net:x", *(f"search.{text}" for text in texts)]))
    return player.search


def reached(rungs: Sequence[Rung]) -> str:
    """The highest rung with at least half of the points."""
    held = [rung.nodes for rung in rungs if rung.complete and rung.score >= 0.5]
    return f"rung reached: {max(held)} nodes" if held else "no rung reached"


def draw(path: Path, results: Sequence[Path]) -> None:
    """Draw the scores of result files over the nodes, as PNG or SVG by the suffix."""
    from variant_ai.core.train.pictures.canvas import GREY, new_figure, printable, series, tidy

    figure = new_figure(7, 4.5)
    axes = figure.subplots()
    for number, source in enumerate(results):
        try:
            result = json.loads(source.read_text("utf-8"))
            rungs = sorted((Rung(**one) for one in result["rungs"]), key=lambda rung: rung.nodes)
            name = result.get("name") or source.stem
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{source}: not a result of this benchmark: {error}") from error
        axes.errorbar(
            [rung.nodes for rung in rungs],
            [rung.score for rung in rungs],
            yerr=[rung.score_error for rung in rungs],
            label=printable(name, 60),
            capsize=3,
            linewidth=1.2,
            **series(number),
        )
    axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("nodes a move of Fairy-Stockfish")
    axes.set_ylabel("score of the net, with 95 % interval")
    axes.legend(framealpha=0.8, edgecolor="none", fontsize=9)
    tidy(axes)
    figure.savefig(path)


def _numbers(text: str) -> list[int]:
    numbers = [int(word) for word in text.split(",")]
    if min(numbers) < 1:
        raise ValueError(text)
    return numbers


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="*", type=Path, help="result files, with --picture")
    parser.add_argument("--picture", type=Path, help="draw result files into this PNG or SVG")
    parser.add_argument("-V", "--variant", help="variant, or path of a spec")
    parser.add_argument("--model", help=f"net: an ONNX file or a run folder; {NO_NET}: none")
    parser.add_argument(
        "--net-variant",
        help="variant that the net was trained for, if it is another with planes and policy of the "
        "same shape (dobutsu for dobutsu-royal)",
    )
    parser.add_argument("--evaluator", default="auto", help="what runs the net (auto)")
    parser.add_argument("--threads", type=int, default=1, help="of the evaluator (1)")
    parser.add_argument("--engine", default="fairy-stockfish", help="as a player of matches")
    parser.add_argument(
        "--nodes", type=_numbers, default=[10, 30, 100, 300, 1000], help="rungs, with commas"
    )
    parser.add_argument("--evaluations", type=int, default=800, help="of the net, a move (800)")
    parser.add_argument("--games", type=int, default=200, help="games of a rung (200)")
    parser.add_argument("--opening-plies", type=int, default=4, help="random plies (4)")
    parser.add_argument("--max-plies", type=int, default=400, help="a longer game is drawn (400)")
    parser.add_argument("--seed", type=int, default=0, help="of the openings (0)")
    parser.add_argument("--concurrency", type=int, default=1, help="games at the same time (1)")
    parser.add_argument(
        "--search", action="append", default=[], metavar="KEY=VALUE", help="search setting"
    )
    parser.add_argument(
        "--sprt",
        nargs=2,
        type=float,
        metavar=("ELO0", "ELO1"),
        help="end a rung when this sequential test accepts one hypothesis; by default all games "
        "are played",
    )
    parser.add_argument("--name", default="", help="name of the net in pictures")
    parser.add_argument("-o", "--output", type=Path, help="result file (JSON)")
    return parser


def main() -> None:
    parser = arguments()
    given = parser.parse_args()
    if given.picture is not None:
        if not given.results:
            parser.error("--picture needs result files")
        draw(given.picture, given.results)
        return
    for option in ("variant", "model", "output"):
        if getattr(given, option) is None:
            parser.error(f"--{option} is missing")
    ladder = Ladder(given)
    rungs: list[Rung] = []

    def on_rung(rung: Rung) -> None:
        rungs.append(rung)
        print(rung.text, flush=True)
        result = {
            "name": given.name or ladder.name,
            "variant": given.variant,
            "net": {"model": str(given.model), "digest": ladder.digest},
            "evaluations": given.evaluations,
            "engine": given.engine,
            "openings": {"count": len(ladder.openings), "plies": given.opening_plies},
            "seed": given.seed,
            "rungs": [asdict(one) for one in rungs],
        }
        write_whole(given.output, json.dumps(result, indent=1))

    ladder.play(on_rung)
    print(reached(rungs))


if __name__ == "__main__":
    run_script(main)
