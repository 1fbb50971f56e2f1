"""Programs as players: answers of engines become moves and faults.

Engines differ in the number of the first rank in moves, and in the letters of pieces:

    UCI                  ranks count from 1
    UCCI, UCI-cyclone    ranks count from 0
    XBoard               ranks count from 1, on boards of ten or more ranks from 0
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar, cast

from variant_ai.core.arena.players.player import Allowance, Fault, Player, Reply, Turn
from variant_ai.core.arena.players.player_spec import PlayerSpec, program_variant
from variant_ai.core.arena.programs.engine_process import (
    EngineDiedError,
    EngineHungError,
    EngineProcess,
    ProgramAnswer,
    engine_command,
)
from variant_ai.core.arena.programs.uci_client import CycloneClient, UcciClient, UciClient
from variant_ai.core.arena.programs.xboard_client import XboardClient
from variant_ai.core.errors import EngineError, MoveError
from variant_ai.core.factories import PROGRAM_PROTOCOLS
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import CASTLING, move_kind
from variant_ai.core.rules.shuffled_starts import castles_from_any_files
from variant_ai.core.rules.text.notation import SanNotation, UciNotation, shifted_ranks
from variant_ai.core.search.report import MATE, MATE_RANGE

HIGHEST = MATE - MATE_RANGE
"""Centipawns are limited to this, since higher scores stand for mates."""
GAME_RESULTS = ("1-0", "0-1", "1/2-1/2")
XBOARD_TEN = 10
"""Number of ranks from which on XBoard counts from 0."""

_SAN, _UCI = SanNotation(), UciNotation()


class Coordinates:
    """Translates between moves and an engine's texts."""

    def __init__(self, rules: Rules, *, first_rank: int = 1, other_letters: bool = False) -> None:
        """first_rank: number of the first rank, 0 or 1. other_letters: write FENs with the spec's
        alternative letters (`also`)."""
        self.rules = rules
        self.first_rank = first_rank
        self._texts: dict[int, str] = {}
        self._letters: dict[int, str] = {}
        if other_letters:
            for letter, piece in rules.spec.pieces.items():
                if piece.also:
                    self._letters[ord(letter)] = piece.also
                    self._letters[ord(letter.lower())] = piece.also.lower()

    def write(self, move: int) -> str:
        text = self._texts.get(move)  # before each move all moves of the game are written again
        if text is None:
            text = self.rules.uci(move)
            if self.first_rank != 1:
                text = shifted_ranks(text, self.first_rank - 1)
            self._texts[move] = text
        return text

    def write_all(self, moves: Sequence[int]) -> list[str]:
        return [self.write(move) for move in moves]

    def read(self, game: Game, text: str) -> int:
        """Read a legal move of the game's position. Raises MoveError."""
        if self.first_rank == 1:
            return _UCI.read(self.rules, game.position, text)
        try:
            return _UCI.read(self.rules, game.position, shifted_ranks(text, 1 - self.first_rank))
        except MoveError as error:
            raise MoveError(
                f"{error}; the engine wrote {text!r}, with ranks from {self.first_rank}"
            ) from error

    def fen(self, fen: str) -> str:
        """Write a FEN with the engine's letters."""
        board, _, rest = fen.partition(" ")
        return f"{board.translate(self._letters)} {rest}".strip() if self._letters else fen


Client = TypeVar("Client", bound=EngineProcess)


