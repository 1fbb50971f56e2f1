"""The rules engine `fairy` against pyffish itself, for every variant that pyffish has.

Not a comparison of rules but of what is kept of a position: the engine asks about a FEN and the
last moves, and turns text into records and integers and back; pyffish is asked about all moves from
the start of the game. A variant whose positions say more than a record holds shows it here.

The specs are made for it: the board of the start position, a piece for each letter, and nothing
that the engine does not ask of a spec.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field

from variant_ai.core.errors import VariantAIError
from variant_ai.core.rules.fairy.fairy_rules import FairyRules, identity
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant, spec_settings
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Outcome
from variant_ai.core.rules.text.notation import UciNotation, uci
from variant_ai.core.spec.loader import parse_spec
from variant_ai.core.spec.schema import VariantSpec

PROBES = 3
"""Random games in which the letters of a variant are looked for."""
PROBE_PLIES = 60
_PIECE = re.compile(r"\+?[A-Za-z]")
_CELL = re.compile(r"[0-9]+|\+?[A-Za-z]~?|\*")
_UNUSUAL = re.compile(r"[@,+-]|[0-9][a-z]$")
_PROMOTION = re.compile(r"(?:[a-z][0-9]+){2}([a-z])")
_STALEMATE = {1: "win", 0: "draw", -1: "loss"}


def probed_spec(name: str, seed: int = 0) -> VariantSpec:
    """A spec on `fairy` with which pyffish's variant can be played. Raises SpecError where it does
    not fit into one, UnknownNameError."""
    fairy, rng = FairyVariant(name), random.Random(seed)
    start = fairy.start_fen()
    rows = start.split()[0].split("[")[0].split("/")
    files = sum(int(c) if c.isdigit() else 1 for c in _CELL.findall(rows[0]))
    found, held, limits = _letters(start), _in_hand(start), False
    for _ in range(PROBES):
        moves: list[str] = []
        for ply in range(PROBE_PLIES):
            legal = fairy.legal_moves(start, moves)
            if not legal:
                break
            held |= {move.split("@")[0].lstrip("+") for move in legal if "@" in move}
            moves.append(rng.choice([m for m in legal if _UNUSUAL.search(m)] or legal))
            if ply % 10 == 9:
                fen = fairy.fen_after(start, moves)
                found |= _letters(fen)
                held |= _in_hand(fen)
                limits |= len(fen.split()) > 5 and fen.split()[3].isdigit()
    found |= _promoted(fairy, start)
    letters = {symbol.lstrip("+") for symbol in found} | held
    if held:  # whatever is captured may come to be
        held |= letters
    # nothing says which pieces promote, so each may come to be turned over
    turned = {f"+{letter}" for letter in letters} if any("+" in s for s in found) else set()
    data = {
        "spec": 1,
        "variant": re.sub("[^a-z0-9-]", "-", name),
        "title": f"Fairy-Stockfish's {name}",
        "fairy": name,
        "board": {"files": files, "ranks": len(rows)},
        "pieces": {symbol: {"name": symbol, "moves": "QN"} for symbol in sorted(letters | turned)},
        "rules": {
            "engine": "fairy",
            "start": start,
            "stalemate": _STALEMATE[fairy.mated_value(start)],
            "counting": "makruk" if limits else "none",
        },
        "input": [{"pieces": "me"}, {"pieces": "them"}],
    }
    if held:
        data["hands"] = {"order": sorted(held), "promoted": "keeps"}
    return parse_spec(json.dumps(data), f"<{name}>")


def _letters(fen: str) -> set[str]:
    return {
        piece.upper()
        for piece in _PIECE.findall(fen.split(maxsplit=1)[0].split("[", maxsplit=1)[0])
    }


def _promoted(fairy: FairyVariant, start: str) -> set[str]:
    """Letters of pieces that a pawn one rank before the last promotes to: there may be none of them on
    the board at first."""
    rows, _, rest = start.partition(" ")
    last, following, *others = rows.split("/")
    match = _CELL.match(following)
    if "P" not in rows or match is None:
        return set()
    empty = int(match[0]) - 1 if match[0].isdigit() else 0
    row = f"P{empty or ''}{following[match.end() :]}"  # on the first file
    try:
        legal = fairy.legal_moves(f"{'/'.join([last, row, *others])} {rest}")
    except VariantAIError:  # such a position cannot be there
        return set()
    return {match[1].upper() for match in map(_PROMOTION.fullmatch, legal) if match}


def _in_hand(fen: str) -> set[str]:
    return set(fen.split(maxsplit=1)[0].partition("[")[2].strip("]-").upper())


@dataclass
class Walk:
    """Result of one variant."""

    variant: str
    plies: int = 0
    games: int = 0
    moves: int = 0
    """Legal moves compared."""
    ends: Counter[str] = field(default_factory=Counter)
    """Reasons."""
    difference: str = ""
    """The first, with its moves; empty if all agrees."""
    refused: str = ""
    """Why no spec can say the variant."""

    @property
    def verdict(self) -> str:
        return "refused" if self.refused else "differs" if self.difference else "agrees"


def walk(name: str, plies: int, seed: int) -> Walk:
    """Random games of a variant, all questions asked of both, until so many plies are played."""
    found, rng = Walk(name), random.Random(f"{name} {seed}")
    try:
        rules = FairyRules(probed_spec(name))
    except VariantAIError as error:
        found.refused = str(error)
        return found
    while found.plies < plies and not found.difference:
        found.games += 1
        game = _Walker(rules, rng, found)
        try:
            game.run(plies)
        except VariantAIError as error:
            game.differ(str(error))
    return found


class _Walker:
    """One game."""

    def __init__(self, rules: FairyRules, rng: random.Random, found: Walk) -> None:
        assert rules.spec.fairy is not None
        self.rules, self.rng, self.found = rules, rng, found
        self.game = Game(rules)
        self.plain = FairyVariant(rules.spec.fairy)
        self.judge = FairyVariant(
            rules.spec.fairy, spec_settings(rules.spec, move_count=True, chase=True)
        )
        self.start = self.plain.start_fen()
        self.texts: list[str] = []

    def differ(self, message: str) -> None:
        self.found.difference = f"after {' '.join(self.texts) or 'no move'}: {message}"

    def run(self, plies: int) -> None:
        while self.found.plies < plies:
            legal = self.compare()
            if self.found.difference or not legal:
                return
            unusual = [m for m in legal if _UNUSUAL.search(self.text(m))]
            move = self.rng.choice(unusual if unusual and self.rng.random() < 0.3 else legal)
            self.texts.append(self.text(move))
            self.game.push(move)
            self.found.plies += 1
            if self.found.plies % 8 == 0:
                self.read_back()

    def text(self, move: int) -> str:
        return uci(self.rules.types, self.rules.spec.board.files, move)

    def compare(self) -> list[int]:
        """Legal moves, FEN, check and end; the moves, none where the game is over."""
        game, start, texts = self.game, self.start, self.texts
        legal: list[int] = game.legal_moves().tolist()
        ours, theirs = [self.text(move) for move in legal], self.plain.legal_moves(start, texts)
        self.found.moves += len(legal)
        if sorted(ours) != sorted(theirs):
            extra, missing = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
            self.differ(
                f"moves only ours: {' '.join(extra[:5]) or 'none'}; "
                f"only pyffish's: {' '.join(missing[:5]) or 'none'}"
            )
            return legal
        fen, told = game.fen(), self.plain.fen_after(start, texts)
        if identity(fen) != identity(told):
            self.differ(f"our FEN {fen!r}; pyffish's {told!r}")
        elif self.rules.in_check(game.position) != self.plain.in_check(start, texts):
            self.differ(f"only one of us sees a check (FEN {told})")
        else:
            self._compare_end(game.outcome(), bool(legal))
        return legal if game.outcome() is None else []

    def _compare_end(self, outcome: Outcome | None, goes_on: bool) -> None:
        judge, start, texts = self.judge, self.start, self.texts
        value = judge.optional_end(start, texts) if goes_on else judge.mated_value(start, texts)
        ours = None if outcome is None else outcome.value(self.game.side)
        if ours != value:
            self.differ(f"our end for the side to move: {outcome}; pyffish's value: {value}")
        elif outcome is not None:
            self.found.ends[outcome.reason] += 1

    def read_back(self) -> None:
        """The FEN gives the same position, and each text the same move."""
        rules, position = self.rules, self.game.position
        fen = rules.fen(position)
        again = rules.position(fen)
        if rules.fen(again) != fen or again["key"][0] != position["key"][0]:
            self.differ(f"FEN {fen!r} reads as another position: {rules.fen(again)!r}")
        legal: list[int] = self.game.legal_moves().tolist()
        for move in self.rng.sample(legal, min(len(legal), 3)):
            if UciNotation().read(rules, position, self.text(move)) != move:
                self.differ(f"{self.text(move)} reads as another move")
