"""The rules engine `fairy` against pyffish itself, for every variant of pyffish.

This does not compare rules but what is kept of a position: the engine gives pyffish a FEN and the
last moves, and converts text to records and integers and back; here pyffish gets all moves from
the start of the game. A variant whose positions hold more than a record shows up as a difference.

The specs are generated: the board of the start position, a piece for each letter, and only the
words that the engine needs.
"""

from __future__ import annotations

import json
import random
import re

from variant_ai.core.errors import VariantAIError
from variant_ai.core.rules.fairy.fairy_rules import FairyRules, identity
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant, spec_settings
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Outcome
from variant_ai.core.rules.text.notation import UciNotation
from variant_ai.core.spec.loader import parse_spec
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.text_tables import counted
from variant_ai.core.testing.random_games import Report, moves_only, random_move

PROBES = 3
"""Random games in which the letters of a variant are collected."""
PROBE_PLIES = 60
SPECIAL_SHARE = 0.3
"""Share of moves that prefer drops, promotions, walls and the like."""
_PIECE = re.compile(r"\+?[A-Za-z]")
_CELL = re.compile(r"[0-9]+|\+?[A-Za-z]~?|\*")
_UNUSUAL = re.compile(r"[@,+-]|[0-9][a-z]$")
_PROMOTION = re.compile(r"(?:[a-z][0-9]+){2}([a-z])")


def probed_spec(name: str, seed: int = 0) -> VariantSpec:
    """Generate a spec of a pyffish variant for the engine `fairy`.

    Raises UnknownNameError, or SpecError if the variant does not fit into a spec.
    """
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
    if held:  # any captured piece may be held later
        held |= letters
    # pyffish does not list which pieces promote, so any may
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
            "stalemate": fairy.stalemate(),
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
    """Letters of pieces that a pawn promotes to, which need not be on the board at first."""
    rows, _, rest = start.partition(" ")
    last, following, *others = rows.split("/")
    match = _CELL.match(following)
    if "P" not in rows or match is None:
        return set()
    empty = int(match[0]) - 1 if match[0].isdigit() else 0
    row = f"P{empty or ''}{following[match.end() :]}"  # on the first file
    try:
        legal = fairy.legal_moves(f"{'/'.join([last, row, *others])} {rest}")
    except VariantAIError:  # such a position is not possible
        return set()
    return {match[1].upper() for match in map(_PROMOTION.fullmatch, legal) if match}


def _in_hand(fen: str) -> set[str]:
    return set(fen.split(maxsplit=1)[0].partition("[")[2].strip("]-").upper())


def check_fairy_engine(name: str, positions: int, seed: int) -> Report:
    """Play random games of a pyffish variant and compare legal moves, FEN, check and end.

    The report is `skipped` if no spec can describe the variant.
    """
    report, rng = Report("fairy", name, "fairy"), random.Random(f"{name} {seed}")
    try:
        rules = FairyRules(probed_spec(name))
    except VariantAIError as error:
        report.skipped = str(error)
        return report
    while report.positions < positions and report.agrees:
        report.games += 1
        game = _ComparedGame(rules, name, rng, report)
        try:
            game.run(positions)
        except VariantAIError as error:
            game.differ(str(error))
    return report


class _ComparedGame:
    """One random game."""

    def __init__(self, rules: FairyRules, name: str, rng: random.Random, report: Report) -> None:
        self.rules, self.rng, self.report = rules, rng, report
        self.game = Game(rules)
        self.plain = FairyVariant(name)
        """pyffish's own rules, for moves, FENs and checks."""
        settings = spec_settings(rules.spec, move_count=True, chase=True)
        self.with_settings = FairyVariant(name, settings)
        """pyffish with the spec's end-of-game rules."""
        self.start = self.plain.start_fen()
        self.moves: list[str] = []
        """UCI moves played."""

    def differ(self, message: str) -> None:
        self.report.first_difference = f"after {' '.join(self.moves) or 'no move'}: {message}"

    def run(self, positions: int) -> None:
        while self.report.positions < positions:
            legal = self._compare()
            if not self.report.agrees or not legal:
                return
            style = "special" if self.rng.random() < SPECIAL_SHARE else "any"
            move = random_move(self.rules, self.game.position, legal, style, self.rng)
            self.moves.append(self.rules.uci(move))
            self.game.push(move)
            self.report.positions += 1
            if self.report.positions % 8 == 0:
                self._read_back()

    def _compare(self) -> list[int]:
        """Compare legal moves, FEN, check and end; return the moves, none if the game is over."""
        game, start, moves = self.game, self.start, self.moves
        legal: list[int] = game.legal_moves().tolist()
        ours = {self.rules.uci(move) for move in legal}
        theirs = set(self.plain.legal_moves(start, moves))
        self.report.moves += len(legal)
        if len(ours) != len(legal):
            self.differ(
                f"{counted(len(legal), 'move')} are listed, only {len(ours)} of them differ"
            )
            return legal
        if ours != theirs:
            self.differ(moves_only(ours, theirs, "pyffish"))
            return legal
        our_fen, their_fen = game.fen(), self.plain.fen_after(start, moves)
        if identity(our_fen) != identity(their_fen):
            self.differ(f"our FEN {our_fen!r}; pyffish's {their_fen!r}")
        elif self.rules.in_check(game.position) != self.plain.in_check(start, moves):
            self.differ(f"only one of the two sees a check (FEN {their_fen})")
        else:
            self._compare_end(game.outcome(), bool(legal))
        return legal if game.outcome() is None else []

    def _compare_end(self, outcome: Outcome | None, has_moves: bool) -> None:
        reference, start, moves = self.with_settings, self.start, self.moves
        query = reference.optional_end if has_moves else reference.mated_value
        value = query(start, moves)
        ours = None if outcome is None else outcome.value(self.game.side)
        if ours != value:
            self.differ(f"our end for the side to move: {outcome}; pyffish's value: {value}")
        elif outcome is not None:
            self.report.counts[outcome.reason] += 1

    def _read_back(self) -> None:
        """Read the FEN back as the same position, and the text of moves as the same moves."""
        rules, position = self.rules, self.game.position
        fen = rules.fen(position)
        again = rules.position(fen)
        if rules.fen(again) != fen or again["key"][0] != position["key"][0]:
            self.differ(f"FEN {fen!r} is read as another position: {rules.fen(again)!r}")
        legal: list[int] = self.game.legal_moves().tolist()
        for move in self.rng.sample(legal, min(len(legal), 3)):
            text = rules.uci(move)
            if UciNotation().read(rules, position, text) != move:
                self.differ(f"{text} is read as another move")
