"""Material that the moves of a new leaf win or lose.

A small net often misjudges positions in which pieces can be captured. The rules play thousands of
captures in the time of one evaluation. So they try each move of a leaf, then captures alone, with
alpha-beta and nothing but values of pieces. Captures that a recapture refutes are left out. The gain
of the best move is added to the logit of the net's value, which already knows the pieces on the
board; the gain of each move, times `material_prior`, is added to the logit of its prior.

Gains are in logits, units of atanh(value). What the capture of each piece is worth is in a spec's
`search:`, `piece_gains:`; `benchmarks/piece_gains.py` fits it. Promotions gain nothing here, and in
the captures a side may always stop.
"""

from __future__ import annotations

import math

import numpy as np

from variant_ai.core.jit import Number, Truth, njit
from variant_ai.core.jit.signatures import Floats2D
from variant_ai.core.rules.kernel.attacks import COLOUR_BIT, TYPE_MASK, attacked, touch
from variant_ai.core.rules.kernel.movegen import legal_captures_into
from variant_ai.core.rules.kernel.play_move import replay_into
from variant_ai.core.rules.kernel.table_layout import KIND, ORIGIN, Tables
from variant_ai.core.rules.position import DROP, EN_PASSANT, Position
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.tree.nodes import Arrays, first_move
from variant_ai.core.search.tree.working_memory import MATERIAL_PLIES, Descent, Scratch

MOST = 3.0
"""Greatest gain and loss."""
SPREAD = 0.5
"""A move that loses more than this against the best one is not measured exactly."""
ALMOST_WON = 1 - 1e-7
"""Greatest value of an evaluator to which gains are added; the logit of 1 is infinite."""


@njit
def captured_gain(s: Settings, p: Position, i: Number, move: Number) -> float:
    """Return the gain of a move's capture in position i, in logits; 0 if it captures nothing."""
    kind = (move >> KIND) & 7
    if kind == DROP:
        return 0.0
    square = (move >> ORIGIN) & 127 if kind == EN_PASSANT else move & 127
    piece = np.int64(p[i]["board"][square])
    castles = (piece - 1) >> COLOUR_BIT == p[i]["side"]  # onto the own rook, with `shuffle:`
    if piece == 0 or (castles and kind != EN_PASSANT):
        return 0.0
    return np.float64(s[0]["piece_gain"][(piece - 1) & TYPE_MASK])


@njit
def is_refuted(t: Tables, s: Settings, p: Position, i: Number, move: Number, gain: float) -> Truth:
    """Return True if the capture gains less than its own piece is worth, and that piece can be captured
    back: by a piece, pinned or not, or by a king that is beside it and safe there."""
    board = p[i]["board"]
    origin, target = (move >> ORIGIN) & 127, move & 127
    mover = np.int64(board[origin])
    if s[0]["piece_gain"][(mover - 1) & TYPE_MASK] <= gain:
        return False
    us = np.int64(p[i]["side"])
    king = np.int64(p[i]["kings"][1 - us])
    captured, royal = board[target], board[king] if king >= 0 else 0
    board[origin] = 0
    board[target] = mover
    refuted = False
    if king >= 0:
        if touch(t[0], king, target):
            board[king] = 0
            refuted = not attacked(t[0], p[i], us, target)
            board[king] = royal
            refuted = refuted and attacked(t[0], p[i], 1 - us, target)
        # in the way of others, but a king that faces this square does not capture
        board[king] = mover
    refuted = refuted or attacked(t[0], p[i], 1 - us, target)
    if king >= 0:
        board[king] = royal
    board[target] = captured
    board[origin] = mover
    return refuted


@njit
def gain_by_captures(
    t: Tables,
    s: Settings,
    w: Descent,
    k: Scratch,
    at: Number,
    ply: Number,
    alpha: float,
    beta: float,
) -> float:
    """Return the gain of the side to move at position `at + ply` of the line, in logits, if both sides only
    capture and either may stop; captures that `is_refuted` are left out. Exact between alpha and beta, else a bound."""
    material = k.material
    best = 0.0
    full = ply >= MATERIAL_PLIES or material.used[0] >= s[0]["material_positions"]
    if best >= beta or full:
        return best
    material.used[0] += 1
    here = at + ply
    n = np.int64(legal_captures_into(t, w.line, here, w.out, w.work))
    moves, gains = material.moves[ply]["move"], material.gains[ply]
    count = np.int64(0)
    for e in range(n):
        move = np.int64(w.out[0]["move"][e])
        gain = captured_gain(s, w.line, here, move)
        if gain <= 0 or is_refuted(t, s, w.line, here, move, gain):
            continue
        slot = count
        while slot > 0 and gains[slot - 1] < gain:  # the greatest first
            moves[slot], gains[slot] = moves[slot - 1], gains[slot - 1]
            slot -= 1
        moves[slot], gains[slot] = move, gain
        count += 1
    for e in range(count):
        move, gain = np.int64(moves[e]), np.float64(gains[e])
        low = max(alpha, best)
        if gain <= low:  # the other side may stop, so no later move gains more than it captures
            return max(best, gain)
        replay_into(t, w.line, here, w.line, here + 1, move)
        gain -= gain_by_captures(t, s, w, k, at, ply + 1, gain - beta, gain - low)
        best = max(best, gain)
        if best >= beta:
            break
    return best


@njit
def material_gains(
    t: Tables,
    s: Settings,
    g: Arrays,
    w: Descent,
    k: Scratch,
    node: Number,
    at: Number,
    gains: Floats2D,
    row: Number,
) -> float:
    """Write the gain of each move of a leaf to `gains[row]` and return the greatest, in logits for the side
    to move, all within ±MOST. Returns 0, and writes nothing, if the search for material is off.

    node: the leaf; at: its position in the line. Moves that lose more than SPREAD against the best of
    those before them get a gain that may be too high, but lies at least SPREAD below it. If
    `material_positions` are not enough, all gains are 0.
    """
    if not s[0]["look_for_material"]:
        return 0.0
    n = np.int64(g.nodes[node]["count"])
    first = first_move(node, n)
    best = -MOST
    k.material.used[0] = 0
    # captures first: after a good one most other moves need no search
    for captures in (True, False):
        for e in range(n):
            move = np.int64(g.moves[first + e])
            gain = captured_gain(s, w.line, at, move)
            if (gain > 0) != captures:
                continue
            replay_into(t, w.line, at, w.line, at + 1, move)
            low = max(best - SPREAD, -MOST)
            gain -= gain_by_captures(t, s, w, k, at, np.int64(1), gain - MOST, gain - low)
            gain = min(max(gain, -MOST), MOST)
            gains[row, e] = gain
            best = max(best, gain)
    if k.material.used[0] >= s[0]["material_positions"]:
        gains[row, :n] = 0.0
        return 0.0
    return best


@njit
def with_gain(value: float, gain: float) -> float:
    """Return an evaluator's value in [-1, 1] with a gain added to its logit."""
    if gain == 0.0 or not math.isfinite(value):
        return value
    return math.tanh(math.atanh(min(max(value, -ALMOST_WON), ALMOST_WON)) + gain)
