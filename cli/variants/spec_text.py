"""Specs as text: pieces and rules in sentences, boards with indices, YAML, and differences."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.spec.betza import Movement
    from variant_ai.core.spec.rule_words import Piece, Promotes, Win, Zone
    from variant_ai.core.spec.schema import VariantSpec

IN_LINES = ("pieces", "rules", "input", "policy", "drawing")
"""Keys whose items are written on a line each."""
WIDTH = 120

_LEAPS = {
    (0, 1): "one step straight",
    (1, 1): "one step diagonally",
    (0, 2): "two steps straight",
    (1, 2): "a knight's leap",
    (2, 2): "two steps diagonally",
    (0, 3): "three steps straight",
    (3, 3): "three steps diagonally",
}
_RIDES = {
    (0, 1): "straight",
    (1, 1): "diagonally",
    (1, 2): "by knight's leaps in line",
}


def moves_in_words(text: str) -> str:
    """Describe a Betza word: `fmWfcF` is `one step straight (N) without capture; ...`."""
    from variant_ai.core.spec.betza import parse_betza

    groups: dict[tuple[Any, ...], list[Movement]] = {}
    for move in parse_betza(text):
        shape = (min(abs(move.dx), abs(move.dy)), max(abs(move.dx), abs(move.dy)))
        key = (shape, move.reach, move.quiet, move.capture, move.lame, move.hop)
        groups.setdefault(key, []).append(move)
    return "; ".join(_group(key, moves) for key, moves in groups.items())


def _group(key: tuple[Any, ...], moves: list[Movement]) -> str:
    shape, reach, quiet, capture, lame, hop = key
    if reach == 1:
        words = [_LEAPS.get(shape, f"a leap of {shape[0]} and {shape[1]}")]
    else:
        far = "any number of steps" if reach == 0 else f"up to {counted(reach, 'step')}"
        words = [f"{far} {_RIDES.get(shape, f'by leaps of {shape[0]} and {shape[1]}')}"]
    directions = {(m.dx, m.dy) for m in moves}
    if len(directions) < (8 if shape[0] not in (0, shape[1]) else 4):
        words.append(f"({', '.join(_direction(dx, dy) for dx, dy in sorted(directions))})")
    if hop:
        words.append("over exactly one piece" + (" to just behind it" if hop == "behind" else ""))
    if lame:
        words.append("if nothing stands in its way")
    if not capture:
        words.append("without capture")
    elif not quiet:
        words.append("to capture")
    return " ".join(words)


def _direction(dx: int, dy: int) -> str:
    from variant_ai.core.spec.plane_layout import step_name

    if dx == 0 or dy == 0 or abs(dx) == abs(dy):
        length = max(abs(dx), abs(dy))
        dx, dy = dx // length, dy // length
    return step_name(dx, dy)


def zone_in_words(zone: Zone | bool) -> str:
    """Text of a zone as in the spec; True is anywhere, False nowhere."""
    if isinstance(zone, bool):
        return "anywhere" if zone else "nowhere"
    return zone if isinstance(zone, str) else " ".join(zone)


def piece_notes(spec: VariantSpec, piece: Piece) -> Iterator[str]:
    """Describe the properties of a piece other than its moves."""
    if piece.royal:
        yield "royal"
    if piece.within is not None:
        yield f"never leaves {zone_in_words(piece.within)}"
    for zone, word in piece.from_.items():
        yield f"in {zone} also {moves_in_words(word)}"
    if piece.avoids is not None:
        yield f"neither captures {piece.avoids} nor jumps over it"
    if piece.faces is not None:
        yield f"may not face {piece.faces} on an open line"
    if piece.passant:
        yield "captures en passant"
    if piece.promotes is not None:
        yield _promotion(piece.promotes)
    if spec.hands is not None and not piece.royal and piece.drop is not True:
        yield f"dropped on {zone_in_words(piece.drop)}"
    if piece.per_file is not None:
        yield f"no drop on a file with {piece.per_file} of them"
    if not piece.drop_mate:
        yield "its drop may not give mate"
    if piece.also is not None:
        yield f"also read as {piece.also}"


def _promotion(promotes: Promotes) -> str:
    choices = promotes.to if isinstance(promotes.to, str) else " ".join(promotes.to)
    if promotes.second:
        choices += f" (the second player to {' '.join(promotes.second)})"
    how = "on" if promotes.on == "to" else "entering, leaving or moving in"
    if promotes.must is True:
        forced = ", always"
    elif promotes.must is False:
        forced = ", optionally"
    elif promotes.must == "where stuck":
        forced = ", always if it could not move again"
    else:
        forced = f", always on {zone_in_words(promotes.must)}"
    return f"promotes {how} {zone_in_words(promotes.at)} to {choices}{forced}"


def rules_in_words(spec: VariantSpec) -> Iterator[str]:
    """Describe the rules without the pieces, in a sentence each."""
    rules = spec.rules
    if rules.checkmate != "loss":
        yield f"Checkmate is a {rules.checkmate} for the side in check."
    if rules.stalemate == "fewer pieces win":
        yield "After stalemate the side with fewer pieces on the board wins."
    elif rules.stalemate != "draw":
        yield f"Stalemate is a {rules.stalemate} for the side that cannot move."
    else:
        yield "Stalemate is a draw."
    yield from _repetition(spec)
    count = rules.no_progress
    if count.plies == "none":
        yield "No move count ends the game."
    else:
        checks = (
            ""
            if count.checks_counted == "all"
            else f"; of a side's checks only {count.checks_counted} count"
        )
        resets = ", ".join(f"moves of {e}" if e in spec.pieces else e for e in count.reset)
        drawn = "drawn" if rules.points is None else "decided by points"
        yield (
            f"The game is {drawn} after {counted(count.plies, 'ply')} without progress "
            f"(progress: {resets}{checks})."
        )
    for win in rules.wins:
        yield f"A side wins by {_win(win)}."
    if rules.captures == "must":
        yield "Captures are forced."
    if rules.checks == "never":
        yield "No move may give check."
    if rules.checks == "ignored":
        yield "There are no checks."
    if rules.checked_king == "only captures":
        yield "A king in check may only capture the piece that gives it."
    if rules.pass_ == "may":
        result = "as a draw" if rules.points is None else "and points decide it"
        yield f"A player who is not in check may pass; two passes in a row end the game, {result}."
    if rules.facing_kings == "must part":
        yield "A player between facing kings must part them, or pass, which ends the game."
    if rules.points is not None:
        points = ", ".join(f"{letter} {n:g}" for letter, n in rules.points.pieces.items())
        if rules.points.second:
            points += f"; the second player has {rules.points.second:g} more"
        yield f"The points of pieces on the board: {points}."
    if rules.explodes:
        yield "A capture explodes."
    if rules.insufficient_material:
        yield "A position in which neither side can ever mate is a draw."
    if rules.bare_king != "none":
        yield f"A bare king is a {rules.bare_king}."
    if rules.counting != "none":
        yield f"Moves are counted as in {rules.counting}."
    if spec.hands is not None and spec.hands.captured == "leaves the game":
        held = any(map(str.isalpha, rules.start.split()[0].partition("[")[2]))
        given = "at the start" if held else "that a FEN gives"
        yield f"Pieces in hand {given} ({' '.join(spec.hands.order)}) may be dropped."
    elif spec.hands is not None:
        promoted = {"reverts": "reverts to what it was", "keeps": "keeps its kind"}
        yield (
            f"Captured pieces go to the captor's hand ({' '.join(spec.hands.order)}); "
            f"a promoted one {promoted.get(spec.hands.promoted, spec.hands.promoted)}."
        )
    for side, walk in spec.castling.items():
        yield f"Castling {side}: king {walk.king}, rook {walk.rook}."


def _repetition(spec: VariantSpec) -> Iterator[str]:
    rule = spec.rules.repetition
    drawn = "draw" if spec.rules.points is None else "decided by points"
    result = drawn if rule.otherwise == "draw" else rule.otherwise
    yield f"Occurrence {rule.fold} of a position ends the game: {result}."
    if rule.perpetual_check != "draw":
        yield "Perpetual check loses for the side that gives it."
    if rule.forbids_chases:
        yield f"Perpetual chase loses for the side that chases ({rule.perpetual_chase} rules)."


def _win(win: Win) -> str:
    """Describe an item of `wins`."""
    from variant_ai.core.spec.rule_words import ALL_PIECES, letters_in_words

    if win.checks is not None:
        return f"giving {win.checks} checks"
    gone = win.extinct or win.lost
    if gone is not None:
        which = letters_in_words(gone, "or")
        if gone == ALL_PIECES:
            left = f"at most {counted(win.left, 'piece')}" if win.left else "no pieces"
        else:
            left = f"at most {win.left} {which}" if win.left else f"no {which}"
        return f"leaving the other side {left}" if win.extinct else f"having {left} left"
    assert win.piece is not None  # a new kind of win needs words here
    assert win.reaches is not None
    piece = "any piece" if win.piece == ALL_PIECES else letters_in_words(win.piece, "or")
    safely = " if it is not attacked there" if win.safe else ""
    race = " (a draw if the second player follows at once)" if win.race else ""
    held = " and keeping it there through the reply" if win.held else ""
    return f"bringing {piece} to {zone_in_words(win.reaches)}{safely}{race}{held}"


def board_drawing(spec: VariantSpec, colour: int) -> str:
    """Draw the board as a player sees it, each square with its index `row * files + file`.

    Row 0, the player's own first rank, is at the bottom. The names of ranks and files are absolute,
    so they show how the board is turned.
    """
    from variant_ai.core.spec.zones import seen_by

    board = spec.board
    files, ranks = board.files, board.ranks
    width = len(str(board.squares - 1)) + 1

    def real(index: int) -> int:
        return seen_by(index, colour, board)

    lines = []
    for row in reversed(range(ranks)):
        rank = real(row * files) // files + 1
        cells = "".join(f"{row * files + file:>{width}}" for file in range(files))
        lines.append(f"{rank:>4} |{cells}   row {row}")
    names = "".join(f"{chr(97 + real(file) % files):>{width}}" for file in range(files))
    lines += [f"     +{'-' * (files * width)}", f"      {names}"]
    return "\n".join(lines)


# --- YAML ----------------------------------------------------------------------------------------


def written_out(spec: VariantSpec, path: Path) -> dict[str, Any]:
    """Return the words of a spec merged with those it extends."""
    from variant_ai.core.spec.files.yaml_reader import plain_values
    from variant_ai.core.spec.inheritance import read_spec_file

    tree = plain_values(read_spec_file(path))
    if not spec.symmetry:  # the parent's may be left out
        tree.pop("symmetry", None)
    return {"spec": 1, "variant": spec.variant, **tree}


def as_yaml(tree: dict[str, Any]) -> str:
    """Return a spec as YAML text with a line for each piece, rule and plane, like the shipped
    specs."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    def flow(value: Any) -> Any:
        found: CommentedMap | CommentedSeq
        if isinstance(value, dict):
            found = CommentedMap({key: flow(inner) for key, inner in value.items()})
        elif isinstance(value, list):
            found = CommentedSeq([flow(inner) for inner in value])
        else:
            return value
        found.fa.set_flow_style()
        return found

    def block(value: Any) -> Any:
        if isinstance(value, dict):
            return CommentedMap({key: flow(inner) for key, inner in value.items()})
        return CommentedSeq([flow(inner) for inner in value])

    top = {}
    for key, value in tree.items():
        in_lines = key in IN_LINES and isinstance(value, dict | list)
        top[key] = block(value) if in_lines else flow(value)
    yaml = YAML()
    yaml.width = WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = io.StringIO()
    yaml.dump(top, text)
    return text.getvalue()


def difference_lines(found: Iterable[tuple[str, Any, Any]]) -> Iterator[str]:
    """Yield `word`, then `- value` of the first spec and `+ value` of the second."""
    before = ""
    for path, one, other in found:
        if path != before:
            yield path
        before = path
        for mark, value in (("-", one), ("+", other)):
            if value is not None:
                yield f"  {mark} {_in_line(value)}"


def _in_line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
