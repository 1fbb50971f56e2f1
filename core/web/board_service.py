"""The process that knows rules: it answers questions of the page about variants and games.

Each question has the whole game, a FEN and the moves since, so that the service keeps nothing that
matters: after a restart the same question gets the same answer. Games of earlier questions are kept
only because most questions add one move to one of them.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.errors import DataError, MoveError, SpecError, UnknownNameError, VariantAIError
from variant_ai.core.inference.packaged_nets import first_file
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.position import PASS, move_kind
from variant_ai.core.rules.shuffled_starts import STARTS, is_shuffled
from variant_ai.core.rules.text.fen import fen_or_start
from variant_ai.core.rules.text.notation import Notation
from variant_ai.core.spec.files.yaml_reader import parse_yaml, read_text
from variant_ai.core.spec.zones import square_name
from variant_ai.core.web import Actions, Json
from variant_ai.core.web.board_pictures import (
    STYLES,
    picture_of_board,
    picture_of_wall,
    pictures_of_pieces,
    role_of,
)

if TYPE_CHECKING:
    from variant_ai.core.data.read.game_reader import GameReader
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec

KEPT_GAMES = 256
KEPT_VARIANTS = 40
DEFAULT_NOTATION = "san"


class WebSource(Protocol):
    """The part of the plugin registry that the page needs."""

    @property
    def variants(self) -> Mapping[str, Any]: ...

    def variant(self, name: str) -> VariantSpec: ...

    def path(self, name: str) -> Path: ...

    def rules(self, spec: VariantSpec) -> Rules: ...

    def net_paths(self, spec: VariantSpec) -> Sequence[Path]: ...

    def notations(self, spec: VariantSpec) -> Mapping[str, Notation]: ...

    def readers(self, spec: VariantSpec) -> Mapping[str, GameReader]: ...


@dataclass
class _Variant:
    """A variant that was asked for, loaded."""

    spec: VariantSpec
    rules: Rules
    notations: Mapping[str, Notation]


@dataclass
class _KeptGame:
    """A game of an earlier question, and its moves in a notation."""

    variant: _Variant
    notation: Notation
    game: Game
    written: list[str] = field(default_factory=list)


class BoardService:
    """Answers questions one after the other."""

    def __init__(self, source: WebSource) -> None:
        self._source = source
        self._loaded = lru_cache(KEPT_VARIANTS)(self._load)
        self._games: OrderedDict[tuple[str, ...], _KeptGame] = OrderedDict()
        self.actions: Actions = {
            "variants": self._list,
            "describe": self._describe,
            "position": self._position,
            "line": self._line,
            "pgn": self._pgn,
            "read": self._read_games,
            "source": self._source_text,
            "check": self._check,
        }

    # --- variants ------------------------------------------------------------------------------

    def _load(self, name: str) -> _Variant:
        spec = self._source.variant(name)
        return _Variant(spec, self._source.rules(spec), self._source.notations(spec))

    def _list(self, question: Json) -> Json:
        found = []
        for name in self._source.variants:
            try:
                spec = self._source.variant(name)
                found.append({"name": name, "title": spec.title, "net": self._has_net(spec)})
            except VariantAIError as error:
                found.append({"name": name, "title": name, "net": False, "error": str(error)})
        return {"variants": found}

    def _describe(self, question: Json) -> Json:
        """Return all that the page needs to draw a variant."""
        variant = self._loaded(question["variant"])
        return {
            **describe(variant.spec, question.get("style") or "own"),
            "start": variant.rules.fen(variant.rules.position()),
            "starts": STARTS if is_shuffled(variant.spec) else 1,
            "notations": list(variant.notations),
            "net": self._has_net(variant.spec),
        }

    def _has_net(self, spec: VariantSpec) -> bool:
        return first_file(self._source.net_paths(spec)) is not None

    def _source_text(self, question: Json) -> Json:
        return {"text": read_text(self._source.path(question["variant"]), "a variant spec")}

    def _check(self, question: Json) -> Json:
        """Return the mistakes of a spec's text, or a drawing of its start position."""
        path = Path(question["path"])
        try:
            require_no_files(path)
            spec = self._source.variant(str(path))
            rules = self._source.rules(spec)
            game = Game(rules)
        except SpecError as error:
            return {"mistakes": _mistakes(str(error), path)}
        except VariantAIError as error:
            return {"mistakes": [{"line": 1, "column": 1, "message": str(error)}]}
        return {
            "mistakes": [],
            **describe(spec, "own"),
            "start": game.fen(),
            "legal": len(game.legal_moves()),
            "engine": rules.name,
        }

    # --- games ---------------------------------------------------------------------------------

    def _game(self, question: Json) -> _KeptGame:
        """Return the game of a question with its moves written. Raises UnknownNameError, FenError,
        MoveError."""
        variant = self._loaded(question["variant"])
        name = question.get("notation") or DEFAULT_NOTATION
        if name not in variant.notations:
            raise UnknownNameError("notation", name, variant.notations)
        notation = variant.notations[name]
        fen = fen_or_start(question.get("fen"))
        moves = list(question.get("moves") or ())
        head = question["variant"], notation.name, fen or ""
        kept = self._games.pop((*head, *moves), None)
        if kept is None:
            kept = self._games.pop((*head, *moves[:-1]), None) if moves else None
            if kept is None:
                kept = _KeptGame(variant, notation, Game(variant.rules, fen))
        try:
            for text in moves[kept.game.ply :]:
                move = kept.game.read_uci(text)
                kept.written.append(notation.write(variant.rules, kept.game.position, move))
                kept.game.push(move)
        finally:
            self._games[(*head, *moves[: kept.game.ply])] = kept
            while len(self._games) > KEPT_GAMES:
                self._games.popitem(last=False)
        return kept

    def _position(self, question: Json) -> Json:
        """Return the position at the end of a game: FEN, legal moves, outcome, …"""
        kept = self._game(question)
        return {**position_of(kept.game), "written": list(kept.written)}

    def _line(self, question: Json) -> Json:
        """Read a move in any notation, and lines of moves to write."""
        kept = self._game(question)
        variant, rules = kept.variant, kept.variant.rules
        if "text" in question:
            return {"move": self._read_move(variant, kept.game, question["text"])}
        lines = []
        for line in question.get("lines") or ():
            moves, position = [], kept.game.position
            for text in line:
                move = variant.notations["uci"].read(rules, position, text)
                moves.append(kept.notation.write(rules, position, move))
                position = rules.play(position, move)
            lines.append(moves)
        return {"lines": lines}

    def _read_move(self, variant: _Variant, game: Game, text: str) -> str:
        """Read a move in the first notation that knows it. Raises MoveError."""
        order = sorted(variant.notations.values(), key=lambda one: one.name != "uci")
        for notation in order:
            try:
                move = notation.read(variant.rules, game.position, text)
            except MoveError:
                continue
            return variant.rules.uci(move)
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise MoveError(f"{shown!r} is no legal move here")

    def _pgn(self, question: Json) -> Json:
        from variant_ai.core.data.game_text import pgn_text

        kept = self._game(question)
        game, rules = kept.game, kept.game.rules
        outcome = game.outcome()
        tags = question.get("tags") or {}
        record = GameRecord(
            variant=rules.spec.variant,
            moves=list(game.moves),
            start_fen=game.start_fen,
            result=outcome.result if outcome else tags.get("Result", "*"),
            white=tags.get("White", ""),
            black=tags.get("Black", ""),
            date=tags.get("Date", ""),
            event=tags.get("Event", ""),
            termination=outcome.reason if outcome else tags.get("Termination", ""),
        )
        return {"pgn": pgn_text(rules, kept.notation, record)}

    def _read_games(self, question: Json) -> Json:
        """Read the first game of a text, in PGN or another format of the variant."""
        from variant_ai.core.data.read.game_reader import choose_reader
        from variant_ai.core.data.read.resolve import Resolver

        variant = self._loaded(question["variant"])
        readers = self._source.readers(variant.spec)
        data = question["text"].strip().encode()
        reader = choose_reader(list(readers.values()), "pasted text.pgn", data[:4096])
        if reader is None:
            raise DataError(f"this is no game in a known format; accepted: {', '.join(readers)}")
        raw = next(iter(reader.read(io.BufferedReader(io.BytesIO(data)), "pasted text")), None)
        if raw is None:
            raise DataError("there is no game in this text")
        record = Resolver(variant.rules, list(variant.notations.values())).resolve(raw)
        if not isinstance(record, GameRecord):
            raise DataError(record.detail or record.reason)
        return {
            "fen": record.start_fen,
            "moves": [variant.rules.uci(move) for move in record.moves],
            "result": record.result,
            "white": record.white,
            "black": record.black,
            "comments": {str(ply): text for ply, text in record.comments.items()},
        }