class ProgramPlayer(Player, Generic[Client]):
    """A program that plays; started when first needed, and again after it died or hung.

    There is one class per protocol; `core.factories.PROGRAM_PROTOCOLS` names them.
    """

    ponders = False
    """True if the program thinks during the other side's turn."""

    def __init__(
        self,
        client: Client,
        coordinates: Coordinates,
        variant: str,
        *,
        name: str = "",
        restart: bool = False,
    ) -> None:
        """variant: the engine's name of the variant. name: replaces the engine's own name. restart:
        start a new process for every game."""
        self.client = client
        self.coordinates = coordinates
        self.variant = variant
        self.restart = restart
        self._given_name = name
        self.name = name or client.name
        client.name = self.name  # for error messages, until the engine reports its own

    @property
    def last_lines(self) -> tuple[str, ...]:
        return self.client.last_lines

    def start(self) -> None:
        if not self.client.running:
            self._begin()
            self.name = self._given_name or self.client.name

    def new_game(self, game: Game, number: int = 0) -> None:
        with self._faults():
            if self.client.running and (self.restart or self._needs_restart):
                self.client.close()
            self.start()
            self._new_game(game)

    def play(self, game: Game, turn: Turn) -> Reply:
        self.client.hurried = turn.hurried
        with self._faults():
            answer = self._ask(game, turn)
        if answer.claim == "resign":
            raise Fault("resignation", f"{self.name} resigns")
        if answer.late and turn.allowance.timed:
            raise Fault(
                "time forfeit",
                f"{self.name} had not moved after {turn.wait:.1f} s, when `stop` was sent",
            )
        if answer.move is None:
            raise self._without_move(game, answer.claim)
        try:
            move = self._read(game, answer.move)
        except MoveError as error:
            raise Fault("illegal move", f"{self.name}: {error}") from error
        return Reply(
            move,
            score=score_of(answer),
            depth=answer.depth,
            nodes=answer.nodes,
            seconds=answer.seconds,
            candidates=self._candidates(game, answer),
        )

    def close(self) -> None:
        self.client.close()

    def kill(self) -> None:
        self.client.kill()

    # --- steps of a protocol -------------------------------------------------------------------

    usual_first_rank = 1

    @classmethod
    def first_rank(cls, rules: Rules) -> int:
        """Number of the first rank in moves, unless the player's description says another."""
        return cls.usual_first_rank

    @classmethod
    @abstractmethod
    def make_client(cls, spec: PlayerSpec, soft_options: Mapping[str, str]) -> Client:
        """Make the client of a program, which is not started yet. Raises EngineError if the program
        does not exist."""

    def _begin(self) -> None:
        self.client.start()

    @property
    def _needs_restart(self) -> bool:
        """True if only a new process can play another game."""
        return False

    @abstractmethod
    def _new_game(self, game: Game) -> None: ...

    @abstractmethod
    def _ask(self, game: Game, turn: Turn) -> ProgramAnswer: ...

    def _read(self, game: Game, text: str) -> int:
        """Read the move of an answer. Raises MoveError."""
        return self.coordinates.read(game, text)

    def _candidates(self, game: Game, answer: ProgramAnswer) -> tuple[tuple[int, int], ...]:
        """Candidates of an answer; those without a legal move or a score are left out."""
        found: dict[int, int] = {}
        for line in answer.candidates:
            score = score_of(line)
            if line.move is not None and score is not None:
                with suppress(MoveError):
                    found.setdefault(self._read(game, line.move), score)
        return tuple(found.items())

    def _start(self, game: Game) -> str | None:
        """FEN of the game's first position with the engine's letters; None: the variant's start."""
        fen = game.start_fen
        return fen if fen is None else self.coordinates.fen(fen)

    def _without_move(self, game: Game, claim: str) -> Fault:
        problem = f"claims {claim!r}" if claim else "reports no move"
        return Fault(
            "false claim" if claim else "no move",
            f"{self.name} {problem}, but the game is not over (FEN {game.fen()})",
        )

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except EngineHungError as error:
            raise Fault("hang", str(error)) from error
        except EngineDiedError as error:
            raise Fault("crash", str(error)) from error


