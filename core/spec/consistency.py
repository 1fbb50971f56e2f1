"""Checks that need several words of a spec at once; each issue knows the path of its word."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence

from variant_ai.core.errors import SpecError, unknown
from variant_ai.core.spec.betza import displacements, is_asymmetric, parse_betza
from variant_ai.core.spec.catalogue import unknown_fairy_variant
from variant_ai.core.spec.plane_layout import (
    all_promotion_choices,
    castling_steps,
    clockwise,
    input_planes,
    input_rows,
    policy_planes,
    promotion_choices,
    promotion_steps,
    step_name,
)
from variant_ai.core.spec.schema import (
    MAX_PIECE_TYPES,
    CapturedPlanes,
    CastlingPlanes,
    ChecksPlane,
    DropPlanes,
    HandPlanes,
    PromotedPlane,
    PromotionPlanes,
    VariantSpec,
)
from variant_ai.core.spec.start_position import Issue, Path, check_home, start_array
from variant_ai.core.spec.zones import reads_as_zone, square_of, zone_squares
from variant_ai.specs.names import FAIRY_NAMES

_SYMBOL = re.compile(r"\+?[A-Z]\Z")
_LETTER = re.compile(r"[A-Z]\Z")
_CASTLING_WALK = re.compile(r"[a-z][0-9]+-[a-z][0-9]+\Z")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\Z")
_WIN_WORDS = ("piece", "reaches", "checks", "extinct")
WINS = (
    "`{piece: K, reaches: rank 8}` (with or without `safe: true`), `{checks: 3}`, `{extinct: K}`, "
    "`{extinct: all pieces}`"
)
_RETURNS = re.compile(r"returns as (.+)\Z")


def check(spec: VariantSpec) -> list[Issue]:
    """Every issue of the spec; later checks are made only where earlier ones found nothing."""
    for stage in (
        _check_pieces,
        _check_rules,
        _check_passant,
        _check_promotion_zones,
        _win_issues,
        check_home,
        _check_input,
        _check_policy,
        _check_symmetry,
        _check_drawing,
    ):
        issues = list(stage(spec))
        if issues:
            return issues
    return []


def _zone_issues(spec: VariantSpec, path: Path, zone: object) -> Iterator[Issue]:
    if not isinstance(zone, str | tuple):
        return
    try:
        zone_squares(zone, spec.board)
    except SpecError as error:
        yield Issue(path, str(error))


def _betza_issues(spec: VariantSpec, path: Path, moves: str) -> Iterator[Issue]:
    try:
        parse_betza(moves)
    except SpecError as error:
        yield Issue(path, str(error))


def _unknown_pieces(spec: VariantSpec, path: Path, letters: Iterable[str]) -> Iterator[Issue]:
    for i, letter in enumerate(letters):
        if letter not in spec.pieces:
            yield Issue((*path, i), unknown("piece", letter, list(spec.pieces)))


def _twice(path: Path, letters: Sequence[str]) -> Iterator[Issue]:
    for i, letter in enumerate(letters):
        if letter in letters[:i]:
            yield Issue((*path, i), f"{letter} is listed already; accepted: each piece once")


def _check_pieces(spec: VariantSpec) -> Iterator[Issue]:
    for name, zone in spec.board.zones.items():
        if reads_as_zone(name):
            message = f"{name!r} has a meaning of its own; accepted: any other name, such as camp"
            yield Issue(("board", "zones", name), message)
        yield from _zone_issues(spec, ("board", "zones", name), zone)
    twins = spec.hands is not None and spec.hands.promoted.startswith("returns as ")
    count = len(spec.pieces) + (len(all_promotion_choices(spec)) if twins else 0)
    if count > MAX_PIECE_TYPES:
        message = f"{count} piece types, promoted ones counted; at most {MAX_PIECE_TYPES} fit"
        yield Issue(("pieces",), message)
    letters = {symbol: symbol for symbol in spec.pieces}
    for symbol, piece in spec.pieces.items():
        if piece.also in letters:
            message = f"letter {piece.also!r} is used by {letters[piece.also]} already"
            yield Issue(("pieces", symbol, "also"), message)
        elif piece.also is not None:
            letters[piece.also] = symbol
    for symbol, piece in spec.pieces.items():
        path: Path = ("pieces", symbol)
        if not _SYMBOL.match(symbol):
            yield Issue(
                path,
                f"{symbol!r} is no piece symbol; accepted: one capital letter, or "
                "`+` and one capital letter for a promoted piece",
            )
        if piece.also is not None and not _LETTER.match(piece.also):
            message = f"{piece.also!r} is no letter of a FEN; accepted: one capital letter"
            yield Issue((*path, "also"), message)
        yield from _betza_issues(spec, (*path, "moves"), piece.moves)
        for zone, moves in piece.from_.items():
            yield from _zone_issues(spec, (*path, "from", zone), zone)
            yield from _betza_issues(spec, (*path, "from", zone), moves)
        yield from _zone_issues(spec, (*path, "within"), piece.within)
        yield from _zone_issues(spec, (*path, "drop"), piece.drop)
        if piece.faces is not None and (piece.faces != symbol or not piece.royal):
            message = (
                f"{piece.faces!r}; accepted: {symbol}, on a royal piece: the two may not face each "
                "other on an open file"
            )
            yield Issue((*path, "faces"), message)
        if (promotes := piece.promotes) is not None:
            if piece.royal:
                message = f"{symbol} is royal, and a player without it has none; accepted: no word"
                yield Issue((*path, "promotes"), message)
            yield from _zone_issues(spec, (*path, "promotes", "at"), promotes.at)
            if promotes.must not in ("where stuck", True, False):
                yield from _zone_issues(spec, (*path, "promotes", "must"), promotes.must)
            if promotes.to != "captured pieces":
                yield from _unknown_pieces(spec, (*path, "promotes", "to"), promotes.to)
                yield from _promotion_issues(spec, symbol, promotes.to)


def _promotion_issues(spec: VariantSpec, symbol: str, to: tuple[str, ...]) -> Iterator[Issue]:
    """Choices that are none: the piece itself, a second king, the same again, a second `+`."""
    path: Path = ("pieces", symbol, "promotes", "to")
    if not to:
        message = "an empty list leaves nothing to promote to; accepted: pieces, `captured pieces`"
        yield Issue(path, message)
    for i, letter in enumerate(to):
        if letter == symbol:
            yield Issue((*path, i), f"{letter} would promote to itself; accepted: another piece")
        elif letter in to[:i]:
            yield Issue((*path, i), f"{letter} is listed already; accepted: each piece once")
        elif letter.startswith("+") and any(other.startswith("+") for other in to[:i]):
            message = f"{letter} is a second choice with `+`, and a move says `+` for either"
            yield Issue((*path, i), f"{message}; accepted: one, the others by a letter")
        elif letter in spec.pieces and spec.pieces[letter].royal:
            message = f"{letter} is royal, and nobody has two royal pieces; accepted: another piece"
            yield Issue((*path, i), message)


def _win_issues(spec: VariantSpec) -> Iterator[Issue]:
    """Every item is one way to win, and there is one at all."""
    rules = spec.rules
    royal = {symbol for symbol, piece in spec.pieces.items() if piece.royal}
    for i, win in enumerate(rules.wins):
        path: Path = ("rules", "wins", i)
        given = [key for key in _WIN_WORDS if getattr(win, key) is not None]
        given += ["safe"] if win.safe else []
        if given not in (
            ["piece", "reaches"],
            ["piece", "reaches", "safe"],
            ["checks"],
            ["extinct"],
        ):
            yield Issue(path, f"{', '.join(given) or 'nothing'} given; an item is one of {WINS}")
        elif win.checks and not royal and rules.engine == "kernel":
            message = "nobody can give check: no piece has `royal: true`"
            yield Issue((*path, "checks"), message)
    at_home = royal & {symbol for _, symbol in start_array(spec).values()}
    decided = rules.stalemate != "draw" or rules.repetition.otherwise != "draw"
    if not at_home and not rules.wins and not decided and rules.engine == "kernel":
        yield Issue(
            ("rules", "wins"),
            "nobody can win: no piece of the start position is royal, there are no `wins`, and "
            f"stalemate is a draw; accepted: `royal: true` on a piece, `wins` of {WINS}, or "
            "another `stalemate`",
        )


def _check_rules(spec: VariantSpec) -> Iterator[Issue]:
    if spec.fairy is not None and spec.fairy not in FAIRY_NAMES:
        message = unknown_fairy_variant(spec.fairy, spec.variant)
        yield Issue(("fairy",), message)
    for side, walk in spec.castling.items():
        for who, text in (("king", walk.king), ("rook", walk.rook)):
            path: Path = ("castling", side, who)
            if not _CASTLING_WALK.match(text):
                yield Issue(path, f"{text!r} is no walk of two squares; accepted: 'e1-g1'")
                continue
            for name in text.split("-"):
                try:
                    square_of(name, spec.board)
                except SpecError as error:
                    yield Issue(path, str(error))
    if spec.hands is not None:
        yield from _unknown_pieces(spec, ("hands", "order"), spec.hands.order)
        yield from _twice(("hands", "order"), spec.hands.order)
        returns = _RETURNS.match(spec.hands.promoted)
        if returns is None and spec.hands.promoted not in ("reverts", "keeps"):
            yield Issue(
                ("hands", "promoted"),
                f"{spec.hands.promoted!r}; accepted: `returns as P` (a piece), `reverts`, `keeps`",
            )
        elif returns is not None and returns[1] not in spec.pieces:
            message = unknown("piece", returns[1], list(spec.pieces))
            yield Issue(("hands", "promoted"), message)
        elif spec.hands.promoted == "reverts":
            yield from _revert_issues(spec)
    words = ["captures", "drops", *spec.pieces]
    for i, word in enumerate(spec.rules.no_progress.reset):
        if word not in words:
            yield Issue(("rules", "no_progress", "reset", i), unknown("event", word, words))
        elif word in spec.rules.no_progress.reset[:i]:
            message = f"{word} is listed already; accepted: each event once"
            yield Issue(("rules", "no_progress", "reset", i), message)
    if spec.rules.insufficient_material and (spec.hands is not None or spec.rules.wins):
        also = "hands" if spec.hands is not None else "`wins`"
        message = f"with {also} any material may win; accepted: false"
        yield Issue(("rules", "insufficient_material"), message)
    for i, win in enumerate(spec.rules.wins):
        for key in ("piece", "extinct"):
            letter = getattr(win, key)
            if key == "extinct" and letter == "all pieces":
                continue
            if letter is not None and letter not in spec.pieces:
                message = unknown("piece", letter, list(spec.pieces))
                yield Issue(("rules", "wins", i, key), message)
        yield from _zone_issues(spec, ("rules", "wins", i, "reaches"), win.reaches)
    yield from _start_issues(spec)
    training = spec.training
    if training.lr_min > training.lr_max:
        yield Issue(("training", "lr_min"), "lr_min is greater than lr_max")
    low, high = training.momentum
    if not 0 <= low <= high < 1:
        yield Issue(("training", "momentum"), "accepted: [low, high] with 0 <= low <= high < 1")


def _revert_issues(spec: VariantSpec) -> Iterator[Issue]:
    """A captured piece must tell by its letter what it promoted from."""
    path: Path = ("hands", "promoted")
    assert spec.hands is not None
    origins: dict[str, str] = {}
    for symbol, piece in spec.pieces.items():
        for choice in promotion_choices(spec, symbol) if piece.promotes else ():
            if choice in spec.hands.order:
                message = (
                    f"`reverts`, and {symbol} promotes to {choice}, which is in `order` itself"
                )
                yield Issue(path, f"{message}; accepted: `returns as {symbol}`, `keeps`")
            elif origins.setdefault(choice, symbol) != symbol:
                both = f"{origins[choice]} and {symbol}"
                message = f"`reverts`, and nobody sees of a {choice} which of {both} it was"
                yield Issue(path, f"{message}; accepted: `returns as {symbol}`, `keeps`")


def _double_steps(spec: VariantSpec, symbol: str) -> frozenset[int]:
    """Squares, in the player's view, that double steps of a piece with `passant` jump over."""
    piece, board = spec.pieces[symbol], spec.board
    everywhere = frozenset(range(board.files * board.ranks))
    jumped: set[int] = set()
    for zone, word in ((None, piece.moves), *piece.from_.items()):
        doubles = [m for m in parse_betza(word) if m.lame and m.quiet and (m.dx, m.dy) == (0, 2)]
        if doubles:
            origins = everywhere if zone is None else zone_squares(zone, board)
            jumped |= {s + board.files for s in origins}
    return frozenset(jumped) & everywhere


