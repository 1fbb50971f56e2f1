"""Training batches made directly from stored games, in a seeded order.

Stores hold games, not planes. A sample is (game, ply): the position before that ply, the move
played in it, and the result of the game from the view of the player to move. Games without a known
result give no samples, nor do plies that neither player chose (`OpeningPlies` in the headers of a
game: a line given to both players, random moves) or that teach nothing. Batches are made by
compiled code without the GIL (`compiled_replay.py`), ahead of the trainer in background threads.
The contents of a step depend on seed and step alone, so training resumes from the number of the
step.

With mirroring every position is two samples, itself and its left-right image ([Xiangqi-thesis]
section 4.4).

With the labels `visits` a sample also has the moves that a search visited, each with its share of
the visits; in a position without visits the move played has the whole share. Value labels other than
`result` take values of the search (`value_labels.py`); then games without a result are sampled if they
have such values. Where a policy or a value must not be learnt (`GameRecord.trains`, or a value that is
not known) its weight is 0.

For rules that run on `fairy` the same batches are made in Python, about a thousand times slower.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import Labels
from variant_ai.core.data.sample import compiled_replay as replay
from variant_ai.core.data.sample.sampled_games import gather_games, make_frames
from variant_ai.core.data.sample.value_labels import ValueLabels
from variant_ai.core.data.store.columns import Floats, Longs
from variant_ai.core.encoding import Encoder, MoveCodec
from variant_ai.core.errors import DataError, SpecError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.rule_tables import compile_tables
from variant_ai.core.rules.kernel.table_layout import TABLES
from variant_ai.core.rules.position import POSITION, Position

if TYPE_CHECKING:
    from variant_ai.core.data.store.game_store import Store


@dataclass(slots=True)
class Batch:
    """B samples. `batches` reuses the arrays once the next batch is requested."""

    planes: Floats
    """[B, C, H, W], normalised."""
    action: Longs
    """[B] index in the encoder's policy of the move played; with the labels `visits`, of the most
    visited move if there are visits."""
    value: Floats
    """[B] value label of the player to move, in [-1, 1]; of results 1 won, 0 drawn, -1 lost."""
    plies_left: Floats
    """[B] plies from the position to the end of its game, including the move played; NaN if the result
    of the game must not be learnt, or is not known: then it may have been cut off; and if it was ended at
    its greatest length."""
    positions: Position
    """[B] dtype POSITION, not mirrored; `repetitions` is set if the encoder needs it."""
    choices: Longs
    """[B, K] indices of the moves that a search visited; K is 0 with the labels `move`."""
    shares: Floats
    """[B, K] shares of the visits, each row adding up to 1; 0 for padding."""
    policy_weight: Floats
    """[B] weight of the policy in the loss: 1, or 0 if it must not be learnt."""
    value_weight: Floats
    """[B] weight of the value likewise."""

    def __len__(self) -> int:
        return len(self.action)

    def part(self, first: int, end: int) -> Batch:
        """Views of samples `first` to `end - 1`."""
        return Batch(*(getattr(self, item.name)[first:end] for item in fields(self)))


class BatchMaker(ABC):
    """Maker of the batch of any step, and of all batches in order, in background threads."""

    size: int
    """B: samples of a batch."""
    rank: int
    world: int
    """Number of processes that share the steps; this is process `rank`."""

    @property
    @abstractmethod
    def samples_per_epoch(self) -> int: ...

    @property
    def steps_per_epoch(self) -> int:
        """Steps of this process per epoch (the last may begin the next epoch)."""
        return -(-self.samples_per_epoch // (self.size * self.world))

    @abstractmethod
    def new_batch(self, size: int | None = None) -> Batch:
        """Return an empty batch, of the maker's own size by default."""

    @abstractmethod
    def batch(self, step: int, out: Batch | None = None) -> Batch:
        """Return the batch of a step (0 is the first), in `out` if given."""

    def whole(self) -> Self:
        """Return a copy that yields the samples of a single process."""
        alone = copy.copy(self)
        alone.rank, alone.world = 0, 1
        return alone

    def batches(
        self, first: int = 0, last: int | None = None, *, ahead: int = 3, threads: int = 1
    ) -> Iterator[Batch]:
        """Yield the batches of steps `first` to `last - 1` (endless by default), in order.

        `threads` background threads work up to `ahead` steps ahead. A batch is valid until the next
        one is requested; copy what must live longer.
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


_NO_PLANES = np.zeros((0, 0), np.float32)


class Sampler(BatchMaker):
    """Batches of a fixed size over the positions of one or more stores.

    N positions give S = N samples per epoch, or 2 N with mirroring. Batches continue across epochs
    without a gap: step k has samples k * B to (k + 1) * B - 1.
    """

    def __init__(
        self,
        stores: Store | Sequence[Store],
        encoder: Encoder,
        *,
        batch: int,
        seed: int = 0,
        mirror: bool = False,
        games: NDArray[np.integer] | Sequence[NDArray[np.integer]] | None = None,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
        forget_move_number: float = 0.0,
        memory: int = 128 << 20,
        rules: Rules | None = None,
        labels: Labels = "move",
        value_labels: str = "result",
        draw_value: float = 0.0,
    ) -> None:
        """`stores`, or other objects with the arrays of a store. `games` are the indices of the
        games of a split, one array per store; None: all games.

        `rank` of `world` processes: each takes every `world`-th batch of the same sequence.
        `forget_move_number` is the share of samples whose move number is replaced by 1, as in
        positions that graphical interfaces send as FEN, so that the net does not rely on it.
        `memory` is the limit in bytes of the positions kept of games: the more, the fewer plies are
        replayed for a sample. `rules` are required only if the spec's engine is `fairy`. With the
        labels `visits`, the visits of searches in the stores are held in memory. `value_labels` as
        `ValueLabels.parse` reads them, with a scale if they are scores; `draw_value` is the result
        of a drawn game for both players in a value label, in [-1, 1].

        Every game is replayed once here. Raises DataError if there is no position, if a code is not
        a move (the store is damaged, or made under other rules) or if the value labels are not
        valid; SpecError for `mirror` if the spec is not symmetric.
        """
        self.encoder = encoder
        self.size, self.seed, self.mirror = batch, seed, mirror
        self.rank, self.world = rank, world
        self._order = replay.Order(seed, int(shuffle), int(mirror), float(forget_move_number))
        self.codec = MoveCodec(encoder.spec)
        self._mirror_actions = (
            encoder.mirror_actions if mirror else np.arange(encoder.actions, dtype="i4")
        )
        values = ValueLabels.parse(value_labels)
        self._games = gather_games(stores, games, labels, values, draw_value)
        self.labels: Labels = labels
        most = 0 if self._games.visits is None else self._games.visits.max_moves
        self.choices = 0 if labels == "move" else max(1, most)
        """K: choices of a sample."""
        arrays = self._games.arrays
        self.positions = len(arrays.chosen) or int(arrays.cumulative[-1])
        """N: positions of the chosen games that teach something."""
        repetitions = any(p.item == "repetitions" for p in encoder.input_planes)
        self._repetitions = repetitions
        self._rules = rules
        compiled = encoder.spec.rules.engine == "kernel"
        self._encoding = replay.Encoding(
            compile_tables(encoder.spec) if compiled else np.zeros(1, TABLES),
            encoder.input_record,
            self.codec.record,
            encoder.policy_record,
            encoder.action_table,
            self._mirror_actions,
        )
        self._frames: replay.Frames | None = None
        if compiled:
            self._frames = make_frames(arrays, self._encoding, repetitions, memory)
        elif rules is None:
            raise SpecError(f"{encoder.spec.variant} runs on fairy: pass its rules to the sampler")

    @property
    def samples_per_epoch(self) -> int:
        return self.positions * 2 if self.mirror else self.positions

    @property
    def searched(self) -> int:
        """Number of positions with visits of a search; 0 with the labels `move`."""
        visits = self._games.visits
        if visits is None:
            return 0
        places = self.swept()
        at = self._games.arrays.first_code[places.games] + places.plies
        return int((visits.ends[at + 1] > visits.ends[at]).sum())

    @property
    def valued(self) -> int:
        """Number of positions whose value label has a value of the search."""
        targets = self._games.targets
        return 0 if targets is None else int((~np.isnan(targets.values)).sum())

    def new_batch(self, size: int | None = None, choices: int | None = None) -> Batch:
        """Return an empty batch, of the sampler's own size and K by default."""
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
            np.ones(n, np.float32),
            np.ones(n, np.float32),
        )

    def batch(self, step: int, out: Batch | None = None) -> Batch:
        """Return the batch of a step (0 is the first), in `out` if given.

        Raises DataError with game and ply if a move has no action in the encoder's policy.
        """
        out = out or self.new_batch()
        self.fill(out, (step * self.world + self.rank) * self.size)
        return out

    def sweep(self, *, limit: int | None = None, shuffle: bool = False) -> Iterator[Batch]:
        """Yield every position once, in stored order or shuffled, not mirrored; the last batch may be
        shorter.

        With `limit`, a random sample of that many positions. A batch is valid until the next one is
        requested.
        """
        total, order = self._sweep(limit, shuffle)
        out = self.new_batch(min(self.size, total))
        for start in range(0, total, len(out)):
            batch = out.part(0, min(len(out), total - start))
            self.fill(batch, start, order)
            yield batch

    def _sweep(self, limit: int | None = None, shuffle: bool = False) -> tuple[int, replay.Order]:
        """Number of the positions of a sweep, and their order."""
        total = self.positions if limit is None else min(limit, self.positions)
        return total, replay.Order(self.seed, int(shuffle or total < self.positions), 0, 0.0)

    @property
    def origins(self) -> Longs:
        """[G, 2] origin of each sampled game: number of its store, index within it."""
        return self._games.origins

    def swept(self, *, limit: int | None = None) -> replay.Places:
        """Places of the positions of `sweep(limit=limit)`."""
        return self.places(0, *self._sweep(limit))

    def swept_rows(self, *, limit: int) -> Longs:
        """[N] place in `sweep()` of each position of `sweep(limit=limit)`."""
        return np.searchsorted(self.swept().positions, self.swept(limit=limit).positions)

    def places(self, first: int, count: int, order: replay.Order | None = None) -> replay.Places:
        """Places of `count` samples from `first` on, of the endless sequence or another order."""
        found = replay.Places(*(np.empty(count, np.int64) for _ in replay.Places._fields))
        replay.find_places(self._games.arrays, order or self._order, first, found)
        return found

    # --- filling -------------------------------------------------------------------------------

    def fill(self, out: Batch, first: int, order: replay.Order | None = None) -> None:
        """Fill `out` with samples from `first` on, of the endless sequence or another order. Errors as
        in `batch`."""
        games, visits = self._games.arrays, self._games.visits
        whole = self._frames is not None and self.encoder.compiled
        samples = replay.BatchArrays(
            out.planes.reshape(len(out), -1) if whole else _NO_PLANES,
            *(getattr(out, item.name) for item in fields(out)[1:]),
        )
        places, failed = self.places(first, len(out), order), np.zeros(1, np.int64)
        if self._frames is None:
            filled = self._fill_slowly(out, places)
        else:
            filled = replay.fill(self._encoding, games, self._frames, places, samples, failed)
        if filled == len(out) and self.labels == "visits":
            if visits is None:  # the moves played have the whole share
                out.choices[:], out.shares[:] = 0, 0
                out.choices[:, 0], out.shares[:, 0] = out.action, 1
            else:
                filled = replay.fill_choices(self._encoding, games, visits, places, samples, failed)
        if filled != len(out):
            game, ply = places.games[failed[0]], places.plies[failed[0]]
            problem = (
                "is not a move of its position" if filled == replay.BAD_CODE else "has no action"
            )
            raise DataError(
                f"game {game + 1} of the sampled games, ply {ply + 1}: a code {problem}"
            )
        for flip in () if whole else set(places.mirrored.tolist()):
            chosen = places.mirrored == flip
            out.planes[chosen] = self.encoder.planes(out.positions[chosen], mirrored=bool(flip))
        if self._games.targets is None:
            out.policy_weight.fill(1)
            out.value_weight.fill(1)
        else:
            replay.fill_targets(games, self._games.targets, places, samples)

    def _fill_slowly(self, out: Batch, places: replay.Places) -> int:
        """`replay.fill` without planes, through the Rules interface, for rules that only `fairy` has."""
        assert self._rules is not None
        games = self._games.arrays
        for k, (game, ply) in enumerate(zip(places.games, places.plies.tolist(), strict=True)):
            begin = int(games.first_code[game])
            start = int(games.start_of[game])
            position = games.starts[start : start + 1].copy()
            history: list[int] = []
            for code in games.codes[begin : begin + ply].tolist():
                history.append(int(position[0]["key"]))
                position = self._rules.play(position, self.codec.decode(position, code))
            if self._repetitions:
                position["repetitions"] = min(history.count(int(position[0]["key"])), 127)
            move = self.codec.decode(position, int(games.codes[begin + ply]))
            action = self.encoder.action(position, move)
            side = int(position[0]["side"])
            if places.forgotten[k]:
                position["ply"] = side
            out.action[k] = self._mirror_actions[action] if places.mirrored[k] else action
            out.value[k] = games.results[game] * (-1 if side else 1)
            left = games.cumulative[game + 1] - places.positions[k]
            out.plies_left[k] = np.nan if games.cut_off[game] else left
            out.positions[k] = position[0]
        return len(out)
