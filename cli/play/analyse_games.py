"""Games for `variant-ai analyse`: read one by one, analysed, written and printed."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai import __version__
from variant_ai.cli.common.console import note, print_json, print_table, progress
from variant_ai.cli.common.ending import EXIT_INTERRUPTED, fail
from variant_ai.cli.common.options import make_resolver
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from variant_ai.api import Engine
    from variant_ai.core.analysis.annotated_game import GameAnalysis
    from variant_ai.core.data.game_record import GameRecord
    from variant_ai.core.rules.text.notation import Notation
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.report import Report
    from variant_ai.core.system.interrupts import Interrupt

PLAYERS = ("white", "black")


class GamesAnalysis:
    """Analyses games as they are read."""

    def __init__(
        self,
        engine: Engine,
        notation: Notation,
        limits: Limits,
        interrupt: Interrupt,
        number: int | None,
    ) -> None:
        self.search, self.rules = engine.search, engine.rules
        self.notation = notation
        self.limits = limits
        self.annotator = f"variant-ai {__version__} ({engine.evaluator.name})"
        self.interrupt = interrupt
        self.number = number
        self.seen = 0
        self.last = 0
        """Number of the last game read, in the file."""
        self.done: list[GameAnalysis] = []
        self.file: Any = None
        self.bar: Progress | None = None
        self.task: TaskID | None = None

    def run(self, path: str, output: Path | None, as_json: bool) -> int:
        import contextlib
        from dataclasses import replace

        from variant_ai.core.data.game_text import text_file
        from variant_ai.core.data.read.importer import Importer
        from variant_ai.core.data.store.blocks import is_store
        from variant_ai.core.data.store.game_store import Store
        from variant_ai.plugins import registry

        spec = self.rules.spec
        importer = Importer(
            readers=list(registry().readers(spec).values()),
            make_resolver=lambda: make_resolver(spec),
            on_skip=lambda skip: note(f"not read: {skip.detail or skip.reason}"),
            stop=lambda: self.interrupt() or self._has_all(),
        )
        # An existing file is replaced when the new one is complete.
        written = output
        if output is not None and output.exists():
            written = output.with_name(f"unfinished-{output.name}")
        opened = contextlib.nullcontext() if written is None else text_file(written)
        with opened as self.file, progress(quiet=as_json) as self.bar:
            self.task = self.bar.add_task("positions", total=None)
            if is_store(Path(path)):
                store, skipped = Store(Path(path), spec), 0
                for index in range(len(store)):
                    if self.interrupt() or self._has_all():
                        break
                    # its number in the store, not that in the file it came from
                    self.add(replace(store.game(index), number=index + 1))
            else:
                skipped = importer.run([path], self).skipped.total()
            if not self.done:  # raised here, so that no file is left
                if self.interrupt():
                    raise click.exceptions.Exit(EXIT_INTERRUPTED)
                which = f"game {self.number} is not among those read"
                which = which if self.number and self.seen else "no game was read"
                fail(f"{path}: {which} ({counted(self.seen, 'game')}, {skipped} skipped)")
        if output is not None and written is not None and written != output:
            if self.interrupt():
                note(f"{output} is unchanged")
                output = written
            else:
                written.replace(output)
        if as_json:
            print_json([self._json(analysis) for analysis in self.done])
        else:
            for analysis in self.done:
                self._print(analysis, moves=output is None)
        if output is not None:
            first = spec.players[0]
            note(f"{counted(len(self.done), 'game')} to {output}; [%eval] is for {first}")
        return EXIT_INTERRUPTED if self.interrupt() else 0

    def add(self, record: GameRecord) -> None:
        """Analyse a game of the file."""
        from variant_ai.core.analysis.annotated_game import analyse_game, annotated
        from variant_ai.core.data.game_text import pgn_text

        self.seen += 1
        self.last = record.number
        if self.number not in (None, record.number) or self.interrupt():
            return
        assert self.bar is not None and self.task is not None
        bar, task = self.bar, self.task
        bar.reset(task, total=record.plies + 1, description=f"game {record.number}")

        def show(count: int, report: Report | None) -> None:
            bar.update(task, completed=count)

        analysis = analyse_game(
            self.search, self.rules, record, self.limits, on_ply=show, stopped=self.interrupt
        )
        if not analysis.moves:
            return
        self.done.append(analysis)
        if self.file is not None:
            record, remarks = annotated(
                analysis,
                annotator=self.annotator,
                players=self.rules.spec.players,
                move_text=functools.partial(self.notation.write, self.rules),
            )
            self.file.write(pgn_text(self.rules, self.notation, record, remarks))

    def _has_all(self) -> bool:
        return self.number is not None and self.last >= self.number

    def _print(self, analysis: GameAnalysis, *, moves: bool) -> None:
        record = analysis.record
        click.echo(f"{record.white or '?'} - {record.black or '?'}  {record.result}")
        if moves:
            click.echo("scores are for the player who made the move")
            print_table(
                ("ply", "move", "score", "", "better"),
                self._rows(analysis),
                right=("ply", "score"),
            )
        for side, player in enumerate(self.rules.spec.players):
            accuracy = analysis.accuracy(side)
            if accuracy is not None:
                marks = ", ".join(f"{n} {sign}" for sign, n in analysis.marks(side).items())
                click.echo(f"{player.lower()}: accuracy {accuracy:.1f} %, {marks}")
        if not analysis.is_whole:
            click.echo(
                f"interrupted after {len(analysis.moves)} of {counted(record.plies, 'move')}"
            )

    def _rows(self, analysis: GameAnalysis) -> list[list[object]]:
        from variant_ai.core.search.report import score_text

        rows: list[list[object]] = []
        for judged in analysis.moves:
            text = self.notation.write(self.rules, judged.position, judged.move)
            better = ""
            if judged.mark and judged.best is not None:
                better = self.notation.write(self.rules, judged.position, judged.best.move)
            score = "" if judged.score is None else score_text(judged.score)
            rows.append([judged.ply + 1, text, score, judged.mark, better])
        return rows

    def _json(self, analysis: GameAnalysis) -> dict[str, Any]:
        record, text = analysis.record, self.rules.uci
        return {
            "white": record.white,
            "black": record.black,
            "result": record.result,
            "number": record.number,
            "plies": record.plies,
            "whole": analysis.is_whole,
            "simulations": analysis.visits,
            "seconds": round(analysis.seconds, 3),
            "scores_seen_by": "the player who made the move",
            "accuracy": {p: _rounded(analysis.accuracy(side)) for side, p in enumerate(PLAYERS)},
            "marks": {player: analysis.marks(side) for side, player in enumerate(PLAYERS)},
            "moves": [
                {
                    "ply": judged.ply + 1,
                    "player": PLAYERS[judged.side],
                    "move": text(judged.move),
                    "text": self.notation.write(self.rules, judged.position, judged.move),
                    "score": judged.score,
                    "value": round(judged.value, 4),
                    "value_played": round(judged.value_played, 4),
                    "lost": round(judged.lost, 4),
                    "mark": judged.mark,
                    "best": text(judged.best.move) if judged.best else None,
                    "pv": [text(move) for move in judged.best.pv] if judged.best else [],
                }
                for judged in analysis.moves
            ],
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
