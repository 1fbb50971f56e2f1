"""Compiled replay: from a sample's number to its planes, action and value, without the GIL.

B samples per batch, G games, N positions with a move (the last position of a game has none).

The order of samples is a permutation computed, not stored: a Feistel network over pairs of
residues (Black and Rogaway 2002, the generalised cipher with cycle walking), keyed by seed and
epoch. Each epoch meets every sample exactly once, any step of any epoch is found in constant time,
and nothing but the step need be remembered to go on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoding_kernels import action_of, encode_into, move_of
from variant_ai.core.encoding.encoding_tables import InputTables, PolicyTables
from variant_ai.core.jit import Number, Truth, njit
from variant_ai.core.jit.arrays import Floats2D, Longs2D
from variant_ai.core.rules.kernel.make_move import replay_into
from variant_ai.core.rules.kernel.rule_tables import Tables
from variant_ai.core.rules.position import Position

ROUNDS = 8
BLOCK = 64
"""Positions per entry of the table that finds a position's game."""

BAD_CODE, NO_ACTION = -1, -2
"""What `fill` returns in place of a count: a code that is no move; a move without an action."""


@njit
def mix(x: np.uint64) -> np.uint64:
    """One 64-bit number from another, every bit depending on every bit (SplitMix64's finaliser)."""
    x = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.uint64 = x ^ (x >> np.uint64(31))
    return mixed


@njit
def shuffled(index: Number, n: Number, seed: Number, epoch: Number) -> Number:
    """Where `index` in [0, n) goes in the permutation of this seed and epoch; n < 2**62."""
    rows = np.int64(np.ceil(np.sqrt(np.float64(n))))
    columns = (n + rows - 1) // rows
    key = mix(mix(np.uint64(seed)) ^ np.uint64(epoch))
    value = np.int64(index)
    while True:
        row = value // columns
        column = value - row * columns
        for k in range(ROUNDS):
            round_key = key + np.uint64(k)
            if k & 1:
                noise = mix(round_key ^ (np.uint64(row) << np.uint64(8))) >> np.uint64(32)
                column += np.int64((noise * np.uint64(columns)) >> np.uint64(32))
                if column >= columns:
                    column -= columns
            else:
                noise = mix(round_key ^ (np.uint64(column) << np.uint64(8))) >> np.uint64(32)
                row += np.int64((noise * np.uint64(rows)) >> np.uint64(32))
                if row >= rows:
                    row -= rows
        value = row * columns + column
        if value < n:
            return value


@njit
def index_of(sample: Number, period: Number, shuffle: Number, seed: Number) -> Number:
    """Where sample number `sample` of the endless sequence stands in its epoch of `period` samples:
    below N a position, from N on the image of position `index - N`."""
    epoch = sample // period
    index = sample - epoch * period
    return shuffled(index, period, seed, epoch) if shuffle else index


@njit
def forgets(seed: Number, sample: Number, share: float) -> Truth:
    """Whether the sample is one of the `share` whose move number restarts."""
    noise = mix(np.uint64(seed) ^ mix(np.uint64(sample) ^ np.uint64(0x5A17)))
    return np.float64(noise >> np.uint64(11)) * 2.0**-53 < share


