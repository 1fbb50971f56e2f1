"""One game between two players, judged by the rules of the variant.

The rules end a game (`Game.outcome`). A player that crashes, hangs, plays an illegal move, makes a
false claim or exceeds its time loses it, and the reason is recorded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from variant_ai.core.arena.players.player import Allowance, Fault, Player, PlayerClock, Reply, Turn
from variant_ai.core.data.game_record import LOST_BY, MOVE_LIMIT, Result
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game
from variant_ai.core.search.report import MATE

T = TypeVar("T")

RESIGN_RULE = "adjudicated: resign rule"
DRAW_RULE = "adjudicated: draw rule"


@dataclass(frozen=True)
class ResignRule:
    """A player loses if its last `moves` own scores were all at or below −`score`."""

    moves: int
    score: int
    """Centipawns."""
    both: bool = False
    """Require the other player's scores to agree."""


@dataclass(frozen=True)
class DrawRule:
    """A game is drawn from full move `first_move` on if the last `moves` scores of both players
    were within ±`score`."""

    moves: int
    score: int
    """Centipawns."""
    first_move: int = 1


@dataclass(frozen=True)
class Conduct:
    """Rules of play beside those of the variant."""

    margin: int = 50
    """Tolerated overtime of a move in milliseconds."""
    think: float = 60.0
    """Seconds for a move without a time limit, after which a program must stop; nets have their nodes."""
    grace: float = 3.0
    """Seconds to answer `stop`, after which a player counts as hung."""
    max_plies: int = 600
    """A game of this length is a draw."""
    resign: ResignRule | None = None
    draw: DrawRule | None = None
    check_mates: bool = True
    """A player loses if it announces a mate in one and its move does not win, at once or by every
    reply. Longer mates are not checked."""


@dataclass
class PlayedGame:
    """A game and its end."""

    game: Game
    opening_plies: int
    result: Result = "*"
    reason: str = ""
    """A reason of `Outcome`, a `player.Reason`, one of the rules above, or `stopped`."""
    detail: str = ""
    """Explanation: the rule of the spec, or the player's mistake."""
    replies: list[Reply] = field(default_factory=list)
    """Moves after the opening."""

    @property
    def scores(self) -> list[int | None]:
        """Centipawns of each ply from the mover's view, as `GameRecord.scores`; None in the opening."""
        return self.by_ply(lambda reply: reply.score)

    def by_ply(self, fact: Callable[[Reply], T]) -> list[T | None]:
        """A fact of each ply's reply, None in the opening."""
        return [*[None] * self.opening_plies, *map(fact, self.replies)]

    def play(self, reply: Reply) -> None:
        """Play a move and record it."""
        self.game.push(reply.move)
        self.replies.append(reply)


