"""Ends of a variant's games, found by asking Fairy-Stockfish about crafted positions and cycles."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress

from variant_ai.core.derive.piece_probe import Probed
from variant_ai.core.derive.probe_board import FairyMove, Pieces, ProbeBoard, VariantWith, Words
from variant_ai.core.derive.rule_probe import promoted_symbol
from variant_ai.core.errors import MoveError, VariantAIError
from variant_ai.core.spec.betza import parse_betza
from variant_ai.core.spec.plane_layout import COMPASS
from variant_ai.core.spec.rule_words import ALL_PIECES
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.testing.rules_conformance import in_child, judge

VALUES = {1: "win", 0: "draw", -1: "loss"}
MAX_FOLD = 6
NO_FOLD = 100
"""`fold` of a draft if no repetition was seen to end a game."""
WALKS, WALK_PLIES = 5, 25
"""Random games in which a cycle of moves is looked for, and their length."""
MAX_CLOCK = 600
COUNTINGS = ("makruk", "asean", "cambodian")
_CHECKS = re.compile(r" ([1-9])\+([1-9])(?: |$)")


def stuck(board: ProbeBoard, fen: str) -> str:
    """Result for a side without a move in a position: mated if it is in check, else stalemated."""
    return VALUES[board.variant.mated_value(fen)]


# --- repetition and move count -------------------------------------------------------------------


def repetition(board: ProbeBoard, notes: list[str]) -> Words:
    """Return `repetition:` as cycles of moves show it, from the start position or after some random
    moves. `fold` is `NO_FOLD` if no cycle ends a game. notes: gets a sentence on each unknown part."""
    played, cycle = _some_cycle(board)
    if cycle is None:
        notes.append("repetition: no cycle of moves was found, so `fold: 3` is a guess")
        return {"fold": 3}
    fold, value = _fold(board, played, cycle)
    if fold == 0:
        notes.append(
            f"repetition: a position may occur {MAX_FOLD} times without an end; the spec needs a number"
        )
        return {"fold": NO_FOLD}
    if value == 0:
        return {"fold": fold, "otherwise": "draw"}
    later = _cycle(board, [*played, cycle[0]])
    other = _fold(board, [*played, cycle[0]], later)[1] if later else value
    losers = {(-1, 1): "loss of first player", (1, 1): "loss of mover"}
    if (value, other) in losers:
        return {"fold": fold, "otherwise": losers[value, other]}
    notes.append(
        f"repetition: value {value} for the first player and {other} for the second to move"
    )
    return {"fold": fold}


def _some_cycle(board: ProbeBoard) -> tuple[list[str], list[str] | None]:
    """A cycle and the moves played before it, an even number; None if random games met none."""
    if cycle := _cycle(board, []):
        return [], cycle
    ask, rng = board.variant, random.Random(0)
    for _ in range(WALKS):
        played: list[str] = []
        for ply in range(WALK_PLIES):
            legal = ask.legal_moves(board.start, played)
            if not legal or ask.immediate_end(board.start, played) is not None:
                break
            if ply and ply % 4 == 0 and (cycle := _cycle(board, played)):
                return played, cycle
            played.append(rng.choice(legal))
    return [], None


def _cycle(board: ProbeBoard, played: list[str]) -> list[str] | None:
    """Four quiet plies after which the position is the same."""
    ask, start = board.variant, board.start
    before = ask.fen_after(start, played)
    for there in _reversible(board, ask.legal_moves(start, played)):
        answers = _reversible(board, ask.legal_moves(start, [*played, there]))[:15]
        if answers and _back(there) not in ask.legal_moves(start, [*played, there, answers[0]]):
            answers = answers[1:2]  # a pawn, unless that answer was in the way
        for answer in answers:
            cycle = [there, answer, _back(there), _back(answer)]
            with suppress(MoveError):  # not every move can be taken back
                if _same(before, ask.fen_after(start, [*played, *cycle])):
                    return cycle
    return None


def _reversible(board: ProbeBoard, moves: Sequence[str]) -> list[str]:
    """Moves that may be taken back, rare pieces first, since pawns cannot return."""
    home = board.pieces(board.start)  # good enough for an order later in a game, too
    listed = list(home.values())
    plain = board.read([m for m in moves if re.fullmatch(r"([a-l][0-9]+){2}", m) and m != _back(m)])
    plain.sort(key=lambda m: listed.count(home.get(m.origin, "")))
    return [m.text for m in plain[:30]]


def _back(move: str) -> str:
    squares = re.findall(r"[a-l][0-9]+", move)
    return "".join(reversed(squares))


def _same(one: str, other: str) -> bool:
    # rights of castling may be lost by the first round; the board decides
    return one.split()[:2] == other.split()[:2]


def _fold(board: ProbeBoard, played: list[str], cycle: list[str]) -> tuple[int, int]:
    """Occurrence at which a cycle ends the game and its value; (0, 0) if it does not."""
    # the rights that the first round loses may make its start another position: count after it
    fen = board.variant.fen_after(board.start, [*played, *cycle])
    for times in range(1, MAX_FOLD):
        value = board.variant.optional_end(fen, cycle * times)
        if value is not None:
            return times + 1, value
    return 0, 0


def perpetual_check(board: ProbeBoard, king: str, pieces: Probed, fold: int) -> str | None:
    """Result for a side that checks forever; empty if no cycle of checks that was tried ended a game,
    None if no piece moves like a rook, with which they are tried."""
    slide = parse_betza("fR")[0]
    rooks = [s for s, p in pieces.items() if p.moves and slide in parse_betza(p.moves)]
    files, ranks = board.files, board.ranks
    for symbol in rooks:
        for king_file in (files // 2, files // 2 - 1):
            below, above = (ranks - 2) * files, (ranks - 1) * files
            own_king = king_file - 1 if king_file > 1 else king_file + 1
            fen = board.fen({below: symbol, above + king_file: king.lower(), own_king: king})
            squares = [board.name(s) for s in (below, above, below + king_file, above + king_file)]
            low, high, king_low, king_high = squares
            cycle = [low + high, king_high + king_low, high + low, king_low + king_high]
            try:
                for times in range(1, fold + 2):
                    value = board.variant.optional_end(fen, cycle * times)
                    if value is not None:
                        return VALUES[value]
            except VariantAIError:
                continue
    return "" if rooks else None


def no_progress(board: ProbeBoard, pieces: Probed, hand: str, notes: list[str]) -> Words:
    """Return `no_progress:`: plies until the draw, and what resets the count. notes: gets a sentence if
    the game is not drawn then, which a spec cannot express."""
    fields = board.start.split()

    def value(clock: int) -> int | None:
        fen = " ".join([*fields[:-2], str(clock), str(clock // 2 + 2)])
        return board.variant.optional_end(fen)

    def ends(clock: int) -> bool:
        return value(clock) is not None

    plies: int | str = "none"
    if len(fields) > 3 and ends(MAX_CLOCK):
        low, high = 0, MAX_CLOCK
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if ends(middle) else (middle, high)
        plies = high
        if result := value(high):
            notes.append(
                f"no_progress: Fairy-Stockfish calls the start position a {VALUES[result]} for the side to "
                "move then, perhaps by counting material (`rules.points`), which is not probed"
            )
    reset = ["captures"]
    reset += [
        symbol
        for symbol, moves in pieces.items()
        if _resets(board, symbol, [m for m in moves.seen[:200] if m.is_plain])
    ]
    if any(
        _resets(board, symbol, [m for m in moves.seen if promoted_symbol(symbol, m)])
        for symbol, moves in pieces.items()
        if symbol not in reset
    ):
        reset.append("promotions")
    if hand:
        drop = next((m for m in board.moves({}, hand=hand) if m.drop == hand), None)
        if drop:
            fen = board.fen({}, hand=hand, rest="- - 6 9")
            if _clock(board.neutral.fen_after(fen, [drop.text])) == 0:
                reset.append("drops")
    return {"plies": plies, "reset": reset}


def _resets(board: ProbeBoard, symbol: str, moves: Iterable[FairyMove]) -> bool:
    """Return True if the first of some moves that a piece has on an empty board sets the count to 0."""
    for move in moves:
        alone = {move.origin: symbol}
        if move.text in board.neutral.legal_moves(board.fen(alone)):
            return _clock(board.after(alone, move.text, rest="- - 6 9")) == 0
    return False


def _clock(fen: str) -> int:
    field = fen.split()[-2]
    return int(field) if field.isdigit() else -1


def counting(board: ProbeBoard, variant_with: VariantWith, king: str, other: str) -> str:
    """Return the counting rule of a variant, whose FEN shows a limit when few pieces are left."""
    fen = board.fen({0: king, board.squares - 1: king.lower(), board.files: other})
    move = next(iter(board.variant.legal_moves(fen)), "")
    if not move:
        return "none"
    shown = board.variant.fen_after(fen, [move])
    for rule in COUNTINGS:
        counted, plain = (
            variant_with({"countingRule": word}).fen_after(fen, [move]) for word in (rule, "none")
        )
        if shown == counted != plain:
            return rule
    return "none"


# --- wins ----------------------------------------------------------------------------------------


def wins(board: ProbeBoard, symbols: Sequence[str], royal: Sequence[str], bare: str) -> list[Words]:
    """Return `wins:`. symbols: all pieces. royal: those that are mated rather than lost. bare: verdict
    for a side with nothing but its king."""
    found: list[Words] = []
    if checks := counted_checks(board.variant.fen_after(board.start, [])):
        found.append({"checks": checks})
    found += _extinct(board, symbols, royal, everything=bare == "none")
    return [*found, *_reached(board, symbols)]


def counted_checks(fen: str) -> int:
    """Checks with which a player wins, in the FEN of a start position; 0 if they are not counted."""
    match = _CHECKS.search(fen)
    return int(match[1]) if match else 0


def _extinct(
    board: ProbeBoard, symbols: Sequence[str], royal: Sequence[str], *, everything: bool
) -> Iterator[Words]:
    """Yield wins by pieces that are gone: of one type; with `everything`, also all together."""
    others = [symbol for symbol in symbols if symbol not in royal]
    explained = False
    for symbol in others:
        for own in (False, True):
            piece = symbol if own else symbol.lower()
            if win := _gone(board, {piece}, own):
                explained = True
                yield _extinction(win, symbol)
            if piece in board.pieces(board.start).values():
                break
    if explained or not everything:
        return
    for own in (False, True):
        kinds = {p for p in board.pieces(board.start).values() if p.isupper() == own}
        kings = {p for p in kinds if p.upper() in royal}
        win = _gone(board, kinds - kings, own, kings)
        if win is None and _gone(board, kings, own) is None:  # it is not the kings alone
            win = _gone(board, kinds, own)
        if win is not None:
            yield _extinction(win, ALL_PIECES)
            return


def _extinction(win: tuple[int, int], which: str) -> Words:
    value, left = win
    return {"extinct" if value < 0 else "lost": which, **({"left": left} if left else {})}


def _gone(
    board: ProbeBoard, kinds: set[str], own: bool, kings: AbstractSet[str] = frozenset()
) -> tuple[int, int] | None:
    """Return the value for a side that has lost its pieces of these kinds, and the greatest number that may
    be left, `kings` included; None if the game goes on without them. own: the first player's."""
    home = board.pieces(board.start)
    rest = " ".join(board.start.split()[2:])
    there = [square for square, piece in home.items() if piece in kinds]

    def value(count: int) -> int | None:
        """Value if the side has `count` of them."""
        gone = there[count:]
        fen = board.fen({s: p for s, p in home.items() if s not in gone}, rest=rest, black=own)
        ended = board.variant.immediate_end(fen)
        return None if ended is None else -ended

    last = value(0) if there else None
    if not last:
        return None
    count = 0
    while count + 1 < len(there) and value(count + 1) == last:
        count += 1
    return last, count + sum(piece in kings for piece in home.values())


