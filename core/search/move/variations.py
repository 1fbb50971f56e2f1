"""Lines of play, values and the best move of a tree: the contents of reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from variant_ai.core.rules.game import Game
from variant_ai.core.search.move.move_choice import choose, move_policy, ranking
from variant_ai.core.search.report import Line, Report, centipawns
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.edges import Edges, ReadableTree, among
from variant_ai.core.search.tree.nodes import OPEN

LONGEST = 200
"""Maximum number of plies in a line."""
VISITS_A_PLY = 500
"""Visits per ply of a depth limit, after which a shorter line is accepted if it cannot get longer."""


def order(edges: Edges, params: SearchParams) -> list[int]:
    """Return the edges of a node, best first: by proof, then by `move_policy`."""
    policy = move_policy(edges.visits, edges.q, params)
    return [int(e) for e in ranking(policy, edges.q, edges.priors, edges.mates)]


def line_of(
    tree: ReadableTree, edge: int, edges: Edges, params: SearchParams
) -> list[tuple[int, int]]:
    """Return the line of play that starts with an edge of the root: moves and their nodes (0: none).

    It ends where nothing was visited, at the end of the game, and at a repeated position.
    """
    assert tree.game is not None
    position = tree.game.position
    fold = tree.rules.spec.rules.repetition.fold
    seen: set[int] = set()
    line: list[tuple[int, int]] = []
    while len(line) < LONGEST:
        move, child = int(edges.moves[edge]), int(edges.children[edge])
        line.append((move, child))
        position = tree.after(position, move, child)
        key = int(position["key"][0])
        if child == 0 or key in seen or tree.game.times_seen(key) + 1 >= fold:
            break
        seen.add(key)
        record = tree.arrays.nodes[child]
        if int(record["count"]) == 0 or int(record["opened"]) == 0:
            break
        edges = tree.edges(child)
        best = order(edges, params)[0]
        if edges.visits[best] == 0 and edges.mates[best] == 0:
            break
        edge = best
    return line


def line_limit(game: Game, report: Report, depth: int | None, mate: int | None) -> str:
    """Return which limit the best line of the game's search has reached, `depth` or `mate`; empty if none.

    depth: plies, see `is_deep`. mate: full moves; a win of the mover in at most this many is proven.
    """
    if depth is not None and is_deep(game, report, depth):
        return "depth"
    found = report.lines[0].mate_in if report.lines else None
    return "mate" if mate is not None and found is not None and 0 < found <= mate else ""


def is_deep(game: Game, report: Report, depth: int) -> bool:
    """Return True if the best line has `depth` plies, or after VISITS_A_PLY visits per ply, if it
    cannot get longer because it ends with the end of the game or a repetition."""
    if report.depth >= depth:
        return True
    if report.visits < depth * VISITS_A_PLY:
        return False
    position = game.position
    keys: set[int] = set()
    for move in report.lines[0].pv:
        keys.add(int(position["key"][0]))
        position = game.rules.play(position, move)
    last = int(position["key"][0])
    return last in keys or game.times_seen(last) > 0 or game.rules.outcome(position) is not None


def visited_moves(edges: Edges, allowed: Sequence[int] | None) -> list[tuple[int, int]]:
    """Return (move, visits) of the root's visited moves, the most visited first, as a target for the
    policy.

    Proofs override visits, because a proof ends the search before the visits reflect it: if moves
    win, only the quickest is returned, with all the visits, and moves that lose are excluded if there
    are others. allowed: as in `make_report`.
    """
    use = among(edges.moves, allowed)
    wins = np.flatnonzero(use & (edges.mates > 0))
    if len(wins):
        quickest = wins[int(edges.mates[wins].argmin())]
        total = int(edges.visits[use].sum())
        return [(int(edges.moves[quickest]), max(1, total))]
    use &= edges.visits > 0
    if (use & (edges.mates == 0)).any():
        use &= edges.mates == 0
    kept = np.flatnonzero(use)
    ordered = kept[np.argsort(-edges.visits[kept], kind="stable")]
    return [(int(edges.moves[e]), int(edges.visits[e])) for e in ordered]


def make_report(
    tree: ReadableTree,
    params: SearchParams,
    *,
    multipv: int,
    allowed: Sequence[int] | None,
    knows_draws: bool,
    seconds: float,
    least_depth: int = 0,
    stopped_by: str = "",
    rng: np.random.Generator | None = None,
    pv: bool = True,
) -> Report:
    """Report the state of a search.

    allowed: moves of the root that may be played; None: all. rng: samples the final move; None: the
    search goes on. least_depth: depth of an earlier report of the search. pv: lines continue after
    their first move, which takes most of the time of a report.
    """
    edges = tree.edges(tree.root)
    edges = edges.take(np.flatnonzero(among(edges.moves, allowed)))
    if not len(edges.moves):
        return Report(best=None, seconds=seconds, stopped_by=stopped_by)
    if params.pv_values == "on":
        edges = _adjusted(tree, edges, params)
    ranked = order(edges, params)
    if rng is not None:
        best = choose(
            edges.visits,
            edges.q,
            edges.priors,
            params,
            mates=edges.mates,
            own_moves=tree.game.own_moves if tree.game else 0,
            rng=rng,
        )
        ranked.remove(best)
        ranked.insert(0, best)
    lines = [
        _line(tree, edge, edges, params, knows_draws=knows_draws, pv=pv)
        for edge in ranked[: max(1, multipv)]
    ]
    longest = max(len(line.pv) for line in lines)
    depth = max(least_depth, len(lines[0].pv) if pv else 0)
    return Report(
        best=lines[0].move,
        ponder=lines[0].pv[1] if len(lines[0].pv) > 1 else None,
        lines=tuple(lines),
        visits=tree.counter("visits"),
        evaluations=tree.counter("evaluations"),
        terminals=tree.counter("terminals"),
        collisions=tree.counter("collisions"),
        merges=tree.counter("merges"),
        tree_nodes=tree.counter("node_count"),
        depth=depth,
        seldepth=max(longest, depth),
        seconds=seconds,
        hashfull=tree.hashfull,
        stopped_by=stopped_by,
    )


def _line(
    tree: ReadableTree,
    edge: int,
    edges: Edges,
    params: SearchParams,
    *,
    knows_draws: bool,
    pv: bool,
) -> Line:
    """Report an edge of the root; the arguments are those of `make_report`."""
    move, visits, mate = int(edges.moves[edge]), int(edges.visits[edge]), int(edges.mates[edge])
    root = tree.arrays.nodes[tree.root]
    evaluated = root["state"] == OPEN
    q, draw = float(edges.q[edge]), float(edges.draws[edge])
    visited = bool(visits or mate)
    if not visited and evaluated:
        q, draw = float(root["value"]), float(root["draw"])
    wdl = None
    if knows_draws and (visits or (evaluated and not visited)):
        draw = min(max(draw, 0.0), 1.0 - abs(q))
        wdl = ((1.0 - draw + q) / 2, draw, (1.0 - draw - q) / 2)
    return Line(
        move=move,
        pv=tuple(m for m, _ in line_of(tree, edge, edges, params)) if pv else (move,),
        visits=visits,
        prior=float(edges.priors[edge]),
        q=q,
        wdl=wdl,
        cp=centipawns(q),
        mate=mate or None,
    )


def _adjusted(tree: ReadableTree, edges: Edges, params: SearchParams) -> Edges:
    """Edges with Q lowered to the value at the end of each move's line ([CrazyAra-preprint] eq. 6)."""
    leaf = edges.q.copy()
    for edge in np.flatnonzero(edges.visits).tolist():
        nodes = [node for _, node in line_of(tree, edge, edges, params)[: params.pv_depth] if node]
        if nodes:
            value = float(tree.arrays.nodes[nodes[-1]]["q"])
            leaf[edge] = value if len(nodes) % 2 == 0 else -value
    return replace(edges, q=np.minimum(edges.q, leaf))
