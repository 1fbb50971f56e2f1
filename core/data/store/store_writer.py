"""Writing a game store: a new one, or appending to an existing one.

A new store is written as `NAME.partial` and renamed when it is complete. Appended shards are written
at the end; readers ignore an unfinished one, so a kill at any time loses at most the shard being
written. The same command resumes after a kill or interrupt (`find_interruption`).
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from variant_ai import __version__
from variant_ai.core.data.filters import GameFilter
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store import store_format as form
from variant_ai.core.data.store.blocks import pack, read_body, scan, write_lock
from variant_ai.core.data.store.columns import ColumnError, ColumnReader, decode_json, encode_json
from variant_ai.core.data.store.store_info import Parent
from variant_ai.core.data.store.stored_moves import (
    Codes,
    RulesCodec,
    SeenGames,
    codes_hash,
)
from variant_ai.core.data.store.visits import (
    GameVisits,
    encode_visits,
    pack_root,
)
from variant_ai.core.errors import DataError, os_reason
from variant_ai.core.spec.hashing import rules_hash, spec_hash
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.files import is_same_file, synchronise_names

if TYPE_CHECKING:
    from variant_ai.core.data.store.game_store import Store

SHARD_GAMES = 1000
SHARD_PLIES = 1 << 22
"""Limit of the plies in a shard, so that memory is bounded for games of any length."""

Mode = Literal["new", "replace", "append"]


class Interruption(NamedTuple):
    """State in which a command that ended early left a store."""

    path: Path
    """The store, or its partial file."""
    mark: dict[str, Any]
    end: int
    """Offset just behind the command's last complete shard. Writing resumes there if no other command
    has appended since, otherwise at the end of the store."""
    blocks: int
    """Number of blocks before that byte."""
    is_last: bool
    """True if its run is the last one of the store."""
    is_alone: bool
    """True if the store has no games of other commands."""


def find_interruption(path: Path, command: str) -> Interruption | None:
    """Find the state in which a killed or interrupted command left a store.

    A command is identified by a digest of everything that decides its games, which is in its RUN
    block. Each of its shards has a mark (column `mark` of NOTE), written in one piece with the shard,
    and so has the END of an interrupted run. A run without END, or with such an END, can be resumed.

    None if the command did not begin the store, has ended, or has not finished a shard, or if the
    store cannot be read (opening it raises the error).
    """
    if not path.is_file():  # a pipe would be waited for
        return None
    try:
        with path.open("rb") as file:
            blocks = scan(file, str(path)).blocks
            mark: dict[str, Any] | None = None
            last = None
            """Last block of the command that is kept."""
            current, is_alone = "", True
            for block in blocks[1:]:
                if block.kind == form.RUN:
                    run = decode_json(read_body(file, block, str(path)))
                    current = run.get("command", "")
                    is_alone &= current == command
                    if current == command:
                        mark, last = run.get("mark"), block
                elif current == command and block.kind == form.NOTE:
                    last, mark = block, None
                elif current == command and block.kind == form.END:
                    end = decode_json(read_body(file, block, str(path)))
                    mark = end.get("mark") if end.get("interrupted") else None
                    if mark is None:
                        last = None
            if last is None:
                return None
            if mark is None and last.kind == form.NOTE:
                columns = ColumnReader(read_body(file, last, str(path)))
                mark = decode_json(bytes(columns.bytes("mark")))
    except (OSError, DataError, ColumnError):
        return None
    if mark is None:
        return None
    return Interruption(path, mark, last.end, last.number + 1, current == command, is_alone)


class StoreWriter:
    """Writer of a store. As a context manager it closes the store at the end, and on Ctrl-C with the
    games added so far; any other exception undoes all changes.

    Not thread-safe. Errors such as a full disk raise DataError and undo all changes.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        spec: VariantSpec,
        *,
        mode: Mode = "new",
        sources: Sequence[str] = (),
        conditions: GameFilter | Mapping[str, Any] | None = None,
        parents: Sequence[Store] = (),
        codec: RulesCodec | None = None,
        shard_games: int = SHARD_GAMES,
        drop_duplicates: bool = False,
        command: str = "",
    ) -> None:
        """`new` rejects an existing store, `replace` overwrites it on closing, `append` adds to it (or
        creates it). `sources`, `conditions` and `parents`, the stores that games are copied from, are
        recorded in the store, with the sources of the parents. `drop_duplicates`: `add` rejects games
        with the start and moves of a game in the store. `command`: a digest of everything that
        decides the games; if the same command was killed or interrupted before, writing resumes after
        its last finished shard in every mode, and `resumed` is its last `mark`.

        Raises DataError if the store exists, is of another variant or rules, is damaged, is being
        written by another process, or its folder is not writable.
        """
        self.path = Path(path)
        self.spec = spec
        self.codec = codec or RulesCodec(spec)
        self.notes: list[str] = []
        """Messages for the user, such as on an unfinished shard that was dropped."""
        self._shard_games = shard_games
        self._squares = spec.board.squares
        self._pending: list[form.Pending] = []
        self.mark: Callable[[], Mapping[str, Any]] | None = None
        """Called at every shard and at an interrupt for the state from which `command` can resume."""
        self._command = command
        self._interruption = self._find_interruption(mode)
        self._appending = self.path.exists() and (
            mode == "append"
            or (self._interruption is not None and self._interruption.path == self.path)
        )
        if mode == "new" and self.path.exists() and not self._appending:
            raise DataError(
                f"{self.path} already exists; use --replace to overwrite it, or --append to add games"
            )
        if self.path.exists() and not self.path.is_file():
            kind = "a folder" if self.path.is_dir() else "a device or a pipe"
            raise DataError(f"{self.path} is {kind}, not a game store")
        self._target = self.path if self._appending else form.partial_path(self.path)
        if not self._appending and self._interruption is None and self._target.exists():
            for parent in parents:
                if is_same_file(parent.path, self._target):
                    raise DataError(
                        f"{parent.path} would be overwritten, because {self.path} is written under "
                        "this name until it is complete; rename it, or write to another name"
                    )
        self._stack = contextlib.ExitStack()
        self._file: io.FileIO | None = None
        self._end = self._blocks = self._shards = 0
        self._games = self._plies = self._pending_plies = 0
        self._seen = SeenGames() if drop_duplicates else None
        with self._undone_on_error():
            self._open()
            if self._interruption is None or not self._interruption.is_last:
                run = _run(sources, conditions, parents)
                run |= {"command": command} if command else {}
                run |= {"mark": self._interruption.mark} if self._interruption else {}
                self._write_json(form.RUN, run)

    @property
    def resumed(self) -> dict[str, Any] | None:
        """Mark from which the command resumes; None if it begins."""
        return None if self._interruption is None else self._interruption.mark

    @property
    def games(self) -> int:
        """Games added by this writer."""
        return self._games + len(self._pending)

    @property
    def plies(self) -> int:
        """Plies added by this writer."""
        return self._plies + self._pending_plies

    # --- opening and closing -------------------------------------------------------------------

    def _find_interruption(self, mode: Mode) -> Interruption | None:
        """State in which this command ended early, in the store or in its partial file."""
        if not self._command:
            return None
        interruption = find_interruption(self.path, self._command)
        if interruption is not None and (mode == "append" or interruption.is_alone):
            return interruption
        if self.path.exists() and mode != "replace":
            return None
        return find_interruption(form.partial_path(self.path), self._command)

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._target, flags, 0o666)
        file = self._stack.enter_context(io.FileIO(descriptor, "r+"))
        self._stack.enter_context(write_lock(file, self.path))
        resumes = self._appending or self._interruption is not None
        self._before = file.seek(0, os.SEEK_END) if resumes else 0
        self._file = file
        if resumes:
            self._continue(file)
        else:
            self._games_before = self._plies_before = 0
            self._write_json(form.HEAD, self._head())

    def _continue(self, file: io.FileIO) -> None:
        """Continue an existing store after its last finished shard."""
        from variant_ai.core.data.store.game_store import Store

        existing = Store(self._target, self.spec, codec=self.codec)
        interruption = self._interruption
        if interruption is not None and interruption.is_last:
            # overwrites the END of an interrupted run
            self._end, self._blocks = interruption.end, interruption.blocks
        else:
            if existing.info.unfinished:
                self.notes.append(existing.info.unfinished)
            self._end, self._blocks = form.finished(scan(file, str(self._target)))
            self._before = self._end
        self._shards = len(existing.shards)
        self._games_before, self._plies_before = len(existing), existing.plies
        if self._seen is not None:
            self._seen.new_of(existing)

    def _head(self) -> dict[str, Any]:
        return {
            "format": form.FORMAT,
            "variant": self.spec.variant,
            "rules_hash": rules_hash(self.spec),
            "spec_hash": spec_hash(self.spec),
            "codes_hash": codes_hash(self.spec),
            "squares": self._squares,
            "spec": self.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or issubclass(kind, KeyboardInterrupt):
            self.close(interrupted=kind is not None)
        else:
            self.abort()

    def close(self, dropped: Mapping[str, int] | None = None, *, interrupted: bool = False) -> None:
        """Write pending games and finish the store. `dropped`: numbers of games left out, by reason.
        `interrupted`: the sources have more games.

        Closing twice has no effect.
        """
        if self._file is None:
            return
        with self._undone_on_error():
            self._flush()
            totals: dict[str, Any] = {
                "games": self._games_before + self.games,
                "plies": self._plies_before + self.plies,
            }
            if dropped:
                totals["dropped"] = dict(dropped)
            if interrupted:
                totals["interrupted"] = True
                if self.mark is not None:
                    totals["mark"] = dict(self.mark())
            self._write_json(form.END, totals)
            self._stack.close()  # before the rename, which fails for open files on Windows
            if not self._appending:
                os.replace(self._target, self.path)
            self._file = None
            synchronise_names(self.path.parent)

    def abort(self) -> None:
        """Undo all changes: a new store is removed, an existing one is restored; the work of an earlier
        process of the same command is kept."""
        if self._file is None:
            self._stack.close()
            return
        file, self._file = self._file, None
        with contextlib.suppress(OSError, ValueError):
            file.truncate(self._before)
        if not self._appending and self._interruption is None:
            with contextlib.suppress(OSError):
                self._target.unlink()
        self._stack.close()

    @contextlib.contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.abort()
            kept = "it is unchanged" if self._appending else "nothing was written"
            if self._interruption is not None:
                kept = f"{self._target} is unchanged, and the same command resumes"
            raise DataError(
                f"cannot write {self.path}: {os_reason(error, self.path)}; {kept}"
            ) from error
        except KeyboardInterrupt:
            raise
        except BaseException:
            self.abort()
            raise

    # --- adding games --------------------------------------------------------------------------

    def add(self, record: GameRecord) -> bool:
        """Add a game; return False if it is a duplicate, which is dropped.

        Raises DataError or MoveError without adding it for another variant, a move without a code,
        or a wrong number of scores, visits or root values.
        """
        if record.variant != self.spec.variant:
            raise DataError(f"a game of {record.variant!r} for a store of {self.spec.variant}")
        form.check_record(record)
        start = self._start(record)
        codes = self.codec.encode(start, record.moves)
        visits = encode_visits(self.codec, start, record)
        if self._seen is not None and not self._seen.is_new(start, codes):
            return False
        self._add(record, codes, visits)
        return True

    def _start(self, record: GameRecord) -> str | None:
        fen = record.start_fen
        return None if not fen or fen == self.spec.rules.start else fen

    def copy(self, store: Store, indices: Iterable[int] | None = None) -> None:
        """Add games of another store, all or those of the indices, with all their data, without a
        replay.

        Raises DataError if the store is of another variant or other rules.
        """
        store.require(self.spec)
        for index in range(len(store)) if indices is None else indices:
            self._add(*store.raw(int(index)))

    def _add(self, record: GameRecord, codes: Codes, visits: GameVisits | None) -> None:
        if self._file is None:
            raise DataError(f"{self.path} is closed")
        # a single append, so that an interrupt cannot leave half a game
        self._pending.append(form.Pending(record, self._start(record) or "", codes, visits))
        self._pending_plies += len(codes)
        if len(self._pending) >= self._shard_games or self._pending_plies >= SHARD_PLIES:
            with self._undone_on_error():
                self._flush()

    def _flush(self) -> None:
        """Write the pending games as a shard."""
        games = self._pending
        if not games:
            return
        plies = sum(len(game.codes) for game in games)
        mark = b"" if self.mark is None else encode_json(self.mark())
        records = [game.record for game in games]
        bodies = [
            (form.MOVE, form.pack_moves(games, self._squares), len(games), plies),
            (form.FACT, form.pack_facts(records), len(games), plies),
            (form.NOTE, form.pack_notes(records, mark), len(games), plies),
        ]
        root = pack_root(games, self._squares)
        if root is not None:
            bodies.insert(2, (form.ROOT, *root))
        data = b"".join(
            pack(kind, self._blocks + i, body, self._shards, *size)
            for i, (kind, body, *size) in enumerate(bodies)
        )
        self._write(data)
        # no calls between these assignments, so no signal handler runs between them
        self._end += len(data)
        self._blocks += len(bodies)
        self._shards += 1
        self._games += len(games)
        self._plies += plies
        self._pending, self._pending_plies = [], 0

    def _write_json(self, kind: str, value: Mapping[str, Any]) -> None:
        data = pack(kind, self._blocks, encode_json(value))
        self._write(data)
        self._end += len(data)
        self._blocks += 1

    def _write(self, data: bytes) -> None:
        """Write after the last finished block, over the rest of an interrupted write."""
        assert self._file is not None
        self._before = min(self._before, self._end)
        self._file.seek(self._end)
        self._file.truncate()
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())


def _run(
    sources: Sequence[str],
    conditions: GameFilter | Mapping[str, Any] | None,
    parents: Sequence[Store],
) -> dict[str, Any]:
    inherited = (source for parent in parents for source in parent.info.sources)
    chosen = conditions.as_dict() if isinstance(conditions, GameFilter) else conditions
    return {
        "tool": f"variant-ai {__version__}",
        "sources": list(dict.fromkeys([*sources, *inherited])),
        "conditions": dict(chosen or {}),
        "parents": [
            Parent(parent.content_hash, len(parent), parent.info.runs).as_dict()
            for parent in parents
        ],
    }