def _reached(board: ProbeBoard, symbols: Sequence[str]) -> Iterator[Words]:
    """Yield wins by a piece that reaches a zone."""
    theirs = {s: p for s, p in board.pieces(board.start).items() if p.islower()}
    kinds = Counter(theirs.values())

    def is_won(pieces: Pieces, held: bool = False) -> bool:
        """held: it is the first player's move again."""
        value = board.variant.immediate_end(board.fen(pieces, black=not held))
        return value == (1 if held else -1)

    def goals_of(symbol: str, held: bool) -> frozenset[int]:
        return frozenset(
            square
            for square in range(board.squares)
            # where their only king stands, it would be taken rather than the goal reached
            if (kinds[theirs.get(square, "")] != 1 and is_won({**theirs, square: symbol}, held))
            or is_won({**_far_away(board, theirs, square), square: symbol}, held)
        )

    reaching: dict[tuple[frozenset[int], bool], list[str]] = {}
    for symbol in symbols:
        goals = goals_of(symbol, False)
        held = not goals
        if held:
            goals = goals_of(symbol, True)
        if goals and len(goals) < board.squares:
            reaching.setdefault((goals, held), []).append(symbol)
    for (goals, held), several in reaching.items():
        symbol = several[0]
        which: str | list[str] = symbol if len(several) == 1 else several
        if len(several) == len(symbols) > 1:
            which = ALL_PIECES
        win: Words = {"piece": which, "reaches": board.zone(goals)}
        if held:
            yield {**win, "held": True}
            continue
        both = {min(goals): symbol, max(goals): symbol.lower()}
        if len(goals) > 1 and board.variant.immediate_end(board.fen(both)) == 0:
            win["race"] = True
        elif any(
            not is_won({**_far_away(board, theirs, goal), goal: symbol, beside: attacker})
            for goal in goals
            for step in COMPASS.values()
            if (beside := board.step(goal, *step)) is not None
            for attacker in set(theirs.values())
        ):
            win["safe"] = True
        yield win


