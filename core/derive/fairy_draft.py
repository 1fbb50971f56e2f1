"""Drafts for the engine `fairy`: words for every move that random games meet.

The engine knows the rules; its spec must say which moves exist, since policy planes and the codes of
game stores follow from the pieces' words.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from variant_ai.core.derive.betza_writer import write_betza
from variant_ai.core.derive.spec_draft import input_planes_of
from variant_ai.core.encoding.move_codes import MoveCodec
from variant_ai.core.errors import MoveError, SpecError, VariantAIError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.position import (
    PROMOTION,
    move_argument,
    move_kind,
    move_origin,
    move_target,
    piece_type,
    view,
)
from variant_ai.core.spec.betza import Movement
from variant_ai.core.spec.loader import parse_spec
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.testing.random_games import random_move

WALKS, WALK_PLIES = 3, 60
"""Random games in which every move must have an action, and their length."""
MOST_GAPS = 60
LONGEST_LEAP = 3
"""Greatest length of a straight leap that has a letter in Betza notation."""
UNSTORED = "games can be played but not stored: moves also place walls or drop promoted pieces"


def read_tree(tree: Mapping[str, Any]) -> VariantSpec:
    """Read a draft as a spec. Raises SpecError."""
    return parse_spec(json.dumps(tree), f"<{tree['variant']}>")


def draft_for_fairy(tree: dict[str, Any], seed: int, notes: list[str]) -> dict[str, Any]:
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
    if tree["rules"]["no_progress"]["plies"] != "none":
        tree["rules"]["no_progress"]["plies"] += tree["rules"]["no_progress"]["plies"] % 2
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


def _leave_rules_to_the_engine(tree: dict[str, Any]) -> None:
    """Take away the words that say nothing about which moves can ever exist."""
    for piece in tree["pieces"].values():
        _join_zones(piece)
        for word in ("passant", "faces", "per_file", "drop_mate"):
            piece.pop(word, None)
        piece.get("promotes", {}).pop("must", None)
    tree.pop("castling", None)
    for word in ("insufficient_material", "wins"):
        tree["rules"].pop(word, None)
    tree["input"] = input_planes_of(tree)


def _join_zones(piece: dict[str, Any]) -> None:
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
                    if "cannot be stored" in str(error) or "but not stored" in str(error):
                        unstored = True
                        continue
                    kind = rules.types.all[
                        piece_type(int(game.position["board"][0, move_origin(move)]))
                    ]
                    a, b = (
                        view(s, game.side, board.files, board.ranks, board.sides)
                        for s in (move_origin(move), move_target(move))
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


def _close(tree: dict[str, Any], symbol: str, dx: int, dy: int, to: str) -> None:
    """Give a piece a displacement, or a promotion, that it was seen to have."""
    piece = tree["pieces"][symbol]
    everywhere = f"rank 1-{tree['board']['ranks']}"
    if to:
        promotes = piece.setdefault("promotes", {"at": everywhere, "to": []})
        promotes.pop("must", None)
        promotes["at"] = everywhere
        if to not in promotes["to"]:
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
