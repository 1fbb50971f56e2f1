"""The sampler: training batches straight from stored games, in a seeded order, on the fly.

Stores hold games, not planes. A sample is (game, ply): the position before that ply, the move
played in it, and the game's result as its mover sees it. Games without a known result give no
samples. Batches are made by compiled code without the GIL (`replay.py`), ahead of the trainer in
background threads; what a step contains depends on seed and step alone, so training resumes
anywhere by naming the step.

With mirroring every position is two samples, itself and its left-right image (thesis section 4.4).

With the labels `visits` a sample also has the moves that a search visited there, each with its share
of the visits; a position without visits has the move played with all of the share.

Where the rules run on `fairy` the same batches are made in Python, some thousand times slower.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data import replay
from variant_ai.core.data.record import Labels
from variant_ai.core.data.visits import Visits, join_visits
from variant_ai.core.encoding import Encoder, Head, MoveCodec
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.rules.tables import Tables, compile_tables
from variant_ai.specs.errors import DataError, SpecError

MIN_STRIDE, MAX_STRIDE = 4, 1 << 20
"""Plies between the positions kept of a game."""


class GameArrays(Protocol):
    """What the sampler needs of a game store: G games of together L plies.

    A `Store` is one; so is anything with these attributes. Visits of searches are looked for in an
    attribute `visits` (`visits.Visits`, or None), which need not be there.
    """

    @property
    def codes(self) -> NDArray[np.uint16]:
        """[L] moves of all games one after the other (`MoveCodec`)."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """[G + 1] where each game's codes begin, and L."""

    @property
    def results(self) -> NDArray[np.int8]:
        """[G] 1 the first player won, 0 drawn, -1 lost, 2 unknown."""

    @property
    def starts(self) -> Position:
        """[S] the distinct start positions, dtype POSITION, keys set."""

    @property
    def start_of(self) -> NDArray[np.int32]:
        """[G] index into `starts`."""


@dataclass(slots=True)
class Batch:
    """B samples. The arrays are reused: `batches` fills them anew two steps later."""

    planes: NDArray[np.float32]
    """[B, C, H, W], normalised."""
    action: NDArray[np.int64]
    """[B] index of the move played, in the encoder's policy; with the labels `visits` of the move
    visited most, where there are visits."""
    value: NDArray[np.float32]
    """[B] 1 won, 0 drawn, -1 lost by the player to move."""
    plies_left: NDArray[np.float32]
    """[B] plies from the position to the end of its game, the move played among them."""
    positions: Position
    """[B] dtype POSITION, unmirrored, `repetitions` set where the encoder asks for them."""
    choices: NDArray[np.int64]
    """[B, K] moves that a search visited, in the encoder's policy; K is 0 with the labels `move`."""
    shares: NDArray[np.float32]
    """[B, K] of the visits, each row adding up to 1; 0 for choices that only fill up a row."""

    def __len__(self) -> int:
        return len(self.action)

    def first(self, n: int) -> Batch:
        """Views of the first n samples."""
        return self.part(0, n)

    def part(self, first: int, end: int) -> Batch:
        """Views of samples `first` to `end - 1`."""
        return Batch(
            self.planes[first:end],
            self.action[first:end],
            self.value[first:end],
            self.plies_left[first:end],
            self.positions[first:end],
            self.choices[first:end],
            self.shares[first:end],
        )


class BatchMaker(ABC):
    """Makes the batch of any step, and so all of them in order, ahead of whoever uses them."""

    @abstractmethod
    def new_batch(self, size: int | None = None) -> Batch:
        """An empty batch to be filled, of the maker's own size by default."""

    @abstractmethod
    def batch(self, step: int, out: Batch | None = None) -> Batch:
        """The batch of a step (0 is the first), in `out` if given. Depends on nothing else."""

    def batches(
        self, first: int = 0, last: int | None = None, *, ahead: int = 3, threads: int = 1
    ) -> Iterator[Batch]:
        """The batches of steps `first` to `last - 1` (endless by default), in order.

        `threads` background threads work up to `ahead` steps ahead. A batch is yours until you
        ask for the next one; copy what must live longer.
        """
        end = np.inf if last is None else last
        free = [self.new_batch() for _ in range(max(ahead, 1) + 1)]
        waiting: deque[Future[Batch]] = deque()
        step = first
        with ThreadPoolExecutor(threads, thread_name_prefix="sampler") as pool:
            try:
                while True:
                    while free and step < end:
                        waiting.append(pool.submit(self.batch, step, free.pop()))
                        step += 1
                    if not waiting:
                        return
                    batch = waiting.popleft().result()
                    yield batch
                    free.append(batch)
            finally:
                for future in waiting:
                    future.cancel()