class Referee:
    """Judges games. It keeps no state of a game, so one referee serves any number of them."""

    def __init__(self, conduct: Conduct, stopped: Callable[[], bool] = lambda: False) -> None:
        """stopped: called before every move; if True, the game ends without a result."""
        self.conduct = conduct
        self._stopped = stopped

    def play(
        self,
        game: Game,
        players: tuple[Player, Player],
        allowances: tuple[Allowance, Allowance],
        number: int = 0,
    ) -> PlayedGame:
        """Play from the end of an opening, `game`, which is changed.

        `players[0]` has the first player's pieces, even if the opening lets the second move first.
        Both may be the same player. number: see `Player.new_game`. Faults of players are results,
        not exceptions; other EngineErrors are raised.
        """
        played = PlayedGame(game, game.ply)
        clocks = (PlayerClock(allowances[0]), PlayerClock(allowances[1]))
        try:
            self._play(played, players, clocks, number)
        except Fault as fault:
            side = game.side if fault.side is None else fault.side
            played.result = LOST_BY[side]
            played.reason, played.detail = fault.reason, str(fault)
        except EngineError as error:
            # Not a fault in the game: the player cannot be started, or cannot play this game at all.
            if self._stopped():
                played.reason = "stopped"
            else:
                for player in players:
                    player.kill()
                raise error
        if self._stopped() and played.reason in ("crash", "hang"):
            played.result, played.reason, played.detail = "*", "stopped", ""
        for player in players:
            player.game_over(played.result, played.reason)
        return played

    def _play(
        self,
        played: PlayedGame,
        players: tuple[Player, Player],
        clocks: tuple[PlayerClock, PlayerClock],
        number: int,
    ) -> None:
        game = played.game
        for side in (0, 1) if players[0] is not players[1] else (0,):
            with _faults_of(side):
                players[side].new_game(game, number)
        while not self.is_over(played):
            if self._stopped():
                played.reason = "stopped"
                return
            side = game.side
            if game.ply > played.opening_plies:
                with _faults_of(1 - side):
                    players[1 - side].ponder(game, self._turn(clocks, 1 - side))
            reply = players[side].play(game, self._turn(clocks, side))
            if not clocks[side].spend(round(1000 * reply.seconds), self.conduct.margin):
                raise Fault(
                    "time forfeit",
                    f"{players[side].name} took {reply.seconds:.3f} s, "
                    f"{-clocks[side].left / 1000:.3f} s more than it had"
                    if clocks[side].allowance.base is not None
                    else f"{players[side].name} took {reply.seconds:.3f} s for a move",
                )
            played.play(reply)
            announced = self.conduct.check_mates and reply.score == MATE - 1
            if announced and not _has_won(game, side):
                with _faults_of(side):
                    raise Fault(
                        "false claim",
                        f"{players[side].name} announced a mate in one, but {game.uci_moves()[-1]} "
                        f"does not win the game (FEN {game.fen()})",
                    )

    def _turn(self, clocks: tuple[PlayerClock, PlayerClock], side: int) -> Turn:
        allowance = clocks[side].allowance
        times = [] if allowance.movetime is None else [allowance.movetime]
        if allowance.base is not None:
            times.append(clocks[side].left)
        wait = (min(times) + self.conduct.margin) / 1000 if times else self.conduct.think
        return Turn(clocks, side, wait, self.conduct.grace)

    def is_over(self, played: PlayedGame) -> bool:
        """Return True if the game has ended, with its result filled in."""
        outcome = played.game.outcome()
        if outcome is not None:
            played.result = outcome.result
            played.reason, played.detail = outcome.reason, outcome.detail
            return True
        conduct = self.conduct
        if conduct.resign and resigned(played.scores, conduct.resign):
            played.result, played.reason = LOST_BY[1 - played.game.side], RESIGN_RULE
        elif conduct.draw and drawn(played, conduct.draw):
            played.result, played.reason = "1/2-1/2", DRAW_RULE
        elif played.game.ply >= conduct.max_plies:
            played.result, played.reason = "1/2-1/2", MOVE_LIMIT
        return played.result != "*"


@contextlib.contextmanager
def _faults_of(side: int) -> Iterator[None]:
    """Context in which the player who may fail is not always the one to move."""
    try:
        yield
    except Fault as fault:
        fault.side = side
        raise


def _has_won(game: Game, side: int) -> bool:
    """Return True if a side has won, or wins by every move of the other: the capture of its last piece
    where that wins, a pass between facing kings."""
    outcome = game.outcome()
    if outcome is not None or game.side == side:
        return outcome is not None and outcome.winner == side
    for reply in game.legal_moves().tolist():
        game.push(reply)
        outcome = game.outcome()
        game.pop()
        if outcome is None or outcome.winner != side:
            return False
    return True


def resigned(scores: Sequence[int | None], rule: ResignRule) -> bool:
    """Return True if the player who made the last move has lost by the rule. scores: per ply, in
    centipawns of the mover; None: not reported."""
    own, other = scores[::-2][: rule.moves], scores[-2::-2][: rule.moves]
    if len(own) < rule.moves or not all(s is not None and s <= -rule.score for s in own):
        return False
    return not rule.both or (
        len(other) == rule.moves and all(s is not None and s >= rule.score for s in other)
    )


def drawn(played: PlayedGame, rule: DrawRule) -> bool:
    """Return True if the game is drawn by the rule."""
    plies = int(played.game.position["ply"][0])
    if plies // 2 + 1 < rule.first_move:
        return False
    last = played.scores[-2 * rule.moves :]
    return len(last) == 2 * rule.moves and all(s is not None and abs(s) <= rule.score for s in last)
