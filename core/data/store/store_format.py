"""Blocks of a game store: the columns of a shard, and the headers around them.

| kind | body | holds |
| --- | --- | --- |
| HEAD | JSON | format version, variant, hashes, the whole spec; first block of the file |
| RUN  | JSON | tool version, sources and conditions of the shards that follow |
| MOVE | columns | moves, lengths, results, years, start positions: for training |
| FACT | columns | players, ratings, date, event and the other texts of a game |
| ROOT | columns | what searches say of positions (`visits.py`), in shards that have it |
| NOTE | columns | scores, clocks, comments and other tags, mostly absent |
| END  | JSON | totals; missing at the end of a file that was left by a killed writer |

MOVE, FACT, ROOT and NOTE of a shard follow one another in this order; NOTE ends the shard.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import (
    MAX_GENERATION,
    MAX_VISITS,
    TRAINS_ALL,
    GameRecord,
    Result,
)
from variant_ai.core.data.store.blocks import Scan, scan
from variant_ai.core.data.store.columns import (
    ColumnError,
    ColumnReader,
    Columns,
    Floats,
    Longs,
    optional_numbers,
    unshifted,
)
from variant_ai.core.errors import DataError
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.data.store.visits import GameVisits

FORMAT = 1
HEAD, RUN, MOVE, FACT, NOTE, END = "HEAD", "RUN ", "MOVE", "FACT", "NOTE", "END "
ROOT = "ROOT"
SHARD_KINDS = (MOVE, FACT, ROOT, NOTE)
"""Blocks of a shard; ROOT is optional."""

UNKNOWN = 2
"""Code of the result `*`."""
RESULT_OF: dict[int, Result] = {1: "1-0", 0: "1/2-1/2", -1: "0-1", UNKNOWN: "*"}
CODE_OF: dict[str, int] = {result: code for code, result in RESULT_OF.items()}
NO_RATING = np.iinfo(np.int32).min
"""A missing rating in `Store.ratings`."""

TEXT_FIELDS = (
    "date",
    "event",
    "site",
    "round",
    "eco",
    "time_control",
    "termination",
    "group",
    "source",
)
"""Text columns of FACT, `GameRecord` fields of the same name; players have a column of their own."""

Codes = NDArray[np.uint16]
Number = TypeVar("Number", bound=np.generic)


class Moves(NamedTuple):
    """A MOVE block, or several joined: n games of L plies in total."""

    codes: Codes
    """[L] moves of all games, one after the other."""
    plies: Longs
    """[n] length of each game."""
    results: NDArray[np.int8]
    """[n] 1 the first player won, 0 drawn, -1 lost, 2 unknown."""
    years: NDArray[np.int16]
    """[n] year, 0 if unknown."""
    fens: list[str]
    """Distinct start positions, `''` for that of the variant."""
    start_of: NDArray[np.int32]
    """[n] index into `fens`."""
    openings: Longs
    """[n] first plies that neither player chose."""


class Pending(NamedTuple):
    """A game waiting to be written in a shard."""

    record: GameRecord
    """Its moves are not used."""
    fen: str
    """Start position, `''` for that of the variant."""
    codes: Codes
    visits: GameVisits | None


def add_codes(columns: Columns, codes: Codes, squares: int) -> None:
    """Add a column of move codes. A code is `plane * squares + square`; the two parts in a byte each
    compress 6 % better than 16 bits (measured)."""
    plane, square = np.divmod(codes, np.uint16(squares))
    if plane.size and int(plane.max()) > 255:
        columns.add_integers("codes", codes)
    else:
        columns.add_bytes("moves", np.stack([square, plane], 1).astype(np.uint8).tobytes())


def read_codes(columns: ColumnReader, squares: int) -> Codes:
    """Read the move codes of `add_codes`. Raises ColumnError."""
    if "moves" not in columns:
        return columns.integers("codes").astype(np.uint16)
    data = columns.bytes("moves")
    if len(data) % 2:
        raise ColumnError("its moves are not two bytes each")
    pairs = np.frombuffer(data, np.uint8).reshape(-1, 2).astype(np.uint16)
    codes: Codes = pairs[:, 1] * np.uint16(squares) + pairs[:, 0]
    return codes


def pack_moves(games: Sequence[Pending], squares: int) -> bytes:
    """Return the MOVE body of a shard."""
    columns = Columns()
    add_codes(columns, joined([game.codes for game in games], np.uint16), squares)
    columns.add_integers("plies", [len(game.codes) for game in games])
    columns.add_integers("results", [CODE_OF[game.record.result] for game in games])
    columns.add_integers("years", [game.record.year or 0 for game in games])
    columns.add_texts("starts", [game.fen for game in games])
    openings = [min(game.record.opening_plies, len(game.codes)) for game in games]
    if any(openings):
        columns.add_integers("openings", openings)
    return columns.to_bytes()


def unpack_moves(body: bytes, squares: int, games: int, plies: int) -> Moves:
    """Read a MOVE body. Raises ColumnError if the columns do not fit each other or the head."""
    columns = ColumnReader(body)
    codes = read_codes(columns, squares)
    lengths = columns.integers("plies")
    fens, start_of = columns.texts("starts")
    results = columns.integers("results").astype(np.int8)
    years = columns.integers("years").astype(np.int16)
    if "openings" in columns:
        openings = columns.integers("openings")
    else:
        openings = np.zeros(games, np.int64)
    if not len(lengths) == len(results) == len(years) == len(start_of) == len(openings) == games:
        raise ColumnError(f"its columns do not all have {counted(games, 'row')}")
    if not int(lengths.sum()) == len(codes) == plies:
        raise ColumnError(f"its games do not have {counted(plies, 'ply')} together")
    if not np.isin(results, list(RESULT_OF)).all():
        raise ColumnError("a result is not one of the four")
    if (openings < 0).any() or (openings > lengths).any():
        raise ColumnError("an opening is longer than its game")
    return Moves(codes, lengths, results, years, fens, start_of, openings)


def join_moves(shards: Sequence[Moves]) -> Moves:
    """Join shards; equal start positions are merged."""
    index: dict[str, int] = {}
    start_of = []
    for shard in shards:
        renamed = [index.setdefault(fen, len(index)) for fen in shard.fens]
        start_of.append(np.asarray(renamed, np.int32)[shard.start_of])
    return Moves(
        joined([s.codes for s in shards], np.uint16),
        joined([s.plies for s in shards], np.int64),
        joined([s.results for s in shards], np.int8),
        joined([s.years for s in shards], np.int16),
        list(index),
        joined(start_of, np.int32),
        joined([s.openings for s in shards], np.int64),
    )


def joined(arrays: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    """Join arrays; a single one is not copied, since a store may fill much of the memory."""
    if len(arrays) == 1:
        return arrays[0].astype(dtype, copy=False)
    return np.concatenate(arrays).astype(dtype, copy=False) if arrays else np.zeros(0, dtype)


def pack_facts(records: Sequence[GameRecord]) -> bytes:
    """Return the FACT body of a shard."""
    columns = Columns()
    columns.add_texts("players", [r.white for r in records] + [r.black for r in records])
    columns.add_optional("white_elo", (r.white_elo for r in records))
    columns.add_optional("black_elo", (r.black_elo for r in records))
    for name in TEXT_FIELDS:
        columns.add_texts(name, [getattr(r, name) for r in records])
    columns.add_integers("number", (r.number for r in records))
    return columns.to_bytes()


def facts_records(body: bytes, moves: Moves, variant: str) -> list[GameRecord]:
    """Games of a FACT body without moves and notes. Raises ColumnError if a column does not have a row
    for each game."""
    columns, games = ColumnReader(body), len(moves.plies)

    def texts(name: str) -> list[str]:
        table, rows = columns.texts(name)
        return [table[row] for row in rows.tolist()]

    players = texts("players")
    fields: dict[str, list[Any]] = {
        "start_fen": [moves.fens[i] or None for i in moves.start_of.tolist()],
        "result": [RESULT_OF[code] for code in moves.results.tolist()],
        "white": players[:games],
        "black": players[games:],
        "white_elo": columns.optional("white_elo"),
        "black_elo": columns.optional("black_elo"),
        "number": columns.integers("number").tolist(),
        **{name: texts(name) for name in TEXT_FIELDS},
    }
    for name, values in fields.items():
        if len(values) != games:
            raise ColumnError(f"column {name!r} does not have {counted(games, 'row')}")
    rows = zip(*fields.values(), strict=True)
    return [GameRecord(variant, **dict(zip(fields, row, strict=True))) for row in rows]


def ended_by(body: bytes, terminations: Collection[str]) -> NDArray[np.bool_]:
    """[games] True for the games of a FACT body with one of these terminations; without records, which
    take longer."""
    table, rows = ColumnReader(body).texts("termination")
    return np.array([text in terminations for text in table], np.bool_)[rows]


def pack_notes(records: Sequence[GameRecord], mark: bytes) -> bytes:
    """Return the NOTE body of a shard. `mark`: state with which the command resumes (`Interruption`)."""
    columns = Columns()
    if mark:
        columns.add_bytes("mark", mark)
    for name in ("scores", "clocks"):
        columns.add_integers(f"has_{name}", (getattr(r, name) is not None for r in records))
        columns.add_optional(name, (v for r in records for v in getattr(r, name) or ()))
    columns.add_texts(
        "comments", [_packed({str(k): v for k, v in r.comments.items()}) for r in records]
    )
    columns.add_texts("tags", [_packed(r.tags) for r in records])
    return columns.to_bytes()


def _packed(texts: dict[str, str]) -> str:
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":")) if texts else ""


class PlyColumn:
    """Numbers of the plies of the games of a shard, which some games have and others have not."""

    def __init__(self, columns: ColumnReader, name: str, plies: Longs, values: str = "") -> None:
        """plies: of each game. values: name of the column of numbers, if it is not `name`. Raises
        ColumnError if the columns do not fit the games."""
        values = values or name
        games = len(plies)
        self.has = np.zeros(games, np.bool_)
        """[games] games that have the column."""
        self.values = np.zeros(0, np.int64)
        """Numbers of these games, one after the other."""
        if f"has_{name}" in columns:
            self.has = columns.integers(f"has_{name}").astype(np.bool_)
            self.values = columns.integers(values)
        if len(self.has) != games:
            raise ColumnError(f"column 'has_{name}' does not have {counted(games, 'row')}")
        present = np.where(self.has, plies, 0)
        self.ends = np.cumsum(present)
        self.begins = self.ends - present
        """[games] index in `values` of the first number of a game; `ends`: behind the last."""
        if len(self.values) != int(present.sum()):
            raise ColumnError(f"column {values!r} does not have a row for each ply")
        self._on = np.repeat(self.has, plies)

    def of(self, game: int) -> Longs | None:
        """Numbers of a game, None if it has none."""
        return self.values[self.begins[game] : self.ends[game]] if self.has[game] else None

    def spread(self, values: NDArray[Any], missing: Number) -> NDArray[Number]:
        """Numbers of all plies of the shard. values: one for each of `values`; missing: for the plies
        of games without the column."""
        spread = np.full(len(self._on), missing)
        spread[self._on] = values
        return spread


class Notes:
    """NOTE block, read; `add_to` sets the fields of a record."""

    def __init__(self, body: bytes, moves: Moves) -> None:
        """Raises ColumnError if the columns do not fit the games."""
        columns = ColumnReader(body)
        games = len(moves.plies)
        self._lists = {name: PlyColumn(columns, name, moves.plies) for name in ("scores", "clocks")}
        self._texts: dict[str, list[dict[str, str]]] = {}
        for name in ("comments", "tags"):
            table, rows = columns.texts(name)
            if len(rows) != games:
                raise ColumnError(f"column {name!r} does not have {counted(games, 'row')}")
            parsed = [json.loads(text) if text else {} for text in table]
            self._texts[name] = [parsed[row] for row in rows.tolist()]

    def add_to(self, record: GameRecord, game: int) -> None:
        record.scores, record.clocks = self._list("scores", game), self._list("clocks", game)
        record.comments = {int(ply): text for ply, text in self._texts["comments"][game].items()}
        record.tags = dict(self._texts["tags"][game])

    def _list(self, name: str, game: int) -> list[int | None] | None:
        found = self._lists[name].of(game)
        return None if found is None else optional_numbers(found)


def read_scores(body: bytes, moves: Moves) -> Floats:
    """Scores of a NOTE block: [plies] centipawns of the mover, NaN if unknown. Raises ColumnError."""
    column = PlyColumn(ColumnReader(body), "scores", moves.plies)
    missing = column.values == 0
    scores = np.where(missing, np.float32(np.nan), unshifted(column.values).astype(np.float32))
    return column.spread(scores, np.float32(np.nan))


def known(parts: Sequence[Floats]) -> Floats | None:
    """Join numbers of the plies of several shards; None if all of them are unknown (NaN)."""
    every: Floats = joined(parts, np.float32)
    return None if np.isnan(every).all() else every


def partial_path(path: Path) -> Path:
    """Path at which a new store is written until it is complete."""
    return path.with_name(path.name + ".partial")


def finished(found: Scan) -> tuple[int, int]:
    """End of the last finished shard or the header after it, and the number of blocks before it;
    everything after it is incomplete."""
    end = blocks = 0
    for block in found.blocks:
        if block.kind not in (MOVE, FACT, ROOT):
            end, blocks = block.end, block.number + 1
    return end, blocks


def unfinished(found: Scan, path: Path, shards: int) -> str:
    """Description of what a killed writer left; `''` for a store that was closed."""
    if found.blocks[-1].kind == END and found.end == found.size:
        return ""
    torn = found.size - finished(found)[0]
    lost = f", dropping {counted(torn, 'byte')} of an unfinished shard" if torn else ""
    return (
        f"{path} was not closed by its writer; using its {counted(shards, 'finished shard')}{lost}"
    )


def scan_store(path: Path) -> Scan:
    """Read the heads of the blocks of a store. Raises DataError if there is no store at the path."""
    if not path.exists():
        partial = partial_path(path)
        hint = (
            f"; {partial} has the finished part of an interrupted command: rename it to use it"
            if partial.exists()
            else ""
        )
        raise DataError(f"there is no game store {path}{hint}")
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a game store")
    with path.open("rb") as file:
        found = scan(file, str(path))
        if found.blocks and found.blocks[0].kind == HEAD:
            return found
    if found.size == 0:
        raise DataError(f"{path} is empty, not a game store")
    raise DataError(f"{path} is cut off before its first shard ({counted(found.size, 'byte')})")


def check_record(record: GameRecord) -> None:
    """Raises DataError if a record cannot be written."""
    if record.result not in CODE_OF:
        raise DataError(f"result {record.result!r} is not one of {', '.join(CODE_OF)}")
    for name in ("scores", "clocks", "visits", "root_values", "trains"):
        values = getattr(record, name)
        if values is not None and len(values) != record.plies:
            what = name.replace("_", " ")
            raise DataError(f"{len(values)} {what} for a game of {counted(record.plies, 'ply')}")
    rating = (1 << 31) - 1
    numbers: tuple[tuple[str, Iterable[tuple[int, float | None]], int, int], ...] = (
        ("white elo", [(0, record.white_elo)], -rating, rating),
        ("black elo", [(0, record.black_elo)], -rating, rating),
        ("generation", [(0, record.generation)], 0, MAX_GENERATION),
        ("trains", enumerate(record.trains or (), 1), 0, TRAINS_ALL),
        ("root value", enumerate(record.root_values or (), 1), -1, 1),
        (
            "visits",
            ((ply, n) for ply, moves in enumerate(record.visits or (), 1) for _, n in moves),
            1,
            MAX_VISITS,
        ),
    )
    for name, of_plies, low, high in numbers:
        for ply, number in of_plies:
            if number is not None and not low <= number <= high:
                where = f"ply {ply}: " if ply else ""
                raise DataError(f"{where}{name} {number}; accepted: {low} to {high}")
