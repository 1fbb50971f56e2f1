"""Expansion of a leaf: from the policy's logits to the priors of its edges.

A prior in (0, 1] is stored in 16 bits: 5 bits of exponent and 11 of mantissa. The relative error is at
most 2**-12. Code 0 means 2**-31, which makes no difference from 0 in a search.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoding_kernels import PolicyTables, action_of
from variant_ai.core.jit import Number, Truth, borrowing
from variant_ai.core.jit.signatures import Floats2D
from variant_ai.core.rules.kernel.giving_check import checks_into
from variant_ai.core.rules.kernel.table_layout import Tables
from variant_ai.core.rules.position import Position
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.tree.nodes import OPEN, Arrays, bring_best, first_move, first_prior
from variant_ai.core.search.tree.working_memory import Scratch

_SHIFT = 12
_OFFSET = 96 << 11


@borrowing
def encode_prior(p: float) -> Number:
    """Encode a probability in [0, 1], rounded to the nearest code."""
    bits = np.int64(np.float32(p).view(np.uint32))
    code = ((bits + (1 << (_SHIFT - 1))) >> _SHIFT) - _OFFSET
    return min(max(code, 0), 31 << 11)


@borrowing
def decode_prior(code: np.uint16) -> Number:
    """Decode a probability, a float32."""
    return np.uint32((np.int64(code) + _OFFSET) << _SHIFT).view(np.float32)


def decode_priors(codes: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Decode an array of probabilities."""
    return ((codes.astype(np.uint32) + np.uint32(_OFFSET)) << np.uint32(_SHIFT)).view(np.float32)


@borrowing
def expand_node(
    t: Tables,
    a: PolicyTables,
    action_table: NDArray[np.int32],
    s: Settings,
    g: Arrays,
    node: Number,
    p: Position,
    i: Number,
    logits: Floats2D,
    value: float,
    draw: float,
    gains: Floats2D,
    scratch: Scratch,
) -> Truth:
    """Expand a node with the evaluation of position i: `logits[i]`, value and draw probability.

    The softmax is over the legal moves alone; logits of other actions are not read.

    gains: material that each move wins or loses (`look_ahead/material.py`), in logits; row i is read if
    the settings look for material.

    Returns False, and leaves the node unchanged, if the evaluation is not a number. `action_table`
    maps indices of the policy map to logits (-1: the head has none; the prior is 0).
    """
    record = g.nodes[node]
    n = np.int64(record["count"])
    first = first_move(node, n)
    probabilities = scratch.expander[0]["p"]
    greatest = -np.inf
    for k in range(n):
        index = action_of(a, p, i, np.int64(g.moves[first + k]))
        action = np.int64(-1)
        if index >= 0:
            action = np.int64(action_table[index])
        logit = -np.inf
        if action >= 0:
            logit = np.float64(logits[i, action])
            if math.isnan(logit):
                return False
        probabilities[k] = logit
        greatest = max(greatest, logit)
    if not math.isfinite(value) or not math.isfinite(draw):
        return False
    if not math.isfinite(greatest):
        if greatest > 0 or n == 0:
            return False
        for k in range(n):  # no move has a logit: all get the same prior
            probabilities[k] = 0.0
        greatest = 0.0
    if s[0]["look_for_material"]:
        weight = s[0]["material_prior"] * s[0]["node_temperature"]
        greatest = -np.inf
        for k in range(n):
            probabilities[k] += weight * gains[i, k]
            greatest = max(greatest, probabilities[k])
    total = 0.0
    for k in range(n):
        probabilities[k] = math.exp((probabilities[k] - greatest) / s[0]["node_temperature"])
        total += probabilities[k]
    if not math.isfinite(total):
        return False
    for k in range(n):
        probabilities[k] /= total
    write_priors(t, s, g, node, p, i, scratch)
    record["value"] = min(max(value, -1.0), 1.0)
    record["q"] = record["value"]
    record["draw"] = min(max(draw, 0.0), 1.0)
    record["visits"] = 1
    record["state"] = OPEN
    return True


@borrowing
def expand_uniform(
    t: Tables,
    s: Settings,
    g: Arrays,
    node: Number,
    p: Position,
    i: Number,
    scratch: Scratch,
) -> None:
    """Expand a node for the uniform evaluator: equal priors, value 0."""
    record = g.nodes[node]
    n = np.int64(record["count"])
    probabilities = scratch.expander[0]["p"]
    if s[0]["enhance_checks"] and n * s[0]["enhance_threshold"] > 1.0:
        for k in range(n):
            probabilities[k] = 1.0 / n
        write_priors(t, s, g, node, p, i, scratch)
    else:
        first = first_prior(node)
        code = encode_prior(1.0 / n)
        for k in range(n):
            g.priors[first + k] = code
    record["visits"] = 1
    record["state"] = OPEN


@borrowing
def write_priors(
    t: Tables,
    s: Settings,
    g: Arrays,
    node: Number,
    p: Position,
    i: Number,
    scratch: Scratch,
) -> None:
    """Enhance checks ([CrazyAra-preprint] eq. 12), then write the node's priors, the best in front."""
    record = g.nodes[node]
    n = np.int64(record["count"])
    first = first_move(node, n)
    to_prior = first_prior(node)
    probabilities = scratch.expander[0]["p"]
    if s[0]["enhance_checks"]:
        gives = scratch.expander[0]["gives"]
        if checks_into(t, p, i, g.moves, first, n, scratch.checks, scratch.trial, gives) > 0:
            greatest = 0.0
            for k in range(n):
                greatest = max(greatest, probabilities[k])
            total = 0.0
            for k in range(n):
                if gives[k] and probabilities[k] < s[0]["enhance_threshold"]:
                    probabilities[k] += s[0]["enhance_factor"] * greatest
                total += probabilities[k]
            for k in range(n):
                probabilities[k] /= total
    for k in range(n):
        g.priors[to_prior + k] = encode_prior(probabilities[k])
    bring_best(g, node)