def _check_passant(spec: VariantSpec) -> Iterator[Issue]:
    """Nothing is captured in passing but after a lame double step straight ahead, by a capture that
    is no quiet move, and not while promoting."""
    files, ranks = spec.board.files, spec.board.ranks
    passers = [symbol for symbol, piece in spec.pieces.items() if piece.passant]
    jumped = frozenset(s for symbol in passers for s in _double_steps(spec, symbol))
    # as the other player sees them
    onto = frozenset((ranks - 1 - s // files) * files + s % files for s in jumped)
    if spec.board.sides == "rotate":
        onto = frozenset(files * ranks - 1 - s for s in jumped)
    for symbol in passers:
        piece, path = spec.pieces[symbol], ("pieces", symbol, "passant")
        moves = [m for word in (piece.moves, *piece.from_.values()) for m in parse_betza(word)]
        if not jumped:
            message = (
                "no piece with `passant` has a lame double step straight ahead to be taken after"
            )
            yield Issue(
                path, f"{message}; accepted: `from: {{rank 2: fmnD}}` beside it, or no word"
            )
            return
        if any(m.lame and m.quiet and m.dx and m.dy for m in moves):
            message = f"a lame step of {symbol} goes askew, and has no square to be taken on"
            yield Issue(path, f"{message}; accepted: double steps straight ahead, or no word")
        takes = {(m.dx, m.dy) for m in moves if m.capture and m.reach == 1}
        if takes & {(m.dx, m.dy) for m in moves if m.quiet and m.reach == 1}:
            message = f"{symbol} captures where it also moves without capturing"
            yield Issue(path, f"{message}, which is all it then does; accepted: no word")
        promotes = piece.promotes
        if promotes is not None and zone_squares(promotes.at, spec.board) & onto:
            message = f"{symbol} may promote where it captures in passing"
            yield Issue(
                ("pieces", symbol, "promotes", "at"),
                f"{message}; accepted: a zone without these squares, or no `passant`",
            )


def _check_promotion_zones(spec: VariantSpec) -> Iterator[Issue]:
    for symbol, piece in spec.pieces.items():
        promotes = piece.promotes
        if promotes is None or isinstance(promotes.must, bool) or promotes.must == "where stuck":
            continue
        if not zone_squares(promotes.must, spec.board) <= zone_squares(promotes.at, spec.board):
            message = f"{promotes.must!r} has squares that are not in `at`, {promotes.at!r}"
            yield Issue(
                ("pieces", symbol, "promotes", "must"), f"{message}; accepted: a part of it"
            )


def _start_issues(spec: VariantSpec) -> Iterator[Issue]:
    """Size and letters of the start array; all else about a FEN is judged by the rules."""
    path: Path = ("rules", "start")
    fields = spec.rules.start.split()
    if len(fields) < 2:
        yield Issue(path, "a FEN has at least two fields: the board and the side to move")
        return
    rows = fields[0].split("[")[0].split("/")
    if len(rows) != spec.board.ranks:
        yield Issue(path, f"{len(rows)} ranks in the FEN, {spec.board.ranks} on the board")
        return
    letters = set(spec.pieces) | {p.also for p in spec.pieces.values() if p.also}
    for number, row in enumerate(rows):
        width = 0
        for token in re.findall(r"[0-9]+|\+?[A-Za-z]~?|.", row):
            if token.isdigit():
                width += int(token)
                continue
            width += 1
            if token == "*" and spec.rules.engine == "fairy":
                continue  # a wall, which Fairy-Stockfish has in some variants
            if token.upper().removesuffix("~") not in letters:
                yield Issue(path, unknown("piece", token, list(spec.pieces)))
                return
        if width != spec.board.files:
            rank = spec.board.ranks - number
            message = f"rank {rank} is {width} squares wide, the board has {spec.board.files}"
            yield Issue(path, message)


def _check_drawing(spec: VariantSpec) -> Iterator[Issue]:
    drawing = spec.drawing
    yield from _zone_issues(spec, ("drawing", "palace"), drawing.palace)
    if drawing.marks:
        yield from _zone_issues(spec, ("drawing", "marks"), drawing.marks)
    if drawing.river is not None and drawing.river >= spec.board.ranks:
        message = f"no rank lies above rank {drawing.river}; the board has {spec.board.ranks}"
        yield Issue(("drawing", "river"), message)
    for symbol in drawing.glyphs:
        if symbol not in spec.pieces:
            message = unknown("piece", symbol, list(spec.pieces))
            yield Issue(("drawing", "glyphs", symbol), message)
    for i, ink in enumerate(drawing.inks or ()):
        if not _COLOUR.match(ink):
            yield Issue(("drawing", "inks", i), f"{ink!r} is no colour; accepted: '#b3201b'")


def _check_input(spec: VariantSpec) -> Iterator[Issue]:
    order = spec.hands.order if spec.hands else ()
    for i, item in enumerate(spec.input):
        path: Path = ("input", i)
        match item:
            case CapturedPlanes(captured=count):
                yield from _unknown_pieces(spec, (*path, "captured", "order"), count.order)
                yield from _twice((*path, "captured", "order"), count.order)
            case HandPlanes(hand=hand):
                for k, letter in enumerate(hand.order):
                    if letter not in order:
                        message = unknown("piece in hand", letter, list(order))
                        yield Issue((*path, "hand", "order", k), message)
                yield from _twice((*path, "hand", "order"), hand.order)
            case PromotedPlane() if not (
                spec.hands and spec.hands.promoted.startswith("returns as ")
            ):
                yield Issue(path, "a `promoted` plane needs `hands: {promoted: returns as …}`")
            case CastlingPlanes() if not spec.castling:
                yield Issue(path, "castling planes in a variant without `castling`")
            case ChecksPlane() if not any(win.checks for win in spec.rules.wins):
                yield Issue(path, "a `checks` plane needs `wins: [{checks: n}]`")
            case "en_passant" if not any(p.passant for p in spec.pieces.values()):
                yield Issue(path, "an en passant plane needs a piece with `passant: true`")
    if list(_unknown_input(spec)):
        return
    if not input_planes(spec):
        yield Issue(("input",), "a net needs at least one input plane")
    yield from _input_twice(spec)


def _input_twice(spec: VariantSpec) -> Iterator[Issue]:
    """Items with a plane that an earlier item has already."""
    listed: dict[Hashable, int] = {}
    for i, item in enumerate(spec.input):
        rows = list(input_rows(spec, item))
        for row in rows:
            if row in listed:
                message = f"the plane of {row[-1]!r} is one of input.{listed[row]} already"
                yield Issue(("input", i), f"{message}; accepted: each block once")
                break
        listed.update((row, i) for row in rows)


def _unknown_input(spec: VariantSpec) -> Iterator[str]:
    for item in spec.input:
        if isinstance(item, CapturedPlanes):
            yield from (p for p in item.captured.order if p not in spec.pieces)
        if isinstance(item, HandPlanes):
            yield from (p for p in item.hand.order if p not in spec.pieces)


def _check_policy(spec: VariantSpec) -> Iterator[Issue]:
    if not isinstance(spec.policy, str):
        for i, item in enumerate(spec.policy):
            if isinstance(item, DropPlanes):
                held = spec.hands.order if spec.hands else ()
                for k, letter in enumerate(item.drops):
                    if letter not in held:
                        message = unknown("piece in hand", letter, list(held))
                        yield Issue(("policy", i, "drops", k), message)
            if isinstance(item, PromotionPlanes):
                path: Path = ("policy", i, "promotions", "to")
                yield from _unknown_pieces(spec, path, item.promotions.to)
    try:
        planes = policy_planes(spec)
    except SpecError as error:
        yield Issue(("policy",), str(error))
        return
    have = {(p.kind, p.dx, p.dy, p.piece) for p in planes}

    def missing(kind: str, steps: Iterable[tuple[int, int]], to: str | None) -> str:
        lacking = [s for s in steps if (kind, *s, to) not in have]
        return ", ".join(step_name(dx, dy) for dx, dy in clockwise(lacking))

    for letter, piece in spec.pieces.items():
        if lacking := missing("move", displacements(piece, spec.board), None):
            message = f"the policy cannot express moves of the {piece.name} ({letter}): {lacking}"
            yield Issue(("policy",), message)
        for choice in promotion_choices(spec, letter):
            if lacking := missing("promotion", promotion_steps(spec, piece), choice):
                message = f"the policy cannot express promotions of {letter} to {choice}: {lacking}"
                yield Issue(("policy",), message)
    if lacking := missing("move", castling_steps(spec), None):
        yield Issue(("policy",), f"the policy cannot express castling: {lacking}")
    for letter in spec.hands.order if spec.hands else ():
        if ("drop", 0, 0, letter) not in have:
            yield Issue(("policy",), f"the policy cannot express drops of {letter}")


def _check_symmetry(spec: VariantSpec) -> Iterator[Issue]:
    if "files" not in spec.symmetry:
        return
    if spec.castling:
        yield Issue(("symmetry",), "left-right mirroring is no symmetry of a game with castling")
    files = spec.board.files

    def mirrored(squares: frozenset[int]) -> frozenset[int]:
        return frozenset(s - s % files + files - 1 - s % files for s in squares)

    for letter, piece in spec.pieces.items():
        for word in (piece.moves, *piece.from_.values()):
            if is_asymmetric(word):
                message = f"{letter} moves differently to the left and to the right"
                yield Issue(("symmetry",), message)
        zones = [piece.within, piece.drop, *piece.from_]
        if piece.promotes is not None:
            zones += [piece.promotes.at, piece.promotes.must]
        for zone in zones:
            if isinstance(zone, str | tuple) and zone != "where stuck":
                squares = zone_squares(zone, spec.board)
                if squares != mirrored(squares):
                    yield Issue(("symmetry",), f"zone {zone!r} of {letter} is not symmetric")
    for win in spec.rules.wins:
        if win.reaches is not None:
            squares = zone_squares(win.reaches, spec.board)
            if squares != mirrored(squares):
                yield Issue(("symmetry",), f"goal {win.reaches!r} of `wins` is not symmetric")
