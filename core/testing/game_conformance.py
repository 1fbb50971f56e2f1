"""Game ends against Fairy-Stockfish: does a `Game` end at the same ply, with the same winner?

Random games are steered to rare ends: shuffling back and forth (repetition), checking (perpetual
check, checks that do not count), trading down (long endgames, mates), quiet play without repeating
(move count), and cycles of four plies from random endgames (chases of every kind).

One difference is known and counted apart. Given the whole game, Fairy-Stockfish also requires the
move that entered a cycle to have chased what the cycle chases, so a chase entered by a quiet move
is a draw at the third occurrence and a loss one ply later. A `Game` considers the moves of the
cycle only. If Fairy-Stockfish, given just these, agrees, the report counts a `chase entered
quietly`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from variant_ai.core.errors import FenError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.fairy.fairy_stockfish import spec_settings
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import EndReason, Outcome, Rules
from variant_ai.core.rules.position import (
    DROP,
    NORMAL,
    PASS,
    Position,
    move_kind,
    move_origin,
    move_target,
    piece_colour,
    piece_type,
)
from variant_ai.core.rules.shuffled_starts import random_start
from variant_ai.core.rules.verdicts import PLAYERS
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import seen_by, zone_squares
from variant_ai.core.testing.random_games import Report, is_capture, preferred_moves
from variant_ai.core.testing.rules_conformance import judge

STYLES = ("any", "captures", "shuffle", "checks", "quiet", "cycle")
ENTERED_QUIETLY = "chases entered quietly"
STEERED = 0.75
"""Share of moves that follow the style."""

_End = tuple[bool, int | None]
"""True if the game has ended, and the winner."""


def check_game_ends(
    spec: VariantSpec,
    games: int,
    seed: int,
    *,
    engine: str | None = None,
    starts: Sequence[str] = (),
    max_plies: int = 400,
) -> Report:
    """Play random games and compare the end of the game at every position.

    starts: FENs to begin every other game at; random endgames are used besides.
    Raises SpecError if Fairy-Stockfish does not have the variant, or cannot count as the spec does.
    """
    rules = make_rules(spec, engine)
    reference = _Reference(spec)
    report = Report("game ends", spec.variant, rules.name)
    rng = random.Random(seed)
    while report.games < games and report.agrees:
        fen = rng.choice(starts) if starts and report.games % 2 else None
        style = rng.choice(STYLES)
        if fen is None and (style == "cycle" or rng.random() < 0.3):
            fen = random_endgame(rules, rng)
        fen = fen or random_start(spec, rng)
        _compare_game(Game(rules, fen), reference, style, rng, max_plies, report)
        report.games += 1
    met = {name.partition(",")[0] for name in report.counts}
    report.not_met = ", ".join(reason for reason in _possible_ends(spec) if reason not in met)
    return report


def _possible_ends(spec: VariantSpec) -> list[EndReason]:
    """Reasons for which games of a spec end."""
    rules = spec.rules
    repetition = rules.repetition
    possible: dict[EndReason, bool] = {
        "checkmate": any(piece.royal for piece in spec.pieces.values()),
        "stalemate": True,
        "repetition": True,
        "perpetual check": repetition.perpetual_check == "loss",
        "perpetual chase": repetition.forbids_chases,
        "move count": rules.no_progress.plies != "none",
        "insufficient material": rules.insufficient_material,
        "variant win": bool(rules.wins) or rules.bare_king != "none" or rules.explodes,
    }
    return [reason for reason, is_possible in possible.items() if is_possible]


class _Reference:
    """Fairy-Stockfish with the spec's settings, queried in the order in which its answers mean
    something: variant ends, no legal move, then claims, then material."""

    def __init__(self, spec: VariantSpec) -> None:
        self.spec = spec
        self.fairy = judge(spec, spec_settings(spec, move_count=True, chase=True))
        rules = spec.rules
        self.has_wins = bool(rules.wins) or rules.explodes or rules.bare_king != "none"

    def end(self, fen: str, moves: Sequence[str], side: int, has_moves: bool) -> _End:
        # a call costs 2 ms: if the spec has no variant ends, every tenth ply is enough
        value = None
        if self.has_wins or len(moves) % 10 == 0 or not has_moves:
            value = self.fairy.immediate_end(fen, moves)
        if value is None and not has_moves:
            if not self.fairy.legal_moves(fen, moves):
                value = self.fairy.mated_value(fen, moves)
        elif value is None:
            value = self.fairy.optional_end(fen, moves)
            if value is None and self.spec.rules.insufficient_material:
                now = self.fairy.fen_after(fen, moves)
                value = 0 if all(self.fairy.insufficient_material(now)) else None
        if not value:
            return value is not None, None
        return True, side if value > 0 else 1 - side


def _compare_game(
    game: Game,
    reference: _Reference,
    style: str,
    rng: random.Random,
    max_plies: int,
    report: Report,
) -> None:
    start = game.fen()
    trade_plies = rng.choice((0, 0, 40, 120)) if style != "cycle" else 0
    planned: list[int] = []
    moves: list[str] = []
    for ply in range(max_plies):
        outcome = game.outcome()
        ours = _end(outcome)
        theirs = reference.end(start, moves, game.side, len(game.legal_moves()) > 0)
        report.positions += 1
        if theirs != ours:
            if theirs[0] and outcome is not None and _entered_quietly(reference, game, ours):
                report.counts[ENTERED_QUIETLY] += 1
            else:
                detail = f" ({outcome.reason}: {outcome.detail})" if outcome else ""
                report.first_difference = (
                    f"after {' '.join(moves) or 'no moves'} from {start}, reaching {game.fen()}: "
                    f"ours: {_text(ours)}{detail}; Fairy-Stockfish: {_text(theirs)}"
                )
            return
        if outcome is not None:
            winner = "draw" if outcome.winner is None else PLAYERS[outcome.winner]
            report.counts[f"{outcome.reason}, {winner}"] += 1
            return
        if style == "cycle" and not planned and rng.random() < 0.6:
            planned = _cycle(game, rng)
        if planned:
            game.push(planned.pop(0))
        else:
            game.push(_steered_move(game, "captures" if ply < trade_plies else style, rng))
        moves = game.uci_moves()


def _end(outcome: Outcome | None) -> _End:
    return (False, None) if outcome is None else (True, outcome.winner)


def _text(end: _End) -> str:
    ended, winner = end
    if not ended:
        return "the game goes on"
    return "draw" if winner is None else f"{PLAYERS[winner]} wins"


def _entered_quietly(reference: _Reference, game: Game, ours: _End) -> bool:
    """Return True if the reference, given the cycle alone, agrees with us."""
    rule = game.rules.spec.rules.repetition
    key = game.position["key"][0]
    same = [i for i, position in enumerate(game.positions) if position["key"][0] == key]
    if not rule.forbids_chases or len(same) < rule.fold:
        return False
    first = same[-rule.fold]
    start = game.rules.fen(game.positions[first])
    return reference.end(start, game.uci_moves()[first:], game.side, True) == ours


def _steered_move(game: Game, style: str, rng: random.Random) -> int:
    """A random move, usually in the style; never always, so that no style is pure."""
    legal: list[int] = game.legal_moves().tolist()
    if rng.random() > STEERED:
        return rng.choice(legal)
    rules, position = game.rules, game.position
    base = {"shuffle": "quiet", "cycle": "any"}.get(style, style)
    liked = preferred_moves(rules, position, legal, base, rng)
    if style in ("shuffle", "checks"):
        back = _backwards(game)
        repeating = [m for m in liked if m == back]
        liked = repeating or liked or [m for m in legal if m == back]
    elif style == "quiet":
        seen = {int(p["key"][0]) for p in game.positions}
        fresh = [m for m in liked if int(rules.play(position, m)["key"][0]) not in seen]
        liked = fresh or liked
    return rng.choice(liked or legal)


def _cycle(game: Game, rng: random.Random) -> list[int]:
    """Moves that go twice around a cycle of four plies; empty if none is found quickly."""
    rules = game.rules

    def reversible(position: Position) -> list[int]:
        legal: list[int] = rules.legal_moves(position).tolist()
        found = [m for m in legal if not is_capture(position, m) and move_kind(m) == NORMAL]
        return rng.sample(found, min(6, len(found)))

    def back(move: int) -> int:
        return move_origin(move) | move_target(move) << 7

    start = game.position
    for first in reversible(start):
        one = rules.play(start, first)
        for second in reversible(one):
            two = rules.play(one, second)
            if back(first) not in rules.legal_moves(two):
                continue
            three = rules.play(two, back(first))
            if back(second) in rules.legal_moves(three):
                four = rules.play(three, back(second))
                if four["key"][0] == start["key"][0]:
                    return [first, second, back(first), back(second)] * 2
    return []


def random_endgame(rules: Rules, rng: random.Random) -> str | None:
    """FEN of a random position with kings and two to eight more pieces of the start position, on
    squares they may stand on; None if 200 attempts give no legal position."""
    spec, types = rules.spec, rules.types
    board = spec.board
    codes = [code for code in rules.position()["board"][0].tolist() if code]
    royal = [c for c in codes if piece_type(c) == types.royal]
    others = [c for c in codes if piece_type(c) != types.royal]
    for _ in range(200):
        position = rules.position()
        position["board"] = 0
        position["castling"] = 0
        position["side"] = rng.randrange(2)
        for code in royal + rng.sample(others, min(len(others), rng.randint(2, 8))):
            within = types.all[piece_type(code)].piece.within
            squares = range(board.squares) if within is None else zone_squares(within, board)
            square = rng.choice(sorted(squares))
            square = seen_by(square, piece_colour(code), board)
            position["board"][0, square] = code
        try:
            return rules.fen(rules.position(rules.fen(position)))
        except FenError:
            continue
    return None


def _backwards(game: Game) -> int:
    """The move that takes the mover's last move back, -1 if there is none."""
    if len(game.moves) < 2:
        return -1
    last = game.moves[-2]
    if move_kind(last) in (DROP, PASS):
        return -1
    return move_origin(last) | move_target(last) << 7
