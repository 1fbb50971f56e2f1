"""Checks that need several words of a spec; each issue knows the path of the word that causes
it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from variant_ai.core.errors import FenError, SpecError, unknown
from variant_ai.core.spec.betza import parse_betza
from variant_ai.core.spec.catalogue import unknown_fairy_variant
from variant_ai.core.spec.files.fairy_ini import read_ini
from variant_ai.core.spec.issues import (
    Issue,
    Issues,
    Path,
    betza_issues,
    listed_twice,
    unknown_keys,
    unknown_pieces,
    unknown_words,
    zone_issues,
)
from variant_ai.core.spec.plane_checks import check_input, check_policy, check_symmetry
from variant_ai.core.spec.plane_layout import all_promotion_choices, promotion_choices
from variant_ai.core.spec.rule_words import (
    ALL_PIECES,
    MAX_PIECE_TYPES,
    Hands,
    Piece,
    letters_of,
    may_win_otherwise,
)
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import (
    WALL,
    board_cells,
    check_castling,
    check_home,
    check_shuffle,
    royal_letters,
    start_array,
)
from variant_ai.core.spec.zones import reads_as_zone, seen_by, zone_squares
from variant_ai.specs.names import FAIRY_NAMES

_SYMBOL = re.compile(r"\+?[A-Z]\Z")
_LETTER = re.compile(r"[A-Z]\Z")
_PATH = re.compile(r"[Mm][MmLlHhVvCcSsQqTtAaZz0-9., +-]*\Z")
"""Path of a figure; nothing else gets into a picture."""
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\Z")
_RETURNS = re.compile(r"returns as (.+)\Z")
_WIN_WORDS = ("piece", "reaches", "checks", "extinct", "lost", "left", "safe", "race", "held")
_WIN_ITEMS = (
    ["piece", "reaches"], ["piece", "reaches", "safe"], ["piece", "reaches", "race"],
    ["piece", "reaches", "held"],
    ["checks"], ["extinct"], ["extinct", "left"], ["lost"], ["lost", "left"],
)  # fmt: skip
WINS = (
    "`{piece: K, reaches: rank 8}` (with or without one of `safe: true`, `race: true` and `held: true`), `{checks: 3}`, `{extinct: K}`, "
    "`{extinct: all pieces}`, `{lost: K}`, `{lost: all pieces}` (the last four with or without "
    "`left: 1`)"
)


def check(spec: VariantSpec) -> list[Issue]:
    """Return the issues of a spec; a check is made only if the ones before it found none."""
    for stage in (
        _check_pieces,
        _check_rules,
        _check_passant,
        _check_promotion_zones,
        _check_wins,
        _check_chases,
        check_home,
        check_input,
        check_policy,
        check_symmetry,
        _check_gains,
        _check_drawing,
    ):
        issues = list(stage(spec))
        if issues:
            return issues
    return []


def _check_chases(spec: VariantSpec) -> Issues:
    """Check that somebody can judge chases: the rules engine of a plugin, or Fairy-Stockfish."""
    repetition, rules = spec.rules.repetition, spec.rules
    if repetition.forbids_chases and spec.fairy is None and rules.engine in ("kernel", "fairy"):
        yield (
            ("rules", "repetition", "perpetual_chase"),
            f"chases ({repetition.perpetual_chase}) are judged by Fairy-Stockfish, by the rules of the "
            "variant that `fairy:` names, and there is none; accepted without it: none",
        )


def _check_pieces(spec: VariantSpec) -> Issues:
    """Check zones, symbols and moves."""
    for name, zone in spec.board.zones.items():
        path: Path = ("board", "zones", name)
        if reads_as_zone(name):
            message = f"{name!r} already has a meaning; accepted: any other name, such as camp"
            yield path, message
        yield from zone_issues(spec, path, zone)
    twins = spec.hands is not None and spec.hands.promoted.startswith("returns as ")
    count = len(spec.pieces) + (len(all_promotion_choices(spec)) if twins else 0)
    if count > MAX_PIECE_TYPES:
        message = f"{count} piece types, promoted ones counted; at most {MAX_PIECE_TYPES} fit"
        yield ("pieces",), message
    letters = {symbol: symbol for symbol in spec.pieces}
    for symbol, piece in spec.pieces.items():
        if piece.also in letters:
            message = f"letter {piece.also!r} is used by {letters[piece.also]} already"
            yield ("pieces", symbol, "also"), message
        elif piece.also is not None:
            letters[piece.also] = symbol
    for symbol in spec.pieces:
        yield from _piece_issues(spec, symbol)
        yield from _promotion_issues(spec, symbol)


def _piece_issues(spec: VariantSpec, symbol: str) -> Issues:
    """Check the words of one piece, without its promotion."""
    piece, path = spec.pieces[symbol], ("pieces", symbol)
    if not _SYMBOL.match(symbol):
        yield (
            path,
            f"{symbol!r} is not a piece symbol; accepted: one capital letter, or "
            "`+` and one capital letter for a promoted piece",
        )
    if piece.also is not None and not _LETTER.match(piece.also):
        message = f"{piece.also!r} is not a letter of a FEN; accepted: one capital letter"
        yield (*path, "also"), message
    yield from betza_issues((*path, "moves"), piece.moves)
    for zone, moves in piece.from_.items():
        yield from zone_issues(spec, (*path, "from", zone), zone)
        yield from betza_issues((*path, "from", zone), moves)
    yield from zone_issues(spec, (*path, "within"), piece.within)
    yield from zone_issues(spec, (*path, "drop"), piece.drop)
    avoided = spec.pieces.get(piece.avoids) if piece.avoids is not None else None
    if piece.avoids is not None and (avoided is None or avoided.royal):
        others = [letter for letter, other in spec.pieces.items() if not other.royal]
        yield (*path, "avoids"), unknown("piece that is not royal", piece.avoids, others)
    if piece.faces is not None and (piece.faces != symbol or not piece.royal):
        yield (
            (*path, "faces"),
            f"{piece.faces!r}; accepted: {symbol} on a royal piece, if the two may not face "
            "each other on an open file",
        )


def _promotion_issues(spec: VariantSpec, symbol: str) -> Issues:
    """Check the zones of a promotion, and reject choices that are the piece itself, royal, listed
    twice, or a second `+`."""
    promotes, path = spec.pieces[symbol].promotes, ("pieces", symbol, "promotes")
    if promotes is None:
        return
    if spec.pieces[symbol].royal:
        yield path, f"{symbol} is royal and cannot promote; remove `promotes`"
    yield from zone_issues(spec, (*path, "at"), promotes.at)
    if promotes.must != "where stuck":
        yield from zone_issues(spec, (*path, "must"), promotes.must)
    if promotes.to == "captured pieces":
        if promotes.second:
            message = "each player's choices are the pieces that he lost; remove `second`"
            yield (*path, "second"), message
        return
    if not promotes.to:
        yield (*path, "to"), "an empty list; accepted: pieces, or `captured pieces`"
    for word, to in (("to", promotes.to), ("second", promotes.second)):
        yield from unknown_pieces(spec, (*path, word), to)
        yield from listed_twice((*path, word), to)
        for i, letter in enumerate(to):
            if letter == symbol:
                message = f"{letter} would promote to itself; accepted: another piece"
                yield (*path, word, i), message
            elif letter in spec.pieces and spec.pieces[letter].royal:
                message = f"{letter} is royal, and a player has one royal piece"
                yield (*path, word, i), f"{message}; accepted: another piece"
            elif letter.startswith("+") and any(o.startswith("+") and o != letter for o in to[:i]):
                message = f"{letter} is a second choice with `+`, which moves would write for both"
                yield (*path, word, i), f"{message}; accepted: one, and others with a letter"


def _check_wins(spec: VariantSpec) -> Issues:
    """Check that every item of `wins` is one way to win, and that someone can win at all."""
    rules = spec.rules
    royal = royal_letters(spec)
    no_checks = "there are no checks: no piece has `royal: true`"
    for i, win in enumerate(rules.wins):
        path: Path = ("rules", "wins", i)
        given = [key for key in _WIN_WORDS if getattr(win, key) not in (None, False)]
        if given not in _WIN_ITEMS:
            yield path, f"{', '.join(given) or 'nothing'} given; an item is one of {WINS}"
        elif win.checks and not royal and rules.engine == "kernel":
            yield (*path, "checks"), no_checks
        elif win.race and "colour" not in spec.input:
            message = "both players go to the same squares, which a net cannot see without `colour`"
            yield ("input",), f"{message} (rules.wins: `race: true`)"
    for word, unusual in (
        ("checks", rules.checks == "never"),
        ("checked_king", rules.checked_king != "may move"),
        ("checkmate", rules.checkmate != "loss"),
    ):
        if unusual and not royal and rules.engine == "kernel":
            yield ("rules", word), no_checks
    for letter, piece in spec.pieces.items():
        becomes = {letter, *promotion_choices(spec, letter)} if piece.promotes else set()
        if rules.explodes and not royal.isdisjoint(becomes):
            message = "a player loses if the king explodes, so each has one; accepted: other pieces"
            yield ("pieces", letter, "promotes"), message
    if rules.checks == "ignored" and not rules.explodes:
        message = "'ignored' is about kings that may explode; without `explodes: true` and without a royal piece"
        yield ("rules", "checks"), f"{message} there are no checks anyway; accepted: 'may'"
    if rules.checks == "ignored" and any(piece.royal for piece in spec.pieces.values()):
        message = "'ignored', but a piece has `royal: true`; accepted: 'may', or no royal piece"
        yield ("rules", "checks"), message
    at_home = royal & {symbol for _, symbol in start_array(spec).values()}
    decided = may_win_otherwise(rules)
    mates = at_home and rules.checkmate != "draw"
    if not mates and not rules.wins and not decided and rules.engine == "kernel":
        yield (
            ("rules", "wins"),
            "nobody can win: no piece of the start position is royal, or mate is a draw, there are no "
            f"`wins`, and stalemate is a draw; accepted: `royal: true` on a piece, `wins` of {WINS}, or "
            "another `stalemate`",
        )


def _pass_issues(spec: VariantSpec) -> Issues:
    """Check what passes, facing kings and points need."""
    rules = spec.rules
    has_plane = spec.policy != "derived" and "pass" in spec.policy
    royal = any(piece.royal for piece in spec.pieces.values())
    if rules.pass_ == "may" and not has_plane:
        message = "`pass: may` needs an action in the policy; accepted: such as `[derived, pass]`"
        yield ("policy",), message
    if rules.pass_ == "may" and not royal and rules.engine == "kernel":
        message = (
            "a pass is written as a move of the king to its own square; accepted: a royal piece"
        )
        yield ("rules", "pass"), message
    if rules.facing_kings == "must part" and rules.pass_ == "never":
        message = "'must part', but without `pass: may` a player who cannot part them has no move"
        yield ("rules", "facing_kings"), f"{message}; accepted: 'may stay'"
    if rules.counting != "none" and any(piece.passant for piece in spec.pieces.values()):
        message = "a FEN has one field for the count and for en passant; accepted: none"
        yield ("rules", "counting"), f"{message}, or no `passant`"
    if rules.points is not None:
        yield from unknown_keys(spec, ("rules", "points", "pieces"), rules.points.pieces)
        if rules.counting != "none":
            message = "a count ends as a draw, which `points` does not decide; accepted: none"
            yield ("rules", "counting"), message
        if rules.insufficient_material:
            message = (
                "with `points` no game is drawn because neither side can mate; accepted: false"
            )
            yield ("rules", "insufficient_material"), message


def _check_rules(spec: VariantSpec) -> Issues:
    """Check the words of rules, castling, hands, start position and training."""
    if spec.fairy_ini is not None:
        yield from _ini_issues(spec, spec.fairy_ini)
    elif spec.fairy is not None and spec.fairy not in FAIRY_NAMES:
        yield ("fairy",), unknown_fairy_variant(spec.fairy, spec.variant)
    yield from check_castling(spec)
    yield from check_shuffle(spec)
    yield from _pass_issues(spec)
    if spec.hands is not None:
        yield from _hand_issues(spec, spec.hands)
    rules = spec.rules
    path: Path = ("rules", "no_progress", "reset")
    words = ["captures", "drops", "promotions", *spec.pieces]
    yield from unknown_words(path, "event", rules.no_progress.reset, words)
    yield from listed_twice(path, rules.no_progress.reset, "event")
    other_wins = {
        "hands": spec.hands is not None,
        "`wins`": bool(rules.wins),
        "`bare_king: loss`": rules.bare_king == "loss",
        f"`stalemate: {rules.stalemate}`": rules.stalemate != "draw",
    }
    if rules.insufficient_material and any(other_wins.values()):
        other = next(name for name, given in other_wins.items() if given)
        message = f"with {other} any material may win; accepted: false"
        yield ("rules", "insufficient_material"), message
    for i, win in enumerate(rules.wins):
        path = ("rules", "wins", i)
        for key, word in (("piece", win.piece), ("extinct", win.extinct), ("lost", win.lost)):
            letters = letters_of(word, spec.pieces)
            if word == ():
                yield (*path, key), f"an empty list; accepted: pieces, or `{ALL_PIECES}`"
            elif isinstance(word, tuple):
                yield from unknown_pieces(spec, (*path, key), letters)
                yield from listed_twice((*path, key), letters)
            elif any(letter not in spec.pieces for letter in letters):
                yield (*path, key), unknown("piece", letters[0], [*spec.pieces, ALL_PIECES])
        yield from zone_issues(spec, (*path, "reaches"), win.reaches)
    yield from _start_issues(spec)
    if spec.training.lr_min > spec.training.lr_max:
        yield ("training", "lr_min"), "lr_min is greater than lr_max"
    low, high = spec.training.momentum
    if not 0 <= low <= high < 1:
        yield ("training", "momentum"), "accepted: [low, high] with 0 <= low <= high < 1"


def _ini_issues(spec: VariantSpec, text: str) -> Issues:
    """Check that the file of variants can be read, and has the one that the spec names."""
    try:
        names = list(read_ini(text))
    except SpecError as error:
        yield ("fairy_ini",), str(error)
        return
    if spec.fairy not in names:
        yield ("fairy",), unknown("variant of the ini file", spec.fairy or "", names)


def _hand_issues(spec: VariantSpec, hands: Hands) -> Issues:
    """Check the pieces in hand, and what becomes of captured promoted pieces."""
    yield from unknown_pieces(spec, ("hands", "order"), hands.order)
    yield from listed_twice(("hands", "order"), hands.order)
    path: Path = ("hands", "promoted")
    returns = _RETURNS.match(hands.promoted)
    if returns is not None and returns[1] not in spec.pieces:
        yield path, unknown("piece", returns[1], list(spec.pieces))
    elif hands.captured == "leaves the game":
        return
    elif returns is not None:
        if returns[1] not in hands.order:
            message = f"{returns[1]}, as which promoted pieces return, is missing"
            yield ("hands", "order"), message
        elif any(p.promotes and p.promotes.to == "captured pieces" for p in spec.pieces.values()):
            message = "which pieces have promoted is not known with `to: captured pieces`"
            yield path, f"{message}; accepted: `keeps`"
    elif hands.promoted == "reverts":
        yield from _revert_issues(spec, hands)
    elif hands.promoted != "keeps":
        accepted = "`returns as P` (a piece), `reverts`, `keeps`"
        yield path, f"{hands.promoted!r}; accepted: {accepted}"


def _revert_issues(spec: VariantSpec, hands: Hands) -> Issues:
    """Check that the letter of a captured piece determines what it promoted from."""
    origins: dict[str, str] = {}
    for symbol in spec.pieces:
        for choice in promotion_choices(spec, symbol):
            if choice in hands.order:
                message = f"{symbol} promotes to {choice}, which is in `order` itself"
            elif origins.setdefault(choice, symbol) != symbol:
                message = f"a {choice} may have been {origins[choice]} or {symbol}"
            else:
                continue
            accepted = f"accepted: `returns as {symbol}`, `keeps`"
            yield ("hands", "promoted"), f"`reverts`, and {message}; {accepted}"
    for again in dict.fromkeys(origins.values()):
        if again in origins and again not in hands.order:
            message = f"{origins[again]} promotes to {again}, which promotes again"
            accepted = f"accepted: `returns as {origins[again]}`, `keeps`"
            yield ("hands", "promoted"), f"`reverts`, and {message}; {accepted}"


def _jumped_squares(spec: VariantSpec, piece: Piece) -> Iterator[int]:
    """Squares, in the player's view, that the piece's double steps jump over."""
    board = spec.board
    everywhere = frozenset(range(board.squares))
    zones = [(everywhere, piece.moves)]
    zones += [(zone_squares(zone, board), word) for zone, word in piece.from_.items()]
    for squares, word in zones:
        if any(move.is_double_step for move in parse_betza(word)):
            yield from {square + board.files for square in squares} & everywhere


def _check_passant(spec: VariantSpec) -> Issues:
    """Check that a piece with `passant` has a lame double step straight ahead, captures by moves
    that are not quiet moves too, and does not promote while it captures en passant."""
    passers = {symbol: piece for symbol, piece in spec.pieces.items() if piece.passant}
    jumped = {s for piece in passers.values() for s in _jumped_squares(spec, piece)}
    # as the other player sees them
    onto = {seen_by(s, 1, spec.board) for s in jumped}
    for symbol, piece in passers.items():
        path: Path = ("pieces", symbol, "passant")
        moves = [m for word in piece.words for m in parse_betza(word)]
        if not jumped:
            message = "no piece with `passant` has a lame double step straight ahead"
            yield path, f"{message}; add one, such as `from: {{rank 2: fmnD}}`"
            return
        if any(m.lame and m.quiet and m.dx and m.dy for m in moves):
            message = f"a lame step of {symbol} is not straight, so no square is jumped over"
            yield path, f"{message}; accepted: double steps straight ahead"
        takes = {(m.dx, m.dy) for m in moves if m.capture and m.reach == 1}
        if takes & {(m.dx, m.dy) for m in moves if m.quiet and m.reach == 1}:
            message = f"{symbol} has the same move with and without capture, so it never captures"
            yield path, f"{message} en passant; remove `passant`"
        promotes = piece.promotes
        if promotes is not None and zone_squares(promotes.at, spec.board) & onto:
            message = f"{symbol} may promote on squares where it captures en passant"
            yield (
                ("pieces", symbol, "promotes", "at"),
                f"{message}; accepted: a zone without these squares, or no `passant`",
            )


def _check_promotion_zones(spec: VariantSpec) -> Issues:
    for symbol, piece in spec.pieces.items():
        promotes = piece.promotes
        if promotes is None or isinstance(promotes.must, bool) or promotes.must == "where stuck":
            continue
        if not zone_squares(promotes.must, spec.board) <= zone_squares(promotes.at, spec.board):
            message = f"{promotes.must!r} has squares that are not in `at`, {promotes.at!r}"
            yield (("pieces", symbol, "promotes", "must"), f"{message}; accepted: a part of it")


def _start_issues(spec: VariantSpec) -> Issues:
    """Check size and letters of the start position; the rules engine checks the rest of the FEN."""
    path: Path = ("rules", "start")
    fields = spec.rules.start.split()
    if len(fields) < 2:
        yield path, "a FEN has at least two fields, the board and the side to move"
        return
    letters = {WALL, *spec.pieces, *(p.also for p in spec.pieces.values() if p.also)}
    try:
        cells = board_cells(fields[0], spec.board.files, spec.board.ranks)
    except FenError as error:
        yield path, str(error)
        return
    for text in cells.values():
        if text.upper().removesuffix("~") not in letters:
            yield path, unknown("piece", text, list(spec.pieces))
            return


def _check_gains(spec: VariantSpec) -> Issues:
    """Check the letters in `piece_gains:`, in `search:` and all sets of settings. The search for material
    lets a side stop capturing, so the word is rejected where captures are forced or explode."""
    forced = spec.rules.explodes or spec.rules.captures == "must"
    sets = {("search",): spec.search} | {("settings", n): s for n, s in spec.settings.items()}
    for path, words in sets.items():
        if words.piece_gains and forced:
            message = "not where captures explode or must be made; accepted: no piece_gains"
            yield (*path, "piece_gains"), message
        yield from unknown_keys(spec, (*path, "piece_gains"), words.piece_gains)


def _check_drawing(spec: VariantSpec) -> Issues:
    drawing = spec.drawing
    yield from zone_issues(spec, ("drawing", "palace"), drawing.palace)
    if drawing.marks:
        yield from zone_issues(spec, ("drawing", "marks"), drawing.marks)
    if drawing.river is not None and drawing.river >= spec.board.ranks:
        message = f"no rank is above rank {drawing.river}; the board has {spec.board.ranks}"
        yield ("drawing", "river"), message
    for word, given in (("glyphs", drawing.glyphs), ("figures", drawing.figures)):
        yield from unknown_keys(spec, ("drawing", word), given)
    for symbol, figure in drawing.figures.items():
        if not _PATH.match(figure):
            message = "not an SVG path; accepted: letters and numbers, as in 'M50 10L80 90H20Z'"
            yield ("drawing", "figures", symbol), message
    for zone in drawing.squares:
        yield from zone_issues(spec, ("drawing", "squares", zone), zone)
    inks = enumerate(drawing.inks or ())
    colours: dict[Path, str] = {("squares", zone): c for zone, c in drawing.squares.items()}
    for path, colour in (colours | {("inks", i): ink for i, ink in inks}).items():
        if not _COLOUR.match(colour):
            yield ("drawing", *path), f"{colour!r} is not a colour; accepted: such as '#b3201b'"
