"""Programs as players: what a protocol's client does, made into moves and faults."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

from variant_ai.core.arena.match.time_control import Allowance, Turn
from variant_ai.core.arena.players.player import Fault, Player, Reply
from variant_ai.core.arena.programs.coordinates import XBOARD_TEN, Coordinates
from variant_ai.core.arena.programs.engine_process import (
    Answer,
    EngineDiedError,
    EngineHungError,
    EngineProcess,
)
from variant_ai.core.arena.programs.ucci_client import CycloneClient, UcciClient
from variant_ai.core.arena.programs.uci_client import UciClient
from variant_ai.core.arena.programs.xboard_client import XboardClient, level_lines
from variant_ai.core.data.game_record import MATE
from variant_ai.core.errors import EngineError, MoveError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import SanNotation

HIGHEST = MATE - 1000
"""Centipawns above this are kept as this: what is above are mates."""
GAME_RESULTS = ("1-0", "0-1", "1/2-1/2")

_SAN = SanNotation()

Client = TypeVar("Client", bound=EngineProcess)


class ExternalPlayer(Player, Generic[Client]):
    """A program that plays. Started when first needed, and again after it died or hung."""

    def __init__(
        self,
        client: Client,
        coordinates: Coordinates,
        variant: str,
        *,
        name: str = "",
        restart: bool = False,
    ) -> None:
        """variant: the engine's name of it. name: instead of the one it gives itself. restart: a
        fresh process for every game."""
        self.client = client
        self.coordinates = coordinates
        self.variant = variant
        self.restart = restart
        self._given_name = name
        self.name = name or client.name
        client.name = self.name  # in its errors, until it has said its own

    @property
    def last_lines(self) -> tuple[str, ...]:
        return self.client.last_lines

    def start(self) -> None:
        if not self.client.running:
            self._begin()
            self.name = self._given_name or self.client.name

    def new_game(self, game: Game, number: int = 0) -> None:
        with self._faults():
            if self.restart and self.client.running:
                self.client.close()
            self.start()
            self._new_game(game)

    def play(self, game: Game, turn: Turn) -> Reply:
        with self._faults():
            answer = self._ask(game, turn)
        if answer.claim == "resign":
            raise Fault("resignation", f"{self.name} resigns")
        if answer.late and turn.allowance.timed:
            raise Fault(
                "time forfeit",
                f"{self.name} had not moved after {turn.wait:.1f} s, when it was told to stop",
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
            draw_offered=answer.claim == "draw",
        )

    def close(self) -> None:
        self.client.close()

    def kill(self) -> None:
        self.client.kill()

    # --- what a protocol does ------------------------------------------------------------------

    def _begin(self) -> None:
        self.client.start()

    @abstractmethod
    def _new_game(self, game: Game) -> None: ...

    @abstractmethod
    def _ask(self, game: Game, turn: Turn) -> Answer: ...

    def _read(self, game: Game, text: str) -> int:
        """The move of an answer. Raises MoveError."""
        return self.coordinates.read(game, text)

    def _start(self, game: Game) -> str | None:
        """FEN of the game's first position with the engine's letters, None for the start."""
        rules = game.rules
        fen = rules.fen(game.positions[0])
        return None if fen == rules.fen(rules.position()) else self.coordinates.fen(fen)

    def _without_move(self, game: Game, claim: str) -> Fault:
        if claim:
            return Fault(
                "false claim",
                f"{self.name} says {claim!r}, but the game goes on (FEN {game.fen()})",
            )
        return Fault(
            "no move", f"{self.name} sees no move where the game goes on (FEN {game.fen()})"
        )

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except EngineHungError as error:
            raise Fault("hang", str(error)) from error
        except EngineDiedError as error:
            raise Fault("crash", str(error)) from error


class UciPlayer(ExternalPlayer[UciClient]):
    """A program that speaks UCI, UCI-cyclone or (`UcciPlayer`) UCCI.

    With `ponders` it thinks on the move that it expects (`go ponder`): where that is played the
    search goes on as one of its own (`ponderhit`), else it is stopped and another one begun.
    """

    ponders = False
    _expected = ""
    """What the engine thinks will be answered to its last move."""
    _pondered: list[int] | None = None
    """Moves of the game that the engine ponders on, the expected one last; None: it does not."""

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
            self._rest()

    def _rest(self) -> None:
        """Ponder no more."""
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
        self._rest()
        self._expected = ""
        self.client.new_game()

    def _ask(self, game: Game, turn: Turn) -> Answer:
        client = self.client
        if self._pondered is not None and self._pondered == list(game.moves):
            self._pondered = None
            answer = client.hit(turn.wait, turn.grace)
        else:
            self._rest()
            self._set(game)
            answer = client.search(client.go_line(self._limits(turn)), turn.wait, turn.grace)
        self._expected = answer.expected
        return answer

    def _set(self, game: Game) -> None:
        """Set the game's position; returns when the engine has it."""
        moves = self.coordinates.write_all(game.moves)
        self.client.say(self.client.position_line(self._start(game), moves))
        self.client.ready()

    def _limits(self, turn: Turn) -> dict[str, int]:
        return uci_limits(turn)