def require_no_files(path: Path) -> None:
    """Raise SpecError if a visitor's spec names a file: it could read those of the server.

    path: of the spec, whose text is read.
    """
    from variant_ai.core.spec.catalogue import builtin_specs
    from variant_ai.core.spec.inheritance import EXTENDS, FAIRY_INI

    tree = parse_yaml(read_text(path, "a variant spec"), str(path), "a spec", "spec, variant, …")
    parent = tree.get(EXTENDS)
    if EXTENDS in tree and not (isinstance(parent, str) and parent in builtin_specs()):
        raise SpecError(
            f"{EXTENDS}: here the name of a variant that comes with the program is accepted: "
            f"{', '.join(builtin_specs())}",
            tree.value[EXTENDS].location,
        )
    ini = tree.get(FAIRY_INI)
    if FAIRY_INI in tree and not (isinstance(ini, str) and ini.lstrip().startswith("[")):
        raise SpecError(
            f"{FAIRY_INI}: here the text itself is accepted, not the name of a file",
            tree.value[FAIRY_INI].location,
        )


def describe(spec: VariantSpec, style: str) -> Json:
    """Return the sizes, hands, names and pictures (SVG) by which a variant is drawn."""
    return {
        "name": spec.variant,
        "title": spec.title,
        "players": list(spec.players),
        "files": spec.board.files,
        "ranks": spec.board.ranks,
        "hand": [role_of(symbol) for symbol in spec.hands.order] if spec.hands else None,
        "names": {role_of(symbol): one.name for symbol, one in spec.pieces.items()},
        "letters": {role_of(symbol): symbol for symbol in spec.pieces},
        "style": style,
        "styles": STYLES,
        "boards": [picture_of_board(spec, flipped=flipped) for flipped in (False, True)],
        "pieces": pictures_of_pieces(spec, style),
        "wall": picture_of_wall(),
        "lines": spec.drawing.board == "lines",
    }


