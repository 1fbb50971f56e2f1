"""The sampler: training batches straight from stored games, in a seeded order, on the fly.

Stores hold games, not planes. A sample is (game, ply): the position before that ply, the move
played in it, and the game's result as its mover sees it. Games without a known result give no
samples, and plies that neither player chose (`OpeningPlies` in a game's headers: a line given to
both, moves drawn by lot) none either. Batches are made by compiled code without the GIL
(`replay.py`), ahead of the trainer in background threads; what a step contains depends on seed and
step alone, so training resumes anywhere by naming the step.

With mirroring every position is two samples, itself and its left-right image (thesis section 4.4).

With the labels `visits` a sample also has the moves that a search visited there, each with its share
of the visits; a position without visits has the move played with all of the share.

Where the rules run on `fairy` the same batches are made in Python, some thousand times slower.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import Labels
from variant_ai.core.data.sample import compiled_replay as replay
from variant_ai.core.data.sample.sampled_games import Frames, GameArrays, SampledGames
from variant_ai.core.encoding import Encoder, Head, MoveCodec
from variant_ai.core.errors import DataError, SpecError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.rule_tables import Tables, compile_tables
from variant_ai.core.rules.position import POSITION, Position


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

    rank: int
    world: int
    """Processes that share the steps out; this is number `rank` of them."""

    @abstractmethod
    def new_batch(self, size: int | None = None) -> Batch:
        """An empty batch to be filled, of the maker's own size by default."""

    @abstractmethod
    def batch(self, step: int, out: Batch | None = None) -> Batch:
        """The batch of a step (0 is the first), in `out` if given. Depends on nothing else."""

    def whole(self) -> Self:
        """The same samples as one process alone would have them."""
        alone = copy.copy(self)
        alone.rank, alone.world = 0, 1
        return alone

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


_NO_PLANES = np.zeros((0, 0), np.float32)


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
        self._games = SampledGames.gather(stores, games, labels)
        self.labels: Labels = labels
        self.choices = 0 if labels == "move" else max(1, self._games.most_choices)
        """K: choices of a sample."""
        self.positions = int(self._games.cumulative[-1])
        """N: positions with a move, of the chosen games with a known result."""
        if self.positions == 0:
            raise DataError(
                "no position to sample: no chosen game has a result and a move behind its opening"
            )
        repetitions = any(p.item == "repetitions" for p in encoder.input_planes)
        self._repetitions = repetitions
        self._tables: Tables | None = None
        self._rules = rules
        if encoder.spec.rules.engine == "kernel":
            self._tables = compile_tables(encoder.spec)
            self._frames = Frames.of(self._games, self._tables, self.codec, repetitions, memory)
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
        ply = at - int(self._games.cumulative[game]) + int(self._games.skipped[game])
        return game, ply, bool(mirrored)

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
            games.skipped,
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
            out.planes.reshape(len(out), -1) if encoder.compiled else _NO_PLANES,
            out.action,
            out.value,
            out.plies_left,
            out.positions,
            failure,
        )
        if filled == len(out) and not encoder.compiled:
            mirrored = np.array(
                [self._locate(first + k, shuffle, mirror)[2] for k in range(filled)]
            )
            for flip in {bool(flipped) for flipped in mirrored}:
                chosen = mirrored == flip
                out.planes[chosen] = encoder.planes(out.positions[chosen], mirrored=flip)
        visits = games.visits
        if filled == len(out) and self.labels == "visits" and visits is None:
            _played_alone(out)
        elif filled == len(out) and visits is not None:
            filled = replay.fill_choices(
                self.codec.record,
                encoder.policy_record,
                encoder.action_table,
                self._mirror_actions,
                games.skipped,
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
            sampled = games.cumulative[game + 1] - games.cumulative[game]
            out.plies_left[k] = games.skipped[game] + sampled - ply
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


def _identity(position: Position) -> bytes:
    """What must recur for a position to be repeated, of rules that keep no key."""
    record = position[0]
    return b"".join(
        np.asarray(record[name]).tobytes()
        for name in ("board", "hands", "side", "castling", "ep", "wins_left")
    )