class UciPlayer(ProgramPlayer[UciClient]):
    """A program that speaks UCI.

    With `ponders` it searches the expected reply during the other side's turn (`go ponder`). If
    that reply is played, the search continues (`ponderhit`), else it is stopped and a new one
    begins.
    """

    client_type: type[UciClient] = UciClient
    resets_threads = False
    """Set `Threads` again before each game: Stockfish and its relatives keep tables of pawns and
    material over `ucinewgame`, and clear them only when their threads are created again."""
    _expected = ""
    """Reply that the engine expects to its last move."""
    _pondered: list[int] | None = None
    """Moves of the game that the engine ponders on, the expected one last; None: it does not
    ponder."""

    @classmethod
    def make_client(cls, spec: PlayerSpec, soft_options: Mapping[str, str]) -> UciClient:
        return cls.client_type(
            engine_command(spec.command),
            options=spec.option_texts,
            soft_options=soft_options,
            timeout=spec.timeout,
        )

    def play(self, game: Game, turn: Turn) -> Reply:
        self._expected = ""
        return super().play(game, turn)

    def ponder(self, game: Game, turn: Turn) -> None:
        if not self.ponders or not self._expected:
            return
        ahead = Game(game.rules, game.rules.fen(game.positions[0]))
        try:
            for move in (*game.moves, self._read(game, self._expected)):
                ahead.push(move)
        except MoveError:
            return
        if ahead.outcome() is not None:
            return
        with self._faults():
            self._set(ahead)
            self.client.ponder(self._limits(turn))
        self._pondered = ahead.moves

    def game_over(self, result: str, reason: str) -> None:
        with suppress(EngineError):
            self._stop_pondering()

    def _stop_pondering(self) -> None:
        pondered, self._pondered = self._pondered, None
        if pondered is not None and self.client.running:
            self.client.miss()

    def _begin(self) -> None:
        self._pondered = None
        self.client.start()
        self.client.set_variant(self.variant)
        if self.ponders and "ponder" in self.client.options:
            self.client.set_option("Ponder", "true")

    def _new_game(self, game: Game) -> None:
        self._stop_pondering()
        self._expected = ""
        threads = self.client.value_of("Threads") if self.resets_threads else None
        if threads is not None:
            self.client.set_option("Threads", threads)
        self.client.new_game()

    def _ask(self, game: Game, turn: Turn) -> ProgramAnswer:
        client = self.client
        if self._pondered is not None and self._pondered == list(game.moves):
            self._pondered = None
            answer = client.hit(turn.wait, turn.grace)
        else:
            self._stop_pondering()
            self._set(game)
            answer = client.search(self._limits(turn), turn.wait, turn.grace)
        self._expected = answer.expected
        return answer

    def _set(self, game: Game) -> None:
        """Set the game's position, and wait until the engine has processed it."""
        moves = self.coordinates.write_all(game.moves)
        self.client.send(self.client.position_line(self._start(game), moves))
        self.client.ready()

    def _limits(self, turn: Turn) -> dict[str, int]:
        return uci_limits(turn)


class CyclonePlayer(UciPlayer):
    """A program that speaks UCI-cyclone."""

    client_type = CycloneClient
    usual_first_rank = 0


class UcciPlayer(UciPlayer):
    """A program that speaks UCCI: moves are sent from the last capture on."""

    client: UcciClient
    client_type = UcciClient
    usual_first_rank = 0

    def rejection(self, allowance: Allowance) -> str:
        limits = (allowance.depth, allowance.nodes, allowance.movetime or allowance.base)
        if sum(limit is not None for limit in limits) > 1:
            return "UCCI accepts one limit a move: a clock, nodes or a depth"
        return ""

    def _set(self, game: Game) -> None:
        at = last_capture(game)
        fen = self.coordinates.fen(game.rules.fen(game.positions[at])) if at else self._start(game)
        moves = self.coordinates.write_all(game.moves[at:])
        self.client.send(self.client.position_line(fen, moves))

    def _limits(self, turn: Turn) -> dict[str, int]:
        allowance, clock = turn.allowance, turn.clock
        if allowance.depth is not None:
            return {"depth": allowance.depth}
        if allowance.nodes is not None:
            return {"nodes": allowance.nodes}
        if allowance.movetime is not None:
            return {"time": self.client.times(allowance.movetime), "movestogo": 1}
        limits = {"time": self.client.times(clock.left)}
        if clock.moves_to_go is not None:
            limits["movestogo"] = clock.moves_to_go
        else:
            increment = allowance.increment
            limits["increment"] = self.client.times(increment) if increment else 0
        limits["opptime"] = self.client.times(turn.clocks[1 - turn.side].left)
        return limits


