"""The hash table: contents of keys, and growth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.tree.priors import decode_prior, decode_priors, encode_prior
from variant_ai.core.search.tree.transpositions import counters_read, find, node_key


@pytest.mark.parametrize(
    ("variant", "field", "matters"),
    [
        ("crazyhouse", "ply", True),
        ("crazyhouse", "clock", True),
        ("crazyhouse", "repetitions", True),
        ("crazyhouse", "checks", False),
        ("xiangqi", "ply", True),
        ("xiangqi", "clock", True),
        ("xiangqi", "checks", True),
        ("xiangqi", "repetitions", False),
    ],
)
def test_counters_are_in_the_key_if_something_uses_them(
    rules_of: Callable[[str], Rules], variant: str, field: str, matters: bool
) -> None:
    rules = rules_of(variant)
    read = np.int64(counters_read(rules.spec))
    position = rules.position()
    before = node_key(position, 0, read)
    position[field] = position[field] + 1
    assert (node_key(position, 0, read) != before) == matters


def test_every_number_of_repetitions_that_planes_show_has_a_key_of_its_own(
    rules_of: Callable[[str], Rules],
) -> None:
    rules = rules_of("crazyhouse")
    read = np.int64(counters_read(rules.spec))
    position = rules.position()
    keys = []
    for repetitions in range(6):
        position["repetitions"] = repetitions
        keys.append(int(node_key(position, 0, read)))
    assert len(set(keys[:5])) == 5 and keys[5] == keys[4]  # `repetitions:` is at most 4


def test_the_table_grows_with_the_graph(make_search: Callable[..., Search]) -> None:
    search = make_search("crazyhouse")
    chains = len(search.tree.arrays.heads)
    search.run(Limits(simulations=8000))
    g = search.tree.arrays
    assert len(g.heads) > chains
    seen = 0
    for head in g.heads[g.heads > 0].tolist():
        node = head
        while node:
            assert int(find(g, g.nodes[node]["key"])) == node
            seen += 1
            node = int(g.nodes[node]["next"])
    assert seen == search.tree.counter("node_count")


def test_priors_keep_eleven_bits() -> None:
    probabilities = np.concatenate([np.random.default_rng(0).random(500) ** 6, [1.0, 0.5, 1e-9]])
    codes = np.array([encode_prior(float(p)) for p in probabilities], np.uint16)
    kept = np.array([decode_prior(np.int64(c)) for c in codes])
    assert np.array_equal(kept.astype(np.float32), decode_priors(codes))
    known = probabilities > 1e-8
    assert np.abs(kept[known] / probabilities[known] - 1).max() <= 2**-12
    assert decode_prior(np.int64(encode_prior(0.0))) < 1e-9
    assert np.all(np.diff(kept[np.argsort(probabilities)]) >= 0)
