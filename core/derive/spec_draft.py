"""A spec as data: everything that probing finds about a variant, in the words of specs."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from variant_ai.core.derive import end_probe, rule_probe
from variant_ai.core.derive.piece_probe import PieceMoves, PieceProbe, Probed
from variant_ai.core.derive.probe_board import NEUTRAL, ProbeBoard, VariantWith, Words
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant, pyffish
from variant_ai.core.spec.zones import view

_NAMES = {"P": "pawn", "N": "knight", "B": "bishop", "R": "rook", "Q": "queen", "K": "king"}


@dataclass(frozen=True)
class Findings:
    """Findings about a variant, before most of them are put into words."""

    board: ProbeBoard
    variant_with: VariantWith
    probed: Probed
    """Moves of each piece, in the order of the spec."""
    aliases: dict[str, str]
    """Symbol -> second letter that is read for it."""
    prey: str
    """A symbol that can be captured."""
    royal: list[str]
    checked: str | None
    """FEN in which a royal piece is in check."""
    hand: rule_probe.HandRules | None
    endless: bool
    """True if pieces are dropped that no hand holds."""
    captors: set[str]
    """Pieces that capture en passant."""
    faces: bool
    """True if two kings may not face each other."""
    castles: dict[str, dict[str, str]]
    takes_rook: bool
    """True if castling is written as the king that takes its rook."""
    more: Words
    """Passes, walls and the like, as `rule_probe.extras` says them."""

    @property
    def king(self) -> str:
        """The first royal piece; empty if there is none."""
        return self.royal[0] if self.royal else ""


def draft(name: str, ini: str | None, notes: list[str]) -> tuple[Words, list[str]]:
    """Return a spec as data, and rules that the vocabulary of specs has no word for."""

    def variant_with(settings: Mapping[str, str]) -> FairyVariant:
        return FairyVariant(name, settings, ini)

    found = _findings(ProbeBoard(variant_with({}), variant_with(NEUTRAL)), variant_with)
    missing = _missing_words(found)
    zones: Words = {}
    pieces = _piece_words(found, zones, notes)
    rules = _rule_words(found, notes)
    if not found.castles and not missing:
        _drop_rights(rules, notes)
    tree = _tree(name, ini, found, zones, pieces, rules)
    if found.more["pass"]:
        missing.append("`pass` moves")
        tree["policy"] = ["derived", "pass"]
    return tree, missing


def _findings(board: ProbeBoard, variant_with: VariantWith) -> Findings:
    """Probe the pieces, hands and castling of a variant."""
    met, dropped = _met(board)
    symbols, aliases = _symbols(board, met)
    prey = _prey(symbols)
    probed, royal, checked = _probe_all(board, symbols, prey)
    pocket = board.start.split()[0].partition("[")[2].strip("]-")
    captures = bool(pyffish().captures_to_hand(board.variant.name))
    hand = rule_probe.hands(board, probed, pocket, captures, royal)
    endless = hand is None and bool(dropped)
    if endless:
        hand = rule_probe.HandRules([s for s in probed if s in dropped])
    captors, double_steps = rule_probe.captures_en_passant(board, probed)
    for symbol, origins in double_steps.items():
        _split_double_steps(probed[symbol], origins)
    castles, takes_rook = rule_probe.castling(board)
    return Findings(
        board=board,
        variant_with=variant_with,
        probed=probed,
        aliases=aliases,
        prey=prey,
        royal=royal,
        checked=checked,
        hand=hand,
        endless=endless,
        captors=captors,
        faces=bool(royal) and _faces(board, royal[0]),
        castles=castles,
        takes_rook=takes_rook,
        more=rule_probe.extras(board, probed, prey),
    )


def _missing_words(found: Findings) -> list[str]:
    """Rules that the vocabulary of specs has no word for, except passes."""
    missing = []
    if found.endless:
        missing.append("drops from an endless hand")
    if found.more["walls"]:
        missing.append("moves that place walls")
    if found.more["demotes"]:
        missing.append("pieces that turn back")
    if found.hand and found.hand.turned:
        missing.append("drops of promoted pieces")
    if len(found.royal) > 1:
        missing.append(f"several royal pieces ({', '.join(found.royal)})")
    return missing


def _piece_words(found: Findings, zones: Words, notes: list[str]) -> Words:
    """`pieces:` of a spec. zones: gets those that the words name."""
    pieces: Words = {}
    for symbol, moves in found.probed.items():
        pieces[symbol] = word = _piece(found.board, moves, list(found.probed), notes, zones)
        if [symbol] == found.royal:  # several are a rule without a word
            word["royal"] = True
        if symbol in found.captors:
            word["passant"] = True
        if symbol in found.aliases:
            word["also"] = found.aliases[symbol]
        if found.hand and symbol in found.hand.drop:
            word |= _drop_words(found.board, found.hand, symbol, notes)
        if found.faces and symbol == found.king:
            word["faces"] = symbol
    return pieces


def _drop_words(
    board: ProbeBoard, hand: rule_probe.HandRules, symbol: str, notes: list[str]
) -> Words:
    """Words of a piece about its drops."""
    words: Words = {}
    drop = hand.drop[symbol]
    if len(drop) < board.squares:
        words["drop"] = board.zone(drop) if drop else False
    if symbol in hand.per_file:
        words["per_file"] = hand.per_file[symbol]
        words["drop_mate"] = False
        notes.append(f"pieces.{symbol}.drop_mate: false is a guess from per_file; not asked")
    return words


def _rule_words(found: Findings, notes: list[str]) -> Words:
    """`rules:` of a spec."""
    board, king, probed = found.board, found.king, found.probed
    rules: Words = {
        "start": _start(board),
        "stalemate": board.variant.stalemate(),
        "repetition": _repetition_words(found, notes),
    }
    held = found.hand.order[0] if found.hand else ""
    rules["no_progress"] = end_probe.no_progress(board, probed, held, notes)
    rules |= _end_words(found)
    if _must_capture(board, found.variant_with, probed, found.prey):
        rules["captures"] = "must"
    if king:
        other = next((s for s in probed if s not in found.royal and "R" in probed[s].moves), "")
        counted = end_probe.counting(board, found.variant_with, king, other) if other else "none"
        if counted != "none":
            rules["counting"] = counted
    dead = king and not found.hand and "wins" not in rules and rules["stalemate"] == "draw"
    if dead and end_probe.draws_dead_positions(board, king):
        rules["insufficient_material"] = True
    if found.takes_rook:
        rank = [p for s, p in board.pieces(board.start).items() if s < board.files]
        usual = sorted(rank) == sorted("RNBQKBNR")
        rules["shuffle"] = "chess960" if usual else "as in the FEN"
    return rules


def _repetition_words(found: Findings, notes: list[str]) -> Words:
    """`repetition:`, with perpetual checks."""
    words = end_probe.repetition(found.board, notes)
    if not found.king:
        return words
    result = end_probe.perpetual_check(found.board, found.king, found.probed, words["fold"])
    if result is None:
        notes.append(
            "repetition: perpetual check was not tried, because no piece moves like a rook"
        )
    elif not result:
        notes.append("repetition: perpetual check was tried without an answer")
    elif result == "loss":
        words["perpetual_check"] = "loss"
        if found.faces:
            words["perpetual_chase"] = "axf"
            notes.append("perpetual_chase: axf is a guess from flying generals; not asked")
    return words


def _end_words(found: Findings) -> Words:
    """Words about wins, mates and checks."""
    board, king, probed, checked = found.board, found.king, found.probed, found.checked
    words: Words = {}
    bare = end_probe.bare_king(board, king) if king else "none"
    wins = end_probe.wins(board, list(probed), found.royal, bare)
    if wins:
        words["wins"] = wins
    mate = end_probe.stuck(board, checked) if king and checked else "loss"
    if mate != "loss":
        words["checkmate"] = mate
    if king and rule_probe.never_checks(board, found.variant_with, probed, king):
        words["checks"] = "never"
    if checked:
        free = found.variant_with({"makpongRule": "false"}).legal_moves(checked)
        if free != board.variant.legal_moves(checked):
            words["checked_king"] = "only captures"
    if bare != "none":
        words["bare_king"] = bare
    if found.more.get("explodes"):
        words["explodes"] = True
        lost = next((win["extinct"] for win in wins if "extinct" in win), "")
        if king and not lost:
            words["wins"] = [*wins, {"extinct": king}]
        elif (
            lost and not king and rule_probe.ignores_checks(board, found.variant_with, probed, lost)
        ):
            words["checks"] = "ignored"
    return words


def _drop_rights(rules: Words, notes: list[str]) -> None:
    """Take the rights of castling out of the start position, where they have no effect."""
    fields = rules["start"].split()
    if len(fields) > 2 and set(fields[2]) <= set("KQkq"):
        rules["start"] = " ".join([*fields[:2], "-", *fields[3:]])
        notes.append("castling: the rights of the start position had no effect")


def _tree(
    name: str, ini: str | None, found: Findings, zones: Words, pieces: Words, rules: Words
) -> Words:
    """Put the parts of a spec together."""
    board, hand = found.board, found.hand
    tree: Words = {
        "spec": 1,
        "variant": re.sub("[^a-z0-9-]", "-", name.lower()),
        "title": name.capitalize(),
        "fairy": name,
        "board": {"files": board.files, "ranks": board.ranks, "sides": _sides(board)},
        "pieces": pieces,
    }
    if ini is not None:
        tree["fairy_ini"] = ini
    if zones:
        tree["board"]["zones"] = zones
    if found.castles:
        tree["castling"] = found.castles
    if hand:
        tree["hands"] = {"order": hand.order, "promoted": hand.promoted}
        if hand.captured != "changes side":
            tree["hands"]["captured"] = hand.captured
    tree["rules"] = rules
    tree["input"] = input_planes_of(tree)
    return tree


def _start(board: ProbeBoard) -> str:
    """FEN of the start position, with the field of checks left if the variant counts checks."""
    written = board.variant.fen_after(board.start, [])
    return written if end_probe.counted_checks(written) else board.start


def _met(board: ProbeBoard) -> tuple[set[str], set[str]]:
    """Symbols on the board in a few random games, and those that were dropped."""
    rng, met, dropped = random.Random(0), set[str](), set[str]()
    for _ in range(2):
        moves: list[str] = []
        for ply in range(40):
            legal = board.variant.legal_moves(board.start, moves)
            if not legal:
                break
            dropped |= {m.split("@")[0].lstrip("+") for m in legal if "@" in m}
            unusual = [m for m in legal if not re.fullmatch(r"([a-l][0-9]+){2}", m)]
            moves.append(rng.choice(unusual if unusual and ply % 2 else legal))
            if ply % 8 == 7:
                fen = board.variant.fen_after(board.start, moves).split()[0]
                met |= {p.upper() for p in re.findall(r"\+?[A-Za-z]", fen)}
    return met | dropped, dropped


def _symbols(board: ProbeBoard, met: set[str]) -> tuple[list[str], dict[str, str]]:
    """Symbols of the start position, its hands and of random games, and second letters that are read
    for them."""
    known = rule_probe.known_symbols(board)
    start = board.start.split()[0]
    used = met | {p.upper() for p in re.findall(r"\+?[A-Za-z]", start)}
    aliases = {to: one for one, to in known.items() if one != to}
    counts = {s: start.count(s) for s in known if s in used and s not in aliases.values()}
    many = max(counts.values())
    by_place = sorted(counts, key=lambda s: (counts[s] < many, start.rfind(s)))
    return by_place, aliases


def _prey(symbols: list[str]) -> str:
    """A symbol that can be captured: a pawn, or any that is not a king."""
    plain = [s for s in symbols if s not in ("K",)] or symbols
    return ("P" if "P" in plain else plain[0]).lower()


def _probe_all(
    board: ProbeBoard, symbols: list[str], prey: str
) -> tuple[Probed, list[str], str | None]:
    """Probe the symbols and everything that they promote to; return also royal ones, and a FEN in
    which one is in check."""
    probed: Probed = {}
    waiting = list(symbols)
    while waiting:
        symbol = waiting.pop(0)
        probed[symbol] = PieceProbe(board, symbol, prey).run()
        for move in probed[symbol].seen:
            to = rule_probe.promoted_symbol(symbol, move)
            if to and to not in probed and to not in waiting:
                waiting.append(to)
    royal, checked = [], None
    for symbol in probed:
        fen = rule_probe.is_royal(board, symbol, [p for p in probed.values() if p.moves])
        if fen is not None:
            royal.append(symbol)
            checked = checked or fen
    for symbol in royal:
        probed[symbol] = PieceProbe(board, symbol, prey, royal=True).run()
    return probed, royal, checked


def _piece(
    board: ProbeBoard,
    moves: PieceMoves,
    order: list[str],
    notes: list[str],
    zones: Words,
) -> Words:
    """Words of a piece: name, moves and promotion."""
    symbol = moves.symbol
    plain = symbol.lstrip("+")
    name = ("promoted " if symbol != plain else "") + _NAMES.get(plain, plain.lower())
    word: Words = {"name": name, "moves": moves.moves}
    notes += [f"pieces.{symbol}.moves: {text}" for text in moves.unsaid]
    if moves.from_:
        word["from"] = {}
        for zone, betza in moves.from_:
            shown = board.zone(zone)
            key = shown if isinstance(shown, str) else _named(zones, shown)
            word["from"][key] = betza
    if moves.within is not None:
        word["within"] = board.zone(moves.within)
    promotes = rule_probe.promotion(board, moves, order, notes)
    if promotes:
        word["promotes"] = promotes
    return word


def _split_double_steps(moves: PieceMoves, origins: set[int]) -> None:
    """Write the double steps that cannot be captured en passant as slides, which never can."""
    split: list[tuple[frozenset[int], str]] = []
    for zone, word in moves.from_:
        safe = zone - origins if "nfD" in word else frozenset[int]()
        if zone - safe:
            split.append((zone - safe, word))
        if safe:
            split.append((safe, word.replace("mnfD", "mfW2")))
    moves.from_ = split


def _named(zones: Words, squares: list[str]) -> str:
    """Name of a zone that is a list of squares; a new one if there is none."""
    known = next((name for name, listed in zones.items() if listed == squares), "")
    name = known or f"zone{len(zones) + 1}"
    zones[name] = squares
    return name


def _faces(board: ProbeBoard, king: str) -> bool:
    """Return True if two kings may not face each other on an open file."""
    file = board.files // 2
    top = board.squares - board.files + file
    alone = {file - 1: king}
    steps = board.moves(alone, neutral=False)
    facing = board.moves({**alone, top: king.lower()}, neutral=False)
    onto = {m.target for m in steps} - {m.target for m in facing}
    return file in onto and bool(facing)  # without any move, the game is over


def _must_capture(
    board: ProbeBoard,
    variant_with: VariantWith,
    pieces: Probed,
    prey: str,
) -> bool:
    """Return True if a side that can capture has no other move."""
    kept = {key: value for key, value in NEUTRAL.items() if key != "mustCapture"}
    asked = variant_with(kept)
    for symbol, moves in pieces.items():
        for move in moves.seen:
            if not move.is_plain:
                continue
            fen = board.fen({move.origin: symbol, move.target: prey})
            free = board.neutral.legal_moves(fen)
            if move.text in free and len(free) > 1:
                return len(asked.legal_moves(fen)) < len(free)
    return False


def _sides(board: ProbeBoard) -> str:
    """`rotate` if the start position is turned, and not mirrored, for the second player."""
    home = board.pieces(board.start)

    def fits(sides: str) -> bool:
        turned = {view(s, 1, board.files, board.ranks, sides): p for s, p in home.items()}
        return {s: p.swapcase() for s, p in turned.items()} == home

    return "rotate" if fits("rotate") and not fits("mirror") else "mirror"


def input_planes_of(tree: Mapping[str, Any]) -> list[Any]:
    """Input planes: everything that the rules of the spec depend on."""
    fold = tree["rules"]["repetition"]["fold"]
    planes: list[Any] = [{"pieces": "me"}, {"pieces": "them"}]
    planes.append({"repetitions": max(1, min(fold - 1, 3))})
    if "hands" in tree:
        order = tree["hands"]["order"]
        planes += [{"hand": {"of": who, "order": order, "max": 16}} for who in ("me", "them")]
        if tree["hands"]["promoted"].startswith("returns"):
            planes += [{"promoted": "me"}, {"promoted": "them"}]
    if any(piece.get("passant") for piece in tree["pieces"].values()):
        planes.append("en_passant")
    planes += ["colour", {"move_number": {"max": 500}}]
    if "castling" in tree:
        planes += [{"castling": "me"}, {"castling": "them"}]
    checks = next((win["checks"] for win in tree["rules"].get("wins", ()) if "checks" in win), 0)
    if checks:
        planes += [{"checks": {"of": who, "max": checks}} for who in ("me", "them")]
    plies = tree["rules"]["no_progress"]["plies"]
    if plies != "none":
        planes.append({"halfmove": {"max": plies}})
    return planes