@njit
def replay_games(
    T: Tables,
    C: PolicyTables,
    codes: NDArray[np.uint16],
    first_code: NDArray[np.int64],
    skipped: NDArray[np.int64],
    cumulative: NDArray[np.int64],
    start_of: NDArray[np.int32],
    starts: Position,
    stride: Number,
    frame_first: NDArray[np.int64],
    frames: Position,
    seen: NDArray[np.int8],
    keys: NDArray[np.uint64],
) -> Number:
    """Replay every game once, keeping every `stride`-th position.

    `frames[frame_first[g] + k]` becomes the position of game g before ply k * stride. `seen`
    int8 [N] becomes how often each sampled position occurred before, where `keys` has room for the
    longest game; where keys is empty nothing is counted. Returns the number of games replayed: fewer
    than G where a code of the next one is no move of the position it meets.
    """
    counting = keys.shape[0] > 0
    work = np.empty(1, frames.dtype)
    here = np.int64(0)  # a literal would be another signature
    for game in range(first_code.shape[0]):
        work[0] = starts[start_of[game]]
        skips = skipped[game]
        plies = cumulative[game + 1] - cumulative[game] + skips
        for ply in range(plies):
            if ply % stride == 0:
                frames[frame_first[game] + ply // stride] = work[0]
            if counting:
                key = work[0]["key"]
                keys[ply] = key
                before = 0
                for other in range(ply):
                    if keys[other] == key:
                        before += 1
                if ply >= skips:
                    seen[cumulative[game] + ply - skips] = min(before, 127)
            move = move_of(C, work, here, np.int64(codes[first_code[game] + ply]))
            if move < 0:
                return game
            replay_into(T, work, here, work, here, move)
    return first_code.shape[0]


@njit
def fill(
    T: Tables,
    E: InputTables,
    C: PolicyTables,
    A: PolicyTables,
    action_table: NDArray[np.int32],
    mirror_actions: NDArray[np.int32],
    codes: NDArray[np.uint16],
    first_code: NDArray[np.int64],
    skipped: NDArray[np.int64],
    cumulative: NDArray[np.int64],
    block_game: NDArray[np.int32],
    stride: Number,
    frame_first: NDArray[np.int64],
    frames: Position,
    seen: NDArray[np.int8],
    results: NDArray[np.int8],
    seed: Number,
    shuffle: Number,
    mirror: Number,
    forget: float,
    first_sample: Number,
    count: Number,
    planes: Floats2D,
    actions: NDArray[np.int64],
    values: NDArray[np.float32],
    plies_left: NDArray[np.float32],
    positions: Position,
    failure: NDArray[np.int64],
) -> Number:
    """Fill samples `first_sample .. first_sample + count - 1` of the endless sequence of epochs.

    T rules tables; E input program; C policy of the codes; A policy of the actions;
    `skipped` int64 [G] plies before a game's first sample; `cumulative` int64 [G + 1] sampled
    positions before each game; `stride` to `seen` as `replay_games` left them; `forget` share of
    samples whose move number restarts at 1. Writes planes [B, C * H * W] (no rows: the
    caller makes them of the positions),
    actions [B], values [B], plies_left [B], positions [B]. Returns count, or BAD_CODE or NO_ACTION with
    (game, ply) in `failure`.
    """
    # Samples lie all over memory. Each pass reaches out for one thing of all of them, so that the
    # processor waits for many at once; done sample by sample, it would wait for each in turn.
    total = cumulative[cumulative.shape[0] - 1]
    period = total * 2 if mirror else total
    games = np.empty(count, np.int64)
    numbers = np.empty(count, np.int64)
    flips = np.empty(count, np.int64)
    for k in range(count):
        index = index_of(np.int64(first_sample) + k, period, shuffle, seed)
        flips[k] = index >= total
        numbers[k] = index - total if index >= total else index
        games[k] = block_game[numbers[k] // BLOCK]
    for k in range(count):
        while cumulative[games[k] + 1] <= numbers[k]:
            games[k] += 1
    for k in range(count):
        ply = numbers[k] - cumulative[games[k]] + skipped[games[k]]
        positions[k] = frames[frame_first[games[k]] + ply // stride]
        values[k] = np.float32(results[games[k]])
        plies_left[k] = np.float32(cumulative[games[k] + 1] - numbers[k])
    for k in range(count):
        game = games[k]
        ply = numbers[k] - cumulative[game] + skipped[game]
        first = first_code[game]
        kept = ply // stride * stride
        move = move_of(C, positions, k, np.int64(codes[first + kept]))
        for past in range(kept, ply):
            if move < 0:
                break
            replay_into(T, positions, k, positions, k, move)
            move = move_of(C, positions, k, np.int64(codes[first + past + 1]))
        if move < 0:
            failure[0], failure[1] = game, ply
            return BAD_CODE
        action = action_of(A, positions, k, move)
        if action >= 0:
            action = np.int64(action_table[action])
        if action < 0:
            failure[0], failure[1] = game, ply
            return NO_ACTION
        actions[k] = np.int64(mirror_actions[action]) if flips[k] else action
        side = np.int64(positions[k]["side"])
        if side == 1:
            values[k] = np.float32(0) - values[k]
        if seen.shape[0] > 0:
            positions[k]["repetitions"] = seen[numbers[k]]
        if forgets(seed, np.int64(first_sample) + k, forget):
            positions[k]["ply"] = side
    raw = np.int64(0)
    for k in range(planes.shape[0]):
        encode_into(E, positions, k, planes, k, flips[k], raw)
    return count


@njit
def fill_choices(
    C: PolicyTables,
    A: PolicyTables,
    action_table: NDArray[np.int32],
    mirror_actions: NDArray[np.int32],
    skipped: NDArray[np.int64],
    cumulative: NDArray[np.int64],
    block_game: NDArray[np.int32],
    first_ply: NDArray[np.int64],
    ends: NDArray[np.int64],
    codes: NDArray[np.uint16],
    weights: NDArray[np.uint16],
    seed: Number,
    shuffle: Number,
    mirror: Number,
    first_sample: Number,
    count: Number,
    positions: Position,
    actions: NDArray[np.int64],
    choices: Longs2D,
    shares: Floats2D,
    failure: NDArray[np.int64],
) -> Number:
    """After `fill`, of the same samples: what searches found there.

    `first_ply`, `ends`, `codes`, `weights` as in `visits.Visits`, of the G games. Writes choices
    [B, K] and shares [B, K], rows filled up with action 0 of share 0, and makes `actions` the
    choice of the greatest share, the first of several. Without visits the action that `fill` left
    has all of the share. Returns and failure as of `fill`.

    A pass of its own, so that training on moves is as fast as it was.
    """
    total = cumulative[cumulative.shape[0] - 1]
    period = total * 2 if mirror else total
    for k in range(count):
        index = index_of(np.int64(first_sample) + k, period, shuffle, seed)
        flipped = index >= total
        number = index - total if flipped else index
        game = np.int64(block_game[number // BLOCK])
        while cumulative[game + 1] <= number:
            game += 1
        ply = number - cumulative[game] + skipped[game]
        for j in range(choices.shape[1]):
            choices[k, j] = 0
            shares[k, j] = np.float32(0)
        begin = end = np.int64(0)
        if first_ply[game] >= 0:
            begin = ends[first_ply[game] + ply]
            end = ends[first_ply[game] + ply + 1]
        if begin == end:
            choices[k, 0] = actions[k]
            shares[k, 0] = np.float32(1)
            continue
        whole = np.int64(0)
        greatest = np.int64(-1)
        for e in range(begin, end):
            move = move_of(C, positions, k, np.int64(codes[e]))
            if move < 0:
                failure[0], failure[1] = game, ply
                return BAD_CODE
            action = action_of(A, positions, k, move)
            if action >= 0:
                action = np.int64(action_table[action])
            if action < 0:
                failure[0], failure[1] = game, ply
                return NO_ACTION
            choices[k, e - begin] = np.int64(mirror_actions[action]) if flipped else action
            weight = np.int64(weights[e])
            whole += weight
            if weight > greatest:
                greatest = weight
                actions[k] = choices[k, e - begin]
        for e in range(begin, end):
            shares[k, e - begin] = np.float32(np.float64(weights[e]) / np.float64(whole))
    return count