class Sampler(BatchMaker):
    """Batches of a fixed size over the positions of one or more stores.

    N positions give S = N samples an epoch, or 2 N with mirroring. Batches follow one another
    through the epochs without a gap: step k holds samples k * B to (k + 1) * B - 1.
    """

    def __init__(
        self,
        stores: GameArrays | Sequence[GameArrays],
        encoder: Encoder,
        *,
        batch: int,
        seed: int = 0,
        mirror: bool = False,
        head: Head | None = None,
        games: NDArray[np.integer] | Sequence[NDArray[np.integer]] | None = None,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
        forget_move_number: float = 0.0,
        memory: int = 128 << 20,
        rules: Rules | None = None,
        labels: Labels = "move",
    ) -> None:
        """`games` are the indices of the games of a split, one array per store; None is all.

        `rank` of `world` processes: each takes every `world`-th batch of the same sequence.
        `forget_move_number` is the share of samples whose full-move number is replaced by 1, as
        graphical interfaces do by sending a FEN; the net then learns not to lean on it.
        `memory` is what positions kept on the way may take in bytes: the more, the less of a game
        is replayed for a sample. `rules` are needed only where the spec's engine is `fairy`.
        `labels`: whether samples have the visits of searches too; those of the stores are held in
        memory then.

        Every game is replayed once here. Raises DataError where no position is left, or a code is
        no move (a damaged store, or one of other rules), SpecError where `mirror` is asked of a spec
        without the symmetry.
        """
        if batch < 1:
            raise ValueError("a batch has at least one sample")
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} of {world} processes")
        self.encoder = encoder if head in (None, encoder.head) else Encoder(encoder.spec, head)
        self.size, self.seed, self.mirror, self.shuffle = batch, seed, mirror, shuffle
        self.rank, self.world = rank, world
        self.forget_move_number = forget_move_number
        self.codec = MoveCodec(encoder.spec)
        self._mirror_actions = (
            self.encoder.mirror_actions if mirror else np.arange(self.encoder.actions, dtype="i4")
        )
        self._games = _Games.gather(stores, games, labels)
        self.labels: Labels = labels
        self.choices = 0 if labels == "move" else max(1, self._games.most_choices)
        """K: choices of a sample."""
        self.positions = int(self._games.cumulative[-1])
        """N: positions with a move, of the chosen games with a known result."""
        if self.positions == 0:
            raise DataError("no position to sample: no chosen game has both a move and a result")
        repetitions = any(p.item == "repetitions" for p in encoder.input_planes)
        self._repetitions = repetitions
        self._tables: Tables | None = None
        self._rules = rules
        if encoder.spec.rules.engine == "kernel":
            self._tables = compile_tables(encoder.spec)
            self._frames = _Frames.of(self._games, self._tables, self.codec, repetitions, memory)
        elif rules is None:
            raise SpecError(f"{encoder.spec.variant} runs on fairy: give the sampler its rules")

    @property
    def samples_per_epoch(self) -> int:
        return self.positions * 2 if self.mirror else self.positions

    @property
    def searched(self) -> int:
        """Positions with visits of a search; 0 with the labels `move`."""
        return self._games.searched()

    @property
    def steps_per_epoch(self) -> int:
        """Steps of this process until every sample was met (the last may begin the next epoch)."""
        return -(-self.samples_per_epoch // (self.size * self.world))

    def new_batch(self, size: int | None = None, choices: int | None = None) -> Batch:
        """An empty batch to be filled, of the sampler's own size and K by default."""
        n = self.size if size is None else size
        width = self.choices if choices is None else choices
        return Batch(
            np.zeros((n, *self.encoder.shape), np.float32),
            np.zeros(n, np.int64),
            np.zeros(n, np.float32),
            np.zeros(n, np.float32),
            np.zeros(n, POSITION),
            np.zeros((n, width), np.int64),
            np.zeros((n, width), np.float32),
        )

    def batch(self, step: int, out: Batch | None = None) -> Batch:
        """The batch of a step (0 is the first), in `out` if given. Depends on nothing else.

        Raises DataError naming game and ply where a move has no action in the encoder's policy.
        """
        out = out or self.new_batch()
        self.fill(out, (step * self.world + self.rank) * self.size)
        return out

    def fill(self, out: Batch, first: int) -> None:
        """Samples `first` to `first + len(out) - 1` of the endless sequence; errors as `batch`."""
        self._fill(out, first, self.shuffle, self.mirror, self.forget_move_number)

    def sweep(self, *, limit: int | None = None) -> Iterator[Batch]:
        """Every position once, in stored order and unmirrored; the last batch may be shorter.

        With `limit`, that many positions spread evenly by the seed instead of all. A batch is
        yours until you ask for the next one.
        """
        total = self.positions if limit is None else min(limit, self.positions)
        part = total < self.positions
        out = self.new_batch(min(self.size, total))
        for start in range(0, total, len(out)):
            batch = out.first(min(len(out), total - start))
            self._fill(batch, start, part, False, 0.0)
            yield batch

    @property
    def origins(self) -> NDArray[np.int64]:
        """[G, 2] where each sampled game comes from: number of its store, index within it."""
        return self._games.origins

    def swept_games(self, *, limit: int | None = None) -> NDArray[np.int64]:
        """[N] the game of each position of `sweep(limit=limit)`, numbered among the sampled."""
        total = self.positions if limit is None else min(limit, self.positions)
        at = np.arange(total)
        if total < self.positions:
            n, seed = self.positions, self.seed
            at = np.array([int(replay.shuffled(i, n, seed, 0)) for i in range(total)], np.int64)
        return np.searchsorted(self._games.cumulative, at, "right").astype(np.int64) - 1

    def locate(self, sample: int) -> tuple[int, int, bool]:
        """(game, ply, mirrored) of a sample of the endless sequence; the game is numbered among
        the games sampled."""
        return self._locate(sample, self.shuffle, self.mirror)

    def _locate(self, sample: int, shuffle: bool, mirror: bool) -> tuple[int, int, bool]:
        period = self.positions * 2 if mirror else self.positions
        epoch, index = divmod(sample, period)
        if shuffle:
            index = int(replay.shuffled(index, period, self.seed, epoch))
        mirrored, at = divmod(index, self.positions)
        game = int(np.searchsorted(self._games.cumulative, at, "right")) - 1
        return game, at - int(self._games.cumulative[game]), bool(mirrored)

    # --- filling -------------------------------------------------------------------------------

    def _fill(self, out: Batch, first: int, shuffle: bool, mirror: bool, forget: float) -> None:
        """Fill `out` with samples from `first` on."""
        if self._tables is None:
            self._fill_slowly(out, first, shuffle, mirror, forget)
            return
        games, encoder, frames = self._games, self.encoder, self._frames
        failure = np.zeros(2, np.int64)
        filled = replay.fill(
            self._tables,
            encoder.input_record,
            self.codec.record,
            encoder.policy_record,
            encoder.action_table,
            self._mirror_actions,
            games.codes,
            games.first_code,
            games.cumulative,
            games.block_game,
            frames.stride,
            frames.first,
            frames.positions,
            frames.seen,
            games.results,
            self.seed,
            int(shuffle),
            int(mirror),
            float(forget),
            first,
            len(out),
            out.planes.reshape(len(out), -1),
            out.action,
            out.value,
            out.plies_left,
            out.positions,
            failure,
        )
        visits = games.visits
        if filled == len(out) and self.labels == "visits" and visits is None:
            _played_alone(out)
        elif filled == len(out) and visits is not None:
            filled = replay.fill_choices(
                self.codec.record,
                encoder.policy_record,
                encoder.action_table,
                self._mirror_actions,
                games.cumulative,
                games.block_game,
                visits.first,
                visits.ends,
                visits.codes,
                visits.weights,
                self.seed,
                int(shuffle),
                int(mirror),
                first,
                len(out),
                out.positions,
                out.action,
                out.choices,
                out.shares,
                failure,
            )
        if filled != len(out):
            game, ply = failure.tolist()
            what = "is no move of its position" if filled == replay.BAD_CODE else "has no action"
            raise DataError(f"game {game} of the sampled games, ply {ply}: a code {what}")

    def _fill_slowly(
        self, out: Batch, first: int, shuffle: bool, mirror: bool, forget: float
    ) -> None:
        """The same through the Rules interface, for rules that only `fairy` has."""
        assert self._rules is not None
        games = self._games
        for k in range(len(out)):
            game, ply, mirrored = self._locate(first + k, shuffle, mirror)
            begin = int(games.first_code[game])
            start = int(games.start_of[game])
            position = games.starts[start : start + 1].copy()
            history: list[bytes] = []
            for code in games.codes[begin : begin + ply].tolist():
                history.append(_identity(position))
                position = self._rules.play(position, self.codec.decode(position, code))
            if self._repetitions:
                position["repetitions"] = min(history.count(_identity(position)), 127)
            move = self.codec.decode(position, int(games.codes[begin + ply]))
            action = self.encoder.action(position, move)
            side = int(position[0]["side"])
            if replay.forgets(self.seed, first + k, forget):
                position["ply"] = side
            self.encoder.planes(position, out.planes[k : k + 1], mirrored=mirrored)
            out.action[k] = self._mirror_actions[action] if mirrored else action
            out.value[k] = games.results[game] * (-1 if side else 1)
            out.plies_left[k] = games.cumulative[game + 1] - games.cumulative[game] - ply
            out.positions[k] = position[0]
            if self.labels == "visits":
                _played_alone(out.part(k, k + 1))
                self._choose_slowly(out.part(k, k + 1), position, game, ply, mirrored)

    def _choose_slowly(
        self, out: Batch, position: Position, game: int, ply: int, mirrored: bool
    ) -> None:
        """`fill_choices` for one sample."""
        visits = self._games.visits
        if visits is None or visits.first[game] < 0:
            return
        begin, end = visits.ends[visits.first[game] + ply :][:2].tolist()
        if begin == end:
            return
        moves = [self.codec.decode(position, int(code)) for code in visits.codes[begin:end]]
        actions = self.encoder.action_indices(position, moves)
        weights = visits.weights[begin:end].astype(np.float64)
        out.choices[0, : end - begin] = self._mirror_actions[actions] if mirrored else actions
        out.shares[0, : end - begin] = weights / weights.sum()
        out.action[0] = out.choices[0, int(weights.argmax())]


def _played_alone(out: Batch) -> None:
    """Gives all of the share to the moves played."""
    out.choices[:], out.shares[:] = 0, 0
    out.choices[:, 0], out.shares[:, 0] = out.action, 1


@dataclass(slots=True)
class _Games:
    """The sampled games of all stores, one after the other."""

    codes: NDArray[np.uint16]
    first_code: NDArray[np.int64]
    """[G] where a game's codes begin."""
    cumulative: NDArray[np.int64]
    """[G + 1] positions before each game."""
    block_game: NDArray[np.int32]
    """Game of every BLOCK-th position."""
    start_of: NDArray[np.int32]
    starts: Position
    results: NDArray[np.int8]
    origins: NDArray[np.int64]
    """[G, 2] number of the store, index within it."""
    visits: Visits | None = None

    @property
    def most_choices(self) -> int:
        return 0 if self.visits is None else self.visits.most

    def searched(self) -> int:
        """Positions with visits."""
        if self.visits is None:
            return 0
        first, plies = self.visits.first, np.diff(self.cumulative)
        before = np.concatenate([[0], np.cumsum(np.diff(self.visits.ends) > 0)])
        there = first >= 0
        return int((before[first[there] + plies[there]] - before[first[there]]).sum())

    @staticmethod
    def gather(
        stores: GameArrays | Sequence[GameArrays],
        games: NDArray[np.integer] | Sequence[NDArray[np.integer]] | None,
        labels: Labels,
    ) -> _Games:
        listed = list(stores) if isinstance(stores, Sequence) else [stores]
        if games is None:
            chosen: list[NDArray[np.integer] | None] = [None] * len(listed)
        elif isinstance(stores, Sequence):
            chosen = list(games)
        else:
            chosen = [np.asarray(games)]
        if len(chosen) != len(listed):
            raise ValueError(f"{len(listed)} stores, but games of {len(chosen)}")
        firsts, plies, start_of, results, origins, every_kept = [], [], [], [], [], []
        code_base = start_base = 0
        for number, (store, games_) in enumerate(zip(listed, chosen, strict=True)):
            every = np.arange(len(store.results)) if games_ is None else np.asarray(games_)
            offsets = np.asarray(store.offsets, np.int64)
            length = offsets[every + 1] - offsets[every]
            kept = every[(np.abs(store.results[every]) <= 1) & (length > 0)]
            firsts.append(offsets[kept] + code_base)
            plies.append(offsets[kept + 1] - offsets[kept])
            start_of.append(np.asarray(store.start_of)[kept] + start_base)
            results.append(np.asarray(store.results)[kept])
            origins.append(np.stack([np.full_like(kept, number), kept], axis=1))
            every_kept.append(kept)
            code_base += len(store.codes)
            start_base += len(store.starts)
        cumulative = np.zeros(sum(map(len, plies)) + 1, np.int64)
        np.cumsum(np.concatenate(plies), out=cumulative[1:])
        blocks = np.arange(0, cumulative[-1], replay.BLOCK)
        return _Games(
            codes=_joined([store.codes for store in listed], np.uint16),
            first_code=_joined(firsts, np.int64),
            cumulative=cumulative,
            block_game=(np.searchsorted(cumulative, blocks, "right") - 1).astype(np.int32),
            start_of=_joined(start_of, np.int32),
            starts=_joined([store.starts for store in listed], POSITION),
            results=_joined(results, np.int8),
            origins=_joined(origins, np.int64),
            visits=None if labels == "move" else _visits(listed, every_kept),
        )


def _visits(stores: Sequence[GameArrays], games: Sequence[NDArray[np.integer]]) -> Visits | None:
    """Visits of the games chosen of each store; None where no store has any."""
    parts: list[tuple[int, Visits | None]] = []
    for store, kept in zip(stores, games, strict=True):
        found: Visits | None = getattr(store, "visits", None)
        parts.append(
            (len(kept), None if found is None else replace(found, first=found.first[kept]))
        )
    joined = join_visits(parts)
    if joined is None:
        return None
    return Visits(
        np.require(joined.first, np.int64, ["C", "W", "A"]),
        np.require(joined.ends, np.int64, ["C", "W", "A"]),
        np.require(joined.codes, np.uint16, ["C", "W", "A"]),
        np.require(joined.weights, np.uint16, ["C", "W", "A"]),
    )


@dataclass(slots=True)
class _Frames:
    """Positions kept of every game, so that a sample replays a few plies and not all."""

    stride: int
    """Every so many plies of a game one is kept, ply 0 first."""
    first: NDArray[np.int64]
    """[G] index of a game's first."""
    positions: Position
    seen: NDArray[np.int8]
    """[N] how often each position occurred before in its game; empty where no plane asks."""

    @staticmethod
    def of(
        games: _Games, tables: Tables, codec: MoveCodec, repetitions: bool, memory: int
    ) -> _Frames:
        plies = np.diff(games.cumulative)
        stride = MIN_STRIDE
        while int((-(-plies // stride)).sum()) * POSITION.itemsize > memory and stride < MAX_STRIDE:
            stride *= 2
        counts = -(-plies // stride)
        first = np.zeros(len(plies), np.int64)
        np.cumsum(counts[:-1], out=first[1:])
        frames = _Frames(
            stride,
            first,
            np.zeros(int(counts.sum()), POSITION),
            np.zeros(games.cumulative[-1] if repetitions else 0, np.int8),
        )
        replayed = replay.replay_games(
            tables,
            codec.record,
            games.codes,
            games.first_code,
            games.cumulative,
            games.start_of,
            games.starts,
            stride,
            frames.first,
            frames.positions,
            frames.seen,
            np.empty(plies.max() if repetitions else 0, np.uint64),
        )
        if replayed < len(plies):
            raise DataError(
                f"game {replayed} of the sampled games has a move that its position does not "
                "allow: the store is damaged, or of other rules"
            )
        return frames


def _identity(position: Position) -> bytes:
    """What must recur for a position to be repeated, of rules that keep no key."""
    record = position[0]
    return b"".join(
        np.asarray(record[name]).tobytes()
        for name in ("board", "hands", "side", "castling", "ep", "wins_left")
    )


def _joined(arrays: Sequence[Any], dtype: Any) -> Any:
    """One array, contiguous and writable: anything else is another signature to compiled code."""
    array = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return np.require(array, dtype, ["C", "W", "A"])
