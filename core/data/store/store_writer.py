"""Writing a game store: new, or behind the shards of one that exists.

A new store grows in `NAME.partial` and gets its name when it is whole, so a store under its own
name is never half made. Appending writes behind what is there; until a shard is finished it is a
torn tail that readers leave out, so a kill at any instant costs at most the shard being written.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from variant_ai import __version__
from variant_ai.core.data.filters import GameFilter
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store import store_format as form
from variant_ai.core.data.store.blocks import pack, scan, write_lock
from variant_ai.core.data.store.columns import encode_json
from variant_ai.core.data.store.duplicates import Seen
from variant_ai.core.data.store.resuming import Halt, find_halt
from variant_ai.core.data.store.stored_moves import Codes, GameCodec, RulesCodec, codes_hash
from variant_ai.core.data.store.visits import GameVisits, check_visits, coded, pack_visits
from variant_ai.core.errors import DataError, os_reason
from variant_ai.core.spec.hashing import rules_hash, spec_hash
from variant_ai.core.spec.schema import VariantSpec

if TYPE_CHECKING:
    from variant_ai.core.data.store.game_store import Store

SHARD_GAMES = 1000
SHARD_PLIES = 1 << 22
"""A shard ends early here, so that games of any length leave memory bounded."""

Mode = Literal["new", "replace", "append"]


class StoreWriter:
    """A store being written. As a context manager it is closed at the end; on Ctrl-C too, with the
    games added so far; any other exception undoes the whole writing.

    Adding is not thread-safe. Full disk and the like raise DataError and undo the writing.
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
        codec: GameCodec | None = None,
        shard_games: int = SHARD_GAMES,
        drop_duplicates: bool = False,
        command: str = "",
    ) -> None:
        """`new` refuses an existing store, `replace` takes its place when closed, `append` writes
        behind it (or makes it). `sources`, `conditions` and the stores that games are copied from
        are kept for whoever asks later; sources of the parents are sources too. `drop_duplicates`:
        `add` does not take a game whose start and moves the store has already. `command`: a digest
        of what decides the games; where the same command was killed or interrupted before, the
        writing goes on behind its last finished shard in any mode, and `resumed` holds its last
        `mark`.

        Raises DataError: exists already, of another variant or rules, damaged, written by another
        process, or a folder that cannot be written to.
        """
        if shard_games < 1:
            raise ValueError("a shard has at least one game")
        self.path = Path(path)
        self.spec = spec
        self.codec = codec or RulesCodec(spec)
        self.notes: list[str] = []
        """What the user should be told, such as a torn tail that was cut off."""
        self._shard_games = shard_games
        self._squares = spec.board.files * spec.board.ranks
        self._pending: list[form.Pending] = []
        self.mark: Callable[[], Mapping[str, Any]] | None = None
        """Asked at every shard and at an interrupt for what `command` needs to go on from there."""
        self._command = command
        self._halt = self._find_halt(mode)
        self._appending = self.path.exists() and (
            mode == "append" or (self._halt is not None and self._halt_in == self.path)
        )
        if mode == "new" and self.path.exists() and not self._appending:
            raise DataError(f"{self.path} exists already; it may be replaced or appended to")
        if self.path.is_dir():
            raise DataError(f"{self.path} is a folder, not a game store")
        self._target = self.path if self._appending else form.partial_path(self.path)
        if not self._appending and self._halt is None and self._target.exists():
            for parent in parents:
                if parent.path.samefile(self._target):
                    raise DataError(
                        f"{parent.path} is where {self.path} is written until it is whole, and "
                        "would be lost; rename it first, or write to another name"
                    )
        self._stack = contextlib.ExitStack()
        self._file: io.FileIO | None = None
        self._end = self._blocks = self._shards = 0
        self._games = self._plies = self._pending_plies = 0
        self._seen = Seen() if drop_duplicates else None
        with self._undone_on_error():
            self._open()
            if self._halt is None or not self._halt.is_last:
                said = _run(sources, conditions, parents)
                said |= {"command": command} if command else {}
                said |= {"mark": self._halt.mark} if self._halt else {}
                self._write_json(form.RUN, said)

    @property
    def resumed(self) -> dict[str, Any] | None:
        """The mark that the command goes on from; None where it begins."""
        return None if self._halt is None else self._halt.mark

    @property
    def games(self) -> int:
        """Games added by this writer."""
        return self._games + len(self._pending)

    @property
    def plies(self) -> int:
        """Plies added by this writer."""
        return self._plies + self._pending_plies

    # --- opening and closing -------------------------------------------------------------------

    def _find_halt(self, mode: Mode) -> Halt | None:
        """Where this command ended early: in the store, or in what was to become it."""
        self._halt_in = self.path
        if not self._command:
            return None
        halt = find_halt(self.path, self._command)
        if halt is not None and (mode == "append" or halt.is_alone):
            return halt
        if self.path.exists() and mode != "replace":
            return None
        self._halt_in = form.partial_path(self.path)
        return find_halt(self._halt_in, self._command)

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._target, flags, 0o666)
        file = self._stack.enter_context(io.FileIO(descriptor, "r+"))
        self._stack.enter_context(write_lock(file, self.path))
        goes_on = self._appending or self._halt is not None
        self._before = file.seek(0, os.SEEK_END) if goes_on else 0
        self._file = file
        if goes_on:
            self._continue(file)
        else:
            self._games_before = self._plies_before = 0
            self._write_json(form.HEAD, self._head())

    def _continue(self, file: io.FileIO) -> None:
        """Take up the store that is there behind its last finished shard."""
        from variant_ai.core.data.store.game_store import Store

        existing = Store(self._target, self.spec, codec=self.codec)
        halt = self._halt
        if halt is not None and halt.is_last:
            self._end, self._blocks = halt.end, halt.blocks  # over the END of an interrupted run
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
        """Write what is pending and finish the store. `dropped`: games left out, by reason.
        `interrupted`: the sources have more.

        Closing twice does nothing.
        """
        if self._file is None:
            return
        with self._undone_on_error():
            self._flush()
            said: dict[str, Any] = {
                "games": self._games_before + self.games,
                "plies": self._plies_before + self.plies,
            }
            if dropped:
                said["dropped"] = dict(dropped)
            if interrupted:
                said["interrupted"] = True
                if self.mark is not None:
                    said["mark"] = dict(self.mark())
            self._write_json(form.END, said)
            self._stack.close()  # before the rename, which Windows refuses for open files
            if not self._appending:
                os.replace(self._target, self.path)
            self._file = None
            _sync_folder(self.path.parent)

    def abort(self) -> None:
        """Undo this writing: a new store is removed, an old one is as it was before, and what an
        earlier process of the same command did stays."""
        if self._file is None:
            self._stack.close()
            return
        file, self._file = self._file, None
        with contextlib.suppress(OSError, ValueError):
            file.truncate(self._before)
        if not self._appending and self._halt is None:
            with contextlib.suppress(OSError):
                self._target.unlink()
        self._stack.close()

    @contextlib.contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.abort()
            kept = "it is as it was" if self._appending else "nothing was written"
            if self._halt is not None:
                kept = f"{self._target} is as it was, and the same command goes on"
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
        """Add a game; False where it is a duplicate, to be dropped. Raises DataError or MoveError, and adds nothing, where it does not fit:
        another variant, a move without a code, scores or visits for other plies than it has."""
        if record.variant != self.spec.variant:
            raise DataError(f"a game of {record.variant!r} for a store of {self.spec.variant}")
        form.check_record(record)
        check_visits(record)
        start = self._start(record)
        codes = self.codec.encode(start, record.moves)
        visits = coded(self.codec, start, record)
        if self._seen is not None and not self._seen.is_new(start, codes):
            return False
        self._add(record, codes, visits)
        return True

    def _start(self, record: GameRecord) -> str | None:
        fen = record.start_fen
        return None if not fen or fen == self.spec.rules.start else fen

    def copy(self, store: Store, indices: Iterable[int] | None = None) -> None:
        """Add games of another store, all or those of the indices, with all that is said of them;
        nothing is replayed.

        Raises DataError where the store is of another variant or other rules.
        """
        store.require(self.spec)
        for index in range(len(store)) if indices is None else indices:
            record, codes = store.raw(int(index))
            self._add(record, codes, store.raw_visits(int(index)))

    def _add(self, record: GameRecord, codes: Codes, visits: GameVisits | None) -> None:
        if self._file is None:
            raise DataError(f"{self.path} is closed")
        # One append: a Ctrl-C finds the game added whole or not at all.
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
        searched = [game.visits for game in games if game.visits is not None]
        if searched:
            root = pack_visits([game.visits for game in games], self._squares)
            counted = sum(int((visits.counts > 0).sum()) for visits in searched)
            bodies.insert(2, (form.ROOT, root, len(searched), counted))
        data = b"".join(
            pack(kind, self._blocks + i, body, self._shards, *size)
            for i, (kind, body, *size) in enumerate(bodies)
        )
        self._write(data)
        # No call among these stores, so no signal handler runs between them.
        self._end += len(data)
        self._blocks += len(bodies)
        self._shards += 1
        self._games += len(games)
        self._plies += plies
        self._pending, self._pending_plies = [], 0

    def _write_json(self, kind: str, said: Mapping[str, Any]) -> None:
        data = pack(kind, self._blocks, encode_json(said))
        self._write(data)
        self._end += len(data)
        self._blocks += 1

    def _write(self, data: bytes) -> None:
        """Write behind the last finished block, over whatever an interrupted write left there."""
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
        "parents": [parent.as_parent().as_dict() for parent in parents],
    }


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where the system lets folders be synchronised."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