class XboardPlayer(ProgramPlayer[XboardClient]):
    """A program that speaks XBoard's protocol."""

    _game_began = False

    @classmethod
    def first_rank(cls, rules: Rules) -> int:
        return 0 if rules.spec.board.ranks >= XBOARD_TEN else 1

    @classmethod
    def make_client(cls, spec: PlayerSpec, soft_options: Mapping[str, str]) -> XboardClient:
        return XboardClient(
            engine_command(spec.command),
            options=spec.option_texts,
            lines=spec.lines,
            ponder=spec.ponder,
            timeout=spec.timeout,
        )

    def rejection(self, allowance: Allowance) -> str:
        if allowance.nodes is not None:
            return "XBoard's protocol has no node limit, only clocks and depths"
        if allowance.movetime is not None and allowance.base is not None:
            return "XBoard's protocol accepts a clock or the time of a move, not both"
        if allowance.movetime is not None and allowance.movetime % 1000:
            return "XBoard's protocol has the time of a move in whole seconds"
        return ""

    @property
    def _needs_restart(self) -> bool:
        """Without `ping`, late lines of one game look like answers in the next."""
        return self._game_began and self.client.features.get("ping") != "1"

    def _new_game(self, game: Game) -> None:
        self._game_began = False

    def _ask(self, game: Game, turn: Turn) -> ProgramAnswer:
        if not self._game_began:
            self.client.new_game(self.variant, self._start(game), turn)
            self._game_began = True
        return self.client.search(self._moves(game), turn)

    def _moves(self, game: Game) -> list[str]:
        """Moves as the program reads them: with `shuffle:`, castling as O-O and O-O-O."""
        texts = self.coordinates.write_all(game.moves)
        if castles_from_any_files(game.rules.spec):
            for number, move in enumerate(game.moves):
                if move_kind(move) == CASTLING:
                    san = _SAN.write(game.rules, game.positions[number], move)
                    texts[number] = san.rstrip("+#")
        return texts

    def _without_move(self, game: Game, claim: str) -> Fault:
        result = next((text for text in GAME_RESULTS if claim.startswith(text)), "")
        if result == GAME_RESULTS[1 - game.side]:
            return Fault("resignation", f"{self.name} resigns: {claim}")
        return super()._without_move(game, claim)

    def _read(self, game: Game, text: str) -> int:
        """Read a move; some engines write castling as O-O, and those with `san=1` all moves in
        SAN."""
        if self.client.features.get("san") == "1" or text[:3].upper() in ("O-O", "0-0"):
            with suppress(MoveError):
                return _SAN.read(game.rules, game.position, text)
        return super()._read(game, text)

    def game_over(self, result: str, reason: str) -> None:
        if self.client.running and result in GAME_RESULTS:
            with suppress(EngineError):
                self.client.game_over(result, reason)


def uci_limits(turn: Turn) -> dict[str, int]:
    """Limits as arguments of UCI's `go`."""
    allowance = turn.allowance
    limits: dict[str, int] = {}
    if allowance.base is not None:
        first, second = turn.clocks
        limits |= {"wtime": max(1, first.left), "btime": max(1, second.left)}
        limits |= {"winc": first.allowance.increment, "binc": second.allowance.increment}
        if turn.clock.moves_to_go is not None:
            limits["movestogo"] = turn.clock.moves_to_go
    for word in ("movetime", "nodes", "depth"):
        value = getattr(allowance, word)
        if value is not None:
            limits[word] = value
    return limits


def score_of(answer: ProgramAnswer) -> int | None:
    """Score in centipawns of the mover, mates as in `GameRecord.scores`."""
    if answer.mate is None:
        return None if answer.score is None else max(-HIGHEST, min(HIGHEST, answer.score))
    # `mate 0` cannot occur here: it means that the side to move has been mated.
    return MATE - answer.mate if answer.mate > 0 else -MATE - answer.mate


def last_capture(game: Game) -> int:
    """Index of the position after the last capture; 0 if there was none."""
    pieces = [int((position["board"] != 0).sum()) for position in game.positions]
    return max((i for i in range(1, len(pieces)) if pieces[i] < pieces[i - 1]), default=0)


def program_player(
    spec: PlayerSpec, rules: Rules, *, soft_options: Mapping[str, str] | None = None
) -> Player:
    """Make a player of a program; it is not started. soft_options: UCI options that are set only if
    the program has them. Raises EngineError if the program does not exist."""
    kind = cast(type[ProgramPlayer[Any]], PROGRAM_PROTOCOLS.load(spec.protocol))
    first_rank = kind.first_rank(rules) if spec.ranks is None else spec.ranks
    soft_options = dict(soft_options or {})
    if castles_from_any_files(rules.spec):
        soft_options["UCI_Chess960"] = "true"
    coordinates = Coordinates(rules, first_rank=first_rank, other_letters=spec.letters == "also")
    player = kind(
        kind.make_client(spec, soft_options),
        coordinates,
        program_variant(spec, rules.spec),
        name=spec.name,
        restart=spec.restart,
    )
    player.ponders = spec.ponder
    return player
