"""Self-play by pgx (rules) and mctx (Gumbel search), for `self_play.py`: the loop of pgx's own example.

The net has the layers of `alphazero-8v-map` with its batch norms folded, and random weights. It sees the
last position only, as ours does; pgx shows eight.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pgx
from pgx.experimental import auto_reset

SEEN = {
    # planes of a position in pgx, planes of counters behind the eight positions, planes of the policy
    "animal_shogi": (24, 2, 11),
    "gardner_chess": (14, 3, 49),
}

jax.config.update("jax_platforms", "cpu")


def new_net(
    planes: int, squares: int, policy_planes: int, blocks: int, channels: int, head: dict[str, int]
) -> dict[str, Any]:
    """Random weights, by layer; convolutions are HWIO."""
    rng = np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        scale = np.sqrt(2.0 / np.prod(shape[:-1]))
        return jnp.asarray(rng.normal(0, scale, shape), jnp.float32)

    def conv(size: int, inputs: int, outputs: int) -> tuple[Any, Any]:
        return weights(size, size, inputs, outputs), jnp.zeros(outputs, jnp.float32)

    n, hidden = head["value_channels"], head["value_hidden"]
    return {
        "stem": conv(3, planes, channels),
        "tower": [
            (conv(3, channels, channels), conv(3, channels, channels)) for _ in range(blocks)
        ],
        "value": conv(1, channels, n),
        "hidden": (weights(n * squares, hidden), jnp.zeros(hidden, jnp.float32)),
        "output": (weights(hidden, 1), jnp.zeros(1, jnp.float32)),
        "policy": conv(3, channels, channels),
        "logits": conv(3, channels, policy_planes),
    }


def run_net(net: dict[str, Any], planes: Any) -> tuple[Any, Any]:
    """planes [B, H, W, C]; returns logits [B, A] and values [B]."""

    def conv(layer: tuple[Any, Any], x: Any) -> Any:
        kernel, bias = layer
        order = ("NHWC", "HWIO", "NHWC")
        return (
            jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=order) + bias
        )

    x = jax.nn.relu(conv(net["stem"], planes))
    for first, second in net["tower"]:
        x = jax.nn.relu(x + conv(second, jax.nn.relu(conv(first, x))))
    value = jax.nn.relu(conv(net["value"], x)).reshape(len(x), -1)
    value = jax.nn.relu(value @ net["hidden"][0] + net["hidden"][1])
    value = jnp.tanh(value @ net["output"][0] + net["output"][1])[:, 0]
    logits = conv(net["logits"], jax.nn.relu(conv(net["policy"], x)))
    return jnp.moveaxis(logits, -1, 1).reshape(len(x), -1), value


class PgxPlayer:
    """Plays a number of games at once."""

    def __init__(
        self, game: str, blocks: int, channels: int, head: dict[str, int], games: int, nodes: int
    ) -> None:
        """nodes: simulations a move. Compiling takes up to a minute."""
        self.games = games
        self.nodes = nodes
        env: Any = pgx.make(game)
        a_position, counters, policy_planes = SEEN[game]
        height, width, planes = env.observation_shape
        assert env.num_actions == policy_planes * height * width
        seen = np.r_[0:a_position, planes - counters : planes]
        net = new_net(len(seen), height * width, policy_planes, blocks, channels, head)
        self.weights = sum(int(leaf.size) for leaf in jax.tree_util.tree_leaves(net))
        self._net = net
        rows = jnp.arange(games)

        def judge(net: Any, state: Any) -> tuple[Any, Any]:
            logits, value = run_net(net, state.observation[..., seen])
            logits = jnp.where(state.legal_action_mask, logits, jnp.finfo(jnp.float32).min)
            return logits, value

        def simulate(net: Any, key: Any, action: Any, state: Any) -> tuple[Any, Any]:
            del key
            player = state.current_player
            state = jax.vmap(env.step)(state, action)
            logits, value = judge(net, state)
            over = state.terminated
            output = mctx.RecurrentFnOutput(
                reward=state.rewards[rows, player],
                discount=jnp.where(over, 0.0, -1.0),
                prior_logits=logits,
                value=jnp.where(over, 0.0, value),
            )
            return output, state

        @partial(jax.jit, donate_argnums=1)
        def move(net: Any, state: Any, key: Any) -> Any:
            searching, stepping = jax.random.split(key)
            logits, value = judge(net, state)
            found = mctx.gumbel_muzero_policy(
                net,
                searching,
                mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state),
                simulate,
                nodes,
                invalid_actions=~state.legal_action_mask,
                qtransform=partial(
                    mctx.qtransform_completed_by_mix_value, value_scale=0.5, rescale_values=False
                ),
            )
            keys = jax.random.split(stepping, games)
            step = jax.vmap(auto_reset(env.step, env.init))
            return step(state, found.action, keys), found.action_weights

        self._move = move
        self._key = jax.random.PRNGKey(0)
        self._state = jax.vmap(env.init)(jax.random.split(self._key, games))
        self.turn(0.0)

    def turn(self, seconds: float) -> tuple[int, float, float]:
        """Play for a while, at least one move of each game. Returns simulations, wall and processor
        seconds."""
        processor, wall = time.process_time(), time.perf_counter()
        count = 0
        while True:
            self._key, key = jax.random.split(self._key)
            self._state, _ = self._move(self._net, self._state, key)
            jax.block_until_ready(self._state.terminated)
            count += self.games * self.nodes
            passed = time.perf_counter() - wall
            if passed >= seconds:
                return count, passed, time.process_time() - processor

    def rate(self, seconds: float) -> float:
        """Simulations per processor second."""
        count, _, processor = self.turn(seconds)
        return count / processor
