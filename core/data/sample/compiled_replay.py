"""Compiled replay: from the number of a sample to its planes, action and value, without the GIL.

B samples per batch, G games, P positions with a move (the last position of a game has none), of
which N are sampled: those that teach something.

The order of samples is a permutation that is computed, not stored: a Feistel network over pairs of
residues ([Permutations], the generalised cipher with cycle walking), keyed by seed and
epoch. Each epoch has every sample exactly once, any step of any epoch is found in constant time,
and a training run resumes from the number of its step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import TRAINS_POLICY, TRAINS_VALUE
from variant_ai.core.data.store.columns import Floats, Longs
from variant_ai.core.data.store.visits import Visits
from variant_ai.core.encoding.encoding_kernels import (
    InputTables,
    PolicyTables,
    action_of,
    encode_into,
    move_of,
)
from variant_ai.core.jit import Number, njit
from variant_ai.core.jit.random_numbers import mixed
from variant_ai.core.jit.signatures import Floats2D, Longs2D
from variant_ai.core.rules.kernel.play_move import replay_into
from variant_ai.core.rules.kernel.table_layout import Tables
from variant_ai.core.rules.position import Position

ROUNDS = 8
BLOCK = 64
"""Positions per entry of the table that finds the game of a position."""

BAD_CODE, NO_ACTION = -1, -2
"""Returned by `fill` instead of a count: a code that is not a move; a move without an action."""


class Encoding(NamedTuple):
    """Tables that turn a stored game into planes and actions."""

    rules: Tables
    inputs: InputTables
    codes: PolicyTables
    """Policy of the stored codes."""
    policy: PolicyTables
    """Policy of the actions."""
    action_table: NDArray[np.int32]
    """`Encoder.action_table`."""
    mirror_actions: NDArray[np.int32]
    """Action of the left-right image of each action."""


class Games(NamedTuple):
    """Sampled games of all stores, one after the other."""

    codes: NDArray[np.uint16]
    """Moves of all games of the stores."""
    first_code: Longs
    """[G] index of the first code of each game."""
    skipped: Longs
    """[G] first plies of a game that are not sampled."""
    cumulative: Longs
    """[G + 1] positions before each game."""
    chosen: Longs
    """[N] the sampled positions, ascending; empty if all P are sampled."""
    block_game: NDArray[np.int32]
    """Game of every BLOCK-th position."""
    start_of: NDArray[np.int32]
    """[G] index into `starts`."""
    starts: Position
    results: NDArray[np.int8]
    """[G] 1 the first player won, 0 drawn, -1 lost, 2 unknown."""
    cut_off: NDArray[np.uint8]
    """[G] 1 for a game that was ended at its greatest length."""


class Targets(NamedTuple):
    """Labels of each position, where they are not simply the move and the result."""

    values: Floats
    """[P] value of the search for the player to move, NaN if unknown or not used."""
    trains: NDArray[np.uint8]
    """[P] bits. TRAINS_POLICY: the move or the visits may be learnt; TRAINS_VALUE: the result may be."""
    share: float
    """λ: label = (1 - λ) · result + λ · value of the search."""
    draw_value: float
    """Value of a drawn game for both players."""


class Frames(NamedTuple):
    """Positions kept of every game, so that a sample replays a few plies instead of all."""

    stride: Number
    """Plies between the positions kept of a game, of which ply 0 is the first."""
    first: Longs
    """[G] index of the first position of a game."""
    positions: Position
    seen: NDArray[np.int8]
    """[P] earlier occurrences of each position in its game; empty if no plane needs them."""


class Order(NamedTuple):
    """Order of the endless sequence of samples."""

    seed: Number
    shuffle: Number
    """0 or 1."""
    mirror: Number
    """0 or 1: each position is two samples, itself and its image."""
    forget: float
    """Share of the samples whose move number restarts."""


class Places(NamedTuple):
    """Places of B samples of the endless sequence."""

    games: Longs
    """[B] game, numbered among the sampled games."""
    plies: Longs
    """[B] ply in the game."""
    mirrored: Longs
    """[B] 1 for an image."""
    positions: Longs
    """[B] position among all P."""
    forgotten: Longs
    """[B] 1 if the move number restarts."""


class BatchArrays(NamedTuple):
    """Arrays of a batch, as in `sampler.Batch`."""

    planes: Floats2D
    """[B, C * H * W], or no rows if compiled code does not make the planes."""
    actions: Longs
    values: Floats
    plies_left: Floats
    positions: Position
    choices: Longs2D
    shares: Floats2D
    policy_weights: Floats
    value_weights: Floats


@njit
def mix(x: np.uint64) -> np.uint64:
    """Return the number that splitmix64 gives in the state x."""
    number: np.uint64 = mixed(np.uint64(x) + np.uint64(0x9E3779B97F4A7C15))
    return number


@njit
def shuffled(index: Number, n: Number, seed: Number, epoch: Number) -> Number:
    """Image of `index` in [0, n) in the permutation of this seed and epoch; n < 2**62."""
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
def find_places(games: Games, order: Order, first_sample: Number, out: Places) -> None:
    """Find the B samples of the endless sequence from `first_sample` on."""
    cumulative, chosen, numbers, found = games.cumulative, games.chosen, out.positions, out.games
    count = found.shape[0]
    sampled = chosen.shape[0] > 0
    total = chosen.shape[0] if sampled else cumulative[cumulative.shape[0] - 1]
    period = total * 2 if order.mirror else total
    for k in range(count):
        sample = np.int64(first_sample) + k
        epoch = sample // period
        index = sample - epoch * period
        if order.shuffle:
            index = shuffled(index, period, order.seed, epoch)
        out.mirrored[k] = index >= total
        numbers[k] = index - total if index >= total else index
        if sampled:
            numbers[k] = chosen[numbers[k]]
        found[k] = games.block_game[numbers[k] // BLOCK]
        noise = mix(np.uint64(order.seed) ^ mix(np.uint64(sample) ^ np.uint64(0x5A17)))
        out.forgotten[k] = np.float64(noise >> np.uint64(11)) * 2.0**-53 < order.forget
    for k in range(count):
        while cumulative[found[k] + 1] <= numbers[k]:
            found[k] += 1
        out.plies[k] = numbers[k] - cumulative[found[k]] + games.skipped[found[k]]


@njit
def label_of(
    encoding: Encoding, positions: Position, i: Number, move: Number, mirrored: Number
) -> Number:
    """Action of a move of `positions[i]`, or of its image, in the policy of the net; -1 if none."""
    action = action_of(encoding.policy, positions, i, move)
    if action >= 0:
        action = np.int64(encoding.action_table[action])
    if action >= 0 and mirrored:
        action = np.int64(encoding.mirror_actions[action])
    return action


@njit
def replay_games(
    encoding: Encoding, games: Games, frames: Frames, keys: NDArray[np.uint64]
) -> Number:
    """Replay every game once and keep every `stride`-th position in `frames`.

    `frames.positions[frames.first[g] + k]` becomes the position of game g before ply k * stride.
    `keys` has room for the longest game, or is empty if `frames.seen` is not counted. Returns the
    number of games replayed: fewer than G if a code of the next game is not a move of its position.
    """
    rules, policy = encoding.rules, encoding.codes
    codes, first_code, skipped, cumulative = (
        games.codes,
        games.first_code,
        games.skipped,
        games.cumulative,
    )
    start_of, starts = games.start_of, games.starts
    stride, frame_first, kept, seen = frames.stride, frames.first, frames.positions, frames.seen
    counting = keys.shape[0] > 0
    work = np.empty(1, kept.dtype)
    here = np.int64(0)  # a literal would be another signature
    for game in range(first_code.shape[0]):
        work[0] = starts[start_of[game]]
        skips = skipped[game]
        plies = cumulative[game + 1] - cumulative[game] + skips
        for ply in range(plies):
            if ply % stride == 0:
                kept[frame_first[game] + ply // stride] = work[0]
            if counting:
                key = work[0]["key"]
                keys[ply] = key
                before = 0
                for other in range(ply):
                    if keys[other] == key:
                        before += 1
                if ply >= skips:
                    seen[cumulative[game] + ply - skips] = min(before, 127)
            move = move_of(policy, work, here, np.int64(codes[first_code[game] + ply]))
            if move < 0:
                return game
            replay_into(rules, work, here, work, here, move)
    return first_code.shape[0]


@njit
def fill(
    encoding: Encoding,
    games: Games,
    frames: Frames,
    places: Places,
    out: BatchArrays,
    failed: Longs,
) -> Number:
    """Fill `out` with the B samples at some places.

    `frames` as `replay_games` left them; choices, shares and weights of `out` are not used. Returns B,
    or BAD_CODE or NO_ACTION with the index of the sample in `failed`.
    """
    # Samples lie all over memory. Each pass accesses one thing of all samples, so that the processor
    # waits for many of them at once; sample by sample, it would wait for each in turn.
    codes, first_code, stride, seen = games.codes, games.first_code, frames.stride, frames.seen
    numbers, game_of, plies, flips = places.positions, places.games, places.plies, places.mirrored
    rules, positions, values = encoding.rules, out.positions, out.values
    count = values.shape[0]
    for k in range(count):
        game = game_of[k]
        positions[k] = frames.positions[frames.first[game] + plies[k] // stride]
        values[k] = np.float32(games.results[game])
        out.plies_left[k] = np.float32(games.cumulative[game + 1] - numbers[k])
        if games.cut_off[game]:
            out.plies_left[k] = np.float32(np.nan)
    for k in range(count):
        first = first_code[game_of[k]]
        kept = plies[k] // stride * stride
        move = move_of(encoding.codes, positions, k, np.int64(codes[first + kept]))
        for past in range(kept, plies[k]):
            if move < 0:
                break
            replay_into(rules, positions, k, positions, k, move)
            move = move_of(encoding.codes, positions, k, np.int64(codes[first + past + 1]))
        if move < 0:
            failed[0] = k
            return BAD_CODE
        out.actions[k] = label_of(encoding, positions, k, move, flips[k])
        if out.actions[k] < 0:
            failed[0] = k
            return NO_ACTION
        side = np.int64(positions[k]["side"])
        if side == 1:
            values[k] = np.float32(0) - values[k]
        if seen.shape[0] > 0:
            positions[k]["repetitions"] = seen[numbers[k]]
        if places.forgotten[k]:
            positions[k]["ply"] = side
    raw = np.int64(0)
    for k in range(out.planes.shape[0]):  # none if the encoder is not compiled
        encode_into(rules, encoding.inputs, positions, k, out.planes, k, flips[k], raw)
    return count


@njit
def fill_choices(
    encoding: Encoding,
    games: Games,
    visits: Visits,
    places: Places,
    out: BatchArrays,
    failed: Longs,
) -> Number:
    """Fill choices and shares of the same samples after `fill`, from the visits of searches.

    `visits` are of the plies of `games.codes`. Writes choices [B, K] and shares [B, K], padded with
    action 0 of share 0, and sets `actions` to the choice of the greatest share, the first of several. Without
    visits the action set by `fill` has the whole share. Returns and `failed` as of `fill`.

    This is a separate pass, so that training on moves is not slowed down.
    """
    ends, codes, weights = visits.ends, visits.codes, visits.weights
    positions, actions, choices, shares = out.positions, out.actions, out.choices, out.shares
    count = actions.shape[0]
    for k in range(count):
        ply = games.first_code[places.games[k]] + places.plies[k]
        for j in range(choices.shape[1]):
            choices[k, j] = 0
            shares[k, j] = np.float32(0)
        begin, end = ends[ply], ends[ply + 1]
        if begin == end:
            choices[k, 0] = actions[k]
            shares[k, 0] = np.float32(1)
            continue
        whole = np.int64(0)
        greatest = np.int64(-1)
        for e in range(begin, end):
            move = move_of(encoding.codes, positions, k, np.int64(codes[e]))
            if move < 0:
                failed[0] = k
                return BAD_CODE
            action = label_of(encoding, positions, k, move, places.mirrored[k])
            if action < 0:
                failed[0] = k
                return NO_ACTION
            choices[k, e - begin] = action
            weight = np.int64(weights[e])
            whole += weight
            if weight > greatest:
                greatest = weight
                actions[k] = action
        for e in range(begin, end):
            shares[k, e - begin] = np.float32(np.float64(weights[e]) / np.float64(whole))
    return count


@njit
def fill_targets(games: Games, targets: Targets, places: Places, out: BatchArrays) -> None:
    """Set values and weights of the same samples after `fill` to those of their targets. Where the
    result must not be learnt, or is not known, the recorded moves need not be those to the end of the
    game: `plies_left` becomes NaN."""
    share, draw_value = np.float64(targets.share), np.float64(targets.draw_value)
    for k in range(out.values.shape[0]):
        number = places.positions[k]
        bits = np.int64(targets.trains[number])
        result = np.float64(games.results[places.games[k]])
        if result == 0:
            result = draw_value
        elif out.positions[k]["side"] == 1:
            result = -result
        value = np.float64(targets.values[number])
        has_result, has_value = (bits & TRAINS_VALUE) != 0, not np.isnan(value)
        label = np.float64(0)
        if has_result and has_value:
            label = (1 - share) * result + share * value
        elif has_result:
            label = result
        elif has_value:
            label = value
        out.values[k] = np.float32(label)
        if not has_result:
            out.plies_left[k] = np.float32(np.nan)
        out.value_weights[k] = np.float32(has_result or has_value)
        out.policy_weights[k] = np.float32((bits & TRAINS_POLICY) != 0)
