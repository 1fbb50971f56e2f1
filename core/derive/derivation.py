"""Specs derived from Fairy-Stockfish: facts are probed, put into words, and tried.

The draft runs in the kernel if a comparison with Fairy-Stockfish finds no difference, and on
`engine: fairy` otherwise. That engine knows the rules, but its spec must say which moves exist, since
policy planes and the codes of game stores follow from the pieces' words.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from variant_ai.core.derive.betza_writer import write_betza
from variant_ai.core.derive.probe_board import Words
from variant_ai.core.derive.spec_draft import draft, input_planes_of
from variant_ai.core.encoding.move_codes import MoveCodec
from variant_ai.core.errors import MoveError, SpecError, UnknownNameError, VariantAIError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.kernel.rule_tables import missing_words
from variant_ai.core.rules.position import (
    PROMOTION,
    move_argument,
    move_kind,
    move_origin,
    move_target,
    piece_type,
)
from variant_ai.core.spec.betza import Movement
from variant_ai.core.spec.catalogue import builtin_specs
from variant_ai.core.spec.files.fairy_ini import read_ini
from variant_ai.core.spec.files.yaml_reader import read_text
from variant_ai.core.spec.loader import load_spec, parse_spec
from variant_ai.core.spec.rule_words import Model
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import seen_by
from variant_ai.core.testing.game_conformance import check_game_ends
from variant_ai.core.testing.random_games import random_move
from variant_ai.core.testing.rules_conformance import check_rules, in_child

POSITIONS = 400
"""Positions compared before a draft is written for the kernel."""
DEAD = "insufficient_material"
ENDS_DIFFER = "ends differ:"
FROM_PARENT = ("pieces.", "no_progress: Fairy-Stockfish calls")
"""Beginnings of notes on words that a draft inherits if it extends a shipped spec."""
WALKS, WALK_PLIES = 3, 60
"""Random games in which every move must have an action, and their length."""
MOST_GAPS = 60
LONGEST_LEAP = 3
"""Greatest length of a straight leap that has a letter in Betza notation."""
PROBED = ("stalemate", "repetition", "no_progress")
"""Words of rules that are taken from the draft."""
COPIED = ("variant", "title", "fairy", "fairy_ini")
OPTIONAL = ("pass", "facing_kings", "points")
"""Words of the shipped spec that the variant may have or not; each is tried."""
UNSTORED = "games can be played but not stored: moves also place walls or drop promoted pieces"


@dataclass
class Derivation:
    """A draft, the engine it is for, and notes on it."""

    variant: str
    tree: Words = field(default_factory=dict)
    """The spec, as its YAML file has it."""
    engine: str = ""
    """`kernel` or `fairy`; empty if the variant has no spec."""
    why_fairy: str = ""
    """Words that are missing in the kernel, or the first difference; empty for the kernel."""
    notes: list[str] = field(default_factory=list)
    """Sentences on what could not be found, or was not asked."""
    failure: str = ""
    """Why there is no spec, or none that trains."""


def derive(
    name: str, *, ini: Path | None = None, positions: int = POSITIONS, seed: int = 0
) -> Derivation:
    """Draft a spec for a variant that Fairy-Stockfish has built in, or that a file has.

    ini: a file in the format of Fairy-Stockfish's `variants.ini`. positions: compared in random
    games before the kernel is chosen. The work is done in a child process, since crafted positions
    may kill it.

    Raises UnknownNameError for a name that Fairy-Stockfish does not have, SpecError with the line
    of a mistake in the file.
    """
    text = None
    if ini is not None:
        text = read_text(ini, "a file of Fairy-Stockfish's variants")
        if name not in (known := read_ini(text, str(ini))):
            raise UnknownNameError(f"variant of {ini}", name, known)
    FairyVariant(name, ini=text)
    try:
        return in_child(_derive, name, text, positions, seed)
    except BrokenProcessPool:
        return Derivation(name, failure="Fairy-Stockfish's process died while it was probed")


def _derive(name: str, ini: str | None, positions: int, seed: int) -> Derivation:
    found = Derivation(name)
    try:
        tree, missing = draft(name, ini, found.notes)
    except VariantAIError as error:
        found.failure = str(error)
        return found
    found.why_fairy = "; ".join(missing) or _kernel_fails(tree, positions, seed)
    if not found.why_fairy:
        found.tree, found.engine = _with_symmetry(tree), "kernel"
        return found
    for child in drafts_with_parents(tree):
        why = _kernel_fails(child, positions, seed)
        if not why:
            kept = [note for note in found.notes if not note.startswith(FROM_PARENT)]
            return Derivation(name, child, "kernel", notes=kept)
        if why.startswith(ENDS_DIFFER) and not found.why_fairy.startswith(ENDS_DIFFER):
            found.why_fairy = why  # all its moves are right
    try:
        found.tree = draft_for_fairy(tree, seed, found.notes)
        found.engine = "fairy"
    except VariantAIError as error:
        found.failure = str(error)
    return found


def _kernel_fails(tree: Words, positions: int, seed: int) -> str:
    """Return why the kernel does not play a draft as Fairy-Stockfish does; empty if it does."""
    try:
        spec = read_tree(tree)
        missing = missing_words(spec)
        if missing:
            return ", ".join(missing)
        report = check_rules(spec, positions, seed, isolated=False)
        if not report.agrees:
            return report.first_difference
        games = max(6, positions // 60)
        ends = check_game_ends(spec, games, seed, max_plies=60)
        if "insufficient material" in ends.first_difference and tree.get("rules", {}).pop(
            DEAD, None
        ):
            # a variant in which some material never draws
            ends = check_game_ends(read_tree(tree), games, seed, max_plies=60)
        return "" if ends.agrees else f"{ENDS_DIFFER} {ends.first_difference}"
    except VariantAIError as error:
        return str(error)


def _with_symmetry(tree: Words) -> Words:
    """Return the draft with `symmetry: [files]`, so that training mirrors positions; unchanged if left and
    right differ."""
    mirrored = {**tree, "symmetry": ["files"]}
    try:
        read_tree(mirrored)
    except SpecError:
        return tree
    return mirrored


def read_tree(tree: Mapping[str, Any]) -> VariantSpec:
    """Read a draft as a spec. Raises SpecError."""
    return parse_spec(json.dumps(tree), f"<{tree['variant']}>")


# --- drafts that extend a shipped spec -------------------------------------------------------------

# Probing finds the moves of most pieces, but not those of a cannon that avoids cannons or of a palace
# with diagonals. A shipped spec has the words for them.


def drafts_with_parents(tree: Words) -> Iterator[Words]:
    """Yield drafts that extend a shipped spec with rules that probing cannot find, in every combination
    with and without each of these rules. tree: the draft that probing gave."""
    for name, path in builtin_specs().items():
        parent = load_spec(path)
        theirs = parent.rules.model_dump(by_alias=True, exclude_defaults=True)
        given = [word for word in OPTIONAL if word in theirs]
        if not given or not _begins_alike(parent, tree):
            continue
        for kept in product((True, False), repeat=len(given)):
            left_out = [word for word, keep in zip(given, kept, strict=True) if not keep]
            yield _child(name, parent, tree, left_out)


def _begins_alike(parent: VariantSpec, tree: Words) -> bool:
    """Return True if a variant has the board and the first position of a shipped one."""
    size = (tree["board"]["files"], tree["board"]["ranks"])
    home = tree["rules"]["start"].split()[0]
    return size == (parent.board.files, parent.board.ranks) and (
        parent.rules.start.split()[0] == home
    )


def _child(name: str, parent: VariantSpec, tree: Words, left_out: list[str]) -> Words:
    """A spec that extends the shipped one `name`, without some words of its rules."""
    rules: Words = dict.fromkeys(left_out)
    by_points = parent.rules.points is not None and "points" not in left_out
    for word in PROBED:
        mine, theirs = tree["rules"][word], getattr(parent.rules, word)
        if word == "repetition" and by_points:
            mine = {**mine, "otherwise": "draw"}  # which points decide
        if isinstance(theirs, Model):
            same = type(theirs).model_validate_json(json.dumps(mine)) == theirs
        else:
            same = mine == theirs
        if not same:
            rules[word] = mine
    tree = {word: tree[word] for word in COPIED if word in tree}
    return {"spec": 1, "extends": name, **tree, **({"rules": rules} if rules else {})}


# --- the engine fairy ----------------------------------------------------------------------------


def draft_for_fairy(tree: Words, seed: int, notes: list[str]) -> Words:
    """Return a draft for the engine `fairy` in which every move that random games meet has an
    action. Raises SpecError, MoveError if there is none."""
    tree = json.loads(json.dumps(tree))
    tree["rules"]["engine"] = "fairy"
    for piece in tree["pieces"].values():
        if not piece["moves"]:
            _join_zones(piece)
    # words that the engine does not need may contradict each other
    if not _is_playable(tree):
        _leave_rules_to_the_engine(tree)
    if not _is_playable(tree):
        for piece in tree["pieces"].values():  # several kings of a player, for example
            piece.pop("royal", None)
    count = tree["rules"]["no_progress"]
    if count["plies"] != "none":
        count["plies"] += count["plies"] % 2
    for _ in range(MOST_GAPS):
        spec = read_tree(tree)
        gap, unstored = _gap(spec, seed)
        if gap is None:
            if unstored:
                notes.append(UNSTORED)
            return tree
        _close(tree, *gap)
    raise SpecError(f"{tree['variant']}: random games kept meeting moves that the spec cannot say")


def _is_playable(tree: Mapping[str, Any]) -> bool:
    """Return True if a draft is a spec whose start position can be read."""
    try:
        make_rules(read_tree(tree)).position()
    except VariantAIError:
        return False
    return True


def _leave_rules_to_the_engine(tree: Words) -> None:
    """Take away the words that say nothing about which moves can ever exist."""
    for piece in tree["pieces"].values():
        _join_zones(piece)
        for word in ("passant", "faces", "per_file", "drop_mate"):
            piece.pop(word, None)
        piece.get("promotes", {}).pop("must", None)
    tree.pop("castling", None)
    for word in ("insufficient_material", "wins", "shuffle"):
        tree["rules"].pop(word, None)
    tree["input"] = input_planes_of(tree)


def _join_zones(piece: Words) -> None:
    """Move every Betza word of a piece into `moves`: the engine knows the zones."""
    words = [piece["moves"], *piece.pop("from", {}).values()]
    piece["moves"] = "".join(words) or "K"
    piece.pop("within", None)


Gap = tuple[str, int, int, str]
"""Symbol of a piece, displacement, and symbol after promotion (empty if it does not promote)."""


def _gap(spec: VariantSpec, seed: int) -> tuple[Gap | None, bool]:
    """Play random games, and return the first move that has no action, and whether some have more
    than a game store holds."""
    rules, codec = make_rules(spec), MoveCodec(spec)
    rng = random.Random(seed)
    board, unstored = spec.board, False
    for number in range(WALKS):
        game = Game(rules)
        for _ in range(WALK_PLIES):
            if game.outcome() is not None:
                break
            legal: list[int] = game.legal_moves().tolist()
            for move in legal:
                try:
                    codec.encode(game.position, move)
                except MoveError as error:
                    if "but not stored" in str(error):
                        unstored = True
                        continue
                    kind = rules.types.all[
                        piece_type(int(game.position["board"][0, move_origin(move)]))
                    ]
                    a, b = (
                        seen_by(s, game.side, board) for s in (move_origin(move), move_target(move))
                    )
                    to = ""
                    if move_kind(move) == PROMOTION:
                        to = rules.types.all[move_argument(move)].base
                    dx = b % board.files - a % board.files
                    dy = b // board.files - a // board.files
                    return (kind.base, dx, dy, to), unstored
            style = "special" if number % 2 else "any"
            game.push(random_move(rules, game.position, legal, style, rng))
    return None, unstored


def _close(tree: Words, symbol: str, dx: int, dy: int, to: str) -> None:
    """Give a piece a displacement, or a promotion, that it was seen to have."""
    piece = tree["pieces"][symbol]
    everywhere = f"rank 1-{tree['board']['ranks']}"
    if to:
        promotes = piece.setdefault("promotes", {"at": everywhere, "to": []})
        promotes.pop("must", None)
        promotes["at"] = everywhere
        if isinstance(promotes["to"], list) and to not in promotes["to"]:
            promotes["to"].append(to)
            return
    if (dx, dy) == (0, 0):
        tree["policy"] = ["derived", "pass"]
        return
    length = max(abs(dx), abs(dy))
    straight = 0 in (dx, dy) or abs(dx) == abs(dy)
    if straight and length > LONGEST_LEAP:  # as a ride: it allows shorter moves, which does no harm
        movement = Movement(dx // length, dy // length, length, True, True)
    else:
        movement = Movement(dx, dy, 1, True, True)
    word = write_betza([movement])
    if word in piece["moves"]:
        raise SpecError(f"{symbol} moves by {word}, which has no action")
    piece["moves"] += word
