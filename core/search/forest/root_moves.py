"""The root of a self-play search: order and noise of its moves, the move of the next visit, the move
played and the policy target.

Gumbel ([Gumbel] sections 2 to 4): the moves with the greatest g + logit are compared by sequential
halving; played is the greatest g + logit + sigma(q) among the most visited; the target is pi'
(`tree/selection.py`). PUCT ([KataGo]): Dirichlet noise on the priors, forced playouts, and a target
of the visits without those that were forced.

Visits that end at once (the end of the game, a repetition, a proven move) count as visits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, borrowing
from variant_ai.core.jit.random_numbers import gamma, gumbel, uniform
from variant_ai.core.rules.kernel.table_layout import MAX_MOVES
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.forest.forest_arrays import Choice, Forest
from variant_ai.core.search.tree.nodes import (
    LOST,
    SORTED,
    UNPROVEN,
    WON,
    Arrays,
    child_proof,
    first_move,
    first_prior,
    open_edge,
)
from variant_ai.core.search.tree.priors import decode_prior
from variant_ai.core.search.tree.selection import (
    NO_EDGE,
    edge_value,
    exploration_factor,
    improved_policy,
    is_lost,
    select_edge,
    sigma_terms,
    value_or,
)


@borrowing
def prepare_root(c: Choice, f: Forest, g: Arrays, i: Number) -> None:
    """Add noise to the evaluated root of tree i and sort its moves by it, the best first."""
    tree = f.trees[i]
    root = np.int64(g.state[0]["root"])
    record = g.nodes[root]
    n = np.int64(record["count"])
    moves = first_move(root, n)
    priors = first_prior(root)
    scores = i * MAX_MOVES
    noisy = c[0]["noise"] != 0 and tree["full"] != 0
    if c[0]["gumbel"]:
        for e in range(n):
            score = math.log(np.float64(decode_prior(g.priors[priors + e])))
            if noisy:
                score += gumbel(f.randoms, i)
            f.root_scores[scores + e] = score
    else:
        total = 0.0
        if noisy:
            alpha = c[0]["noise_alpha"]
            if alpha <= 0.0:
                alpha = 10.0 / n
            for e in range(n):
                sample = gamma(f.randoms, i, alpha)
                f.root_scores[scores + e] = sample
                total += sample
        epsilon = c[0]["noise_epsilon"] if total > 0.0 else 0.0
        for e in range(n):
            noise = np.float64(f.root_scores[scores + e]) / total if total > 0.0 else 0.0
            p = np.float64(decode_prior(g.priors[priors + e]))
            f.root_scores[scores + e] = (1.0 - epsilon) * p + epsilon * noise
    for e in range(1, n):  # insertion sort
        score = f.root_scores[scores + e]
        move = g.moves[moves + e]
        prior = g.priors[priors + e]
        k = e - 1
        while k >= 0 and f.root_scores[scores + k] < score:
            f.root_scores[scores + k + 1] = f.root_scores[scores + k]
            g.moves[moves + k + 1] = g.moves[moves + k]
            g.priors[priors + k + 1] = g.priors[priors + k]
            k -= 1
        f.root_scores[scores + k + 1] = score
        g.moves[moves + k + 1] = move
        g.priors[priors + k + 1] = prior
    record["flags"] |= SORTED
    tree["considered"] = min(c[0]["considered"], tree["nodes"], n)
    if c[0]["gumbel"]:
        for _ in range(tree["considered"]):
            if not open_edge(g, root):
                tree["stuck"] = 1
    f.path_infos[i]["root_end"] = n
    tree["prepared"] = 1


@borrowing
def root_score(f: Forest, i: Number, e: Number, low: float, factor: float, q: float) -> float:
    """g + logit + sigma(q) of edge e of the root of tree i."""
    return np.float64(f.root_scores[i * MAX_MOVES + e]) + factor * (q - low)


@borrowing
def next_root_edge(
    c: Choice, s: Settings, noisy: Settings, f: Forest, g: Arrays, i: Number
) -> Number:
    """Edge of the root that the next visit follows, NO_EDGE if there is none. noisy: settings of
    PUCT at a root with noise."""
    root = np.int64(g.state[0]["root"])
    if c[0]["gumbel"]:
        return halving_edge(s, f, g, i, root)
    has_noise = f.trees[i]["full"] and c[0]["noise"]
    return noisy_edge(c, noisy if has_noise else s, f, g, i, root)


@borrowing
def halving_edge(s: Settings, f: Forest, g: Arrays, i: Number, root: Number) -> Number:
    """Sequential halving: the best of the compared moves that hold exactly the scheduled visits."""
    tree = f.trees[i]
    record = g.nodes[root]
    slots = np.int64(record["slots"])
    considered = np.int64(tree["considered"])
    visit = np.int64(record["visits"]) - 1
    row = considered
    if not tree["full"]:
        row += f.schedules.shape[0] // 2
    wanted = np.int64(f.schedules[row, min(visit, f.schedules.shape[1] - 1)])
    low, factor, mix = sigma_terms(g, s, root)
    best = -np.inf
    chosen = np.int64(NO_EDGE)
    any_best = -np.inf
    any_chosen = np.int64(NO_EDGE)
    for e in range(np.int64(record["opened"])):
        if is_lost(g, s, slots + e):
            continue
        n = np.int64(g.slots[slots + e]["visits"])
        q = value_or(g, s, slots + e, mix)
        score = root_score(f, i, np.int64(e), low, factor, q)
        if n == wanted and score > best:
            best = score
            chosen = np.int64(e)
        if score > any_best:
            any_best = score
            any_chosen = np.int64(e)
    if chosen != NO_EDGE:
        return chosen
    if any_chosen != NO_EDGE:  # a move with the scheduled visits was proven to lose
        return any_chosen
    if record["opened"] < record["count"]:
        return np.int64(record["opened"])
    return np.int64(NO_EDGE)


@borrowing
def noisy_edge(c: Choice, s: Settings, f: Forest, g: Arrays, i: Number, root: Number) -> Number:
    """PUCT with forced playouts: a visited move with fewer than sqrt(k * P * sum N) visits comes first
    ([KataGo] section 3.2)."""
    tree = f.trees[i]
    record = g.nodes[root]
    slots = np.int64(record["slots"])
    total = np.float64(record["visits"]) - 1.0
    scores = i * MAX_MOVES
    if tree["full"] and c[0]["noise"] and c[0]["forced_playouts"] > 0.0:
        for e in range(np.int64(record["opened"])):
            n = np.int64(g.slots[slots + e]["visits"])
            p = np.float64(f.root_scores[scores + e])
            if (
                n > 0
                and n < math.sqrt(c[0]["forced_playouts"] * p * total)
                and not is_lost(g, s, slots + e)
            ):
                return np.int64(e)
    edge: Number = select_edge(
        g, s, root, f.root_scores[scores : scores + MAX_MOVES], np.int64(record["count"])
    )
    return edge


@borrowing
def target_of(
    c: Choice, s: Settings, f: Forest, g: Arrays, i: Number, p: NDArray[np.float64]
) -> float:
    """Write the policy target of tree i's root to `p` [count or more], by edge; the sum is 1. Return
    the value of the root for the side to move, in [-1, 1].

    A proven win is the whole target: the quickest one. The value of a Gumbel search is that of its
    target, because sequential halving also visits moves that the net would not choose. That of a proven
    root is exact, that of PUCT the mean of all visits.
    """
    root = np.int64(g.state[0]["root"])
    record = g.nodes[root]
    n = np.int64(record["count"])
    if s[0]["solver"] and record["proof"] == WON:
        edge = proven_edge(g, root, np.int64(LOST))
        if edge != NO_EDGE:
            for e in range(n):
                p[e] = 0.0
            p[edge] = 1.0
            return np.float64(record["q"])
    if c[0]["gumbel"]:
        value = improved_policy(g, s, root, p)
        return value if record["proof"] == UNPROVEN else np.float64(record["q"])
    pruned_visits(c, s, f, g, i, p)
    return np.float64(record["q"])


@borrowing
def proven_edge(g: Arrays, root: Number, proof: Number) -> Number:
    """Edge whose child has this proof and the least distance to the end (greatest, for children that
    are won for the opponent); NO_EDGE if there is none."""
    record = g.nodes[root]
    slots = np.int64(record["slots"])
    chosen = np.int64(NO_EDGE)
    best = np.int64(0)
    for e in range(np.int64(record["opened"])):
        edge = g.slots[slots + e]
        if edge["child"] == 0 or child_proof(g, edge) != proof:
            continue
        distance = np.int64(g.nodes[np.int64(edge["child"])]["distance"])
        if proof == WON:
            distance = -distance
        if chosen == NO_EDGE or distance < best:
            chosen = np.int64(e)
            best = distance
    return chosen


@borrowing
def pruned_visits(
    c: Choice, s: Settings, f: Forest, g: Arrays, i: Number, p: NDArray[np.float64]
) -> None:
    """Target of a PUCT search: visits, without those that forced playouts alone explain ([KataGo]
    section 3.2)."""
    tree = f.trees[i]
    root = np.int64(g.state[0]["root"])
    record = g.nodes[root]
    slots = np.int64(record["slots"])
    scores = i * MAX_MOVES
    n = np.int64(record["count"])
    opened = np.int64(record["opened"])
    total = np.int64(record["visits"]) - 1
    explore = exploration_factor(s, np.float64(total))
    forced = tree["full"] and c[0]["noise"] and c[0]["forced_playouts"] > 0.0
    most = np.int64(-1)
    best = np.int64(0)
    for e in range(n):
        p[e] = 0.0
    for e in range(opened):
        visits = np.int64(g.slots[slots + e]["visits"])
        if not is_lost(g, s, slots + e) and visits > most:
            most = visits
            best = np.int64(e)
    bound = -np.inf
    if most > 0:
        bound = edge_value(g, s, slots + best) + explore * np.float64(
            f.root_scores[scores + best]
        ) / (1.0 + most)
    kept = 0.0
    for e in range(opened):
        visits = np.int64(g.slots[slots + e]["visits"])
        if visits == 0 or is_lost(g, s, slots + e):
            continue
        if forced and e != best:
            prior = np.float64(f.root_scores[scores + e])
            q = edge_value(g, s, slots + e)
            spare = np.int64(math.sqrt(c[0]["forced_playouts"] * prior * total))
            while spare > 0 and visits > 0 and q + explore * prior / visits < bound:
                visits -= 1
                spare -= 1
            if visits <= 1:
                visits = np.int64(0)
        p[e] = np.float64(visits)
        kept += p[e]
    if kept <= 0.0:  # no visits, or every move is proven to lose: the priors
        for e in range(n):
            p[e] = np.float64(decode_prior(g.priors[first_prior(root) + e]))
            kept += p[e]
    for e in range(n):
        p[e] /= kept


@borrowing
def chosen_edge(
    c: Choice, s: Settings, f: Forest, g: Arrays, i: Number, p: NDArray[np.float64]
) -> Number:
    """Edge of the move to play. p: policy target [count or more]."""
    tree = f.trees[i]
    info = f.path_infos[i]
    root = np.int64(g.state[0]["root"])
    record = g.nodes[root]
    n = np.int64(record["count"])
    slots = np.int64(record["slots"])
    if s[0]["solver"] and record["proof"] != UNPROVEN:
        # a won root has a lost child, a lost one only won ones, a drawn one a drawn child
        edge = proven_edge(g, root, LOST + WON - np.int64(record["proof"]))
        if edge != NO_EDGE:
            return edge
    ply = np.int64(info["root_at"]) - np.int64(tree["first"])
    if ply < c[0]["sampled_plies"]:
        share = 0.0
        if c[0]["sampled_plies"] > 1:
            share = np.float64(ply) / np.float64(c[0]["sampled_plies"] - 1)
        temperature = c[0]["temperature"] + share * (c[0]["temperature_end"] - c[0]["temperature"])
        return sampled_edge(f, i, p, n, 1.0 / temperature)
    if not c[0]["gumbel"]:
        chosen = np.int64(0)
        for e in range(n):
            if p[e] > p[chosen]:
                chosen = np.int64(e)
        return chosen
    low, factor, mix = sigma_terms(g, s, root)
    most = np.int64(0)
    for e in range(np.int64(record["opened"])):
        if not is_lost(g, s, slots + e):
            most = max(most, np.int64(g.slots[slots + e]["visits"]))
    chosen = np.int64(NO_EDGE)
    best_score = -np.inf
    for e in range(n):
        visits = np.int64(0)
        q = mix
        if e < record["opened"]:
            if is_lost(g, s, slots + e):
                continue
            visits = np.int64(g.slots[slots + e]["visits"])
            q = value_or(g, s, slots + e, mix)
        if visits < most:
            continue
        score = root_score(f, i, np.int64(e), low, factor, q)
        if score > best_score:
            best_score = score
            chosen = np.int64(e)
    return max(chosen, np.int64(0))


@borrowing
def sampled_edge(f: Forest, i: Number, p: NDArray[np.float64], n: Number, power: float) -> Number:
    """Sample an edge with probability proportional to p ** power."""
    greatest = 0.0
    for e in range(n):
        greatest = max(greatest, p[e])
    total = 0.0
    for e in range(n):  # of the greatest, because a large power of any p is 0
        total += (p[e] / greatest) ** power
    left = uniform(f.randoms, i) * total
    last = np.int64(0)
    for e in range(n):
        if p[e] <= 0.0:
            continue
        last = np.int64(e)
        left -= (p[e] / greatest) ** power
        if left <= 0.0:
            return last
    return last


# --- the schedule of sequential halving ([Gumbel] section 3.2 and appendix B) ---------------------


def visit_schedule(nodes: int, considered: int) -> list[int]:
    """Return the schedule: entry k is the number of visits that a root move must have to be a candidate
    for visit k.

    Of `considered` moves, each gets max(1, nodes // (ceil(log2 considered) * moves left)) visits a
    round; then the better half stays, at least two. The last round is cut at `nodes`.
    """
    if considered <= 1:
        return list(range(nodes))
    rounds = math.ceil(math.log2(considered))
    held = [0] * considered
    left = considered
    schedule: list[int] = []
    while len(schedule) < nodes:
        for _ in range(max(1, nodes // (rounds * left))):
            schedule += held[:left]
            held = [n + 1 for n in held[:left]]
        left = max(2, left // 2)
    return schedule[:nodes]


def schedule_table(nodes: int, considered: int, length: int) -> NDArray[np.int32]:
    """Return the schedules of 0 to `considered` moves, int32 [considered + 1, length]; visits beyond
    `nodes` are not made."""
    table = np.zeros((considered + 1, max(length, nodes)), np.int32)
    for moves in range(considered + 1):
        table[moves, :nodes] = visit_schedule(nodes, moves)
    return table