class UcciPlayer(UciPlayer):
    """A program that speaks UCCI: positions begin at the last capture."""

    client: UcciClient

    def refuse(self, allowance: Allowance) -> str:
        limits = (allowance.depth, allowance.nodes, allowance.movetime or allowance.base)
        if sum(limit is not None for limit in limits) > 1:
            return "UCCI takes one limit a move: a clock, nodes or a depth"
        return ""

    def _set(self, game: Game) -> None:
        at = last_capture(game)
        fen = self.coordinates.fen(game.rules.fen(game.positions[at])) if at else self._start(game)
        moves = self.coordinates.write_all(game.moves[at:])
        self.client.say(self.client.position_line(fen, moves))

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


class XboardPlayer(ExternalPlayer[XboardClient]):
    """A program that speaks XBoard's protocol."""

    _game_began = False

    def refuse(self, allowance: Allowance) -> str:
        if allowance.nodes is not None:
            return "XBoard's protocol has no node limit: give this engine a clock or a depth"
        if allowance.movetime is not None and allowance.movetime % 1000:
            return "XBoard's protocol counts the time of a move in whole seconds"
        return ""

    def _new_game(self, game: Game) -> None:
        self._game_began = False

    def _ask(self, game: Game, turn: Turn) -> Answer:
        if not self._game_began:
            self.client.new_game(self.variant, self._start(game), level_lines(turn))
            self._game_began = True
        return self.client.search(self.coordinates.write_all(game.moves), turn)

    def _without_move(self, game: Game, claim: str) -> Fault:
        result = next((text for text in GAME_RESULTS if claim.startswith(text)), "")
        if result == GAME_RESULTS[1 - game.side]:
            return Fault("resignation", f"{self.name} gives up: {claim}")
        return super()._without_move(game, claim)

    def _read(self, game: Game, text: str) -> int:
        """Some write castling as O-O, and those with `san=1` may write every move so."""
        if self.client.features.get("san") == "1" or text[:3].upper() in ("O-O", "0-0"):
            with suppress(MoveError):
                return _SAN.read(game.rules, game.position, text)
        return super()._read(game, text)

    def game_over(self, result: str, reason: str) -> None:
        if self.client.running and result in GAME_RESULTS:
            with suppress(EngineError):
                self.client.game_over(result, reason)


def uci_limits(turn: Turn) -> dict[str, int]:
    """The words of UCI's `go`."""
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


def score_of(answer: Answer) -> int | None:
    """Centipawns of the mover, mates as `GameRecord.scores` has them."""
    if answer.mate is None:
        return None if answer.score is None else max(-HIGHEST, min(HIGHEST, answer.score))
    # `mate 0` is said of a side that has been mated, which has no move to give a score to.
    return MATE - answer.mate if answer.mate > 0 else -MATE - answer.mate


def last_capture(game: Game) -> int:
    """Index of the position after the last move that took a piece; 0 without one."""
    files = [int((position["board"] != 0).sum()) for position in game.positions]
    return max((i for i in range(1, len(files)) if files[i] < files[i - 1]), default=0)


def external_player(
    rules: Rules,
    protocol: str,
    command: list[str],
    *,
    name: str = "",
    variant: str | None = None,
    options: dict[str, str] | None = None,
    lines: tuple[str, ...] = (),
    first_rank: int | None = None,
    other_letters: bool = False,
    restart: bool = False,
    ponder: bool = False,
    timeout: float = 20.0,
) -> Player:
    """A player of a program. protocol: `uci`, `ucci`, `cyclone` or `xboard`; first_rank: None for
    the protocol's own way to count ranks; ponder: it thinks while the other side does."""
    if first_rank is None:
        zero = protocol in ("ucci", "cyclone") or (
            protocol == "xboard" and rules.spec.board.ranks >= XBOARD_TEN
        )
        first_rank = 0 if zero else 1
    coordinates = Coordinates(rules, first_rank=first_rank, other_letters=other_letters)
    theirs = variant or rules.spec.fairy or rules.spec.variant
    if protocol == "xboard":
        xboard = XboardClient(command, options=options, lines=lines, ponder=ponder, timeout=timeout)
        return XboardPlayer(xboard, coordinates, theirs, name=name, restart=restart)
    kinds: dict[str, tuple[type[UciPlayer], type[UciClient]]] = {
        "uci": (UciPlayer, UciClient),
        "cyclone": (UciPlayer, CycloneClient),
        "ucci": (UcciPlayer, UcciClient),
    }
    if protocol not in kinds:
        raise EngineError(f"unknown protocol {protocol!r}; accepted: uci, ucci, cyclone, xboard")
    player, client = kinds[protocol]
    made = player(
        client(command, options=options, timeout=timeout),
        coordinates,
        theirs,
        name=name,
        restart=restart,
    )
    made.ponders = ponder
    return made
