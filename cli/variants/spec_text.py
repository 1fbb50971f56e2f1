"""A spec in words and drawings: how pieces move, what the rules say, where an index lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variant_ai.core.spec.betza import Movement
    from variant_ai.core.spec.schema import Piece, Promotes, VariantSpec, Zone

_LEAPS = {
    (0, 1): "one step straight",
    (1, 1): "one step diagonally",
    (0, 2): "two steps straight",
    (1, 2): "a knight's leap",
    (2, 2): "two steps diagonally",
    (0, 3): "three steps straight",
    (1, 3): "a leap of 1 and 3",
    (2, 3): "a leap of 2 and 3",
    (3, 3): "three steps diagonally",
}
_RIDES = {
    (0, 1): "straight",
    (1, 1): "diagonally",
    (1, 2): "by knight's leaps in line",
}
_COMPASS = {
    (0, 1): "N",
    (1, 1): "NE",
    (1, 0): "E",
    (1, -1): "SE",
    (0, -1): "S",
    (-1, -1): "SW",
    (-1, 0): "W",
    (-1, 1): "NW",
}


def moves_in_words(text: str) -> str:
    """A Betza word in English: `fmWfcF` is `one step straight (N) without capture; ...`."""
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
        far = "any number of steps" if reach == 0 else f"up to {reach} steps"
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

    sign = ((dx > 0) - (dx < 0), (dy > 0) - (dy < 0))
    straight = dx == 0 or dy == 0 or abs(dx) == abs(dy)
    return _COMPASS[sign] if straight else step_name(dx, dy)


def zone_in_words(zone: Zone | bool) -> str:
    """A zone as the spec writes it; True is everywhere, False nowhere."""
    if isinstance(zone, bool):
        return "anywhere" if zone else "nowhere"
    return zone if isinstance(zone, str) else " ".join(zone)


def piece_notes(spec: VariantSpec, piece: Piece) -> Iterator[str]:
    """What is special about a piece beyond how it moves."""
    if piece.royal:
        yield "royal"
    if piece.within is not None:
        yield f"never leaves {zone_in_words(piece.within)}"
    for zone, word in piece.from_.items():
        yield f"in {zone} also {moves_in_words(word)}"
    if piece.faces is not None:
        yield f"may not face {piece.faces} on an open line"
    if piece.passant:
        yield "captures en passant"
    if piece.promotes is not None:
        yield _promotion(piece.promotes)
    if spec.hands is not None and not piece.royal and piece.drop is not True:
        yield f"dropped on {zone_in_words(piece.drop)}"
    if piece.per_file is not None:
        yield f"no drop where {piece.per_file} stand on the file"
    if not piece.drop_mate:
        yield "its drop may not mate"
    if piece.also is not None:
        yield f"{piece.also} is read too"


def _promotion(promotes: Promotes) -> str:
    choices = promotes.to if isinstance(promotes.to, str) else " ".join(promotes.to)
    whence = "on" if promotes.on == "to" else "entering, leaving or moving in"
    if promotes.must is True:
        forced = ", always"
    elif promotes.must is False:
        forced = ", if it likes"
    elif promotes.must == "where stuck":
        forced = ", always where it could not move on"
    else:
        forced = f", always on {zone_in_words(promotes.must)}"
    return f"promotes {whence} {zone_in_words(promotes.at)} to {choices}{forced}"


def rules_in_words(spec: VariantSpec) -> list[str]:
    """The rules besides the pieces', a sentence each."""
    rules = spec.rules
    said = [
        f"Stalemate is a {rules.stalemate} for the side that cannot move."
        if rules.stalemate != "draw"
        else "Stalemate is a draw."
    ]
    said += list(_repetition(spec))
    count = rules.no_progress
    if count.plies == "none":
        said.append("No move count ends the game.")
    else:
        checks = (
            ""
            if count.checks_counted == "all"
            else f"; of a side's checks only {count.checks_counted} count"
        )
        resets = ", ".join(f"moves of {e}" if e in spec.pieces else e for e in count.reset)
        said.append(
            f"{count.plies} plies without progress are a draw (progress: {resets}{checks})."
        )
    said += [f"A side wins by {_win(win)}." for win in rules.wins]
    if rules.captures == "must":
        said.append("Who can capture must.")
    if rules.explodes:
        said.append("A capture explodes.")
    if rules.insufficient_material:
        said.append("A position in which nobody can ever mate is a draw.")
    if rules.bare_king != "none":
        said.append(f"A bare king is a {rules.bare_king}.")
    if rules.counting != "none":
        said.append(f"Moves are counted as in {rules.counting}.")
    if spec.hands is not None:
        promoted = {"reverts": "reverts to what it was", "keeps": "keeps its kind"}
        said.append(
            f"Captured pieces go to the captor's hand ({' '.join(spec.hands.order)}); "
            f"a promoted one {promoted.get(spec.hands.promoted, spec.hands.promoted)}."
        )
    for side, walk in spec.castling.items():
        said.append(f"Castling {side}: king {walk.king}, rook {walk.rook}.")
    return said


def _repetition(spec: VariantSpec) -> Iterator[str]:
    rule = spec.rules.repetition
    yield f"Occurrence {rule.fold} of a position ends the game: {rule.otherwise}."
    if rule.perpetual_check != "draw":
        yield "Perpetual check loses for who gives it."
    if rule.perpetual_chase != "none":
        yield f"Perpetual chase loses for who chases ({rule.perpetual_chase} rules)."


def _win(win: Any) -> str:
    """One of the further ways to win; unknown ones as the spec writes them."""
    said = win.model_dump(exclude_none=True, exclude_defaults=True)
    if set(said) == {"checks"}:
        return f"giving {win.checks} checks"
    if set(said) in ({"piece", "reaches"}, {"piece", "reaches", "safe"}):
        safely = " where it is not attacked" if win.safe else ""
        return f"bringing {win.piece} to {zone_in_words(win.reaches)}{safely}"
    if set(said) == {"extinct"}:
        return f"leaving the other side without {win.extinct}"
    return ", ".join(f"{key} {value}" for key, value in said.items())


def board_drawing(spec: VariantSpec, colour: int) -> str:
    """The board as a player sees it, each square with its index `row * files + file`.

    Row 0, the player's own first rank, is at the bottom; names of ranks and files are the real
    ones, so the drawing shows how the board is turned.
    """
    from variant_ai.core.rules.position import view

    board = spec.board
    files, ranks = board.files, board.ranks
    width = len(str(files * ranks - 1)) + 1

    def real(index: int) -> int:
        return view(index, colour, files, ranks, board.sides)

    lines = []
    for row in reversed(range(ranks)):
        rank = real(row * files) // files + 1
        cells = "".join(f"{row * files + file:>{width}}" for file in range(files))
        lines.append(f"{rank:>4} |{cells}   row {row}")
    names = "".join(f"{chr(97 + real(file) % files):>{width}}" for file in range(files))
    lines += [f"     +{'-' * (files * width)}", f"      {names}"]
    return "\n".join(lines)


def ranges(numbers: Iterable[int]) -> str:
    """`0-6, 14`: indices in short."""
    listed = sorted(numbers)
    parts: list[str] = []
    while listed:
        end = 0
        while end + 1 < len(listed) and listed[end + 1] == listed[end] + 1:
            end += 1
        parts.append(str(listed[0]) if end == 0 else f"{listed[0]}-{listed[end]}")
        listed = listed[end + 1 :]
    return ", ".join(parts)
