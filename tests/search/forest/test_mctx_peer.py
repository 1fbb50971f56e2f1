"""The plain implementation of Gumbel AlphaZero against the package mctx of the paper's authors.

`test_gumbel_reference.py` compares it with the compiled search; the two together compare that search
with mctx. The game is made of hashes, so that both play it from a formula: a state is a number, every
state has all the moves, and one in sixteen ends the game.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest
from gumbel_reference import GumbelTree, Search, Vector

jax = pytest.importorskip("jax", reason="jax is not installed")
mctx = pytest.importorskip("mctx", reason="mctx is not installed")

pytestmark = [pytest.mark.peer, pytest.mark.slow]

MOVES = 12
GAMES = 16
DECISIVE = 1e-4
"""Searches with a closer choice than this are not compared: mctx computes in 32 bits."""


def mixed(x: Any) -> Any:
    """Hash uint32 numbers, numpy or jax ("lowbias32" by Chris Wellons)."""
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


def after(state: Any, move: Any) -> Any:
    """State after a move; uint32."""
    return mixed(state * np.uint32(31) + move + np.uint32(1))


def ends(state: Any) -> Any:
    return state % 16 == 0


def value_of(state: Any) -> Any:
    """Value for the player to move, in [-1, 1] at the end of the game, otherwise in
    [-1/8, 1/8]; exact in 32 bits."""
    v = (mixed(state ^ np.uint32(0x5BD1E995)) >> 16).astype(np.float32) / np.float32(32768) - 1
    return v * (1 + 7 * ends(state).astype(np.float32)) / 8


def logits_of(state: Any) -> Any:
    """Logits [..., MOVES] in [0, 4), multiples of 1/1024."""
    moves = np.arange(MOVES, dtype=np.uint32)
    bits = mixed(state[..., None] * np.uint32(17) + moves * np.uint32(0x9E3779B9))
    return (bits >> 20).astype(np.float32) / np.float32(1024)


class HashedWorld:
    """The game for the plain implementation."""

    def evaluate(self, state: Hashable) -> tuple[Vector, float]:
        number = np.array([state], np.uint32)
        return logits_of(number)[0].astype(np.float64), float(value_of(number)[0])

    def play(self, state: Hashable, move: int) -> tuple[Hashable, float | None]:
        number = after(np.array([state], np.uint32), np.uint32(move))
        over = bool(ends(number)[0])
        return int(number[0]), float(value_of(number)[0]) if over else None


def by_mctx(
    roots: np.ndarray, search: Search, key: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return visits [B, A], weights [B, A], moves [B] and root values [B]."""
    jnp = jax.numpy

    def step(_: Any, key: Any, move: Any, state: Any) -> tuple[Any, Any]:
        new = after(state, move.astype(jnp.uint32))
        over = ends(new)
        value = jnp.asarray(value_of(new))
        output = mctx.RecurrentFnOutput(
            reward=jnp.where(over, -value, 0.0),
            discount=jnp.where(over, 0.0, -1.0),
            prior_logits=jnp.asarray(logits_of(new)),
            value=jnp.where(over, 0.0, value),
        )
        return output, new

    states = jnp.asarray(roots)
    root = mctx.RootFnOutput(
        prior_logits=jnp.asarray(logits_of(roots)),
        value=jnp.asarray(value_of(roots)),
        embedding=states,
    )
    # mctx takes values in [-1, 1], and rescaled ones in [0, 1]
    transform = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=search.c_scale if search.rescale else search.c_scale / 2,
        maxvisit_init=search.c_visit,
        rescale_values=search.rescale,
    )
    found = mctx.gumbel_muzero_policy(
        (),
        key,
        root,
        step,
        search.simulations,
        qtransform=transform,
        max_num_considered_actions=search.considered,
    )
    tree = found.search_tree.summary()
    return (
        np.asarray(tree.visit_counts),
        np.asarray(found.action_weights),
        np.asarray(found.action),
        np.asarray(tree.value),
    )


@pytest.mark.parametrize("rescale", [False, True], ids=["fixed", "minmax"])
@pytest.mark.parametrize(
    "nodes, considered", [(4, 4), (16, 8), (16, 16), (32, 16), (50, 4), (50, 16)]
)
def test_visits_weights_and_moves(nodes: int, considered: int, rescale: bool) -> None:
    roots = mixed(np.arange(1, GAMES + 1, dtype=np.uint32))
    search = Search(
        simulations=nodes,
        considered=considered,
        c_scale=0.1 if rescale else 1.0,
        rescale=rescale,
    )
    key = jax.random.PRNGKey(nodes + considered)
    visits, weights, moves, values = by_mctx(roots, search, key)
    # the noise that mctx draws
    _, drawn = jax.random.split(key)
    noise = np.asarray(jax.random.gumbel(drawn, (GAMES, MOVES)), np.float64)
    compared = 0
    for i in range(GAMES):
        found = GumbelTree(HashedWorld(), int(roots[i]), search, noise[i]).run()
        if found.margin < DECISIVE:
            continue
        compared += 1
        assert found.visits.tolist() == visits[i].tolist()
        assert found.weights == pytest.approx(weights[i], abs=1e-4)
        assert found.move == int(moves[i])
        assert found.value == pytest.approx(float(values[i]), abs=1e-5)
    assert compared >= GAMES // 2
