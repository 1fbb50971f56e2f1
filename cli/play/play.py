"""`variant-ai play`: a game against the engine in the terminal."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note
from variant_ai.cli.common.options import (
    FILE,
    examples,
    fen_option,
    load_variant,
    notation_option,
    require_folder,
    variant_option,
    was_given,
)
from variant_ai.cli.common.search_options import (
    NetChoice,
    limits_option,
    load_engine,
    net_options,
    settings_given,
)
from variant_ai.core.errors import DataError, MoveError, VariantAIError
from variant_ai.core.spec.catalogue import home_path

if TYPE_CHECKING:
    from variant_ai.api import Engine
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.text.notation import Notation
    from variant_ai.core.search.move.limits import Limits

PV_PLIES = 6
EXAMPLES = 6
"""Moves shown after a wrong input."""
HELP = """\
  {move:<16}  play a move, in any notation of the variant
  moves             the legal moves
  hint              the move that the engine would play
  eval              the three best lines of play, with scores
  undo              take back your last move and the reply
  go                let the engine play this move, and change sides
  flip              turn the board
  fen               the position as FEN
  save FILE         the game so far as PGN
  resign, quit      end the game; Ctrl-D quits too"""


@click.command(
    epilog=examples(
        "variant-ai play -V NAME",
        "variant-ai play -V NAME --model net.onnx --side second --movetime 2",
        "# a weaker engine, the variant's own piece signs, and the game saved",
        "variant-ai play -V NAME --elo 1200 --signs --save game.pgn",
    )
)
@variant_option()
@net_options
@limits_option(800)
@click.option(
    "--side",
    type=click.Choice(["first", "second", "random", "none"]),
    default="first",
    help="Your side; none: the engine plays itself.",
)
@click.option(
    "--elo", type=click.IntRange(800, 2600), help="Limit the engine to about this strength."
)
@fen_option()
@notation_option("san")
@click.option("--signs", is_flag=True, help="Draw the variant's piece signs instead of letters.")
@click.option(
    "--save",
    type=FILE,
    help="Append the game to a PGN file at the end.",
)
def command(
    variant: str,
    net: NetChoice,
    limits: Limits,
    side: str,
    elo: int | None,
    fen: str | None,
    notation: str,
    signs: bool,
    save: Path | None,
) -> None:
    """Play against the engine in the terminal.

    Type moves, or `help` for a list of commands: take back, hint, evaluation, save as PGN. The score
    after a move of the engine is from the engine's point of view.
    """
    from variant_ai.api import Position
    from variant_ai.core.rules.shuffled_starts import STARTS, is_shuffled, shuffled_start
    from variant_ai.plugins import registry

    if save is not None:
        require_folder(save)
    spec = load_variant(variant)
    if fen is None and is_shuffled(spec):
        number = random.randrange(STARTS)
        fen = shuffled_start(spec, number)
        click.echo(f"Start position {number}; to play it again: --fen {number}")
    position = Position(spec, fen)
    weaker: dict[str, Any] = {}
    if elo is not None:
        from variant_ai.core.engine.protocols.chosen_options import strength_of
        from variant_ai.core.search.move.limits import Limits

        strength = strength_of(elo)
        weaker = {
            "temperature": strength.temperature,
            "temperature_decay": 1.0,
            "temperature_moves": 1000,
        }
        weaker = {name: value for name, value in weaker.items() if name not in settings_given(net)}
        most = limits.simulations if was_given("simulations") else None
        limits = Limits(
            simulations=min(strength.nodes, most or strength.nodes), movetime=limits.movetime
        )
    chosen = {"first": 0, "second": 1, "none": -1, "random": random.randrange(2)}[side]
    with load_engine(spec, net, **weaker) as engine:
        written = registry().notation(spec, notation)
        match = _Match(engine, position.game, limits, written, chosen, signs=signs)
        try:
            match.play()
        finally:
            if save is not None and match.game.moves:
                try:
                    match.save(save)
                except VariantAIError:
                    click.echo(match.pgn())  # do not lose the game
                    raise


@dataclass
class _GameLeftError(Exception):
    """The player has resigned or quit."""

    resigned: bool = False


class _Match:
    """One game between a person and the engine."""

    def __init__(
        self,
        engine: Engine,
        game: Game,
        limits: Limits,
        notation: Notation,
        side: int,
        *,
        signs: bool,
    ) -> None:
        self.spec, self.rules, self.search = engine.spec, engine.rules, engine.search
        self.game = game
        self.limits = limits
        self.notation = notation
        self.side = side
        self.signs = signs
        self.flipped = side == 1
        self.resigned: int | None = None
        """Colour that has resigned."""
        from variant_ai.plugins import registry

        every = registry().notations(self.spec)
        self._notations = sorted(every.values(), key=lambda one: one.name != "uci")  # UCI first
        self._commands: dict[str, Callable[[str], None]] = {
            "moves": self._moves,
            "hint": self._hint,
            "eval": self._evaluation,
            "undo": self._undo,
            "go": self._change_sides,
            "flip": self._flip,
            "fen": lambda _: click.echo(self.game.fen()),
            "save": self._save_as,
            "help": lambda _: self._help(),
            "resign": self._give_up,
            "quit": self._leave,
            "exit": self._leave,
        }

    def play(self) -> None:
        """Play until the game is over or the player leaves."""
        self._draw()
        try:
            while self.game.outcome() is None:
                if self.game.side == self.side:
                    self._ask()
                else:
                    self._answer()
        except _GameLeftError as end:
            if end.resigned:
                self.resigned = self.side
                click.echo(f"You resign: {self._result()}.")
            return
        outcome = self.game.outcome()
        assert outcome is not None
        detail = f" ({outcome.detail})" if outcome.detail else ""
        click.echo(f"{outcome.result}: {outcome.reason}{detail}")

    def _draw(self) -> None:
        import sys

        from variant_ai.core.draw.terminal import board_text

        colour = sys.stdout.isatty()
        click.echo()
        click.echo(board_text(self.game, signs=self.signs, colour=colour, flipped=self.flipped))

    # --- the person ----------------------------------------------------------------------------

    def _ask(self) -> None:
        try:
            text = click.prompt(f"{self._number()}", prompt_suffix=" ").strip()
        except click.Abort:  # Ctrl-D, Ctrl-C
            click.echo()
            raise _GameLeftError from None
        word, _, rest = text.partition(" ")
        handler = self._commands.get(word.lower())
        try:
            if handler is not None:
                handler(rest.strip())
            else:
                self.game.push(self._read(text))
                self._draw()
        except VariantAIError as error:
            click.echo(f"{error}")
            click.echo("`help` lists the commands, `moves` the legal moves.")

    def _read(self, text: str) -> int:
        """Read a move in the chosen notation, in UCI, or in any other of the variant.

        Raises MoveError with examples of legal moves.
        """
        position = self.game.position
        readings = [self.notation, *self._notations]
        for notation in readings:
            with contextlib.suppress(MoveError):
                return notation.read(self.rules, position, text)
        legal = self.game.legal_moves().tolist()
        moves = sorted(legal, key=self._write)[:1]
        texts = [n.write(self.rules, position, move) for n in readings for move in moves]
        shown = ", ".join(list(dict.fromkeys(texts))[:EXAMPLES])
        raise MoveError(f"{text!r} is no legal move here; moves are written like {shown}")

    def _help(self) -> None:
        legal = self.game.legal_moves().tolist()
        shown = sorted(map(self._write, legal))[len(legal) // 2] if legal else "MOVE"
        click.echo(HELP.format(move=shown))

    def _number(self) -> str:
        ply = int(self.game.position["ply"][0])
        return f"{ply // 2 + 1}{'.' if ply % 2 == 0 else '...'}"

    def _write(self, move: int) -> str:
        return self.notation.write(self.rules, self.game.position, move)

    def _moves(self, _: str) -> None:
        texts = sorted(self._write(move) for move in self.game.legal_moves().tolist())
        click.echo("  ".join(texts))

    def _hint(self, _: str) -> None:
        self.search.set_game(self.game)
        best = self.search.run(self.limits).best
        click.echo("no move" if best is None else f"hint: {self._write(best)}")

    def _evaluation(self, _: str) -> None:
        self.search.set_game(self.game)
        self.search.run(self.limits)
        # the report of `run` begins with the move chosen, which is sampled with --elo
        for line in self.search.report(3).known_lines:
            shown = f"  win/draw/loss {line.wdl_text} %" if line.wdl else ""
            moves = self.notation.write_line(self.rules, self.game.position, line.pv[:PV_PLIES])
            click.echo(f"{line.score_text:>7}  {' '.join(moves)}{shown}")

    def _undo(self, _: str) -> None:
        first = self.game.side ^ (self.game.ply & 1)  # the side to move at the start
        if self.game.ply < 1 + (first != self.side):
            raise MoveError("you have no move to take back")
        self.game.pop()
        if self.game.side != self.side and self.game.moves:
            self.game.pop()
        self._draw()

    def _change_sides(self, _: str) -> None:
        self.side = 1 - self.side

    def _flip(self, _: str) -> None:
        self.flipped = not self.flipped
        self._draw()

    def _save_as(self, name: str) -> None:
        if not name:
            raise VariantAIError("save needs a file name: save game.pgn")
        self.save(home_path(name))

    def _give_up(self, _: str) -> None:
        raise _GameLeftError(resigned=True)

    def _leave(self, _: str) -> None:
        raise _GameLeftError

    # --- the engine ----------------------------------------------------------------------------

    def _answer(self) -> None:
        self.search.set_game(self.game)
        report = self.search.run(self.limits)
        move = report.best
        if move is None:
            raise _GameLeftError
        line = report.lines[0] if report.lines else None
        shown = f"  ({line.score_text})" if line is not None and line.is_known else ""
        number, text = self._number(), self._write(move)
        self.game.push(move)
        self._draw()
        click.echo(f"{number} {text}{shown}")

    # --- the record ----------------------------------------------------------------------------

    def _result(self) -> str:
        outcome = self.game.outcome()
        if outcome is not None:
            return outcome.result
        return "*" if self.resigned is None else ("0-1", "1-0")[self.resigned]

    def save(self, path: Path) -> None:
        """Append the game to a PGN file. Raises DataError if it cannot be written."""
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(self.pgn())
        except OSError as error:
            raise DataError(f"{path}: {error.strerror or error}; the game was not saved") from None
        note(f"saved to {path}")

    def pgn(self) -> str:
        from variant_ai import __version__
        from variant_ai.core.data.game_record import GameRecord
        from variant_ai.core.data.game_text import pgn_text

        engine = f"variant-ai {__version__}"
        names = [engine, engine]
        if self.side >= 0:
            names[self.side] = "Human"
        outcome = self.game.outcome()
        ended = outcome.reason if outcome else "resignation" if self.resigned is not None else ""
        record = GameRecord(
            variant=self.spec.variant,
            moves=list(self.game.moves),
            start_fen=self.game.start_fen,
            result=self._result(),  # type: ignore[arg-type]
            white=names[0],
            black=names[1],
            date=date.today().strftime("%Y.%m.%d"),
            event="Game in the terminal",
            termination=ended,
        )
        return pgn_text(self.rules, self.notation, record)
