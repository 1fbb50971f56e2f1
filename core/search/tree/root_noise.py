"""The root before a search: noise in its priors, and the moves that may be taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.edges import edge_arrays
from variant_ai.core.search.tree.nodes import LOOKED, MATES, SORTED, Arrays
from variant_ai.core.search.tree.priors import decode_priors

_NOTHING = np.zeros(0, np.float32)


def arrange(
    g: Arrays,
    root: int,
    params: SearchParams,
    allowed: Sequence[int] | None,
    rng: np.random.Generator,
) -> tuple[int, NDArray[np.float32]]:
    """Sort the untried edges of an evaluated root anew, those that are not allowed (None: all are)
    last. Returns how many edges in front may be taken, and the priors to use instead of the node's
    own (see `select_edge`), of no length where its own serve.
    """
    record = g.nodes[root]
    n, opened = int(record["count"]), int(record["opened"])
    moves, codes = edge_arrays(g, root)
    if int(record["flags"]) & MATES:  # the order of its edges is about to change
        record["flags"] = int(record["flags"]) & ~(MATES | LOOKED)
    record["flags"] = int(record["flags"]) | SORTED
    order = opened + np.argsort(-codes[opened:].astype(np.int64), kind="stable")
    moves[opened:], codes[opened:] = moves[order].copy(), codes[order].copy()
    priors = decode_priors(codes).astype(np.float64)
    use = np.ones(n, bool) if allowed is None else np.isin(moves, np.array(allowed, np.int32))
    if params.noise_epsilon == 0 and use.all():
        return n, _NOTHING
    if params.noise_epsilon > 0:
        count = int(use.sum())
        noise = np.full(count, 1.0 / count)
        if params.noise_style == "dirichlet":
            noise = rng.dirichlet(np.full(count, params.noise_alpha))
        priors[use] = (1.0 - params.noise_epsilon) * priors[use] + params.noise_epsilon * noise
    priors[~use] = -1.0
    order = opened + np.argsort(-priors[opened:], kind="stable")
    moves[opened:], codes[opened:] = moves[order].copy(), codes[order].copy()
    priors[opened:] = priors[order]
    return opened + int((priors[opened:] >= 0).sum()), priors.astype(np.float32)