def position_of(game: Game) -> Json:
    """Return the last position of a game: `fen`, `turn`, `ply`, `legal` moves in UCI (none after the
    end), `passes`, `check` (the square of a king in check), `hands`, `outcome`."""
    rules, position = game.rules, game.position
    outcome = game.outcome()
    moves = [] if outcome else game.legal_moves().tolist()
    king = int(position["kings"][0][game.side])
    kinds = len(rules.spec.hand_order)
    return {
        "fen": game.fen(),
        "turn": game.side,
        "ply": int(position["ply"][0]),
        "legal": [rules.uci(move) for move in moves],
        "passes": [rules.uci(move) for move in moves if move_kind(move) == PASS],
        "check": [square_name(king, rules.spec.board.files)]
        if king >= 0 and rules.in_check(position)
        else [],
        "hands": position["hands"][0, :, :kinds].tolist(),
        "outcome": None
        if outcome is None
        else {"result": outcome.result, "reason": outcome.reason, "detail": outcome.detail},
    }


def _mistakes(text: str, path: Path) -> list[Json]:
    """Split the lines of a SpecError, `path:line:column: message`."""
    found: list[Json] = []
    for line in text.splitlines():
        message = line.removeprefix(f"{path}:")
        number, _, rest = message.partition(":")
        column, _, after = rest.partition(":")
        if message != line and number.isdigit() and column.isdigit():
            found.append({"line": int(number), "column": int(column), "message": after.strip()})
        elif message != line:
            found.append({"line": 1, "column": 1, "message": message.strip()})
        elif found:
            found[-1]["message"] += f" {line.strip()}"
        else:
            found.append({"line": 1, "column": 1, "message": line.strip()})
    if not found:
        raise DataError("the spec has a mistake without a message")
    return found