def _far_away(board: ProbeBoard, theirs: Pieces, square: int) -> dict[int, str]:
    """One of each of their pieces, on the squares with the greatest distance from a square."""

    def distance(other: int) -> int:
        return max(map(abs, board.displacement(square, other)))

    places = sorted(range(board.squares), key=distance, reverse=True)
    return dict(zip(places, sorted(set(theirs.values())), strict=False))


def bare_king(board: ProbeBoard, king: str) -> str:
    """Return the verdict for a side that has nothing but its king."""
    home = board.pieces(board.start)
    for square, piece in home.items():
        if piece == king.lower():
            left = {s: p for s, p in home.items() if p.isupper()} | {square: piece}
            value = board.variant.immediate_end(board.fen(left, black=True))
            if value is None:
                value = board.variant.immediate_end(board.fen(left))
                value = None if value is None else -value
            return {None: "none", 0: "draw", -1: "loss", 1: "none"}[value]
    return "none"


def draws_dead_positions(board: ProbeBoard, king: str) -> bool:
    fen = board.fen({0: king, board.squares - 1: king.lower()})
    return all(board.variant.insufficient_material(fen))


# --- a spec compared with the variant that it names ------------------------------------------------


def differing_ends(spec: VariantSpec) -> list[str]:
    """Return a sentence for each rule of repetition, move count and stalemate that differs. What
    cannot be found out is left out.

    The conformance kit gives Fairy-Stockfish the spec's own numbers (`spec_settings`), so that a spec may
    have rules of its own. It cannot notice a number that is a mistake; here the variant that the spec
    names is asked. Raises SpecError if Fairy-Stockfish does not have it.
    """
    try:
        return in_child(_differing_ends, spec)
    except BrokenProcessPool:  # Fairy-Stockfish died
        return []


def _differing_ends(spec: VariantSpec) -> list[str]:
    own = judge(spec, {})
    board = ProbeBoard(own, own)
    rules = spec.rules
    found: list[str] = []

    def compare(word: str, mine: object, theirs: object) -> None:
        if mine != theirs:
            found.append(f"rules.{word} is {mine}; Fairy-Stockfish's {spec.fairy}: {theirs}")

    unknown: list[str] = []
    repeated, fold = repetition(board, unknown), rules.repetition.fold
    if repeated["fold"] == NO_FOLD:
        if fold <= MAX_FOLD:
            compare("repetition.fold", fold, f"none up to {MAX_FOLD}")
    elif not unknown:
        otherwise = rules.repetition.otherwise
        if otherwise == "draw" and rules.points is not None and rules.points.second:
            otherwise = "loss of first player"  # by points, where both have the same pieces
        compare("repetition.fold", fold, repeated["fold"])
        compare("repetition.otherwise", otherwise, repeated["otherwise"])
    compare("no_progress.plies", rules.no_progress.plies, no_progress(board, {}, "", [])["plies"])
    compare("stalemate", rules.stalemate, own.stalemate())
    return found
