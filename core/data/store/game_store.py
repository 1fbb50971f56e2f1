"""Reading a game store: compressed games with checksums.

    writer = StoreWriter("games.store", spec, sources=["masters.pgn"])   # store_writer.py
    store = Store("games.store", spec)
    store.codes, store.offsets, store.results     # arrays for the sampler, in milliseconds
    store.game(17)                                # a GameRecord, replayed when requested

A store is one file (`blocks.py`, `store_format.py`, `docs/store-format.md`). It contains its whole
spec, so it can be opened without the plugin that made it; with a spec, other rules are rejected.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from variant_ai.core.data.filters import GameFilter
from variant_ai.core.data.game_record import CAPPED, MOVE_LIMIT, GameRecord
from variant_ai.core.data.store import store_format as form
from variant_ai.core.data.store.blocks import Block, Scan, read_body, scan
from variant_ai.core.data.store.columns import Floats, Longs, Texts, decode_json
from variant_ai.core.data.store.store_format import NO_RATING, UNKNOWN
from variant_ai.core.data.store.store_info import RUNS, Parent, Run, Shard, StoreInfo
from variant_ai.core.data.store.store_writer import StoreWriter
from variant_ai.core.data.store.stored_moves import (
    Codes,
    RulesCodec,
    codes_hash,
)
from variant_ai.core.data.store.visits import (
    GameVisits,
    RootBlock,
    Visits,
    decode_visits,
    join_root,
    join_visits,
    root_digest,
)
from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.spec.hashing import rules_hash, spec_difference
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.checked_models import first_fault
from variant_ai.core.system.text_tables import counted

T = TypeVar("T")

__all__ = ["NO_RATING", "UNKNOWN", "Parent", "Run", "Shard", "Store", "StoreInfo", "StoreWriter"]


class Store:
    """Reader of a game store: G games of L plies in total.

    Opening reads only the heads of the blocks; arrays and games are read on first use, and every
    block is checked against its digest when it is read. Safe to share between threads after the
    arrays that they use have been read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        spec: VariantSpec | None = None,
        *,
        codec: RulesCodec | None = None,
    ) -> None:
        """`spec`: reject a store of another variant or other rules. `codec` replays games; by default
        the one made for the spec.

        Raises DataError if the store is missing, damaged, of a later format, or does not fit `spec`.
        """
        self.path = Path(path)
        self._given_spec, self._given_codec = spec, codec
        found = form.scan_store(self.path)
        self._head = self._read(found.blocks[0], decode_json)
        self._check_head()
        self.shards, runs, unfinished = self._read_layout(found)
        roots = [shard.root for shard in self.shards if shard.root]
        copied = ("format", "variant", "rules_hash", "spec_hash", "codes_hash")
        self.info = StoreInfo(
            **{name: self._head[name] for name in copied},
            path=self.path,
            title=str(self._head["spec"].get("title", "")),
            games=sum(shard.games for shard in self.shards),
            plies=sum(shard.move.plies for shard in self.shards),
            shards=len(self.shards),
            bytes=found.size,
            runs=runs,
            unfinished=unfinished,
            games_with_visits=sum(root.games for root in roots),
            plies_with_visits=sum(root.plies for root in roots),
        )
        if spec is not None:
            self.require(spec)
        self._first_games = [shard.first_game for shard in self.shards]
        self._cached: tuple[int, list[GameRecord], form.Notes, RootBlock | None] | None = None
        """Number and blocks of the shard that was read last."""

    # --- opening -------------------------------------------------------------------------------

    def _read(self, block: Block, parse: Callable[[bytes], T]) -> T:
        """Read and parse a block. Raises DataError with its location if it is damaged."""
        with self.path.open("rb") as file:
            body = read_body(file, block, str(self.path))
        try:
            return parse(body)
        except ValueError as error:
            raise DataError(f"{self.path}: {block.location}: {error}") from error

    def _check_head(self) -> None:
        version = self._head.get("format")
        if version != form.FORMAT:
            raise DataError(
                f"{self.path} has store format {version}, but this version of variant-ai reads format "
                f"{form.FORMAT}: update variant-ai"
            )

    def _read_layout(self, found: Scan) -> tuple[tuple[Shard, ...], tuple[Run, ...], str]:
        shards: list[Shard] = []
        runs: list[Run] = []
        pending: list[Block] = []
        first_game = 0
        for block in found.blocks[1:]:
            if block.kind in form.SHARD_KINDS:
                pending.append(block)
                if block.kind == form.NOTE:
                    shards.append(self._shard(pending, len(shards), first_game))
                    first_game += shards[-1].games
                    pending = []
                continue
            pending = []
            if block.kind == form.RUN:
                runs.append(RUNS.validate_python(self._read(block, decode_json)))
            elif block.kind == form.END:
                totals = self._read(block, decode_json)
                if runs:
                    ended = {k: totals[k] for k in ("dropped", "interrupted") if k in totals}
                    runs[-1] = replace(runs[-1], **ended)
            else:
                raise DataError(
                    f"{self.path}: {block.location}: unknown kind of block; made by a later version?"
                )
        return tuple(shards), tuple(runs), form.unfinished(found, self.path, len(shards))

    def _shard(self, blocks: Sequence[Block], number: int, first_game: int) -> Shard:
        kinds = [block.kind for block in blocks]
        required = [kind for kind in form.SHARD_KINDS if kind != form.ROOT or kind in kinds]
        if kinds != required or any(block.shard != number for block in blocks):
            raise DataError(
                f"{self.path}: shard {number} at offset {blocks[0].offset} must have the blocks "
                f"{', '.join(required)}, but has {', '.join(kinds)}"
            )
        root = blocks[2] if form.ROOT in kinds else None
        return Shard(blocks[0], blocks[1], blocks[-1], first_game, root)

    def require(self, spec: VariantSpec) -> None:
        """Raises DataError if the store is of another variant or other rules than the spec."""
        if self.info.variant != spec.variant:
            raise DataError(
                f"{self.path} holds games of {self.info.variant}, not of {spec.variant}"
            )
        if self.info.rules_hash != rules_hash(spec):
            dumped = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            raise DataError(
                f"{self.path} was made under other rules of {spec.variant} (rules hash "
                f"{self.info.rules_hash}, that of the spec is {rules_hash(spec)}): "
                f"{spec_difference(self._head['spec'], dumped)}; import the games again"
            )
        if self.info.codes_hash != codes_hash(spec):
            raise DataError(
                f"{self.path} encodes its moves in another way (codes hash "
                f"{self.info.codes_hash}, here {codes_hash(spec)}): import the games again"
            )

    # --- spec ----------------------------------------------------------------------------------

    @cached_property
    def spec(self) -> VariantSpec:
        """The given spec, or the one in the store. Raises DataError if this version cannot read it."""
        if self._given_spec is not None:
            return self._given_spec
        import json

        try:
            return VariantSpec.model_validate_json(json.dumps(self._head["spec"]))
        except ValidationError as error:
            where, reason, _ = first_fault(error)
            raise DataError(
                f"the spec inside {self.path} cannot be read ({where}: {reason}); "
                "name the variant, or update variant-ai"
            ) from error

    @cached_property
    def codec(self) -> RulesCodec:
        return self._given_codec or RulesCodec(self.spec)

    def __len__(self) -> int:
        return self.info.games

    @property
    def plies(self) -> int:
        """L: moves of all games in total."""
        return self.info.plies

    # --- arrays --------------------------------------------------------------------------------

    @cached_property
    def _moves(self) -> form.Moves:
        return form.join_moves([self._shard_moves(shard.move) for shard in self.shards])

    def _shard_moves(self, block: Block) -> form.Moves:
        squares = self._head["squares"]
        return self._read(
            block, lambda body: form.unpack_moves(body, squares, block.games, block.plies)
        )

    @property
    def codes(self) -> Codes:
        """[L] uint16: moves of all games, one after the other (`core/encoding/move_codes.py`)."""
        return self._moves.codes

    @cached_property
    def offsets(self) -> Longs:
        """[G + 1]: game i is `codes[offsets[i]:offsets[i + 1]]`."""
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self._moves.plies, out=offsets[1:])
        return offsets

    @property
    def lengths(self) -> Longs:
        """[G] plies of each game."""
        return self._moves.plies

    @property
    def results(self) -> NDArray[np.int8]:
        """[G] 1 the first player won, 0 drawn, -1 lost, 2 unknown."""
        return self._moves.results

    @property
    def years(self) -> NDArray[np.int16]:
        """[G] year, 0 if unknown."""
        return self._moves.years

    @property
    def opening_plies(self) -> Longs:
        """[G] first plies that neither player chose (`GameRecord.opening_plies`)."""
        return self._moves.openings

    @cached_property
    def start_fens(self) -> tuple[str | None, ...]:
        """[S] distinct start positions, None for that of the variant."""
        return tuple(fen or None for fen in self._moves.fens)

    @cached_property
    def starts(self) -> Position:
        """[S] distinct start positions, dtype POSITION. Raises FenError."""
        return np.array([self.codec.start(fen)[0] for fen in self.start_fens], POSITION)

    @property
    def start_of(self) -> NDArray[np.int32]:
        """[G] index into `starts`."""
        return self._moves.start_of

    def starts_and_codes(self, games: Iterable[int] | None = None) -> Iterator[tuple[str, Codes]]:
        """Yield what makes a game a copy of another: its start position, `''` for that of the variant,
        and its moves; of the games of the indices, or all."""
        for i in range(len(self)) if games is None else games:
            codes = self.codes[self.offsets[i] : self.offsets[i + 1]]
            yield self._moves.fens[self.start_of[i]], codes

    @cached_property
    def content_hash(self) -> str:
        """Hash in 16 hex digits of variant, rules, start positions, moves, results, openings, and the
        visits and root values of searches with what may learn from them, independent of shards and
        names: the data hash in checkpoints and networks."""
        made = hashlib.blake2b(digest_size=8)
        made.update(f"{self.info.variant} {self.info.rules_hash}".encode())
        for fen in self._moves.fens:
            made.update(fen.encode("utf-8", "surrogatepass") + b"\n")
        for array in (self.start_of, self.lengths, self.results, self.codes):
            made.update(np.ascontiguousarray(array).view(np.uint8).data)
        if self.opening_plies.any():
            made.update(b"openings" + self.opening_plies.tobytes())
        if any(shard.root for shard in self.shards):
            # shard by shard, so that not all visits are held in memory
            shards = (
                (shard.games, shard.move.plies, self._shard_root(number))
                for number, shard in enumerate(self.shards)
            )
            made.update(root_digest(shards))
        return made.hexdigest()

    @cached_property
    def visits(self) -> Visits | None:
        """Visits of searches, kept in memory from the first call on; None if the store has none."""
        blocks = (self._shard_root(number) for number in range(len(self.shards)))
        arrays = [None if block is None else block.visits.arrays() for block in blocks]
        return join_visits([(s.move.plies, a) for s, a in zip(self.shards, arrays, strict=True)])

    @cached_property
    def _root(self) -> tuple[Floats | None, NDArray[np.uint8] | None]:
        """`root_values` and `trains`."""
        if not any(shard.root for shard in self.shards):
            return None, None
        blocks = (self._shard_root(number) for number in range(len(self.shards)))
        return join_root(zip((shard.move.plies for shard in self.shards), blocks, strict=True))

    @property
    def root_values(self) -> Floats | None:
        """[L] mean value of the search of each ply for the player to move, in [-1, 1], NaN if unknown;
        None if the store has none."""
        return self._root[0]

    @property
    def trains(self) -> NDArray[np.uint8] | None:
        """[L] heads that may learn from each position (`GameRecord.trains`); None if all may."""
        return self._root[1]

    @cached_property
    def scores(self) -> Floats | None:
        """[L] score of each ply in centipawns for the player to move, NaN if unknown (mates as in
        `GameRecord.scores`); None if the store has none."""
        parts = [
            self._read(shard.note, partial(form.read_scores, moves=self._part(number)))
            for number, shard in enumerate(self.shards)
        ]
        return form.known(parts)

    def _shard_root(self, number: int) -> RootBlock | None:
        root = self.shards[number].root
        if root is None:
            return None
        part = self._part(number)
        block = self._read(root, lambda body: RootBlock(body, self._head["squares"], part))
        visits = block.visits
        if (int(visits.has.sum()), int((visits.counts > 0).sum())) != (root.games, root.plies):
            raise DataError(
                f"{self.path}: {root.location}: its games and plies are not those of its head"
            )
        return block

    # --- columns -------------------------------------------------------------------------------

    def _shard_facts(self, number: int) -> list[GameRecord]:
        shard, part = self.shards[number], self._part(number)
        return self._read(
            shard.fact,
            lambda body: form.facts_records(body, part, self.info.variant),
        )

    def _part(self, number: int) -> form.Moves:
        """Views of one shard in the joined arrays."""
        shard, every = self.shards[number], self._moves
        games = slice(shard.first_game, shard.first_game + shard.games)
        ends = self.offsets[games.start], self.offsets[games.stop]
        return form.Moves(
            every.codes[ends[0] : ends[1]],
            every.plies[games],
            every.results[games],
            every.years[games],
            every.fens,
            every.start_of[games],
            every.openings[games],
        )

    def facts(self) -> Iterator[GameRecord]:
        """Yield every game in order without moves and notes, and without a replay."""
        for number in range(len(self.shards)):
            yield from self._shard_facts(number)

    def column(self, name: str) -> Texts:
        """Distinct texts of a column in order of first use, and int32 [G] the index of each game.

        `name` is a text field of `GameRecord`, such as `event`, `white` or `group`.
        """
        index: dict[str, int] = {}
        rows = [index.setdefault(getattr(game, name), len(index)) for game in self.facts()]
        return list(index), np.asarray(rows, np.int32)

    @cached_property
    def groups(self) -> NDArray[np.int32]:
        """[G] number of the group; a game without a group is a group by itself."""
        index: dict[str | int, int] = {}
        names = (game.group or i for i, game in enumerate(self.facts()))
        return np.asarray([index.setdefault(name, len(index)) for name in names], np.int32)

    @cached_property
    def ratings(self) -> NDArray[np.int32]:
        """[G, 2] ratings of the first and the second player, NO_RATING if missing."""
        pairs = [
            [NO_RATING if elo is None else elo for elo in (game.white_elo, game.black_elo)]
            for game in self.facts()
        ]
        return np.asarray(pairs, np.int32).reshape(-1, 2)

    def select(self, conditions: GameFilter) -> tuple[Longs, dict[str, int]]:
        """Indices of the games that meet the conditions, and the numbers of the others by reason."""
        games = zip(self.facts(), self.lengths.tolist(), strict=True)
        reasons = [conditions.reason(game, plies) for game, plies in games]
        kept = np.asarray([i for i, reason in enumerate(reasons) if reason is None], np.int64)
        return kept, Counter(reason for reason in reasons if reason is not None)

    @cached_property
    def cut_off(self) -> NDArray[np.bool_]:
        """[G] True for games that were ended at their greatest length: nobody knows how long they would
        have been."""
        parts = [
            self._read(shard.fact, partial(form.ended_by, terminations=(MOVE_LIMIT, CAPPED)))
            for shard in self.shards
        ]
        return np.concatenate([np.zeros(0, np.bool_), *parts])

    # --- games ---------------------------------------------------------------------------------

    def raw(self, index: int) -> tuple[GameRecord, Codes, GameVisits | None]:
        """Return a game with its notes and root values, but without moves and visits, and these in
        codes; without a replay.

        The record may be changed by the caller. Raises IndexError, DataError if a block is damaged.
        """
        if not -len(self) <= index < len(self):
            raise IndexError(f"game {index} of a store of {counted(len(self), 'game')}")
        index %= len(self)
        number = bisect_right(self._first_games, index) - 1
        within = index - self._first_games[number]
        records, notes, root = self._shard_games(number)
        record = replace(records[within], moves=[])
        notes.add_to(record, within)
        if root is not None:
            root.add_to(record, within)
        visits = None if root is None else root.visits.of(within)
        return record, self.codes[self.offsets[index] : self.offsets[index + 1]], visits

    def _shard_games(self, number: int) -> tuple[list[GameRecord], form.Notes, RootBlock | None]:
        """Games of a shard without notes, its NOTE and its ROOT, kept until another one is read."""
        cached = self._cached
        if cached is None or cached[0] != number:
            part = self._part(number)
            notes = self._read(self.shards[number].note, lambda body: form.Notes(body, part))
            cached = (number, self._shard_facts(number), notes, self._shard_root(number))
            self._cached = cached
        return cached[1:]

    def game(self, index: int) -> GameRecord:
        """Return a complete game, with replayed moves. Raises IndexError, DataError if a block is
        damaged or a move is not possible."""
        record, codes, visits = self.raw(index)
        try:
            record.moves = self.codec.decode(record.start_fen, codes)
            if visits is not None:
                record.visits = decode_visits(self.codec, record.start_fen, codes, visits)
        except VariantAIError as error:
            raise DataError(f"{self.path}: game {index % len(self) + 1}: {error}") from error
        return record

    def games(self, indices: Sequence[int] | Longs | None = None) -> Iterator[GameRecord]:
        """Yield complete games of the given indices, or all, in order."""
        for index in range(len(self)) if indices is None else indices:
            yield self.game(int(index))

    # --- checking ------------------------------------------------------------------------------

    def verify(self, *, progress: Callable[[int], None] | None = None) -> None:
        """Check every byte, and every column against the others.

        `progress` is called after each shard with its number of games. Raises DataError with shard
        and offset of the first damage.
        """
        with self.path.open("rb") as file:
            for block in scan(file, str(self.path)).blocks:
                read_body(file, block, str(self.path))
        for shard in self.shards:
            if shard.games:
                self.raw(shard.first_game)
            if progress is not None:
                progress(shard.games)
